// Prints the columns of a file, for people or as JSON fields.
#include "data/data_report.h"

#include <stdio.h>

#include "output.h"

static void print_item(const printed_column *c)
{
	json_begin_item();
	json_text("name", c->name);
	if (c->left_out != NULL)
		json_text("holds", c->left_out);
	if (c->categories != 0)
		json_integer("categories", (int64_t) c->categories);
	if (c->date)
		json_text("holds", "dates");
	if (c->indicator)
		json_integer("indicator", 1);
	json_end_item();
}

// "colour (3 categories)", "sold (date)", "price (with an indicator)"
static void print_input(const printed_column *c, const char *before)
{
	char name[CLEAN_TEXT];
	printf("%s%s", before, clean_text(c->name, name));
	const bool plain = c->categories == 0 && !c->date;
	if (c->categories != 0)
		printf(" (%zu categor%s", c->categories, c->categories == 1 ? "y" : "ies");
	else if (c->date)
		printf(" (date");
	if (c->indicator)
		printf(plain ? " (with an indicator" : ", with an indicator");
	if (!plain || c->indicator)
		printf(")");
}

static void print_list(
		size_t n, const printed_column columns[], bool inputs, const char *line, const char *key)
{
	char name[CLEAN_TEXT];
	size_t printed = 0;
	if (key != NULL)
		json_begin_list(key);
	for (size_t i = 0; i < n; i++) {
		const printed_column *c = &columns[i];
		if ((c->left_out == NULL) != inputs)
			continue;
		if (key != NULL)
			print_item(c);
		else if (inputs)
			print_input(c, printed == 0 ? line : ", ");
		else
			printf("%s%s (%s)", printed == 0 ? line : ", ", clean_text(c->name, name),
					c->left_out);
		printed++;
	}
	if (key != NULL)
		json_end_list();
	else if (printed > 0)
		printf("\n");
}

void print_columns(size_t n, const printed_column columns[], const char *target, bool json)
{
	print_list(n, columns, true, "input: ", json ? "inputs" : NULL);
	if (json)
		json_text("target", target);
	else
		printf("target: %s\n", target);
	print_list(n, columns, false, "ignored: ", json ? "left_out" : NULL);
}

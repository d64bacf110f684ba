// Fuzzes the reader of the events of choir report. Keys and texts must lie in the line, and lists
// in the line's numbers.
#include "fuzz.h"

#include "report/json_line.h"

static int lies_in(const char *text, const char *line, size_t size)
{
	return text >= line && text + strlen(text) <= line + size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static json_line read;
	char *line = malloc(size + 1);
	demand(line != NULL, "no memory");
	memcpy(line, data, size);
	line[size] = '\0';
	if (json_line_read(&read, line))
		for (size_t i = 0; i < read.n; i++) {
			const json_field *f = &read.field[i];
			demand(lies_in(f->key, line, size), "a key elsewhere");
			demand(f->text == NULL || lies_in(f->text, line, size), "a text elsewhere");
			demand(f->n == 0 || f->first + f->n <= read.numbers, "a list elsewhere");
			demand(json_line_find(&read, f->key) != NULL, "a key that is not found");
		}
	free(line);
	return 0;
}

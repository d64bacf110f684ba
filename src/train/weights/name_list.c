// Lists of names for messages.
#include "train/weights/weights.h"

enum { NAMES_SHOWN = 3, NAME_SHOWN = 60 };

void chi_name_list_add(chi_name_list *list, const char *name, const char *more)
{
	char clean[NAME_SHOWN];
	if (list->n++ < NAMES_SHOWN)
		chi_text_add(&list->text, "%s\"%s\"%s", list->n == 1 ? "" : ", ",
				chi_text_clean(name, clean, sizeof clean), more);
}

void chi_name_list_print(chi_text *text, const chi_name_list *list)
{
	if (list->n == 0)
		return;
	chi_text_add(text, "%s%s %s", text->length == 0 ? "" : "; ", list->what,
			list->text.data == NULL ? "" : list->text.data);
	if (list->n > NAMES_SHOWN)
		chi_text_add(text, " and %d more", list->n - NAMES_SHOWN);
}

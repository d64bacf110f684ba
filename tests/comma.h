// Sets a locale whose decimal point is a comma, if the system has one.
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

// Sets it; false: there is none. setlocale(LC_ALL, "C") resets it.
static inline bool comma_set(void)
{
	static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };
	const char *found = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++)
		found = setlocale(LC_ALL, names[i]);
	return found != NULL;
}

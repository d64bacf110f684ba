// Percent encoding: '%' and each byte that is not printable ASCII become '%' and two hexadecimal
// digits.
#pragma once

#include <stddef.h>

// Returns the length; size if it does not fit.
size_t percent_encode(const char *from, char *to, size_t size);
// The same, appended to a tab-separated list of at characters.
size_t percent_encode_to_list(char *list, size_t at, size_t size, const char *text);
// Decodes in place. An invalid escape stays.
void percent_decode(char *text);

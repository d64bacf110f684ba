// Percent encoding: '%' and each byte that is not printable ASCII become '%' and two hexadecimal
// digits.
#pragma once

#include <stddef.h>

// Writes the encoded text and a 0. Returns its length; size if it does not fit.
size_t percent_encode(const char *from, char *to, size_t size);
// Appends to a tab-separated list that has at characters. Returns its length; size if it does not
// fit.
size_t percent_encode_to_list(char *list, size_t at, size_t size, const char *text);
// Decodes text in place. An incomplete or invalid escape stays unchanged.
void percent_decode(char *text);

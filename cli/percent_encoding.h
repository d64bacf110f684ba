// Texts of any bytes as printable ASCII within a line: a byte that is not, and '%', is "%0A".
#pragma once

#include <stddef.h>

// How many characters were written, with a zero behind them; size: it does not fit.
size_t percent_encode(const char *from, char *to, size_t size);
// Adds to a list of such texts, with tabs between, of which at characters are there; as above.
size_t percent_encode_to_list(char *list, size_t at, size_t size, const char *text);
// Makes text again, in place, what it was. What coded_write never writes stays as it is.
void percent_decode(char *text);

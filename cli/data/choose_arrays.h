// The selected arrays of a file: "FILE#x_train,y_train".
#pragma once

#include <choir/choir.h>

enum { MAX_ARRAYS = 32, ARRAYS_PATH = 4096, ARRAYS_TEXT = 2048 };

typedef struct {
	char file[ARRAYS_PATH]; // a file, a list of files, or a pattern
	size_t n; // 0: all arrays
	const char *name[MAX_ARRAYS]; // in text
	char text[ARRAYS_TEXT];
} array_names;

// Splits a name at the last '#', unless a file has the whole name. CHOIR_INVALID: it is too long,
// or a name is empty. The names point into a, so a must not be copied.
choir_status array_names_set(array_names *a, const char *given);

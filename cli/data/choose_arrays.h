// Which arrays of a file are meant: "FILE#x_train,y_train".
#pragma once

#include <choir/choir.h>

enum { MAX_ARRAYS = 32, ARRAYS_PATH = 4096, ARRAYS_TEXT = 2048 };

typedef struct {
	char file[ARRAYS_PATH]; // or a list of files, or a pattern
	size_t n; // 0: all of them
	const char *name[MAX_ARRAYS]; // in text
	char text[ARRAYS_TEXT];
} array_names;

// Takes apart what is given. Names begin behind the last '#', unless a file is called so.
// CHOIR_INVALID: it is too long, or a name is empty. The names point into a, which is not copied.
choir_status array_names_set(array_names *a, const char *given);

// Where the command's examples come from: the digits that come with Choir, drawn digits, or IDX
// files of one's own. What the images and labels are like is found out by looking at them.
#pragma once

#include <choir/choir.h>

enum { PATH_SIZE = 4096 };

typedef struct {
	const char *name; // as it was given
	char images[PATH_SIZE], labels[PATH_SIZE]; // IDX files; "": drawn digits, or no labels
	bool drawn;
	bool labelled;
	uint64_t seed; // of drawn digits
	int64_t examples;
	choir_shape shape; // of an image
	double scale; // makes the images' values 0 to 1
	int64_t classes; // the largest label + 1; 0 without labels
} source;

extern const char source_help[]; // of --data

// Understands name and looks at the data. CHOIR_NOT_FOUND: no such data; the text lists what
// there is.
choir_status source_open(source *s, const char *name, uint64_t seed);
// Columns "image" (f32, scaled) and, if there are labels, "label"; one example an element. NULL:
// an error.
choir_dataset *source_examples(const source *s);

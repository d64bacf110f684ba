// Directories of images, with a directory for each class.
#pragma once

#include "data/training_data.h"

// Lists the files, and with s->wrong looks for those that cannot be decoded.
choir_status image_open(source *s);
choir_dataset *image_examples(const source *s);
// Prints the classes for people.
void image_print(const source *s);
// The path of an example's file; "": unknown.
const char *image_path(const source *s, int64_t example);

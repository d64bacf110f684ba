// Text as data of the command: bytes, of which a model learns which comes next.
#pragma once

#include "data/source.h"

// Looks at the files of a list (source_files): s->context is given, s->examples become as many
// windows of that many bytes as lie side by side in them. CHOIR_INVALID: there are not two.
choir_status text_open(source *s, const char *list);
// Windows side by side, in the order of the files and of the text in each.
choir_dataset *text_examples(const source *s);
// As many windows in a pass as the first examples have, but each begins at any byte of that part
// of the text, in each pass at others: so a model sees every byte at every place.
choir_dataset *text_training(const source *s, int64_t examples);

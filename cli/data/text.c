// Windows of a text. Those that are held out lie side by side behind the others, so that no byte
// which is asked for in a test was one to learn.
#include "data/text.h"

#include <stdio.h>
#include <string.h>

choir_status text_open(source *s, const char *path)
{
	if (strlen(path) >= PATH_SIZE || path[0] == '\0')
		return choir_fail(CHOIR_INVALID, "data \"%.40s\": text:FILE is needed", s->name);
	if (s->context == 0)
		return choir_fail(
				CHOIR_INVALID, "data \"%s\": text is for --model gpt, or weights of one", s->name);
	snprintf(s->images, sizeof s->images, "%s", path);
	choir_dataset *bytes = choir_text_bytes_dataset_new(path, "byte");
	if (bytes == NULL)
		return choir_error_status();
	const int64_t size = choir_dataset_cardinality(bytes), needed = 2 * s->context + 1;
	choir_dataset_free(bytes);
	if (size < needed)
		return choir_fail(CHOIR_INVALID,
				"data \"%s\": %lld bytes: with a context of %lld at least %lld are needed",
				s->name, (long long) size, (long long) s->context, (long long) needed);
	s->text = s->labelled = true;
	s->input = "input";
	s->label = "target";
	s->shape = CHOIR_SHAPE(s->context);
	s->scale = 1;
	s->classes = 256;
	s->examples = (size - 1) / s->context; // the last byte is only asked for
	return CHOIR_OK;
}

choir_dataset *text_examples(const source *s)
{
	return choir_text_windows_dataset_new(s->images, s->context, 0);
}

choir_dataset *text_training(const source *s, int64_t examples)
{
	const int64_t starts = (examples - 1) * s->context + 1;
	choir_dataset *d = choir_text_windows_dataset_new(s->images, s->context, 1);
	d = choir_dataset_shuffle(choir_dataset_take(d, starts), starts, s->seed);
	return choir_dataset_take(d, examples);
}

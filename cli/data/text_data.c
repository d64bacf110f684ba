// Windows of text files. No window crosses the end of a file. The last windows are held out, so no
// byte of a test was trained on.
#include "data/text_data.h"

#include <string.h>

// The first windows of the files, non-overlapping or at every byte.
typedef struct {
	const source *s;
	const choir_files *files;
	bool shifted; // windows at every byte
	int64_t left; // non-overlapping windows to take
	int64_t taken;
} part;

// starts: windows that begin at every byte.
static int64_t side_by_side(const source *s, int64_t starts)
{
	return starts == 0 ? 0 : (starts - 1) / s->context + 1;
}

static choir_dataset *of_file(part *p, size_t i)
{
	const int64_t context = p->s->context;
	choir_dataset *d =
			choir_text_windows_dataset_new(choir_files_path(p->files, i), context, p->shifted);
	const int64_t all = choir_dataset_cardinality(d);
	const int64_t windows = p->shifted ? side_by_side(p->s, all) : all;
	const int64_t here = windows < p->left ? windows : p->left;
	const int64_t taken = p->shifted && here > 0 ? (here - 1) * context + 1 : here;
	p->left -= here;
	p->taken += taken;
	return choir_dataset_take(d, taken);
}

// Recursion by halves keeps the chain of stages short.
static choir_dataset *join(part *p, size_t first, size_t n)
{
	if (n == 1)
		return of_file(p, first);
	choir_dataset *a = join(p, first, n / 2);
	return choir_dataset_concatenate(a, join(p, first + n / 2, n - n / 2));
}

static choir_dataset *open_part(part *p)
{
	choir_files *files = data_name_files(&p->s->data);
	p->files = files;
	choir_dataset *d = files == NULL ? NULL : join(p, 0, choir_files_count(files));
	choir_files_free(files);
	return d;
}

static choir_status too_few(const source *s)
{
	const long long context = (long long) s->context;
	choir_files *files = data_name_files(&s->data);
	choir_dataset *bytes = NULL;
	if (choir_files_count(files) > 1)
		choir_fail(CHOIR_INVALID,
				"data \"%s\": %zu files with %lld windows of %lld bytes and a next byte; needs at "
				"least 2 windows",
				s->name, choir_files_count(files), (long long) s->examples, context);
	else if ((bytes = choir_text_bytes_dataset_new(choir_files_path(files, 0), "byte")) != NULL)
		choir_fail(CHOIR_INVALID, "data \"%s\": %lld bytes; a context of %lld needs at least %lld",
				s->name, (long long) choir_dataset_cardinality(bytes), context, 2 * context + 1);
	choir_dataset_free(bytes);
	choir_files_free(files);
	return choir_error_status();
}

choir_status text_open(source *s)
{
	if (s->context == 0)
		return choir_fail(CHOIR_INVALID,
				"data \"%s\": the model does not read text; "
				"needs --model gpt, or weights of a gpt",
				s->name);
	choir_dataset *d = text_examples(s);
	if (d == NULL)
		return choir_error_status();
	s->examples = choir_dataset_cardinality(d); // a file's last byte is only a target
	choir_dataset_free(d);
	if (s->examples < 2)
		return too_few(s);
	s->text = s->labelled = true;
	s->input = "input";
	s->label = "target";
	s->shape = CHOIR_SHAPE(s->context);
	s->scale = 1;
	s->classes = 256;
	return CHOIR_OK;
}

choir_dataset *text_examples(const source *s)
{
	return open_part(&(part){ .s = s, .left = INT64_MAX });
}

choir_dataset *text_training(const source *s, int64_t examples)
{
	part p = { .s = s, .left = examples, .shifted = true };
	choir_dataset *d = open_part(&p);
	return choir_dataset_take(choir_dataset_shuffle(d, p.taken, s->seed), examples);
}

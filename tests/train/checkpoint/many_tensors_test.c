// A step of very many tensors, which a stranger can write in a file of a few megabytes, is checked
// and compared with a program in about linear time.
#include "base/alloc.h"
#include "base/crc32c.h"
#include "train/files.h"
#include "train/saved.h"
#include "train/checkpoint/checkpoint.h"
#include "short.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { TENSORS = SHORT ? 50000 : 200000 };

// A file of that many tensors of one byte, and what a manifest says of it.
static void write_file(const char *checkpoint_directory, int which, chi_manifest *m)
{
	chi_st_tensor *tensor = calloc(TENSORS, sizeof *tensor);
	chi_manifest_file *f = &m->file[which];
	static char names[CHI_CHECKPOINT_FILES][TENSORS][24]; // until the manifest is printed
	char path[600];
	static unsigned char data[TENSORS];
	chi_text text = { 0 };
	f->tensor = chi_alloc_array(TENSORS, sizeof *f->tensor);
	assert_true(tensor != NULL && f->tensor != NULL);
	for (size_t i = 0; i < TENSORS; i++) {
		snprintf(names[which][i], sizeof names[which][i], "t%zu", TENSORS - i);
		tensor[i] = (chi_st_tensor){ .name = names[which][i],
			.dtype = CHOIR_U8,
			.begin = i,
			.end = i + 1,
			.shape = CHOIR_SHAPE(1) };
		f->tensor[i] = (chi_manifest_tensor){ names[which][i], chi_crc32c(0, &data[i], 1) };
	}
	chi_safetensors_print(&text, TENSORS, tensor, 0, NULL);
	f->n = TENSORS;
	f->header = chi_crc32c(0, text.data, text.length);
	f->bytes = text.length + TENSORS;
	chi_text_add_bytes(&text, (const char *) data, TENSORS);
	assert_false(text.failed);
	snprintf(path, sizeof path, "%s/%s", checkpoint_directory, chi_checkpoint_file_name[which]);
	files_write(path, text.data, text.length);
	chi_text_free(&text);
	free(tensor);
}

static void write_manifest(const char *checkpoint_directory, chi_manifest *m)
{
	char path[600];
	chi_text text = { 0 };
	snprintf(path, sizeof path, "%s/manifest.json", checkpoint_directory);
	chi_manifest_print(&text, m);
	assert_false(text.failed);
	files_write(path, text.data, text.length);
	chi_text_free(&text);
	chi_manifest_free(m);
}

TEST(many_tensors)
{
	chi_manifest m = { .save = 1, .step = 1, .replicas = 2 };
	char checkpoint_directory[560];
	const char *directory = saved_directory();
	snprintf(checkpoint_directory, sizeof checkpoint_directory, "%s/step-1", directory);
	assert_int_equal(mkdir(directory, 0777) | mkdir(checkpoint_directory, 0777), 0);
	for (int i = 0; i < CHI_CHECKPOINT_FILES; i++)
		write_file(checkpoint_directory, i, &m);
	write_manifest(checkpoint_directory, &m);
	const clock_t begin = clock();
	choir_checkpoint_list *l = choir_checkpoint_list_new(directory);
	assert_int_equal(choir_checkpoint_list_steps(l), 1);
	saved_must(choir_checkpoint_list_check(l, 0));
	assert_int_equal(choir_checkpoint_list_tensors(l), 2 * TENSORS);
	choir_checkpoint_list_free(l);
	problem p = saved_open(0, 2, CHOIR_ADAM, NULL);
	assert_failed(choir_strategy_restore_checkpoint(p.strategy, checkpoint_directory),
			CHOIR_INVALID, "too many");
	problem_close(&p);
	assert_true((double) (clock() - begin) / CLOCKS_PER_SEC < 20);
}

TEST_GROUP(NULL, files_teardown)

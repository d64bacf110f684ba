// Workers that read everything need the same files: each kind of source says which it reads, and a
// file of one worker that differs in a byte or in its size is found when the dataset is made.
#include "process_group.h"

#include "data/source/scratch.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { WORKERS = 3, MIDDLE = 20000, LONG = 40000 };

typedef choir_dataset *open_fn(const char *path);

static choir_dataset *open_lines(const char *path)
{
	return choir_text_lines_dataset_new(path, "line", CHOIR_BAD_RECORD_ERROR);
}

static choir_dataset *open_windows(const char *path)
{
	return choir_text_windows_dataset_new(path, 8, 0);
}

static choir_dataset *open_bytes(const char *path)
{
	return choir_dataset_shuffle(choir_text_bytes_dataset_new(path, "byte"), 10, 1);
}

static choir_dataset *open_csv(const char *path)
{
	return choir_dataset_cache(choir_csv_dataset_new(path, NULL), NULL);
}

static choir_dataset *open_idx(const char *path)
{
	return choir_dataset_zip(
			choir_idx_dataset_new(path, "number"), choir_synthetic_digits_dataset_new(LONG, 1));
}

static const struct {
	open_fn *open;
	bool idx;
} kinds[] = { { open_lines, false }, { open_windows, false }, { open_bytes, false },
	{ open_csv, false }, { open_idx, true } };

typedef struct {
	open_fn *open;
	const char *path[WORKERS];
	char text[WORKERS][500];
} making;

static const char *make(choir_strategy *s, int worker, void *user)
{
	making *m = user;
	choir_distributed_dataset *data = s == NULL
			? NULL
			: choir_strategy_distribute_dataset(s,
					  choir_dataset_padded_batch(m->open(m->path[worker]), 4, NULL),
					  CHOIR_OPTIONS(choir_input_options, .read_ahead = CHOIR_OFF));
	const choir_status status = data == NULL ? choir_error_status() : CHOIR_OK;
	snprintf(m->text[worker], sizeof m->text[0], "%s", status == CHOIR_OK ? "" : choir_error());
	return status == CHOIR_OK || status == CHOIR_STATE ? NULL : choir_error();
}

static void write_file(const char *name, bool idx, size_t length, char middle)
{
	static const unsigned char head[] = { 0, 0, 8, 1, 0, 0, LONG >> 8, LONG & 255 };
	static char text[LONG + sizeof head];
	for (size_t i = 0; i < length; i++)
		text[i] = i % 2 != 0 ? '\n' : 'a';
	text[MIDDLE] = middle;
	if (idx)
		memcpy(text, head, sizeof head);
	scratch_write(name, text, idx ? LONG + sizeof head : length);
}

TEST_WITHIN(files_that_differ_are_named, NULL, scratch_leave)
{
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
		for (int same = 0; same < 2; same++) {
			char path[2][500];
			making m = { .open = kinds[k].open };
			write_file("first", kinds[k].idx, LONG, 'a');
			write_file("other", kinds[k].idx, LONG, same ? 'a' : 'b');
			snprintf(path[0], sizeof path[0], "%s", scratch_path("first"));
			snprintf(path[1], sizeof path[1], "%s", scratch_path("other"));
			for (int w = 0; w < WORKERS; w++)
				m.path[w] = path[w == 2];
			peers_run(&(peers_job){ .replicas = 3,
					.place = { WORKERS, "cpu:0" },
					.seed = 5,
					.fn = make,
					.user = &m });
			for (int w = 0; w < WORKERS; w++) {
				assert_string_equal(m.text[w], m.text[0]);
				assert_int_equal(m.text[w][0] == '\0', same);
				assert_true(same || strstr(m.text[w], "other: on worker 2 (") != NULL);
				assert_true(same || strstr(m.text[w], "must read the same data") != NULL);
			}
		}
}

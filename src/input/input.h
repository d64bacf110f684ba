// A dataset as a stream of examples, rebatched for the replicas of each step.
#pragma once

#include "choir/input.h"

#include "base/status.h"
#include "base/glob.h"
#include "data/dataset.h"
#include "strategy/context.h"

// Whatever the sizes of the dataset's elements.
typedef struct {
	choir_dataset *data;
	const chi_spec *spec;
	chi_row_buffer leftover;
	int64_t leftover_examples, used;
	int64_t elements;
} chi_example_stream;

typedef struct chi_shape_run {
	choir_tensor *tensor;
	int64_t first;
	struct chi_shape_run *older;
} chi_shape_run;

// In a column that varies, each change of shape begins a run, newest first.
typedef struct {
	choir_frame *frame;
	choir_tensor *column[CHI_MAX_COLUMNS];
	chi_shape_run *piece[CHI_MAX_COLUMNS];
	int64_t capacity;
	int64_t at;
	int64_t step;
	int64_t *rows;
	int64_t whole; // of all workers, if each reads all; else 0
} chi_batch_buffer;

// Takes ownership of d, also on failure.
choir_status chi_example_stream_init(chi_example_stream *f, choir_dataset *d);
void chi_example_stream_free(chi_example_stream *f);
choir_status chi_example_stream_begin(chi_example_stream *f, int64_t pass);
// Up to want examples, from the leftover or one element. to NULL: skips. whole: one element, for
// which to has capacity.
choir_status chi_example_stream_read(
		chi_example_stream *f, chi_batch_buffer *to, int64_t want, bool whole, int64_t *got);
// Until there are want; fewer at the end, without an error.
choir_status chi_example_stream_fill(
		chi_example_stream *f, chi_batch_buffer *to, int64_t want, int64_t *got);
// With example first, at row *offset, and *there of the next n.
choir_tensor *chi_batch_buffer_find(const chi_batch_buffer *to, size_t i, int64_t first, int64_t n,
		int64_t *offset, int64_t *there);
// An element into the empty leftover. CHOIR_END: the pass has ended.
choir_status chi_example_stream_hold(chi_example_stream *f);
void chi_example_stream_position(const chi_example_stream *f, choir_input_position *p);
choir_status chi_example_stream_seek(chi_example_stream *f, const choir_input_position *p);

typedef enum {
	CHI_REBATCH_AS_THEY_COME,
	CHI_REBATCH_ELEMENTS,
	CHI_REBATCH_ELEMENTS_SHARED, // element i is replica i's
	CHI_REBATCH_STREAM, // the worker's own, by a cyclic list of sizes
	CHI_REBATCH_SHARED, // all read all and keep their part
	CHI_REBATCH_UNKNOWN,
	CHI_REBATCH_UNKNOWN_SHARED // piece j is replica j's
} chi_rebatch;

typedef struct chi_input_message chi_input_message;
typedef struct chi_read_ahead chi_read_ahead;

struct choir_distributed_dataset {
	choir_strategy *strategy;
	choir_input_options o;
	chi_rebatch rebatch;
	bool from_function; // a function of the program makes the datasets
	chi_glob files; // of all workers, if sharded by file
	size_t *files_of; // worker w has files_of[w] to files_of[w + 1] - 1
	bool fell_back; // from FILE to DATA
	int streams;
	chi_example_stream *stream;
	int64_t batch; // or CHOIR_UNKNOWN_CARDINALITY
	int64_t capacity;
	int64_t steps;
	int64_t pass; // the thread may be ahead
	int64_t all;
	chi_error failure;
	bool unreported;
	bool held; // saves write before
	choir_input_position before;
	chi_read_ahead *read_ahead;
	uint64_t signature; // of the dataset, and of the share read here
	chi_input_message *messages; // NULL: no other workers
	int64_t *rows;
	choir_column *column;
};

bool chi_input_is_shared(const choir_distributed_dataset *data);
// Of the job, and of the workers before worker.
int64_t chi_input_replicas(const choir_distributed_dataset *data);
int64_t chi_input_first(const choir_distributed_dataset *data, int worker);
choir_status chi_input_make_columns(const choir_distributed_dataset *data, chi_batch_buffer *to);
// Reads step to->step and sets replicas' rows. CHOIR_END: all are 0.
choir_status chi_input_read_step(choir_distributed_dataset *data, chi_batch_buffer *to);
// From the first begin or take on. together: a reader waits for half of the steps. goes_on: into
// the next pass.
chi_read_ahead *chi_read_ahead_new(
		choir_distributed_dataset *data, int steps, bool together, bool goes_on);
void chi_read_ahead_free(chi_read_ahead *a);
choir_status chi_read_ahead_begin(chi_read_ahead *a);
// In to->frame. Errors: as chi_input_read_step.
choir_status chi_read_ahead_take(chi_read_ahead *a, chi_batch_buffer *to);
// Drops steps. a may be NULL.
void chi_read_ahead_halt(chi_read_ahead *a);
// *pass: the next one. False: the halted thread has not begun it, so the caller does.
bool chi_read_ahead_rewind(chi_read_ahead *a, int64_t *pass);
// After the last taken step. False: ask the stream.
bool chi_read_ahead_position(const chi_read_ahead *a, choir_input_position *p);
// own: the status here. differs: the message for another signature than worker 0's.
choir_status chi_input_check_creation(
		choir_strategy *s, choir_status own, uint64_t signature, const char *differs);
// CHOIR_STATE: they differ; names the first file and its worker.
choir_status chi_input_compare_files(choir_cluster *c, const chi_glob *paths);
// data NULL: it could not be made here, and own says why.
choir_status chi_input_check_data(
		choir_strategy *s, choir_status own, const choir_distributed_dataset *data);
// "image" u8 [28, 28].
enum { CHI_COLUMN_TEXT = CHI_SHAPE_TEXT + 80 };
const char *chi_input_print_column(const choir_column *c, char text[CHI_COLUMN_TEXT]);
chi_input_message *chi_input_new_messages(const choir_strategy *s);
choir_status chi_input_sync_step(
		choir_distributed_dataset *data, const chi_batch_buffer *to, choir_status own);
choir_status chi_input_need_data(const choir_distributed_dataset *data, const char *what);
void chi_input_where(const choir_distributed_dataset *data, choir_input_position *p);
// hold: until the next batch, rewind, restore or call without hold, saves have the position before
// the last batch.
void chi_input_hold_position(choir_distributed_dataset *data, bool hold);
// For the next call. told: the other workers know it. Returns status.
choir_status chi_input_keep(choir_distributed_dataset *data, choir_status status, bool told);
choir_status chi_input_shard(choir_distributed_dataset *data, choir_dataset *d);

void chi_input_free(void *self);
extern const chi_stateful_table chi_input_state;

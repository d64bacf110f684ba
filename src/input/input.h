// Distributed datasets from inside: a dataset is read as a stream of examples, which is rebatched
// for the replicas of each step.
#pragma once

#include "choir/input.h"

#include "base/status.h"
#include "base/glob.h"
#include "data/stage.h"
#include "strategy/context.h"

// A dataset as a stream of examples, however many an element has.
typedef struct {
	choir_dataset *data;
	const chi_spec *spec;
	chi_row_buffer leftover;
	int64_t leftover_examples, used; // of the last element; so many of them were handed out
	int64_t elements; // read in this pass
} chi_example_stream;

// The examples of a column from which on its shape is another: they have a tensor of their own.
typedef struct chi_shape_run {
	choir_tensor *tensor;
	int64_t first; // of the step's examples
	struct chi_shape_run *older;
} chi_shape_run;

// Where examples go: a tensor for each column. A column that varies gets its tensor with the
// first example, which decides the shape, and a run for each change of shape, newest first.
typedef struct {
	choir_frame *frame;
	choir_tensor *column[CHI_MAX_COLUMNS];
	chi_shape_run *piece[CHI_MAX_COLUMNS]; // in frame's arena; mostly NULL
	int64_t capacity; // examples
	int64_t at; // examples that are there
	int64_t step; // that is read
	int64_t *rows; // examples of each replica here
	int64_t whole; // examples read for all workers, where each reads everything; else 0
} chi_batch_buffer;

// Takes d over, also on failure.
choir_status chi_example_stream_init(chi_example_stream *f, choir_dataset *d);
void chi_example_stream_free(chi_example_stream *f);
choir_status chi_example_stream_begin(chi_example_stream *f, int64_t pass);
// Up to want examples, of the leftover or of one element; to NULL: passes over them. CHOIR_END
// instead of none. whole: one element as it comes, for which to has capacity.
choir_status chi_example_stream_read(
		chi_example_stream *f, chi_batch_buffer *to, int64_t want, bool whole, int64_t *got);
// The same until want are there. Fewer, and no error, at the end.
choir_status chi_example_stream_fill(
		chi_example_stream *f, chi_batch_buffer *to, int64_t want, int64_t *got);
// The tensor that has the example first of column i: its row *offset, and *there of the next n.
choir_tensor *chi_batch_buffer_find(const chi_batch_buffer *to, size_t i, int64_t first, int64_t n,
		int64_t *offset, int64_t *there);
// Reads an element into the leftover if that is empty. CHOIR_END: there is none.
choir_status chi_example_stream_hold(chi_example_stream *f);
void chi_example_stream_position(const chi_example_stream *f, choir_input_position *p);
choir_status chi_example_stream_seek(chi_example_stream *f, const choir_input_position *p);

// How a step's examples are divided among the worker's replicas.
typedef enum {
	CHI_REBATCH_AS_THEY_COME, // one replica in all: an element
	CHI_REBATCH_ELEMENTS, // each replica an element
	CHI_REBATCH_ELEMENTS_SHARED, // all workers read all, and element i of a step is replica i's
	CHI_REBATCH_STREAM, // the worker's stream, by the cyclic list of sizes
	CHI_REBATCH_SHARED, // all workers read all, each keeps its replicas' part of the global batch
	CHI_REBATCH_UNKNOWN, // a global batch that nobody knows: ceil pieces of each element
	CHI_REBATCH_UNKNOWN_SHARED // of which piece j falls to replica j
} chi_rebatch;

typedef struct chi_input_message chi_input_message; // step_sync.c
typedef struct chi_read_ahead chi_read_ahead; // read_ahead.c

struct choir_distributed_dataset {
	choir_strategy *strategy;
	choir_input_options o; // complete
	chi_rebatch rebatch;
	bool from_function; // it was made by one of the program's, for each worker
	chi_glob files; // where they are shared out: those of all workers
	size_t *files_of; // worker w's are files_of[w] to files_of[w + 1] - 1; NULL: they are not
	bool fell_back; // from sharding by file to DATA
	int streams; // 1, or one for each replica
	chi_example_stream *stream;
	int64_t batch; // of all replicas; CHOIR_NONE: not known
	int64_t capacity; // examples that a step of this worker can have
	int64_t steps; // in this pass
	int64_t pass; // that the program is in: who reads ahead may be in the next one
	int64_t all; // examples of the step that is made, of all workers as far as they are in step
	chi_error failure; // of a step, until the rewind; status CHOIR_OK: none
	bool unreported; // the other workers, with which the step is, do not know of it
	choir_input_position before; // where the step that is read, or has failed, began
	chi_read_ahead *read_ahead; // NULL: nothing is read ahead
	uint64_t signature; // of the dataset as it was given, in batches, and of the part read here
	chi_input_message *messages; // of each worker that is in step; NULL: there are no others
	int64_t *rows; // of each replica, of the batch that is made
	choir_column *column; // what a replica gets, for who asks
};

// Whether all workers read all examples, of which each keeps its replicas'.
bool chi_input_is_shared(const choir_distributed_dataset *data);
// Replicas of the job, and those of the workers before worker.
int64_t chi_input_replicas(const choir_distributed_dataset *data);
int64_t chi_input_first(const choir_distributed_dataset *data, int worker);
// Makes the tensors of columns that do not vary, for a whole batch.
choir_status chi_input_make_columns(const choir_distributed_dataset *data, chi_batch_buffer *to);
// Reads the examples of step to->step, and how many each replica gets. CHOIR_END: no replica gets
// any.
choir_status chi_input_read_step(choir_distributed_dataset *data, chi_batch_buffer *to);
// A thread reads so many steps ahead, from the first take on; where goes_on, the next pass too.
// together: half of them at a time.
chi_read_ahead *chi_read_ahead_new(
		choir_distributed_dataset *data, int steps, bool together, bool goes_on);
void chi_read_ahead_free(chi_read_ahead *a);
// Begins to read before a step is asked for.
choir_status chi_read_ahead_begin(chi_read_ahead *a);
// The next step, whose tensors go to to->frame; as chi_input_read_step.
choir_status chi_read_ahead_take(chi_read_ahead *a, chi_batch_buffer *to);
// Stops the thread and drops what it has read. NULL is fine.
void chi_read_ahead_halt(chi_read_ahead *a);
// To the next pass, *pass, if the thread has begun it. False: it has not, and is halted.
bool chi_read_ahead_rewind(chi_read_ahead *a, int64_t *pass);
// The position after the last step that was taken. False: the thread is not reading; the stream
// knows.
bool chi_read_ahead_position(const chi_read_ahead *a, choir_input_position *p);
// The workers that are in step agree on how making a dataset and reading a step went
// (step_sync.c); own: here. Alone it is that. signature: of what must be the same everywhere;
// differs: what is said of a worker whose is not worker 0's.
choir_status chi_input_check_creation(
		choir_strategy *s, choir_status own, uint64_t signature, const char *differs);
// Whether the files are the same everywhere; all workers of c call it. CHOIR_STATE: they are not;
// the text names the first that differs, and where.
choir_status chi_input_compare_files(choir_cluster *c, const chi_glob *paths);
// The same of a dataset: what differs is named. data NULL: own is a failure.
choir_status chi_input_check_data(
		choir_strategy *s, choir_status own, const choir_distributed_dataset *data);
// "image" u8 [28, 28]
enum { CHI_COLUMN_TEXT = CHI_SHAPE_TEXT + 80 };
const char *chi_input_print_column(const choir_column *c, char text[CHI_COLUMN_TEXT]);
// Memory for the messages of a step, one for each worker.
chi_input_message *chi_input_new_messages(const choir_strategy *s);
choir_status chi_input_sync_step(
		choir_distributed_dataset *data, const chi_batch_buffer *to, choir_status own);
// Applies the sharding policy to d, before the first read.
choir_status chi_input_shard(choir_distributed_dataset *data, choir_dataset *d);

// Its end, and what a checkpoint keeps of it (input_state.c).
void chi_input_free(void *self);
extern const chi_stateful_table chi_input_state;

// Distributed datasets from inside: a feed is a dataset read as a stream of examples; a split says
// how many of them go where in each step.
#pragma once

#include "choir/input.h"

#include "base/error.h"
#include "base/paths.h"
#include "data/step.h"
#include "strategy/context.h"

// A dataset as a stream of examples, without regard to how they come in elements. An element that
// is used up in pieces waits in spare.
typedef struct {
	choir_dataset *data;
	const chi_spec *spec;
	chi_rows spare;
	int64_t held, used; // examples in spare; of which so many were handed out
	int64_t elements; // read in this pass
} chi_feed;

// Where the examples of a column go on in another shape: in a tensor of their own.
typedef struct chi_piece {
	choir_tensor *tensor;
	int64_t first; // of the step's examples
	struct chi_piece *older;
} chi_piece;

// Where examples go: a tensor for each column, in whose memory the next ones follow on. A column
// that varies gets its tensor with the first example, which says what shape it is, and pieces
// behind it, newest first, where the shape changes.
typedef struct {
	choir_frame *frame;
	choir_tensor *column[CHI_MAX_COLUMNS];
	chi_piece *piece[CHI_MAX_COLUMNS]; // in frame's arena; mostly NULL
	int64_t room; // examples
	int64_t at; // examples that are there
	// Of the step that is read: its number, how many examples each replica here gets, and how many
	// this worker has read for all, where each reads everything; else 0.
	int64_t step;
	int64_t *rows;
	int64_t whole;
} chi_target;

choir_status chi_feed_init(chi_feed *f, choir_dataset *d); // takes d over, also on failure
void chi_feed_free(chi_feed *f);
choir_status chi_feed_begin(chi_feed *f, int64_t pass);
// Up to want examples, from what is held or one element; to NULL: passes over them. CHOIR_END only
// instead of none. whole: an element as it comes, for which there is room.
choir_status chi_feed_read(chi_feed *f, chi_target *to, int64_t want, bool whole, int64_t *got);
// The same until want are there or the end has come: fewer only at the end, no error then.
choir_status chi_feed_fill(chi_feed *f, chi_target *to, int64_t want, int64_t *got);
// The examples of column i from first on that one tensor has, at most n: *offset of its rows, and
// how many there are.
choir_tensor *chi_target_find(
		const chi_target *to, size_t i, int64_t first, int64_t n, int64_t *offset, int64_t *there);
// Reads an element into spare if nothing is held. CHOIR_END: there is none.
choir_status chi_feed_hold(chi_feed *f);
void chi_feed_where(const chi_feed *f, choir_input_position *p);
choir_status chi_feed_go(chi_feed *f, const choir_input_position *p);

// How a step's examples fall to the worker's replicas.
typedef enum {
	CHI_SPLIT_AS_THEY_COME, // one replica in all: an element
	CHI_SPLIT_ELEMENTS, // each replica an element
	CHI_SPLIT_ELEMENTS_SHARED, // all workers read all, and element i of a step is replica i's
	CHI_SPLIT_STREAM, // the worker's stream, by the cyclic list of sizes
	CHI_SPLIT_SHARED, // all workers read all, each keeps its replicas' pieces of the global batch
	CHI_SPLIT_UNKNOWN, // a global batch that nobody knows: ceil pieces of each element
	CHI_SPLIT_UNKNOWN_SHARED // of which piece j falls to replica j
} chi_split;

typedef struct chi_input_word chi_input_word; // agree.c
typedef struct chi_ahead chi_ahead; // ahead.c

struct choir_distributed_dataset {
	choir_strategy *strategy;
	choir_input_options o; // complete
	chi_split split;
	bool from_function; // it was made by one of the program's, for each worker
	chi_paths files; // where they are shared out: those of all workers
	size_t *files_of; // worker w's are files_of[w] to files_of[w + 1] - 1; NULL: they are not
	bool fell_back; // from sharding by file to DATA
	int feeds; // 1, or one for each replica
	chi_feed *feed;
	int64_t batch; // of all replicas; CHOIR_NONE: not known
	int64_t room; // examples that a step of this worker can have
	int64_t steps; // in this pass
	int64_t pass; // that the program is in: who reads ahead may be in the next one
	int64_t all; // examples of the step that is made, of all workers as far as they are in step
	chi_error failure; // of a step, until the rewind; status CHOIR_OK: none
	bool untold; // the other workers, with which the step is, do not know of it
	choir_input_position before; // where the step that is read, or has failed, began
	chi_ahead *ahead; // NULL: nothing is read ahead
	uint64_t signature; // of the dataset as it was given, in batches, and of the part read here
	chi_input_word *words; // of each worker that is in step; NULL: there are no others
	int64_t *rows; // of each replica, of the batch that is made
	choir_column *column; // what a replica gets, for who asks
};

// Whether all workers read all examples, of which each keeps its replicas'.
bool chi_input_is_shared(const choir_distributed_dataset *data);
// Replicas of the job, and those of the workers before worker.
int64_t chi_input_replicas(const choir_distributed_dataset *data);
int64_t chi_input_first(const choir_distributed_dataset *data, int worker);
// Gives the target a tensor for each column that does not vary, with room for a whole batch.
choir_status chi_input_make_columns(const choir_distributed_dataset *data, chi_target *to);
// Reads the examples of step to->step to the target, and says how many each replica gets.
// CHOIR_END: there are none for anybody.
choir_status chi_input_read_step(choir_distributed_dataset *data, chi_target *to);
// So many steps are read on a thread, from the first take on, and behind the end of a pass, where
// goes_on, those of the next one. together: half of them at a time. NULL: a failure.
chi_ahead *chi_ahead_new(choir_distributed_dataset *data, int steps, bool together, bool goes_on);
void chi_ahead_free(chi_ahead *a);
// Begins to read before a step is asked for.
choir_status chi_ahead_begin(chi_ahead *a);
// The next step, whose tensors go to to->frame; as chi_input_read_step.
choir_status chi_ahead_take(chi_ahead *a, chi_target *to);
// Nothing is read any more, and what was read is forgotten. NULL is fine.
void chi_ahead_halt(chi_ahead *a);
// To the next pass, if the thread has begun it; *pass is that. Else false: halted, and it is to be
// begun.
bool chi_ahead_rewind(chi_ahead *a, int64_t *pass);
// Where the dataset stands behind the last step that was taken. False: nothing is being read, ask
// the feed.
bool chi_ahead_where(const chi_ahead *a, choir_input_position *p);
// The workers that are in step agree on how making a dataset and reading a step went (agree.c);
// own: here. Alone it is that. signature: of what must be the same everywhere; differs: what is
// said of a worker whose is not worker 0's.
choir_status chi_input_agree_made(
		choir_strategy *s, choir_status own, uint64_t signature, const char *differs);
// Whether the files are the same everywhere; all workers of c call it. CHOIR_STATE: they are not;
// the text names the first that differs, and where.
choir_status chi_input_compare_files(choir_cluster *c, const chi_paths *paths);
// The same of a dataset: what differs is named. data NULL: own is a failure.
choir_status chi_input_agree_data(
		choir_strategy *s, choir_status own, const choir_distributed_dataset *data);
// "image" u8 [28, 28]
enum { CHI_COLUMN_TEXT = CHI_SHAPE_TEXT + 80 };
const char *chi_input_print_column(const choir_column *c, char text[CHI_COLUMN_TEXT]);
// Room for what they say in a step; NULL: a failure.
chi_input_word *chi_input_new_words(const choir_strategy *s);
choir_status chi_input_agree_step(
		choir_distributed_dataset *data, const chi_target *to, choir_status own);
// Applies the policy to d, which nothing was read from.
choir_status chi_input_shard(choir_distributed_dataset *data, choir_dataset *d);

// Its end, and what a checkpoint keeps of it (state.c).
void chi_input_free(void *self);
extern const chi_stateful_table chi_input_state;

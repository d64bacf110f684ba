// Draws are Philox numbers of seed, pass and index. With random access, the buffer holds only
// numbers of examples.
#include "data/reorder.h"
#include "data/dataset.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/philox.h"
#include "base/size.h"

enum { PLACE = 0x73687566 };
enum { FIRST_CAPACITY = 64 };

__extension__ typedef unsigned __int128 wide;

typedef struct {
	choir_dataset base;
	int64_t asked;
	int64_t buffer;
	bool grows;
	bool once;
	chi_random_key key;
	chi_philox_block block;
	uint64_t drawn;
	// slot[0 .. filled-1]: examples, or rows of store. A stream's other slots are free rows.
	int64_t *slot;
	int64_t filled;
	bool dry;
	int64_t next;
	int64_t *sizes;
	// Blocks of single examples, whose rows are scattered.
	chi_row_buffer stage;
	int64_t staged, taken, stage_capacity;
} shuffle;

static int64_t draw(shuffle *s, int64_t n)
{
	if (s->drawn % 2 == 0)
		s->block = chi_random_block(&s->key, s->drawn / 2);
	const uint32_t *word = s->block.word + 2 * (s->drawn % 2);
	s->drawn++;
	uint64_t random = (uint64_t) word[0] << 32 | word[1];
	return (int64_t) ((wide) random * (uint64_t) n >> 64);
}

static choir_status at_end(shuffle *s, choir_status status)
{
	if (status != CHOIR_END)
		return status;
	s->dry = true;
	return CHOIR_OK;
}

static choir_status add_batch(shuffle *s)
{
	choir_dataset *from = s->base.from[0];
	void *to[CHI_MAX_COLUMNS];
	int64_t row = s->slot[s->filled];
	chi_columns_move(from, s->base.rows.column, row * from->spec.batch, to);
	choir_status status = chi_dataset_read(from, to, from->spec.batch, &s->sizes[row]);
	s->filled += status == CHOIR_OK;
	return at_end(s, status);
}

static choir_status add_example(shuffle *s)
{
	choir_dataset *from = s->base.from[0];
	if (s->taken == s->staged) {
		s->taken = 0;
		CHOIR_TRY(
				at_end(s, chi_dataset_read(from, s->stage.column, s->stage_capacity, &s->staged)));
		if (s->dry)
			return CHOIR_OK;
	}
	void *to[CHI_MAX_COLUMNS];
	chi_columns_move(from, s->base.rows.column, s->slot[s->filled++], to);
	return chi_row_buffer_copy(from, to, &s->stage, s->taken++, 1);
}

static choir_status add_first(shuffle *s)
{
	choir_status status =
			chi_dataset_fill(s->base.from[0], s->base.rows.column, s->buffer, &s->filled);
	return at_end(s, status);
}

static choir_status grow(shuffle *s)
{
	const choir_dataset *from = s->base.from[0];
	const int64_t unit = chi_dataset_unit(from);
	int64_t capacity, examples;
	size_t slots = (size_t) s->buffer, sizes = slots;
	if (!chi_int64_multiply(s->buffer, 2, &capacity) ||
			!chi_int64_multiply(capacity, unit, &examples))
		return choir_fail(CHOIR_NO_MEMORY, "shuffle: the elements do not fit in memory");
	if (!chi_grow(&s->slot, &slots, (size_t) capacity, sizeof *s->slot) ||
			(s->sizes && !chi_grow(&s->sizes, &sizes, (size_t) capacity, sizeof *s->sizes)) ||
			!chi_row_buffer_grow(&s->base, &s->base.rows, s->buffer * unit, examples))
		return choir_error_status();
	for (int64_t i = s->buffer; i < capacity; i++)
		s->slot[i] = i;
	s->buffer = capacity;
	return CHOIR_OK;
}

static choir_status top_up(shuffle *s)
{
	const choir_dataset *from = s->base.from[0];
	while (!s->dry) {
		if (s->filled == s->buffer && !s->grows)
			break;
		if (s->filled == s->buffer)
			CHOIR_TRY(grow(s));
		if (from->random && s->next == from->spec.examples)
			s->dry = true;
		else if (from->random)
			s->slot[s->filled++] = s->next++;
		else if (from->spec.batch)
			CHOIR_TRY(add_batch(s));
		else if (s->drawn == 0 && s->filled == 0)
			CHOIR_TRY(add_first(s));
		else
			CHOIR_TRY(add_example(s));
	}
	return CHOIR_OK;
}

static choir_status emit(const shuffle *s, void *const column[], int64_t what, int64_t *got)
{
	choir_dataset *from = s->base.from[0];
	*got = s->sizes ? s->sizes[what] : 1;
	if (from->random)
		return from->stage->range(from, column, what, 1);
	return chi_row_buffer_copy(from, column, &s->base.rows, what * chi_dataset_unit(from), *got);
}

static choir_status shuffle_read(
		choir_dataset *d, void *const column[], int64_t want, int64_t *got)
{
	shuffle *s = (shuffle *) d;
	void *to[CHI_MAX_COLUMNS];
	int64_t n, elements = d->spec.batch ? 1 : want;
	choir_status status = CHOIR_OK;
	for (int64_t i = 0; i < elements; i++) {
		status = top_up(s);
		if (status == CHOIR_OK && s->filled == 0)
			status = CHOIR_END;
		if (status != CHOIR_OK)
			break;
		int64_t at = draw(s, s->filled), what = s->slot[at];
		chi_columns_move(d, column, *got, to);
		status = emit(s, to, what, &n);
		if (status != CHOIR_OK)
			break;
		*got += n;
		s->slot[at] = s->slot[--s->filled];
		s->slot[s->filled] = what;
	}
	return chi_dataset_got(d, status, *got);
}

static void start(shuffle *s)
{
	for (int64_t i = 0; i < s->buffer; i++)
		s->slot[i] = i;
	s->drawn = 0;
	s->filled = s->next = s->staged = s->taken = 0;
	s->dry = false;
}

static choir_status shuffle_rewind(choir_dataset *d)
{
	shuffle *s = (shuffle *) d;
	s->key.step = s->once ? 0 : (uint64_t) d->pass;
	start(s);
	return chi_rewind_from(d);
}

static uint64_t shuffle_signature(const choir_dataset *d)
{
	const shuffle *s = (const shuffle *) d;
	const uint64_t seed = chi_hash_mix(s->key.seed);
	return (s->once ? chi_hash_mix(seed) : seed) + (uint64_t) s->asked;
}

static void shuffle_free(choir_dataset *d)
{
	shuffle *s = (shuffle *) d;
	chi_free(s->slot);
	chi_free(s->sizes);
	chi_row_buffer_free(&s->stage);
}

static const chi_stage shuffle_stage = {
	.name = "shuffle",
	.read = shuffle_read,
	.rewind = shuffle_rewind,
	.free = shuffle_free,
	.signature = shuffle_signature,
};

static bool reserve(shuffle *s, const choir_dataset *from)
{
	int64_t examples;
	s->slot = chi_alloc_array((size_t) s->buffer, sizeof *s->slot);
	if (!s->slot || from->random)
		return s->slot != NULL;
	if (!chi_int64_multiply(s->buffer, chi_dataset_unit(from), &examples)) {
		choir_fail(CHOIR_INVALID,
				"shuffle: a buffer of %lld batches of %lld does not fit in memory",
				(long long) s->buffer, (long long) from->spec.batch);
		return false;
	}
	if (!chi_row_buffer_new(&s->base, examples, &s->base.rows))
		return false;
	if (from->spec.batch) {
		s->sizes = chi_alloc_array((size_t) s->buffer, sizeof *s->sizes);
		return s->sizes != NULL;
	}
	s->stage_capacity = chi_block_examples(from);
	return chi_row_buffer_new(&s->base, s->stage_capacity, &s->stage);
}

static choir_dataset *make(choir_dataset *from, int64_t buffer, uint64_t seed, bool once)
{
	choir_dataset *moved = chi_reorder_take(&from);
	if (moved)
		return chi_reorder_put(moved, make(from, buffer, seed, once));
	if (!chi_dataset_given(from, "shuffle"))
		return NULL;
	if (buffer < 1 && buffer != CHOIR_ALL)
		return chi_refuse(from, CHOIR_INVALID,
				"shuffle: a buffer of %lld elements given; at least 1 or CHOIR_ALL needed",
				(long long) buffer);
	if (buffer == CHOIR_ALL && from->spec.endless)
		return chi_refuse(from, CHOIR_INVALID,
				"shuffle: the dataset repeats for ever, so no buffer can hold all elements; put "
				"repeat after shuffle");
	shuffle *s = chi_transform_new(&shuffle_stage, sizeof *s, from);
	if (!s)
		return NULL;
	choir_dataset *d = &s->base;
	d->shuffles = true;
	s->buffer = s->asked = buffer;
	s->once = once;
	s->grows = buffer == CHOIR_ALL && from->elements == CHOIR_UNKNOWN_CARDINALITY;
	if (s->grows)
		s->buffer = FIRST_CAPACITY;
	else if (from->elements != CHOIR_UNKNOWN_CARDINALITY &&
			(buffer == CHOIR_ALL || from->elements < buffer))
		s->buffer = from->elements > 0 ? from->elements : 1;
	s->key = (chi_random_key){ .seed = seed, .place = PLACE };
	d->ragged = from->ragged || chi_dataset_has_short_batch(from);
	if (!reserve(s, from))
		return chi_dataset_discard(d);
	start(s);
	return d;
}

choir_dataset *choir_dataset_shuffle(choir_dataset *from, int64_t buffer, uint64_t seed)
{
	return make(from, buffer, seed, false);
}

choir_dataset *choir_dataset_shuffle_once(choir_dataset *from, int64_t buffer, uint64_t seed)
{
	return make(from, buffer, seed, true);
}

// Messages about variables: whole ones and rows, damaged and cut at every byte.
#include "coordinator/push_pull_messages.h"

#include "choir/layer.h"
#include "choir/strategy.h"
#include "coordinator/protocol.h"
#include "test.h"

#include "base/alloc.h"

#include <string.h>
#include <unistd.h>

enum { ROWS = 5, WIDTH = 2, N = 2 };

typedef struct {
	choir_strategy *s;
	choir_variable *table;
	choir_optimizer *optimizer;
	chi_job_model model;
} world;

static void open_world(world *w)
{
	choir_layer *l = NULL;
	w->s = choir_parameter_server_strategy_new(NULL);
	CHOIR_SCOPE (w->s) {
		l = choir_embedding_new("table", ROWS, WIDTH);
		w->optimizer = choir_optimizer_new(
				CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 1));
	}
	assert_non_null(l);
	w->table = choir_layer_variable(l, 0);
	assert_int_equal(chi_job_model_collect(&w->model, w->s, 1), CHOIR_OK);
}

static void close_world(world *w)
{
	chi_job_model_free(&w->model);
	choir_strategy_free(w->s);
}

static const float *values_of(const world *w)
{
	return w->table->copy[0].buffer->memory;
}

static void pack(const world *w, const int64_t row[N], chi_pack *to)
{
	static const float values[N * WIDTH] = { 1, 2, 3, 4 };
	const chi_remote_gradient g = { .n = N, .row = row, .values = values };
	choir_variable *const v[] = { w->table };
	chi_large_message m = { 0 };
	assert_int_equal(chi_job_model_pack_push(&w->model, 0, w->optimizer, 1, v, &g, &m), 1);
	chi_large_message_join(&m, to);
	chi_large_message_free(&m);
}

static choir_status push(world *w, const chi_pack *p, size_t bytes)
{
	chi_unpack u = { .data = p->data, .bytes = bytes };
	return chi_job_model_push(&w->model, &u);
}

// spec: D16, 2.15
TEST(only_the_rows_of_a_push_change)
{
	world w;
	float before[ROWS * WIDTH];
	chi_pack p = { 0 };
	open_world(&w);
	memcpy(before, values_of(&w), sizeof before);
	pack(&w, (const int64_t[]){ 1, 4 }, &p);
	assert_int_equal(push(&w, &p, p.bytes), CHOIR_OK);
	for (int i = 0; i < ROWS * WIDTH; i++) {
		const float change = i / WIDTH == 1 ? (float) (i - 1)
				: i / WIDTH == 4			? (float) (i - 5)
											: 0;
		assert_true(values_of(&w)[i] == before[i] - change);
	}
	chi_pack_free(&p);
	close_world(&w);
}

TEST(a_damaged_push_changes_nothing)
{
	static const int64_t wrong[][N] = { { 1, ROWS }, { -1, 2 }, { INT64_MIN, 0 },
		{ 0, INT64_MAX } };
	world w;
	float before[ROWS * WIDTH];
	chi_pack p = { 0 };
	open_world(&w);
	memcpy(before, values_of(&w), sizeof before);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		p.bytes = 0;
		pack(&w, wrong[i], &p);
		assert_int_equal(push(&w, &p, p.bytes), CHOIR_CORRUPT);
	}
	p.bytes = 0;
	pack(&w, (const int64_t[]){ 1, 4 }, &p);
	for (size_t bytes = 0; bytes < p.bytes; bytes++)
		assert_int_equal(push(&w, &p, bytes), CHOIR_CORRUPT);
	const size_t at = 3 * sizeof(uint32_t); // of the number of rows
	static const uint64_t counts[] = { 0, 1, 3, ROWS + 1, INT64_MAX, CHI_ALL_ROWS - 1,
		CHI_ALL_ROWS };
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		chi_put_number(p.data + at, counts[i], 8);
		assert_int_equal(push(&w, &p, p.bytes), CHOIR_CORRUPT);
	}
	assert_memory_equal(before, values_of(&w), sizeof before);
	chi_pack_free(&p);
	close_world(&w);
}

TEST(damaged_questions_are_refused)
{
	world w;
	chi_pack ask = { 0 }, answer = { 0 };
	open_world(&w);
	chi_pack_u32(&ask, 0);
	chi_pack_u64(&ask, N);
	for (int64_t row = 3; row <= 4; row++)
		chi_pack_raw(&ask, &row, sizeof row);
	for (size_t bytes = 0; bytes <= ask.bytes; bytes++) {
		chi_unpack u = { .data = ask.data, .bytes = bytes };
		answer.bytes = 0;
		assert_int_equal(chi_job_model_pack_rows(&w.model, &u, &answer),
				bytes == ask.bytes ? CHOIR_OK : CHOIR_CORRUPT);
	}
	assert_int_equal(answer.bytes, N * WIDTH * sizeof(float));
	assert_memory_equal(answer.data, values_of(&w) + 3 * WIDTH, answer.bytes);
	static const struct {
		uint32_t number;
		uint64_t rows;
		int64_t row;
	} wrong[] = { { 1, 1, 0 }, { UINT32_MAX, 1, 0 }, { 0, 1, ROWS }, { 0, 1, -1 },
		{ 0, ROWS + 1, 0 }, { 0, CHI_ALL_ROWS, 0 } };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		ask.bytes = 0;
		chi_pack_u32(&ask, wrong[i].number);
		chi_pack_u64(&ask, wrong[i].rows);
		chi_pack_raw(&ask, &wrong[i].row, sizeof wrong[i].row);
		chi_unpack u = { .data = ask.data, .bytes = ask.bytes };
		assert_int_equal(chi_job_model_pack_rows(&w.model, &u, &answer), CHOIR_CORRUPT);
	}
	for (uint32_t n = 0; n < 3; n++) { // a PULL of n variables, of which there is one
		ask.bytes = answer.bytes = 0;
		chi_pack_u32(&ask, n);
		chi_pack_u32(&ask, 0);
		chi_unpack u = { .data = ask.data, .bytes = ask.bytes };
		assert_int_equal(chi_job_model_pack_asked(&w.model, &u, &answer),
				n == 1 ? CHOIR_OK : CHOIR_CORRUPT);
	}
	chi_pack_free(&ask);
	chi_pack_free(&answer);
	close_world(&w);
}

TEST(each_allocation_of_a_push_may_fail)
{
	world w;
	chi_pack p = { 0 };
	open_world(&w);
	pack(&w, (const int64_t[]){ 1, 4 }, &p);
	choir_status status = CHOIR_NO_MEMORY;
	for (uint64_t n = 1; status != CHOIR_OK; n++) {
		assert_true(n < 1000);
		chi_alloc_fail(n, false);
		status = push(&w, &p, p.bytes);
		chi_alloc_fail(0, false);
		if (status != CHOIR_OK)
			assert_int_equal(status, CHOIR_NO_MEMORY);
	}
	chi_pack_free(&p);
	close_world(&w);
}

TEST(an_offered_message_is_joined_as_sent)
{
	static const char data[100] = "one", more[7] = "two";
	chi_large_message m = { 0 };
	chi_pack offer = { 0 }, joined = { 0 };
	chi_scratch found = { 0 };
	size_t bytes;
	chi_pack_u32(&m.pack, 5);
	chi_large_message_add(&m, data, sizeof data);
	chi_pack_text(&m.pack, "between");
	chi_large_message_add(&m, more, sizeof more);
	chi_large_message_join(&m, &joined);
	chi_large_message_offer(&m, &offer);
	assert_int_equal(joined.bytes, chi_large_message_bytes(&m));
	for (size_t cut = 0; cut <= offer.bytes; cut++) {
		chi_unpack u = { .data = offer.data, .bytes = cut };
		const choir_status status = chi_large_message_fetch(&u, getpid(), 1000, &found, &bytes);
		assert_int_equal(status, cut == offer.bytes ? CHOIR_OK : CHOIR_CORRUPT);
	}
	assert_int_equal(bytes, joined.bytes);
	assert_memory_equal(found.memory, joined.data, bytes);
	chi_unpack u = { .data = joined.data, .bytes = joined.bytes };
	assert_int_equal(chi_unpack_u32(&u), 5);
	assert_memory_equal(chi_unpack_large(&u, sizeof data), data, sizeof data);
	chi_unpack all = { .data = offer.data, .bytes = offer.bytes };
	assert_int_equal(
			chi_large_message_fetch(&all, getpid(), bytes - 1, &found, &bytes), CHOIR_CORRUPT);
	chi_put_number(offer.data + 12 + 8, 1u << 30, 8); // the size of the first part
	all = (chi_unpack){ .data = offer.data, .bytes = offer.bytes };
	assert_int_equal(chi_large_message_fetch(&all, getpid(), 1000, &found, &bytes), CHOIR_CORRUPT);
	choir_status status = CHOIR_NO_MEMORY;
	for (uint64_t n = 1; status != CHOIR_OK; n++) {
		chi_large_message again = { 0 };
		chi_pack other = { 0 }, copy = { 0 };
		chi_scratch to = { 0 };
		chi_alloc_fail(n, false);
		chi_large_message_add(&again, data, sizeof data);
		chi_large_message_offer(&again, &other);
		chi_large_message_join(&again, &copy);
		chi_unpack parts = { .data = other.data, .bytes = other.bytes };
		status = other.failed || copy.failed
				? CHOIR_NO_MEMORY
				: chi_large_message_fetch(&parts, getpid(), 1000, &to, &bytes);
		chi_alloc_fail(0, false);
		assert_true(status == CHOIR_OK || status == CHOIR_NO_MEMORY);
		chi_large_message_free(&again);
		chi_pack_free(&other);
		chi_pack_free(&copy);
		chi_free(to.memory);
	}
	chi_free(found.memory);
	chi_pack_free(&offer);
	chi_pack_free(&joined);
	chi_large_message_free(&m);
}

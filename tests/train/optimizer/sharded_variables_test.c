// Optimizers and files with variables in shards: training gives the bits of variables that are not
// cut, and what one number of shards saved another reads.
#include "choir/checkpoint.h"
#include "choir/layer.h"
#include "choir/op.h"
#include "choir/optimizer.h"
#include "choir/tape.h"

#include "train/files.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 11, WIDTH = 3, STEPS = 3 };

static void works(choir_status status)
{
	if (status != CHOIR_OK)
		fail_msg("%s: %s", choir_status_name(status), choir_error());
}

typedef enum { BY_TAPE, BY_HAND, IN_A_MERGE } way;

typedef struct {
	choir_strategy *s;
	choir_layer *table;
	choir_variable *w;
	choir_optimizer *optimizer;
	way how;
} model;

static void open_model(model *m, int shards, const char *parameters, choir_optimizer_kind kind)
{
	m->s = choir_parameter_server_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .replicas = 3,
			.devices = "cpu:0,cpu:1", .parameter_devices = parameters, .seed = 3,
			.partition = shards > 0 ? CHOIR_PARTITION_FIXED : CHOIR_PARTITION_NONE,
			.max_shards = shards));
	assert_non_null(m->s);
	CHOIR_SCOPE (m->s) {
		m->table = choir_embedding_new("table", ROWS, WIDTH);
		m->w = choir_variable_new("w", CHOIR_SHAPE(WIDTH, 4),
				CHOIR_OPTIONS(
						choir_variable_options, .initializer = CHOIR_INITIALIZER_GLOROT_UNIFORM));
		m->optimizer = choir_optimizer_new(
				kind, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.25));
	}
	assert_true(m->table != NULL && m->w != NULL && m->optimizer != NULL);
	assert_int_equal(choir_variable_shards(m->w), shards < WIDTH ? shards : WIDTH);
}

static choir_status apply_all(choir_cross *x, void *user)
{
	const model *m = user;
	choir_variable *const variables[] = { m->w };
	choir_value *const gradients[] = { choir_cross_arg(x, "g") };
	return choir_optimizer_distributed_apply(m->optimizer, x, 1, variables, gradients);
}

static choir_status step(choir_replica *r, void *user)
{
	const model *m = user;
	choir_frame *f = r->frame;
	const int64_t id = choir_replica_id(r);
	const int64_t rows[] = { id, 10 - id, 4, id };
	choir_tape *tape = choir_tape_begin(f);
	choir_tensor *x =
			choir_layer_apply(m->table, choir_constant(f, CHOIR_I64, CHOIR_SHAPE(4), rows));
	choir_tensor *w = choir_variable_read(m->w, f);
	choir_tensor *loss =
			choir_mean(choir_square(choir_matmul(x, w, CHOIR_TRANSPOSED_NONE)), CHOIR_ALL_AXES);
	if (m->how == BY_TAPE)
		return choir_optimizer_minimize(m->optimizer, loss, tape);
	choir_tensor *g;
	choir_status status = choir_tape_gradient(tape, loss, 1, &w, &g);
	if (status == CHOIR_OK && m->how == BY_HAND) {
		status = choir_optimizer_add_gradient(m->optimizer, r, m->w, g);
		return status == CHOIR_OK ? choir_optimizer_apply_gradients(m->optimizer, r) : status;
	}
	if (status == CHOIR_OK)
		status = choir_replica_set_arg(r, "g", g);
	return status == CHOIR_OK ? choir_replica_merge_call(r, apply_all, user) : status;
}

static void fetch(choir_variable *v, void *to, size_t bytes)
{
	choir_frame *f = choir_frame_new(NULL);
	works(choir_tensor_to_host(choir_variable_read(v, f), to, bytes));
	choir_frame_free(f);
}

// spec: D16, 2.15
TEST(test_training_gives_the_same_bits)
{
	static const choir_optimizer_kind kinds[] = { CHOIR_SGD, CHOIR_MOMENTUM, CHOIR_ADAM,
		CHOIR_RMSPROP };
	for (int k = 0; k < 4; k++)
		for (way how = BY_TAPE; how <= IN_A_MERGE; how++) {
			float expected[ROWS + 4][WIDTH], found[ROWS + 4][WIDTH];
			uint64_t hash = 0;
			for (int shards = 0; shards <= 12; shards += 4) {
				model m = { .how = how };
				open_model(&m, shards, shards == 8 ? "far:0,cpu:0" : "cpu:0", kinds[k]);
				for (int i = 0; i < STEPS; i++)
					works(choir_strategy_run(m.s, step, &m, NULL, NULL));
				fetch(choir_layer_variable(m.table, 0), found, ROWS * WIDTH * sizeof(float));
				fetch(m.w, found[ROWS], 4 * WIDTH * sizeof(float));
				if (shards == 0) {
					memcpy(expected, found, sizeof found);
					hash = choir_strategy_hash(m.s);
				}
				assert_memory_equal(found, expected, sizeof found);
				assert_true(choir_strategy_hash(m.s) == hash);
				choir_strategy_free(m.s);
			}
		}
}

// spec: 2.7
TEST(test_any_number_of_shards_reads_the_file)
{
	static const int shards[] = { 0, 2, 3, 11 };
	float expected[ROWS][WIDTH], found[ROWS][WIDTH];
	char *first = NULL;
	size_t length = 0;
	for (int i = 0; i < 4; i++) {
		model from = { .how = BY_TAPE };
		const char *path = files_path("weights");
		open_model(&from, shards[i], "cpu:0,far:0", CHOIR_ADAM);
		works(choir_strategy_run(from.s, step, &from, NULL, NULL));
		works(choir_strategy_save(from.s, path, NULL));
		fetch(choir_layer_variable(from.table, 0), expected, sizeof expected);
		const uint64_t hash = choir_strategy_hash(from.s);
		choir_strategy_free(from.s);
		for (int k = 0; k < 4; k++) {
			model to = { .how = BY_TAPE };
			open_model(&to, shards[k], "far:0,cpu:0", CHOIR_ADAM);
			choir_frame *f = choir_frame_new(NULL);
			works(choir_variable_assign(to.w, choir_number(f, 3)));
			choir_frame_free(f);
			works(choir_strategy_restore(to.s, path));
			fetch(choir_layer_variable(to.table, 0), found, sizeof found);
			assert_memory_equal(found, expected, sizeof found);
			assert_true(choir_strategy_hash(to.s) == hash);
			choir_strategy_free(to.s);
		}
		// The file does not tell how many there were.
		size_t size;
		char *data = files_read(path, &size);
		if (first == NULL) {
			first = data;
			length = size;
		} else {
			assert_int_equal(size, length);
			assert_memory_equal(data, first, size);
			free(data);
		}
	}
	free(first);
}

TEST(test_gradients_that_do_not_fit)
{
	model m = { .how = BY_TAPE };
	open_model(&m, 3, "cpu:0", CHOIR_SGD);
	choir_cross *x = choir_strategy_cross(m.s);
	choir_variable *const variables[] = { m.w, choir_variable_shard(m.w, 1) };
	choir_value *wrong =
			choir_tensor_as_value(choir_fill(x->frame, CHOIR_F32, CHOIR_SHAPE(WIDTH, 5), 1));
	assert_int_equal(choir_optimizer_distributed_apply(m.optimizer, x, 1, variables, &wrong),
			CHOIR_INVALID);
	assert_text_holds(choir_error(), "\"w");
	assert_text_holds(choir_error(), "[3, 5]");
	choir_strategy_free(m.s);
}

int main(void)
{
	const int failed = tests_run();
	files_remove();
	return failed;
}

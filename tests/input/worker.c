// One of several simulated workers.
#include "input/worker.h"

#include "base/status.h"
#include "test.h"

#include <string.h>

choir_dataset *worker_numbers(int64_t n)
{
	static int64_t numbers[MAX];
	for (int64_t i = MAX - 1; i > 0 && numbers[i] != i; i--) // once: others may read them
		numbers[i] = i;
	const choir_column column = { "number", CHOIR_I64, CHOIR_SCALAR, numbers };
	return choir_memory_dataset_new(n, 1, &column, false);
}

choir_status worker_same(const choir_component in[], choir_component out[], void *user)
{
	(void) user;
	memcpy(out[0].data, in[0].data, (size_t) choir_shape_elements(&in[0].shape) * sizeof(int64_t));
	return CHOIR_OK;
}

choir_strategy *worker_strategy(int replicas)
{
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = replicas));
	assert_non_null(s);
	return s;
}

void assert_input_failed(choir_status status, const char *text)
{
	if (choir_error_status() != status || !text_holds(choir_error(), text))
		fail_msg("%s: \"%s\" does not say \"%s\"", choir_status_name(choir_error_status()),
				choir_error(), text);
	chi_error_clear();
}

static void note(choir_values *batch, int replicas, reading *l, int step)
{
	choir_value *v = choir_values_find(batch, "number");
	assert_int_equal(choir_value_local_count(v), replicas);
	for (int r = 0; r < replicas; r++) {
		choir_tensor *t = choir_value_local(v, r);
		const int64_t n = choir_tensor_shape(t)->dim[0];
		l->rows[step][r] = n;
		if (n > 0)
			memcpy(l->number[step][r], choir_tensor_data(t), (size_t) n * sizeof(int64_t));
	}
}

void read_steps(choir_distributed_dataset *data, int replicas, reading *l)
{
	choir_values *batch = NULL;
	if (data == NULL)
		fail_msg("no dataset: %s", choir_error());
	memset(l, 0, sizeof *l);
	while (l->steps < MAX_STEPS &&
			(l->status = choir_distributed_dataset_next(data, &batch)) == CHOIR_OK)
		note(batch, replicas, l, l->steps++);
	if (l->steps < MAX_STEPS)
		assert_int_equal(choir_distributed_dataset_next(data, &batch), l->status);
	choir_values_free(batch);
}

choir_distributed_dataset *of_worker(choir_strategy *s, choir_dataset *d, int workers, int worker,
		choir_auto_shard policy, int64_t global)
{
	return choir_strategy_distribute_dataset(s, d,
			CHOIR_OPTIONS(choir_input_options, .workers = workers, .worker = worker,
					.auto_shard = policy, .global_batch = global));
}

void assert_rows(const reading *l, int step, int n, const int64_t rows[])
{
	for (int r = 0; r < n; r++)
		if (l->rows[step][r] != rows[r])
			fail_msg("step %d: replica %d has %lld rows, not %lld", step, r,
					(long long) l->rows[step][r], (long long) rows[r]);
}

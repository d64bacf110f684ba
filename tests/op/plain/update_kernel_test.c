// The gate of updates: its decision against sums by hand, and what updates do behind it.
#include "base/status.h"
#include "op/kernel_calls.h"
#include "tensor/tensor.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { CHUNKS = 7, VARIABLES = 4 };

// The variables have 2, 0, 4 and 1 squares.
static void decide(
		const double squares[CHUNKS], const choir_update_gate_attributes *a, double verdict[4])
{
	const double ends[VARIABLES] = { 2, 2, 6, 7 };
	choir_buffer in[2] = { kernels_buffer(CHOIR_F64, CHOIR_SHAPE(CHUNKS)),
		kernels_buffer(CHOIR_I64, CHOIR_SHAPE(VARIABLES)) };
	choir_buffer out = kernels_buffer(CHOIR_F64, CHOIR_SHAPE(4));
	for (int i = 0; i < CHUNKS; i++)
		kernels_set(&in[0], i, squares[i]);
	for (int i = 0; i < VARIABLES; i++)
		kernels_set(&in[1], i, ends[i]);
	kernels_plain("update_gate", 2, in, &out, a);
	memcpy(verdict, out.data, 4 * sizeof *verdict);
	kernels_free(2, in);
	kernels_free(1, &out);
}

static void expect(const double squares[CHUNKS], const choir_update_gate_attributes *a,
		double factor, double stops, double sum, double bad)
{
	double v[4];
	decide(squares, a, v);
	assert_true(v[0] == factor && v[1] == stops && v[3] == bad);
	assert_true(v[2] == sum || (isnan(v[2]) && isnan(sum)));
}

TEST(the_gate_decides)
{
	const double good[CHUNKS] = { 1, 2, 3, 4, 5, 0.5, 0.5 };
	double bad[CHUNKS], huge[CHUNKS] = { 1e308, 0, 1e308, 0, 0, 0, 0 };
	memcpy(bad, good, sizeof bad);
	bad[4] = bad[6] = (double) NAN;
	expect(good, &(choir_update_gate_attributes){ 1, 0, false }, 1, 0, 16, -1);
	expect(good, &(choir_update_gate_attributes){ 8, 0, false }, 0.125, 0, 16, -1);
	expect(good, &(choir_update_gate_attributes){ 1, 5, false }, 1, 0, 16, -1); // below the limit
	expect(good, &(choir_update_gate_attributes){ 1, 1, false }, 0.25, 0, 16, -1);
	expect(good, &(choir_update_gate_attributes){ 2, 1, false }, 0.25, 0, 16, -1);
	expect(bad, &(choir_update_gate_attributes){ 1, 0, false }, 0, 1, (double) NAN, 2);
	expect(bad, &(choir_update_gate_attributes){ 4, 1, true }, 0.25, 0, (double) NAN, 2);
	// All variables are finite, but not their norm. It matters only to a limit.
	expect(huge, &(choir_update_gate_attributes){ 1, 0, false }, 1, 0, HUGE_VAL, -1);
	expect(huge, &(choir_update_gate_attributes){ 1, 1, false }, 0, 1, HUGE_VAL, -1);
}

// Runs an update of m slots from equal values.
static void update(const char *operation, choir_dtype dtype, int m, double scale,
		const double *gate, choir_buffer in[4])
{
	uint64_t seed = 4;
	const choir_update_attributes a = { .rate = 0.1,
		.momentum = 0.9,
		.beta1 = 0.9,
		.beta2 = 0.999,
		.epsilon = 1e-7,
		.decay = 0.01,
		.correction = 0.3,
		.gradient_scale = scale,
		.rho = 0.9,
		.m_factor = 0.5,
		.g_factor = 0.4,
		.v_factor = 0.3,
		.gate = gate };
	for (int j = 0; j < m + 2; j++) {
		in[j] = kernels_buffer(dtype, CHOIR_SHAPE(50));
		kernels_fill(&in[j], &seed, 0.5, 1);
	}
	kernels_plain(operation, (size_t) m + 2, in, &in[0], &a);
}

TEST(updates_obey_the_gate)
{
	static const struct {
		const char *operation;
		int slots;
	} kinds[] = { { "sgd_update", 0 }, { "momentum_update", 1 }, { "adagrad_update", 1 },
		{ "lion_update", 1 }, { "adam_update", 2 }, { "rmsprop_update", 2 },
		{ "nadam_update", 2 } };
	static const double open[2] = { 0.3, 0 }, shut[2] = { 0.3, 1 };
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
		for (int d = 0; d < 2; d++) {
			const choir_dtype dtype = d == 0 ? CHOIR_F32 : CHOIR_F64;
			const int n = kinds[k].slots + 2;
			choir_buffer gated[4], scaled[4], stopped[4];
			update(kinds[k].operation, dtype, kinds[k].slots, 0.5, open, gated);
			update(kinds[k].operation, dtype, kinds[k].slots, 0.5 * 0.3, NULL, scaled);
			update(kinds[k].operation, dtype, kinds[k].slots, 0.5, shut, stopped);
			uint64_t seed = 4;
			for (int j = 0; j < n; j++) {
				choir_buffer before = kernels_buffer(dtype, CHOIR_SHAPE(50));
				kernels_fill(&before, &seed, 0.5, 1);
				const size_t bytes = 50 * chi_dtype_size(dtype);
				assert_memory_equal(gated[j].data, scaled[j].data, bytes);
				assert_memory_equal(stopped[j].data, before.data, bytes);
				assert_true(j + 1 == n || memcmp(gated[j].data, before.data, bytes) != 0);
				kernels_free(1, &before);
			}
			kernels_free((size_t) n, gated);
			kernels_free((size_t) n, scaled);
			kernels_free((size_t) n, stopped);
		}
}

// Shows how to use another library's gradients through DLPack, without a copy. The library's
// deleter frees the gradients' memory after the update. The first half of this file plays the role
// of the library, and does not use Choir.
// Run it in this folder: make && ./other_gradients
#include <choir/choir.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// The declarations of dlpack.h, DLPack 1.x. If you have dlpack.h, include it instead.
typedef struct {
	uint32_t major, minor;
} DLPackVersion;
typedef struct {
	int32_t device_type, device_id; // 1: host memory
} DLDevice;
typedef struct {
	uint8_t code, bits; // 2: floating point
	uint16_t lanes;
} DLDataType;
typedef struct {
	void *data;
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape, *strides;
	uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensorVersioned {
	DLPackVersion version;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags;
	DLTensor dl_tensor;
} DLManagedTensorVersioned;

// --- The other library. It computes the gradients of a linear model in one block of memory. ---
enum { FEATURES = 3 };

typedef struct {
	int users; // number of tensors in use
	int64_t shape[2][1];
	float gradient[FEATURES + 1]; // of the weights, then of the bias
	DLManagedTensorVersioned tensor[2];
} lib_block;

static pthread_mutex_t lib_lock = PTHREAD_MUTEX_INITIALIZER;
static int lib_blocks; // number of blocks not yet freed

static void lib_delete(DLManagedTensorVersioned *self)
{
	lib_block *block = (lib_block *) self->manager_ctx;
	pthread_mutex_lock(&lib_lock);
	const int left = --block->users;
	lib_blocks -= left == 0;
	pthread_mutex_unlock(&lib_lock);
	if (left == 0)
		free(block);
}

// Makes a tensor that is a view of a part of the block.
static void lib_view(lib_block *block, int which, int64_t first, int64_t elements)
{
	DLManagedTensorVersioned *t = &block->tensor[which];
	block->shape[which][0] = elements;
	block->users++;
	t->version.major = 1;
	t->manager_ctx = block;
	t->deleter = lib_delete;
	t->dl_tensor.data = block->gradient;
	t->dl_tensor.byte_offset = (uint64_t) first * sizeof(float);
	t->dl_tensor.device.device_type = 1;
	t->dl_tensor.dtype.code = 2;
	t->dl_tensor.dtype.bits = 32;
	t->dl_tensor.dtype.lanes = 1;
	t->dl_tensor.ndim = 1;
	t->dl_tensor.shape = block->shape[which];
}

// Returns the gradients of a loss: the sum of n examples' squared errors, divided by `all`.
static lib_block *lib_gradients(
		int64_t n, int64_t all, const float *x, const float *y, const float *w, float bias)
{
	lib_block *block = (lib_block *) calloc(1, sizeof *block);
	if (block == NULL)
		return NULL;
	pthread_mutex_lock(&lib_lock);
	lib_blocks++;
	pthread_mutex_unlock(&lib_lock);
	for (int64_t k = 0; k < n; k++, x += FEATURES) {
		float error = bias - y[k];
		for (int i = 0; i < FEATURES; i++)
			error += w[i] * x[i];
		for (int i = 0; i < FEATURES; i++)
			block->gradient[i] += 2 * error * x[i] / (float) all;
		block->gradient[FEATURES] += 2 * error / (float) all;
	}
	lib_view(block, 0, 0, FEATURES);
	lib_view(block, 1, FEATURES, 1);
	return block;
}

// --- The program. ---
enum { EXAMPLES = 64 };

struct model {
	choir_variable *w, *bias;
	choir_optimizer *optimizer;
};

static choir_status step(choir_replica *r, void *user)
{
	struct model *m = (struct model *) user;
	const float *x = (const float *) choir_tensor_data(choir_replica_arg(r, "x"));
	const float *y = (const float *) choir_tensor_data(choir_replica_arg(r, "y"));
	const float *w = (const float *) choir_tensor_data(choir_variable_read(m->w, r->frame));
	const float *bias = (const float *) choir_tensor_data(choir_variable_read(m->bias, r->frame));
	if (x == NULL || y == NULL || w == NULL || bias == NULL)
		return choir_error_status();
	lib_block *block = lib_gradients(
			choir_replica_examples(r), choir_replica_global_examples(r), x, y, w, *bias);
	if (block == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "the library has no memory");
	// Choir owns both tensors from here on, even after a failure, and calls their deleters.
	choir_tensor *dw = choir_from_dlpack(r->frame, &block->tensor[0]);
	choir_tensor *db = choir_from_dlpack(r->frame, &block->tensor[1]);
	CHOIR_TRY(choir_optimizer_add_gradient(m->optimizer, r, m->w, dw));
	CHOIR_TRY(choir_optimizer_add_gradient(m->optimizer, r, m->bias, db));
	return choir_optimizer_apply_gradients(m->optimizer, r);
}

static float x_all[EXAMPLES][FEATURES], y_all[EXAMPLES]; // y = x0 - 2 x1 + 3 x2 + 4

static void fill(void)
{
	for (int n = 0; n < EXAMPLES; n++) {
		for (int i = 0; i < FEATURES; i++)
			x_all[n][i] = (float) (n * (i + 3) % 7) / 7 - 0.4f;
		y_all[n] = x_all[n][0] - 2 * x_all[n][1] + 3 * x_all[n][2] + 4;
	}
}

int main(void)
{
	choir_strategy *s =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .replicas = 2));
	struct model m = { NULL, NULL, NULL };
	fill();
	CHOIR_SCOPE (s) {
		m.w = choir_variable_new("w", CHOIR_SHAPE(FEATURES), NULL);
		m.bias = choir_variable_new("bias", CHOIR_SHAPE(1), NULL);
		m.optimizer = choir_optimizer_new(
				CHOIR_SGD, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.1));
	}
	choir_values *batch = choir_values_new(s);
	choir_frame *f = choir_values_frame(batch);
	CHOIR_CHECK(choir_values_split(
			batch, "x", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(EXAMPLES, FEATURES), x_all)));
	CHOIR_CHECK(choir_values_split(
			batch, "y", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(EXAMPLES), y_all)));
	for (int i = 0; i < 2000; i++)
		CHOIR_CHECK(choir_strategy_run(s, step, &m, batch, NULL));
	float w[FEATURES], bias;
	CHOIR_CHECK(choir_tensor_to_host(choir_variable_read(m.w, f), w, sizeof w));
	CHOIR_CHECK(choir_tensor_to_host(choir_variable_read(m.bias, f), &bias, sizeof bias));
	printf("w is %.3f %.3f %.3f, bias %.3f\n", w[0], w[1], w[2], bias);
	choir_values_free(batch);
	choir_strategy_free(s);
	printf("the library has %d blocks in use\n", lib_blocks);
	return 0;
}

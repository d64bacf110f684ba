// Shows training without a tape. The program has its own arrays, and a backward pass in plain C
// for y = w2 . tanh(w1 x). Choir sums the gradients over replicas, and updates w1 and w2 in place
// with Adam. The program passes each gradient as soon as it is final. So Choir can sum w2's
// gradient while the program computes w1's gradient.
// Run it in this folder: make && ./own_backward
#include <choir/choir.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IN = 4, HIDDEN = 8, EXAMPLES = 64, REPLICAS = 2 };

static float w1[HIDDEN][IN], w2[HIDDEN], x_all[EXAMPLES][IN], y_all[EXAMPLES];

// The memory of one replica. Gradients must stay valid until the run returns.
struct work {
	float d1[HIDDEN][IN], d2[HIDDEN], h[EXAMPLES][HIDDEN], error[EXAMPLES];
};
struct net {
	choir_variable *w1, *w2;
	choir_optimizer *adam;
	struct work work[REPLICAS];
};

// Returns the error for example x, y, and stores the hidden layer in h.
static float forward(const float x[IN], float y, float h[HIDDEN])
{
	float error = -y;
	for (int j = 0; j < HIDDEN; j++) {
		float sum = 0;
		for (int i = 0; i < IN; i++)
			sum += w1[j][i] * x[i];
		h[j] = tanhf(sum);
		error += w2[j] * h[j];
	}
	return error;
}

static choir_status step(choir_replica *r, void *user)
{
	struct net *net = (struct net *) user;
	struct work *work = &net->work[choir_replica_id(r)];
	const float(*x)[IN] = (const float(*)[IN]) choir_tensor_data(choir_replica_arg(r, "x"));
	const float *y = (const float *) choir_tensor_data(choir_replica_arg(r, "y"));
	const int64_t own = choir_replica_examples(r); // can be 0
	const float all = (float) choir_replica_global_examples(r);
	memset(work, 0, sizeof *work);
	for (int64_t n = 0; n < own; n++) {
		work->error[n] = 2 * forward(x[n], y[n], work->h[n]) / all;
		for (int j = 0; j < HIDDEN; j++)
			work->d2[j] += work->error[n] * work->h[n][j];
	}
	CHOIR_TRY(
			choir_optimizer_add_gradient_memory(net->adam, r, net->w2, work->d2, sizeof work->d2));
	for (int64_t n = 0; n < own; n++)
		for (int j = 0; j < HIDDEN; j++)
			for (int i = 0; i < IN; i++)
				work->d1[j][i] +=
						work->error[n] * w2[j] * (1 - work->h[n][j] * work->h[n][j]) * x[n][i];
	CHOIR_TRY(
			choir_optimizer_add_gradient_memory(net->adam, r, net->w1, work->d1, sizeof work->d1));
	return choir_optimizer_apply_gradients(net->adam, r);
}

static void fill(void) // sets the program's weights and data
{
	for (int j = 0; j < HIDDEN; j++)
		for (int i = 0; i < IN; i++)
			w1[j][i] = w2[j] = 0.3f * cosf((float) (j * IN + i));
	for (int n = 0; n < EXAMPLES; n++) {
		for (int i = 0; i < IN; i++)
			x_all[n][i] = sinf((float) (3 * n * i + n + i));
		y_all[n] = x_all[n][0] * 0.5f - tanhf(x_all[n][1]);
	}
}

static double loss(void)
{
	float h[HIDDEN];
	double sum = 0;
	for (int n = 0; n < EXAMPLES; n++)
		sum += pow(forward(x_all[n], y_all[n], h), 2) / EXAMPLES;
	return sum;
}

int main(void)
{
	static struct net net;
	choir_strategy *s = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .replicas = REPLICAS));
	fill();
	CHOIR_SCOPE (s) {
		net.w1 = choir_variable_wrap("w1", CHOIR_F32, CHOIR_SHAPE(HIDDEN, IN), w1);
		net.w2 = choir_variable_wrap("w2", CHOIR_F32, CHOIR_SHAPE(HIDDEN), w2);
		net.adam = choir_optimizer_new(CHOIR_ADAM, NULL);
	}
	choir_values *batch = choir_values_new(s);
	choir_frame *f = choir_values_frame(batch);
	CHOIR_CHECK(choir_values_split(
			batch, "x", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(EXAMPLES, IN), x_all)));
	CHOIR_CHECK(choir_values_split(
			batch, "y", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(EXAMPLES), y_all)));
	printf("loss %.5f before", loss());
	for (int i = 0; i < 1000; i++)
		CHOIR_CHECK(choir_strategy_run(s, step, &net, batch, NULL));
	choir_values_free(batch);
	choir_strategy_free(s); // w1 and w2 keep the trained values
	printf(", %.5f after\n", loss());
	return 0;
}

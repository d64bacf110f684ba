// Shows training inside a simulation: each time step of the program produces a batch, so there are
// no files and no epochs. Choir reads the program's arrays without a copy. Each replica gets some
// rows of the arrays.
// Run it in this folder: make && ./in_simulation
#include <choir/choir.h>

#include <math.h>
#include <stdio.h>

enum { CELLS = 1000, FIELDS = 3, STEPS = 500 };

static float state[CELLS][FIELDS], source[CELLS][1];

struct surrogate {
	choir_layer *net;
	choir_optimizer *adam;
};

static void advance(int step) // the program's simulation
{
	for (int c = 0; c < CELLS; c++) {
		state[c][step % FIELDS] = sinf((float) (c + step));
		source[c][0] = state[c][0] * state[c][1] - state[c][2];
	}
}

static choir_status learn(choir_replica *r, void *user)
{
	struct surrogate *m = (struct surrogate *) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *y = choir_layer_apply(m->net, choir_replica_arg(r, "state"));
	choir_tensor *errors = choir_mean_squared_error(choir_replica_arg(r, "source"), y);
	choir_tensor *loss = choir_replica_average_loss(r, errors);
	choir_replica_return(r, "loss", loss);
	return choir_optimizer_minimize(m->adam, loss, tape);
}

static void make(struct surrogate *m, choir_strategy *s)
{
	CHOIR_SCOPE (s) {
		choir_layer *two[] = { choir_dense_new("a", FIELDS, 32, CHOIR_TANH),
			choir_dense_new("b", 32, 1, CHOIR_LINEAR) };
		m->net = choir_sequential_new(2, two);
		m->adam = choir_optimizer_new(CHOIR_ADAM, NULL);
	}
}

int main(void)
{
	choir_strategy *s =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .replicas = 2));
	struct surrogate m = { NULL, NULL };
	make(&m, s);
	choir_values *batch = choir_values_new(s), *result = NULL;
	for (int step = 0; step < STEPS; step++) {
		advance(step);
		choir_values_clear(batch);
		choir_frame *f = choir_values_frame(batch);
		CHOIR_CHECK(choir_values_split(
				batch, "state", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(CELLS, FIELDS), state)));
		CHOIR_CHECK(choir_values_split(
				batch, "source", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(CELLS, 1), source)));
		CHOIR_CHECK(choir_strategy_run(s, learn, &m, batch, &result));
		choir_value *loss = choir_values_find(result, "loss");
		if (step % 100 == 99)
			printf("step %d: loss %.4f\n", step + 1,
					choir_tensor_number(choir_strategy_reduce(s, CHOIR_SUM, loss, CHOIR_NO_AXIS)));
	}
	choir_values_free(batch);
	choir_values_free(result);
	choir_strategy_free(s);
	return 0;
}

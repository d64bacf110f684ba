// Solves the heat equation u_t = k u_xx with a physics-informed net (Raissi, Perdikaris,
// Karniadakis 2019) on two replicas. The loss is the squared residual of the equation at random
// points. So a step computes derivatives of the net with respect to x and t, and derivatives of
// these with respect to the weights: gradients of gradients. By its form, u is sin(pi x) at t = 0
// and 0 at both ends, for any net. The exact solution is exp(-k pi^2 t) sin(pi x).
// Run it in this folder: make && ./heat_pinn
#include <choir/choir.h>

#include <math.h>
#include <stdio.h>

enum { POINTS = 128, STEPS = 600, GRID = 32 }; // points of a replica in a step
static const double pi = 3.14159265358979324, diffusivity = 0.1;

struct problem {
	choir_layer *net;
	choir_optimizer *adam;
	double loss;
};

static choir_tensor *number(choir_tensor *like, double value)
{
	return choir_number(choir_tensor_frame(like), value);
}

// u(x, t) = sin(pi x) + t x (1 - x) net(x, t), for x and t of shape [n, 1]
static choir_tensor *temperature(const struct problem *p, choir_tensor *x, choir_tensor *t)
{
	choir_tensor *const both[] = { x, t };
	choir_tensor *y = choir_layer_apply(p->net, choir_concat(2, both, 1));
	choir_tensor *bump = choir_multiply(x, choir_subtract(number(x, 1), x));
	return choir_add(choir_sin(choir_scale(x, pi)), choir_multiply(choir_multiply(t, bump), y));
}

// Makes uniform numbers from 0 to 1: applies the normal distribution function to normal numbers.
static choir_tensor *uniform(choir_frame *f, uint64_t seed)
{
	choir_tensor *z = choir_random_normal(f, CHOIR_F32, CHOIR_SHAPE(POINTS, 1), seed);
	return choir_scale(choir_add(choir_erf(choir_scale(z, sqrt(0.5))), choir_number(f, 1)), 0.5);
}

static choir_status step(choir_replica *r, void *user)
{
	struct problem *p = (struct problem *) user;
	choir_tape *tape = choir_tape_begin(r->frame);
	choir_tensor *by[] = { uniform(r->frame, 1), uniform(r->frame, 2) }, *du[2], *uxx;
	choir_tensor *u = temperature(p, by[0], by[1]);
	CHOIR_TRY(choir_tape_gradient_recorded(tape, u, 2, by, du)); // u_x and u_t
	CHOIR_TRY(choir_tape_gradient_recorded(tape, du[0], 1, by, &uxx));
	choir_tensor *residual = choir_subtract(du[1], choir_scale(uxx, diffusivity));
	choir_tensor *loss = choir_mean(choir_square(residual), CHOIR_ALL_AXES);
	if (choir_replica_id(r) == 0)
		p->loss = choir_tensor_number(loss);
	const double replicas = (double) choir_replica_count(r);
	return choir_optimizer_minimize(p->adam, choir_scale(loss, 1 / replicas), tape);
}

// Prints the error over a grid, relative to the exact solution.
static choir_status compare(choir_replica *r, void *user)
{
	static float x[GRID * GRID], t[GRID * GRID], u[GRID * GRID];
	double error = 0, all = 0;
	for (int i = 0; i < GRID * GRID; i++) {
		x[i] = (float) (i % GRID) / (GRID - 1);
		t[i] = (float) (i / GRID) / (GRID - 1);
	}
	if (choir_replica_id(r) != 0)
		return CHOIR_OK;
	const choir_shape column = CHOIR_SHAPE(GRID * GRID, 1);
	choir_tensor *y =
			temperature((struct problem *) user, choir_constant(r->frame, CHOIR_F32, column, x),
					choir_constant(r->frame, CHOIR_F32, column, t));
	CHOIR_TRY(choir_tensor_to_host(y, u, sizeof u));
	for (int i = 0; i < GRID * GRID; i++) {
		const double exact = exp(-diffusivity * pi * pi * t[i]) * sin(pi * x[i]);
		error += (u[i] - exact) * (u[i] - exact);
		all += exact * exact;
	}
	printf("relative error %.3f %%\n", 100 * sqrt(error / all));
	return CHOIR_OK;
}

int main(void)
{
	choir_strategy *both = choir_mirrored_strategy_new(
			CHOIR_OPTIONS(choir_strategy_options, .devices = "cpu:0,cpu:1", .seed = 3));
	struct problem p = { NULL, NULL, 0 };
	CHOIR_SCOPE (both) {
		choir_layer *layers[] = { choir_dense_new("first", 2, 32, CHOIR_TANH),
			choir_dense_new("second", 32, 32, CHOIR_TANH),
			choir_dense_new("last", 32, 1, CHOIR_LINEAR) };
		p.net = choir_sequential_new(3, layers);
		p.adam = choir_optimizer_new(
				CHOIR_ADAM, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 5e-3));
	}
	for (int i = 0; i < STEPS; i++) {
		CHOIR_CHECK(choir_strategy_run(both, step, &p, NULL, NULL));
		if (i % 100 == 99)
			printf("step %d: loss %.6f\n", i + 1, p.loss);
	}
	CHOIR_CHECK(choir_strategy_run(both, compare, &p, NULL, NULL));
	choir_strategy_free(both);
	return 0;
}

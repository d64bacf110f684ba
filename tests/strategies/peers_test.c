// Multi-worker mirrored: however many workers carry the replicas, and however many devices they
// have, a training has the same bits.
#include "peers.h"
#include "programs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// oneDNN's own locks are invisible to the thread sanitizer.
#if defined(__SANITIZE_THREAD__)
__attribute__((constructor)) static void use_plain_kernels(void)
{
	setenv("CHOIR_KERNELS", "plain", 1);
}
#endif

static const program *find(const char *name)
{
	for (int i = 0; i < strategy_program_count; i++)
		if (strcmp(strategy_programs[i].name, name) == 0)
			return &strategy_programs[i];
	fail_msg("there is no program \"%s\"", name);
	return NULL;
}

typedef struct {
	const program *p;
	double hash[2];
} training;

// The last two numbers of a training are the hash of its weights.
static choir_status train(choir_strategy *s, const program *p, double hash[2])
{
	record *r = calloc(1, sizeof *r);
	choir_status status = s == NULL ? choir_error_status() : p->run(s, r);
	for (int i = 0; status == CHOIR_OK && i < 2; i++)
		hash[i] = r->number[r->n - 2 + i];
	free(r);
	return status;
}

static const char *train_here(choir_strategy *s, int worker, void *user)
{
	const training *t = user;
	double hash[2] = { 0, 0 };
	(void) worker;
	if (train(s, t->p, hash) != CHOIR_OK)
		return choir_error();
	if (choir_strategy_replicas(s) != 4)
		return "there are not 4 replicas";
	return hash[0] == t->hash[0] && hash[1] == t->hash[1] ? NULL : "the weights are others";
}

static void train_alone(training *t, const char *devices)
{
	double hash[2] = { 0, 0 };
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(
			choir_strategy_options, .replicas = 4, .devices = devices, .seed = 11, .timeout = 20));
	assert_int_equal(train(s, t->p, hash), CHOIR_OK);
	choir_strategy_free(s);
	assert_true(t->hash[0] == 0 || (t->hash[0] == hash[0] && t->hash[1] == hash[1]));
	memcpy(t->hash, hash, sizeof hash);
}

// spec: 2.17
static void test_same_bits(void **state)
{
	(void) state;
	static const char *const names[] = { "train with adam", "train with a norm" };
	static const peers_place places[] = { { 1, "cpu:0,cpu:1" }, { 2, "cpu:0" },
		{ 2, "cpu:0,cpu:1" }, { 4, "cpu:0" }, { 3, "cpu:0,cpu:1" }, { 3, "cpu:1" },
		{ 2, "cpu:0,far:0" }, { 3, "far:0,far:1" } };
	for (int i = 0; i < 2; i++) {
		training t = { .p = find(names[i]) };
		train_alone(&t, "cpu:0");
		train_alone(&t, "cpu:0,cpu:1");
		train_alone(&t, "cpu:0,cpu:1,cpu:2,cpu:3");
		for (size_t k = 0; k < sizeof places / sizeof places[0]; k++)
			peers_run(&(peers_job){ .replicas = 4,
					.place = places[k],
					.seed = k + 1,
					.fn = train_here,
					.user = &t });
	}
}

typedef struct {
	const program *p;
	record model;
} comparison;

static const char *compare_here(choir_strategy *s, int worker, void *user)
{
	static _Thread_local char text[400];
	const comparison *c = user;
	const char *wrong = NULL;
	(void) worker;
	record *own = calloc(1, sizeof *own);
	own->cluster = choir_strategy_cluster(s);
	if (s == NULL || c->p->run(s, own) != CHOIR_OK)
		wrong = choir_error();
	int i = 0;
	while (i < own->n && i < c->model.n &&
			memcmp(&own->number[i], &c->model.number[i], sizeof own->number[i]) == 0)
		i++;
	if (wrong == NULL && (i < own->n || i < c->model.n)) {
		snprintf(text, sizeof text, "%s: number %d of %d is %.17g, not %.17g of %d", c->p->name, i,
				own->n, own->number[i], c->model.number[i], c->model.n);
		wrong = text;
	}
	if (wrong == choir_error()) {
		snprintf(text, sizeof text, "%s: %.300s", c->p->name, choir_error());
		wrong = text;
	}
	free(own);
	return wrong;
}

static void compare(const program *p, int replicas, const peers_place *places, size_t n)
{
	static comparison c;
	c.p = p;
	c.model.n = 0;
	choir_strategy *s = choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
			.replicas = replicas, .devices = "cpu:0", .seed = 11, .timeout = 20));
	assert_int_equal(p->run(s, &c.model), CHOIR_OK);
	choir_strategy_free(s);
	for (size_t i = 0; i < n; i++)
		if (places[i].workers <= replicas)
			peers_run(&(peers_job){ .replicas = replicas,
					.place = places[i],
					.seed = i,
					.fn = compare_here,
					.user = &c });
}

// spec: 2.17
static void test_every_program(void **state)
{
	(void) state;
	static const peers_place places[] = { { 1, "cpu:0" }, { 2, "cpu:0" }, { 2, "cpu:0,cpu:1" },
		{ 3, "cpu:0,cpu:1" }, { 4, "cpu:0" }, { 2, "far:0" }, { 2, "far:0,cpu:1" } };
	for (int i = 0; i < strategy_program_count; i++)
		for (int replicas = 2; replicas <= 4 && !strategy_programs[i].goes_on; replicas++)
			compare(&strategy_programs[i], replicas, places, sizeof places / sizeof places[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bits),
		cmocka_unit_test(test_every_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

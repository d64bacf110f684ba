// A stranger's tables, compiled with nothing but what is installed, under the installed suites: a
// device with kernels (tests/device/toy.c), cross-device operations (tests/collective/toy.c), a
// transport (tests/cluster/mailbox.c) and a strategy. Each passes. Each has a broken relative that
// does one thing wrong, and the suite finds it.
#include "cluster/mailbox.h"
#include "collective/toy.h"
#include "device/toy.h"

#include <choir/extend.h>
#include <choir/extend/suite.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void print(const char *check, choir_status result, const char *text, void *user)
{
	(void) user;
	if (result != CHOIR_OK)
		printf("%s: %s\n", check, text);
}

// Whether the suite passes or, where check is not NULL, fails in this check first.
static bool judged(const choir_suite_options *o, void *user, const char *check)
{
	const choir_status status = choir_suite_run(o, print, user);
	printf("%s: %s\n", choir_status_name(status), status == CHOIR_OK ? "" : choir_error());
	return check == NULL ? status == CHOIR_OK
						 : status == CHOIR_INTERNAL && strstr(choir_error(), check) != NULL;
}

static choir_device_table device;

static choir_status fill_too_much(void *stream, void *to, int byte, size_t bytes)
{
	return device.fill(stream, to, byte, bytes == 100 ? bytes + 1 : bytes);
}

static int two(void)
{
	return 2;
}

static bool judge_devices(void)
{
	device = toy_table("toy", two);
	choir_device_table broken = device;
	broken.fill = fill_too_much;
	return judged(CHOIR_OPTIONS(choir_suite_options, .device = &device), NULL, NULL) &&
			judged(CHOIR_OPTIONS(choir_suite_options, .device = &broken), NULL,
					"a fill sets only its bytes");
}

// The host's address of memory of the toy.
static float *inside(const void *address)
{
	return (float *) ((uintptr_t) address & ~((uintptr_t) 1 << 63));
}

// user: what is added to each square.
static choir_status square(const choir_kernel_call *call)
{
	const float *x = inside(call->in[0].data);
	float *y = inside(call->out->data);
	for (int64_t i = 0; i < choir_shape_elements(&call->out->shape); i++)
		y[i] = x[i] * x[i] + *(const float *) call->user;
	return CHOIR_OK;
}

static bool judge_kernels(void)
{
	static const float nothing = 0, little = 1e-4f;
	choir_kernel_table table = { .size = sizeof table,
		.version = CHOIR_TABLE_VERSION,
		.operation = "square",
		.kind = "toy",
		.name = "right",
		.dtype = CHOIR_F32,
		.user = &nothing,
		.run = square };
	if (choir_register_device(&device) != CHOIR_OK || choir_register_kernel(&table) != CHOIR_OK)
		return false;
	table.name = "broken";
	table.user = &little;
	return choir_register_kernel(&table) == CHOIR_OK &&
			judged(CHOIR_OPTIONS(choir_suite_options, .kernels = "toy:0"), NULL, NULL) &&
			judged(CHOIR_OPTIONS(choir_suite_options, .kernels = "toy:0", .kernel_name = "broken"),
					NULL, "square of f32");
}

// A strategy with variables in turn on one of the devices that run replicas.
typedef struct {
	int n;
	choir_device *const *devices;
	atomic_uint made;
} in_turn;

static choir_status open_in_turn(
		void *self, const choir_strategy_options *options, int n, choir_device *const devices[])
{
	in_turn *s = self;
	(void) options;
	s->n = n;
	s->devices = devices;
	return CHOIR_OK;
}

static int all_devices(void *self, int capacity, choir_device *devices[])
{
	const in_turn *s = self;
	for (int i = 0; i < s->n && i < capacity; i++)
		devices[i] = s->devices[i];
	return s->n;
}

static int next_device(
		void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	in_turn *s = self;
	(void) v;
	(void) capacity;
	devices[0] = s->devices[atomic_fetch_add(&s->made, 1) % (unsigned) s->n];
	return 1;
}

static int astray(void *self, const choir_new_variable *v, int capacity, choir_device *devices[])
{
	(void) self;
	(void) v;
	(void) capacity;
	devices[0] = choir_device_find("cpu:7"); // not a parameter device
	return 1;
}

static bool judge_strategies(void)
{
	choir_strategy_table table = { .size = sizeof table,
		.version = CHOIR_TABLE_VERSION,
		.name = "in_turn",
		.self_size = sizeof(in_turn),
		.open = open_in_turn,
		.parameter_devices = all_devices,
		.place_variable = next_device };
	if (choir_register_strategy(&table) != CHOIR_OK)
		return false;
	table.name = "astray";
	table.place_variable = astray;
	return choir_register_strategy(&table) == CHOIR_OK &&
			judged(CHOIR_OPTIONS(choir_suite_options, .strategy = "in_turn"), NULL, NULL) &&
			judged(CHOIR_OPTIONS(choir_suite_options, .strategy = "astray", .max_replicas = 1),
					NULL, "train with adam");
}

// Each sum is divided by 2.
static choir_status join_halved(
		void *self, int member, const choir_collective *c, uint64_t *request)
{
	if (c->kind == CHOIR_ALL_REDUCE && c->dtype == CHOIR_F32)
		((choir_collective *) c)->divisor *= 2;
	return toy_ops.join(self, member, c, request);
}

static bool judge_cross_device_ops(void)
{
	choir_cross_device_ops_table broken = toy_ops;
	broken.join = join_halved;
	const choir_strategy_options toy = { .size = sizeof toy, .cross_device_ops = "toy" };
	return choir_register_cross_device_ops(&toy_ops) == CHOIR_OK &&
			judged(CHOIR_OPTIONS(choir_suite_options, .cross_device_ops = &toy_ops), NULL, NULL) &&
			judged(CHOIR_OPTIONS(choir_suite_options, .cross_device_ops = &broken), NULL,
					"sums have the bits of the tree") &&
			judged(CHOIR_OPTIONS(
						   choir_suite_options, .strategy = "mirrored", .strategy_options = &toy),
					NULL, NULL);
}

enum { ROUNDS = 16 };

static const void *argument_of(int round, int worker, void *user)
{
	static mailbox_argument arguments[ROUNDS][2];
	mailbox **boxes = user;
	if (boxes[round] == NULL)
		boxes[round] = mailbox_new();
	arguments[round][worker] = (mailbox_argument){ boxes[round], worker };
	return &arguments[round][worker];
}

static bool judge_transport(const choir_transport_table *table, const char *check)
{
	mailbox *boxes[ROUNDS] = { NULL };
	const bool good =
			judged(CHOIR_OPTIONS(choir_suite_options, .transport = table, .argument = argument_of),
					boxes, check);
	for (int i = 0; i < ROUNDS; i++)
		mailbox_free(boxes[i]);
	return good;
}

static choir_status send_without_the_end(
		void *self, int to, int tag, const void *data, size_t bytes, uint64_t *request)
{
	return mailbox_table.send(self, to, tag, data, bytes > 5000 ? 5000 : bytes, request);
}

static bool judge_transports(void)
{
	choir_transport_table broken = mailbox_table;
	broken.send = send_without_the_end;
	return judge_transport(&mailbox_table, NULL) && judge_transport(&broken, "bytes arrive");
}

int main(void)
{
	const bool good = judge_devices() && judge_kernels() && judge_strategies() &&
			judge_cross_device_ops() && judge_transports();
	if (!good)
		printf("not as needed; the last failure: %s\n", choir_error());
	return good ? 0 : 1;
}

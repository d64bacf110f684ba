// Transports by name.
#include "base/atomic.h"
#include "base/clock.h"
#include "base/registry.h"
#include "base/thread.h"
#include "cluster/cluster.h"

#include <stdio.h>

static int one(const void *self)
{
	(void) self;
	return 1;
}

static int zero(const void *self)
{
	(void) self;
	return 0;
}

static choir_status no_open(void *self, const void *argument)
{
	(void) self, (void) argument;
	return CHOIR_OK;
}

static void no_close(void *self, double seconds)
{
	(void) self, (void) seconds;
}

static void no_describe(const void *self, char *text, size_t size)
{
	(void) self;
	snprintf(text, size, "no description");
}

static choir_status missing(const char *slot)
{
	return choir_fail(CHOIR_UNSUPPORTED, "the transport's table has no slot %s", slot);
}

static choir_status no_send(
		void *self, int to, int tag, const void *data, size_t bytes, uint64_t *request)
{
	(void) self, (void) to, (void) tag, (void) data, (void) bytes, (void) request;
	return missing("send");
}

static choir_status no_receive(
		void *self, int from, int tag, void *data, size_t capacity, uint64_t *request)
{
	(void) self, (void) from, (void) tag, (void) data, (void) capacity, (void) request;
	return missing("receive");
}

static choir_status no_test(void *self, uint64_t request, bool *done, size_t *bytes)
{
	(void) self, (void) request, (void) done, (void) bytes;
	return missing("test");
}

static void no_drop(void *self, uint64_t request)
{
	(void) self, (void) request;
}

static void no_abort(void *self, const char *why)
{
	(void) self, (void) why;
}

static bool takes_no_memory(const void *self, const char *kind)
{
	(void) self, (void) kind;
	return false;
}

static double system_now(void *self)
{
	(void) self;
	return chi_clock_now();
}

static void system_pause(void *self, int turn, double until)
{
	enum { SPINS = 200, YIELDS = 2000 };
	(void) self, (void) until;
	if (turn < SPINS)
		chi_spin_pause();
	else if (turn < YIELDS)
		chi_thread_yield();
	else
		chi_thread_nap(turn < 2 * YIELDS ? 50e-6 : 500e-6);
}

static void describe_alone(const void *self, char *text, size_t size)
{
	(void) self;
	snprintf(text, size, "this process");
}

const choir_transport_table chi_single_worker_transport = {
	.size = sizeof(choir_transport_table),
	.version = CHOIR_TABLE_VERSION,
	.name = "alone",
	.describe = describe_alone,
};

#define FILL(slot, stub) t.slot = t.slot != NULL ? t.slot : (stub)

choir_transport_table chi_transport_filled(const choir_transport_table *transport)
{
	choir_transport_table t = *transport;
	FILL(open, no_open);
	FILL(close, no_close);
	FILL(worker, zero);
	FILL(workers, one);
	FILL(describe, no_describe);
	FILL(send, no_send);
	FILL(receive, no_receive);
	FILL(test, no_test);
	FILL(drop, no_drop);
	FILL(abort, no_abort);
	FILL(now, system_now);
	FILL(pause, system_pause);
	FILL(takes_memory_of, takes_no_memory);
	return t;
}

static const choir_transport_table mpi = { .name = "mpi" };
static const void *const builtin[] = { &mpi, &chi_single_worker_transport, NULL };
static choir_transport_table registered[CHI_REGISTRY_MAX];
static chi_registry registry = { "transport", sizeof registered[0], builtin, registered, { 0 } };

choir_status choir_register_transport(const choir_transport_table *given)
{
	return chi_registry_add(&registry, given) != NULL ? CHOIR_OK : choir_error_status();
}

const choir_transport_table *chi_transport_find(const char *name)
{
	return chi_registry_find(&registry, name);
}

// A dissemination barrier, a binomial broadcast, and an all-gather through worker 0. First,
// fingerprints go around a ring, so different collectives fail instead of deadlocking.
#include "base/alloc.h"
#include "base/size.h"
#include "cluster/message.h"

#include <string.h>

enum { TAG = CHI_TAG_COLLECTIVES };

typedef struct {
	choir_cluster *c;
	chi_fingerprint fingerprint;
	double deadline;
	chi_message *out, *in;
} together;

uint64_t chi_cluster_next(choir_cluster *c)
{
	return chi_atomic64_add(&c->sequence, 1) + 1;
}

static choir_status begin(together *t, choir_cluster *c)
{
	*t = (together){ .c = c, .fingerprint.sequence = chi_cluster_next(c) };
	t->deadline = chi_cluster_deadline(c, c->timeout);
	t->out = chi_alloc_array(2, sizeof *t->out);
	if (t->out == NULL)
		return chi_cluster_give_up(c);
	t->in = t->out + 1;
	return CHOIR_OK;
}

static choir_status end(together *t, choir_status status)
{
	chi_free(t->out);
	return status;
}

static choir_status wait_one(together *t, chi_message *m)
{
	return chi_message_wait(&m, 1, t->deadline);
}

static choir_status exchange(together *t, int to, int from)
{
	choir_cluster *c = t->c;
	chi_message *const both[] = { t->in, t->out };
	CHOIR_TRY(chi_message_receive(t->in, c, from, TAG, &t->fingerprint, NULL, 0));
	const choir_status status = chi_message_send(t->out, c, to, TAG, &t->fingerprint, NULL, 0);
	if (status == CHOIR_OK)
		return chi_message_wait(both, 2, t->deadline);
	chi_message_drop(t->in);
	return status;
}

static choir_status compare_in_ring(together *t)
{
	const int n = t->c->workers, own = t->c->worker;
	return n == 1 ? CHOIR_OK : exchange(t, (own + 1) % n, (own - 1 + n) % n);
}

choir_status choir_cluster_barrier(choir_cluster *c)
{
	if (c == NULL)
		return choir_fail(CHOIR_INVALID, "barrier: the cluster is NULL");
	CHOIR_TRY(chi_cluster_check(c));
	together t;
	CHOIR_TRY(begin(&t, c));
	chi_fingerprint_set(&t.fingerprint, t.fingerprint.sequence, "barrier");
	choir_status status = compare_in_ring(&t);
	for (int far = 2; status == CHOIR_OK && far < c->workers; far *= 2)
		status = exchange(
				&t, (c->worker + far) % c->workers, (c->worker - far + c->workers) % c->workers);
	return end(&t, status);
}

// Places count from the root; a parent is its child without the lowest set bit.
static choir_status spread(together *t, int root, void *data, size_t bytes)
{
	choir_cluster *c = t->c;
	const int n = c->workers, place = (c->worker - root + n) % n;
	int reach = 1;
	while (reach < n && (place & reach) == 0)
		reach *= 2;
	if (place != 0) {
		const int parent = (place - reach + root) % n;
		CHOIR_TRY(chi_message_receive(t->in, c, parent, TAG, &t->fingerprint, data, bytes));
		CHOIR_TRY(wait_one(t, t->in));
	}
	for (int far = reach / 2; far > 0; far /= 2) {
		if (place + far >= n)
			continue;
		const int child = (place + far + root) % n;
		CHOIR_TRY(chi_message_send(t->out, c, child, TAG, &t->fingerprint, data, bytes));
		CHOIR_TRY(wait_one(t, t->out));
	}
	return CHOIR_OK;
}

choir_status choir_cluster_broadcast(choir_cluster *c, int from, void *data, size_t bytes)
{
	if (c == NULL || (data == NULL && bytes > 0))
		return choir_fail(CHOIR_INVALID, "broadcast: the cluster or the data is NULL");
	if (from < 0 || from >= c->workers)
		return choir_fail(CHOIR_INVALID,
				"broadcast: from worker %d given, the cluster has %d workers", from, c->workers);
	CHOIR_TRY(chi_cluster_check(c));
	together t;
	CHOIR_TRY(begin(&t, c));
	chi_fingerprint_set(&t.fingerprint, t.fingerprint.sequence,
			"broadcast of %zu bytes from worker %d", bytes, from);
	const choir_status status = compare_in_ring(&t);
	return end(&t, status == CHOIR_OK ? spread(&t, from, data, bytes) : status);
}

static choir_status collect(together *t, const void *own, size_t bytes, char *all, size_t total)
{
	choir_cluster *c = t->c;
	if (c->worker != 0) {
		CHOIR_TRY(chi_message_send(t->out, c, 0, TAG, &t->fingerprint, own, bytes));
		CHOIR_TRY(wait_one(t, t->out));
	} else if (bytes > 0) {
		memcpy(all, own, bytes);
	}
	for (int i = 1; c->worker == 0 && i < c->workers; i++) {
		CHOIR_TRY(chi_message_receive(
				t->in, c, i, TAG, &t->fingerprint, all + (size_t) i * bytes, bytes));
		CHOIR_TRY(wait_one(t, t->in));
	}
	return spread(t, 0, all, total);
}

choir_status choir_cluster_all_gather(choir_cluster *c, const void *own, size_t bytes, void *all)
{
	if (c == NULL || (bytes > 0 && (own == NULL || all == NULL)))
		return choir_fail(CHOIR_INVALID, "all_gather: the cluster or the data is NULL");
	CHOIR_TRY(chi_cluster_check(c));
	size_t total;
	if (!chi_size_multiply((size_t) c->workers, bytes, &total))
		return choir_fail(CHOIR_INVALID,
				"all_gather: %zu bytes from each of %d workers do not fit in memory", bytes,
				c->workers);
	together t;
	CHOIR_TRY(begin(&t, c));
	chi_fingerprint_set(&t.fingerprint, t.fingerprint.sequence, "all_gather of %zu bytes", bytes);
	const choir_status status = compare_in_ring(&t);
	return end(&t, status == CHOIR_OK ? collect(&t, own, bytes, all, total) : status);
}

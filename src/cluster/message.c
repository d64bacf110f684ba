// A receive first compares the fingerprint.
#include "cluster/message.h"

#include "trace/trace.h"
#include "base/log.h"
#include "base/hash.h"
#include "base/text.h"
#include "trace/health.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HEAD = offsetof(chi_frame, data) };
// "choir" and the layout's version
static const uint64_t MAGIC = 0x63686f6972000002;

// Open MPI 4.1 sends up to 4096 bytes, with its header, eagerly.
enum { MAX = HEAD + CHI_FRAME_DATA };
_Static_assert(MAX <= 4000, "a frame is sent at once");
enum { STEP = 256 };
_Static_assert(CHI_FRAME_DATA % STEP == 0, "a rest can be whole steps");

void chi_fingerprint_set(chi_fingerprint *f, uint64_t sequence, const char *fmt, ...)
{
	char text[CHI_ERROR_SIZE];
	va_list args;
	va_start(args, fmt);
	const int length = chi_text_format(text, sizeof text, fmt, args);
	va_end(args);
	*f = (chi_fingerprint){ .sequence = sequence };
	f->hash = chi_hash_mix(chi_hash_text(text) ^ (uint64_t) length);
	snprintf(f->what, sizeof f->what, "%.*s", (int) sizeof f->what - 1, text);
}

static bool same(const chi_fingerprint *a, const chi_fingerprint *b)
{
	return a->sequence == b->sequence && a->hash == b->hash &&
			!chi_call_order_crosses(a->order, b->order) &&
			memcmp(a->what, b->what, sizeof a->what) == 0;
}

static bool is_good_peer(const choir_cluster *c, int peer, int tag)
{
	return peer >= 0 && peer < c->workers && tag >= 0 && tag < CHOIR_TRANSPORT_TAGS;
}

void chi_message_drop(chi_message *m)
{
	choir_cluster *c = m->cluster;
	chi_mutex_lock(&c->lock);
	while (m->requests > m->ended)
		c->transport_table.drop(c->self, m->request[--m->requests]);
	chi_mutex_unlock(&c->lock);
}

static choir_status begin(chi_message *m, choir_cluster *c, int peer, int tag)
{
	m->cluster = c;
	m->peer = peer;
	m->tag = tag;
	m->done = false;
	m->requests = m->ended = 0;
	if (!is_good_peer(c, peer, tag))
		return choir_fail(
				CHOIR_INTERNAL, "message: worker %d of %d, tag %d", peer, c->workers, tag);
	return chi_cluster_check(c);
}

static choir_status begin_part(chi_message *m, int tag, void *data, size_t bytes)
{
	const choir_cluster *c = m->cluster;
	uint64_t *request = &m->request[m->requests];
	const choir_status status = m->sending
			? c->transport_table.send(c->self, m->peer, tag, data, bytes, request)
			: c->transport_table.receive(c->self, m->peer, tag, data, bytes, request);
	m->requests += status == CHOIR_OK;
	return status;
}

// The rest's receive begins with the frame's. Its tag tells its length: MPI aborts if a message is
// longer than its receive. Tags are few: only one kind of collective does this.
static bool is_early(const chi_message *m, size_t rest)
{
	return m->tag == CHI_TAG_COLLECTIVES && !m->bare_frame && rest > 0 &&
			rest / STEP < CHOIR_TRANSPORT_TAGS - CHI_TAGS;
}

static int tag_of_rest(size_t rest)
{
	return CHI_TAGS + (int) (rest / STEP);
}

// In parts that are sent eagerly.
static bool is_cut(const chi_message *m, size_t rest)
{
	const size_t eager = m->cluster->transport_table.eager;
	return is_early(m, rest) && eager > 0 && (rest - 1) / eager < CHI_REST_PARTS;
}

static size_t in_frame(const chi_message *m, size_t bytes)
{
	const size_t max = CHI_FRAME_DATA - (STEP - bytes % STEP) % STEP;
	if (m->bare_frame)
		return 0;
	return bytes <= CHI_FRAME_DATA ? bytes : is_cut(m, bytes - max) ? max : bytes % STEP;
}

static choir_status begin_rest(chi_message *m, char *rest, size_t bytes)
{
	const int tag = is_early(m, bytes) ? tag_of_rest(bytes) : m->tag;
	const size_t each = is_cut(m, bytes) ? m->cluster->transport_table.eager : bytes;
	for (size_t at = 0; at < bytes; at += each)
		CHOIR_TRY(begin_part(m, tag, rest + at, bytes - at < each ? bytes - at : each));
	return CHOIR_OK;
}

// A rest that is not sent eagerly precedes its frame.
static choir_status begin_parts(chi_message *m, size_t frame, char *rest, size_t bytes)
{
	choir_cluster *c = m->cluster;
	const bool early = is_early(m, bytes), first = m->sending && early && !is_cut(m, bytes);
	chi_mutex_lock(&c->lock);
	choir_status status = first ? begin_rest(m, rest, bytes) : CHOIR_OK;
	if (status == CHOIR_OK)
		status = begin_part(m, m->tag, &m->frame, frame);
	if (status == CHOIR_OK && !first && (early || m->sending))
		status = begin_rest(m, rest, bytes);
	chi_mutex_unlock(&c->lock);
	return status;
}

// Adds the host to "worker 2 stopped: WHY", unless WHY is another worker's.
static bool name_cause(const choir_cluster *c)
{
	char name[CHI_WORKER_NAME + 32];
	int by = 0, rest = 0, other = 0;
	if (sscanf(choir_error(), "worker %d stopped: %n", &by, &rest) != 1 || rest == 0)
		return false;
	const char *why = choir_error() + rest;
	if (sscanf(why, "worker %*d (%*[^)]) stopped:%n", &other) == 0 && other > 0)
		choir_fail(CHOIR_CANCELLED, "%s", why);
	else
		choir_fail(CHOIR_CANCELLED, "%s stopped: %s", chi_cluster_name(c, by, name), why);
	return true;
}

// After another worker's abort all workers know it.
static choir_status fail(chi_message *m, choir_status status)
{
	choir_cluster *c = m->cluster;
	char name[CHI_WORKER_NAME + 32];
	chi_message_drop(m);
	chi_mutex_lock(&c->lock);
	c->ended_by_other = c->ended_by_other || status == CHOIR_CANCELLED;
	chi_mutex_unlock(&c->lock);
	if (choir_error_status() != status)
		choir_fail(status, "%s", choir_status_name(status));
	if (status != CHOIR_CANCELLED || !name_cause(c))
		chi_error_prefix("%s %s %s", m->expected.what, m->sending ? "to" : "from",
				chi_cluster_name(c, m->peer, name));
	return chi_cluster_give_up(c);
}

choir_status chi_message_send(chi_message *m, choir_cluster *c, int to, int tag,
		const chi_fingerprint *f, const void *data, size_t bytes)
{
	CHOIR_TRY(begin(m, c, to, tag));
	m->sending = true;
	m->expected = m->frame.fingerprint = *f;
	m->frame.magic = MAGIC;
	m->frame.bytes = bytes;
	const size_t first = in_frame(m, bytes);
	if (first > 0)
		memcpy(m->frame.data, data, first);
	char *rest = bytes > first ? (char *) (uintptr_t) data + first : NULL;
	const choir_status status = begin_parts(m, HEAD + first, rest, bytes - first);
	return status == CHOIR_OK ? CHOIR_OK : fail(m, status);
}

choir_status chi_message_receive(chi_message *m, choir_cluster *c, int from, int tag,
		const chi_fingerprint *f, void *data, size_t bytes)
{
	CHOIR_TRY(begin(m, c, from, tag));
	m->sending = false;
	m->expected = *f;
	m->data = data == NULL && bytes <= CHI_MESSAGE_CAPACITY ? m->frame.data : data;
	m->bytes = bytes;
	const size_t first = in_frame(m, bytes);
	char *rest = bytes > first ? (char *) m->data + first : NULL;
	const choir_status status = begin_parts(m, MAX, rest, bytes - first);
	return status == CHOIR_OK ? CHOIR_OK : fail(m, status);
}

static void note_failure(chi_message *m, const char *other, size_t came)
{
	const size_t max = sizeof m->frame.data - 1, bytes = came - HEAD < max ? came - HEAD : max;
	m->frame.data[bytes] = '\0';
	choir_fail(CHOIR_CANCELLED, "%s stopped: %s", other, (const char *) m->frame.data);
}

static choir_status refuse(chi_message *m, size_t came)
{
	const choir_cluster *c = m->cluster;
	char own[CHI_WORKER_NAME + 32], other[CHI_WORKER_NAME + 32];
	const chi_fingerprint *found = &m->frame.fingerprint;
	m->frame.fingerprint.what[CHI_FINGERPRINT_TEXT - 1] = '\0';
	chi_cluster_name(c, c->worker, own);
	chi_cluster_name(c, m->peer, other);
	if (found->order == CHI_ORDER_FAILED)
		note_failure(m, other, came);
	else if (same(found, &m->expected))
		choir_fail(CHOIR_STATE,
				"workers differ in collective number %" PRIu64 ", %s: %s has %zu bytes, %s has "
				"%" PRIu64,
				found->sequence, found->what, own, m->bytes, other, m->frame.bytes);
	else if (found->sequence == m->expected.sequence && found->hash == m->expected.hash)
		choir_fail(CHOIR_STATE,
				"workers differ in collective number %" PRIu64
				", %s: %s and %s have given the same tensors in different orders; all workers "
				"must make the same calls in the same order",
				found->sequence, found->what, own, other);
	else
		choir_fail(CHOIR_STATE,
				"workers differ: %s is at collective number %" PRIu64
				", %s; %s is at number %" PRIu64 ", %s",
				own, m->expected.sequence, m->expected.what, other, found->sequence, found->what);
	return chi_cluster_give_up(m->cluster);
}

static choir_status take_frame(chi_message *m, size_t came)
{
	char name[CHI_WORKER_NAME + 32];
	if (came < HEAD || m->frame.magic != MAGIC) {
		choir_fail(CHOIR_CORRUPT,
				"%s sent %zu bytes that are not a message of this version of Choir",
				chi_cluster_name(m->cluster, m->peer, name), came);
		return chi_cluster_give_up(m->cluster);
	}
	if (!same(&m->frame.fingerprint, &m->expected) || m->frame.bytes != m->bytes)
		return refuse(m, came);
	const size_t first = in_frame(m, m->bytes);
	if (came != HEAD + first) {
		choir_fail(CHOIR_CORRUPT, "%s sent %zu bytes; %zu needed",
				chi_cluster_name(m->cluster, m->peer, name), came, HEAD + first);
		return chi_cluster_give_up(m->cluster);
	}
	if (first > 0 && m->data != m->frame.data)
		memcpy(m->data, m->frame.data, first);
	if (m->bytes == first || is_early(m, m->bytes - first))
		return CHOIR_OK;
	chi_mutex_lock(&m->cluster->lock);
	const choir_status status = begin_part(m, m->tag, (char *) m->data + first, m->bytes - first);
	chi_mutex_unlock(&m->cluster->lock);
	return status == CHOIR_OK ? CHOIR_OK : fail(m, status);
}

// In order, until one is not done. *came: the last one's bytes.
static choir_status test_parts(chi_message *m, int end, size_t *came)
{
	choir_cluster *c = m->cluster;
	choir_status status = CHOIR_OK;
	bool done = true;
	chi_mutex_lock(&c->lock);
	// Under the lock: after another thread's failure, the transport reports its consequence.
	const choir_status before = chi_cluster_check(c);
	while (before == CHOIR_OK && done && m->ended < end) {
		status = c->transport_table.test(c->self, m->request[m->ended], &done, came);
		done = done && status == CHOIR_OK;
		m->ended += done;
	}
	chi_mutex_unlock(&c->lock);
	return before != CHOIR_OK ? before : status == CHOIR_OK ? CHOIR_OK : fail(m, status);
}

static choir_status progress(chi_message *m)
{
	size_t came = 0;
	if (!m->sending && m->ended == 0) {
		CHOIR_TRY(test_parts(m, 1, &came));
		if (m->ended == 1)
			CHOIR_TRY(take_frame(m, came));
	}
	if (m->ended < m->requests && (m->sending || m->ended > 0))
		CHOIR_TRY(test_parts(m, m->requests, &came));
	m->done = m->ended == m->requests;
	return CHOIR_OK;
}

static choir_status progress_all(chi_message *const m[], int n, const chi_message **waits_for)
{
	*waits_for = NULL;
	for (int i = n - 1; i >= 0; i--) {
		if (!m[i]->done)
			CHOIR_TRY(progress(m[i]));
		if (!m[i]->done)
			*waits_for = m[i];
	}
	return CHOIR_OK;
}

static choir_status give_up_waiting(const chi_message *m, double seconds)
{
	char name[CHI_WORKER_NAME + 32];
	choir_fail(CHOIR_TIMEOUT, "waited %.1f s for %s in %s (number %" PRIu64 ")", seconds,
			chi_cluster_name(m->cluster, m->peer, name), m->expected.what, m->expected.sequence);
	return chi_cluster_give_up(m->cluster);
}

typedef struct {
	double begun, due; // HUGE_VAL: never
} wait_limit;

// Avoids reading the clock.
static wait_limit begin_wait_limit(const chi_message *m, double deadline)
{
	static const double MIN = 2;
	const choir_cluster *c = m->cluster;
	if (m->expected.order == CHI_ORDER_FAILED)
		return (wait_limit){ deadline, HUGE_VAL };
	if (c->timeout < 0 || deadline == HUGE_VAL)
		return (wait_limit){ HUGE_VAL, HUGE_VAL };
	const double begun = deadline - c->timeout, quarter = c->timeout / 4;
	return (wait_limit){ begun, begun + (quarter < MIN ? MIN : quarter) };
}

static void end_wait_limit(wait_limit *p, const chi_message *m, double now)
{
	static const double UNLIMITED = 60;
	const choir_cluster *c = m->cluster;
	char name[CHI_WORKER_NAME + 32], end[48] = "";
	if (p->begun == HUGE_VAL)
		*p = (wait_limit){ now, now + UNLIMITED };
	if (now < p->due)
		return;
	p->due = HUGE_VAL;
	if (c->timeout >= 0)
		snprintf(end, sizeof end, "; the timeout is %g s", c->timeout);
	chi_log(CHOIR_LOG_WARNING, "worker %d has waited %.0f s for %s in %s%s", c->worker,
			now - p->begun, chi_cluster_name(c, m->peer, name), m->expected.what, end);
}

choir_status chi_message_wait(chi_message *const m[], int n, double deadline)
{
	enum { LOOKS = 16 };
	if (n == 0)
		return CHOIR_OK;
	choir_cluster *c = m[0]->cluster;
	const chi_message *waits_for = NULL;
	choir_status status = progress_all(m, n, &waits_for);
	if (status == CHOIR_OK && waits_for == NULL)
		return CHOIR_OK;
	int last = c->worker;
	chi_trace_begin(CHOIR_TRACE_WAIT, "other workers");
	wait_limit p = begin_wait_limit(m[0], deadline);
	const bool noted = waits_for != NULL && chi_health_on();
	if (noted)
		chi_health_write_wait(
				waits_for->expected.sequence, waits_for->expected.what, waits_for->peer);
	for (int turn = 0; status == CHOIR_OK && waits_for != NULL; turn++) {
		last = waits_for->peer;
		const double now = turn % LOOKS == LOOKS - 1 ? c->transport_table.now(c->self) : -HUGE_VAL;
		if (now > -HUGE_VAL)
			end_wait_limit(&p, waits_for, now);
		if (now >= deadline)
			status = give_up_waiting(waits_for, now - deadline + c->timeout);
		else
			c->transport_table.pause(c->self, turn, deadline < p.due ? deadline : p.due);
		if (status == CHOIR_OK)
			status = progress_all(m, n, &waits_for);
	}
	if (noted)
		chi_health_end_wait();
	for (int i = 0; status != CHOIR_OK && i < n; i++)
		chi_message_drop(m[i]);
	chi_atomic32_store(&c->last, (uint32_t) last + 1);
	chi_trace_end_wait(chi_last_worker(last));
	return status;
}

// The programs of the suite. They run on threads of one process as well as on processes, so they
// keep what they find in variables of the thread, and assert nothing themselves.
#include "cluster/suite.h"

#include "base/alloc.h"
#include "base/philox.h"
#include "cluster/message.h"
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char wrong[1024];

#define NEED(good) \
	do { \
		if (!(good)) { \
			snprintf(wrong, sizeof wrong, "line %d: %s (last error: %s)", __LINE__, #good, \
					choir_error()); \
			return wrong; \
		} \
	} while (0)
#define SAY(expr) \
	do { \
		const char *said_ = (expr); \
		if (said_ != NULL) \
			return said_; \
	} while (0)

const char *suite_failure(choir_status found, choir_status status, const char *words)
{
	if (found == status && text_holds(choir_error(), words))
		return NULL;
	snprintf(wrong, sizeof wrong, "found %s \"%s\", needed %s with \"%s\"",
			choir_status_name(found), choir_error(), choir_status_name(status), words);
	return wrong;
}

static void fill(unsigned char *data, size_t bytes, int from, int to)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (unsigned char) (i * 131 + (i >> 8) + (size_t) from * 17 + (size_t) to * 71);
}

static bool is_filled(const unsigned char *data, size_t bytes, int from, int to)
{
	for (size_t i = 0; i < bytes; i++)
		if (data[i] !=
				(unsigned char) (i * 131 + (i >> 8) + (size_t) from * 17 + (size_t) to * 71))
			return false;
	return true;
}

static const char *workers_know_each_other(choir_cluster *c)
{
	const int n = choir_cluster_workers(c);
	NEED(choir_cluster_worker(c) >= 0 && choir_cluster_worker(c) < n);
	NEED(choir_cluster_is_chief(c) == (choir_cluster_worker(c) == 0));
	for (int i = 0; i < n; i++)
		NEED(strstr(choir_cluster_worker_name(c, i), "pid ") != NULL);
	NEED(choir_cluster_worker_name(c, n)[0] == '\0');
	NEED(choir_cluster_worker_name(c, -1)[0] == '\0');
	NEED(strlen(choir_cluster_transport(c)) > 5);
	int own = choir_cluster_worker(c) * 3 + 1, all[64];
	NEED(choir_cluster_all_gather(c, &own, sizeof own, all) == CHOIR_OK);
	for (int i = 0; i < n; i++)
		NEED(all[i] == i * 3 + 1);
	return NULL;
}

// Every worker sends to every other one, itself too, with sizes around those of frames, with a tag
// of its own and with that of collectives, whose rests are begun early.
static const char *bytes_arrive(choir_cluster *c)
{
	enum { SIZES = 11, MAX = 300001 };
	static const size_t sizes[SIZES] = { 0, 1, 7, CHI_FRAME_DATA - 1, CHI_FRAME_DATA,
		CHI_FRAME_DATA + 1, 4096, 5000, 16384, 65536, MAX };
	const int n = choir_cluster_workers(c), own = choir_cluster_worker(c);
	chi_message *in = chi_alloc_array(2, sizeof *in), *out = in + 1;
	unsigned char *from = chi_alloc(2 * MAX), *to = from + MAX;
	NEED(in != NULL && from != NULL);
	for (int k = 0; k < SIZES * n; k++) {
		const size_t bytes = sizes[k % SIZES];
		const int shift = k / SIZES, next = (own + shift) % n, before = (own - shift + n) % n;
		const int tag = k % 2 == 0 ? 5 : 0; // SIZES is odd: each size has both
		chi_fingerprint f;
		chi_fingerprint_set(&f, (uint64_t) k, "exchange");
		chi_message *const both[] = { in, out };
		fill(from, bytes, own, next);
		memset(to, 0, bytes);
		NEED(chi_message_receive(in, c, before, tag, &f, to, bytes) == CHOIR_OK);
		NEED(chi_message_send(out, c, next, tag, &f, from, bytes) == CHOIR_OK);
		NEED(chi_message_wait(both, 2, chi_cluster_deadline(c, 20)) == CHOIR_OK);
		NEED(is_filled(to, bytes, before, own));
	}
	chi_free(from);
	chi_free(in);
	return NULL;
}

enum { TAGS = 6, EACH = 4, BYTES = 6000 };
typedef struct {
	chi_message in[TAGS], out[TAGS][EACH];
	unsigned char from[TAGS][EACH][BYTES], to[TAGS][BYTES];
} many;

// One tag after the other, in an order that is not that of sending; each tag keeps its own.
static const char *take_backwards(choir_cluster *c, many *m, int peer)
{
	for (int tag = TAGS - 1; tag >= 0; tag--)
		for (int k = 0; k < EACH; k++) {
			chi_fingerprint f;
			chi_fingerprint_set(&f, (uint64_t) k, "tag %d", tag);
			chi_message *in = &m->in[tag];
			NEED(chi_message_receive(in, c, peer, 100 + tag, &f, m->to[tag], BYTES) == CHOIR_OK);
			NEED(chi_message_wait(&in, 1, chi_cluster_deadline(c, 20)) == CHOIR_OK);
			NEED(is_filled(m->to[tag], BYTES, tag, k));
		}
	return NULL;
}

static const char *tags_keep_their_order(choir_cluster *c)
{
	const int n = choir_cluster_workers(c), own = choir_cluster_worker(c);
	many *m = chi_alloc(sizeof *m);
	NEED(m != NULL);
	chi_message *out[TAGS * EACH];
	int sent = 0;
	for (int k = 0; k < EACH; k++)
		for (int tag = 0; tag < TAGS; tag++) {
			chi_fingerprint f;
			chi_fingerprint_set(&f, (uint64_t) k, "tag %d", tag);
			fill(m->from[tag][k], BYTES, tag, k);
			NEED(chi_message_send(&m->out[tag][k], c, (own + 1) % n, 100 + tag, &f,
						 m->from[tag][k], BYTES) == CHOIR_OK);
			out[sent++] = &m->out[tag][k];
		}
	SAY(take_backwards(c, m, (own + n - 1) % n));
	NEED(chi_message_wait(out, sent, chi_cluster_deadline(c, 20)) == CHOIR_OK);
	chi_free(m);
	return NULL;
}

static const char *barriers_and_broadcasts(choir_cluster *c)
{
	enum { MAX = 100000 };
	static const size_t sizes[] = { 0, 3, MAX };
	const int n = choir_cluster_workers(c), own = choir_cluster_worker(c);
	unsigned char *data = chi_alloc(MAX);
	NEED(data != NULL);
	for (int root = 0; root < n; root++)
		for (int k = 0; k < 3; k++) {
			memset(data, 0, MAX);
			if (own == root)
				fill(data, sizes[k], root, k);
			NEED(choir_cluster_broadcast(c, root, data, sizes[k]) == CHOIR_OK);
			NEED(is_filled(data, sizes[k], root, k));
			NEED(choir_cluster_barrier(c) == CHOIR_OK);
		}
	chi_free(data);
	SAY(suite_failure(choir_cluster_broadcast(c, n, NULL, 0), CHOIR_INVALID, "worker"));
	NEED(choir_cluster_barrier(c) == CHOIR_OK); // wrong use has changed nothing
	return NULL;
}

static const char *settings_are_compared(choir_cluster *c)
{
	chi_setting settings[2];
	chi_setting_set(&settings[0], "version", "%d", 7);
	chi_setting_set(&settings[1], "seed", "%d", 42);
	NEED(chi_cluster_check_consistency(c, settings, 2) == CHOIR_OK);
	const int last = choir_cluster_workers(c) - 1;
	if (choir_cluster_worker(c) == last)
		chi_setting_set(&settings[1], "seed", "%d", 43);
	// Of what is longer than is sent all counts.
	chi_setting longer;
	const char own = choir_cluster_worker(c) == last ? 'y' : 'x';
	chi_setting_set(&longer, "program", "%090d, %s", 1, "rate 0.1");
	NEED(chi_cluster_check_consistency(c, &longer, 1) == CHOIR_OK);
	chi_setting_set(&longer, "program", "%090d, %c", 1, own);
	char words[32];
	snprintf(words, sizeof words, "worker %d (", last);
	choir_status status = chi_cluster_check_consistency(c, &longer, 1);
	SAY(suite_failure(status, CHOIR_STATE, words));
	SAY(suite_failure(status, CHOIR_STATE, "differs*program is"));
	status = chi_cluster_check_consistency(c, settings, 2);
	SAY(suite_failure(status, CHOIR_STATE, words));
	SAY(suite_failure(status, CHOIR_STATE, "differs:*\"43\"*\"42\"*worker 0"));
	return NULL;
}

// After a failure everything else says why.
static const char *it_is_over(choir_cluster *c, const char *words)
{
	SAY(suite_failure(choir_cluster_barrier(c), CHOIR_CANCELLED, words));
	return suite_failure(choir_cluster_broadcast(c, 0, NULL, 0), CHOIR_CANCELLED, words);
}

static const char *other_collectives_are_named(choir_cluster *c)
{
	int value = 1;
	const bool odd = choir_cluster_worker(c) == choir_cluster_workers(c) - 1;
	choir_status status = choir_cluster_barrier(c); // some may find the rest wrong already in here
	if (status == CHOIR_OK)
		status = odd ? choir_cluster_broadcast(c, 0, &value, sizeof value)
					 : choir_cluster_barrier(c);
	NEED(status == CHOIR_STATE || status == CHOIR_CANCELLED);
	SAY(suite_failure(status, status, "workers"));
	SAY(suite_failure(status, status, "barrier"));
	SAY(suite_failure(status, status, "4 bytes*worker 0"));
	return it_is_over(c, "workers differ");
}

static const char *other_sizes_are_named(choir_cluster *c)
{
	static unsigned char data[20000];
	const int n = choir_cluster_workers(c);
	const size_t bytes = choir_cluster_worker(c) == n - 1 ? 9999 : 20000;
	const choir_status status = choir_cluster_broadcast(c, 0, data, bytes);
	NEED(status == CHOIR_STATE || status == CHOIR_CANCELLED);
	SAY(suite_failure(status, status, "9999"));
	SAY(suite_failure(status, status, "20000"));
	return NULL;
}

// Of two messages that are the same but for their size, none is taken for the other, and none
// comes where there is too little room.
static const char *refuse_sizes(choir_cluster *c, int tag, size_t last, size_t others)
{
	static unsigned char data[90000];
	const int n = choir_cluster_workers(c), own = choir_cluster_worker(c);
	const size_t bytes = own == n - 1 ? last : others;
	char text[32];
	snprintf(text, sizeof text, " %zu", last);
	chi_message *in = chi_alloc_array(2, sizeof *in), *out = in + 1;
	NEED(in != NULL);
	chi_message *const both[] = { in, out };
	chi_fingerprint f;
	chi_fingerprint_set(&f, 3, "sum");
	NEED(chi_message_receive(in, c, (own + n - 1) % n, tag, &f, chi_alloc(bytes), bytes) ==
			CHOIR_OK);
	NEED(chi_message_send(out, c, (own + 1) % n, tag, &f, data, bytes) == CHOIR_OK);
	choir_status status = chi_message_wait(both, 2, chi_cluster_deadline(c, 20));
	if (status == CHOIR_OK) // one whose own messages were right learns it of the others
		status = choir_cluster_barrier(c);
	chi_free(in->data);
	chi_free(in);
	NEED(status == CHOIR_STATE || status == CHOIR_CANCELLED);
	SAY(suite_failure(status, status, "number 3"));
	return suite_failure(status, status, text);
}

static const char *messages_of_other_sizes_are_refused(choir_cluster *c)
{
	return refuse_sizes(c, 5, 8999, 9000);
}

static const char *early_messages_of_other_sizes_are_refused(choir_cluster *c)
{
	return refuse_sizes(c, 0, 8960, 9472);
}

static const char *large_messages_of_other_sizes_are_refused(choir_cluster *c)
{
	return refuse_sizes(c, 0, 49152, 81920);
}

static const char *who_does_not_come_is_named(choir_cluster *c)
{
	const int n = choir_cluster_workers(c);
	char words[32];
	snprintf(words, sizeof words, "worker %d (", n - 1);
	if (choir_cluster_worker(c) == n - 1) {
		// It waits for something else, which does not come either; and is told.
		chi_message *m = chi_alloc(sizeof *m);
		chi_fingerprint f;
		chi_fingerprint_set(&f, 1, "nothing");
		NEED(m != NULL);
		NEED(chi_message_receive(m, c, 0, 9, &f, NULL, 0) == CHOIR_OK);
		NEED(chi_message_wait(&m, 1, chi_cluster_deadline(c, 60)) == CHOIR_CANCELLED);
		chi_free(m);
		return NULL;
	}
	choir_status status = choir_cluster_barrier(c);
	NEED(status == CHOIR_TIMEOUT || status == CHOIR_CANCELLED);
	SAY(suite_failure(status, status, "waited"));
	return n == 2 ? suite_failure(status, status, words) : NULL;
}

static const char *an_abort_frees_all(choir_cluster *c)
{
	const int last = choir_cluster_workers(c) - 1;
	if (choir_cluster_worker(c) == last) {
		choir_cluster_abort(c, "the disk is full");
		return it_is_over(c, "the disk is full");
	}
	SAY(suite_failure(choir_cluster_barrier(c), CHOIR_CANCELLED, "the disk is full"));
	return it_is_over(c, "the disk is full");
}

static const char *who_leaves_is_named(choir_cluster *c)
{
	if (choir_cluster_worker(c) == choir_cluster_workers(c) - 1)
		return NULL; // and is freed
	const choir_status status = choir_cluster_barrier(c);
	NEED(status == CHOIR_PEER_LOST || status == CHOIR_CANCELLED);
	return suite_failure(status, status, "left");
}

// A random program of collectives, of which one worker does one step otherwise: another kind,
// another size, another root, or it leaves one out.
enum { STEPS = 4, MAX = 8192 };

static uint64_t draw(uint64_t seed, int step, uint32_t place, int max)
{
	const chi_random_key key = { .seed = seed, .step = (uint64_t) step, .place = place };
	return chi_random_block(&key, 0).word[0] % (uint64_t) max;
}

static choir_status take_step(choir_cluster *c, uint64_t kind, uint64_t root, size_t bytes)
{
	if (kind == 0)
		return choir_cluster_barrier(c);
	unsigned char *data = calloc(1 + (size_t) choir_cluster_workers(c), MAX);
	const choir_status status = kind == 1 ? choir_cluster_all_gather(c, data, bytes, data + MAX)
										  : choir_cluster_broadcast(c, (int) root, data, bytes);
	free(data);
	return status;
}

const char *suite_mismatch(choir_cluster *c, uint64_t seed)
{
	const int n = choir_cluster_workers(c);
	const int odd = (int) draw(seed, 0, 5, n), odd_step = (int) draw(seed, 0, 4, STEPS);
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < STEPS; i++) {
		uint64_t kind = draw(seed, i, 0, 3), root = draw(seed, i, 1, n);
		const uint64_t how = draw(seed, i, 2, 4);
		size_t bytes = 1 + (size_t) draw(seed, i, 3, 8000);
		if (choir_cluster_worker(c) == odd && i == odd_step) {
			if (how == 0)
				continue; // what comes next has the wrong number
			kind = how == 1 ? (kind + 1) % 3 : 2;
			root = how == 2 ? (root + 1) % (uint64_t) n : root;
			bytes += how == 3;
		}
		status = take_step(c, kind, root, bytes);
	}
	if (status == CHOIR_OK)
		status = take_step(c, 1, 0, MAX); // of no step's size, so what was left out shows
	NEED(status == CHOIR_STATE || status == CHOIR_CANCELLED);
	return suite_failure(status, status, "workers differ:*worker");
}

const suite_program suite_programs[] = {
	{ "workers know each other", 1, false, false, workers_know_each_other },
	{ "bytes arrive", 1, false, false, bytes_arrive },
	{ "tags keep their order", 1, false, false, tags_keep_their_order },
	{ "barriers and broadcasts", 1, false, false, barriers_and_broadcasts },
	{ "facts are compared", 2, false, false, settings_are_compared },
	{ "other collectives are named", 2, true, false, other_collectives_are_named },
	{ "other sizes are named", 2, true, false, other_sizes_are_named },
	{ "messages of other sizes are refused", 2, true, false, messages_of_other_sizes_are_refused },
	{ "early messages of other sizes are refused", 2, true, false,
			early_messages_of_other_sizes_are_refused },
	{ "large messages of other sizes are refused", 2, true, false,
			large_messages_of_other_sizes_are_refused },
	{ "who does not come is named", 2, true, true, who_does_not_come_is_named },
	{ "an abort frees all", 2, true, false, an_abort_frees_all },
	{ "who leaves is named", 2, true, false, who_leaves_is_named },
};
const int suite_count = sizeof suite_programs / sizeof suite_programs[0];

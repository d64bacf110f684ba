// The version of a collective's text is odd while a thread writes it; a second writer then skips
// its text.
#include "trace/health.h"

#include "base/clock.h"
#include "base/gate.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/shared_memory.h"
#include "base/text.h"
#include "base/thread.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

chi_health *chi_health_page;

static struct {
	chi_mutex lock;
	int open; // clusters
	bool failed;
	chi_thread heart;
	chi_gate stop;
} own = { .lock = CHI_MUTEX_STATIC(CHI_RANK_TRACE, "health") };

static uint64_t nanoseconds(void)
{
	return (uint64_t) (chi_clock_now() * 1e9);
}

static void beat(void *page)
{
	chi_health *h = page;
	while (chi_atomic32_load(&own.stop.word) == 0) {
		chi_atomic32_add(&h->beats, 1);
		(void) chi_gate_wait(&own.stop, 0, false, chi_clock_deadline(CHI_HEALTH_BEAT));
	}
}

// Programs, such as a script's commands, may use the page one after another.
static bool take(chi_health *h)
{
	const uint32_t before = chi_atomic32_load(&h->state);
	if (before == CHI_HEALTH_OPEN && chi_atomic32_load(&h->pid) != (uint32_t) getpid())
		return false;
	chi_atomic32_store(&h->pid, (uint32_t) getpid());
	chi_atomic32_store(&h->waiting, 0);
	chi_atomic32_store(&h->by_other, 0);
	chi_atomic64_store(&h->since, nanoseconds());
	return chi_atomic32_change(&h->state, before, CHI_HEALTH_OPEN);
}

static chi_health *map_page(const char *number)
{
	int64_t fd;
	chi_health *h = NULL;
	if (chi_parse_int64(number, &fd) && fd > STDERR_FILENO && fd <= INT_MAX)
		h = chi_shared_map((int) fd, sizeof *h);
	if (h != NULL && h->magic == CHI_HEALTH_MAGIC)
		return h;
	chi_shared_unmap(h, sizeof *h);
	return NULL;
}

// It stays mapped, since other threads may write it. False: an invalid number.
static bool open_page(const char *number)
{
	chi_health *h = chi_health_page != NULL ? chi_health_page : map_page(number);
	if (h == NULL)
		return false;
	if (!take(h))
		return true;
	chi_health_page = h;
	chi_atomic32_store(&own.stop.word, 0);
	if (chi_thread_start(&own.heart, "choir health", beat, h) != CHOIR_OK)
		chi_health_fail(choir_error_status(), choir_error(), false);
	return true;
}

bool chi_health_key(unsigned char key[CHI_HEALTH_KEY])
{
	static const unsigned char none[CHI_HEALTH_KEY];
	const char *number = getenv(CHI_HEALTH_VARIABLE);
	chi_health *h = number == NULL ? NULL : map_page(number);
	if (h == NULL)
		return false;
	memcpy(key, h->key, CHI_HEALTH_KEY);
	chi_shared_unmap(h, sizeof *h);
	return memcmp(key, none, CHI_HEALTH_KEY) != 0;
}

void chi_health_open(void)
{
	const char *number = getenv(CHI_HEALTH_VARIABLE);
	bool right = true;
	chi_mutex_lock(&own.lock);
	if (own.open++ == 0) {
		own.failed = false;
		right = number == NULL || number[0] == '\0' || open_page(number);
	}
	chi_mutex_unlock(&own.lock);
	if (!right)
		chi_log(CHOIR_LOG_INFO,
				"%s: found \"%.40s\", which is not a descriptor from a supervisor; this process "
				"is not supervised",
				CHI_HEALTH_VARIABLE, number);
}

void chi_health_close(bool failed)
{
	chi_mutex_lock(&own.lock);
	own.failed = own.failed || failed;
	const bool last = --own.open == 0;
	chi_health *h = chi_health_page;
	if (last && h != NULL && own.heart.started) {
		chi_gate_open(&own.stop, 1);
		chi_thread_join(&own.heart);
		if (!own.failed)
			(void) chi_atomic32_change(&h->state, CHI_HEALTH_OPEN, CHI_HEALTH_FINISHED);
	}
	chi_mutex_unlock(&own.lock);
}

// Only the first one, as in the cluster.
void chi_health_fail(choir_status status, const char *text, bool by_other)
{
	static chi_atomic32 writing;
	chi_health *h = chi_health_page;
	if (h == NULL || chi_atomic32_load(&h->state) != CHI_HEALTH_OPEN ||
			!chi_atomic32_change(&writing, 0, 1))
		return;
	snprintf(h->text, sizeof h->text, "%s", text);
	chi_atomic32_store(&h->status, (uint32_t) status);
	chi_atomic32_store(&h->by_other, by_other);
	(void) chi_atomic32_change(&h->state, CHI_HEALTH_OPEN, CHI_HEALTH_FAILED);
	chi_atomic32_store(&writing, 0);
}

void chi_health_write_step(uint64_t step, int first_replica, int replicas)
{
	chi_health *h = chi_health_page;
	chi_atomic32_store(&h->first_replica, (uint32_t) first_replica);
	chi_atomic32_store(&h->replicas, (uint32_t) replicas);
	chi_atomic64_store(&h->step, step);
	chi_atomic64_add(&h->steps, 1);
	chi_atomic64_store(&h->since, nanoseconds());
}

void chi_health_write_wait(uint64_t sequence, const char *what, int peer)
{
	chi_health *h = chi_health_page;
	chi_atomic32_add(&h->waiting, 1);
	chi_atomic32_store(&h->peer, (uint32_t) peer);
	chi_atomic64_store(&h->since, nanoseconds());
	const uint32_t version = chi_atomic32_load(&h->version);
	if (version % 2 != 0 || !chi_atomic32_change(&h->version, version, version + 1))
		return;
	uint64_t words[CHI_HEALTH_WHAT / 8] = { 0 };
	snprintf((char *) words, sizeof words, "%s", what);
	chi_atomic64_store(&h->sequence, sequence);
	for (size_t i = 0; i < CHI_HEALTH_WHAT / 8; i++)
		chi_atomic64_store(&h->what[i], words[i]);
	chi_atomic32_store(&h->version, version + 2);
}

void chi_health_end_wait(void)
{
	chi_atomic32_add(&chi_health_page->waiting, UINT32_MAX); // one less
	chi_atomic64_store(&chi_health_page->since, nanoseconds());
}

static void read_what(const chi_health *page, chi_health_note *note)
{
	enum { TRIES = 100 };
	uint64_t words[CHI_HEALTH_WHAT / 8];
	for (int i = 0; i < TRIES; i++) { // a process that died while it wrote leaves it odd
		const uint32_t version = chi_atomic32_load(&page->version);
		note->sequence = chi_atomic64_load(&page->sequence);
		for (size_t k = 0; k < CHI_HEALTH_WHAT / 8; k++)
			words[k] = chi_atomic64_load(&page->what[k]);
		if (version % 2 == 0 && chi_atomic32_load(&page->version) == version)
			break;
	}
	memcpy(note->what, words, sizeof words);
	note->what[CHI_HEALTH_WHAT - 1] = '\0';
}

void chi_health_read(const chi_health *page, chi_health_note *note)
{
	*note = (chi_health_note){ .state = (chi_health_state) chi_atomic32_load(&page->state) };
	note->pid = (long) chi_atomic32_load(&page->pid);
	note->beats = chi_atomic32_load(&page->beats);
	note->waiting = (int32_t) chi_atomic32_load(&page->waiting) > 0;
	note->peer = (int) chi_atomic32_load(&page->peer);
	note->first_replica = (int) chi_atomic32_load(&page->first_replica);
	note->replicas = (int) chi_atomic32_load(&page->replicas);
	note->step = chi_atomic64_load(&page->step);
	note->steps = chi_atomic64_load(&page->steps);
	note->saved = chi_atomic64_load(&page->saved);
	note->since = (double) chi_atomic64_load(&page->since) / 1e9;
	read_what(page, note);
	if (note->state != CHI_HEALTH_FAILED)
		return;
	note->status = (choir_status) chi_atomic32_load(&page->status);
	note->by_other = chi_atomic32_load(&page->by_other) != 0;
	memcpy(note->text, page->text, sizeof note->text);
	note->text[CHI_HEALTH_TEXT - 1] = '\0';
}

// Threads that are kept. A worker goes back to the idle list when its job is known to be done: who
// sent it puts it there, and so its lock stays with the processor that sends. Only where workers
// take turns on a lane do they go by themselves (scheduler.c), before they say that the lane is
// through, so that the next run always finds them.
#include "strategy/run/thread_pool.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <stdio.h>

// One call of chi_crew_all.
struct chi_help {
	chi_crew_fn *fn;
	void *arg;
	chi_atomic32 left; // not zero: a function of the program's has ended a thread
};

// What a worker is sent.
typedef struct {
	chi_run *run;
	struct chi_help *help;
	bool joins; // others on the lane, which are parked
} job;

static void end_help(chi_worker *w)
{
	chi_gate *helped = &w->crew->strategy->crew[0].helped;
	w->help = NULL;
	chi_atomic32_add(&helped->word, 1); // from here on who asked for help may be gone
	chi_gate_wake(helped);
}

static void give_help(chi_worker *w)
{
	w->help->fn(w->help->arg);
	end_help(w);
}

static void obey(void *arg)
{
	chi_worker *w = arg;
	chi_dlpack_hold(true); // what a host's runtime gave goes back on the thread that calls run
	if (w->crew->pin)
		(void) chi_thread_pin(
				w->crew->lane * w->crew->cores, w->crew->team != NULL ? 1 : w->crew->cores);
	for (uint32_t seen = 0;;) {
		while (chi_atomic32_load(&w->gate.word) == seen)
			(void) chi_gate_wait(&w->gate, seen, w->crew->spin, chi_clock_deadline(-1));
		seen++;
		if (w->help != NULL)
			give_help(w);
		else if (w->run == NULL)
			return;
		else
			chi_lane_go(w->run, w->lane, w->run->lane[w->lane].shared ? w : NULL);
	}
}

// A function of the program's has ended the thread. What it was to do is ended in its place, so
// that nobody waits for it.
static void leave(void *arg)
{
	chi_worker *w = arg;
	w->gone = true;
	(void) chi_context_forget(w->crew->strategy->home);
	if (w->help == NULL) {
		chi_run_left(w->run, w->lane);
		return;
	}
	chi_atomic32_store(&w->help->left, 1);
	end_help(w);
}

static void work(void *arg)
{
	chi_thread_call(obey, leave, arg);
}

// The threads that share a lane's work. Only who asks for several cores a device gets them: a host
// that made one strategy for each of its own threads would have more than it has cores.
static choir_status open_team(choir_strategy *s, struct chi_crew *crew)
{
	if (s->options.cores_per_device < 2)
		return CHOIR_OK;
	char name[CHI_THREAD_NAME];
	snprintf(name, sizeof name, "choir %d core", crew->lane);
	crew->team = chi_team_new(&(chi_team_options){ .name = name,
			.threads = crew->cores,
			.spin = s->lanes * crew->cores <= chi_processor_count(),
			.pin = crew->pin,
			.first = crew->lane * crew->cores });
	return crew->team == NULL ? choir_error_status() : CHOIR_OK;
}

choir_status chi_crew_open(choir_strategy *s)
{
	s->crew = chi_alloc_lines((size_t) s->lanes, sizeof *s->crew);
	if (s->crew == NULL)
		return choir_error_status();
	const int cores = chi_processor_count();
	const int each = s->options.cores_per_device > 0 ? s->options.cores_per_device
			: cores / s->lanes > 0					 ? cores / s->lanes
													 : 1;
	const bool pin = s->options.pin == CHOIR_ON ||
			(s->options.pin == CHOIR_DEFAULT && chi_processor_mask_is_narrowed() &&
					s->lanes <= cores);
	for (int i = 0; i < s->lanes; i++) {
		s->crew[i] = (struct chi_crew){
			.strategy = s, .spin = s->lanes <= cores, .pin = pin, .cores = each, .lane = i
		};
		chi_mutex_init(&s->crew[i].lock, CHI_RANK_POOL, "crew");
	}
	for (int i = 0; i < s->lanes; i++)
		CHOIR_TRY(open_team(s, &s->crew[i]));
	return CHOIR_OK;
}

static void send_word(chi_worker *w)
{
	chi_atomic32_store_seq_cst(&w->gate.word, chi_atomic32_load(&w->gate.word) + 1);
	chi_gate_wake_one(&w->gate);
}

static void free_worker(chi_worker *w, bool in_child)
{
	if (!in_child) {
		w->run = NULL;
		send_word(w);
		chi_thread_join(&w->thread);
	}
	chi_free(w);
}

void chi_crew_close(choir_strategy *s)
{
	const bool in_child = s->fork_generation != chi_fork_generation();
	for (int i = 0; s->crew != NULL && i < s->lanes; i++) {
		while (s->crew[i].all != NULL) {
			chi_worker *w = s->crew[i].all;
			s->crew[i].all = w->next;
			free_worker(w, in_child);
		}
		chi_team_free(s->crew[i].team);
		chi_mutex_destroy(&s->crew[i].lock);
	}
	chi_free(s->crew);
	s->crew = NULL;
}

static chi_worker *new_worker(struct chi_crew *crew)
{
	char name[16];
	chi_worker *w = chi_alloc_lines(1, sizeof *w);
	if (w == NULL)
		return NULL;
	w->crew = crew;
	snprintf(name, sizeof name, "choir %d", crew->lane);
	if (chi_thread_start(&w->thread, name, work, w) != CHOIR_OK) {
		chi_free(w);
		return NULL;
	}
	chi_mutex_lock(&crew->lock);
	w->next = crew->all;
	crew->all = w;
	chi_mutex_unlock(&crew->lock);
	return w;
}

void chi_crew_rest(chi_worker *w)
{
	struct chi_crew *crew = w->crew;
	if (w->gone)
		return;
	chi_mutex_lock(&crew->lock);
	w->later_idle = NULL;
	w->next_idle = crew->idle;
	*(crew->idle == NULL ? &crew->longest_idle : &crew->idle->later_idle) = w;
	crew->idle = w;
	chi_mutex_unlock(&crew->lock);
}

// With the lock held: an idle worker less, or NULL. What it needs may still be in the cache of who
// rested last. Where thousands of replicas wait, each on its thread, they sleep in few queues of
// the system, which finds who is to wake by going along its queue: who rested first stands first.
static chi_worker *take_idle(struct chi_crew *crew, bool longest)
{
	chi_worker *w = longest ? crew->longest_idle : crew->idle;
	if (w == NULL)
		return NULL;
	*(w->later_idle == NULL ? &crew->idle : &w->later_idle->next_idle) = w->next_idle;
	*(w->next_idle == NULL ? &crew->longest_idle : &w->next_idle->later_idle) = w->later_idle;
	return w;
}

void chi_crew_rest_all(chi_worker *sent)
{
	while (sent != NULL) {
		chi_worker *next = sent->next_idle;
		chi_crew_rest(sent);
		sent = next;
	}
}

// Gives a lane's worker a job, the one that has rested longest if there are others at work on the
// lane; it is put in front of *sent, if there is one. A failure leaves nothing behind.
static choir_status send(choir_strategy *s, int lane, const job *j, chi_worker **sent)
{
	struct chi_crew *crew = &s->crew[lane];
	chi_mutex_lock(&crew->lock);
	chi_worker *w = take_idle(crew, j->joins);
	chi_mutex_unlock(&crew->lock);
	if (w == NULL && (w = new_worker(crew)) == NULL)
		return choir_error_status();
	w->run = j->run;
	w->help = j->help;
	w->lane = lane;
	if (sent != NULL) {
		w->next_idle = *sent;
		*sent = w;
	}
	send_word(w);
	return CHOIR_OK;
}

choir_status chi_crew_send(choir_strategy *s, int lane, chi_run *run)
{
	const job j = { .run = run };
	return send(s, lane, &j, run->lane[lane].shared ? NULL : &run->sent);
}

choir_status chi_crew_join(choir_strategy *s, int lane, chi_run *run)
{
	const job j = { .run = run, .joins = true };
	return send(s, lane, &j, NULL);
}

choir_status chi_crew_all(choir_strategy *s, chi_crew_fn *fn, void *arg)
{
	struct chi_help help = { .fn = fn, .arg = arg };
	chi_gate *helped = &s->crew[0].helped;
	const uint32_t before_all = chi_atomic32_load(&helped->word);
	uint32_t helpers = 0;
	chi_worker *sent = NULL;
	chi_error before;
	chi_error_save(&before);
	for (int lane = 1; lane < s->lanes; lane++)
		helpers += send(s, lane, &(job){ .help = &help }, &sent) == CHOIR_OK;
	chi_error_restore(&before);
	fn(arg);
	for (uint32_t now; (now = chi_atomic32_load(&helped->word)) - before_all < helpers;)
		(void) chi_gate_wait(helped, now, s->crew[0].spin, chi_clock_deadline(-1));
	chi_crew_rest_all(sent);
	return chi_atomic32_load(&help.left) == 0 ? CHOIR_OK
											  : choir_fail(CHOIR_STATE, "%s", CHI_WAS_LEFT);
}

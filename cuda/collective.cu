// How members of a group meet for a collective. The last one to join queues the work on streams of
// the table, behind events of the members' streams. Then a member's stream waits for the results,
// or the host if the collective is not in stream order.
#include "collective.h"

#include <chrono>
#include <cstring>
#include <new>
#include <thread>

namespace choir_cuda
{

static const double LATE_SECONDS = 60; // beyond a wait's own limit, for work that is queued

bool find_members(const choir_group *group, device *d[MAX_MEMBERS])
{
	if (group->members > MAX_MEMBERS)
		return false;
	for (int i = 0; i < group->members; i++) {
		void *self = with.device_self(group->devices[i]);
		if (self == NULL)
			return false;
		d[i] = device_of(self);
	}
	return true;
}

static choir_status open_member(cross *x, int i)
{
	on_gpu on(x->d[i]->gpu);
	CHOIR_TRY(open_stream(&x->d[i], &x->own[i]));
	for (slot &s : x->slots) {
		TRY(cudaEventCreateWithFlags(&s.joined[i], cudaEventDisableTiming));
		TRY(cudaEventCreateWithFlags(&s.done[i], cudaEventDisableTiming));
	}
	return CHOIR_OK;
}

choir_status open_cross(
		void *self, const choir_group *group, queue_fn *queue_sum, queue_fn *queue_broadcast)
{
	CHOIR_TRY(check_process());
	cross *x = new (std::nothrow) cross();
	*(cross **) self = x;
	if (x == NULL)
		return CHOIR_NO_MEMORY;
	x->group = group;
	x->queue_sum = queue_sum;
	x->queue_broadcast = queue_broadcast;
	if (!find_members(group, x->d))
		return with.fail(CHOIR_UNSUPPORTED, "the %d devices are not all GPUs", group->members);
	for (int i = 0; i < group->members; i++)
		CHOIR_TRY(open_member(x, i));
	return CHOIR_OK;
}

static void close_member(cross *x, int i)
{
	on_gpu on(x->d[i]->gpu);
	if (x->own[i] != NULL)
		close_stream(&x->own[i]);
	for (slot &s : x->slots)
		for (cudaEvent_t event : { s.joined[i], s.done[i] })
			if (event != NULL)
				(void) cudaEventDestroy(event);
	if (x->scratch[i] != NULL)
		(void) cudaFree(x->scratch[i]);
	if (x->comm[i] != NULL)
		(void) nccl()->ncclCommDestroy(x->comm[i]);
	(void) cudaGetLastError();
}

void close_cross(void *self)
{
	cross *x = cross_of(self);
	if (x == NULL || check_process() != CHOIR_OK)
		return;
	for (int i = 0; i < x->group->members; i++)
		if (x->d[i] != NULL)
			close_member(x, i);
	delete x;
}

static bool are_equal(const choir_collective *a, const choir_collective *b)
{
	return a->sequence == b->sequence && a->kind == b->kind && a->dtype == b->dtype &&
			a->elements == b->elements && a->root == b->root && strcmp(a->name, b->name) == 0;
}

static choir_status check_collectives(const cross *x, const slot *s)
{
	const choir_collective *c = s->c[0];
	for (int i = 1; i < x->group->members; i++)
		if (!are_equal(c, s->c[i]))
			return with.fail(CHOIR_STATE,
					"device 0 joined \"%.40s\" (number %llu), device %d \"%.40s\" (number %llu)",
					c->name, (unsigned long long) c->sequence, i, s->c[i]->name,
					(unsigned long long) s->c[i]->sequence);
	if (c->root < 0 || c->root >= x->group->members)
		return with.fail(CHOIR_INVALID, "%s: its root is device %d of %d", c->name, c->root,
				x->group->members);
	if (c->kind == CHOIR_BROADCAST && s->c[c->root]->n == 0)
		return with.fail(CHOIR_INVALID, "%s: device %d has nothing to send", c->name, c->root);
	return CHOIR_OK;
}

// Needs the lock, by the last member to join.
static void launch_collective(cross *x, slot *s)
{
	const choir_collective *c = s->c[0];
	choir_status status = check_collectives(x, s);
	if (status == CHOIR_OK && c->elements > 0)
		status = (c->kind == CHOIR_BROADCAST ? x->queue_broadcast : x->queue_sum)(x, s);
	if (status != CHOIR_OK) {
		s->status = status;
		s->text = with.error();
	}
	s->launched = true;
}

static choir_status join(void *self, int member, const choir_collective *c, uint64_t *request)
{
	CHOIR_TRY(check_process());
	cross *x = cross_of(self);
	stream *made_on = stream_of(c->stream);
	std::unique_lock<std::mutex> hold(x->lock);
	if (x->aborted)
		return with.fail(CHOIR_CANCELLED, "%s: cancelled", c->name);
	slot *s = &x->slots[x->next[member] % SLOTS];
	{
		on_gpu on(x->d[member]->gpu);
		CHOIR_TRY(CALL(x->d[member], cudaEventRecord, s->joined[member], made_on->s));
	}
	*request = x->next[member]++;
	s->c[member] = c;
	s->from[member] = made_on;
	if (++s->arrived == x->group->members)
		launch_collective(x, s);
	x->changed.notify_all();
	return CHOIR_OK;
}

// What was queued runs out, however the wait ends, because members then take their memory away.
static choir_status await_done(cross *x, slot *s, double seconds)
{
	const double begun = now();
	for (int i = 0; i < x->group->members; i++) {
		on_gpu on(x->d[i]->gpu);
		for (unsigned round = 0; s->works[i]; round++) {
			const cudaError_t error = cudaEventQuery(s->done[i]);
			if (error == cudaSuccess)
				break;
			if (error != cudaErrorNotReady)
				return check_on(x->d[i], error, s->c[i]->name);
			if (seconds >= 0 && now() - begun > seconds + LATE_SECONDS)
				return with.fail(CHOIR_TIMEOUT, "%s: the GPUs have not made the sum after %g s",
						s->c[i]->name, now() - begun);
			if (round > 100)
				std::this_thread::sleep_for(std::chrono::microseconds(5));
		}
	}
	return CHOIR_OK;
}

static void clear(slot *s)
{
	s->arrived = s->left = 0;
	s->launched = s->telling = s->told = false;
	s->status = CHOIR_OK;
	for (bool &w : s->works)
		w = false;
}

// Whether an earlier member has the same result.
static bool is_repeated(const slot *s, int member)
{
	for (int i = 0; i < member; i++)
		if (s->c[i]->result == s->c[member]->result)
			return true;
	return false;
}

// The first thread that waits calls the functions of all members: one thread may wait for all.
static choir_status tell_all(cross *x, slot *s)
{
	for (int i = 0; i < x->group->members; i++) {
		const choir_collective *c = s->c[i];
		if (c->done != NULL && c->elements > 0 && !is_repeated(s, i))
			CHOIR_TRY(c->done(
					c->user, 0, c->elements, c->result != NULL ? c->result : x->scratch[0]));
	}
	return CHOIR_OK;
}

// Needs the lock. Waits until all members have joined; each that joins begins the time anew.
static choir_status await_launch(
		cross *x, slot *s, std::unique_lock<std::mutex> &hold, double seconds, const char *name)
{
	int before = s->arrived;
	double begun = now();
	while (!s->launched && !x->aborted) {
		if (seconds < 0)
			x->changed.wait(hold);
		else
			x->changed.wait_for(hold, std::chrono::duration<double>(seconds - (now() - begun)));
		if (s->arrived != before) {
			before = s->arrived;
			begun = now();
		} else if (!s->launched && !x->aborted && seconds >= 0 && now() - begun >= seconds) {
			x->aborted = true;
			x->changed.notify_all();
			return with.fail(CHOIR_TIMEOUT, "%s: %d of %d devices joined within %g s", name,
					s->arrived, x->group->members, seconds);
		}
	}
	return CHOIR_OK;
}

// Needs the lock, and releases it meanwhile.
static void finish(cross *x, slot *s, std::unique_lock<std::mutex> &hold, double seconds)
{
	s->telling = true;
	const bool sums = s->status == CHOIR_OK;
	hold.unlock();
	choir_status status = await_done(x, s, seconds);
	if (status == CHOIR_OK && sums)
		status = tell_all(x, s);
	hold.lock();
	if (status != CHOIR_OK && s->status == CHOIR_OK) {
		s->status = status;
		s->text = with.error();
	}
	s->told = true;
	x->changed.notify_all();
}

// Needs the lock. The member's stream goes on behind the collective.
static choir_status follow_results(const cross *x, const slot *s, int member)
{
	stream *own = s->from[member];
	on_gpu on(own->d->gpu);
	for (int i = 0; i < x->group->members; i++) {
		follow(own, s->from[i]);
		if (s->works[i])
			CHOIR_TRY(CALL(own->d, cudaStreamWaitEvent, own->s, s->done[i], 0));
	}
	own->dirty = true;
	return CHOIR_OK;
}

static choir_status wait_for_result(void *self, int member, uint64_t request, double seconds)
{
	CHOIR_TRY(check_process());
	cross *x = cross_of(self);
	std::unique_lock<std::mutex> hold(x->lock);
	slot *s = &x->slots[request % SLOTS];
	const char *name = s->c[member]->name;
	CHOIR_TRY(await_launch(x, s, hold, seconds, name));
	choir_status followed = CHOIR_OK;
	if (s->launched && s->status == CHOIR_OK && s->c[member]->in_stream)
		followed = follow_results(x, s, member);
	else if (s->launched && !s->telling)
		finish(x, s, hold, seconds);
	while (s->telling && !s->told)
		x->changed.wait(hold);
	CHOIR_TRY(followed);
	if (x->aborted)
		return with.fail(CHOIR_CANCELLED, "%s: cancelled", name);
	const choir_status status =
			s->status == CHOIR_OK ? CHOIR_OK : with.fail(s->status, "%s", s->text.c_str());
	if (++s->left == x->group->members)
		clear(s);
	return status;
}

static void abort_group(void *self)
{
	cross *x = cross_of(self);
	std::lock_guard<std::mutex> hold(x->lock);
	x->aborted = true;
	x->changed.notify_all();
}

static void reset_group(void *self)
{
	cross *x = cross_of(self);
	if (check_process() != CHOIR_OK)
		return;
	std::lock_guard<std::mutex> hold(x->lock);
	for (int i = 0; i < x->group->members; i++) {
		on_gpu on(x->d[i]->gpu);
		(void) cudaStreamSynchronize(x->own[i]->s);
		x->next[i] = 0;
	}
	for (slot &s : x->slots)
		clear(&s);
	x->aborted = false;
}

choir_cross_device_ops_table cross_slots()
{
	choir_cross_device_ops_table t = {};
	t.size = sizeof t;
	t.version = CHOIR_TABLE_VERSION;
	t.self_size = sizeof(cross *);
	t.close = close_cross;
	t.join = join;
	t.wait = wait_for_result;
	t.abort = abort_group;
	t.reset = reset_group;
	return t;
}

} // namespace choir_cuda

// The engine: one thread that does the tasks of all streams, always the next one of a stream that
// it chooses by a seed, after a short random wait.
#include "state.h"

#include <csetjmp>
#include <csignal>
#include <unistd.h>

namespace standin
{

thread_local bool is_engine = false;
sigjmp_buf engine_jump;
volatile sig_atomic_t engine_jumps = 0;
void *volatile fault_address;
struct sigaction earlier_segv, earlier_bus;

void on_fault(int number, siginfo_t *info, void *context)
{
	if (is_engine && engine_jumps) {
		fault_address = info->si_addr;
		siglongjmp(engine_jump, 1);
	}
	const int d = device_of(info->si_addr);
	if (d >= 0) {
		char text[160];
		const int n = snprintf(text, sizeof text,
				"stand-in: the host touched %p, which is memory of device %d\n", info->si_addr, d);
		(void) !write(2, text, (size_t) n);
	}
	const struct sigaction *before = number == SIGBUS ? &earlier_bus : &earlier_segv;
	if ((before->sa_flags & SA_SIGINFO) != 0 && before->sa_sigaction != NULL)
		before->sa_sigaction(number, info, context);
	else
		sigaction(number, before, NULL);
}

// The program, or its tests, may have put handlers of their own in place.
void take_faults()
{
	struct sigaction action = {}, now;
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigaction(SIGSEGV, NULL, &now);
	if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != on_fault)
		sigaction(SIGSEGV, &action, &earlier_segv);
	sigaction(SIGBUS, NULL, &now);
	if ((now.sa_flags & SA_SIGINFO) == 0 || now.sa_sigaction != on_fault)
		sigaction(SIGBUS, &action, &earlier_bus);
}

void open_uses(const std::vector<use> &uses)
{
	for (const use &u : uses)
		if (u.of->device >= 0)
			u.of->open = std::max(u.of->open, u.writes ? 2 : 1);
	for (const use &u : uses)
		if (u.of->open > 0)
			mprotect(u.of->first_page(), u.of->page_bytes(),
					u.of->open == 2 ? PROT_READ | PROT_WRITE : PROT_READ);
}

void close_uses(const std::vector<use> &uses)
{
	for (const use &u : uses) {
		if (u.of->open > 0)
			mprotect(u.of->first_page(), u.of->page_bytes(), PROT_NONE);
		u.of->open = 0;
	}
}

// By the engine, without the lock: what is wrong, or nothing.
std::string do_work(const task &t)
{
	std::string wrong;
	take_faults();
	open_uses(t.uses);
	if (sigsetjmp(engine_jump, 1) == 0) {
		engine_jumps = 1;
		wrong = t.work();
	} else {
		leave_kernel();
		wrong = format("reached %p, which %s", fault_address,
				device_of(fault_address) >= 0
						? "none of its arguments leads to, or which it only reads"
						: "is no memory of a device");
	}
	engine_jumps = 0;
	close_uses(t.uses);
	return wrong;
}

void finish(standin_stream *s)
{
	s->finished = s->queue.front().number;
	s->queue.pop_front();
	s->busy = false;
	R().progress.notify_all();
}

bool is_wanted(const standin_stream *s, clock_type::time_point now)
{
	const task &t = s->queue.front();
	return !R().lazy || t.number <= s->wanted || s->queue.size() > 64 ||
			now - t.queued > std::chrono::milliseconds(5);
}

void want(standin_stream *s, uint64_t number)
{
	if (s->wanted >= number)
		return;
	s->wanted = number;
	for (const task &t : s->queue)
		if (t.other != NULL && t.number <= number)
			want(t.other.get(), t.until);
}

void run_host(lock_type &lock, const std::shared_ptr<standin_stream> &s)
{
	std::function<void()> fn = s->queue.front().host;
	deliver(s.get(), NULL);
	// The host's code that runs now knows that what stood before it is done.
	observe(s, s->queue.front().number - 1, s->queue.front().known);
	std::thread([s, fn] {
		in_host_function = true;
		fn();
		lock_type lock(R().lock);
		finish(s.get());
		R().work.notify_all();
	}).detach();
	(void) lock;
}

// Whether all who take part have come.
bool is_met(const meeting &m)
{
	bool all = m.open == 0;
	for (auto &k : m.members)
		all = all && !k.first->queue.empty() && k.first->queue.front().number == k.second &&
				!k.first->busy;
	return all;
}

void run_meeting(lock_type &lock, std::shared_ptr<meeting> m)
{
	for (auto &k : m->members)
		k.first->busy = true;
	lock.unlock();
	for (auto &c : m->copies)
		memcpy(std::get<0>(c), std::get<1>(c), std::get<2>(c));
	lock.lock();
	for (auto &k : m->members)
		finish(k.first.get());
}

void run_work(lock_type &lock, const std::shared_ptr<standin_stream> &s)
{
	runtime &r = R();
	task &t = s->queue.front();
	device_state *d = &r.device[s->device];
	std::string wrong;
	for (const use &u : t.uses) {
		if (u.of->freed)
			wrong = "uses memory that was freed while it was queued";
		if (u.of->device < 0)
			deliver(NULL, u.of.get());
	}
	if (wrong.empty() && d->lost == cudaSuccess) {
		lock.unlock();
		wrong = do_work(t);
		lock.lock();
	}
	if (!wrong.empty() && d->lost == cudaSuccess) {
		report_locked(t.name + " on " + name_of(s.get()) + ": " + wrong);
		d->lost = cudaErrorIllegalAddress;
	}
	finish(s.get());
}

void serve()
{
	runtime &r = R();
	is_engine = true;
	static char stack[64 << 10];
	const stack_t own = { .ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack };
	sigaltstack(&own, NULL);
	pthread_setname_np(pthread_self(), "standin");
	lock_type lock(r.lock);
	for (;;) {
		while (r.paused)
			r.work.wait(lock);
		const auto now = clock_type::now();
		auto soonest = now + std::chrono::hours(1);
		std::vector<std::shared_ptr<standin_stream>> ready;
		for (size_t i = 0; i < r.all.size();) {
			std::shared_ptr<standin_stream> s = r.all[i];
			while (!s->busy && !s->queue.empty() && s->queue.front().other != NULL &&
					s->queue.front().other->finished >= s->queue.front().until)
				finish(s.get());
			if (s->queue.empty()) {
				r.all.erase(r.all.begin() + (long) i);
				continue;
			}
			i++;
			const task &t = s->queue.front();
			if (s->busy || t.other != NULL || (t.meets != NULL && !is_met(*t.meets)))
				continue;
			if (!is_wanted(s.get(), now))
				soonest = std::min(soonest, t.queued + std::chrono::milliseconds(5));
			else if (t.not_before > now)
				soonest = std::min(soonest, t.not_before);
			else
				ready.push_back(s);
		}
		if (ready.empty()) {
			// A wait may have been ended by what was just finished above.
			bool again = false;
			for (auto &s : r.all)
				again = again ||
						(!s->busy && !s->queue.empty() && s->queue.front().other != NULL &&
								s->queue.front().other->finished >= s->queue.front().until);
			if (!again)
				r.work.wait_until(lock, soonest);
			continue;
		}
		std::shared_ptr<standin_stream> s = ready[draw(ready.size())];
		if (s->queue.front().meets != NULL) {
			run_meeting(lock, s->queue.front().meets);
			continue;
		}
		s->busy = true;
		if (s->queue.front().host)
			run_host(lock, s);
		else
			run_work(lock, s);
	}
}

} // namespace standin

// The order of queued uses of memory: by streams, events and waits of the host (vector clocks).
#include "state.h"

namespace standin
{

static bool is_before(const record &was, const standin_stream *s)
{
	if (was.stream.get() == s || was.number <= was.stream->observed)
		return true;
	auto it = s->known.find(was.stream);
	return it != s->known.end() && was.number <= it->second;
}

// Notes that a task uses memory, and tells of an earlier use that nothing puts before it.
void note_use(const std::shared_ptr<standin_stream> &s, const task &t, const use &u)
{
	block *b = u.of.get();
	std::vector<record> kept;
	for (record &was : b->records) {
		if (was.number <= was.stream->observed)
			continue;
		const bool meets = was.first < u.last && u.first < was.last && (was.writes || u.writes);
		if (meets && !is_before(was, s.get()))
			report_locked(format(
					"race: %s on %s %s what %s on %s %s, of %s, and nothing orders the two",
					t.name.c_str(), name_of(s.get()).c_str(), u.writes ? "writes" : "reads",
					was.name.c_str(), name_of(was.stream.get()).c_str(),
					was.writes ? "writes" : "reads", describe(b).c_str()));
		const bool hidden = was.stream == s && was.first >= u.first && was.last <= u.last &&
				(u.writes || !was.writes) && was.writes == u.writes;
		if (!hidden)
			kept.push_back(std::move(was));
	}
	kept.push_back({ s, t.number, u.first, u.last, u.writes, t.name });
	b->records.swap(kept);
}

// With the lock held. only NULL: whatever somebody has waited for; a stream, or memory: all of it.
void deliver(const standin_stream *only, const block *of)
{
	std::deque<delivery> &all = R().deliveries;
	for (auto it = all.begin(); it != all.end();) {
		const bool now = of != NULL ? it->of.get() == of
				: only != NULL		? it->stream.get() == only
									: it->number <= it->stream->observed;
		if (now && !it->of->freed)
			memcpy(it->to, it->data.data(), it->data.size());
		it = now ? all.erase(it) : std::next(it);
	}
}

// The host knows that what s had queued up to number is done, and all that this waited for.
void observe(const std::shared_ptr<standin_stream> &s, uint64_t number, const clock_of &known)
{
	s->observed = std::max(s->observed, number);
	for (auto &k : known)
		k.first->observed = std::max(k.first->observed, k.second);
	deliver(NULL, NULL);
}

void join_clock(clock_of *to, const clock_of &from)
{
	for (auto &k : from)
		if (k.second > k.first->observed) {
			uint64_t &own = (*to)[k.first];
			own = std::max(own, k.second);
		}
	for (auto it = to->begin(); it != to->end();)
		it = it->second <= it->first->observed ? to->erase(it) : std::next(it);
}

} // namespace standin

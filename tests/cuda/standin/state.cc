// Choices by a seed, reports, and the start of the stand-in from the environment.
#include "state.h"

#include <cstdarg>

namespace standin
{

runtime &R()
{
	static runtime *r = new runtime; // never freed: the engine may outlive main
	return *r;
}

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local bool in_host_function = false;

static unsigned from_environment(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);
	return text == NULL || *text == '\0' ? otherwise : (unsigned) strtoul(text, NULL, 10);
}

uint64_t draw(uint64_t below)
{
	uint64_t x = R().random += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return below == 0 ? 0 : x % below;
}

// The same for the engine alone, which holds no lock.
uint64_t draw_alone(uint64_t below)
{
	static uint64_t state = 88172645463325252u;
	uint64_t x = state += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return below == 0 ? 0 : x % below;
}

// With the lock held, as all that follows but the calls of CUDA.
void report_locked(const std::string &text)
{
	runtime &r = R();
	r.reports++;
	r.last_report = text;
	if (!r.quiet)
		fprintf(stderr, "stand-in: %s\n", text.c_str());
	if (r.abort_on_report)
		abort();
}

std::string format(const char *fmt, ...)
{
	char text[1000];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return text;
}

std::string name_of(const standin_stream *s)
{
	return format("stream %d of device %d", s->id, s->device);
}

void start_locked()
{
	runtime &r = R();
	if (r.started)
		return;
	r.started = true;
	r.devices = (int) std::min(from_environment("STANDIN_DEVICES", 4), (unsigned) MOST_DEVICES);
	r.driver = (int) from_environment("STANDIN_DRIVER", CUDART_VERSION);
	r.memory = (size_t) from_environment("STANDIN_MEMORY", 4096) << 20;
	r.random = r.seed = from_environment("STANDIN_SEED", 1);
	r.delay = from_environment("STANDIN_DELAY", 20);
	r.lazy = from_environment("STANDIN_LAZY", 0) != 0;
	r.peers = from_environment("STANDIN_PEER", 1) != 0;
	r.abort_on_report = from_environment("STANDIN_ABORT", 0) != 0;
	r.quiet = from_environment("STANDIN_QUIET", 0) != 0;
	for (int i = 0; i < r.devices; i++)
		if (!map_device(&r.device[i]))
			r.devices = i;
	take_faults();
	std::thread(serve).detach();
}

} // namespace standin

// Instruction sets.
#include "base/instruction_set.h"

#include "base/atomic.h"
#include "choir/library.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
static const char *const names[CHI_INSTRUCTION_SETS] = { "x86-64", "x86-64 avx2",
	"x86-64 avx512" };
static const char *const short_names[CHI_INSTRUCTION_SETS] = { "x86-64", "avx2", "avx512" };
enum { KNOWN = CHI_INSTRUCTION_SETS };
#elif defined(__aarch64__)
static const char *const names[CHI_INSTRUCTION_SETS] = { "aarch64" };
static const char *const short_names[CHI_INSTRUCTION_SETS] = { "aarch64" };
enum { KNOWN = 1 };
#else
static const char *const names[CHI_INSTRUCTION_SETS] = { "other" };
static const char *const short_names[CHI_INSTRUCTION_SETS] = { "other" };
enum { KNOWN = 1 };
#endif

// The chosen set plus 1 (0: none yet), and IN_USE once kernels depend on it.
enum { IN_USE = 1 << 8 };
static chi_atomic32 chosen;

const char *chi_instruction_set_name(chi_instruction_set set)
{
	return names[set];
}

static bool find(const char *const list[], const char *name, chi_instruction_set *set)
{
	for (int i = 0; i < KNOWN; i++)
		if (strcmp(name, list[i]) == 0) {
			*set = (chi_instruction_set) i;
			return true;
		}
	return false;
}

bool chi_instruction_set_find(const char *name, chi_instruction_set *set)
{
	return find(names, name, set);
}

chi_instruction_set chi_instruction_set_of_processor(void)
{
#if defined(__x86_64__)
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return CHI_INSTRUCTION_SET_BASE;
	const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
			__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
	return wide ? CHI_INSTRUCTION_SET_AVX512 : CHI_INSTRUCTION_SET_AVX2;
#else
	return CHI_INSTRUCTION_SET_BASE;
#endif
}

bool chi_instruction_set_has_more(chi_instruction_set set)
{
#if defined(__x86_64__)
	if (set == CHI_INSTRUCTION_SET_BASE)
		return __builtin_cpu_supports("avx");
	return set == CHI_INSTRUCTION_SET_AVX2 && __builtin_cpu_supports("avx512f");
#else
	(void) set;
	return false;
#endif
}

static const char *asked_for(void)
{
	const char *name = getenv("CHOIR_INSTRUCTION_SET");
	return name == NULL || name[0] == '\0' ? NULL : name;
}

choir_status chi_instruction_set_check(void)
{
	const char *name = asked_for();
	chi_instruction_set set;
	if (name == NULL || find(short_names, name, &set) || find(names, name, &set))
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID, "CHOIR_INSTRUCTION_SET: '%.40s' is unknown; known: %s%s",
			name, KNOWN > 1 ? "avx512, avx2, " : "", short_names[0]);
}

static uint32_t current(void)
{
	const uint32_t known = chi_atomic32_load(&chosen);
	if (known != 0)
		return known;
	chi_instruction_set set = chi_instruction_set_of_processor(), asked = set;
	const char *name = asked_for();
	if (name != NULL && (find(short_names, name, &asked) || find(names, name, &asked)))
		set = asked < set ? asked : set;
	(void) chi_atomic32_change(&chosen, 0, (uint32_t) set + 1);
	return chi_atomic32_load(&chosen);
}

static chi_instruction_set set_of(uint32_t word)
{
	return (chi_instruction_set) ((word & (IN_USE - 1)) - 1);
}

choir_status chi_instruction_set_lower(chi_instruction_set max)
{
	for (;;) {
		const uint32_t now = current();
		if (set_of(now) <= max)
			return CHOIR_OK;
		if ((now & IN_USE) != 0)
			return choir_fail(CHOIR_STATE,
					"instruction set: kernels for \"%s\" are in use already, but "
					"\"%s\" is needed; make the cluster before the first operation",
					names[set_of(now)], names[max]);
		if (chi_atomic32_change(&chosen, now, (uint32_t) max + 1))
			return CHOIR_OK;
	}
}

chi_instruction_set chi_instruction_set_use(void)
{
	uint32_t now = current();
	while ((now & IN_USE) == 0) {
		(void) chi_atomic32_change(&chosen, now, now | IN_USE);
		now = chi_atomic32_load(&chosen);
	}
	return set_of(now);
}

const char *choir_instruction_set(void)
{
	return names[set_of(current())];
}

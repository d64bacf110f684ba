// Partial sums and their sums are computed by the CPU's plain kernels.
#include "cross_device_group.h"

#include "kernel_sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static choir_status add_device(chi_group *g, const char *name)
{
	if (g->most == CHI_MEMBERS)
		return choir_fail(
				CHOIR_INVALID, "suite: .members has more than %d devices", (int) CHI_MEMBERS);
	choir_device *d = choir_device_find(name);
	if (d == NULL)
		return choir_error_status();
	g->device[g->most++] = d;
	return CHOIR_OK;
}

choir_status chi_group_find(chi_group *g, const choir_suite_options *o)
{
	const char *names = o->members == NULL ? "cpu:0,cpu:1,cpu:2" : o->members;
	*g = (chi_group){ .o = o, .t = o->cross_device_ops, .cpu = choir_device_find("cpu:0") };
	if (g->cpu == NULL)
		return choir_error_status();
	if (o->memory != NULL && o->memory->size != sizeof *o->memory)
		return choir_fail(CHOIR_INVALID,
				"suite: .memory of %zu bytes; %zu bytes are needed: use CHOIR_OPTIONS",
				o->memory->size, sizeof *o->memory);
	while (*names != '\0') {
		char name[64];
		const size_t length = strcspn(names, ",");
		snprintf(name, sizeof name, "%.*s", (int) length, names);
		CHOIR_TRY(add_device(g, name));
		names += length;
		names += *names == ',';
	}
	return g->most > 0 ? CHOIR_OK
					   : choir_fail(CHOIR_INVALID, "suite: .members is empty; a device is needed");
}

bool chi_group_is_on_host(const chi_group *g)
{
	return g->o->memory == NULL;
}

static void *allocate(const chi_group *g, choir_device *d, size_t bytes)
{
	void *memory = NULL;
	if (g->o->memory != NULL)
		memory = g->o->memory->allocate(d, bytes + 1);
	else if (posix_memalign(&memory, 64, bytes + 1) != 0)
		memory = NULL;
	if (memory == NULL)
		choir_fail(CHOIR_NO_MEMORY, "suite: %zu bytes on %s", bytes, choir_device_name(d));
	return memory;
}

static void release(const chi_group *g, choir_device *d, void *memory)
{
	if (g->o->memory == NULL)
		free(memory);
	else if (memory != NULL)
		g->o->memory->release(d, memory, g->bytes + 1);
}

static choir_status copy(
		const chi_group *g, choir_device *d, void *to, const void *from, size_t bytes)
{
	if (g->o->memory != NULL)
		return g->o->memory->copy(d, to, from, bytes);
	memcpy(to, from, bytes);
	return CHOIR_OK;
}

choir_status chi_group_open(chi_group *g, int members, int replicas)
{
	int first = 0;
	chi_group_close(g);
	for (int i = 0; i < members; i++) {
		chi_member *m = &g->member[i];
		*m = (chi_member){ .device = g->device[i], .first = first };
		first = m->last = first + replicas / members + (i < replicas % members);
		if (g->o->memory != NULL && (m->stream = g->o->memory->stream(m->device)) == NULL)
			return choir_error_status();
	}
	g->group = (choir_group){ sizeof g->group, members, replicas, g->device };
	g->self = calloc(1, g->t->self_size + 1);
	if (g->self == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "suite: a group");
	return g->t->open == NULL ? CHOIR_OK
							  : chi_suite_expect("open", g->t->open(g->self, &g->group), CHOIR_OK);
}

void chi_group_close(chi_group *g)
{
	chi_group_drop(g);
	if (g->self != NULL && g->t->close != NULL)
		g->t->close(g->self);
	free(g->self);
	g->self = NULL;
	g->group.members = 0;
}

// Sets to to the result of an operation of it and b.
static choir_status apply(
		const chi_group *g, const char *operation, void *to, void *b, choir_shape b_shape)
{
	const choir_shape shape = CHOIR_SHAPE(g->elements);
	const choir_buffer in[] = { { to, g->dtype, shape }, { b, g->dtype, b_shape } };
	choir_buffer out = in[0];
	const choir_kernel_call call = { .size = sizeof call, .n = 2, .in = in, .out = &out };
	return g->elements == 0 ? CHOIR_OK : choir_kernel_run(g->cpu, operation, "plain", &call);
}

choir_status chi_group_divide(chi_group *g, double by)
{
	float narrow = (float) by;
	void *divisor = g->dtype == CHOIR_F32 ? (void *) &narrow : (void *) &by;
	return apply(g, "divide", g->expected, divisor, CHOIR_SCALAR);
}

// The left side of the canonical tree over replicas lo .. hi - 1 has the largest power of two of
// them that is less than all.
static int split(int lo, int hi)
{
	int half = 1;
	while (2 * half < hi - lo)
		half *= 2;
	return lo + half;
}

static choir_status sum(chi_group *g, int lo, int hi, unsigned char *to)
{
	if (hi - lo == 1) {
		memcpy(to, g->all + (size_t) lo * g->bytes, g->bytes);
		return CHOIR_OK;
	}
	unsigned char *right = malloc(g->bytes + 1);
	if (right == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "suite: a sum");
	choir_status status = sum(g, lo, split(lo, hi), to);
	if (status == CHOIR_OK)
		status = sum(g, split(lo, hi), hi, right);
	if (status == CHOIR_OK)
		status = apply(g, "add", to, right, CHOIR_SHAPE(g->elements));
	free(right);
	return status;
}

// Adds the sums of the largest nodes within the member's replicas.
static choir_status add_parts(chi_group *g, chi_member *m, int lo, int hi)
{
	if (lo >= m->last || hi <= m->first)
		return CHOIR_OK;
	if (lo < m->first || hi > m->last) {
		CHOIR_TRY(add_parts(g, m, lo, split(lo, hi)));
		return add_parts(g, m, split(lo, hi), hi);
	}
	void *memory = allocate(g, m->device, g->bytes);
	unsigned char *host = malloc(g->bytes + 1);
	choir_status status = memory == NULL || host == NULL ? CHOIR_NO_MEMORY : sum(g, lo, hi, host);
	if (memory != NULL)
		m->part[m->c.n++] = (choir_partial_sum){ lo, hi, memory };
	if (status == CHOIR_OK)
		status = copy(g, m->device, memory, host, g->bytes);
	free(host);
	return status;
}

// Numbers of many magnitudes, so that sums depend on the order. They come again after PERIOD
// numbers, a prime: not at the same place of a chunk, nor of another replica's values.
static choir_status fill(chi_group *g, uint64_t seed)
{
	enum { PERIOD = 8209 };
	static const choir_shape period = { 1, { PERIOD } };
	double numbers[PERIOD];
	unsigned char drawn[PERIOD * sizeof *numbers];
	const choir_buffer from = { numbers, CHOIR_F64, period };
	choir_buffer to = { drawn, g->dtype, period };
	const size_t each = chi_sample_bytes(&to), all = g->bytes * (size_t) g->group.replicas;
	for (int i = 0; i < PERIOD; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX
		numbers[i] = ldexp((double) (seed >> 11) * 0x1p-53 - 0.5, i * 7 % 24);
	}
	CHOIR_TRY(chi_sample_cast(g->cpu, &from, &to));
	for (size_t at = 0; at < all; at += each)
		memcpy(g->all + at, drawn, all - at < each ? all - at : each);
	return CHOIR_OK;
}

choir_status chi_group_bring(chi_group *g, choir_collective_kind kind, choir_dtype dtype,
		int64_t elements, uint64_t seed)
{
	chi_group_drop(g);
	const choir_buffer one = { .dtype = dtype, .shape = CHOIR_SHAPE(elements) };
	g->dtype = dtype;
	g->elements = elements;
	g->bytes = chi_sample_bytes(&one);
	g->all = malloc(g->bytes * (size_t) g->group.replicas + 1);
	g->expected = malloc(g->bytes + 1);
	if (g->all == NULL || g->expected == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "suite: the values of replicas");
	CHOIR_TRY(fill(g, seed + 1));
	CHOIR_TRY(sum(g, 0, g->group.replicas, g->expected));
	for (int i = 0; i < g->group.members; i++) {
		chi_member *m = &g->member[i];
		m->result = allocate(g, m->device, g->bytes);
		if (m->result == NULL)
			return CHOIR_NO_MEMORY;
		m->c = (choir_collective){ .size = sizeof m->c,
			.sequence = seed,
			.name = "suite",
			.kind = kind,
			.dtype = dtype,
			.elements = elements,
			.divisor = 1,
			.partial_sums = m->part,
			.stream = m->stream,
			.result = m->result,
			.batch_bytes = seed % 2 == 0 ? 0 : (int64_t) 1 << 30 };
		CHOIR_TRY(add_parts(g, m, 0, g->group.replicas));
	}
	return CHOIR_OK;
}

void chi_group_drop(chi_group *g)
{
	for (int i = 0; i < g->group.members; i++) {
		chi_member *m = &g->member[i];
		for (size_t k = 0; k < 2 * CHI_REPLICAS; k++) {
			release(g, m->device, m->part[k].data);
			m->part[k].data = NULL;
		}
		release(g, m->device, m->result);
		m->result = NULL;
		m->c.n = 0;
	}
	free(g->all);
	free(g->expected);
	g->all = g->expected = NULL;
}

choir_status chi_group_meet(chi_group *g)
{
	choir_status status = CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < g->group.members; i++)
		status = g->t->join(g->self, i, &g->member[i].c, &g->member[i].request);
	for (int i = 0; status == CHOIR_OK && i < g->group.members; i++)
		status = g->t->wait(g->self, i, g->member[i].request, 20);
	return chi_suite_expect("join and wait", status, CHOIR_OK);
}

choir_status chi_group_check(const chi_group *g, int member, const void *expected)
{
	const chi_member *m = &g->member[member];
	unsigned char *found = malloc(g->bytes + 1);
	if (found == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "suite: a result");
	choir_status status = copy(g, m->device, found, m->result, g->bytes);
	const bool same = status == CHOIR_OK && memcmp(found, expected, g->bytes) == 0;
	for (size_t i = 0; i < g->bytes && status == CHOIR_OK && !same; i++)
		if (found[i] != ((const unsigned char *) expected)[i])
			status = choir_fail(CHOIR_INTERNAL,
					"member %d of %d, %d replicas, %lld elements of %s: byte %zu of the result is "
					"%d; %d is needed",
					member, g->group.members, g->group.replicas, (long long) g->elements,
					choir_dtype_name(g->dtype), i, found[i],
					((const unsigned char *) expected)[i]);
	free(found);
	return status;
}

choir_status chi_group_check_all(const chi_group *g)
{
	for (int i = 0; i < g->group.members; i++)
		CHOIR_TRY(chi_group_check(g, i, g->expected));
	return CHOIR_OK;
}

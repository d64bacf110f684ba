// AUTO is measured once, by the chief if there are workers.
#include "strategy/strategy_precision.h"

#include "op/kernel/kernel.h"

#include <string.h>

// A larger share of f32's time is not worth the lost digits.
#define WORTH 0.9

choir_status chi_strategy_check_precision(const choir_strategy_options *o)
{
	if ((unsigned) o->precision <= CHOIR_PRECISION_AUTO)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID,
			"strategy: .precision is %d; F32, TF32, MIXED_BF16, MIXED_F16 or AUTO is needed",
			(int) o->precision);
}

// A CPU without instructions for bf16 cannot be faster than f32.
static choir_status measure(choir_strategy *s)
{
	const bool cpu = strcmp(s->device[0]->table->kind, "cpu") == 0;
	double cost;
	s->precision = CHOIR_PRECISION_F32;
	if (cpu && !choir_precision_is_native(CHOIR_PRECISION_MIXED_BF16))
		return CHOIR_OK;
	CHOIR_TRY(choir_precision_measure(CHOIR_PRECISION_MIXED_BF16, s->device[0], &cost));
	if (cost < WORTH)
		s->precision = CHOIR_PRECISION_MIXED_BF16;
	return CHOIR_OK;
}

static choir_status check_wire(const choir_strategy *s)
{
	const choir_dtype wire = s->options.wire;
	const choir_buffer in[2] = { { NULL, wire, { 0, { 0 } } }, { NULL, wire, { 0, { 0 } } } };
	choir_buffer out = in[0];
	for (int i = 0; wire != CHOIR_F32 && i < s->devices; i++) {
		const choir_kernel_call call = {
			.size = sizeof call, .n = 2, .in = in, .out = &out, .device = s->device[i]->self
		};
		if (chi_kernel_find(s->device[i], &call, "add", wire) == NULL)
			return choir_fail(CHOIR_UNSUPPORTED,
					"strategy: .wire is %s, but %s cannot add %s; CHOIR_F32 is needed",
					choir_dtype_name(wire), choir_device_name(s->device[i]),
					choir_dtype_name(wire));
	}
	return CHOIR_OK;
}

choir_status chi_strategy_open_precision(choir_strategy *s)
{
	choir_cluster *c = s->options.cluster;
	CHOIR_TRY(check_wire(s));
	s->precision = s->options.precision;
	if (s->precision == CHOIR_PRECISION_DEFAULT)
		s->precision = CHOIR_PRECISION_F32;
	if (s->precision != CHOIR_PRECISION_AUTO)
		return CHOIR_OK;
	if (choir_strategy_is_chief(s))
		CHOIR_TRY(measure(s));
	return c == NULL || choir_cluster_workers(c) == 1
			? CHOIR_OK
			: choir_cluster_broadcast(c, 0, &s->precision, sizeof s->precision);
}

choir_precision choir_strategy_precision(const choir_strategy *s)
{
	return s == NULL ? CHOIR_PRECISION_F32 : s->owner->precision;
}

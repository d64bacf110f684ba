// --precision and --wire: their names, and what they mean on this machine.
#include "precision_option.h"

#include "command_options.h"

#include <stdio.h>
#include <string.h>

const char *const precision_names[] = { "f32", "tf32", "mixed_bf16", "mixed_f16", "auto", NULL };
const char precision_help[] = "precision: f32, tf32, mixed_bf16, mixed_f16, or auto,\n"
							  "which measures f32 and mixed_bf16 and chooses one (f32)";

choir_precision precision_of(const char *name)
{
	for (int p = CHOIR_PRECISION_F32; name != NULL && p <= CHOIR_PRECISION_AUTO; p++)
		if (strcmp(name, choir_precision_name((choir_precision) p)) == 0)
			return (choir_precision) p;
	return CHOIR_PRECISION_DEFAULT;
}

const char *const wire_names[] = { "f32", "f16", "bf16", NULL };
const char wire_help[] = "dtype in which gradients are summed and sent to other\n"
						 "workers: f32, f16 or bf16 (f32)";

choir_dtype wire_of(const char *name)
{
	const choir_dtype known[] = { CHOIR_F16, CHOIR_BF16 };
	for (size_t i = 0; name != NULL && i < sizeof known / sizeof known[0]; i++)
		if (strcmp(name, choir_dtype_name(known[i])) == 0)
			return known[i];
	return CHOIR_F32;
}

const choir_loss_scale *precision_loss_scale(const choir_strategy *s, choir_dtype wire)
{
	static const choir_loss_scale dynamic = { .size = sizeof dynamic };
	return choir_strategy_precision(s) == CHOIR_PRECISION_MIXED_F16 || wire == CHOIR_F16 ? &dynamic
																						 : NULL;
}

static void report_tf32(const char *who, const choir_device *d)
{
	char line[240];
	snprintf(line, sizeof line,
			"--precision tf32: %s has no TF32; all operations run in f32, with the bits of f32",
			choir_device_name(d));
	print_error(who, line);
}

// The processor's instructions say nothing about a device of another kind.
static bool has_instructions(choir_precision p, choir_device *d)
{
	if (strncmp(choir_device_name(d), "cpu:", 4) == 0)
		return choir_precision_is_native(p);
	return choir_precision_is_narrow(p, "matmul", d);
}

choir_status precision_report(const char *who, const char *name, const choir_strategy *s)
{
	const choir_precision asked = precision_of(name), taken = choir_strategy_precision(s);
	const choir_precision measured =
			asked == CHOIR_PRECISION_AUTO ? CHOIR_PRECISION_MIXED_BF16 : taken;
	char line[240];
	double cost;
	choir_device *d = choir_strategy_worker_device(s, 0);
	if (measured == CHOIR_PRECISION_F32 || !choir_strategy_is_chief(s))
		return CHOIR_OK;
	if (measured == CHOIR_PRECISION_TF32) {
		if (!choir_precision_is_narrow(measured, "matmul", d))
			report_tf32(who, d);
		return CHOIR_OK;
	}
	const bool native = has_instructions(measured, d);
	CHOIR_TRY(choir_precision_measure(measured, d, &cost));
	if (asked != CHOIR_PRECISION_AUTO && native && cost <= 1)
		return CHOIR_OK;
	snprintf(line, sizeof line,
			"--precision %s: %s%slayers in %s take %.2f times as long as in f32", name,
			asked == CHOIR_PRECISION_AUTO ? choir_precision_name(taken) : "",
			native									? asked == CHOIR_PRECISION_AUTO ? "; " : ""
					: asked == CHOIR_PRECISION_AUTO ? "; no instructions for bf16 are in use, "
													: "no instructions for it are in use, ",
			choir_precision_name(measured), cost);
	print_error(who, line);
	return CHOIR_OK;
}

static void print_list(const char *title, const choir_strategy *s, bool narrow)
{
	size_t n, column = 0;
	const choir_precision_row *rules = choir_precision_rules(&n);
	printf("  %s:", title);
	for (size_t i = 0; i < n; i++) {
		if (choir_precision_is_narrow(choir_strategy_precision(s), rules[i].operation,
					choir_strategy_worker_device(s, 0)) != narrow)
			continue;
		column += strlen(rules[i].operation) + 1;
		printf("%s%s", column > 76 ? "\n    " : " ", rules[i].operation);
		column = column > 76 ? strlen(rules[i].operation) : column;
	}
	printf("\n");
}

void precision_print_rules(const choir_strategy *s)
{
	const choir_precision p = choir_strategy_precision(s);
	printf("precision %s\n", choir_precision_name(p));
	if (p == CHOIR_PRECISION_F32)
		return;
	print_list(p == CHOIR_PRECISION_TF32 ? "TF32" : "16 bits", s, true);
	print_list("f32", s, false);
	printf("  other operations, sums, and the statistics of norms: f32\n");
}

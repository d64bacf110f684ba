// choir devices: lists the default devices, or those of a server.
#include "commands.h"
#include "command_options.h"
#include "output.h"

#include <choir/choir.h>

#include <stdio.h>

static bool json;
static const option options[] = {
	{ "--json", NULL, OPTION_FLAG, &json, .help = json_help },
};
static const command self = {
	.name = "choir devices",
	.operands = "[DEVICES]",
	.optional = true,
	.about =
			"Lists the GPUs and the CPUs with their cores and memory. Strategies use the GPUs by\n"
			"default, or the CPUs if there is no GPU.\n\n"
			"Programs may name other devices: cpu:7 is a logical device on any machine.\n\n"
			"DEVICES is a list of names. remote:HOST:PORT means all devices that choir serve\n"
			"offers there.",
	.examples = { "choir devices --json", "choir devices remote:127.0.0.1:7000" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

static void print_titles(void)
{
	if (!json)
		printf("%-10s %-6s %5s  %-9s %s\n", "name", "kind", "cores", "memory", "free");
}

static void print_device(const choir_device *d, const choir_device_info *info)
{
	char total[32], left[32];
	if (json) {
		json_begin();
		json_text("name", choir_device_name(d));
		json_text("kind", info->kind);
		json_integer("cores", info->cores);
		json_integer("memory_total", (int64_t) info->memory_total);
		json_integer("memory_free", (int64_t) info->memory_free);
		json_end();
		return;
	}
	print_bytes((double) info->memory_total, total);
	print_bytes((double) info->memory_free, left);
	printf("%-10s %-6s %5d  %-9s %s\n", choir_device_name(d), info->kind, info->cores,
			info->memory_total ? total : "?", info->memory_free ? left : "?");
}

static bool show(choir_device *d)
{
	choir_device_info info = { .size = sizeof info };
	if (d == NULL || choir_device_describe(d, &info) != CHOIR_OK)
		return false;
	print_device(d, &info);
	return true;
}

static int show_named(const char *names)
{
	choir_strategy *s =
			choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options, .devices = names));
	bool done = s != NULL;
	if (done)
		print_titles();
	for (int i = 0; done && i < choir_strategy_worker_devices(s); i++)
		done = show(choir_strategy_worker_device(s, i));
	const int code = done ? EXIT_OK : failed(&self);
	choir_strategy_free(s);
	return code;
}

int devices_main(int argc, char **argv)
{
	static const char *const kinds[] = { "gpu", "cpu" };
	const char *names = NULL;
	options_read(&self, argc, argv, &names);
	if (names != NULL)
		return show_named(names);
	print_titles();
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
		for (int i = 0; i < choir_device_count(kinds[k]); i++) {
			char name[32];
			snprintf(name, sizeof name, "%s:%d", kinds[k], i);
			if (!show(choir_device_find(name)))
				return failed(&self);
		}
	return EXIT_OK;
}

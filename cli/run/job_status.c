// choir status: shows a job that choir run runs.
#include "command_options.h"
#include "commands.h"
#include "terminal_text.h"

#include <choir/choir.h>
#include <choir/supervisor.h>

#include <stdio.h>

static bool json;
static const option options[] = {
	{ "--json", NULL, OPTION_FLAG, &json, .help = json_help },
};
static const command self = {
	.name = "choir status",
	.operands = "[JOB]",
	.optional = true,
	.about =
			"Shows a running job: its workers, their steps and what they wait for.\n\n"
			"JOB is the process number of choir run. Without JOB, the command shows the only job\n"
			"of this user on this machine.",
	.examples = { "choir status", "choir status 4711 --json" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

static void print_status(choir_supervisor_kind kind, int worker, const char *line, void *user)
{
	(void) kind, (void) worker, (void) user;
	clean_print(stdout, line);
	putchar('\n');
}

int status_main(int argc, char **argv)
{
	const char *job = NULL;
	options_read(&self, argc, argv, &job);
	return choir_supervisor_show(job, json, print_status, NULL) == CHOIR_OK ? EXIT_OK
																			: failed(&self);
}

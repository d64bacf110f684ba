// choir trace: one trace of all workers of a job, and who waited for whom.
#include "commands.h"
#include "command_options.h"
#include "output.h"
#include "trace_waits.h"

#include <stdio.h>
#include <stdlib.h>

static struct {
	const char *output;
	bool json;
} given;
static const option options[] = {
	{ "--output", "FILE", OPTION_TEXT, &given.output,
			.help = "write one trace of all workers (no file)" },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir trace",
	.operands = "FILE",
	.about = "Merges the traces of a job's workers, and shows who waited for whom.\n\n"
			 "FILE is what choir train --trace wrote, or the directory of choir train --run. The\n"
			 "traces of other workers are FILE.1, FILE.2 and so on. A line has the thread that\n"
			 "waited, the replica or worker that came last, the number of waits, and their time.",
	.examples = { "choir trace trace.json --output all.json", "choir trace RUN --json" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

static void print_wait(const wait *w, double all)
{
	char waiter[CLEAN_TEXT], last[CLEAN_TEXT];
	if (given.json) {
		json_begin_event("wait");
		json_text("waiter", w->waiter);
		if (w->last[0] != '\0')
			json_text("last", w->last);
		json_integer("times", w->times);
		json_number("seconds", w->seconds);
		json_end();
		return;
	}
	printf("%-28s %-14s %8lld times %12.3f ms %6.2f %%\n", clean_text(w->waiter, waiter),
			w->last[0] == '\0' ? "-" : clean_text(w->last, last), (long long) w->times,
			1e3 * w->seconds, all > 0 ? 100 * w->seconds / all : 0);
}

static choir_status merge(const trace_parts *p)
{
	const char **path = calloc(p->n, sizeof *path);
	if (path == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "%s: out of memory", given.output);
	for (size_t i = 0; i < p->n; i++)
		path[i] = p->path[i];
	const choir_status status = choir_trace_merge(given.output, p->n, path);
	free(path);
	return status;
}

static choir_status show(const trace_parts *p)
{
	static wait_table waits;
	for (size_t i = 0; i < p->n; i++)
		CHOIR_TRY(choir_trace_read(p->path[i], waits_add, &waits));
	waits_sort(&waits);
	if (given.output != NULL)
		CHOIR_TRY(merge(p));
	if (!given.json)
		printf("%-28s %-14s %14s %15s %8s\n", "waits", "comes last", "", "time", "of all");
	for (size_t i = 0; i < waits.n; i++)
		print_wait(&waits.wait[i], waits.end);
	if (!given.json && waits.n == WAITS)
		printf("only the first %d pairs are shown\n", WAITS);
	return CHOIR_OK;
}

int trace_main(int argc, char **argv)
{
	const char *path = NULL;
	trace_parts p = { .n = 0 };
	options_read(&self, argc, argv, &path);
	choir_status status = trace_parts_find(&p, path);
	if (status == CHOIR_OK)
		status = show(&p);
	trace_parts_free(&p);
	return status == CHOIR_OK ? EXIT_OK : failed(&self);
}

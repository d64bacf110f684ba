// choir report: one page about a training, without network and scripts.
#include "commands.h"
#include "command_options.h"
#include "report/report_page.h"
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
	const char *output;
	bool json;
} given;
static const option options[] = {
	{ "--output", "FILE", OPTION_TEXT, &given.output, .help = "file to write (RUN/report.html)" },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir report",
	.operands = "RUN",
	.about = "Writes a page about a training: one HTML file without network and scripts.\n\n"
			 "RUN is the directory of choir train --run. The page shows curves, the confusion\n"
			 "matrix, where the time went, who waited for whom, the options, the seed, the\n"
			 "machine and the hash of the weights. If the training still runs, the page shows\n"
			 "the epochs so far.",
	.examples = { "choir report RUN", "choir report RUN --output page.html" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

// The complete file appears, or none.
static choir_status write_page(const run_events *r, const char *path)
{
	char part[TRACE_PATH];
	if (snprintf(part, sizeof part, "%s.part", path) >= (int) sizeof part)
		return choir_fail(CHOIR_INVALID, "%.100s...: path too long", path);
	FILE *to = fopen(part, "w");
	if (to == NULL)
		return choir_fail(CHOIR_IO, "%s: %s", part, strerror(errno));
	page_write(to, r);
	const bool good = fflush(to) == 0 && !ferror(to);
	if (fclose(to) == 0 && good && rename(part, path) == 0)
		return CHOIR_OK;
	const choir_status status = choir_fail(CHOIR_IO, "%s: %s", path, strerror(errno));
	unlink(part);
	return status;
}

int report_main(int argc, char **argv)
{
	static run_events run;
	char path[TRACE_PATH];
	const char *directory = NULL;
	options_read(&self, argc, argv, &directory);
	choir_status status = run_events_read(&run, directory);
	snprintf(path, sizeof path, "%s/report.html", directory); // short enough to be read
	const char *output = given.output == NULL ? path : given.output;
	if (status == CHOIR_OK)
		status = write_page(&run, output);
	run_events_free(&run);
	if (status != CHOIR_OK)
		return failed(&self);
	if (given.json) {
		json_begin_event("end");
		json_text("file", output);
		json_end();
	} else {
		printf("wrote %s\n", output);
	}
	return EXIT_OK;
}

// choir key: makes the key of a job.
#include "commands.h"
#include "command_options.h"
#include "output.h"

#include <choir/coordinator.h>

static bool json;
static const option options[] = {
	{ "--json", NULL, OPTION_FLAG, &json, .help = json_help },
};
static const command self = {
	.name = "choir key",
	.operands = "FILE",
	.about = "Makes the key of a job: a new file of 32 random bytes that only its owner can "
			 "read.\n\n"
			 "Processes that connect by TCP need the same key (CHOIR_KEY_FILE). Copy the file to\n"
			 "each host in a safe way, for example with scp -p.",
	.examples = { "choir key ~/job.key", "choir key --json job.key" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

int key_main(int argc, char **argv)
{
	const char *path = NULL;
	options_read(&self, argc, argv, &path);
	if (choir_task_make_key(path) != CHOIR_OK)
		return failed(&self);
	if (!json)
		return EXIT_OK;
	json_begin();
	json_text("key", path);
	json_end();
	return EXIT_OK;
}

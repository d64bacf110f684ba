// choir serve: offers the devices of this machine to programs.
#include "commands.h"
#include "command_options.h"
#include "output.h"
#include "stop_signals.h"

#include <choir/log.h>
#include <choir/serve.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>

static const char *address = "127.0.0.1:0", *devices, *key;
static int64_t cores = 1, memory;
static bool json;
static const option options[] = {
	{ "--address", "ADDRESS", OPTION_TEXT, &address,
			.help = "address to listen at: HOST:PORT or unix:PATH; with port 0\n"
					"the system chooses a port (127.0.0.1:0)" },
	{ "--devices", "LIST", OPTION_TEXT, &devices,
			.help = "devices to offer, for example cpu:0,cpu:1 (all GPUs, else\n"
					"one CPU device for each core)" },
	{ "--key", "FILE", OPTION_TEXT, &key,
			.help = "file with the job's key, which choir key makes\n"
					"(CHOIR_KEY_FILE)" },
	{ "--cores", "N", OPTION_INTEGER, &cores, .help = "threads for each stream of a device (1)",
			.min = 1, .max = 1024 },
	{ "--memory", "MIB", OPTION_INTEGER, &memory,
			.help = "memory of each device in MiB (all; CPU devices share the\n"
					"memory of the machine)",
			.min = 1, .max = INT64_MAX >> 20 },
	{ "--json", NULL, OPTION_FLAG, &json, .help = json_help },
};
static const command self = {
	.name = "choir serve",
	.about = "Offers devices of this machine to a program in another process or on another\n"
			 "machine. The program names them as remote:HOST:PORT/cpu:0.\n\n"
			 "A server works for one program at a time. SIGTERM, SIGINT or SIGHUP ends it.",
	.examples = { "choir serve --address 127.0.0.1:7000 --key job.key --devices cpu:0,cpu:1",
			"choir serve --address unix:/run/user/1000/devices" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

static choir_server *server;

static void stop(int signal)
{
	(void) signal;
	choir_server_stop(server);
}

static void print_log(choir_log_level level, const char *text, void *user)
{
	(void) level, (void) user;
	fprintf(stderr, "choir serve: %s\n", text);
}

static void print_address(void)
{
	if (json) {
		json_begin();
		json_text("address", choir_server_address(server));
		json_end();
	} else {
		printf("choir serve: listens at %s\n", choir_server_address(server));
	}
	fflush(stdout);
}

// On cores that the program or other servers use, too, a woken thread then does not take the core
// of a running one. A step of two servers and a program on two cores takes a tenth less time.
static void run_as_batch(void)
{
	if (sched_getscheduler(0) == SCHED_OTHER)
		(void) sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ .sched_priority = 0 });
}

int serve_main(int argc, char **argv)
{
	options_read(&self, argc, argv, NULL);
	run_as_batch();
	choir_logger_set(CHOIR_LOG_INFO, print_log, NULL);
	server = choir_server_new(
			CHOIR_OPTIONS(choir_server_options, .address = address, .devices = devices,
					.key_file = key, .cores = (int) cores, .memory = (uint64_t) memory << 20));
	if (server == NULL)
		return failed(&self);
	catch_stop_signals(stop, 0);
	(void) signal(SIGPIPE, SIG_IGN); // the reader of its log may end first
	print_address();
	const choir_status status = choir_server_run(server);
	const int code = status == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_server_free(server);
	return code;
}

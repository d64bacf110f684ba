// The command choir. It uses only Choir's public headers, as an example of a program.
#include "commands.h"
#include "command_options.h"
#include "output.h"

#include <choir/choir.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *about;
} commands[] = {
	{ "train", train_main, "train a model, test it and save its weights" },
	{ "predict", predict_main, "classify data with saved weights" },
	{ "sample", sample_main, "continue a text with a saved model" },
	{ "export", export_main, "write a trained model as one C file" },
	{ "import", import_main, "make a model from weights of PyTorch or Keras" },
	{ "inspect", inspect_main, "show what a file holds and where it is damaged" },
	{ "replay", replay_main, "run one replica of one training step again" },
	{ "report", report_main, "write a page about a training (HTML)" },
	{ "trace", trace_main, "merge the traces of workers and show who waited for whom" },
	{ "run", run_main, "run a job of several workers, with restarts" },
	{ "status", status_main, "show a running job" },
	{ "serve", serve_main, "offer the devices of this machine to programs elsewhere" },
	{ "key", key_main, "make the key of a job of several processes" },
	{ "devices", devices_main, "list the devices of this machine" },
	{ "doctor", doctor_main, "check the installation and suggest settings" },
	{ "bench", bench_main, "measure the speed of Choir on this machine" },
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *to)
{
	fprintf(to,
			"usage: choir COMMAND [options]\n\nTrains and uses models on all cores and "
			"devices of a machine.\n\ncommands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s%s\n", commands[i].name, commands[i].about);
	fprintf(to,
			"\nchoir help COMMAND describes a command; choir --version prints the version.\n"
			"For every command, CHOIR_DEVICES=cpu:0,cpu:1 sets the devices, and\n"
			"CHOIR_KERNELS=plain selects the kernels in plain C.\n\nexamples:\n"
			"  choir train --data digits --save digits.safetensors\n"
			"  choir predict digits.safetensors --data digits --limit 5\n");
}

// Opens descriptors 0 to 2 if they are closed: the next opened file would become standard output.
// Without SIGXFSZ a write past the file size limit fails with an error. Processes that share a
// terminal write whole lines.
static bool prepare_process(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) != fd)
			return false;
	return signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setvbuf(stderr, NULL, _IOLBF, BUFSIZ) == 0;
}

// Turns "help COMMAND" into "COMMAND --help".
static void take_help(int argc, char **argv)
{
	static char help[] = "--help";
	memmove(argv + 1, argv + 2, (size_t) (argc - 2) * sizeof *argv);
	argv[argc - 1] = help;
}

int main(int argc, char **argv)
{
	if (!prepare_process())
		return EXIT_FAILED;
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "help") == 0)
		take_help(argc, argv);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_help(stdout);
		return output_whole("choir") ? EXIT_OK : EXIT_FAILED;
	}
	if (strcmp(argv[1], "--version") == 0) {
		const int v = choir_version();
		printf("choir %d.%d.%d\n", v / 10000, v / 100 % 100, v % 100);
		return output_whole("choir") ? EXIT_OK : EXIT_FAILED;
	}
	const char *known[COMMANDS];
	for (size_t i = 0; i < COMMANDS; i++) {
		known[i] = commands[i].name;
		if (strcmp(argv[1], known[i]) != 0)
			continue;
		const int status = commands[i].main(argc - 2, argv + 2);
		return output_whole("choir") || status != EXIT_OK ? status : EXIT_FAILED;
	}
	return unknown_name(&(command){ .name = "choir" }, "command", argv[1], COMMANDS, known);
}

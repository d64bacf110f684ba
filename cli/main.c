// The command choir: finds the subcommand that is asked for. All of it is a program on Choir's
// public headers, so that it can be read to learn how one is written.
#include "commands.h"
#include "command_options.h"
#include "report.h"

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
	{ "sample", sample_main, "go on with a text, with saved weights" },
	{ "export", export_main, "write a trained model as one file of C" },
	{ "inspect", inspect_main, "what a file holds, and what is wrong with it" },
	{ "replay", replay_main, "run one replica of one step of a training again" },
	{ "devices", devices_main, "list the devices of this machine" },
	{ "doctor", doctor_main, "say what is here, what is slow or mixed up, and what to set" },
	{ "bench", bench_main, "measure: all-reduce, train, kernels, run, input" },
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *to)
{
	fprintf(to, "usage: choir COMMAND [options]\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s%s\n", commands[i].name, commands[i].about);
	fprintf(to,
			"\nchoir COMMAND --help tells more; choir --version, the version.\n"
			"CHOIR_DEVICES=cpu:0,cpu:1 and CHOIR_KERNELS=plain change any command's devices and "
			"kernels.\n");
}

static int unknown(const char *name)
{
	const char *known[COMMANDS];
	fprintf(stderr, "choir: there is no command \"%s\"; known:", name);
	for (size_t i = 0; i < COMMANDS; i++) {
		known[i] = commands[i].name;
		fprintf(stderr, "%s %s", i == 0 ? "" : ",", known[i]);
	}
	const char *near = nearest(name, COMMANDS, known);
	if (near != NULL)
		fprintf(stderr, " (did you mean %s?)", near);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

// Descriptors 0 to 2 are open, or a file that is opened would become standard output and hold what
// is printed. A write past the limit of a file's size is a failure like others, not the end of the
// program. Each line of an error is one write: several processes share a terminal.
static bool prepare_process(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) != fd)
			return false;
	return signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setvbuf(stderr, NULL, _IOLBF, BUFSIZ) == 0;
}

int main(int argc, char **argv)
{
	if (!prepare_process())
		return EXIT_FAILED;
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_help(stdout);
		return output_whole("choir") ? EXIT_OK : EXIT_FAILED;
	}
	if (strcmp(argv[1], "--version") == 0) {
		const int v = choir_version();
		printf("choir %d.%d.%d\n", v / 10000, v / 100 % 100, v % 100);
		return output_whole("choir") ? EXIT_OK : EXIT_FAILED;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0) {
			const int status = commands[i].main(argc - 2, argv + 2);
			return output_whole("choir") || status != EXIT_OK ? status : EXIT_FAILED;
		}
	return unknown(argv[1]);
}

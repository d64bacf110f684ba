// choir doctor: checks the installation and suggests settings. A process can load only one MPI,
// and only once, so each MPI is tried in a process of its own.
#include "commands.h"
#include "command_options.h"
#include "output.h"

#include <choir/choir.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { NOTES = 16, NOTE = 300, ANSWER = 512, PROBE_SECONDS = 30 };

static bool json;
static const char *probe;
static const char *const mpis[] = { "openmpi", "mpich", NULL };
static const option options[] = {
	{ "--json", NULL, OPTION_FLAG, &json, .help = json_help },
	{ "--probe", "MPI", OPTION_CHOICE, &probe,
			.help = "only start this MPI, openmpi or mpich, and print its version",
			.choices = mpis },
};
static const command self = {
	.name = "choir doctor",
	.about =
			"Checks what Choir finds on this machine and suggests settings.\n\n"
			"It lists processors, libraries, GPUs and MPIs. Then it lists settings that are slow\n"
			"or do not fit together. The exit status is 1 if something is wrong. Under mpirun it\n"
			"prints what the workers find.",
	.examples = { "choir doctor", "mpirun -n 2 choir doctor" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

static struct {
	char text[NOTES][NOTE];
	int n;
	bool wrong;
} notes;

__attribute__((format(printf, 2, 3))) static void note(bool wrong, const char *fmt, ...)
{
	if (notes.n == NOTES)
		return;
	va_list args;
	va_start(args, fmt);
	vsnprintf(notes.text[notes.n++], NOTE, fmt, args);
	va_end(args);
	notes.wrong |= wrong;
}

static void print_fact(const char *key, const char *label, const char *text)
{
	if (json)
		json_text(key, text);
	else
		printf("%-17s%s\n", label, text);
}

static void check_processors(void)
{
	choir_device *d = choir_device_find("cpu:0");
	choir_device_info info = { .size = sizeof info };
	const long online = sysconf(_SC_NPROCESSORS_ONLN);
	const int cores = d != NULL && choir_device_describe(d, &info) == CHOIR_OK ? info.cores : 0;
	if (json) {
		json_integer("cores", cores);
		json_integer("online", online);
	} else {
		printf("processors       %d of %ld online\n", cores, online);
	}
	print_fact("instruction_set", "instruction set", choir_instruction_set());
	if (getenv("CHOIR_INSTRUCTION_SET") != NULL)
		note(false,
				"CHOIR_INSTRUCTION_SET=%s limits the kernels: unset "
				"it, unless other processors of a job support no more",
				getenv("CHOIR_INSTRUCTION_SET"));
	if (cores < online)
		note(false,
				"this process may use %d of %ld processors, limited by its affinity mask (a "
				"launcher's binding, taskset) or its cgroup's quota",
				cores, online);
}

static void check_libraries(void)
{
	const bool onednn = choir_has_feature("onednn");
	const char *kernels = getenv("CHOIR_KERNELS");
	print_fact("onednn", "oneDNN", onednn ? "yes" : "no");
	print_fact("zlib", "zlib", choir_has_feature("zlib") ? "yes" : "no");
	print_fact("png", "libpng", choir_has_feature("png") ? "yes" : "no");
	print_fact("jpeg", "libjpeg", choir_has_feature("jpeg") ? "yes" : "no");
	print_fact("hdf5", "HDF5", choir_has_feature("hdf5") ? "yes" : "no");
	if (!onednn)
		note(false,
				"without oneDNN matrix products and convolutions are several times slower: "
				"install libdnnl-dev and build Choir again");
	else if (kernels != NULL && strcmp(kernels, "plain") == 0)
		note(false,
				"CHOIR_KERNELS=plain disables oneDNN: unset it, "
				"unless you want the same bits on all processors");
	if (!choir_has_feature("zlib"))
		note(false, "compressed data files cannot be read: install zlib1g-dev and build again");
	if (!choir_has_feature("png") || !choir_has_feature("jpeg"))
		note(false, "%s images cannot be read: install libpng-dev and libjpeg-dev and build again",
				choir_has_feature("png")			? "JPEG"
						: choir_has_feature("jpeg") ? "PNG"
													: "PNG and JPEG");
	if (!choir_has_feature("hdf5"))
		note(false, "HDF5 files cannot be read: install libhdf5-dev and build again");
}

// The error of a setting lists the known values.
// The report of libchoir-cuda, or why there is none.
static void check_gpus(void)
{
	char line[ANSWER];
	if (choir_device_count("gpu") == 0) {
		const bool known = choir_device_report("gpu", 0, line, sizeof line);
		print_fact("gpus", "GPUs", known ? line : "none");
		return;
	}
	for (int i = 0; choir_device_report("gpu", i, line, sizeof line); i++) {
		char key[16];
		snprintf(key, sizeof key, "gpus_%d", i);
		print_fact(i == 0 ? "gpus" : key, i == 0 ? "GPUs" : "", line);
		if (strstr(line, "missing") != NULL)
			note(false, "%s", line);
	}
}

static void check_settings(void)
{
	choir_strategy *s = choir_mirrored_strategy_new(NULL);
	choir_frame *f = s == NULL ? NULL : choir_frame_new(NULL);
	if (f == NULL || choir_fill(f, CHOIR_F32, CHOIR_SCALAR, 0) == NULL)
		note(true, "%s", choir_error());
	choir_frame_free(f);
	choir_strategy_free(s);
	const char *overlap = getenv("CHOIR_OVERLAP"), *mpi = getenv("CHOIR_MPI");
	if (overlap != NULL && strcmp(overlap, "on") != 0 && strcmp(overlap, "off") != 0)
		note(true, "CHOIR_OVERLAP=%s: unknown value; known: on, off", overlap);
	const char *aware = getenv("CHOIR_GPU_AWARE_MPI");
	if (aware != NULL && strcmp(aware, "on") != 0 && strcmp(aware, "off") != 0)
		note(true, "CHOIR_GPU_AWARE_MPI=%s: unknown value; known: on, off", aware);
	if (mpi == NULL || strcmp(mpi, mpis[0]) == 0 || strcmp(mpi, mpis[1]) == 0)
		return;
	if (strchr(mpi, '/') == NULL)
		note(true, "CHOIR_MPI=%s: unknown value; known: openmpi, mpich, or a library's path", mpi);
	else if (access(mpi, R_OK) != 0)
		note(true, "CHOIR_MPI=%s: %s", mpi, strerror(errno));
}

static int run_probe(void)
{
	alarm(PROBE_SECONDS); // an MPI may hang
	choir_cluster *c = choir_cluster_new(CHOIR_OPTIONS(
			choir_cluster_options, .transport = "mpi", .mpi = probe, .program = "probe"));
	printf("%s\n", c != NULL ? choir_cluster_transport(c) + strlen("mpi: ") : choir_error());
	const int status = c != NULL ? EXIT_OK : EXIT_FAILED;
	choir_cluster_free(c);
	return status;
}

static bool ask(const char *line, char answer[ANSWER])
{
	answer[0] = '\0';
	fflush(stdout);
	FILE *from = popen(line, "r");
	if (from == NULL)
		return false;
	if (fgets(answer, ANSWER, from) == NULL)
		answer[0] = '\0';
	while (fgetc(from) != EOF)
		;
	answer[strcspn(answer, "\n")] = '\0';
	return pclose(from) == 0;
}

// Without the variables that give a process its role. errors: where standard error goes.
static bool ask_probe(const char *mpi, const char *errors, char answer[ANSWER])
{
	char line[256];
	snprintf(line, sizeof line,
			"env -u TF_CONFIG -u RANK -u WORLD_SIZE -u LOCAL_RANK "
			"\"$CHOIR_DOCTOR\" doctor --probe %s 2>%s",
			mpi, errors);
	return ask(line, answer);
}

// False: no libchoir-mpi.
static bool check_mpi(const char *mpi, bool *there)
{
	char answer[ANSWER], program[4096];
	const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
	program[length > 0 ? length : 0] = '\0';
	setenv("CHOIR_DOCTOR", program, 1);
	*there = ask_probe(mpi, "/dev/null", answer); // without an MPI's warnings
	if (!*there && answer[0] == '\0')
		(void) ask_probe(mpi, "&1", answer); // it may have printed why it ended
	print_fact(mpi, mpi, *there ? answer : json ? "" : "no");
	const bool built = *there || strstr(answer, "no libchoir-mpi") == NULL;
	if (!*there && built)
		note(true, "%s: %s", mpi, answer[0] != '\0' ? answer : "it did not start");
	return built;
}

static bool has_command(const char *name)
{
	char line[128], answer[ANSWER];
	snprintf(line, sizeof line, "command -v %s 2>/dev/null", name);
	return ask(line, answer);
}

static void check_launchers(const bool there[2])
{
	char answer[ANSWER];
	if (!has_command("mpirun")) {
		note(false, "mpirun not found: install openmpi-bin or mpich to start several workers");
		return;
	}
	ask("mpirun --version 2>/dev/null", answer);
	const bool open = strstr(answer, "Open MPI") != NULL || strstr(answer, "OpenRTE") != NULL;
	print_fact("mpirun", "mpirun", open ? "Open MPI's" : "MPICH's");
	if (!there[open ? 0 : 1])
		note(true,
				"mpirun is %s, but libchoir-mpi is missing for it: install %s and build Choir "
				"again, or use the other mpirun",
				open ? "Open MPI's" : "MPICH's", open ? "libopenmpi-dev" : "libmpich-dev");
	if (open && getuid() == 0 && getenv("OMPI_ALLOW_RUN_AS_ROOT") == NULL)
		note(false,
				"Open MPI's mpirun refuses to run as root: set OMPI_ALLOW_RUN_AS_ROOT=1 "
				"and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
	const char *set = getenv("CHOIR_MPI");
	if (set != NULL && strcmp(set, open ? "mpich" : "openmpi") == 0)
		note(false,
				"CHOIR_MPI=%s, but mpirun belongs to the other MPI: "
				"start programs with mpirun.%s, or unset CHOIR_MPI",
				set, set);
}

static void check_shared_memory(void)
{
	struct statvfs s;
	if (statvfs("/dev/shm", &s) != 0) {
		note(false, "/dev/shm is missing; MPI uses it between processes of a machine");
		return;
	}
	const double free_bytes = (double) s.f_bavail * (double) s.f_frsize;
	char text[32];
	if (free_bytes < 128e6)
		note(false,
				"/dev/shm has only %s left, and MPI uses it between processes: in a container, "
				"raise --shm-size",
				print_bytes(free_bytes, text));
}

static bool is_launched(void)
{
	static const char *const variables[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
		"SLURM_STEP_NUM_TASKS" };
	for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
		if (getenv(variables[i]) != NULL)
			return true;
	return false;
}

static int check_job(void)
{
	choir_cluster *c = choir_cluster_new(NULL);
	if (c == NULL)
		return failed(&self);
	if (choir_cluster_is_chief(c)) {
		if (json)
			json_begin();
		check_processors();
		print_fact("transport", "transport", choir_cluster_transport(c));
		if (json) {
			json_integer("workers", choir_cluster_workers(c));
			json_end();
		}
		for (int i = 0; !json && i < choir_cluster_workers(c); i++)
			printf("worker %-10d%s\n", i, choir_cluster_worker_name(c, i));
	}
	choir_cluster_free(c);
	return EXIT_OK;
}

static void print_notes(void)
{
	if (json) {
		json_begin_list("notes");
		for (int i = 0; i < notes.n; i++) {
			json_begin_item();
			json_text("note", notes.text[i]);
			json_end_item();
		}
		json_end_list();
		json_end();
		return;
	}
	printf(notes.n == 0 ? "\nno problems found\n" : "\n");
	for (int i = 0; i < notes.n; i++)
		printf("- %s\n", notes.text[i]);
}

int doctor_main(int argc, char **argv)
{
	options_read(&self, argc, argv, NULL);
	if (probe != NULL)
		return run_probe();
	if (is_launched())
		return check_job();
	if (json)
		json_begin();
	check_processors();
	check_libraries();
	check_gpus();
	check_settings();
	bool there[2], built = false;
	for (int i = 0; i < 2; i++)
		built |= check_mpi(mpis[i], &there[i]);
	if (!built)
		note(false,
				"no MPI, so several workers are not possible: install libopenmpi-dev or "
				"libmpich-dev and build Choir again");
	else if (there[0] || there[1])
		check_launchers(there);
	check_shared_memory();
	print_notes();
	return notes.wrong ? EXIT_FAILED : EXIT_OK;
}

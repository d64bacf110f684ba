// choir bench input: how fast one device gets the batches of a file. Passes alternate with cat on
// the same files, so that both see the same load. A first pass brings the files into the page
// cache.
#include "bench/bench.h"
#include "data/raw_data.h"
#include "number.h"
#include "output.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MAX_PASSES = 1000,
	MNIST_BUFFER = 10000,
	AHEAD = 4,
	WINDOW = 16,
	READERS = 2,
	COLUMNS = 32
};

static struct {
	const char *source, *pipeline;
	int64_t batch, passes, ahead;
	bool json;
} given = { .pipeline = "read", .batch = 128, .passes = 5 };
static const char *const pipelines[] = { "read", "float", "shuffle", "mnist", "prefetch", "cache",
	"map", "padded", "window", "interleave", "zip", NULL };

static const option options[] = {
	{ "--source", "FILE", OPTION_TEXT, &given.source, .help = data_measure_help },
	{ "--pipeline", "NAME", OPTION_CHOICE, &given.pipeline,
			.help = "stages after reading: read (none), float (first column\n"
					"to float), shuffle (buffer of 10,000), mnist (float and\n"
					"shuffle), prefetch (on a thread), cache (in memory), map\n"
					"(a copy), padded (padded batches), window (of 16),\n"
					"interleave (two readers) or zip (with numbers) (read)",
			.choices = pipelines },
	{ "--batch", "G", OPTION_INTEGER, &given.batch, .help = "examples per batch (128)", .min = 1,
			.max = 1 << 24 },
	{ "--passes", "N", OPTION_INTEGER, &given.passes,
			.help = "measured passes, after one that is not measured (5)", .min = 1,
			.max = MAX_PASSES },
	{ "--ahead", "N", OPTION_INTEGER, &given.ahead,
			.help = "batches to read ahead on a thread; -1: none; 0: the\nlibrary's default (0)",
			.min = -1, .max = 1 << 10 },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir bench input",
	.about = "Measures how fast examples are read from a file on one core, compared with cat.",
	.examples = { "choir bench input --source rows.csv",
			"choir bench input --source idx:images.gz --pipeline shuffle --passes 9" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	choir_distributed_dataset *data;
	choir_values *batch;
	char *column;
	int64_t examples;
	data_name file;
	choir_files *files;
	size_t readers; // each reads all files
	double bytes; // of all readers
	double seconds[MAX_PASSES], cat[MAX_PASSES];
} measurement;

static choir_status one_pass(measurement *m, double *seconds)
{
	const double start = now();
	choir_status status;
	int64_t examples = 0;
	while ((status = choir_distributed_dataset_next(m->data, &m->batch)) == CHOIR_OK) {
		const choir_tensor *t = choir_value_local(choir_values_find(m->batch, m->column), 0);
		examples += choir_tensor_shape(t)->dim[0];
	}
	if (status != CHOIR_END)
		return status;
	*seconds = now() - start;
	m->examples = examples;
	return choir_distributed_dataset_rewind(m->data);
}

// cat FILES > /dev/null
static choir_status cat_pass(const measurement *m, double *seconds)
{
	extern char **environ;
	const size_t each = choir_files_count(m->files), n = each * m->readers;
	char **argument = calloc(n + 3, sizeof *argument);
	posix_spawn_file_actions_t actions;
	pid_t child;
	int state = 0;
	if (argument == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "cat: no memory for the names of %zu files", n);
	argument[0] = (char[]){ "cat" };
	argument[1] = (char[]){ "--" };
	for (size_t i = 0; i < n; i++)
		argument[i + 2] = (char *) (uintptr_t) choir_files_path(m->files, i % each);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	const double start = now();
	const int failed = posix_spawnp(&child, "cat", &actions, NULL, argument, environ);
	if (failed == 0)
		waitpid(child, &state, 0);
	*seconds = now() - start;
	posix_spawn_file_actions_destroy(&actions);
	free(argument);
	return failed == 0 && state == 0
			? CHOIR_OK
			: choir_fail(CHOIR_IO, "cat: failed on the files of \"%s\"", given.source);
}

static void print_measurement(measurement *m)
{
	const size_t n = (size_t) given.passes;
	const double seconds = median(n, m->seconds), cat = median(n, m->cat);
	const double rate = (double) m->examples / seconds;
	if (!given.json) {
		printf("%s, %s: %lld examples in %.4f s: %.0f MB/s, %.0f examples/s; cat %.4f s: %.0f "
			   "MB/s, ratio %.2f\n",
				given.source, given.pipeline, (long long) m->examples, seconds,
				1e-6 * m->bytes / seconds, rate, cat, 1e-6 * m->bytes / cat, cat / seconds);
		return;
	}
	json_begin();
	json_text("source", given.source);
	json_text("pipeline", given.pipeline);
	json_integer("batch", given.batch);
	json_integer("passes", given.passes);
	json_integer("examples", m->examples);
	json_number("seconds", seconds);
	json_number("bytes_per_s", m->bytes / seconds);
	json_number("examples_per_s", rate);
	json_number("cat_bytes_per_s", m->bytes / cat);
	json_number("ratio_to_cat", cat / seconds);
	json_end();
}

static bool asked(const char *name)
{
	return strcmp(given.pipeline, name) == 0;
}

static choir_status copy_columns(const choir_component in[], choir_component out[], void *user)
{
	for (size_t i = 0; i < *(const size_t *) user; i++) {
		if (memcmp(&out[i].shape, &in[i].shape, sizeof in[i].shape) != 0)
			CHOIR_TRY(choir_component_resize(&out[i], &in[i].shape));
		const size_t n = (size_t) choir_shape_elements(&in[i].shape);
		if (n > 0)
			memcpy(out[i].data, in[i].data, n * (size_t) number_bytes(in[i].dtype));
	}
	return CHOIR_OK;
}

static choir_dataset *open_again(const choir_component in[], void *user)
{
	(void) in;
	return data_open(user, CHOIR_BAD_RECORD_ERROR);
}

// d only provides the columns.
static choir_dataset *interleaved(choir_dataset *d, measurement *m)
{
	choir_column columns[COLUMNS];
	choir_interleave_options o = { .size = sizeof o, .columns = columns, .cycle_length = READERS };
	for (; o.n < choir_dataset_columns(d); o.n++)
		columns[o.n] = *choir_dataset_column(d, o.n);
	choir_dataset *all = d == NULL
			? NULL
			: choir_dataset_interleave(
					  choir_range_dataset_new("reader", 0, READERS, 1), &o, open_again, &m->file);
	choir_dataset_free(d);
	m->readers = READERS;
	return all;
}

static choir_dataset *step(choir_dataset *d, measurement *m)
{
	static size_t columns; // must live as long as the dataset
	columns = choir_dataset_columns(d);
	if (asked("map"))
		return choir_dataset_map(d, NULL, copy_columns, &columns);
	if (asked("window"))
		return choir_dataset_window(
				d, CHOIR_OPTIONS(choir_window_options, .length = WINDOW, .drop_remainder = true));
	if (asked("interleave"))
		return interleaved(d, m);
	const int64_t n = choir_dataset_cardinality(d);
	if (!asked("zip") || d == NULL)
		return d;
	if (n >= 0)
		return choir_dataset_zip(d, choir_range_dataset_new("number of the example", 0, n, 1));
	choir_fail(CHOIR_UNSUPPORTED,
			"--pipeline zip: the number of examples of \"%s\" "
			"is unknown until it is read; needs other data",
			given.source);
	choir_dataset_free(d);
	return NULL;
}

static choir_dataset *pipeline(choir_dataset *d, const char *column)
{
	const bool mnist = asked("mnist");
	bool varies = false;
	for (size_t i = 0; i < choir_dataset_columns(d); i++)
		varies = varies || choir_shape_elements(&choir_dataset_column(d, i)->shape) == CHOIR_NONE;
	if (mnist || asked("float"))
		d = choir_dataset_to_float(d, column, 1 / 255.0);
	if (asked("cache"))
		d = choir_dataset_cache(d, NULL);
	if (mnist || asked("shuffle"))
		d = choir_dataset_shuffle(d, MNIST_BUFFER, 1);
	d = varies || asked("padded") ? choir_dataset_padded_batch(d, given.batch, NULL)
								  : choir_dataset_batch(d, given.batch);
	return asked("prefetch") ? choir_dataset_prefetch(d, AHEAD) : d;
}

static choir_status open_input(choir_strategy *s, measurement *m)
{
	struct stat st;
	m->readers = 1;
	if (s == NULL)
		return choir_error_status();
	CHOIR_TRY(data_name_read(&m->file, given.source, DATA_MEASURE));
	choir_dataset *d = step(data_open(&m->file, CHOIR_BAD_RECORD_ERROR), m);
	if (d != NULL && (m->column = strdup(choir_dataset_column(d, 0)->name)) == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "data \"%s\": out of memory", given.source);
	m->data = choir_strategy_distribute_dataset(s, pipeline(d, m->column),
			CHOIR_OPTIONS(choir_input_options,
					.read_ahead = given.ahead < 0 ? CHOIR_OFF : CHOIR_DEFAULT,
					.read_ahead_steps = given.ahead < 0 ? 0 : (int) given.ahead));
	m->files = m->data == NULL ? NULL : data_name_files(&m->file);
	for (size_t i = 0; i < choir_files_count(m->files); i++)
		if (stat(choir_files_path(m->files, i), &st) == 0)
			m->bytes += (double) m->readers * (double) st.st_size;
	return m->files == NULL ? choir_error_status() : CHOIR_OK;
}

static choir_status measure(choir_strategy *s, measurement *m)
{
	double first;
	CHOIR_TRY(open_input(s, m));
	CHOIR_TRY(one_pass(m, &first));
	for (int64_t i = 0; i < given.passes; i++) {
		CHOIR_TRY(one_pass(m, &m->seconds[i]));
		CHOIR_TRY(cat_pass(m, &m->cat[i]));
	}
	print_measurement(m);
	return CHOIR_OK;
}

int bench_input_main(int argc, char **argv)
{
	options_read(&self, argc, argv, NULL);
	if (given.source == NULL)
		return wrong_use(&self, "no data; needs --source FILE (--help lists the options)");
	static measurement m;
	choir_strategy *s = bench_strategy(1, NULL, 1, NULL);
	const int code = measure(s, &m) == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_values_free(m.batch);
	choir_files_free(m.files);
	free(m.column);
	choir_strategy_free(s);
	return code;
}

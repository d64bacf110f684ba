// choir bench input: how fast examples come from a file, as a program gets them: through a
// distributed dataset on one device, in batches, nothing done with them. The best of several
// passes; the file is read once before, so that it comes from the system's memory.
#include "bench.h"
#include "open.h"
#include "report.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct {
	const char *source;
	int64_t batch, passes;
	bool json;
} given = { .batch = 128, .passes = 5 };

// clang-format off
static const option options[] = {
	{ .name = "--source", .value = "FILE", .kind = OPTION_TEXT, .to = &given.source,
		.help = named_file_help },
	{ .name = "--batch", .value = "G", .kind = OPTION_INTEGER, .to = &given.batch, .least = 1,
		.most = 1 << 24, .help = "examples of a batch (128)" },
	{ .name = "--passes", .value = "N", .kind = OPTION_INTEGER, .to = &given.passes, .least = 1,
		.most = 1000, .help = "after the first one; the best counts (5)" },
	{ .name = "--json", .kind = OPTION_FLAG, .to = &given.json, .help = "one JSON object a line" },
};
// clang-format on
static const command self = {
	.name = "choir bench input",
	.operands = "",
	.about = "Measures how fast the examples of a file are read, on one core.",
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	choir_distributed_dataset *data;
	choir_values *batch;
	char column[256]; // any one
	int64_t examples;
	double seconds; // of the best pass
} measurement;

static choir_status one_pass(measurement *m, bool counts)
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
	const double seconds = now() - start;
	m->examples = examples;
	if (counts && (m->seconds == 0 || seconds < m->seconds))
		m->seconds = seconds;
	return choir_distributed_dataset_rewind(m->data);
}

static void say(const measurement *m, double bytes)
{
	const double rate = (double) m->examples / m->seconds;
	if (!given.json) {
		printf("%s: %lld examples in %.4f s: %.0f MB/s, %.0f examples/s\n", given.source,
				(long long) m->examples, m->seconds, 1e-6 * bytes / m->seconds, rate);
		return;
	}
	json_begin();
	json_text("source", given.source);
	json_integer("examples", m->examples);
	json_number("seconds", m->seconds);
	json_number("bytes_per_s", bytes / m->seconds);
	json_number("examples_per_s", rate);
	json_end();
}

static choir_status measure(choir_strategy *s, measurement *m)
{
	named_file file;
	struct stat st = { .st_size = 0 };
	if (s == NULL)
		return choir_error_status();
	CHOIR_TRY(named_file_set(&file, given.source));
	choir_dataset *d = named_file_open(&file);
	if (d != NULL)
		snprintf(m->column, sizeof m->column, "%s", choir_dataset_column(d, 0)->name);
	m->data = choir_strategy_distribute_dataset(s, choir_dataset_batch(d, given.batch), NULL);
	if (m->data == NULL)
		return choir_error_status();
	for (int64_t pass = 0; pass <= given.passes; pass++)
		CHOIR_TRY(one_pass(m, pass > 0));
	stat(file.path, &st);
	say(m, (double) st.st_size);
	return CHOIR_OK;
}

int bench_input_main(int argc, char **argv)
{
	const options_result result = options_read(&self, argc, argv, NULL);
	if (result != OPTIONS_GIVEN)
		return result == OPTIONS_HELP ? EXIT_OK : EXIT_USAGE;
	if (given.source == NULL)
		return wrong_use(&self, "--source is missing (--help says what it takes)");
	measurement m = { .data = NULL };
	choir_strategy *s = bench_strategy(1, NULL, NULL);
	const int code = measure(s, &m) == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_values_free(m.batch);
	choir_strategy_free(s);
	return code;
}

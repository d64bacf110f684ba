// choir sample: goes on with a text, byte by byte, with a saved model of text.
#include "commands.h"
#include "terminal_text.h"
#include "model/model.h"
#include "command_options.h"
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	const char *prompt;
	int64_t bytes;
	double temperature;
	uint64_t seed;
	bool greedy, json;
} given = { .prompt = "\n", .bytes = 500, .temperature = 1, .seed = 1 };

// clang-format off
static const option options[] = {
	{ .name = "--prompt", .value = "TEXT", .kind = OPTION_TEXT, .to = &given.prompt,
		.help = "to go on with (a new line)" },
	{ .name = "--bytes", .value = "N", .kind = OPTION_INTEGER, .to = &given.bytes, .min = 1,
		.max = INT32_MAX, .help = "to write (500)" },
	{ .name = "--temperature", .value = "X", .kind = OPTION_NUMBER, .to = &given.temperature,
		.help = "scores are divided by it: below 1 the likely\nbytes get likelier (1)" },
	{ .name = "--greedy", .kind = OPTION_FLAG, .to = &given.greedy,
		.help = "always the likeliest byte" },
	{ .name = "--seed", .value = "S", .kind = OPTION_SEED, .to = &given.seed,
		.help = "of what is drawn (1)" },
	{ .name = "--json", .kind = OPTION_FLAG, .to = &given.json,
		.help = "one JSON object, with the bytes as numbers" },
};
// clang-format on
static const command self = {
	.name = "choir sample",
	.operands = "FILE",
	.max_operands = 1,
	.needs_operand = true,
	.about = "Goes on with a text, with weights that choir train --model gpt --save wrote. Of\n"
			 "what was written so far the model sees as many bytes as its context has.",
	.n = sizeof options / sizeof options[0],
	.options = options,
};

typedef struct {
	model model;
	choir_strategy *strategy;
	choir_values *args, *result;
	uint8_t *text; // prompt, and what was written
	size_t length, prompt, shown;
	uint64_t drawn;
} sampling;

// The scores of the byte behind the last.
static choir_status next_step(choir_replica *r, void *user)
{
	const sampling *s = user;
	choir_tensor *text = choir_replica_arg(r, "text");
	const int64_t places = choir_tensor_shape(text)->dim[1];
	choir_tensor *scores = model_apply(&s->model, text);
	return choir_replica_return(
			r, "scores", choir_slice(scores, 1, places > 0 ? places - 1 : 0, 1));
}

// From 0 to less than 1: the n-th number of a seed (splitmix64, Steele, Lea, Flood 2014).
static double uniform(uint64_t seed, uint64_t n)
{
	uint64_t x = seed + (n + 1) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (double) ((x ^ x >> 31) >> 11) * 0x1p-53;
}

static uint8_t choose(sampling *s, const float scores[BYTES])
{
	double weight[BYTES], sum = 0;
	int best = 0, last = 0;
	for (int i = 1; i < BYTES; i++)
		if (scores[i] > scores[best])
			best = i;
	if (given.greedy)
		return (uint8_t) best;
	for (int i = 0; i < BYTES; i++) {
		weight[i] = exp(((double) scores[i] - (double) scores[best]) / given.temperature);
		sum += weight[i];
	}
	double left = uniform(given.seed, s->drawn++) * sum;
	for (int i = 0; i < BYTES && left >= 0; i++) {
		left -= weight[i];
		if (weight[i] > 0)
			last = i;
	}
	return (uint8_t) last;
}

static choir_status add_byte(sampling *s)
{
	const size_t context = (size_t) s->model.plan.size.context;
	const size_t seen = s->length < context ? s->length : context;
	choir_values_clear(s->args);
	choir_frame *f = choir_values_frame(s->args);
	choir_tensor *text =
			choir_borrow(f, CHOIR_U8, CHOIR_SHAPE(1, (int64_t) seen), s->text + s->length - seen);
	CHOIR_TRY(choir_values_split(s->args, "text", text));
	CHOIR_TRY(choir_strategy_run(s->strategy, next_step, s, s->args, &s->result));
	const float *scores =
			choir_tensor_data(choir_value_local(choir_values_find(s->result, "scores"), 0));
	if (scores == NULL)
		return choir_error_status();
	s->text[s->length++] = choose(s, scores);
	return CHOIR_OK;
}

static choir_status prepare(sampling *s, const char *path)
{
	model_plan plan = { .table = NULL };
	char found[WEIGHTS_PATH];
	CHOIR_TRY(model_find_weights(&path, found));
	CHOIR_TRY(model_plan_read(&plan, path));
	if (!model_plan_text(&plan))
		return choir_fail(CHOIR_INVALID,
				"%s: its model is a %s: weights of one that was trained on text are needed", path,
				plan.kind);
	s->strategy = choir_one_device_strategy_new(NULL);
	if (s->strategy == NULL)
		return choir_error_status();
	CHOIR_TRY(model_load(&s->model, s->strategy, &plan, path));
	s->prompt = s->length = strlen(given.prompt);
	s->text = malloc(s->length + (size_t) given.bytes);
	s->args = choir_values_new(s->strategy);
	if (s->text == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "%lld bytes: out of memory", (long long) given.bytes);
	memcpy(s->text, given.prompt, s->length);
	return s->args == NULL ? choir_error_status() : CHOIR_OK;
}

static void print_json(const sampling *s)
{
	int64_t *bytes = malloc((size_t) given.bytes * sizeof *bytes);
	for (int64_t i = 0; bytes != NULL && i < given.bytes; i++)
		bytes[i] = s->text[s->prompt + (size_t) i];
	json_begin();
	json_text("event", "end");
	json_list("bytes", bytes == NULL ? 0 : (size_t) given.bytes, bytes);
	json_end();
	free(bytes);
}

// Prints what was written and not yet printed. A model can have learned to command a terminal, so
// there the text is made harmless; a file or a pipe gets the bytes as they are.
static void print_more(sampling *s, bool more)
{
	const size_t n = s->length - s->shown;
	if (given.json)
		return;
	if (!progress_on()) {
		s->shown += fwrite(s->text + s->shown, 1, n, stdout);
		return;
	}
	s->shown += clean_write(
			stdout, s->text + s->shown, n, &(clean_options){ .lines = true, .more = more });
	fflush(stdout);
}

static choir_status sample(sampling *s, const char *path)
{
	CHOIR_TRY(prepare(s, path));
	print_more(s, true);
	for (int64_t i = 0; i < given.bytes; i++) {
		CHOIR_TRY(add_byte(s));
		print_more(s, i + 1 < given.bytes);
	}
	if (given.json)
		print_json(s);
	else
		putchar('\n');
	return CHOIR_OK;
}

int sample_main(int argc, char **argv)
{
	const char *path = NULL;
	const options_result result = options_read(&self, argc, argv, &path);
	if (result != OPTIONS_GIVEN)
		return result == OPTIONS_HELP ? EXIT_OK : EXIT_USAGE;
	sampling s = { .strategy = NULL };
	const int code = sample(&s, path) == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_values_free(s.args);
	choir_values_free(s.result);
	choir_strategy_free(s.strategy);
	free(s.text);
	return code;
}

// choir export: writes a trained model as one C file.
#include "commands.h"
#include "model/initial_weights.h"
#include "model/model.h"
#include "command_options.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ABOUT = 8192 };

static struct {
	const char *c, *name, *weights, *map;
	bool json;
} given = { .name = "model" };

static const option options[] = {
	{ "--c", "FILE", OPTION_TEXT, &given.c, .help = "C file to write; it is C11 and C++17" },
	{ "--weights", "FILE", OPTION_TEXT, &given.weights,
			.help = "safetensors file to write, for another library" },
	{ "--map", "MAP", OPTION_TEXT, &given.map,
			.help = "names and layouts in --weights: torch, torchvision\n"
					"(resnet18), keras, or a file of lines TENSOR VARIABLE\n"
					"[AXES] (keras)" },
	{ "--name", "NAME", OPTION_TEXT, &given.name,
			.help = "prefix of the defined names, as in NAME_predict (model)" },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir export",
	.operands = "FILE",
	.about =
			"Writes a trained model with its weights as one C file, or its weights for another\n"
			"library.\n\n"
			"FILE is what choir train --save wrote, or a directory of checkpoints. The C file\n"
			"allocates no memory and needs only libm. It defines one function, NAME_predict. The\n"
			"comment at the top of the C file describes the call. For a table the C file takes "
			"the\n"
			"numbers of the columns as they are, NaN for a missing one if the model was trained\n"
			"with --missing impute, and for a regression gives numbers in the units of the "
			"table.\n"
			"Compiled with\n"
			"-ffp-contract=off, the scores of classes have the bits of CHOIR_KERNELS=plain choir\n"
			"predict --scores. Compiled with -DNAME_main, the C file is a program.",
	.examples = { "choir export digits.safetensors --c digits.c --name digits",
			"choir export run --weights model.safetensors --map torch" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

static size_t add_names(
		char *about, size_t at, const char *what, size_t n, const char *const name[])
{
	at += (size_t) snprintf(about + at, ABOUT - at, "\n%s:", what);
	for (size_t i = 0; i < n && at < ABOUT / 2; i++)
		at += (size_t) snprintf(about + at, ABOUT - at, "%s %zu %.80s%s", i == 0 ? "" : ",", i,
				name[i], i + 1 < n && at >= ABOUT / 2 - 100 ? ", ..." : "");
	return at;
}

static choir_status describe(const model_plan *plan, const char *path, char about[ABOUT])
{
	static input_columns inputs;
	static char list[METADATA_SIZE];
	static const char *name[MAX_INPUTS];
	const table_plan *t = plan->table;
	if (model_plan_text(plan)) {
		snprintf(about, ABOUT, "%s_predict: a %s; computes the scores of the next byte of a text.",
				given.name, plan->kind);
		return CHOIR_OK;
	}
	CHOIR_TRY(table_plan_inputs(t, path, &inputs));
	const bool numbers = model_plan_regression(plan);
	size_t at = (size_t) snprintf(about, ABOUT,
			numbers ? "%s_predict: a %s; computes %lld number%s, in the units of the table."
					: "%s_predict: a %s; computes the scores of %lld class%s before softmax.",
			given.name, plan->kind, (long long) plan->classes,
			plan->classes == 1 ? ""
					: numbers  ? "s"
							   : "es");
	const size_t n = table_number_names(&inputs, list, name);
	if (n > 0)
		at = add_names(about, at, "Inputs, by column", n, name);
	if (t->imputes)
		at += (size_t) snprintf(about + at, ABOUT - at,
				"\nNaN means a missing number; its column's mean replaces it.");
	if (t->classes > 0)
		add_names(about, at, numbers ? "Outputs" : "Scores, by class", t->classes, t->name);
	return CHOIR_OK;
}

static choir_status write_weights(choir_strategy *s)
{
	char *map = NULL;
	const char *name = given.map == NULL ? "keras" : given.map;
	choir_status status = init_read_map("--map", name, &map);
	if (status == CHOIR_OK)
		status = choir_strategy_save_mapped(s, given.weights, map, NULL);
	free(map);
	if (status != CHOIR_OK)
		return status;
	if (!given.json) {
		printf("wrote %s: weights with the names of %s\n", given.weights, name);
		return CHOIR_OK;
	}
	json_begin_event("end");
	json_text("file", given.weights);
	json_text("map", name);
	json_end();
	return CHOIR_OK;
}

static void print_plan(const model_plan *plan)
{
	const choir_shape one = model_input(plan);
	const int64_t inputs = choir_shape_elements(&one);
	char function[128];
	snprintf(function, sizeof function, "%s_predict", given.name);
	if (given.json) {
		json_begin_event("end");
		json_text("file", given.c);
		json_text("function", function);
		json_integer("inputs", inputs);
		json_integer("outputs", plan->classes);
		json_end();
		return;
	}
	printf("wrote %s: %s, %s%lld %s to %lld %s\n", given.c, function,
			model_plan_text(plan) ? "up to " : "", (long long) inputs,
			model_plan_text(plan) ? "bytes" : "numbers", (long long) plan->classes,
			model_plan_regression(plan) ? "numbers" : "scores");
}

static choir_status check_output(const char *path)
{
	struct stat from, to;
	const char *output = given.c != NULL ? given.c : given.weights;
	if (stat(path, &from) != 0 || stat(output, &to) != 0 || from.st_dev != to.st_dev ||
			from.st_ino != to.st_ino)
		return CHOIR_OK;
	return choir_fail(CHOIR_INVALID, "%s %s: is the weights file itself; needs another file",
			given.c != NULL ? "--c" : "--weights", output);
}

// The moments of channels are repeated: a C file has one for each number.
static choir_status spread_moments(const model_plan *plan, float **moments)
{
	const table_plan *t = plan->table;
	const size_t n = (size_t) choir_shape_elements(&plan->image);
	float *mean = malloc(2 * n * sizeof *mean);
	if (mean == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "export: no memory for %zu means", n);
	for (size_t i = 0; i < n; i++) {
		mean[i] = t->mean[i % (size_t) t->inputs];
		mean[n + i] = t->deviation[i % (size_t) t->inputs];
	}
	*moments = mean;
	return CHOIR_OK;
}

static choir_status write_model(choir_strategy *s, const char *path)
{
	static table_plan table;
	model_plan plan = { .table = &table };
	model m;
	static char about[ABOUT];
	char found[WEIGHTS_PATH];
	if (s == NULL)
		return choir_error_status();
	CHOIR_TRY(model_find_weights(&path, found));
	CHOIR_TRY(check_output(path));
	CHOIR_TRY(model_plan_read(&plan, path));
	CHOIR_TRY(model_load(&m, s, &plan, path));
	if (given.c == NULL)
		return write_weights(s);
	CHOIR_TRY(describe(&plan, path, about));
	float *moments = NULL;
	if (table.inputs != 0)
		CHOIR_TRY(spread_moments(&plan, &moments));
	const choir_export_options o = {
		.size = sizeof o,
		.name = given.name,
		.about = about,
		.scale = plan.scale,
		.mean = moments,
		.deviation = moments == NULL ? NULL : moments + choir_shape_elements(&plan.image),
		.fill_nan = moments != NULL && table.imputes ? CHOIR_ON : CHOIR_OFF,
		.output_mean = table.targets > 0 ? table.target_mean : NULL,
		.output_deviation = table.targets > 0 ? table.target_deviation : NULL,
	};
	const choir_status status = choir_layer_export_c(
			m.net, model_plan_text(&plan) ? CHOIR_U8 : CHOIR_F32, model_input(&plan), &o, given.c);
	free(moments);
	CHOIR_TRY(status);
	print_plan(&plan);
	return CHOIR_OK;
}

int export_main(int argc, char **argv)
{
	const char *path = NULL;
	options_read(&self, argc, argv, &path);
	if ((given.c == NULL) == (given.weights == NULL))
		return wrong_use(&self,
				given.c == NULL ? "no file to write; needs --c FILE or --weights FILE"
								: "two files to write; needs either --c FILE or --weights FILE");
	if (given.map != NULL && given.weights == NULL)
		return wrong_use(&self, "--map without --weights; needs --weights FILE");
	choir_strategy *s = choir_one_device_strategy_new(NULL);
	const int code = write_model(s, path) == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_strategy_free(s);
	return code;
}

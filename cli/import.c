// choir import: makes a weights file of Choir from one of PyTorch or Keras. Such a file does not
// describe its model, so the options describe it.
#include "commands.h"
#include "model/initial_weights.h"
#include "model/model_kinds.h"
#include "command_options.h"
#include "output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	const char *map, *model, *widths, *image, *names, *mean, *deviation, *save;
	model_size size;
	int64_t classes;
	double scale;
	bool json;
} given = { .map = "torch" };

static const option options[] = {
	{ "--map", "MAP", OPTION_TEXT, &given.map,
			.help = "names and layouts in FILE: torch, torchvision (resnet18), keras,\n"
					"or a file of lines TENSOR VARIABLE [AXES] (torch)" },
	{ "--model", "NAME", OPTION_CHOICE, &given.model, .help = "model, as for choir train",
			.choices = model_kinds },
	{ "--widths", "LIST", OPTION_TEXT, &given.widths,
			.help = "layer widths (mlp: 512,512; cnn: 32,64,128)" },
	{ "--width", "N", OPTION_INTEGER, &given.size.width,
			.help = "embedding size or channels, as for choir train", .min = 1, .max = MAX_WIDTH },
	{ "--layers", "N", OPTION_INTEGER, &given.size.layers,
			.help = "blocks or layers, as for choir train", .min = 1, .max = MAX_LAYERS },
	{ "--heads", "N", OPTION_INTEGER, &given.size.heads,
			.help = "attention heads, as for choir train", .min = 1, .max = MAX_WIDTH },
	{ "--context", "N", OPTION_INTEGER, &given.size.context,
			.help = "context length in bytes, as for choir train", .min = 1, .max = MAX_CONTEXT },
	{ "--image", "SHAPE", OPTION_TEXT, &given.image,
			.help = "shape of an example: 28,28, or with channels 224,224,3, or\n"
					"784 for a list of numbers; text has no shape" },
	{ "--classes", "N", OPTION_INTEGER, &given.classes,
			.help = "number of classes; text has no classes", .min = 1, .max = MAX_WIDTH },
	{ "--class-names", "NAMES", OPTION_TEXT, &given.names,
			.help = "names of the classes, in the order of the scores: a list with\n"
					"commas, or a file with one name per line (class numbers)" },
	{ "--scale", "X", OPTION_NUMBER, &given.scale,
			.help = "factor of the data's values, before --mean (images: 1/255,\n"
					"as in torchvision's ToTensor; numbers: 1)" },
	{ "--mean", "LIST", OPTION_TEXT, &given.mean,
			.help = "mean of each channel or number, which is subtracted (0)" },
	{ "--deviation", "LIST", OPTION_TEXT, &given.deviation,
			.help = "deviation of each channel or number, which divides the\nvalue after --mean "
					"(1)" },
	{ "--save", "FILE", OPTION_TEXT, &given.save, .help = "safetensors file to write" },
	{ "--json", NULL, OPTION_FLAG, &given.json, .help = json_help },
};
static const command self = {
	.name = "choir import",
	.operands = "FILE",
	.about =
			"Makes a model for choir predict, export and sample from weights of PyTorch or "
			"Keras.\n\n"
			"FILE is a safetensors file. It must have every weight of the model, in shapes that\n"
			"fit, and no other tensor. If the program that made FILE scaled its examples, repeat\n"
			"this for predictions with --scale, --mean and --deviation.",
	.examples = { "choir import net.st --model mlp --image 28,28 --classes 10 --save net.choir.st",
			"choir import net.st --map names.map --model gpt --layers 6 --save net.choir.st" },
	.n = sizeof options / sizeof options[0],
	.options = options,
};

// Names without a counterpart.
typedef struct {
	int64_t restored, missing, unexpected;
	char first_missing[CLEAN_TEXT], first_unexpected[CLEAN_TEXT];
} names;

static void remember(choir_restored what, const char *name, void *user)
{
	names *n = user;
	if (what == CHOIR_RESTORED_VALUE)
		n->restored++;
	else if (what == CHOIR_RESTORED_MISSING && n->missing++ == 0)
		clean_text(name, n->first_missing);
	else if (what == CHOIR_RESTORED_UNEXPECTED && n->unexpected++ == 0)
		clean_text(name, n->first_unexpected);
}

static choir_status check_names(const char *path, const model_plan *plan, const names *n)
{
	if (n->missing > 0)
		return choir_fail(CHOIR_INVALID,
				"%s: has no tensor for %lld of %lld weights of the %s, first %s; needs all (a map "
				"of --map renames tensors)",
				path, (long long) n->missing, (long long) (n->missing + n->restored), plan->kind,
				n->first_missing);
	if (n->unexpected > 0)
		return choir_fail(CHOIR_INVALID,
				"%s: has %lld tensors without a weight in the %s, first %s; needs the same model "
				"(a line of a map, %s -, leaves a tensor out)",
				path, (long long) n->unexpected, plan->kind, n->first_unexpected,
				n->first_unexpected);
	return CHOIR_OK;
}

static choir_status read_numbers(
		const char *name, const char *list, int64_t n, double usual, float to[])
{
	const char *p = list;
	for (int64_t i = 0; i < n; i++) {
		char *end;
		to[i] = list == NULL ? (float) usual : strtof(p, &end);
		if (list == NULL)
			continue;
		if (end == p || !isfinite(to[i]) || *end != (i + 1 < n ? ',' : '\0') ||
				(usual == 1 && to[i] <= 0))
			return choir_fail(CHOIR_INVALID, "%s %s: wrong list; needs %lld%s numbers with commas",
					name, list, (long long) n, usual == 1 ? " positive" : "");
		p = end + 1;
	}
	return CHOIR_OK;
}

// The means of channels or of numbers. An image without channels has one mean, which its metadata
// repeat for each pixel.
static choir_status set_inputs(model_plan *plan)
{
	table_plan *t = plan->table;
	const bool grey = plan->image.rank == 2;
	if (given.mean == NULL && given.deviation == NULL)
		return CHOIR_OK;
	t->inputs = plan->image.rank == 3 ? image_channels(plan) : choir_shape_elements(&plan->image);
	if (model_plan_text(plan) || t->inputs > MAX_INPUTS)
		return choir_fail(CHOIR_INVALID,
				"--mean, --deviation: a %s of %lld numbers; needs images with channels, or at "
				"most "
				"%d numbers",
				plan->kind, (long long) t->inputs, MAX_INPUTS);
	CHOIR_TRY(read_numbers("--mean", given.mean, grey ? 1 : t->inputs, 0, t->mean));
	CHOIR_TRY(read_numbers("--deviation", given.deviation, grey ? 1 : t->inputs, 1, t->deviation));
	for (int64_t i = 1; grey && i < t->inputs; i++) {
		t->mean[i] = t->mean[0];
		t->deviation[i] = t->deviation[0];
	}
	return CHOIR_OK;
}

// Cuts text into names, which stay in it.
static choir_status cut_names(table_plan *t, int64_t classes, char between)
{
	int64_t n = 0;
	for (char *p = t->names, *end = p; p != NULL && *p != '\0'; p = end, n++) {
		end = strchr(p, between);
		if (end != NULL)
			*end++ = '\0';
		p[strcspn(p, "\r")] = '\0';
		if (*p == '\0')
			break;
		if (n < MAX_CLASS_NAMES)
			t->name[n] = p;
	}
	if (n != classes || n > MAX_CLASS_NAMES)
		return choir_fail(CHOIR_INVALID,
				"--class-names %s: %lld names before an empty one; needs %lld, at most %d",
				given.names, (long long) n, (long long) classes, MAX_CLASS_NAMES);
	t->classes = (size_t) n;
	return CHOIR_OK;
}

static choir_status set_names(model_plan *plan)
{
	table_plan *t = plan->table;
	if (given.names == NULL)
		return CHOIR_OK;
	if (model_plan_text(plan))
		return choir_fail(CHOIR_INVALID,
				"--class-names: a %s has none; needs a model of images "
				"or numbers",
				plan->kind);
	const bool list = strchr(given.names, ',') != NULL;
	char *text = NULL;
	choir_status status = CHOIR_OK;
	if (!list)
		status = init_read_text("--class-names", given.names, "names with commas, or a file",
				sizeof t->names - 1, &text);
	else if (strlen(given.names) >= sizeof t->names)
		status = choir_fail(
				CHOIR_INVALID, "--class-names: needs less than %zu bytes", sizeof t->names);
	if (status == CHOIR_OK) {
		strcpy(t->names, list ? given.names : text);
		status = cut_names(t, plan->classes, list ? ',' : '\n');
	}
	free(text);
	return status;
}

static choir_status make_plan(model_plan *plan)
{
	CHOIR_TRY(model_plan_set(plan, given.model, given.widths));
	CHOIR_TRY(model_plan_resize(plan, &given.size));
	const bool text = model_plan_text(plan);
	if (text != (given.image == NULL) || text != (given.classes == 0))
		return choir_fail(CHOIR_INVALID, "--model %s: needs %s", given.model,
				text ? "neither --image nor --classes" : "--image and --classes");
	plan->image = CHOIR_SHAPE(plan->size.context);
	if (!text)
		plan->image.rank = model_read_list(given.image, MAX_WIDTH, 3, plan->image.dim);
	if (plan->image.rank < 1)
		return choir_fail(CHOIR_INVALID,
				"--image %s: wrong shape; needs 1 to 3 numbers from 1 to %d with commas",
				given.image, MAX_WIDTH);
	plan->classes = text ? BYTES : given.classes;
	plan->scale = given.scale > 0 ? given.scale : plan->image.rank > 1 ? 1.0 / 255 : 1;
	const bool normalizes =
			strncmp(plan->kind, "resnet", 6) == 0 || strcmp(plan->kind, "mobilenet") == 0;
	if (normalizes && strcmp(given.map, "keras") == 0)
		return choir_fail(CHOIR_INVALID,
				"--map keras: the %s has batch normalization with epsilon 1e-5, and Keras' "
				"default "
				"is 1e-3; if this model was made with 1e-5, use a map file with the line keras",
				plan->kind);
	CHOIR_TRY(model_plan_check(plan));
	CHOIR_TRY(set_names(plan));
	return set_inputs(plan);
}

static choir_status import(const char *path, choir_strategy **s)
{
	static table_plan table;
	static char metadata[METADATA_SIZE];
	model m = { .plan = { .table = &table } };
	names n = { .restored = 0 };
	choir_scope scope;
	char *map = NULL;
	CHOIR_TRY(make_plan(&m.plan));
	CHOIR_TRY(model_plan_fits(&m.plan, path));
	*s = choir_one_device_strategy_new(NULL);
	if (*s == NULL)
		return choir_error_status();
	CHOIR_TRY(choir_scope_enter(&scope, *s));
	const choir_status built = model_build(&m, &m.plan);
	CHOIR_TRY(choir_scope_exit(&scope));
	CHOIR_TRY(built);
	choir_status status = init_read_map("--map", given.map, &map);
	if (status == CHOIR_OK)
		status = choir_strategy_restore_partial(*s, path,
				CHOIR_OPTIONS(choir_restore_options, .map = map, .report = remember, .user = &n));
	free(map);
	CHOIR_TRY(status);
	CHOIR_TRY(check_names(path, &m.plan, &n));
	if (!model_plan_write(&m.plan, metadata))
		return choir_fail(CHOIR_UNSUPPORTED, "%s: too many inputs for metadata", path);
	CHOIR_TRY(choir_strategy_save(*s, given.save, metadata));
	if (given.json) {
		json_begin_event("end");
		json_text("file", given.save);
		json_integer("restored", n.restored);
		json_end();
	} else {
		printf("saved %s: a %s, %lld weights from %s\n", given.save, m.plan.kind,
				(long long) n.restored, path);
	}
	return CHOIR_OK;
}

int import_main(int argc, char **argv)
{
	const char *path = NULL;
	choir_strategy *s = NULL;
	options_read(&self, argc, argv, &path);
	if (given.model == NULL)
		return wrong_use(&self, "no model; needs --model NAME (mlp, cnn, ...)");
	if (given.save == NULL)
		return wrong_use(&self, "no file to write; needs --save FILE");
	const int code = import(path, &s) == CHOIR_OK ? EXIT_OK : failed(&self);
	choir_strategy_free(s);
	return code;
}

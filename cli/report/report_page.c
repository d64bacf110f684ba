// The page of choir report about a training: its results, curves, errors, times and options.
#include "report/report_page.h"

#include "report/html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void tile(FILE *to, const char *name, const char *value)
{
	fprintf(to, "<div class=\"tile\"><span>%s</span><b>", name);
	html_text(to, value);
	fputs("</b></div>", to);
}

static void number_tile(FILE *to, const char *name, double value, const char *unit)
{
	char number[32], text[64];
	if (!isfinite(value))
		return;
	snprintf(text, sizeof text, "%s%s", html_number(value, number), unit);
	tile(to, name, text);
}

static void percent_tile(FILE *to, const char *name, double value)
{
	char text[32];
	if (!isfinite(value))
		return;
	snprintf(text, sizeof text, "%.2f %%", 100 * value);
	tile(to, name, text);
}

static double sum_of_seconds(const run_points *p)
{
	double sum = 0;
	for (size_t i = 0; i < p->n; i++)
		sum += isfinite(p->point[i].seconds) ? p->point[i].seconds : 0;
	return sum;
}

static void write_tiles(FILE *to, const run_events *r)
{
	char text[64], seconds[32];
	// Of a training that goes on: its last epoch.
	const run_point *last = r->epochs.n > 0 ? &r->epochs.point[r->epochs.n - 1] : NULL;
	const bool ended = r->end.n > 0;
	fputs("<div class=\"tiles\">", to);
	percent_tile(to, "Test accuracy",
			ended				   ? run_pair_number(&r->end, "test_accuracy")
					: last != NULL ? last->test_accuracy
								   : (double) NAN);
	percent_tile(to, "Majority class", run_pair_number(&r->end, "test_majority_class"));
	number_tile(to, "Test AUC", run_pair_number(&r->end, "test_auc"), "");
	number_tile(to, "Test R2", run_pair_number(&r->end, "test_r2"), "");
	number_tile(to, "Test mean absolute error",
			run_pair_number(&r->end, "test_mean_absolute_error"), "");
	number_tile(to, "Bits per byte", run_pair_number(&r->end, "bits_per_byte"), "");
	number_tile(to, "Test loss", run_pair_number(&r->end, "test_loss"), "");
	if (last != NULL && isinf(last->loss))
		tile(to, "Training loss", "not finite");
	number_tile(to, "Training loss",
			ended				   ? run_pair_number(&r->end, "loss")
					: last != NULL ? last->loss
								   : (double) NAN,
			"");
	number_tile(to, "Throughput", run_pair_number(&r->end, "examples_per_s"), " /s");
	if (last != NULL) {
		snprintf(text, sizeof text, "%.0f of %.40s", last->epoch,
				run_pair_find(&r->options, "--epochs"));
		tile(to, "Epochs", text);
		tile(to, "Training time", html_seconds(sum_of_seconds(&r->epochs), seconds));
	}
	fputs("</div>\n", to);
}

static bool is_one(const run_pairs *p, const char *key)
{
	return strcmp(run_pair_find(p, key), "1") == 0;
}

static void write_head(FILE *to, const run_events *r)
{
	const char *model = run_pair_find(&r->start, "model"),
			   *data = run_pair_find(&r->start, "data");
	fputs(html_head, to);
	fputs("<title>", to);
	html_text(to, model);
	fputs(" on ", to);
	html_text(to, data);
	fputs("</title>\n", to);
	for (const char *const *part = html_style; *part != NULL; part++)
		fputs(*part, to);
	fputs("</head>\n<body>\n<main>\n<header><h1>", to);
	html_text(to, model);
	fputs(" on ", to);
	html_text(to, data);
	fputs("</h1><p>", to);
	html_text(to, run_pair_find(&r->start, "train_examples"));
	fputs(" examples to train, ", to);
	html_text(to, run_pair_find(&r->start, "test_examples"));
	fputs(" to test · ", to);
	html_text(to, run_pair_find(&r->start, "replicas"));
	fputs(is_one(&r->start, "replicas") ? " replica, " : " replicas, ", to);
	html_text(to, run_pair_find(&r->machine, "workers"));
	fputs(is_one(&r->machine, "workers") ? " worker · seed " : " workers · seed ", to);
	html_text(to, run_pair_find(&r->start, "seed"));
	fputs("</p><p>", to);
	if (r->end.n > 0) {
		fputs("weights <code>", to);
		html_text(to, run_pair_find(&r->end, "weights"));
		fputs("</code>", to);
	} else if (r->failed.n > 0) {
		fputs(is_one(&r->failed, "stopped") ? "the training was " : "the training failed: ", to);
		html_text(to, run_pair_find(&r->failed, "text"));
	} else {
		fputs("the training has not ended", to);
	}
	fputs(" · started ", to);
	html_text(to, run_pair_find(&r->machine, "started"));
	fputs("</p></header>\n", to);
}

typedef enum { STEP, LOSS, RATE, SPEED, TEST_LOSS, ACCURACY, TEST_ACCURACY, ERROR, BITS } column;

static double value_of(const run_point *p, column c)
{
	const double values[] = { p->step, p->loss, p->rate, p->examples_per_s, p->test_loss,
		p->accuracy, p->test_accuracy, p->error, p->bits };
	return values[c];
}

typedef struct {
	column y;
	const char *name, *style;
	bool steps; // else epochs
} curve;

// A chart of up to three curves over steps.
static void write_chart(
		FILE *to, const run_events *r, const chart *like, size_t n, const curve curves[])
{
	enum { MAX = 3 };
	chart_line line[MAX] = { { .n = 0 } };
	double *memory[MAX] = { NULL };
	chart c = *like;
	for (size_t k = 0; k < n; k++) {
		const run_points *p = curves[k].steps ? &r->steps : &r->epochs;
		memory[k] = malloc((2 * p->n + 1) * sizeof *memory[k]);
		for (size_t i = 0; memory[k] != NULL && i < p->n; i++) {
			memory[k][i] = value_of(&p->point[i], STEP);
			memory[k][p->n + i] = value_of(&p->point[i], curves[k].y);
		}
		line[k] = (chart_line){ .name = curves[k].name,
			.style = curves[k].style,
			.n = memory[k] == NULL ? 0 : p->n,
			.x = memory[k],
			.y = memory[k] == NULL ? NULL : memory[k] + p->n,
			.faint = curves[k].steps && n > 1,
			.dots = !curves[k].steps };
	}
	c.n = n;
	c.line = line;
	c.x_name = "step";
	html_chart(to, &c);
	for (size_t k = 0; k < n; k++)
		free(memory[k]);
}

static void write_charts(FILE *to, const run_events *r)
{
	static const curve loss[] = { { LOSS, "step", "a", true },
		{ LOSS, "training, mean of epoch", "a", false }, { TEST_LOSS, "test", "b", false } };
	static const curve accuracy[] = { { ACCURACY, "training", "a", false },
		{ TEST_ACCURACY, "test", "b", false } };
	static const curve error[] = { { ERROR, "test", "b", false } };
	static const curve bits[] = { { BITS, "test", "b", false } };
	static const curve rate[] = { { RATE, "learning rate", "c", true } };
	static const curve speed[] = { { SPEED, "since the epoch began", "a", true },
		{ SPEED, "mean of all epochs", "c", false } };
	write_chart(to, r, &(chart){ .title = "Loss", .unit = "", .logarithmic = 1 }, 3, loss);
	write_chart(to, r, &(chart){ .title = "Accuracy", .unit = "", .percent = 1 }, 2, accuracy);
	write_chart(to, r, &(chart){ .title = "Mean squared error", .unit = "", .logarithmic = 1 }, 1,
			error);
	write_chart(to, r, &(chart){ .title = "Bits per byte", .unit = "" }, 1, bits);
	write_chart(to, r, &(chart){ .title = "Learning rate", .unit = "", .from_zero = 1 }, 1, rate);
	write_chart(to, r,
			&(chart){ .title = "Throughput", .unit = "examples per second", .from_zero = 1 }, 2,
			speed);
}

static void write_pairs(FILE *to, const char *title, const run_pairs *p, const char *dashes)
{
	if (p->n == 0)
		return;
	fprintf(to, "<section class=\"card\"><h2>%s</h2><table>", title);
	for (size_t i = 0; i < p->n; i++) {
		const char *key = p->pair[i].key;
		if (strcmp(key, "--trace") == 0 || strcmp(key, "--log") == 0)
			continue; // --run has set them
		fputs("<tr><td class=\"k\">", to);
		html_text(to, key + (dashes[0] != '\0' && strncmp(key, dashes, 2) == 0 ? 2 : 0));
		fputs("</td><td class=\"v\">", to);
		html_text(to, p->pair[i].value);
		fputs("</td></tr>", to);
	}
	fputs("</table></section>\n", to);
}

void page_write(FILE *to, const run_events *r)
{
	write_head(to, r);
	write_tiles(to, r);
	fputs("<div class=\"grid2\">\n", to);
	write_charts(to, r);
	page_confusion(to, r);
	page_times(to, r);
	write_pairs(to, "Options", &r->options, "--");
	write_pairs(to, "Machine", &r->machine, "");
	fputs("</div>\n<footer>Written by choir report. The same options on any devices, threads and "
		  "workers give the same weights.</footer>\n</main>\n</body>\n</html>\n",
			to);
}

// Reads the events and the traces of a training.
#include "report/run_events.h"

#include "report/json_line.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *run_pair_find(const run_pairs *p, const char *key)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->pair[i].key, key) == 0)
			return p->pair[i].value;
	return "";
}

double run_pair_number(const run_pairs *p, const char *key)
{
	char *end;
	const char *text = run_pair_find(p, key);
	const double number = strtod(text, &end);
	return end == text || *end != '\0' ? (double) NAN : number;
}

static void keep_pairs(run_pairs *p, const json_line *line)
{
	p->n = 0;
	for (size_t i = 0; i < line->n && p->n < RUN_PAIRS; i++) {
		const json_field *f = &line->field[i];
		run_pair *to = &p->pair[p->n];
		if (strcmp(f->key, "event") == 0 || (f->text == NULL && isnan(f->number)))
			continue;
		snprintf(to->key, sizeof to->key, "%s", f->key);
		if (f->text != NULL)
			snprintf(to->value, sizeof to->value, "%s", f->text);
		else
			snprintf(to->value, sizeof to->value, "%.12g", f->number);
		p->n++;
	}
}

// of: whether there was something to measure.
static double measured(const json_line *line, const char *key, bool of)
{
	const double number = json_line_number(line, key);
	return of && isnan(number) && json_line_find(line, key) != NULL ? (double) INFINITY : number;
}

// A training that was resumed repeats steps: the later ones count.
static choir_status add_point(run_points *p, const json_line *line, bool tested)
{
	const run_point point = {
		.step = json_line_number(line, "step"),
		.loss = measured(line, "loss", true),
		.rate = json_line_number(line, "learning_rate"),
		.examples_per_s = json_line_number(line, "examples_per_s"),
		.epoch = json_line_number(line, "epoch"),
		.test_loss = measured(line, "test_loss", tested),
		.accuracy = json_line_number(line, "train_accuracy"),
		.test_accuracy = json_line_number(line, "test_accuracy"),
		.error = measured(line, "test_mean_squared_error", tested),
		.bits = measured(line, "bits_per_byte", tested),
		.seconds = json_line_number(line, "epoch_seconds"),
	};
	if (!(point.step >= 0))
		return CHOIR_OK;
	while (p->n > 0 && p->point[p->n - 1].step >= point.step)
		p->n--;
	if (p->n == p->capacity) {
		const size_t capacity = p->capacity == 0 ? 256 : 2 * p->capacity;
		run_point *grown = realloc(p->point, capacity * sizeof *grown);
		if (grown == NULL)
			return choir_fail(CHOIR_NO_MEMORY, "report: no memory for %zu points", capacity);
		p->point = grown;
		p->capacity = capacity;
	}
	p->point[p->n++] = point;
	return CHOIR_OK;
}

static choir_status add_class(run_events *r, const json_line *line)
{
	const json_field *counts = json_line_find(line, "predicted");
	const double number = json_line_number(line, "class");
	if (number == 0) { // a resumed training has another matrix
		for (size_t i = 0; i < r->classes; i++)
			free(r->class[i].predicted);
		r->classes = 0;
	}
	if (counts == NULL || counts->n == 0 || counts->n > RUN_CLASSES ||
			number != (double) r->classes || r->classes == counts->n)
		return choir_fail(CHOIR_CORRUPT, "a class without its counts");
	run_class *c = &r->class[r->classes];
	c->predicted = malloc(counts->n * sizeof *c->predicted);
	if (c->predicted == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "no memory for %zu counts", counts->n);
	memcpy(c->predicted, line->number + counts->first, counts->n * sizeof *c->predicted);
	c->n = counts->n;
	c->examples = 0;
	for (size_t i = 0; i < counts->n; i++)
		c->examples += c->predicted[i] >= 0 ? c->predicted[i] : (c->predicted[i] = 0);
	snprintf(c->name, sizeof c->name, "%s", json_line_text(line, "name"));
	r->classes++;
	return CHOIR_OK;
}

static choir_status add_event(run_events *r, const json_line *line)
{
	const char *event = json_line_text(line, "event");
	const bool tested = run_pair_number(&r->start, "test_examples") > 0;
	if (strcmp(event, "step") == 0)
		return add_point(&r->steps, line, tested);
	if (strcmp(event, "epoch") == 0)
		return add_point(&r->epochs, line, tested);
	if (strcmp(event, "class") == 0)
		return add_class(r, line);
	const struct {
		const char *event;
		run_pairs *to;
	} kinds[] = { { "machine", &r->machine }, { "options", &r->options }, { "start", &r->start },
		{ "end", &r->end }, { "failed", &r->failed } };
	if (strcmp(event, "start") == 0)
		r->end.n = r->failed.n = 0; // a resumed training
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(event, kinds[i].event) == 0)
			keep_pairs(kinds[i].to, line);
	return CHOIR_OK;
}

static choir_status read_lines(run_events *r, FILE *file, const char *path)
{
	char *line = NULL;
	size_t size = 0, number = 0;
	json_line read = { .n = 0 };
	choir_status status = CHOIR_OK;
	for (ssize_t n; status == CHOIR_OK && (n = getline(&line, &size, file)) > 0;) {
		number++;
		if (line[n - 1] != '\n')
			break; // still being written
		const bool good = strlen(line) == (size_t) n && json_line_read(&read, line);
		status = good
				? add_event(r, &read)
				: choir_fail(read.no_memory ? CHOIR_NO_MEMORY : CHOIR_CORRUPT, "wrong event");
		if (status != CHOIR_OK) {
			char why[128];
			snprintf(why, sizeof why, "%s", choir_error());
			choir_fail(status, "%s: line %zu: %s; needs a line of choir train --run", path, number,
					why);
		}
	}
	free(line);
	json_line_free(&read);
	return status;
}

static run_track *find_track(run_events *r, const choir_trace_span *s)
{
	for (size_t i = 0; i < r->tracks; i++)
		if (r->track[i].track == s->track && r->track[i].worker == s->worker)
			return &r->track[i];
	if (r->tracks == RUN_TRACKS)
		return NULL;
	run_track *t = &r->track[r->tracks++];
	*t = (run_track){ .worker = s->worker, .track = s->track };
	snprintf(t->name, sizeof t->name, "%.40s", s->track_name);
	return t;
}

static void add_operation(run_events *r, const choir_trace_span *s)
{
	size_t i = 0;
	while (i < r->operations && strcmp(r->operation[i].name, s->name) != 0)
		i++;
	if (i == RUN_OPERATIONS)
		return;
	if (i == r->operations) {
		r->operation[r->operations++] = (run_operation){ .calls = 0 };
		snprintf(r->operation[i].name, sizeof r->operation[i].name, "%.40s", s->name);
	}
	r->operation[i].calls++;
	r->operation[i].seconds += s->own;
}

// Of the program's thread and of replicas; other threads work beside them.
static void add_span(const choir_trace_span *s, void *user)
{
	run_events *r = user;
	waits_add(s, &r->waits);
	run_track *t = s->track >= 0 || s->track == CHOIR_TRACE_PROGRAM ? find_track(r, s) : NULL;
	if (t == NULL)
		return;
	t->seconds[s->category] += s->own;
	if (s->track >= 0 && s->category == CHOIR_TRACE_COMPUTE)
		add_operation(r, s);
}

static int by_place(const void *a, const void *b)
{
	const run_track *x = a, *y = b;
	return x->worker != y->worker ? (x->worker > y->worker) - (x->worker < y->worker)
								  : (x->track > y->track) - (x->track < y->track);
}

static int by_seconds(const void *a, const void *b)
{
	const run_operation *x = a, *y = b;
	return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static choir_status read_traces(run_events *r, const char *directory)
{
	trace_parts p;
	choir_status status = trace_parts_find(&p, directory);
	for (size_t i = 0; status == CHOIR_OK && i < p.n; i++)
		status = choir_trace_read(p.path[i], add_span, r);
	const bool none = status == CHOIR_NOT_FOUND && p.n == 0; // a training that goes on
	trace_parts_free(&p);
	qsort(r->track, r->tracks, sizeof r->track[0], by_place);
	qsort(r->operation, r->operations, sizeof r->operation[0], by_seconds);
	waits_sort(&r->waits);
	return none ? CHOIR_OK : status;
}

choir_status run_events_read(run_events *r, const char *directory)
{
	char path[TRACE_PATH];
	if (snprintf(path, sizeof path, "%s/run.jsonl", directory) >= (int) sizeof path)
		return choir_fail(CHOIR_INVALID, "%.100s...: path too long", directory);
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return choir_fail(errno == ENOENT || errno == ENOTDIR ? CHOIR_NOT_FOUND : CHOIR_IO,
				"%s: %s; needs a directory of choir train --run", path, strerror(errno));
	const choir_status status = read_lines(r, file, path);
	fclose(file);
	CHOIR_TRY(status);
	if (r->start.n == 0)
		return choir_fail(CHOIR_CORRUPT,
				"%s: has no event \"start\"; needs a file of choir train "
				"--run",
				path);
	return read_traces(r, directory);
}

void run_events_free(run_events *r)
{
	free(r->steps.point);
	free(r->epochs.point);
	for (size_t i = 0; i < r->classes; i++)
		free(r->class[i].predicted);
	r->classes = 0;
}

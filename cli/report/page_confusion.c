// The confusion matrix and the errors of each class.
#include "report/report_page.h"

#include "report/html.h"

#include <stdlib.h>

enum { SHOWN = 24, MAX_ROWS = 40 };

// False: there is none, or the training still writes it.
static bool is_whole(const run_events *r)
{
	for (size_t i = 0; i < r->classes; i++)
		if (r->class[i].n != r->classes)
			return false;
	return r->classes > 1;
}

static void write_cell(FILE *to, const run_events *r, size_t row, size_t column)
{
	const run_class *c = &r->class[row];
	const double count = c->predicted[column];
	const double part = c->examples > 0 ? count / c->examples : 0;
	if (count == 0) {
		fputs("<td></td>", to);
		return;
	}
	fprintf(to, "<td class=\"%s%s\" style=\"--v:%.2f\" title=\"", row == column ? "g" : "e",
			part > 0.6 ? " s" : "", 0.12 + 0.88 * part);
	html_text(to, c->name);
	fputs(" as ", to);
	html_text(to, r->class[column].name);
	fprintf(to, ": %.0f of %.0f\">%.0f</td>", count, c->examples, count);
}

static void write_matrix(FILE *to, const run_events *r)
{
	fputs("<section class=\"card\"><h2>Confusion matrix</h2><p>Rows are the classes of the test "
		  "examples, columns the predictions.</p><div class=\"scroll\"><table "
		  "class=\"matrix\"><thead><tr><th></th>",
			to);
	for (size_t i = 0; i < r->classes; i++) {
		fputs("<th>", to);
		html_text(to, r->class[i].name);
		fputs("</th>", to);
	}
	fputs("<th>recall</th></tr></thead><tbody>", to);
	for (size_t i = 0; i < r->classes; i++) {
		const run_class *c = &r->class[i];
		fputs("<tr><th>", to);
		html_text(to, c->name);
		fputs("</th>", to);
		for (size_t k = 0; k < r->classes; k++)
			write_cell(to, r, i, k);
		if (c->examples > 0)
			fprintf(to, "<td>%.1f %%</td>", 100 * c->predicted[i] / c->examples);
		fputs("</tr>", to);
	}
	fputs("</tbody></table></div></section>\n", to);
}

// The class that examples of a class are most often taken for.
static size_t likeliest_error(const run_events *r, size_t row)
{
	size_t best = row == 0 ? 1 : 0;
	for (size_t k = 0; k < r->classes; k++)
		if (k != row && r->class[row].predicted[k] > r->class[row].predicted[best])
			best = k;
	return best;
}

typedef struct {
	size_t row;
	double part;
} error;

static int by_part(const void *a, const void *b)
{
	const error *x = a, *y = b;
	return x->part != y->part ? (x->part < y->part) - (x->part > y->part)
							  : (x->row > y->row) - (x->row < y->row);
}

static void write_error(FILE *to, const run_events *r, const error *e)
{
	const run_class *c = &r->class[e->row];
	const size_t other = likeliest_error(r, e->row);
	fputs("<tr><td class=\"v\">", to);
	html_text(to, c->name);
	fprintf(to,
			"</td><td class=\"n\">%.0f</td><td class=\"n\">%.1f %%</td><td><div "
			"class=\"bar\"><span class=\"bad\" style=\"width:%.1f%%\"></span></div></td><td "
			"class=\"v\">",
			c->examples, 100 * e->part, 100 * e->part);
	if (c->predicted[other] > 0) {
		html_text(to, r->class[other].name);
		if (c->predicted[other] == 1)
			fputs(" <small>once</small>", to);
		else
			fprintf(to, " <small>%.0f times</small>", c->predicted[other]);
	}
	fputs("</td></tr>", to);
}

static void write_errors(FILE *to, const run_events *r)
{
	error list[RUN_CLASSES];
	for (size_t i = 0; i < r->classes; i++) {
		const run_class *c = &r->class[i];
		list[i] = (error){ i, c->examples > 0 ? 1 - c->predicted[i] / c->examples : 0 };
	}
	qsort(list, r->classes, sizeof list[0], by_part);
	fputs("<section class=\"card\"><h2>Errors by class</h2><div class=\"scroll\"><table><thead>"
		  "<tr><th>class</th><th class=\"n\">examples</th><th class=\"n\">wrong</th><th></th>"
		  "<th>most often taken for</th></tr></thead><tbody>",
			to);
	for (size_t i = 0; i < r->classes && i < MAX_ROWS; i++)
		write_error(to, r, &list[i]);
	fputs("</tbody></table></div>", to);
	if (r->classes > MAX_ROWS)
		fprintf(to, "<p>The other %zu classes have fewer errors.</p>", r->classes - MAX_ROWS);
	fputs("</section>\n", to);
}

void page_confusion(FILE *to, const run_events *r)
{
	if (!is_whole(r))
		return;
	if (r->classes <= SHOWN)
		write_matrix(to, r);
	write_errors(to, r);
}

// Where the time of a training went: by worker and replica, by operation, and in waits.
#include "report/report_page.h"

#include "report/html.h"

static const choir_trace_category order[] = { CHOIR_TRACE_COMPUTE, CHOIR_TRACE_WAIT,
	CHOIR_TRACE_REDUCE, CHOIR_TRACE_UPDATE, CHOIR_TRACE_INPUT, CHOIR_TRACE_CHECKPOINT,
	CHOIR_TRACE_OTHER };
enum { COLUMNS = sizeof order / sizeof order[0], MAX_ROWS = 14 };

static bool is_used(const run_events *r, choir_trace_category c)
{
	for (size_t i = 0; i < r->tracks; i++)
		if (r->track[i].seconds[c] > 0)
			return true;
	return false;
}

static void write_bar(FILE *to, const run_events *r, const run_track *t)
{
	char time[32];
	fputs("<span>", to);
	if (r->waits.several)
		fprintf(to, "worker %d, ", t->worker);
	html_text(to, t->name);
	fputs("</span><div class=\"bar\">", to);
	for (int c = 0; c < COLUMNS; c++) {
		const double seconds = t->seconds[order[c]];
		if (seconds <= 0 || r->waits.end <= 0)
			continue;
		const char *name = choir_trace_category_name(order[c]);
		fprintf(to, "<span class=\"%s\" style=\"width:%.2f%%\" title=\"%s: %s\"></span>", name,
				100 * seconds / r->waits.end, name, html_seconds(seconds, time));
	}
	fputs("</div>", to);
}

static void write_tracks(FILE *to, const run_events *r)
{
	char time[32];
	fprintf(to,
			"<section class=\"card wide\"><h2>Time <small>%s of tracing, by worker and "
			"replica</small></h2><p>The thread of the program also runs the first replica, so "
			"their bars add up to one thread.</p><ul class=\"legend\">",
			html_seconds(r->waits.end, time));
	for (int c = 0; c < COLUMNS; c++)
		if (is_used(r, order[c]))
			fprintf(to, "<li><i class=\"%s\"></i>%s</li>", choir_trace_category_name(order[c]),
					choir_trace_category_name(order[c]));
	fputs("<li><i class=\"rest\"></i>no span</li></ul><div class=\"time\">", to);
	for (size_t i = 0; i < r->tracks; i++)
		write_bar(to, r, &r->track[i]);
	fputs("</div></section>\n", to);
}

static void write_operations(FILE *to, const run_events *r)
{
	char time[32];
	double sum = 0;
	for (size_t i = 0; i < r->operations; i++)
		sum += r->operation[i].seconds;
	if (!(sum > 0))
		return;
	fputs("<section class=\"card\"><h2>Compute time by operation <small>all replicas</small></h2>"
		  "<div class=\"scroll\"><table><thead><tr><th>operation</th><th class=\"n\">calls</th>"
		  "<th class=\"n\">time</th><th></th></tr></thead><tbody>",
			to);
	for (size_t i = 0; i < r->operations && i < MAX_ROWS; i++) {
		const run_operation *o = &r->operation[i];
		fputs("<tr><td class=\"v\"><code>", to);
		html_text(to, o->name);
		fprintf(to,
				"</code></td><td class=\"n\">%lld</td><td class=\"n\">%s</td><td><div "
				"class=\"bar\"><span class=\"compute\" style=\"width:%.1f%%\"></span></div></td>"
				"</tr>",
				(long long) o->calls, html_seconds(o->seconds, time), 100 * o->seconds / sum);
	}
	fputs("</tbody></table></div></section>\n", to);
}

static void write_waits(FILE *to, const run_events *r)
{
	char time[32];
	if (r->waits.n == 0)
		return;
	fputs("<section class=\"card\"><h2>Who waited for whom</h2><div class=\"scroll\"><table>"
		  "<thead><tr><th>waits</th><th>comes last</th><th class=\"n\">times</th><th "
		  "class=\"n\">time</th><th></th></tr></thead><tbody>",
			to);
	for (size_t i = 0; i < r->waits.n && i < MAX_ROWS; i++) {
		const wait *w = &r->waits.wait[i];
		fputs("<tr><td class=\"v\">", to);
		html_text(to, w->waiter);
		fputs("</td><td>", to);
		html_text(to, w->last[0] == '\0' ? "–" : w->last);
		fprintf(to,
				"</td><td class=\"n\">%lld</td><td class=\"n\">%s</td><td><div "
				"class=\"bar\"><span class=\"wait\" "
				"style=\"width:%.1f%%\"></span></div></td></tr>",
				(long long) w->times, html_seconds(w->seconds, time),
				r->waits.end > 0 ? 100 * w->seconds / r->waits.end : 0);
	}
	fputs("</tbody></table></div></section>\n", to);
}

void page_times(FILE *to, const run_events *r)
{
	if (r->tracks == 0)
		return;
	write_tracks(to, r);
	write_operations(to, r);
	write_waits(to, r);
}

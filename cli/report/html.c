// Text and charts. A chart is drawn in fixed units, and the page scales it; its colours are those
// of the page's style, so they follow light and dark.
#include "report/html.h"

#include "terminal_text.h"

#include <math.h>
#include <string.h>

void html_text(FILE *to, const char *text)
{
	size_t bytes = 0;
	for (size_t left = strlen(text); left > 0; text += bytes, left -= bytes) {
		uint32_t code = 0;
		const size_t length = clean_character(text, left, &code);
		const char *entity = code == '&' ? "&amp;"
				: code == '<'			 ? "&lt;"
				: code == '>'			 ? "&gt;"
				: code == '"'			 ? "&quot;"
				: code == '\''			 ? "&#39;"
										 : NULL;
		bytes = length == 0 ? 1 : length;
		if (length == 0 || !clean_shows(code))
			fputs("\xef\xbf\xbd", to);
		else if (entity != NULL)
			fputs(entity, to);
		else
			fwrite(text, 1, length, to);
	}
}

const char *html_number(double number, char text[32])
{
	const double size = fabs(number);
	if (!isfinite(number))
		snprintf(text, 32, "–");
	else if (size >= 1e7)
		snprintf(text, 32, "%.3g M", number / 1e6);
	else if (size >= 1e4)
		snprintf(text, 32, "%.3g k", number / 1e3);
	else if (size >= 100 || number == floor(number))
		snprintf(text, 32, "%.0f", number);
	else
		snprintf(text, 32, "%.3g", number);
	return text;
}

const char *html_seconds(double s, char text[32])
{
	if (!isfinite(s))
		snprintf(text, 32, "–");
	else if (s < 1)
		snprintf(text, 32, "%.3g ms", 1e3 * s);
	else if (s < 60)
		snprintf(text, 32, "%.3g s", s);
	else if (s < 3600)
		snprintf(text, 32, "%.0f min %.0f s", floor(s / 60), fmod(s, 60));
	else
		snprintf(text, 32, "%.0f h %.0f min", floor(s / 3600), fmod(s, 3600) / 60);
	return text;
}

enum { WIDTH = 420, HEIGHT = 230, LEFT = 46, RIGHT = 8, TOP = 10, BOTTOM = 34, DRAWN = 300 };

typedef struct {
	double low, high, step;
	int logarithmic;
} axis;

// 1, 2 or 5 times a power of ten, for about count steps.
static double nice_step(double span, int count)
{
	const double raw = span / count, power = pow(10, floor(log10(raw)));
	const double times = raw / power;
	return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static axis make_axis(double low, double high, int count)
{
	axis a = { .low = low, .high = high };
	if (!(high > low)) {
		a.low = low - (low == 0 ? 1 : fabs(low) / 10);
		a.high = high + (high == 0 ? 1 : fabs(high) / 10);
	}
	a.step = nice_step(a.high - a.low, count);
	a.low = floor(a.low / a.step + 1e-9) * a.step;
	a.high = ceil(a.high / a.step - 1e-9) * a.step;
	return a;
}

static double part_of(const axis *a, double value)
{
	if (a->logarithmic)
		value = log10(value);
	return (value - a->low) / (a->high - a->low);
}

static double x_of(const axis *a, double value)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * part_of(a, value);
}

static double y_of(const axis *a, double value)
{
	return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part_of(a, value);
}

static int is_point(const chart_line *l, size_t i)
{
	return isfinite(l->x[i]) && isfinite(l->y[i]);
}

// A line needs two points.
static int is_drawn(const chart_line *l)
{
	size_t points = 0;
	for (size_t i = 0; i < l->n && points < 2; i++)
		points += is_point(l, i) != 0;
	return points >= (l->dots ? 1 : 2);
}

// False: there is nothing to draw.
static int find_range(const chart *c, double x[2], double y[2])
{
	size_t points = 0;
	x[0] = y[0] = HUGE_VAL;
	x[1] = y[1] = -HUGE_VAL;
	for (size_t k = 0; k < c->n; k++)
		for (size_t i = 0; is_drawn(&c->line[k]) && i < c->line[k].n; i++) {
			if (!is_point(&c->line[k], i))
				continue;
			points++;
			x[0] = fmin(x[0], c->line[k].x[i]);
			x[1] = fmax(x[1], c->line[k].x[i]);
			y[0] = fmin(y[0], c->line[k].y[i]);
			y[1] = fmax(y[1], c->line[k].y[i]);
		}
	return points > 0;
}

static axis make_y_axis(const chart *c, const double y[2])
{
	if (c->logarithmic && y[0] > 0 && y[1] > 100 * y[0]) {
		axis a = make_axis(log10(y[0]), log10(y[1]), 5);
		a.step = a.step < 1 ? 1 : a.step;
		a.low = floor(log10(y[0]));
		a.high = ceil(log10(y[1]));
		a.logarithmic = 1;
		return a;
	}
	axis a = make_axis(c->from_zero && y[0] > 0 ? 0 : y[0], y[1], 4);
	if (c->percent && a.high > 1)
		a.high = 1;
	if (c->percent && a.low < 0)
		a.low = 0;
	return a;
}

static const char *tick(const chart *c, double value, char text[32])
{
	if (c->percent)
		snprintf(text, 32, "%.3g %%", 100 * value);
	else if (value != 0 && fabs(value) < 1e-3)
		snprintf(text, 32, fabs(value) < 1e-5 ? "%.0e" : "%.3g", value);
	else
		html_number(value, text);
	return text;
}

static void draw_axes(FILE *to, const chart *c, const axis *x, const axis *y)
{
	char text[32];
	for (double v = y->low; v <= y->high + y->step / 2; v += y->step) {
		const double shown = y->logarithmic ? pow(10, v) : fabs(v) < y->step / 1e6 ? 0 : v;
		const double at = y_of(y, shown);
		fprintf(to,
				"<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
				"<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
				LEFT, WIDTH - RIGHT, at, at, LEFT - 6, at + 3.5, tick(c, shown, text));
	}
	for (double v = x->low; v <= x->high + x->step / 1e6; v += x->step)
		fprintf(to, "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>",
				x_of(x, v), HEIGHT - BOTTOM + 14,
				html_number(fabs(v) < x->step / 1e6 ? 0 : v, text));
	fprintf(to, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>",
			WIDTH - RIGHT, HEIGHT - 4, c->x_name);
}

// Many points are drawn as the means of DRAWN groups.
static void draw_line(FILE *to, const chart_line *l, const axis *x, const axis *y)
{
	const size_t group = (l->n + DRAWN - 1) / DRAWN;
	fprintf(to, "<polyline class=\"line %s%s\" points=\"", l->style, l->faint ? " faint" : "");
	for (size_t i = 0; i < l->n; i += group) {
		double sum_x = 0, sum_y = 0, points = 0;
		for (size_t k = i; k < l->n && k < i + group; k++)
			if (is_point(l, k)) {
				sum_x += l->x[k];
				sum_y += l->y[k];
				points++;
			}
		if (points > 0)
			fprintf(to, "%.1f,%.1f ", x_of(x, sum_x / points), y_of(y, sum_y / points));
	}
	fputs("\"/>", to);
}

static void draw_dots(FILE *to, const chart *c, const chart_line *l, const axis *x, const axis *y)
{
	char at[32], value[32];
	for (size_t i = 0; i < l->n; i++) {
		if (!is_point(l, i))
			continue;
		fprintf(to, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>%s: ", l->style,
				x_of(x, l->x[i]), y_of(y, l->y[i]), l->n > 40 ? "1.6" : "3", l->name);
		fprintf(to, "%s at %s %s</title></circle>", tick(c, l->y[i], value), c->x_name,
				html_number(l->x[i], at));
	}
}

static void write_legend(FILE *to, const chart *c)
{
	char value[32];
	fputs("<ul class=\"legend\">", to);
	for (size_t k = 0; k < c->n; k++) {
		const chart_line *l = &c->line[k];
		size_t last = l->n;
		while (last > 0 && !is_point(l, last - 1))
			last--;
		const char *shown = !is_drawn(l) ? NULL : tick(c, l->y[last - 1], value);
		if (l->n > 0 && isinf(l->y[l->n - 1]))
			shown = "not finite";
		if (shown != NULL)
			fprintf(to, "<li><i class=\"%s%s\"></i>%s <b>%s</b></li>", l->style,
					l->faint ? " faint" : "", l->name, shown);
	}
	fputs("</ul>", to);
}

void html_chart(FILE *to, const chart *c)
{
	double range_x[2], range_y[2];
	if (!find_range(c, range_x, range_y))
		return;
	axis x = make_axis(range_x[0], range_x[1], 5);
	x.low = range_x[1] > range_x[0] ? 0 : x.low; // steps and epochs begin at 0
	x.high = range_x[1] > range_x[0] ? range_x[1] : x.high;
	x.step = nice_step(x.high - x.low, 5);
	const axis y = make_y_axis(c, range_y);
	fprintf(to, "<section class=\"card\"><h2>%s%s%s%s</h2>", c->title,
			c->unit[0] == '\0' ? "" : " <small>", c->unit, c->unit[0] == '\0' ? "" : "</small>");
	write_legend(to, c);
	fprintf(to, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", WIDTH, HEIGHT,
			c->title);
	draw_axes(to, c, &x, &y);
	for (size_t k = 0; k < c->n; k++)
		if (is_drawn(&c->line[k]))
			draw_line(to, &c->line[k], &x, &y);
	for (size_t k = 0; k < c->n; k++)
		if (c->line[k].dots)
			draw_dots(to, c, &c->line[k], &x, &y);
	fputs("</svg></section>\n", to);
}

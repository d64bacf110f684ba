// Writes HTML and charts in SVG. Every text of a file goes through html_text.
#pragma once

#include <stddef.h>
#include <stdio.h>

// Escapes a text for HTML, in elements and in quoted attributes. Bytes that are not UTF-8 and
// characters that are not shown become U+FFFD.
void html_text(FILE *to, const char *text);
// A number with three or four digits, as "0.0123", "45.6" or "12.3 k".
const char *html_number(double number, char text[32]);
// Seconds, as "12.3 ms" or "2 min 5 s".
const char *html_seconds(double seconds, char text[32]);

typedef struct {
	const char *name;
	const char *style; // of the CSS: "a", "b", "c"
	size_t n;
	const double *x, *y; // points that are not finite are left out; an infinite last one is named
	int faint; // many noisy points: a thin line
	int dots; // few points
} chart_line;

typedef struct {
	const char *title, *unit, *x_name;
	int percent; // y is a fraction
	int from_zero; // the axis of y begins at 0
	int logarithmic; // y is drawn logarithmically if it spans many powers of ten
	size_t n;
	const chart_line *line;
} chart;
// Writes a card with a chart. It does nothing without two points, or one in a line of dots.
void html_chart(FILE *to, const chart *c);
extern const char html_head[];
extern const char *const html_style[]; // in parts, ending in NULL

// One product of operands transposed to [batch, rows, columns]: batch axes are in both and the
// result, axes of the sum in both operands only.
#include "op/op.h"

#include <string.h>

typedef struct {
	int n;
	char label[CHOIR_MAX_RANK];
} labels;

typedef struct {
	labels in[2], out;
	bool arrow;
} equation;

static bool has(const labels *l, char c)
{
	return memchr(l->label, c, (size_t) l->n) != NULL;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool append(labels *l, char c)
{
	if (l->n == CHOIR_MAX_RANK)
		return false;
	l->label[l->n++] = c;
	return true;
}

static bool parse(const char *text, equation *e)
{
	labels *part = &e->in[0];

	*e = (equation){ .arrow = false };
	for (; *text; text++) {
		if (*text == ' ')
			continue;
		if (*text == ',' && part == &e->in[0]) {
			part = &e->in[1];
		} else if (*text == '-' && text[1] == '>' && part == &e->in[1]) {
			part = &e->out;
			e->arrow = true;
			text++;
		} else if (!is_letter(*text) || !append(part, *text)) {
			return false;
		}
	}
	return part != &e->in[0];
}

// Without an arrow, the result has the labels that occur once, in alphabetical order.
static bool complete(equation *e)
{
	for (int c = 'A'; c <= 'z' && !e->arrow; c++) {
		int times = 0;
		for (int k = 0; k < 2; k++)
			for (int i = 0; i < e->in[k].n; i++)
				times += e->in[k].label[i] == c;
		if (times == 1 && !append(&e->out, (char) c))
			return false;
	}
	for (int i = 0; i < e->out.n; i++) {
		const char c = e->out.label[i];
		if (memchr(e->out.label, c, (size_t) i) || (!has(&e->in[0], c) && !has(&e->in[1], c)))
			return false;
	}
	return true;
}

static bool sizes_fit(const equation *e, choir_tensor *const in[2])
{
	int64_t size[128];

	memset(size, -1, sizeof size);
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < e->in[k].n; i++) {
			int64_t *known = &size[(unsigned char) e->in[k].label[i]];
			if (*known >= 0 && *known != in[k]->shape.dim[i])
				return false;
			*known = in[k]->shape.dim[i];
		}
	return true;
}

static void remove_axis(labels *l, int axis)
{
	memmove(l->label + axis, l->label + axis + 1, (size_t) (l->n - axis - 1));
	l->n--;
}

static choir_tensor *diagonal(choir_tensor *x, int i, int j)
{
	choir_shape row = { x->shape.rank, { 1, 1, 1, 1, 1, 1, 1, 1 } }, column = row;
	row.dim[i] = column.dim[j] = x->shape.dim[i];
	choir_tensor *at = chi_count_up(x->frame, x->shape.dim[i]);
	choir_tensor *same =
			at ? choir_equal(choir_reshape(at, row), choir_reshape(at, column)) : NULL;
	return choir_sum(choir_where(same, x, choir_number(x->frame, 0)), CHOIR_AXIS(j));
}

static choir_tensor *simplify(
		choir_tensor *x, labels *of_x, const labels *other, const labels *out)
{
	for (int i = 0; x && i < of_x->n; i++)
		for (int j = of_x->n - 1; x && j > i; j--)
			if (of_x->label[i] == of_x->label[j]) {
				x = diagonal(x, i, j);
				remove_axis(of_x, j);
			}
	for (int i = of_x->n - 1; x && i >= 0; i--)
		if (!has(other, of_x->label[i]) && !has(out, of_x->label[i])) {
			x = choir_sum(x, CHOIR_AXIS(i));
			remove_axis(of_x, i);
		}
	return x;
}

static int64_t collect(const labels *from, const choir_shape *shape, const labels *in, bool is_in,
		const labels *out, bool is_out, labels *order)
{
	int64_t size = 1;
	for (int i = 0; i < from->n; i++)
		if (has(in, from->label[i]) == is_in && has(out, from->label[i]) == is_out) {
			size *= shape->dim[i];
			order->label[order->n++] = from->label[i];
		}
	return size;
}

static void join(labels *all, const labels *more)
{
	memcpy(all->label + all->n, more->label, (size_t) more->n);
	all->n += more->n;
}

static choir_tensor *permute(choir_tensor *x, const labels *from, const labels *to)
{
	int axes[CHOIR_MAX_RANK];
	for (int i = 0; i < to->n; i++)
		axes[i] = (int) ((const char *) memchr(from->label, to->label[i], (size_t) from->n) -
				from->label);
	return choir_transpose(x, axes);
}

static choir_tensor *matrix(
		choir_tensor *x, const labels *from, const labels *to, choir_shape shape)
{
	choir_tensor *moved = permute(x, from, to);
	return moved ? choir_reshape(moved, shape) : NULL;
}

static int64_t size_of(const equation *e, choir_tensor *const in[2], char label)
{
	const int k = !has(&e->in[0], label);
	const char *at = memchr(e->in[k].label, label, (size_t) e->in[k].n);
	return in[k]->shape.dim[at - e->in[k].label];
}

static choir_tensor *multiply(const equation *e, choir_tensor *const in[2])
{
	const labels *a = &e->in[0], *b = &e->in[1], *out = &e->out;
	labels of_a = { 0 }, of_b, made, summed = { 0 };
	choir_shape shape = { 0, { 0 } };
	const int64_t batch = collect(a, &in[0]->shape, b, true, out, true, &of_a);

	of_b = of_a;
	const int64_t rows = collect(a, &in[0]->shape, b, false, out, true, &of_a);
	made = of_a;
	const int64_t sum = collect(a, &in[0]->shape, b, true, out, false, &summed);
	join(&of_a, &summed);
	join(&of_b, &summed);
	const int64_t columns = collect(b, &in[1]->shape, a, false, out, true, &of_b);
	(void) collect(b, &in[1]->shape, a, false, out, true, &made);
	for (int i = 0; i < made.n; i++)
		shape.dim[shape.rank++] = size_of(e, in, made.label[i]);
	choir_tensor *y = choir_matmul(matrix(in[0], a, &of_a, CHOIR_SHAPE(batch, rows, sum)),
			matrix(in[1], b, &of_b, CHOIR_SHAPE(batch, sum, columns)), CHOIR_TRANSPOSED_NONE);
	y = y ? choir_reshape(y, shape) : NULL;
	return y ? permute(y, &made, out) : NULL;
}

choir_tensor *choir_einsum(const char *text, choir_tensor *a, choir_tensor *b)
{
	choir_tensor *in[] = { a, b };
	char shapes[2][CHI_SHAPE_TEXT];
	equation e;

	if (!a || !b || !text)
		return chi_frame_null_argument(choir_tensor_frame(a ? a : b), "einsum");
	if (!chi_op_operands("einsum", a->frame, 2, in))
		return NULL;
	if (!parse(text, &e) || !complete(&e) || e.in[0].n != a->shape.rank ||
			e.in[1].n != b->shape.rank || !sizes_fit(&e, in))
		return chi_frame_fail_null(a->frame, CHOIR_INVALID,
				"einsum: '%.100s' does not fit operands %s and %s; labels as in 'bij,bjk->bik' "
				"are "
				"needed, one letter for each axis, with equal sizes for equal letters",
				text, chi_shape_print(&a->shape, shapes[0]),
				chi_shape_print(&b->shape, shapes[1]));
	in[0] = simplify(a, &e.in[0], &e.in[1], &e.out);
	in[1] = simplify(b, &e.in[1], &e.in[0], &e.out);
	return in[0] && in[1] ? multiply(&e, in) : NULL;
}

// A comment, the functions that are needed, constants as bit patterns, and one function that runs
// the instructions.
#include "train/export_c/export_c.h"

#include "base/alloc.h"
#include "choir/library.h"
#include "tensor/tensor.h"
#include "train/weights/weights.h"

#include <inttypes.h>
#include <string.h>

enum { BITS_A_LINE = 8, LINES_A_TIME = 512, BYTES = 256 };

typedef struct {
	const chi_export *e;
	const choir_export_options *o;
	chi_writer *to;
	chi_text text;
} printer;

static choir_status flush(printer *p)
{
	choir_status status = p->text.failed ? CHOIR_NO_MEMORY
										 : chi_writer_write(p->to, p->text.data, p->text.length);
	chi_text_free(&p->text);
	return status;
}

static const char *input_type(const printer *p)
{
	switch (p->e->dtype) {
	case CHOIR_U8:
		return "uint8_t";
	case CHOIR_I32:
		return "int32_t";
	default:
		return "float";
	}
}

static bool is_sequence(const printer *p)
{
	return p->e->dtype != CHOIR_F32;
}

static int64_t outputs(const printer *p)
{
	const chi_export_value *v = &p->e->value[p->e->output];
	return v->varies ? v->shape.dim[v->shape.rank - 1] : choir_shape_elements(&v->shape);
}

static void print_call(printer *p)
{
	chi_text_add(&p->text,
			is_sequence(p)
					? "int %s_predict(const %s *input, int length, float *output, float *scratch)"
					: "void %s_predict(const %s *input, float *output, float *scratch)",
			p->o->name, input_type(p));
}

// No characters that could end or continue the comment.
static void print_about(chi_text *t, const char *about)
{
	for (const char *line = about; *line != '\0';) {
		const size_t n = strcspn(line, "\n");
		chi_text_add(t, "//%s", n == 0 ? "" : " ");
		for (size_t i = 0; i < n; i++) {
			const bool plain = line[i] >= ' ' && line[i] <= '~' && line[i] != '\\';
			chi_text_add_bytes(t, plain ? &line[i] : "?", 1);
		}
		chi_text_add(t, "\n");
		line += n + (line[n] == '\n');
	}
	chi_text_add(t, "//\n");
}

static void print_comment(printer *p)
{
	char shape[CHI_SHAPE_TEXT];
	const int v = choir_version();
	chi_text *t = &p->text;
	if (p->o->about != NULL)
		print_about(t, p->o->about);
	chi_text_add(t,
			"// A trained model as one C file, written by Choir %d.%d.%d. It allocates nothing\n"
			"// and needs only libm. The functions are Choir's (Apache License 2.0).\n//\n",
			v / 10000, v / 100 % 100, v % 100);
	chi_shape_print(&p->e->input, shape);
	if (is_sequence(p))
		chi_text_add(t,
				"// input: 1 to %" PRId64 " numbers less than %" PRId64
				"; length is their number.\n"
				"// output: %s_outputs floats, the scores of the next number.\n",
				p->e->input.dim[0], p->e->numbers, p->o->name);
	else
		chi_text_add(t,
				"// input: %s_inputs floats, %s, row by row, as in the data;\n"
				"// this file repeats the preprocessing of the training.\n"
				"// output: %s_outputs floats.\n",
				p->o->name, shape, p->o->name);
	chi_text_add(t,
			"// scratch: %s_scratch floats, with any contents; each thread needs its own.\n",
			p->o->name);
	if (is_sequence(p))
		chi_text_add(t,
				"// Returns 0, or -1 if length or a number is out of range; then nothing was "
				"done.\n");
	chi_text_add(t,
			"//\n// Compile it with -O3 as C11 or C++17. The results are bit for bit those of\n"
			"// CHOIR_KERNELS=plain if the compiler does not fuse products and sums:\n"
			"// -ffp-contract=off. With -D%s_main it is a program.\n",
			p->o->name);
}

static void print_head(printer *p)
{
	const char *name = p->o->name;
	chi_text *t = &p->text;
	print_comment(p);
	chi_text_add(t,
			"#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n"
			"#include <string.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
	chi_text_add(t, "enum { %s_%s = %" PRId64 ", %s_outputs = %" PRId64 ", %s_scratch = %zu };\n",
			name, is_sequence(p) ? "most" : "inputs", choir_shape_elements(&p->e->input), name,
			outputs(p), name, p->e->scratch > 0 ? p->e->scratch : 1);
	print_call(p);
	chi_text_add(t, ";\n#ifdef __cplusplus\n}\n#endif\n\n");
	if (is_sequence(p))
		chi_text_add(t, "typedef %s input_number;\n\n", input_type(p));
}

static void print_lines(chi_text *t, const char *const *line)
{
	for (; *line != NULL; line++)
		chi_text_add_bytes(t, *line, strlen(*line));
}

static void print_c_functions(printer *p)
{
	uint32_t used = 0;
	for (size_t i = 0; i < p->e->instructions; i++)
		used |= (uint32_t) 1 << p->e->instruction[i].function;
	used = chi_c_functions_needed(used);
	for (int i = 0; i < CHI_C_FUNCTIONS; i++) {
		if (!(used >> i & 1))
			continue;
		print_lines(&p->text, chi_c_functions[i].lines);
		chi_text_add(&p->text, "\n");
	}
}

static void print_bits(chi_text *t, float value)
{
	static const char digits[] = "0123456789abcdef";
	char word[] = "0x00000000,";
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	for (int i = 0; i < 8; i++)
		word[9 - i] = digits[bits >> (4 * i) & 15];
	chi_text_add_bytes(t, word, sizeof word - 1);
}

static choir_status print_values(printer *p, const char *name, const float *value, size_t n)
{
	chi_text_add(&p->text,
			"static const union {\n\tuint32_t bits[%zu];\n\tfloat at[%zu];\n} %s = { {\n", n, n,
			name);
	for (size_t i = 0; i < n; i++) {
		print_bits(&p->text, value[i]);
		if ((i + 1) % BITS_A_LINE == 0 || i + 1 == n)
			chi_text_add_bytes(&p->text, "\n", 1);
		if ((i + 1) % (BITS_A_LINE * LINES_A_TIME) == 0)
			CHOIR_TRY(flush(p));
	}
	chi_text_add(&p->text, "} };\n\n");
	return flush(p);
}

static choir_status print_variable(printer *p, const chi_export_weight *w)
{
	choir_frame *f = choir_frame_new(NULL);
	float *value = f == NULL ? NULL : chi_alloc_array(w->n, sizeof *value);
	choir_status status =
			value == NULL ? choir_error_status() : chi_weights_fetch(w->variable, f, value);
	if (status == CHOIR_OK)
		status = print_values(p, w->name, value, w->n);
	chi_free(value);
	choir_frame_free(f);
	return status;
}

static choir_status print_weights(printer *p)
{
	for (size_t i = 0; i < p->e->weights; i++) {
		const chi_export_weight *w = &p->e->weight[i];
		CHOIR_TRY(w->variable != NULL ? print_variable(p, w)
									  : print_values(p, w->name, w->data, w->n));
	}
	return CHOIR_OK;
}

static void print_memory(printer *p, int memory)
{
	const chi_export_memory *m = &p->e->memory[memory];
	if (m->given)
		chi_text_add(&p->text, "input");
	else if (memory == p->e->value[p->e->output].memory)
		chi_text_add(&p->text, "output");
	else
		chi_text_add(&p->text, "scratch + %zu", m->at);
}

static void print_count(printer *p, const chi_instruction *s)
{
	const chi_export_value *x = &p->e->value[s->x];
	const chi_count count = chi_c_functions[s->function].count;
	const int64_t width = x->shape.rank > 0 ? x->shape.dim[x->shape.rank - 1] : 1;
	const bool varies = x->varies && !s->last_row;
	const int64_t rows = s->last_row ? 1 : chi_export_rows(p->e, s->x);
	if (count == CHI_COUNT_NONE)
		return;
	if (varies && count == CHI_COUNT_ELEMENTS)
		chi_text_add(&p->text, ", length * %" PRId64, width);
	else if (varies)
		chi_text_add(&p->text, ", length");
	else
		chi_text_add(&p->text, ", %" PRId64, count == CHI_COUNT_ROWS ? rows : rows * width);
}

static void print_instruction(printer *p, size_t i)
{
	const chi_instruction *s = &p->e->instruction[i];
	const chi_export_value *x = &p->e->value[s->x];
	chi_text *t = &p->text;
	if (s->how != NULL)
		chi_text_add(t, "\tstatic const struct convolution how%zu = { %s };\n", i, s->how);
	chi_text_add(t, "\t%s(", chi_c_functions[s->function].function);
	print_memory(p, p->e->value[s->out].memory);
	chi_text_add(t, ", ");
	print_memory(p, x->memory);
	if (s->last_row && !(i > 0 && p->e->instruction[i - 1].last_row))
		chi_text_add(t, " + (length - 1) * %" PRId64, x->shape.dim[x->shape.rank - 1]);
	if (s->beside != CHOIR_NONE || s->work != CHOIR_NONE)
		chi_text_add(t, ", ");
	if (s->beside != CHOIR_NONE)
		print_memory(p, p->e->value[s->beside].memory);
	if (s->work != CHOIR_NONE)
		print_memory(p, s->work);
	if (s->table != NULL)
		chi_text_add(t, ", %s.at", s->table);
	print_count(p, s);
	if (s->how != NULL)
		chi_text_add(t, ", &how%zu", i);
	chi_text_add(t, "%s);\n", s->rest);
}

static void print_function(printer *p)
{
	chi_text *t = &p->text;
	print_call(p);
	chi_text_add(t, "\n{\n");
	if (is_sequence(p)) {
		chi_text_add(t, "\tif (length < 1 || length > %" PRId64 ")\n\t\treturn -1;\n",
				p->e->input.dim[0]);
		if (p->e->dtype != CHOIR_U8 || p->e->numbers < BYTES)
			chi_text_add(t,
					"\tfor (int i = 0; i < length; i++)\n\t\tif (%sinput[i] >= %" PRId64
					")\n\t\t\treturn -1;\n",
					p->e->dtype == CHOIR_U8 ? "" : "input[i] < 0 || ", p->e->numbers);
	}
	for (size_t i = 0; i < p->e->instructions; i++)
		print_instruction(p, i);
	chi_text_add(t, is_sequence(p) ? "\treturn 0;\n}\n" : "%s}\n",
			p->e->scratch > 0 ? "" : "\t(void) scratch;\n");
}

static void print_main(printer *p)
{
	chi_text_add(
			&p->text, "\n#ifdef %s_main\n#define MODEL(what) %s_##what\n", p->o->name, p->o->name);
	print_lines(&p->text, is_sequence(p) ? chi_main_text : chi_main_numbers);
	chi_text_add(&p->text, "#endif\n");
}

static choir_status print(printer *p)
{
	print_head(p);
	print_c_functions(p);
	CHOIR_TRY(flush(p));
	CHOIR_TRY(print_weights(p));
	print_function(p);
	print_main(p);
	return flush(p);
}

choir_status chi_export_print(const chi_export *e, const choir_export_options *o, chi_writer *to)
{
	printer p = { .e = e, .o = o, .to = to };
	const choir_status status = print(&p);
	chi_text_free(&p.text);
	return status;
}

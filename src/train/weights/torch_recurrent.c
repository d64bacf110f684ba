// PyTorch names recurrent weights by layer and direction, as "lstm.weight_ih_l1_reverse", and
// gives each cell two biases. An LSTM uses only their sum. A GRU multiplies one by the reset gate,
// so Choir has both.
#include "train/weights/torch_recurrent.h"

#include "choir/op.h"

#include <ctype.h>
#include <string.h>

static const struct {
	const char *torch, *choir;
} words[] = { { "weight_ih", "kernel" }, { "weight_hh", "recurrent_kernel" },
	{ "bias_ih", "bias" }, { "bias_hh", "recurrent_bias" } };
enum { KERNEL, RECURRENT, BIAS, RECURRENT_BIAS, WORDS };
static const char projection[] = "weight_hr";

static const char *last_word(const char *name)
{
	const char *last = name;
	for (const char *p = name; *p != '\0'; p++)
		last = *p == '.' || *p == '/' ? p + 1 : last;
	return last;
}

static bool is_level(const char *text)
{
	if (text[0] != 'l' || !isdigit((unsigned char) text[1]))
		return false;
	text += 1 + strspn(text + 1, "0123456789");
	return *text == '\0' || strcmp(text, "_reverse") == 0;
}

// Of "weight_ih_l1": "l1"; of a cell's "weight_ih": "". NULL: another word.
static const char *level_of(const char *last, const char *word)
{
	const size_t length = strlen(word);
	if (strncmp(last, word, length) != 0)
		return NULL;
	last += length;
	return *last == '\0' ? last : *last == '_' && is_level(last + 1) ? last + 1 : NULL;
}

static size_t find(const chi_weights *w, const char *layer, size_t length, const char *word)
{
	for (size_t i = 0; i < w->n; i++)
		if (strncmp(w->variable[i]->name, layer, length) == 0 &&
				strcmp(w->variable[i]->name + length, word) == 0)
			return i;
	return w->n;
}

// "a.b.weight_ih_l0" is of layer "a/b/l0/" if there is one, else of "a/b/". Returns the recurrent
// kernel, or w->n.
static size_t find_layer(
		const chi_weights *w, const char *tensor, const char *level, chi_text *layer)
{
	chi_text_add_bytes(layer, tensor, (size_t) (last_word(tensor) - tensor));
	const size_t length = layer->length;
	chi_text_add(layer, "%s/", level);
	if (layer->failed)
		return w->n;
	for (size_t i = 0; i < length; i++)
		layer->data[i] = layer->data[i] == '.' ? '/' : layer->data[i];
	const size_t i = find(w, layer->data, layer->length, words[RECURRENT].choir);
	if (i < w->n || (*level != '\0' && strcmp(level, "l0") != 0))
		return i;
	layer->length = length;
	return find(w, layer->data, length, words[RECURRENT].choir);
}

static void describe(
		const choir_variable *v, const choir_variable *recurrent, int word, chi_mapped_name *m)
{
	const bool lstm = recurrent->shape.dim[1] == 4 * recurrent->shape.dim[0];
	m->recurrent = true;
	m->halves = !lstm || word < BIAS ? 0 : word == BIAS ? 1 : 2;
	m->how = (chi_rearrangement){ .gates_swapped = !lstm };
	if (v->shape.rank == 2) {
		m->how.axes = 2;
		m->how.axis[0] = 1;
	}
}

choir_status chi_torch_recurrent_find(const chi_weights *w, chi_mapped_name *m, size_t *i)
{
	const char *tensor = m->name.data, *last = last_word(tensor), *level = NULL;
	chi_text layer = { 0 };
	int word = 0;
	*i = w->n;
	while (word < WORDS && (level = level_of(last, words[word].torch)) == NULL)
		word++;
	if (level == NULL && (level = level_of(last, projection)) == NULL)
		return CHOIR_OK;
	const size_t recurrent = find_layer(w, tensor, level, &layer);
	choir_status status = layer.failed ? CHOIR_NO_MEMORY : CHOIR_OK;
	if (recurrent < w->n && word == WORDS)
		status = choir_fail(CHOIR_UNSUPPORTED,
				"map torch: tensor \"%.60s\" is of an LSTM with projections (proj_size); one "
				"without is needed",
				tensor);
	else if (recurrent < w->n) {
		*i = find(w, layer.data, layer.length, words[word].choir);
		if (*i == w->n && word == RECURRENT_BIAS)
			*i = find(w, layer.data, layer.length, words[BIAS].choir);
		if (*i < w->n)
			describe(w->variable[*i], w->variable[recurrent], word, m);
	}
	chi_text_free(&layer);
	return status;
}

size_t chi_recurrent_variable(const chi_weights *w, const choir_variable *v, const char *word)
{
	return find(w, v->name, (size_t) (last_word(v->name) - v->name), word);
}

size_t chi_torch_recurrent_kernel(const chi_weights *w, const choir_variable *v)
{
	return chi_recurrent_variable(w, v, words[RECURRENT].choir);
}

// "a/l1/kernel" is "a.weight_ih_l1", "a/kernel" is "a.weight_ih_l0".
static void print_name(const choir_variable *v, int word, chi_text *to)
{
	size_t module = (size_t) (last_word(v->name) - v->name), first = module - 1;
	char level[24] = "";
	while (first > 0 && v->name[first - 1] != '/')
		first--;
	if (first > 0 && module - 1 - first < sizeof level)
		memcpy(level, v->name + first, module - 1 - first);
	if (is_level(level))
		module = first;
	chi_text_add_bytes(to, v->name, module);
	for (size_t i = 0; !to->failed && i < to->length; i++)
		to->data[i] = to->data[i] == '/' ? '.' : to->data[i];
	chi_text_add(to, "%s_%s", words[word].torch, is_level(level) ? level : "l0");
}

static choir_status map_name(
		const chi_name_map *map, const choir_variable *v, int word, chi_mapped_name *m)
{
	chi_text name = { 0 };
	print_name(v, word, &name);
	const choir_status status =
			name.failed ? CHOIR_NO_MEMORY : chi_name_map_find_tensor(map, name.data, m);
	chi_text_free(&name);
	return status;
}

choir_status chi_torch_recurrent_find_tensor(const chi_name_map *map, const chi_weights *w,
		const choir_variable *v, chi_mapped_name *m, chi_text *zeros)
{
	const size_t recurrent = chi_torch_recurrent_kernel(w, v);
	int word = 0;
	while (word < WORDS && strcmp(last_word(v->name), words[word].choir) != 0)
		word++;
	m->recurrent = recurrent < w->n && word < WORDS;
	if (!m->recurrent)
		return CHOIR_OK;
	chi_mapped_name other = { 0 };
	CHOIR_TRY(map_name(map, v, word, m));
	describe(v, w->variable[recurrent], word, m);
	if (m->halves == 0)
		return CHOIR_OK;
	CHOIR_TRY(map_name(map, v, RECURRENT_BIAS, &other));
	*zeros = other.name;
	return CHOIR_OK;
}

choir_tensor *chi_torch_swap_gates(choir_tensor *x)
{
	choir_tensor *gate[3];
	if (x == NULL || choir_split(x, 0, 3, gate) != CHOIR_OK)
		return NULL;
	choir_tensor *const swapped[] = { gate[1], gate[0], gate[2] };
	return choir_concat(3, swapped, 0);
}

// PyTorch's names are Choir's with dots and other last words: "conv1/kernel" is "conv1.weight".
// Its kernels have the output first, and it flattens images as c, h, w. Keras' names and layouts
// are Choir's, but a recurrent layer's cell has a name ("gru/gru_cell/kernel"), and a GRU's biases
// are one tensor, [2, 3 h].
#include "train/weights/torch_keras_convention.h"

#include "train/weights/torch_recurrent.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_SHOWN = 60 };

// Several of Choir's may be one of PyTorch's.
static const struct {
	const char *choir, *torch;
} words[] = { { "kernel", "weight" }, { "gamma", "weight" }, { "embeddings", "weight" },
	{ "beta", "bias" }, { "moving_mean", "running_mean" }, { "moving_variance", "running_var" } };
enum { WORDS = sizeof words / sizeof words[0] };

static const char *last_word(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash == NULL ? name : slash + 1;
}

// Of a flattened image with several channels, if v is a dense kernel behind it; else 0.
static int64_t pixels_of(const choir_variable *v)
{
	const int64_t channels = v->flattened_channels;
	return channels > 1 && v->shape.rank == 2 && v->shape.dim[0] > channels &&
					v->shape.dim[0] % channels == 0
			? v->shape.dim[0] / channels
			: 0;
}

// The output's axis first, then the input's, then places.
static void arrange_kernel(const choir_variable *v, chi_rearrangement *how)
{
	const int rank = v->shape.rank;
	const int64_t pixels = pixels_of(v);
	*how = (chi_rearrangement){ .axes = rank };
	for (int i = 0; i < rank; i++)
		how->axis[i] = i < rank - 2 ? i + 2 : rank - 1 - i;
	if (pixels == 0)
		return;
	how->reshaped = true;
	how->shape = CHOIR_SHAPE(v->shape.dim[1], v->flattened_channels, pixels);
	how->file = CHOIR_SHAPE(v->shape.dim[1], v->shape.dim[0]);
	how->axes = 3;
	for (int i = 0; i < 3; i++)
		how->axis[i] = 2 - i;
}

static bool is_kernel(const choir_variable *v)
{
	return v->shape.rank >= 2 && strcmp(last_word(v->name), "kernel") == 0;
}

static size_t find_weight(const chi_weights *w, const char *name)
{
	size_t low = 0, high = w->n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (strcmp(w->variable[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < w->n && strcmp(w->variable[low]->name, name) == 0 ? low : w->n;
}

// last: in place of the last word of a name with slashes.
static choir_status find_with(const chi_weights *w, const char *name, const char *last, size_t *i)
{
	chi_text text = { 0 };
	chi_text_add_bytes(&text, name, (size_t) (last_word(name) - name));
	chi_text_add(&text, "%s", last);
	const choir_status status = text.failed ? CHOIR_NO_MEMORY : CHOIR_OK;
	*i = status == CHOIR_OK ? find_weight(w, text.data) : w->n;
	chi_text_free(&text);
	return status;
}

// A recurrent layer has names of its own.
static choir_status check_stored(const choir_variable *v, const chi_weights *w)
{
	return chi_torch_recurrent_kernel(w, v) == w->n
			? CHOIR_OK
			: choir_fail(CHOIR_INVALID,
					  "map torch: variable \"%.60s\" is of a recurrent layer, whose tensors torch "
					  "calls weight_ih_l0, weight_hh_l0, bias_ih_l0 and bias_hh_l0",
					  v->name);
}

static choir_status find_torch(const chi_weights *w, chi_mapped_name *m, size_t *i)
{
	char *name = m->name.data;
	CHOIR_TRY(chi_torch_recurrent_find(w, m, i));
	if (m->recurrent)
		return CHOIR_OK;
	*i = find_weight(w, name);
	for (char *p = name; *i == w->n && *p != '\0'; p++)
		*p = *p == '.' ? '/' : *p;
	if (*i == w->n)
		*i = find_weight(w, name);
	for (int k = 0; *i == w->n && k < WORDS; k++)
		if (strcmp(last_word(name), words[k].torch) == 0)
			CHOIR_TRY(find_with(w, name, words[k].choir, i));
	m->left_out = *i == w->n && strcmp(last_word(name), "num_batches_tracked") == 0;
	if (*i == w->n)
		return CHOIR_OK;
	CHOIR_TRY(check_stored(w->variable[*i], w));
	if (is_kernel(w->variable[*i]))
		arrange_kernel(w->variable[*i], &m->how);
	return CHOIR_OK;
}

// Removes "gru_cell/" from "a/gru_cell/kernel".
static bool leave_out_cell(char *name)
{
	char *last = name + (last_word(name) - name), *cell = last == name ? name : last - 1;
	while (cell > name && cell[-1] != '/')
		cell--;
	if (cell == last || (strncmp(cell, "gru_cell", 8) != 0 && strncmp(cell, "lstm_cell", 9) != 0))
		return false;
	memmove(cell, last, strlen(last) + 1);
	return true;
}

static size_t find_keras(const chi_weights *w, chi_mapped_name *m)
{
	char *name = m->name.data;
	const size_t length = m->name.length;
	size_t i = find_weight(w, name);
	if (i == w->n && length > 2 && strcmp(name + length - 2, ":0") == 0) {
		name[length - 2] = '\0';
		i = find_weight(w, name);
	}
	return i == w->n && leave_out_cell(name) ? find_weight(w, name) : i;
}

size_t chi_keras_second_bias(const chi_name_map *map, const chi_weights *w,
		const choir_variable *v, const chi_rearrangement *how)
{
	if (map->convention != CHI_CONVENTION_KERAS || how->axes > 0 || how->reshaped ||
			v->shape.rank != 1 || strcmp(last_word(v->name), "bias") != 0)
		return w->n;
	const size_t i = chi_recurrent_variable(w, v, "recurrent_bias");
	return i < w->n && w->variable[i]->dtype == v->dtype &&
					chi_shape_equal(&w->variable[i]->shape, &v->shape)
			? i
			: w->n;
}

choir_status chi_convention_find(
		const chi_name_map *map, const chi_weights *w, chi_mapped_name *m, size_t *i)
{
	*i = w->n;
	if (m->left_out)
		return CHOIR_OK;
	if (map->convention == CHI_CONVENTION_TORCH && m->how.axes == 0 && !m->how.reshaped)
		return find_torch(w, m, i);
	*i = map->convention == CHI_CONVENTION_KERAS ? find_keras(w, m) : find_weight(w, m->name.data);
	return CHOIR_OK;
}

static choir_status torch_name(const choir_variable *v, chi_text *to)
{
	const char *last = last_word(v->name), *other = last;
	for (int k = 0; k < WORDS; k++)
		if (strcmp(last, words[k].choir) == 0)
			other = words[k].torch;
	chi_text_add_bytes(to, v->name, (size_t) (last - v->name));
	chi_text_add(to, "%s", other);
	for (size_t i = 0; !to->failed && i < to->length; i++)
		to->data[i] = to->data[i] == '/' ? '.' : to->data[i];
	return to->failed ? CHOIR_NO_MEMORY : CHOIR_OK;
}

// Lines with axes or a shape have Choir's names; the others change names of PyTorch.
static choir_status find_torch_tensor(const chi_name_map *map, const chi_weights *w,
		const choir_variable *v, chi_mapped_name *m, chi_text *zeros)
{
	chi_text name = { 0 };
	CHOIR_TRY(chi_name_map_find_tensor(map, v->name, m));
	if (m->how.axes > 0 || m->how.reshaped)
		return CHOIR_OK;
	chi_text_free(&m->name);
	choir_status status = chi_torch_recurrent_find_tensor(map, w, v, m, zeros);
	if (status != CHOIR_OK || m->recurrent)
		return status;
	status = torch_name(v, &name);
	if (status == CHOIR_OK)
		status = chi_name_map_find_tensor(map, name.data, m);
	chi_text_free(&name);
	if (status == CHOIR_OK && is_kernel(v))
		arrange_kernel(v, &m->how);
	return status;
}

choir_status chi_convention_find_tensor(const chi_name_map *map, const chi_weights *w,
		const choir_variable *v, chi_mapped_name *m, chi_text *zeros)
{
	return map->convention == CHI_CONVENTION_TORCH ? find_torch_tensor(map, w, v, m, zeros)
												   : chi_name_map_find_tensor(map, v->name, m);
}

// PyTorch's layout has the kernel's own shape.
static bool is_ambiguous(const choir_variable *v)
{
	chi_rearrangement how;
	arrange_kernel(v, &how);
	for (int i = 0; i < v->shape.rank; i++)
		if (v->shape.dim[how.axis[i]] != v->shape.dim[i])
			return false;
	return true;
}

choir_status chi_convention_check(const chi_name_map *map, const choir_variable *v,
		const chi_mapped_name *m, const char *path, const char *tensor)
{
	const chi_rearrangement *how = &m->how;
	const int64_t pixels = pixels_of(v);
	char from[NAME_SHOWN], to[NAME_SHOWN];
	chi_text_clean(tensor, from, sizeof from);
	chi_text_clean(v->name, to, sizeof to);
	if (m->by_line && pixels > 0 && !how->reshaped && how->axes == 2 && how->axis[0] == 1)
		return choir_fail(CHOIR_INVALID,
				"%s: tensor \"%s\": the inputs of \"%s\" are a flattened image of %" PRId64
				" channels, whose order differs in a file with axes 1,0; the map needs \"reshape "
				"%" PRId64 ",(%" PRId64 ",%" PRId64 ") axes 2,1,0\", or \"reshape %" PRId64
				",%" PRId64 " axes 1,0\" if the order is h, w, c",
				path, from, to, v->flattened_channels, v->shape.dim[1], v->flattened_channels,
				pixels, v->shape.dim[1], v->shape.dim[0]);
	if (m->by_line && map->permutes && is_kernel(v) && pixels == 0 && !how->reshaped &&
			how->axes == 0 && is_ambiguous(v))
		return choir_fail(CHOIR_INVALID,
				"%s: tensor \"%s\": \"%s\" has one shape in both orders of axes, and other lines "
				"of "
				"the map have axes; the map needs axes for it, too (axes 0,1.. if they stay)",
				path, from, to);
	return CHOIR_OK;
}

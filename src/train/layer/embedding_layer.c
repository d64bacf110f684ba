// Rows of a table by index, positions, and the transposed table as a model's last layer.
#include "train/layer/layer.h"

#include <inttypes.h>

typedef struct {
	choir_layer layer;
	int64_t rows, width;
	choir_layer *tied; // the table's owner; NULL: itself
} embedding;

static bool is_f32(const choir_tensor *x)
{
	return chi_dtype_wide(x->dtype) == CHOIR_F32;
}

static choir_tensor *apply_embedding(choir_layer *l, choir_tensor *x)
{
	if (x->dtype != CHOIR_U8 && x->dtype != CHOIR_I32 && x->dtype != CHOIR_I64)
		return chi_layer_fail(l, x, "embedding needs u8, i32 or i64; the input is %s, cast it",
				choir_dtype_name(x->dtype));
	return choir_variable_gather(l->variable[0], x);
}

static choir_tensor *apply_places(choir_layer *l, choir_tensor *x)
{
	const embedding *e = (const embedding *) l;
	const choir_shape *s = &x->shape;
	char got[CHI_SHAPE_TEXT];
	if (s->rank != 3 || s->dim[1] > e->rows || s->dim[2] != e->width || !is_f32(x))
		return chi_layer_fail(l, x,
				"position_embedding needs f32 [n, up to %" PRId64 " "
				"positions, %" PRId64 "]; the input is %s %s",
				e->rows, e->width, choir_dtype_name(x->dtype), chi_shape_print(s, got));
	return choir_add(
			x, choir_slice(choir_variable_read(l->variable[0], x->frame), 0, 0, s->dim[1]));
}

static choir_tensor *apply_tied(choir_layer *l, choir_tensor *x)
{
	const embedding *e = (const embedding *) l;
	const int rank = x->shape.rank;
	char got[CHI_SHAPE_TEXT];
	if (rank < 2 || x->shape.dim[rank - 1] != e->width || !is_f32(x))
		return chi_layer_fail(l, x,
				"tied_embedding needs f32 [.., %" PRId64 "]; the input is %s %s", e->width,
				choir_dtype_name(x->dtype), chi_shape_print(&x->shape, got));
	return choir_matmul(
			x, choir_variable_read(e->tied->variable[0], x->frame), CHOIR_TRANSPOSED_B);
}

static int describe_embedding(choir_layer *l, chi_export *e, int x)
{
	const embedding *b = (const embedding *) l;
	const chi_export_value *v = &e->value[x];
	if (e->dtype == CHOIR_F32 || !e->memory[v->memory].given)
		return chi_export_refuse(
				l, e, x, "embedding must be the first layer, with an input of u8 or i32");
	if (e->numbers == 0 || b->rows < e->numbers)
		e->numbers = b->rows;
	const char *table = chi_export_variable(e, l->variable[0]);
	return table == NULL
			? CHOIR_NONE
			: chi_export_call(e, CHI_C_EMBEDDING, x, CHOIR_SHAPE(v->shape.dim[0], b->width),
					  ", %" PRId64 ", %s.at", b->width, table);
}

static int describe_places(choir_layer *l, chi_export *e, int x)
{
	const embedding *b = (const embedding *) l;
	const choir_shape *s = chi_export_shape(e, x);
	if (s->rank != 2 || s->dim[0] > b->rows || s->dim[1] != b->width)
		return chi_export_refuse(l, e, x,
				"position_embedding needs [up to %" PRId64 " positions, %" PRId64 "]", b->rows,
				b->width);
	return chi_export_add_table(e, x, chi_export_variable(e, l->variable[0]));
}

static int describe_tied(choir_layer *l, chi_export *e, int x)
{
	const embedding *b = (const embedding *) l, *table = (const embedding *) b->tied;
	choir_shape s = *chi_export_shape(e, x);
	if (s.rank < 1 || s.dim[s.rank - 1] != b->width)
		return chi_export_refuse(l, e, x, "tied_embedding needs [.., %" PRId64 "]", b->width);
	const char *name = chi_export_variable(e, b->tied->variable[0]);
	s.dim[s.rank - 1] = table->rows;
	return name == NULL ? CHOIR_NONE
						: chi_export_call(e, CHI_C_TIED, x, s, ", %" PRId64 ", %" PRId64 ", %s.at",
								  b->width, table->rows, name);
}

static const chi_layer_kind embedding_kind = { .name = "embedding",
	.image = CHI_IMAGE_ENDED,
	.apply = apply_embedding,
	.any_dtype = true,
	.sequences = true,
	.describe = describe_embedding };
static const chi_layer_kind places_kind = { .name = "position_embedding",
	.sequences = true,
	.apply = apply_places,
	.describe = describe_places };
static const chi_layer_kind tied_kind = { .name = "tied",
	.image = CHI_IMAGE_ENDED,
	.sequences = true,
	.apply = apply_tied,
	.describe = describe_tied };

static choir_layer *make(const chi_layer_kind *kind, const char *name, int64_t rows, int64_t width)
{
	if (chi_layer_check(kind->name, name, true, CHOIR_LINEAR) != CHOIR_OK)
		return NULL;
	if (rows < 1 || width < 1)
		return chi_fail_null(CHOIR_INVALID,
				"layer \"%s\": %s of %" PRId64 " rows of %" PRId64 "; both must be 1 or more",
				name, kind->name, rows, width);
	embedding *e = (embedding *) chi_layer_new(sizeof *e, kind, name);
	if (e == NULL)
		return NULL;
	e->rows = rows;
	e->width = width;
	const choir_variable_options o = {
		.size = sizeof o, .initializer = CHOIR_INITIALIZER_NORMAL, .scale = 0.02
	};
	return chi_layer_finish(&e->layer,
			chi_layer_make_variable(&e->layer, "embeddings", CHOIR_SHAPE(rows, width), &o));
}

choir_layer *choir_embedding_new(const char *name, int64_t rows, int64_t width)
{
	return make(&embedding_kind, name, rows, width);
}

choir_layer *choir_position_embedding_new(const char *name, int64_t places, int64_t width)
{
	return make(&places_kind, name, places, width);
}

choir_layer *choir_tied_embedding_new(choir_layer *layer)
{
	if (layer == NULL || layer->kind != &embedding_kind)
		return chi_fail_null(CHOIR_INVALID,
				"tied_embedding: the layer is %s; an embedding is needed",
				layer == NULL ? "NULL" : layer->kind->name);
	embedding *e = (embedding *) chi_layer_new(sizeof *e, &tied_kind, NULL);
	if (e == NULL)
		return NULL;
	e->tied = layer;
	e->width = ((const embedding *) layer)->width;
	chi_layer_set(&e->layer, "%.50s", layer->name);
	choir_status status = CHOIR_OK;
	if (e->layer.strategy != layer->strategy)
		status = choir_fail(CHOIR_STATE,
				"tied_embedding: mixing strategies: the embedding "
				"\"%s\" belongs to %s, the current strategy is %s",
				layer->name, layer->strategy->label, e->layer.strategy->label);
	return chi_layer_finish(&e->layer, status);
}

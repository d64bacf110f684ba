// Copies a model's variables to host memory and back, for --patience.
#include "train/best_epoch.h"

#include <stdlib.h>
#include <string.h>

static size_t bytes(const choir_variable *v)
{
	return (size_t) choir_shape_elements(choir_variable_shape(v)) * sizeof(float);
}

static choir_status reserve(best_weights *b, choir_layer *net)
{
	const int n = choir_layer_variables(net);
	b->copy = calloc((size_t) n + 1, sizeof *b->copy);
	for (; b->copy != NULL && b->n < n; b->n++) {
		b->copy[b->n] = malloc(bytes(choir_layer_variable(net, b->n)) + 1);
		if (b->copy[b->n] == NULL)
			break;
	}
	return b->copy != NULL && b->n == n
			? CHOIR_OK
			: choir_fail(CHOIR_NO_MEMORY, "--patience: no memory for a copy of the weights");
}

choir_status best_keep(best_weights *b, choir_layer *net)
{
	if (b->copy == NULL)
		CHOIR_TRY(reserve(b, net));
	choir_frame *f = choir_frame_new(NULL);
	choir_status status = f == NULL ? choir_error_status() : CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < b->n; i++) {
		choir_variable *v = choir_layer_variable(net, i);
		choir_tensor *value = choir_variable_read(v, f);
		const void *data = choir_tensor_data(value);
		if (data == NULL)
			status = choir_error_status();
		else
			memcpy(b->copy[i], data, bytes(v));
	}
	choir_frame_free(f);
	return status;
}

choir_status best_restore(const best_weights *b, choir_layer *net)
{
	choir_frame *f = b->copy == NULL ? NULL : choir_frame_new(NULL);
	choir_status status = b->copy != NULL && f == NULL ? choir_error_status() : CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < b->n; i++) {
		choir_variable *v = choir_layer_variable(net, i);
		status = choir_variable_assign(
				v, choir_borrow(f, CHOIR_F32, *choir_variable_shape(v), b->copy[i]));
	}
	choir_frame_free(f);
	return status;
}

void best_free(best_weights *b)
{
	for (int i = 0; i < b->n; i++)
		free(b->copy[i]);
	free(b->copy);
	*b = (best_weights){ .n = 0 };
}

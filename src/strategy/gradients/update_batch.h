// The optimizer's writes of summed gradients.
#pragma once

#include "strategy/gradients/pending_update.h"

// Elements of a variable's copy.
choir_status chi_device_gradient_write(
		const chi_device_gradient *g, int copy, const chi_gradient_chunk *chunk);
// Rows of its only copy.
choir_status chi_device_gradient_write_rows(
		const chi_device_gradient *g, const chi_gradient_rows *rows);

// For one call on a device with its own memory.
typedef struct {
	chi_pending_update *update;
	chi_stream *stream;
	size_t n;
	chi_gradient_write write[64];
} chi_write_list;

// Runs the list first if it is full, or if its stream differs.
choir_status chi_write_list_add(
		chi_write_list *l, chi_stream *stream, const chi_gradient_write *w);
choir_status chi_write_list_run(chi_write_list *l);

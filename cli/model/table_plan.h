// The description of the table that a model was trained on, as metadata of its weights.
#pragma once

#include "model/model.h"

// Writes "key=value" lines after those of the plan. Returns the length; size if it does not fit.
size_t table_plan_write(const table_plan *t, char *text, size_t size);
choir_status table_plan_read(table_plan *t, const char *path);

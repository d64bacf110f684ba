// The table of a model as metadata.
#pragma once

#include "model/model.h"

// Writes "key=value" lines. Returns the length; size if they do not fit.
size_t table_plan_write(const table_plan *t, char *text, size_t size);
choir_status table_plan_read(table_plan *t, const char *path);

// What a model learned from a table must know of it, beside the weights.
#pragma once

#include "model/model.h"

// As "key=value" lines behind the plan's own. How long they are; size: they do not fit.
size_t table_plan_write(const table_plan *t, char *text, size_t size);
choir_status table_plan_read(table_plan *t, const char *path);

// The page of choir report.
#pragma once

#include "report/run_events.h"

#include <stdio.h>

void page_write(FILE *to, const run_events *r);
// Its parts.
void page_confusion(FILE *to, const run_events *r);
void page_times(FILE *to, const run_events *r);

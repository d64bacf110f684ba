// The commands of a stream.
#pragma once

#include "serve/session.h"

// Runs a command of a stream, on its thread.
choir_status chi_served_run(chi_served_stream *s, const chi_served_task *t);

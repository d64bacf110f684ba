// A stream's commands.
#pragma once

#include "serve/session.h"

// On the stream's thread.
choir_status chi_served_run(chi_served_stream *s, const chi_served_task *t);

// A stream's commands.
#pragma once

#include "serve/session.h"

// On the stream's thread.
choir_status chi_served_run(chi_served_stream *s, chi_served_task *t);
// Asks about a FOLLOW. early: unless memory will show the answer. With the lock.
void chi_served_ask(chi_served_stream *s, chi_served_task *t, bool early);

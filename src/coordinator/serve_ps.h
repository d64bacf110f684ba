// Serves as a parameter server, until the job ends.
#pragma once

#include "coordinator/task.h"

choir_status chi_serve_ps(choir_task *t, choir_strategy *s, const choir_coordinator_options *o);

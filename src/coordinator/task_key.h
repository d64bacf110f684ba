// The key of a task.
#pragma once

#include "coordinator/task.h"

// By the options, the environment or the supervisor; its size is 0 without a key.
choir_status chi_task_find_key(choir_task *t);

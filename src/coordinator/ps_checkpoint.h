// The state of a job's model in a checkpoint.
#pragma once

#include "coordinator/push_pull_messages.h"

// All values, slots and counters; the second function takes each server's own part.
choir_status chi_job_model_save(const chi_job_model *m, chi_pack *to);
choir_status chi_job_model_restore(chi_job_model *m, int states, const chi_pack state[]);

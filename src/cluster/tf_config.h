// Reads roles from JSON text, and overwrites this text. CHOIR_INVALID names the position.
#pragma once

#include "cluster/roles.h"

// Reads TF_CONFIG's cluster and task. An empty object sets nothing.
choir_status chi_roles_read(chi_roles *r, const char *source, char *json, size_t bytes);
// Reads a cluster alone: {"worker": [...]}.
choir_status chi_roles_read_cluster(chi_roles *r, const char *source, char *json, size_t bytes);

// The kind of devices `remote`: devices of other processes and machines (choir serve).
#pragma once

#include "device/remote/remote_server.h"

enum { CHI_REMOTE_NAME = 160 };

typedef struct {
	chi_remote_server *server;
	int device;
} chi_remote_self;

extern const choir_device_table chi_remote_table;

bool chi_remote_is_name(const char *name);
// Splits "remote:HOST:PORT/cpu:0" or "remote:unix:PATH/cpu:0". index: among all that the process
// has named. CHOIR_NOT_FOUND: another spelling.
choir_status chi_remote_find(const char *name, char canonical[CHI_REMOTE_NAME], int *index);

// The kind `remote`: devices of other processes and machines (choir serve).
#pragma once

#include "device/remote/remote_client.h"

enum { CHI_REMOTE_NAME = 160 };

typedef struct {
	chi_remote_server *server;
	int device;
} chi_remote_self;

extern const choir_device_table chi_remote_table;
// As the table's copy; the host memory must not change before a wait for the stream.
choir_status chi_remote_copy_kept(void *stream, void *to, const void *from, size_t bytes);

typedef char chi_remote_names[CHI_REMOTE_DEVICES][CHI_REMOTE_NAME];

bool chi_remote_is_name(const char *name);
// From "remote:HOST:PORT", the names of its devices; *n is 0 for other names.
choir_status chi_remote_expand(const char *name, chi_remote_names names, int *n);
// name: "remote:HOST:PORT/cpu:0" or "remote:unix:PATH/cpu:0". *index: among all that the process
// has named. CHOIR_NOT_FOUND: another spelling.
choir_status chi_remote_find(const char *name, char canonical[CHI_REMOTE_NAME], int *index);

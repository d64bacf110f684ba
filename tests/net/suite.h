// What every table of connections must do. The programs use two ends of one table in one thread.
#pragma once

#include "net/net_loader.h"

typedef struct {
	chi_connections *listener, *dialler;
	const char *address, *nowhere; // nobody listens at nowhere
	void (*free_place)(void); // NULL, or removes what keeps address in use after a crash
} net_suite_place;

void net_suite_run(const net_suite_place *place);

// A strategy of somebody else's, against the installed library: variables in turn on one of the
// devices that carry replicas. It must pass the suite that Choir's own strategies pass, whose
// files need nothing but public headers.
#include "suite.h"

#include <choir/extend.h>

#include <stdatomic.h>
#include <stdio.h>

typedef struct {
	int n;
	choir_device *const *devices;
	atomic_uint made;
} in_turn;

static choir_status open_in_turn(void *self, const choir_strategy_options *options, int n,
		choir_device *const devices[])
{
	in_turn *s = self;
	(void) options;
	s->n = n;
	s->devices = devices;
	return CHOIR_OK;
}

static int all_devices(void *self, int room, choir_device *devices[])
{
	const in_turn *s = self;
	for (int i = 0; i < s->n && i < room; i++)
		devices[i] = s->devices[i];
	return s->n;
}

static int next_device(void *self, const choir_new_variable *v, int room, choir_device *devices[])
{
	in_turn *s = self;
	(void) v;
	(void) room;
	devices[0] = s->devices[atomic_fetch_add(&s->made, 1) % (unsigned) s->n];
	return 1;
}

int main(void)
{
	const choir_strategy_table table = { .size = sizeof table, .version = CHOIR_TABLE_VERSION,
		.name = "in_turn", .self_size = sizeof(in_turn), .open = open_in_turn,
		.parameter_devices = all_devices, .place = next_device };
	const strategy_subject subject = { .kind = "in_turn" };
	if (choir_register_strategy(&table) != CHOIR_OK) {
		printf("%s\n", choir_error());
		return 1;
	}
	return strategy_suite_run(&subject);
}

// Finds libchoir-net, and opens tables.
#include "net/net_loader.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dynamic_library.h"
#include "base/options.h"
#include "base/status.h"
#include "choir/extend/net.h"

static choir_status check(const choir_connection_table *t)
{
	if (t->open != NULL && t->close != NULL && t->listen != NULL && t->accept != NULL &&
			t->connect != NULL && t->send != NULL && t->receive != NULL && t->describe != NULL &&
			t->drop != NULL && t->wait != NULL && t->wake != NULL && t->now != NULL)
		return CHOIR_OK;
	return choir_fail(
			CHOIR_INVALID, "connections: table %s has an empty slot; all are needed", t->name);
}

chi_connections *chi_connections_open_table(
		const choir_connection_table *table, const void *argument, const chi_key *key)
{
	chi_connections *c = chi_alloc(sizeof *c);
	if (c == NULL)
		return NULL;
	if (chi_table_take("connections", &c->table, sizeof c->table, sizeof c->table, table) ==
					CHOIR_OK &&
			check(&c->table) == CHOIR_OK)
		c->self = chi_alloc(c->table.self_size);
	if (c->self == NULL) {
		chi_free(c);
		return NULL;
	}
	c->job = key == NULL ? 0 : chi_key_job(key);
	if (c->table.open(c->self, argument) == CHOIR_OK)
		return c;
	chi_connections_free(c);
	return NULL;
}

chi_connections *chi_connections_open(const chi_key *key, bool plain)
{
	chi_dynamic_library *m = chi_dynamic_library_open_own("net", true);
	const choir_net_plugin *plugin =
			m == NULL ? NULL : chi_dynamic_library_symbol(m, CHOIR_NET_PLUGIN_SYMBOL);
	if (m == NULL) {
		chi_error_prefix("connections: no libchoir-net");
		return NULL;
	}
	if (plugin == NULL || plugin->version != CHOIR_NET_PLUGIN_VERSION) {
		choir_fail(CHOIR_INVALID, "connections: libchoir-net is not of version %d",
				CHOIR_NET_PLUGIN_VERSION);
		return NULL;
	}
	const choir_net_argument argument = { .fail = choir_fail,
		.now = chi_clock_now,
		.allocate = chi_alloc,
		.release = chi_free,
		.key = key == NULL ? NULL : key->bytes,
		.key_bytes = key == NULL ? 0 : key->size,
		.plain = plain };
	return chi_connections_open_table(plugin->table, &argument, key);
}

void chi_connections_free(chi_connections *c)
{
	if (c == NULL)
		return;
	c->table.close(c->self);
	chi_free(c->self);
	chi_free(c);
}

double chi_connections_now(chi_connections *c)
{
	return c->table.now(c->self);
}

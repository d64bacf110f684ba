// Parameter servers' state in a checkpoint: step, values, then each optimizer's entries with name,
// dtype, shape and bytes. Each server has all slots; a variable's rows come from its own server.
#include "coordinator/ps_checkpoint.h"

#include "coordinator/closure_message.h"
#include "value/shard_rows.h"

#include <string.h>

static choir_status save_optimizer(choir_optimizer *o, chi_pack *to)
{
	chi_state_dict state = { .object = "o" };
	chi_state_dict_memory memory = { 0 };
	state.memory = &memory;
	const choir_status status = chi_optimizer_state.save(o, &state);
	chi_pack_u32(to, (uint32_t) state.n);
	for (size_t i = 0; status == CHOIR_OK && i < state.n; i++) {
		const chi_state_dict_entry *e = &state.entry[i];
		chi_pack_text(to, e->name);
		chi_shape_pack(to, e->dtype, &e->shape);
		chi_pack_bytes(to, e->data, e->bytes);
	}
	chi_state_dict_free(&state);
	chi_free(memory.scratch.memory);
	return status;
}

choir_status chi_job_model_save(const chi_job_model *m, chi_pack *to)
{
	chi_pack_u64(to, m->strategy->step);
	for (int i = 0; i < m->servers; i++)
		CHOIR_TRY(chi_job_model_pack_values(m, i, to));
	for (size_t i = 0; i < m->optimizers; i++)
		CHOIR_TRY(save_optimizer(m->optimizer[i], to));
	return to->failed ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static choir_status restore_values(chi_job_model *m, int states, chi_unpack u[])
{
	for (int server = 0; server < m->servers; server++)
		for (size_t i = (size_t) server; i < m->n; i += (size_t) m->servers)
			for (int k = 0; k < states; k++) {
				const void *from = chi_unpack_raw(&u[k], chi_variable_bytes(m->variable[i]));
				if (from == NULL)
					return chi_unpack_end(&u[k], "STATE");
				if (states == 1 || k == server)
					CHOIR_TRY(chi_variable_from_host(m->variable[i], from));
			}
	return CHOIR_OK;
}

// For "o/VARIABLE/SLOT" the server has the bytes of its variable or shards; others belong to the
// first server.
static void merge(const chi_job_model *m, int server, const char *name, const char *from, char *to,
		size_t bytes)
{
	const char *slash = strrchr(name, '/');
	const size_t length = slash == NULL || slash < name + 2 ? 0 : (size_t) (slash - name - 2);
	bool found = false;
	for (size_t i = 0; i < m->n; i++) {
		const choir_variable *v = m->variable[i], *whole = v->parent != NULL ? v->parent : v;
		if (strlen(whole->name) != length || memcmp(whole->name, name + 2, length) != 0)
			continue;
		const size_t first =
				v->parent == NULL ? 0 : (size_t) chi_shard_first(v) * chi_dtype_size(v->dtype);
		found = true;
		if (i % (size_t) m->servers == (size_t) server && first + chi_variable_bytes(v) <= bytes)
			memcpy(to + first, from + first, chi_variable_bytes(v));
	}
	if (!found && server == 0)
		memcpy(to, from, bytes);
}

static choir_status take_entry(
		const chi_job_model *m, int server, int states, chi_unpack *u, chi_state_dict *state)
{
	char name[1024];
	choir_dtype dtype;
	choir_shape shape;
	size_t bytes;
	chi_unpack_text(u, name, sizeof name);
	chi_shape_unpack(u, &dtype, &shape);
	const void *data = chi_unpack_bytes(u, &bytes);
	if (u->failed || strncmp(name, "o/", 2) != 0)
		return choir_fail(CHOIR_CORRUPT, "message STATE: an entry is damaged");
	chi_state_dict_entry *e = NULL;
	for (size_t i = 0; i < state->n && e == NULL; i++)
		if (strcmp(state->entry[i].name, name) == 0)
			e = &state->entry[i];
	if (e == NULL) {
		if (chi_state_dict_add(state, name + 2, dtype, &shape) == NULL)
			return choir_error_status();
		e = &state->entry[state->n - 1];
		memset(e->data, 0, e->bytes);
	}
	if (e->bytes != bytes)
		return choir_fail(CHOIR_CORRUPT, "message STATE: \"%.100s\" has %zu bytes; %zu are needed",
				name, bytes, e->bytes);
	if (states == 1)
		memcpy(e->data, data, bytes);
	else
		merge(m, server, name, data, e->data, bytes);
	return CHOIR_OK;
}

static choir_status restore_optimizer(
		chi_job_model *m, choir_optimizer *o, int states, chi_unpack u[])
{
	chi_state_dict state = { .object = "o", .path = "STATE" };
	chi_state_dict_memory memory = { 0 };
	state.memory = &memory;
	choir_status status = CHOIR_OK;
	for (int k = 0; k < states && status == CHOIR_OK; k++) {
		const uint32_t n = chi_unpack_u32(&u[k]);
		for (uint32_t i = 0; i < n && status == CHOIR_OK; i++)
			status = take_entry(m, k, states, &u[k], &state);
	}
	if (status == CHOIR_OK)
		status = chi_optimizer_state.check(o, &state);
	if (status == CHOIR_OK)
		status = chi_optimizer_state.restore(o, &state);
	chi_state_dict_free(&state);
	chi_free(memory.scratch.memory);
	return status;
}

choir_status chi_job_model_restore(chi_job_model *m, int states, const chi_pack state[])
{
	chi_unpack *u = chi_alloc_array((size_t) states, sizeof *u);
	CHOIR_TRY(chi_made(u));
	uint64_t step = 0;
	for (int k = 0; k < states; k++) {
		u[k] = (chi_unpack){ .data = state[k].data, .bytes = state[k].bytes };
		const uint64_t own = chi_unpack_u64(&u[k]);
		step = own > step ? own : step;
	}
	choir_status status = restore_values(m, states, u);
	for (size_t i = 0; status == CHOIR_OK && i < m->optimizers; i++)
		status = restore_optimizer(m, m->optimizer[i], states, u);
	for (int k = 0; status == CHOIR_OK && k < states; k++)
		status = chi_unpack_end(&u[k], "STATE");
	if (status == CHOIR_OK)
		m->strategy->step = step;
	chi_free(u);
	return status;
}

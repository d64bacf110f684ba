// Variables and optimizers as bytes.
#include "coordinator/job_model.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "strategy/cross/cross.h"
#include "value/sharded_variable.h"

#include <string.h>

static bool is_remote(const choir_variable *v)
{
	return !v->slot && v->shards == 0 && v->synchronization != CHOIR_SYNCHRONIZATION_ON_READ;
}

static choir_status check_optimizer(const chi_job_model *m, const choir_optimizer *o)
{
	if (o->loss_scale.kind == CHOIR_LOSS_SCALE_DYNAMIC)
		return choir_fail(CHOIR_UNSUPPORTED,
				"%s: a dynamic loss scale; on parameter servers in other processes a fixed one is "
				"needed",
				o->kind->name);
	if (m->servers > 1 &&
			(o->options.global_clip_norm > 0 || o->options.nonfinite == CHOIR_NONFINITE_SKIP))
		return choir_fail(CHOIR_UNSUPPORTED,
				"%s: global_clip_norm and CHOIR_NONFINITE_SKIP look at all gradients; with %d "
				"servers each sees its own, so one server is needed",
				o->kind->name, m->servers);
	return CHOIR_OK;
}

choir_status chi_job_model_collect(chi_job_model *m, choir_strategy *s, int servers)
{
	size_t variables = 0, optimizers = 0;
	*m = (chi_job_model){ .strategy = s, .servers = servers };
	for (choir_variable *v = s->variables; v != NULL; v = v->next)
		variables += is_remote(v);
	for (chi_stateful *o = s->stateful; o != NULL; o = o->next)
		optimizers += o->table == &chi_optimizer_state;
	m->variable = chi_alloc_array(variables + 1, sizeof *m->variable);
	m->optimizer = chi_alloc_array(optimizers + 1, sizeof *m->optimizer);
	if (m->variable == NULL || m->optimizer == NULL)
		return CHOIR_NO_MEMORY;
	for (choir_variable *v = s->variables; v != NULL; v = v->next)
		if (is_remote(v)) {
			m->variable[m->n++] = v;
			m->bytes += chi_variable_bytes(v);
		}
	m->optimizers = optimizers;
	for (chi_stateful *o = s->stateful; o != NULL; o = o->next) // newest first
		if (o->table == &chi_optimizer_state)
			m->optimizer[--optimizers] = o->self;
	for (size_t i = 0; i < m->optimizers; i++)
		CHOIR_TRY(check_optimizer(m, m->optimizer[i]));
	return CHOIR_OK;
}

void chi_job_model_free(chi_job_model *m)
{
	chi_free(m->variable);
	chi_free(m->optimizer);
	*m = (chi_job_model){ 0 };
}

uint64_t chi_job_model_hash(const chi_job_model *m)
{
	uint64_t hash = m->optimizers;
	for (size_t i = 0; i < m->n; i++) {
		const choir_variable *v = m->variable[i];
		hash = chi_hash_mix(hash ^ chi_hash_text(v->name));
		hash = chi_hash_mix(hash + (uint64_t) v->dtype);
		for (int k = 0; k < v->shape.rank; k++)
			hash = chi_hash_mix(hash + (uint64_t) v->shape.dim[k]);
	}
	for (size_t i = 0; i < m->optimizers; i++)
		hash = chi_hash_mix(hash ^ chi_hash_text(m->optimizer[i]->kind->name));
	return hash;
}

uint64_t chi_job_model_versions(const chi_job_model *m)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < m->n; i++)
		hash = chi_hash_mix(hash + chi_atomic64_load(&m->variable[i]->copy[0].source.version));
	for (size_t i = 0; i < m->optimizers; i++)
		hash = chi_hash_mix(hash + chi_atomic64_load(&m->optimizer[i]->step));
	return hash;
}

size_t chi_job_model_find(const chi_job_model *m, const choir_variable *v)
{
	size_t i = 0;
	while (i < m->n && m->variable[i] != v)
		i++;
	return i;
}

static int owner(const chi_job_model *m, size_t i)
{
	return (int) (i % (size_t) m->servers);
}

static void *reserve(chi_pack *to, size_t bytes)
{
	if (to->failed || bytes > SIZE_MAX - to->bytes ||
			!chi_grow(&to->data, &to->capacity, to->bytes + bytes, 1)) {
		to->failed = true;
		return NULL;
	}
	to->bytes += bytes;
	return to->data + to->bytes - bytes;
}

static choir_status packed(const chi_pack *to)
{
	return to->failed ? CHOIR_NO_MEMORY : CHOIR_OK;
}

choir_status chi_job_model_pack_values(const chi_job_model *m, int server, chi_pack *to)
{
	for (size_t i = 0; i < m->n; i++) {
		if (owner(m, i) != server)
			continue;
		void *memory = reserve(to, chi_variable_bytes(m->variable[i]));
		if (memory != NULL)
			CHOIR_TRY(chi_variable_copy_out(m->variable[i], memory));
	}
	return packed(to);
}

choir_status chi_job_model_take_values(const chi_job_model *m, int server, chi_unpack *u)
{
	for (size_t i = 0; i < m->n; i++) {
		if (owner(m, i) != server)
			continue;
		const void *from = chi_unpack_raw(u, chi_variable_bytes(m->variable[i]));
		if (from != NULL)
			CHOIR_TRY(chi_variable_from_host(m->variable[i], from));
	}
	return chi_unpack_end(u, "VALUES");
}

uint32_t chi_job_model_pack_push(const chi_job_model *m, int server, const void *optimizer,
		size_t n, choir_variable *const v[], const void *const gradient[], chi_pack *to)
{
	uint32_t index = 0, count = 0;
	while (index < m->optimizers && m->optimizer[index] != optimizer)
		index++;
	for (size_t i = 0; i < n; i++)
		count += owner(m, chi_job_model_find(m, v[i])) == server;
	chi_pack_u32(to, index);
	chi_pack_u32(to, count);
	for (size_t i = 0; i < n; i++) {
		const size_t number = chi_job_model_find(m, v[i]);
		if (owner(m, number) != server)
			continue;
		chi_pack_u32(to, (uint32_t) number);
		chi_pack_bytes(to, gradient[i], chi_variable_bytes(v[i]));
	}
	return count;
}

choir_status chi_job_model_pack_assign(const chi_job_model *m, const choir_variable *v,
		chi_assign_op op, choir_tensor *t, chi_pack *to)
{
	chi_pack_u32(to, (uint32_t) chi_job_model_find(m, v));
	chi_pack_u32(to, (uint32_t) op);
	chi_pack_u32(to, t->is_number);
	if (t->is_number) {
		chi_pack_f64(to, t->number);
		return packed(to);
	}
	const size_t bytes = chi_variable_bytes(v);
	chi_pack_u64(to, bytes);
	void *memory = reserve(to, bytes);
	return memory == NULL ? CHOIR_NO_MEMORY : choir_tensor_to_host(t, memory, bytes);
}

static choir_status take_variable(const chi_job_model *m, chi_unpack *u, choir_variable **v)
{
	const uint32_t number = chi_unpack_u32(u);
	if (u->failed || number >= m->n)
		return choir_fail(
				CHOIR_CORRUPT, "a change of variable %u of %zu", (unsigned) number, m->n);
	*v = m->variable[number];
	return CHOIR_OK;
}

// The bytes of a tensor of v's dtype and shape, as a tensor of f. The message need not be aligned.
static choir_tensor *take_tensor(choir_frame *f, const choir_variable *v, chi_unpack *u)
{
	size_t bytes;
	const void *data = chi_unpack_bytes(u, &bytes);
	if (data != NULL && bytes == chi_variable_bytes(v))
		return choir_constant(f, v->dtype, v->shape, data);
	choir_fail(CHOIR_CORRUPT, "a change of variable \"%s\" of %zu bytes; %zu are needed", v->name,
			bytes, chi_variable_bytes(v));
	return NULL;
}

static choir_status take_gradients(chi_job_model *m, choir_frame *f, chi_unpack *u, uint32_t n,
		choir_variable **v, choir_value **value)
{
	for (uint32_t i = 0; i < n; i++) {
		CHOIR_TRY(take_variable(m, u, &v[i]));
		choir_tensor *t = take_tensor(f, v[i], u);
		if (t == NULL || (value[i] = choir_tensor_as_value(t)) == NULL)
			return choir_error_status();
	}
	return chi_unpack_end(u, "PUSH");
}

choir_status chi_job_model_push(chi_job_model *m, chi_unpack *u)
{
	choir_cross *x = choir_strategy_cross(m->strategy);
	const uint32_t index = chi_unpack_u32(u), n = chi_unpack_u32(u);
	if (x == NULL)
		return choir_error_status();
	if (u->failed || index >= m->optimizers || n == 0 || n > m->n)
		return choir_fail(CHOIR_CORRUPT, "message PUSH: %u gradients for optimizer %u",
				(unsigned) n, (unsigned) index);
	choir_variable **v = chi_alloc_array(n, sizeof *v);
	choir_value **value = chi_alloc_array(n, sizeof(choir_value *));
	choir_status status = v == NULL || value == NULL ? CHOIR_NO_MEMORY : CHOIR_OK;
	if (status == CHOIR_OK)
		status = take_gradients(m, x->frame, u, n, v, value);
	if (status == CHOIR_OK)
		status = chi_gradients_apply_now(m->optimizer[index]->apply, x, n, v, value);
	if (status == CHOIR_OK)
		m->strategy->step++;
	choir_frame_clear(x->frame);
	chi_free(value);
	chi_free(v);
	return status;
}

choir_status chi_job_model_assign(chi_job_model *m, chi_unpack *u)
{
	choir_cross *x = choir_strategy_cross(m->strategy);
	choir_variable *v = NULL;
	if (x == NULL)
		return choir_error_status();
	CHOIR_TRY(take_variable(m, u, &v));
	const uint32_t op = chi_unpack_u32(u), is_number = chi_unpack_u32(u);
	choir_tensor *t =
			is_number ? choir_number(x->frame, chi_unpack_f64(u)) : take_tensor(x->frame, v, u);
	choir_status status = t == NULL ? choir_error_status() : chi_unpack_end(u, "ASSIGN");
	if (status == CHOIR_OK)
		status = op == CHI_ASSIGN	   ? choir_variable_assign(v, t)
				: op == CHI_ASSIGN_ADD ? choir_variable_assign_add(v, t)
				: op == CHI_ASSIGN_SUB
				? choir_variable_assign_sub(v, t)
				: choir_fail(CHOIR_CORRUPT, "message ASSIGN: kind %u", (unsigned) op);
	choir_frame_clear(x->frame);
	return status;
}

// Values, gradients and assignments as bytes, and a server's handling of them.
#include "coordinator/push_pull_messages.h"

#include "base/hash.h"
#include "coordinator/protocol.h"

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

static choir_status pack_variable(choir_variable *v, chi_pack *to)
{
	void *memory = reserve(to, chi_variable_bytes(v));
	return memory == NULL ? CHOIR_NO_MEMORY : chi_variable_copy_out(v, memory);
}

choir_status chi_job_model_pack_values(const chi_job_model *m, int server, chi_pack *to)
{
	for (size_t i = 0; i < m->n; i++) {
		if (owner(m, i) != server)
			continue;
		CHOIR_TRY(pack_variable(m->variable[i], to));
	}
	return packed(to);
}

static choir_status take_variable(const chi_job_model *m, chi_unpack *u, choir_variable **v)
{
	const uint32_t number = chi_unpack_u32(u);
	if (u->failed || number >= m->n)
		return choir_fail(
				CHOIR_CORRUPT, "a message about variable %u of %zu", (unsigned) number, m->n);
	*v = m->variable[number];
	return CHOIR_OK;
}

choir_status chi_job_model_pack_asked(const chi_job_model *m, chi_unpack *u, chi_pack *to)
{
	choir_variable *v = NULL;
	const uint32_t n = chi_unpack_u32(u);
	if (u->failed || n > m->n)
		return choir_fail(CHOIR_CORRUPT, "message PULL: %u of %zu variables", (unsigned) n, m->n);
	for (uint32_t i = 0; i < n; i++) {
		CHOIR_TRY(take_variable(m, u, &v));
		CHOIR_TRY(pack_variable(v, to));
	}
	return chi_unpack_end(u, "PULL");
}

static int64_t rows_of(const choir_variable *v)
{
	return v->shape.rank > 0 ? v->shape.dim[0] : 0;
}

static size_t row_bytes(const choir_variable *v)
{
	return rows_of(v) > 0 ? chi_variable_bytes(v) / (size_t) rows_of(v) : 0;
}

static choir_status check_rows(const choir_variable *v, uint64_t n, const void *rows)
{
	for (uint64_t i = 0; i < n && rows != NULL; i++) {
		int64_t row;
		memcpy(&row, (const char *) rows + i * sizeof row, sizeof row);
		if (row < 0 || row >= rows_of(v))
			return choir_fail(CHOIR_CORRUPT, "row %lld of variable \"%s\"; it has %lld",
					(long long) row, v->name, (long long) rows_of(v));
	}
	return CHOIR_OK;
}

choir_status chi_job_model_pack_rows(const chi_job_model *m, chi_unpack *u, chi_pack *to)
{
	choir_variable *v = NULL;
	CHOIR_TRY(take_variable(m, u, &v));
	const uint64_t n = chi_unpack_u64(u);
	if (n == CHI_ALL_ROWS) {
		CHOIR_TRY(chi_unpack_end(u, "ROWS"));
		return pack_variable(v, to);
	}
	if (u->failed || n > (uint64_t) rows_of(v))
		return choir_fail(CHOIR_CORRUPT, "message ROWS: %llu rows of variable \"%s\"; it has %lld",
				(unsigned long long) n, v->name, (long long) rows_of(v));
	const char *rows = chi_unpack_raw(u, (size_t) n * sizeof(int64_t));
	CHOIR_TRY(chi_unpack_end(u, "ROWS"));
	CHOIR_TRY(check_rows(v, n, rows));
	if (!v->copy[0].device->host_memory)
		return choir_fail(CHOIR_UNSUPPORTED,
				"variable \"%s\" is on a device whose memory is not the host's", v->name);
	const size_t bytes = row_bytes(v);
	char *memory = reserve(to, (size_t) n * bytes);
	for (uint64_t i = 0; i < n && memory != NULL; i++) {
		int64_t row;
		memcpy(&row, rows + i * sizeof row, sizeof row);
		memcpy(memory + i * bytes, (const char *) v->copy[0].buffer->memory + (size_t) row * bytes,
				bytes);
	}
	return packed(to);
}

static void pack_gradient(
		const choir_variable *v, const chi_remote_gradient *g, chi_large_message *to)
{
	chi_pack_u64(&to->pack, g->dense != NULL ? CHI_ALL_ROWS : (uint64_t) g->n);
	if (g->dense == NULL)
		chi_large_message_add(to, g->row, (size_t) g->n * sizeof *g->row);
	chi_large_message_add(to, g->dense != NULL ? g->dense : g->values,
			g->dense != NULL ? chi_variable_bytes(v) : (size_t) g->n * row_bytes(v));
}

uint32_t chi_job_model_pack_push(const chi_job_model *m, int server, const void *optimizer,
		size_t n, choir_variable *const v[], const chi_remote_gradient gradient[],
		chi_large_message *to)
{
	uint32_t index = 0, count = 0;
	while (index < m->optimizers && m->optimizer[index] != optimizer)
		index++;
	for (size_t i = 0; i < n; i++)
		count += owner(m, chi_job_model_find(m, v[i])) == server;
	chi_pack_u32(&to->pack, index);
	chi_pack_u32(&to->pack, count);
	for (size_t i = 0; i < n; i++) {
		const size_t number = chi_job_model_find(m, v[i]);
		if (owner(m, number) != server)
			continue;
		chi_pack_u32(&to->pack, (uint32_t) number);
		pack_gradient(v[i], &gradient[i], to);
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

// v's dtype and shape. Copied, since the message need not be aligned.
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

// The tensors refer to the message.
static choir_tensor *take_gradient(choir_frame *f, const choir_variable *v, chi_unpack *u)
{
	const uint64_t n = chi_unpack_u64(u);
	const bool all = n == CHI_ALL_ROWS;
	choir_shape shape = v->shape;
	u->failed |= !all && n > (uint64_t) rows_of(v);
	const void *rows = all || u->failed ? NULL : chi_unpack_large(u, (size_t) n * sizeof(int64_t));
	const void *values = u->failed
			? NULL
			: chi_unpack_large(u, all ? chi_variable_bytes(v) : (size_t) n * row_bytes(v));
	if (u->failed)
		return chi_fail_null(CHOIR_CORRUPT,
				"a change of %llu rows of variable \"%s\", which has %lld", (unsigned long long) n,
				v->name, (long long) rows_of(v));
	if (all)
		return choir_borrow(f, v->dtype, shape, values);
	if (check_rows(v, n, rows) != CHOIR_OK)
		return NULL;
	shape.dim[0] = (int64_t) n;
	return choir_indexed_slices(choir_borrow(f, v->dtype, shape, values),
			choir_borrow(f, CHOIR_I64, CHOIR_SHAPE((int64_t) n), rows), rows_of(v));
}

static choir_status take_gradients(chi_job_model *m, choir_frame *f, chi_unpack *u, uint32_t n,
		choir_variable **v, choir_value **value)
{
	for (uint32_t i = 0; i < n; i++) {
		CHOIR_TRY(take_variable(m, u, &v[i]));
		choir_tensor *t = take_gradient(f, v[i], u);
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

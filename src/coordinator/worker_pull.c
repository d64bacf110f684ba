// A worker pulls variables that are read whole at a run's beginning, rows at their first read.
#include "coordinator/worker_pull.h"

#include "base/clock.h"

#include <string.h>

choir_status chi_worker_check(chi_remote_worker *w)
{
	if (w->ended) {
		chi_error_restore(&w->end);
		return w->end.status == CHOIR_END ? CHOIR_CANCELLED : w->end.status;
	}
	if (w->network.status != CHOIR_OK) {
		chi_error_restore(&w->network.error);
		return w->network.status;
	}
	return CHOIR_OK;
}

static bool is_wanted(const chi_remote_worker *w, int number, size_t i)
{
	return w->part[i].whole && i % (size_t) w->servers == (size_t) number;
}

// In host memory, and not locked by other threads.
static bool is_plain(const choir_variable *v)
{
	return v->shards == 0 && v->copies == 1 && v->concurrency == CHI_EXCLUSIVE &&
			v->copy[0].device->host_memory;
}

static bool read_head(
		const chi_remote_worker *w, const chi_remote_server *s, chi_open_values *head)
{
	const chi_process_memory_part part = { head, s->open, sizeof *head };
	return chi_process_memory_read(s->pid, &part, 1) && head->incarnation == s->incarnation &&
			head->n == w->model.n;
}

static bool add_part(chi_remote_worker *w, size_t *n, void *to, uint64_t from, size_t bytes)
{
	if (!chi_grow(&w->memory, &w->memory_capacity, *n + 1, sizeof *w->memory))
		return false;
	w->memory[(*n)++] = (chi_process_memory_part){ to, from, bytes };
	return true;
}

static bool read_addresses(
		chi_remote_worker *w, const chi_remote_server *s, const chi_open_values *head)
{
	const size_t n = w->model.n;
	const chi_process_memory_part part = { w->address, (uintptr_t) head->address,
		n * sizeof *w->address };
	return chi_process_memory_read(s->pid, &part, 1);
}

// A server's variables that are read whole.
static bool read_open(chi_remote_worker *w, int number)
{
	size_t n = 0;
	bool done = true;
	for (size_t k = 0; k < w->model.n && done; k++) {
		choir_variable *v = w->model.variable[k];
		if (is_wanted(w, number, k))
			done = is_plain(v) &&
					add_part(w, &n, v->copy[0].buffer->memory, w->address[k],
							chi_variable_bytes(v));
	}
	return done && chi_process_memory_read(w->server[number].pid, w->memory, n);
}

// Without the lock. False: ask by a message.
static bool pull_open(chi_remote_worker *w, int number)
{
	enum { TRIES = 24 };
	static const double PAUSE = 0.0001; // seconds
	chi_remote_server *s = &w->server[number];
	chi_open_values before = { 0 }, after = { 0 };
	for (int tries = 0; s->open != 0 && tries < TRIES; tries++) {
		bool read = read_head(w, s, &before);
		const uint64_t changes = chi_atomic64_load(&before.changes);
		if (read && changes % 2 != 0) {
			chi_thread_nap(PAUSE);
			continue;
		}
		if (read && before.version == s->version)
			return true;
		s->version = 0;
		read = read && read_addresses(w, s, &before) && read_open(w, number) &&
				read_head(w, s, &after);
		if (!read)
			s->open = 0;
		else if (chi_atomic64_load(&after.changes) == changes) {
			s->version = s->pulled = before.version;
			return true;
		}
	}
	return false;
}

static void note_written(chi_remote_worker *w, int number)
{
	for (size_t i = 0; i < w->model.n; i++)
		if (is_wanted(w, number, i)) {
			chi_atomic32_store(&w->model.variable[i]->copy[0].undefined, 0);
			chi_variable_bump_version(w->model.variable[i], 0);
		}
}

static choir_status ask_for_values(chi_remote_worker *w, int number)
{
	chi_pack p = { 0 };
	uint32_t n = 0;
	for (size_t i = 0; i < w->model.n; i++)
		n += is_wanted(w, number, i);
	if (n == 0)
		return CHOIR_OK;
	chi_pack_u64(&p, w->server[number].version);
	chi_pack_u32(&p, n);
	for (size_t i = 0; i < w->model.n; i++)
		if (is_wanted(w, number, i))
			chi_pack_u32(&p, (uint32_t) i);
	w->server[number].pulls = true;
	return chi_network_thread_send(&w->network, &w->server[number].peer, CHI_MESSAGE_PULL, &p);
}

static choir_status await_values(chi_remote_worker *w)
{
	for (bool pulls = true; pulls;) {
		CHOIR_TRY(chi_worker_check(w));
		pulls = false;
		for (int i = 0; i < w->servers; i++)
			pulls |= w->server[i].pulls;
		if (pulls)
			(void) chi_network_thread_wait(&w->network, chi_clock_deadline(1));
	}
	return CHOIR_OK;
}

static choir_status pull_all(chi_remote_worker *w, const bool read[])
{
	for (int i = 0; i < w->servers; i++)
		if (!read[i])
			CHOIR_TRY(ask_for_values(w, i));
	return await_values(w);
}

static choir_status take_pulled(chi_remote_worker *w, int number)
{
	chi_unpack u = { .data = w->server[number].values.data,
		.bytes = w->server[number].values.bytes };
	const uint64_t version = chi_unpack_u64(&u);
	const bool same = version == w->server[number].version;
	w->server[number].version = w->server[number].pulled = version;
	for (size_t i = 0; i < w->model.n && !same; i++) {
		if (!is_wanted(w, number, i))
			continue;
		const void *from = chi_unpack_raw(&u, chi_variable_bytes(w->model.variable[i]));
		if (from != NULL)
			CHOIR_TRY(chi_variable_from_host(w->model.variable[i], from));
	}
	return chi_unpack_end(&u, "VALUES");
}

choir_status chi_worker_refresh(void *user)
{
	chi_remote_worker *w = user;
	if (w->closure.id == 0)
		return CHOIR_OK;
	for (int i = 0; i < w->servers; i++)
		w->server[i].values.bytes = 0;
	w->run++;
	bool read[CHI_SERVERS_MAX];
	for (int i = 0; i < w->servers; i++) {
		const uint64_t version = w->server[i].version;
		read[i] = pull_open(w, i);
		if (w->server[i].version != version)
			note_written(w, i);
	}
	chi_mutex_lock(&w->network.lock);
	choir_status status = pull_all(w, read);
	chi_mutex_unlock(&w->network.lock);
	for (int i = 0; i < w->servers && status == CHOIR_OK; i++)
		if (w->server[i].values.bytes > 0)
			status = take_pulled(w, i);
	return status;
}

// A row is fetched at most once in a run, before any replica reads it.

// Not fetched in this run, ascending; all: CHI_ALL_ROWS.
static choir_status list_missing(chi_remote_worker *w, size_t i, int64_t n, const int64_t row[],
		chi_pack *rows, uint64_t *count)
{
	chi_remote_part *p = &w->part[i];
	const choir_variable *v = w->model.variable[i];
	const int64_t all = v->shape.rank > 0 ? v->shape.dim[0] : 0;
	*count = CHI_ALL_ROWS;
	// 16-bit copies need whole variables.
	const bool by_rows = v->copy[0].device->host_memory &&
			choir_strategy_precision(w->strategy) <= CHOIR_PRECISION_TF32;
	if (p->fetched != w->run && (row == NULL || !by_rows))
		return CHOIR_OK;
	*count = 0;
	if (p->row == NULL && (p->row = chi_alloc_array((size_t) all + 1, sizeof *p->row)) == NULL)
		return CHOIR_NO_MEMORY;
	for (int64_t k = 0; k < (row == NULL ? all : n); k++) {
		const int64_t r = row == NULL ? k : row[k];
		if (r < 0 || r >= all || p->row[r] == w->run)
			continue;
		p->row[r] = w->run;
		++*count;
		chi_pack_raw(rows, &r, sizeof r);
	}
	return rows->failed ? CHOIR_NO_MEMORY : CHOIR_OK;
}

static size_t row_bytes_of(const choir_variable *v)
{
	return chi_variable_bytes(v) / (size_t) v->shape.dim[0];
}

static char *place_of_row(const choir_variable *v, const chi_pack *rows, size_t k)
{
	int64_t row;
	memcpy(&row, rows->data + k * sizeof row, sizeof row);
	return (char *) v->copy[0].buffer->memory + (size_t) row * row_bytes_of(v);
}

static choir_status take_rows(chi_remote_worker *w, size_t i, const chi_pack *rows, uint64_t count)
{
	choir_variable *v = w->model.variable[i];
	chi_remote_server *s = &w->server[i % (size_t) w->servers];
	const bool all = count == CHI_ALL_ROWS;
	const size_t row_bytes = all ? 0 : row_bytes_of(v);
	chi_unpack u = { .data = s->values.data, .bytes = s->values.bytes };
	s->pulled = chi_unpack_u64(&u);
	const char *from =
			chi_unpack_raw(&u, all ? chi_variable_bytes(v) : (size_t) count * row_bytes);
	CHOIR_TRY(chi_unpack_end(&u, "VALUES"));
	if (all)
		return chi_variable_from_host(v, from);
	for (size_t k = 0; k < count; k++)
		memcpy(place_of_row(v, rows, k), from + k * row_bytes, row_bytes);
	return CHOIR_OK;
}

// In the server's memory. *done false: the system does not allow it.
static choir_status read_rows_there(
		chi_remote_worker *w, size_t i, const chi_pack *rows, uint64_t count, bool *done)
{
	const choir_variable *v = w->model.variable[i];
	chi_remote_server *s = &w->server[i % (size_t) w->servers];
	const size_t row_bytes = row_bytes_of(v);
	size_t n = 0;
	chi_unpack u = { .data = s->values.data, .bytes = s->values.bytes };
	const uint64_t version = chi_unpack_u64(&u), address = chi_unpack_u64(&u);
	CHOIR_TRY(chi_unpack_end(&u, "VALUES"));
	*done = true;
	for (size_t k = 0; k < count && *done; k++)
		*done = add_part(w, &n, place_of_row(v, rows, k), address + k * row_bytes, row_bytes);
	chi_mutex_unlock(&w->network.lock);
	*done = *done && chi_process_memory_read(s->pid, w->memory, n);
	chi_mutex_lock(&w->network.lock);
	s->pulled = *done ? version : s->pulled;
	s->open = *done ? s->open : 0;
	return CHOIR_OK;
}

// With the lock. The server's values get the answer.
static choir_status ask_for_rows(
		chi_remote_worker *w, size_t i, uint16_t kind, const chi_pack *rows, uint64_t count)
{
	chi_remote_server *s = &w->server[i % (size_t) w->servers];
	chi_pack ask = { 0 };
	chi_pack_u32(&ask, (uint32_t) i);
	chi_pack_u64(&ask, count);
	chi_pack_raw(&ask, rows->data, rows->bytes);
	s->pulls = true;
	CHOIR_TRY(chi_network_thread_send(&w->network, &s->peer, kind, &ask));
	return await_values(w);
}

// With the lock, by one replica at a time.
static choir_status fetch_rows(chi_remote_worker *w, size_t i, int64_t n, const int64_t row[])
{
	enum { FEW = 2 };
	chi_pack rows = { 0 };
	uint64_t count;
	bool done = false;
	choir_status status = list_missing(w, i, n, row, &rows, &count);
	const bool there =
			w->server[i % (size_t) w->servers].open != 0 && count > FEW && count != CHI_ALL_ROWS;
	if (status == CHOIR_OK && there)
		status = ask_for_rows(w, i, CHI_MESSAGE_ROWS_THERE, &rows, count);
	if (status == CHOIR_OK && there)
		status = read_rows_there(w, i, &rows, count, &done);
	if (status == CHOIR_OK && !done && count > 0) {
		status = ask_for_rows(w, i, CHI_MESSAGE_ROWS, &rows, count);
		if (status == CHOIR_OK)
			status = take_rows(w, i, &rows, count);
	}
	chi_pack_free(&rows);
	w->part[i].fetched = w->run;
	w->part[i].whole =
			w->part[i].whole || (status == CHOIR_OK && (row == NULL || count == CHI_ALL_ROWS));
	return status;
}

choir_status chi_worker_fetch(void *user, choir_variable *v, int64_t n, const int64_t row[])
{
	chi_remote_worker *w = user;
	const size_t i = chi_job_model_find(&w->model, v);
	if (w->closure.id == 0 || i == w->model.n)
		return CHOIR_OK;
	chi_mutex_lock(&w->network.lock);
	choir_status status = chi_worker_check(w);
	while (status == CHOIR_OK && w->fetching) {
		(void) chi_network_thread_wait(&w->network, chi_clock_deadline(1));
		status = chi_worker_check(w);
	}
	if (status == CHOIR_OK && !w->part[i].whole) {
		w->fetching = true;
		status = fetch_rows(w, i, n, row);
		w->fetching = false;
		chi_cond_broadcast(&w->network.changed);
	}
	chi_mutex_unlock(&w->network.lock);
	return status;
}

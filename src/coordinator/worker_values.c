// Values from the servers: variables that were read whole come at the beginning of a run, and rows
// when they are first read.
#include "coordinator/worker_values.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "strategy/context.h"

#include <string.h>

choir_status chi_worker_check(chi_remote_worker *w)
{
	if (w->ended) {
		chi_error_restore(&w->end);
		return w->end.status == CHOIR_END ? CHOIR_CANCELLED : w->end.status;
	}
	if (w->post.status != CHOIR_OK) {
		chi_error_restore(&w->post.error);
		return w->post.status;
	}
	return CHOIR_OK;
}

static bool is_wanted(const chi_remote_worker *w, int number, size_t i)
{
	return w->part[i].whole && i % (size_t) w->servers == (size_t) number;
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
	return chi_post_send(&w->post, &w->server[number].peer, CHI_MESSAGE_PULL, &p);
}

static choir_status await_values(chi_remote_worker *w)
{
	for (bool pulls = true; pulls;) {
		CHOIR_TRY(chi_worker_check(w));
		pulls = false;
		for (int i = 0; i < w->servers; i++)
			pulls |= w->server[i].pulls;
		if (pulls)
			(void) chi_post_wait(&w->post, chi_clock_deadline(1));
	}
	return CHOIR_OK;
}

static choir_status pull_all(chi_remote_worker *w)
{
	for (int i = 0; i < w->servers; i++)
		CHOIR_TRY(ask_for_values(w, i));
	return await_values(w);
}

static choir_status take_pulled(chi_remote_worker *w, int number)
{
	chi_unpack u = { .data = w->server[number].values.data,
		.bytes = w->server[number].values.bytes };
	const uint64_t version = chi_unpack_u64(&u);
	const bool same = version == w->server[number].version;
	w->server[number].version = version;
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
	chi_mutex_lock(&w->post.lock);
	choir_status status = pull_all(w);
	chi_mutex_unlock(&w->post.lock);
	for (int i = 0; i < w->servers && status == CHOIR_OK; i++)
		if (w->server[i].values.bytes > 0)
			status = take_pulled(w, i);
	return status;
}

// ---- Rows. Each row is fetched at most once in a run, before any replica reads it.

// The rows that this run has not fetched, in ascending order; all: CHI_ALL_ROWS.
static choir_status list_missing(chi_remote_worker *w, size_t i, int64_t n, const int64_t row[],
		chi_pack *rows, uint64_t *count)
{
	chi_remote_part *p = &w->part[i];
	const choir_variable *v = w->model.variable[i];
	const int64_t all = v->shape.rank > 0 ? v->shape.dim[0] : 0;
	*count = CHI_ALL_ROWS;
	// Copies in 16 bits are made of whole variables.
	const bool by_rows = v->copy[0].device->host_memory &&
			choir_strategy_precision(w->strategy) == CHOIR_PRECISION_F32;
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

static choir_status take_rows(const chi_remote_worker *w, size_t i, const chi_pack *values,
		const chi_pack *rows, uint64_t count)
{
	choir_variable *v = w->model.variable[i];
	const bool all = count == CHI_ALL_ROWS;
	const size_t row_bytes = all ? 0 : chi_variable_bytes(v) / (size_t) v->shape.dim[0];
	const size_t bytes = all ? chi_variable_bytes(v) : (size_t) count * row_bytes;
	chi_unpack u = { .data = values->data, .bytes = values->bytes };
	(void) chi_unpack_u64(&u);
	const char *from = chi_unpack_raw(&u, bytes);
	CHOIR_TRY(chi_unpack_end(&u, "VALUES"));
	if (all)
		return chi_variable_from_host(v, from);
	for (uint64_t k = 0; k < count; k++) {
		int64_t r;
		memcpy(&r, rows->data + k * sizeof r, sizeof r);
		memcpy((char *) v->copy[0].buffer->memory + (size_t) r * row_bytes,
				from + (size_t) k * row_bytes, row_bytes);
	}
	return CHOIR_OK;
}

// With the lock, and as the only replica that fetches.
static choir_status fetch_rows(chi_remote_worker *w, size_t i, int64_t n, const int64_t row[])
{
	chi_pack rows = { 0 }, ask = { 0 };
	uint64_t count;
	chi_remote_server *s = &w->server[i % (size_t) w->servers];
	choir_status status = list_missing(w, i, n, row, &rows, &count);
	if (status == CHOIR_OK && count > 0) {
		chi_pack_u32(&ask, (uint32_t) i);
		chi_pack_u64(&ask, count);
		chi_pack_raw(&ask, rows.data, rows.bytes);
		s->pulls = true;
		status = chi_post_send(&w->post, &s->peer, CHI_MESSAGE_ROWS, &ask);
		if (status == CHOIR_OK)
			status = await_values(w);
		if (status == CHOIR_OK)
			status = take_rows(w, i, &s->values, &rows, count);
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
	chi_mutex_lock(&w->post.lock);
	choir_status status = chi_worker_check(w);
	while (status == CHOIR_OK && w->fetching) {
		(void) chi_post_wait(&w->post, chi_clock_deadline(1));
		status = chi_worker_check(w);
	}
	if (status == CHOIR_OK && !w->part[i].whole) {
		w->fetching = true;
		status = fetch_rows(w, i, n, row);
		w->fetching = false;
		chi_cond_broadcast(&w->post.changed);
	}
	chi_mutex_unlock(&w->post.lock);
	return status;
}

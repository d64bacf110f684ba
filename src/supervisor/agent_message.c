// Agents' messages. Sizes and texts come from another process, so each is checked.
#include "supervisor/agent_message.h"

#include <stdlib.h>

void chi_agent_join_pack(const chi_agent_join *j, chi_pack *p)
{
	chi_pack_u32(p, (uint32_t) j->attempt);
	chi_pack_u32(p, (uint32_t) j->worker);
	chi_pack_u64(p, (uint64_t) j->pid);
	chi_pack_text(p, j->host);
}

choir_status chi_agent_join_unpack(chi_unpack *u, chi_agent_join *j)
{
	j->attempt = (int) chi_unpack_u32(u);
	j->worker = (int) chi_unpack_u32(u);
	j->pid = (long) chi_unpack_u64(u);
	chi_unpack_text(u, j->host, sizeof j->host);
	return chi_unpack_end(u, "an agent's start");
}

void chi_report_pack(const chi_worker_report *r, chi_pack *p)
{
	const chi_health_note *h = &r->health;
	chi_pack_u32(p, (uint32_t) h->state);
	chi_pack_u32(p, (uint32_t) h->status);
	chi_pack_u32(
			p, (h->waiting ? 1u : 0u) | (h->by_other ? 2u : 0u) | (r->out_of_memory ? 4u : 0u));
	chi_pack_u32(p, (uint32_t) h->peer);
	chi_pack_u32(p, (uint32_t) h->first_replica);
	chi_pack_u32(p, (uint32_t) h->replicas);
	chi_pack_u64(p, (uint64_t) h->pid);
	chi_pack_u64(p, h->step);
	chi_pack_u64(p, h->steps);
	chi_pack_u64(p, h->saved);
	chi_pack_u64(p, h->sequence);
	chi_pack_f64(p, r->silence);
	chi_pack_f64(p, r->unchanged);
	chi_pack_text(p, h->what);
	chi_pack_text(p, h->text);
}

void chi_report_unpack(chi_unpack *u, chi_worker_report *r)
{
	*r = (chi_worker_report){ 0 };
	chi_health_note *h = &r->health;
	const uint32_t state = chi_unpack_u32(u);
	h->state = state <= CHI_HEALTH_FINISHED ? (chi_health_state) state : CHI_HEALTH_NEW;
	h->status = (choir_status) chi_unpack_u32(u);
	const uint32_t flags = chi_unpack_u32(u);
	h->waiting = (flags & 1u) != 0;
	h->by_other = (flags & 2u) != 0;
	r->out_of_memory = (flags & 4u) != 0;
	h->peer = (int) chi_unpack_u32(u);
	h->first_replica = (int) chi_unpack_u32(u);
	h->replicas = (int) chi_unpack_u32(u);
	h->pid = (long) chi_unpack_u64(u);
	h->step = chi_unpack_u64(u);
	h->steps = chi_unpack_u64(u);
	h->saved = chi_unpack_u64(u);
	h->sequence = chi_unpack_u64(u);
	r->silence = chi_unpack_f64(u);
	r->unchanged = chi_unpack_f64(u);
	chi_unpack_text(u, h->what, sizeof h->what);
	chi_unpack_text(u, h->text, sizeof h->text);
}

void chi_end_pack(const chi_process_end *end, chi_pack *p)
{
	chi_pack_u32(p, end->by_signal ? 1 : 0);
	chi_pack_u32(p, (uint32_t) end->number);
}

void chi_end_unpack(chi_unpack *u, chi_process_end *end)
{
	*end = (chi_process_end){ .by_signal = chi_unpack_u32(u) != 0 };
	end->number = (int) chi_unpack_u32(u);
}

int chi_launcher_rank(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID" };
	int64_t rank;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *value = getenv(names[i]);
		if (value != NULL && chi_parse_int64(value, &rank) && rank >= 0 && rank < CHI_MAX_WORKERS)
			return (int) rank;
	}
	return CHOIR_NONE;
}

// Calls are made in the order of the recording, by a switch over all functions that can be recorded,
// which calls.py writes from the headers. So each call has its function's own types.
#include "replay.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
	choir_replica *replica;
	choir_tape *tape;
	choir_tensor **tensor;
	choir_tensor **list; // arrays of tensors of the present call
	int64_t listed;
	const replay_call *call;
} state;

static choir_tensor *tensor_of(const state *s, int i)
{
	const int64_t index = s->call->argument[i].number;
	return index < 0 ? NULL : s->tensor[index];
}

static choir_tensor **read_array(state *s, int i)
{
	const int64_t *from = s->call->argument[i].pointer;
	choir_tensor **list = s->list + s->listed;
	for (int64_t k = 0; k < from[0]; k++)
		list[k] = s->tensor[from[1 + k]];
	s->listed += from[0];
	return list;
}

static choir_status failure(const state *s)
{
	const choir_status status = choir_frame_status(s->replica->frame);
	return status != CHOIR_OK ? status : choir_error_status();
}

static choir_status keep(state *s, choir_tensor *t)
{
	s->tensor[s->call->result] = t;
	return t != NULL ? CHOIR_OK : failure(s);
}

static choir_status keep_tape(state *s, choir_tape *tape)
{
	s->tape = tape;
	return tape != NULL ? CHOIR_OK : failure(s);
}

#define NUMBER(type, i) ((type) s->call->argument[i].number)
#define REAL(i) (s->call->argument[i].real)
#define POINTER(i) (s->call->argument[i].pointer)
#define TENSOR(i) tensor_of(s, i)
#define READ(i) read_array(s, i)
#define WRITTEN(i) (s->tensor + s->call->argument[i].number)
#define SHAPE(i) (*(const choir_shape *) s->call->argument[i].pointer)

static choir_status make_call(state *s)
{
	switch (s->call->function) {
#include "calls.inc"
	default:
		return choir_fail(
				CHOIR_INTERNAL, "replay: no function %lld", (long long) s->call->function);
	}
}

static bool is_shape(const choir_shape *a, const choir_shape *b)
{
	return a->rank == b->rank &&
			(a->rank == 0 || memcmp(a->dim, b->dim, (size_t) a->rank * sizeof a->dim[0]) == 0);
}

// Leaves the frame as it was, so that the replica makes its tensors in the order of a recording one.
static bool fits(const replay_program *p, choir_replica *r)
{
	const size_t mark = choir_frame_mark(r->frame);
	bool found = true;
	for (int64_t i = 0; found && i < p->guards; i++) {
		const replay_guard *g = &p->guard[i];
		const choir_tensor *t = choir_replica_arg(r, g->name);
		found = t != NULL && choir_tensor_dtype(t) == g->dtype &&
				is_shape(choir_tensor_shape(t), &g->shape);
	}
	choir_frame_rewind(r->frame, mark);
	return found;
}

static choir_status make_calls(const replay_program *p, state *s)
{
	for (int64_t i = 0; i < p->calls; i++) {
		s->call = &p->call[i];
		s->listed = 0;
		const choir_status status = make_call(s);
		if (status != CHOIR_OK)
			return status;
	}
	if (p->returned < 0)
		return CHOIR_OK;
	const choir_tensor *t = s->tensor[p->returned];
	return is_shape(choir_tensor_shape(t), &p->shape)
			? choir_tensor_to_host(t, p->to, (size_t) p->bytes)
			: choir_fail(CHOIR_INTERNAL, "replay: the result has another shape");
}

static choir_status replay(replay_program *p, choir_replica *r)
{
	// The second half has the arrays of one call.
	choir_tensor **tensor = calloc((size_t) p->tensors + 1, 2 * sizeof *tensor);
	if (tensor == NULL)
		return choir_fail(CHOIR_NO_MEMORY, "replay: no memory for a step's tensors");
	state s = { .replica = r, .tensor = tensor, .list = tensor + p->tensors + 1 };
	const choir_status status = make_calls(p, &s);
	free(tensor);
	p->replays++;
	return status;
}

choir_status choir_replay(choir_replica *r, void *user)
{
	const replay_step *step = user;
	const int id = choir_replica_id(r);
	for (replay_program *p = step->first; p != NULL; p = p->next) {
		if (p->replica == id && fits(p, r))
			return replay(p, r);
		const choir_status status = choir_frame_status(r->frame);
		if (status != CHOIR_OK)
			return status;
	}
	return step->record(r, step->user);
}

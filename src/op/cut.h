// Calls of kernels in pieces: what lies in rows, or is made element by element, is cut by a rule
// that knows shapes and nothing else, and the pieces are shared by the thread's team
// (base/team.h). A result's bits are those of its pieces, so they are the same for any number of
// threads.
#pragma once

#include "op/op.h"

// Makes call what its first piece is, and gives the number of pieces; 1: it is not cut. in and out
// are room for that.
int64_t chi_cut_first(const char *operation, const choir_kernel_call *call,
		choir_kernel_call *first, choir_buffer in[CHI_MAX_INPUTS], choir_buffer *out);
// Runs all pieces of a call by a kernel's function. The call has scratch memory for each member of
// this thread's team, bytes apart.
typedef choir_status chi_kernel_fn(const choir_kernel_call *call);
choir_status chi_cut_run(const char *operation, chi_kernel_fn *run, const choir_kernel_call *call,
		int64_t pieces, size_t bytes);

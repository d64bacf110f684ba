// Results that stand for a number of examples, in the sums of replicas.
#include "op/tape/tape.h"

#include <inttypes.h>

choir_tensor *choir_with_count(choir_tensor *t, int64_t count)
{
	if (!t)
		return chi_frame_null_argument(NULL, "with_count");
	if (count < 0)
		return chi_frame_fail_null(t->frame, CHOIR_INVALID,
				"with_count: the count is %" PRId64 "; 0 or more is needed", count);
	choir_tensor *out = chi_tensor_alias(t->frame, t);
	if (out)
		out->count = count;
	return chi_op_record(&chi_reshape_op, 1, &t, NULL, out);
}

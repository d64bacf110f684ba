// Comparisons of indices with 0, 1, 2, ...
#include "op/op.h"

#include <inttypes.h>

choir_tensor *choir_one_hot(choir_tensor *indices, int64_t depth, choir_dtype dtype)
{
	if (!indices)
		return chi_frame_null_argument(NULL, "one_hot");
	choir_shape column = indices->shape;
	const bool integer = indices->dtype == CHOIR_U8 || indices->dtype == CHOIR_I32 ||
			indices->dtype == CHOIR_I64;
	if (!integer || depth < 0 || column.rank == CHOIR_MAX_RANK)
		return chi_frame_fail_null(indices->frame, CHOIR_INVALID,
				"one_hot: indices of %s and rank %d, depth %" PRId64 "; integers, a rank below %d "
				"and a depth of 0 or more are needed",
				choir_dtype_name(indices->dtype), column.rank, depth, CHOIR_MAX_RANK);
	column.dim[column.rank++] = 1;
	choir_tensor *rows = choir_cast(indices, CHOIR_I64);
	choir_tensor *hits = choir_equal(
			rows ? choir_reshape(rows, column) : NULL, chi_count_up(indices->frame, depth));
	return hits ? choir_cast(hits, dtype) : NULL;
}

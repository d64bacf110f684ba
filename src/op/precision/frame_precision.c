// A frame keeps its precision as a narrow dtype and a flag for TF32.
#include "op/precision/precision.h"

choir_precision choir_frame_precision(const choir_frame *f)
{
	if (f == NULL || f->narrow == CHOIR_F32)
		return f != NULL && f->tf32 ? CHOIR_PRECISION_TF32 : CHOIR_PRECISION_F32;
	return f->narrow == CHOIR_F16 ? CHOIR_PRECISION_MIXED_F16 : CHOIR_PRECISION_MIXED_BF16;
}

choir_precision choir_frame_set_precision(choir_frame *f, choir_precision p)
{
	const choir_precision before = choir_frame_precision(f);
	if (f == NULL || p < CHOIR_PRECISION_F32 || p > CHOIR_PRECISION_MIXED_F16)
		return before;
	f->narrow = chi_precision_dtype(p);
	f->tf32 = p == CHOIR_PRECISION_TF32;
	return before;
}

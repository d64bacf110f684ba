// The copies of a variable in f16 and bf16, for mixed precision. A copy is made by the first read
// in 16 bits after a write, and all devices that share memory use it.
#pragma once

#include "value/variable.h"

void chi_narrow_copy_open(chi_copy *c);
void chi_narrow_copy_close(chi_copy *c); // also of a copy that was never opened

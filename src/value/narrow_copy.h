// A variable in f16 and bf16. The first 16-bit read after a write makes a copy, which all devices
// that share memory use.
#pragma once

#include "value/variable.h"

void chi_narrow_copy_open(chi_copy *c);
void chi_narrow_copy_close(chi_copy *c); // also of a copy that was never opened

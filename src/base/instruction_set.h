// CHOIR_INSTRUCTION_SET or the workers can lower the detected set before the first kernel is
// chosen.
#pragma once

#include "choir/status.h"

#include <stdbool.h>

// Each includes those before it. AVX2 includes FMA; AVX512 is F, BW, DQ and VL.
typedef enum {
	CHI_INSTRUCTION_SET_BASE,
	CHI_INSTRUCTION_SET_AVX2,
	CHI_INSTRUCTION_SET_AVX512
} chi_instruction_set;
enum { CHI_INSTRUCTION_SETS = CHI_INSTRUCTION_SET_AVX512 + 1 };

const char *chi_instruction_set_name(chi_instruction_set set);
bool chi_instruction_set_find(const char *name, chi_instruction_set *set);

chi_instruction_set chi_instruction_set_of_processor(void);
// The processor has more, such as AVX without AVX2. Foreign libraries may use it, with other bits.
bool chi_instruction_set_has_more(chi_instruction_set set);
// CHOIR_INVALID: CHOIR_INSTRUCTION_SET has an unknown name.
choir_status chi_instruction_set_check(void);
// CHOIR_STATE: kernels of a larger set are in use.
choir_status chi_instruction_set_lower(chi_instruction_set max);

// Fixes the set.
chi_instruction_set chi_instruction_set_use(void);

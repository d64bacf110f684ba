// The instruction sets of this processor, as far as kernels are made for them. The processor is
// asked, not the build; the environment's CHOIR_INSTRUCTION_SET, or workers that agree on one, may
// ask for less. Which set it is stands still from the first kernel that is chosen by it.
#pragma once

#include "choir/status.h"

#include <stdbool.h>

// Each includes those before it. AVX2 with FMA; AVX-512 F, BW, DQ and VL. Other processors than
// x86-64 have the base alone.
typedef enum {
	CHI_INSTRUCTION_SET_BASE,
	CHI_INSTRUCTION_SET_AVX2,
	CHI_INSTRUCTION_SET_AVX512
} chi_instruction_set;
enum { CHI_INSTRUCTION_SETS = CHI_INSTRUCTION_SET_AVX512 + 1 };

// As choir_instruction_set names it; and which one has this name, for this kind of processor.
const char *chi_instruction_set_name(chi_instruction_set set);
bool chi_instruction_set_find(const char *name, chi_instruction_set *set);

// What this processor has, whatever was asked for.
chi_instruction_set chi_instruction_set_of_processor(void);
// Whether it has something above the set that a library may choose kernels by, so that the set
// alone does not tell the bits: processors with AVX, but not AVX2, have the base as their own.
bool chi_instruction_set_has_more(chi_instruction_set set);
// CHOIR_INVALID if CHOIR_INSTRUCTION_SET is no name of a set; then it counts for nothing.
choir_status chi_instruction_set_check(void);
// From now on this set at most. CHOIR_STATE: kernels of a larger one are in use.
choir_status chi_instruction_set_lower(chi_instruction_set max);

// The set to choose kernels for, which does not change any more.
chi_instruction_set chi_instruction_set_use(void);

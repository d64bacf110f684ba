// The instruction sets of this processor, as far as kernels are made for them. The processor is
// asked, not the build; the environment's CHOIR_INSTRUCTION_SET, or workers that agree on one, may
// ask for less. Which set it is stands still from the first kernel that is chosen by it.
#pragma once

#include "choir/status.h"

#include <stdbool.h>

// Each includes those before it. AVX2 with FMA; AVX-512 F, BW, DQ and VL. Other processors than
// x86-64 have the base alone.
typedef enum { CHI_CPU_BASE, CHI_CPU_AVX2, CHI_CPU_AVX512 } chi_cpu_set;
enum { CHI_CPU_SETS = CHI_CPU_AVX512 + 1 };

// As choir_instruction_set names it; and which one has this name, for this kind of processor.
const char *chi_cpu_set_name(chi_cpu_set set);
bool chi_cpu_find_set(const char *name, chi_cpu_set *set);

// What this processor has, whatever was asked for.
chi_cpu_set chi_cpu_own_set(void);
// Whether it has something above the set that a library may choose kernels by, so that the set
// alone does not tell the bits: processors with AVX, but not AVX2, have the base as their own.
bool chi_cpu_has_more(chi_cpu_set set);
// CHOIR_INVALID if CHOIR_INSTRUCTION_SET is no name of a set; then it counts for nothing.
choir_status chi_cpu_check(void);
// From now on this set at most. CHOIR_STATE: kernels of a larger one are in use.
choir_status chi_cpu_lower(chi_cpu_set most);

// The set to choose kernels for, which does not change any more.
chi_cpu_set chi_cpu_use(void);

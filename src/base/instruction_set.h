// Instruction sets for which there are kernels. The set is detected at run time.
// CHOIR_INSTRUCTION_SET or an agreement among workers can lower it before the first kernel is
// chosen.
#pragma once

#include "choir/status.h"

#include <stdbool.h>

// Each set includes those before it. AVX2 includes FMA; AVX512 is F, BW, DQ and VL. Other
// processors than x86-64 have only the base.
typedef enum {
	CHI_INSTRUCTION_SET_BASE,
	CHI_INSTRUCTION_SET_AVX2,
	CHI_INSTRUCTION_SET_AVX512
} chi_instruction_set;
enum { CHI_INSTRUCTION_SETS = CHI_INSTRUCTION_SET_AVX512 + 1 };

// An instruction set's name, and the set of a name on this kind of processor.
const char *chi_instruction_set_name(chi_instruction_set set);
bool chi_instruction_set_find(const char *name, chi_instruction_set *set);

// The processor's own instruction set, whatever the environment says.
chi_instruction_set chi_instruction_set_of_processor(void);
// Whether the processor has instructions beyond set, such as AVX without AVX2. A foreign library
// may use them, so equal sets do not prove equal bits.
bool chi_instruction_set_has_more(chi_instruction_set set);
// CHOIR_INVALID if CHOIR_INSTRUCTION_SET has an unknown name, which is ignored.
choir_status chi_instruction_set_check(void);
// Limits the instruction set to max. CHOIR_STATE: kernels of a larger one are in use.
choir_status chi_instruction_set_lower(chi_instruction_set max);

// Fixes and returns the instruction set to choose kernels by.
chi_instruction_set chi_instruction_set_use(void);

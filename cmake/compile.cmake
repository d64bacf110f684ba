# How everything is compiled. Contraction of a*b+c is off everywhere, since it would make the bits
# depend on the compiler. Optimisation comes from the build type, and only the build types for users
# are hardened: with what costs nothing in a loop, and what leaves the sanitizers' findings alone.
include(CheckSymbolExists)
check_symbol_exists(__GLIBC__ features.h CHOIR_GLIBC)
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8 OR NOT CHOIR_GLIBC)
	math(EXPR choir_bits "8 * ${CMAKE_SIZEOF_VOID_P}")
	set(choir_c_library)
	if(NOT CHOIR_GLIBC)
		set(choir_c_library " without glibc")
	endif()
	message(FATAL_ERROR # indented: on one line
		"  found ${choir_bits}-bit ${CMAKE_SYSTEM_NAME}${choir_c_library}; needed: 64-bit Linux with glibc")
endif()

include(CheckPIESupported)
check_pie_supported()

set(choir_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
	-Wmissing-prototypes -Wvla -Wundef -Wcast-qual -Wformat=2 -Wimplicit-fallthrough
	$<$<BOOL:${CHOIR_WERROR}>:-Werror>)
# Later clangs have a warning in -Wconversion that is C++'s: in C an enumerator is an int, and the
# constants of this project are enumerators.
include(CheckCCompilerFlag)
check_c_compiler_flag(-Wenum-float-conversion CHOIR_Wenum_float_conversion)
if(CHOIR_Wenum_float_conversion)
	list(APPEND choir_warnings -Wno-enum-float-conversion)
endif()

set(choir_sanitize_address -fsanitize=address,undefined -fno-sanitize-recover=all)
set(choir_sanitize_thread -fsanitize=thread)
set(choir_sanitize ${choir_sanitize_${CHOIR_SANITIZE}})
# With clang's address sanitizer what is not optimized compiles in a third of the time, and runs nearly as
# fast but for the rooms that compute.
set(choir_sanitize_level -O1)
if(CHOIR_SANITIZE STREQUAL "address" AND CMAKE_C_COMPILER_ID STREQUAL "Clang")
	set(choir_sanitize_level -O0)
endif()
# Several hundred programs are linked with a sanitizer; LLVM's linker takes half the time. A compiler for
# another machine may not find it.
include(CheckLinkerFlag)
check_linker_flag(C -fuse-ld=lld CHOIR_LLD)
if(CHOIR_SANITIZE AND CHOIR_LLD)
	set(choir_sanitize_linker -fuse-ld=lld)
endif()

set(choir_x86 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
	set(choir_x86 ON)
endif()
set(choir_arm OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
	set(choir_arm ON)
endif()

# The strongest that the C library has for this compiler; it warns of one that it does not have.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }" CHOIR_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
set(choir_hardening -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$<IF:$<BOOL:${CHOIR_FORTIFY_3}>,3,2>)

# What this compiler knows for this processor.
foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection -fno-delete-null-pointer-checks
		-fcf-protection=full)
	string(MAKE_C_IDENTIFIER CHOIR${flag} known)
	check_c_compiler_flag(${flag} ${known})
	if(${known})
		list(APPEND choir_hardening ${flag})
	endif()
endforeach()

function(choir_compile_options target)
	target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
	target_compile_options(${target} PRIVATE ${choir_warnings} -ffp-contract=off
		-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
	if(CHOIR_SANITIZE)
		# GCC's manual: with sanitizers some warnings are false. 14 takes any number for possible.
		target_compile_options(${target} PRIVATE ${choir_sanitize_level} -g1 -fno-omit-frame-pointer
			${choir_sanitize} $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>)
		if(CHOIR_SANITIZE STREQUAL "address" AND CMAKE_C_COMPILER_ID STREQUAL "Clang")
			target_compile_definitions(${target} PRIVATE __SANITIZE_ADDRESS__=1) # as GCC does
		endif()
	else()
		target_compile_options(${target} PRIVATE
			"$<$<NOT:$<CONFIG:Debug,>>:${choir_hardening}>")
	endif()
	set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON
		C_EXTENSIONS OFF)
	get_target_property(kind ${target} TYPE)
	if(kind STREQUAL EXECUTABLE)
		set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
	endif()
endfunction()

function(choir_link_options target)
	target_link_options(${target} PRIVATE ${choir_sanitize} ${choir_sanitize_linker})
	get_target_property(kind ${target} TYPE)
	if(NOT kind STREQUAL STATIC_LIBRARY)
		target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
	endif()
	if(kind STREQUAL SHARED_LIBRARY AND NOT CHOIR_SANITIZE)
		target_link_options(${target} PRIVATE -Wl,--no-undefined)
	endif()
endfunction()

# The rooms that compute are optimized with every sanitizer.
function(choir_optimize_loops list)
	if(CHOIR_SANITIZE)
		set(loops ${${list}})
		list(FILTER loops INCLUDE REGEX "/src/(base|collective|data|op|tensor)/")
		set_property(SOURCE ${loops} APPEND PROPERTY COMPILE_OPTIONS -O1)
	endif()
endfunction()

# Kernels that are compiled for an instruction set (NAME.avx2.c, NAME.avx512.c) get its flags; they
# are called only where the processor has it. NAME.neon.c needs no flags: every aarch64 processor has
# NEON. Other processors leave these files out.
function(choir_instruction_sets list)
	# Nobody asks these loops for errno or the processor's exception flags. Without errno sqrt
	# vectorises; without the flags what is not chosen may be computed, instead of masked.
	set(loops ${${list}})
	list(FILTER loops INCLUDE REGEX "/loops\\.([a-z0-9]+\\.)?c$")
	set_property(SOURCE ${loops} APPEND PROPERTY COMPILE_OPTIONS -fno-math-errno
		-fno-trapping-math)
	set(avx2 ${${list}})
	set(avx512 ${${list}})
	list(FILTER avx2 INCLUDE REGEX "\\.avx2\\.c$")
	list(FILTER avx512 INCLUDE REGEX "\\.avx512\\.c$")
	set(neon ${${list}})
	list(FILTER neon INCLUDE REGEX "\\.neon\\.c$")
	if(choir_x86)
		set_property(SOURCE ${avx2} APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma)
		set_property(SOURCE ${avx512} APPEND PROPERTY COMPILE_OPTIONS -mavx512f -mavx512bw
			-mavx512vl -mavx512dq -mavx2 -mfma -mprefer-vector-width=512)
		# GCC's address sanitizer keeps variables on a stack of its own that is not aligned for
		# vectors of 64 bytes (12.2), to find uses after a return.
		if(CHOIR_SANITIZE STREQUAL "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
			set_property(SOURCE ${avx512} APPEND PROPERTY COMPILE_OPTIONS
				--param=asan-use-after-return=0)
		endif()
		list(APPEND choir_definitions CHI_HAS_X86_KERNELS=1)
	else()
		list(REMOVE_ITEM ${list} ${avx2} ${avx512})
	endif()
	if(choir_arm)
		list(APPEND choir_definitions CHI_HAS_NEON_KERNELS=1)
	else()
		list(REMOVE_ITEM ${list} ${neon})
	endif()
	set(choir_definitions ${choir_definitions} PARENT_SCOPE)
	set(${list} ${${list}} PARENT_SCOPE)
endfunction()

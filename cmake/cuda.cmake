# libchoir-cuda: the library for NVIDIA's GPUs, beside libchoir and not linked by it
# (docs/decisions/0081). nvcc is called directly, so neither a C++ project nor CMake's support of a
# new toolkit is needed. CUDACXX names another nvcc. None is used unasked inside another project, for
# another kind of machine, or with sanitizers, which device code does not have.
set(CHOIR_CUDA AUTO CACHE STRING "Build libchoir-cuda: AUTO (if nvcc is found), ON or OFF")
set_property(CACHE CHOIR_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT CHOIR_CUDA MATCHES "^(AUTO|ON|OFF)$")
	message(FATAL_ERROR "CHOIR_CUDA: found '${CHOIR_CUDA}', needed AUTO, ON or OFF")
endif()
file(GLOB choir_cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cuda/*.cu)
file(GLOB choir_cuda_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cuda/*.h)

# The GPUs for which there is machine code; PTX of the last one serves later GPUs.
set(CHOIR_CUDA_ARCHITECTURES 80 90 100 CACHE STRING "Compute capabilities to build libchoir-cuda for")
mark_as_advanced(CHOIR_CUDA_ARCHITECTURES)

# Why it is not built; empty: it is.
function(choir_cuda_reason reason)
	set(${reason} "" PARENT_SCOPE)
	if(CHOIR_CUDA STREQUAL "OFF")
		set(${reason} "off" PARENT_SCOPE)
		return()
	elseif(CHOIR_CUDA STREQUAL "AUTO" AND (CMAKE_CROSSCOMPILING OR NOT PROJECT_IS_TOP_LEVEL OR CHOIR_SANITIZE))
		set(${reason} "not asked for" PARENT_SCOPE)
		return()
	endif()
	find_program(CHOIR_NVCC nvcc HINTS $ENV{CUDACXX} PATHS /usr/local/cuda/bin)
	mark_as_advanced(CHOIR_NVCC)
	if(NOT CHOIR_NVCC)
		set(${reason} "nvcc was not found (Debian: nvidia-cuda-toolkit)" PARENT_SCOPE)
		return()
	endif()
	execute_process(COMMAND ${CHOIR_NVCC} --version OUTPUT_VARIABLE version ERROR_QUIET)
	string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" found "${version}")
	if(NOT found OR CMAKE_MATCH_1 VERSION_LESS 12.8)
		set(${reason} "nvcc is ${CMAKE_MATCH_1}, 12.8 is needed" PARENT_SCOPE)
		return()
	endif()
	get_filename_component(folder ${CHOIR_NVCC} REALPATH)
	get_filename_component(folder ${folder} DIRECTORY)
	find_path(CHOIR_CUBLASLT_INCLUDE cublasLt.h HINTS ${folder}/../include
		${folder}/../targets/x86_64-linux/include)
	mark_as_advanced(CHOIR_CUBLASLT_INCLUDE)
	if(NOT CHOIR_CUBLASLT_INCLUDE)
		set(${reason} "cublasLt.h was not found" PARENT_SCOPE)
	endif()
endfunction()

choir_cuda_reason(choir_no_cuda)
if(NOT choir_no_cuda STREQUAL "" AND CHOIR_CUDA STREQUAL "ON")
	message(FATAL_ERROR "CUDA: ${choir_no_cuda}")
elseif(NOT choir_no_cuda STREQUAL "") # the text "off" alone is false
	message(STATUS "CUDA: ${choir_no_cuda}, done without")
	return()
endif()
message(STATUS "CUDA: ${CHOIR_NVCC}")

# Contraction to fused multiply-adds is off as everywhere, so that formulas give the CPU's bits.
set(choir_nvcc_flags -std=c++17 -O3 -fmad=false --generate-dependencies-with-compile
	-Xfatbin=-compress-all -Xcompiler -fPIC,-Wall,-Wextra,-fvisibility=hidden
	-I${PROJECT_SOURCE_DIR}/include)
if(CHOIR_WERROR)
	list(APPEND choir_nvcc_flags -Werror all-warnings -Xcompiler -Werror)
endif()
foreach(architecture IN LISTS CHOIR_CUDA_ARCHITECTURES)
	list(APPEND choir_nvcc_flags -gencode arch=compute_${architecture},code=sm_${architecture})
endforeach()
list(GET CHOIR_CUDA_ARCHITECTURES -1 architecture)
list(APPEND choir_nvcc_flags -gencode arch=compute_${architecture},code=compute_${architecture})

set(choir_cuda_objects)
foreach(source IN LISTS choir_cuda_sources)
	get_filename_component(name ${source} NAME_WE)
	set(object ${PROJECT_BINARY_DIR}/cuda/${name}.o)
	add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d VERBATIM
		COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/cuda
		COMMAND ${CHOIR_CCACHE} ${CHOIR_NVCC} ${choir_nvcc_flags} -MF ${object}.d -c ${source} -o ${object}
		COMMENT "Building CUDA object cuda/${name}.o")
	list(APPEND choir_cuda_objects ${object})
endforeach()

# The runtime of CUDA is linked statically. The libraries are opened at run time.
set(choir_cuda_map ${PROJECT_SOURCE_DIR}/cuda/cuda.map)
set(choir_cuda_library ${PROJECT_BINARY_DIR}/libchoir-cuda.so)
add_custom_command(OUTPUT ${choir_cuda_library} DEPENDS ${choir_cuda_objects} ${choir_cuda_map} VERBATIM
	COMMAND ${CHOIR_NVCC} -shared -cudart static -gencode arch=compute_${architecture},code=sm_${architecture}
		-Xlinker -z,relro,-z,now,-z,noexecstack,--version-script=${choir_cuda_map} -o ${choir_cuda_library} ${choir_cuda_objects} -ldl
	COMMENT "Linking CUDA library libchoir-cuda.so")
add_custom_target(choir_cuda ALL DEPENDS ${choir_cuda_library})

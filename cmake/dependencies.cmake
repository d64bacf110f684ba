# The libraries Choir can use. Each that is used adds CHI_HAS_NAME=1 to choir_definitions, its folder
# to choir_include_directories and its names to choir_libraries; one that is not leaves no trace.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
set(choir_libraries Threads::Threads m)
set(choir_private_libs -pthread -lm) # the same for pkg-config

# A library in a folder that the linker searches anyway is linked by its name, so that what is
# installed holds no path of this machine.
function(choir_link_library file)
	get_filename_component(folder ${file} DIRECTORY)
	if(folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
		get_filename_component(name ${file} NAME_WE)
		string(REGEX REPLACE "^lib" "" file ${name})
		set(choir_private_libs ${choir_private_libs} -l${file} PARENT_SCOPE)
	else()
		set(choir_private_libs ${choir_private_libs} ${file} PARENT_SCOPE)
	endif()
	set(choir_libraries ${choir_libraries} ${file} PARENT_SCOPE)
endfunction()

# choir_dependency(ONEDNN dnnl.h dnnl libdnnl-dev): the option's name, a header, a library, Debian's package.
macro(choir_dependency option header library package)
	if(CHOIR_${option} STREQUAL "OFF")
		message(STATUS "${option}: off")
	else()
		find_path(CHOIR_${option}_INCLUDE ${header})
		find_library(CHOIR_${option}_LIBRARY ${library})
		mark_as_advanced(CHOIR_${option}_INCLUDE CHOIR_${option}_LIBRARY)
		if(CHOIR_${option}_INCLUDE AND CHOIR_${option}_LIBRARY)
			message(STATUS "${option}: ${CHOIR_${option}_LIBRARY}")
			list(APPEND choir_definitions CHI_HAS_${option}=1)
			list(APPEND choir_include_directories ${CHOIR_${option}_INCLUDE})
			choir_link_library(${CHOIR_${option}_LIBRARY})
			set(choir_has_${option} ON)
		elseif(CHOIR_${option} STREQUAL "ON")
			message(FATAL_ERROR "${option}: ${header} and lib${library} were not found (Debian: ${package})")
		else()
			message(STATUS "${option}: not found, done without (Debian: ${package})")
		endif()
	endif()
endmacro()

choir_dependency(ONEDNN oneapi/dnnl/dnnl.h dnnl libdnnl-dev)
choir_dependency(ZLIB zlib.h z zlib1g-dev)

# oneDNN's threads are OpenMP's (GNU's, in Debian): Choir tells each of its own to use one.
if(choir_has_ONEDNN)
	include(CheckCSourceCompiles)
	set(CMAKE_REQUIRED_LIBRARIES gomp)
	check_c_source_compiles("void omp_set_num_threads(int); int main(void) { omp_set_num_threads(1); return 0; }"
		CHOIR_GOMP)
	unset(CMAKE_REQUIRED_LIBRARIES)
	if(CHOIR_GOMP)
		list(APPEND choir_definitions CHI_HAS_GOMP=1)
		list(APPEND choir_libraries gomp)
		list(APPEND choir_private_libs -lgomp)
	endif()
endif()
list(REMOVE_DUPLICATES choir_include_directories)

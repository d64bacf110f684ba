# libchoir-mpi: a library for each MPI that is here, from one source, beside libchoir and not linked by
# it (docs/decisions/0025). The compilers that MPIs bring say what to compile and link with; which
# MPI it is, its header says. CHOIR_MPI_COMPILERS names other ones. None is taken unasked inside
# another project, nor for another kind of machine, which those of this one do not compile for.
set(choir_mpi_compilers mpicc.openmpi mpicc.mpich mpicc)
if(CMAKE_CROSSCOMPILING OR NOT PROJECT_IS_TOP_LEVEL)
	set(choir_mpi_compilers)
endif()
set(CHOIR_MPI_COMPILERS "${choir_mpi_compilers}" CACHE STRING
	"Compilers of the MPIs to build a libchoir-mpi for; empty: none")

# The words of what `mpicc -show` prints that begin with -I, and with -L or -l.
function(choir_mpi_flags compiler includes links)
	execute_process(COMMAND ${compiler} -show OUTPUT_VARIABLE line RESULT_VARIABLE failed
		ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
	if(failed)
		set(line)
	endif()
	separate_arguments(words UNIX_COMMAND "${line}")
	set(folders ${words})
	list(FILTER folders INCLUDE REGEX "^-I")
	list(TRANSFORM folders REPLACE "^-I" "")
	list(FILTER words INCLUDE REGEX "^-[Ll]|^-Wl,-rpath")
	set(${includes} ${folders} PARENT_SCOPE)
	set(${links} ${words} PARENT_SCOPE)
endfunction()

# openmpi, mpich, or nothing: what the macros of a header tell.
function(choir_mpi_kind includes kind)
	set(${kind} "" PARENT_SCOPE)
	foreach(folder IN LISTS includes)
		if(EXISTS ${folder}/mpi.h)
			file(STRINGS ${folder}/mpi.h marks REGEX "define (OPEN_MPI|MPICH_VERSION) ")
			if(marks MATCHES "OPEN_MPI")
				set(${kind} openmpi PARENT_SCOPE)
			elseif(marks MATCHES "MPICH_VERSION")
				set(${kind} mpich PARENT_SCOPE)
			endif()
		endif()
	endforeach()
endfunction()

# How a library of mpi.c is compiled and linked.
function(choir_mpi_library target kind)
	choir_compile_options(${target})
	# MPICH declares statuses that are to be ignored as arrays that are not empty.
	target_compile_options(${target} PRIVATE $<$<C_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
	choir_link_options(${target})
	target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
	target_include_directories(${target} SYSTEM PRIVATE ${choir_mpi_includes_${kind}})
	target_link_libraries(${target} PRIVATE ${choir_mpi_links_${kind}})
	set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden
		POSITION_INDEPENDENT_CODE ON)
endfunction()

set(choir_mpis)
foreach(name IN LISTS CHOIR_MPI_COMPILERS)
	find_program(choir_mpicc ${name} NO_CACHE)
	if(choir_mpicc)
		choir_mpi_flags(${choir_mpicc} includes links)
		choir_mpi_kind("${includes}" kind)
		if(kind AND NOT kind IN_LIST choir_mpis)
			message(STATUS "MPI: ${kind} (${choir_mpicc})")
			list(APPEND choir_mpis ${kind})
			set(choir_mpi_includes_${kind} ${includes})
			set(choir_mpi_links_${kind} ${links})
			add_library(choir_mpi_${kind} MODULE ${PROJECT_SOURCE_DIR}/mpi/mpi.c)
			choir_mpi_library(choir_mpi_${kind} ${kind})
			set_target_properties(choir_mpi_${kind} PROPERTIES OUTPUT_NAME choir-mpi-${kind})
		endif()
	endif()
	unset(choir_mpicc)
endforeach()
if(NOT choir_mpis AND CHOIR_MPI_COMPILERS)
	message(STATUS "MPI: not found, done without (Debian: libopenmpi-dev or libmpich-dev)")
endif()

# The command, and a program for each example. Both see the public headers only. Examples are
# compiled as a user would: plain C11, with no feature macro.
file(GLOB_RECURSE choir_command_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
if(choir_command_sources)
	add_executable(choir_command ${choir_command_sources})
	choir_compile_options(choir_command)
	choir_link_options(choir_command)
	target_include_directories(choir_command PRIVATE ${PROJECT_SOURCE_DIR}/cli)
	# Where --data mnist is, as long as nothing is installed: beside the command, so that no path of
	# this machine is in it.
	file(CREATE_LINK ${PROJECT_SOURCE_DIR}/data ${PROJECT_BINARY_DIR}/data SYMBOLIC)
	target_link_libraries(choir_command PRIVATE choir_static m)
	set_target_properties(choir_command PROPERTIES OUTPUT_NAME choir)
endif()

function(choir_example name source)
	add_executable(example_${name} ${source})
	target_link_libraries(example_${name} PRIVATE choir_static m)
	target_compile_options(example_${name} PRIVATE -Wall -Wextra -Wpedantic
		$<$<BOOL:${CHOIR_WERROR}>:-Werror> ${choir_sanitize})
	choir_link_options(example_${name})
	set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name} C_STANDARD 11
		C_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON
		RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
endfunction()

file(GLOB choir_examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
set(choir_mpi_example ${PROJECT_SOURCE_DIR}/examples/in_mpi_program.c) # it needs an mpicc of its own
list(REMOVE_ITEM choir_examples ${choir_mpi_example})
foreach(source IN LISTS choir_examples)
	get_filename_component(name ${source} NAME_WE)
	choir_example(${name} ${source})
endforeach()
foreach(kind IN LISTS choir_mpis)
	choir_example(in_mpi_program_${kind} ${choir_mpi_example})
	target_include_directories(example_in_mpi_program_${kind} SYSTEM PRIVATE
		${choir_mpi_includes_${kind}})
	target_link_libraries(example_in_mpi_program_${kind} PRIVATE ${choir_mpi_links_${kind}})
endforeach()

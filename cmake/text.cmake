# The C that exported models are made of (src/train/export_c), as arrays of lines in a header: its
# files stay C that can be read, and that compilers and editors know.
file(GLOB choir_texts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/train/export_c/c/*.in*)
foreach(name IN ITEMS bits exp_f32 tanh_f32 erf_f32)
	list(APPEND choir_texts ${PROJECT_SOURCE_DIR}/src/op/plain/${name}.inc)
endforeach()

set(choir_text "// Made by cmake/text.cmake.\n#pragma once\n\n")
foreach(file IN LISTS choir_texts)
	get_filename_component(name ${file} NAME_WE)
	file(READ ${file} lines)
	string(REPLACE "\\" "\\\\" lines "${lines}")
	string(REPLACE "\"" "\\\"" lines "${lines}")
	string(REGEX REPLACE "([^\n]*)\n" "\t\"\\1\\\\n\",\n" lines "${lines}")
	string(APPEND choir_text "static const char *const text_${name}[] = {\n${lines}\tNULL\n};\n")
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/exported_text.h CONTENT "@choir_text@" @ONLY)
# The folder is in no other file's flags: a compiler cache then has the objects of another build.
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/train/export_c/c_functions.c APPEND PROPERTY
	INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR}/generated)

#!/usr/bin/env bash
# Choir inside another project, by add_subdirectory: only the library is built, and what the project
# around it has set stays as it was.
. "$(dirname "$0")/common.sh"

mkdir "$folder/user"
cp "$here/program.c" "$folder/user/"
cat >"$folder/user/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.21)
project(user C)
add_subdirectory($project choir)
add_executable(user program.c)
target_link_libraries(user choir::choir)
foreach(variable IN ITEMS CMAKE_C_STANDARD CMAKE_POSITION_INDEPENDENT_CODE CMAKE_EXPORT_COMPILE_COMMANDS)
	if(DEFINED \${variable} AND NOT "\${\${variable}}" STREQUAL "")
		message(FATAL_ERROR "\${variable} was set to \${\${variable}}")
	endif()
endforeach()
TEXT
for static in ON OFF; do
	kind=$([ $static = ON ] && echo OFF || echo ON)
	quietly "$cmake" -S "$folder/user" -B "$folder/build" "${fast[@]}" -DCHOIR_WERROR=ON -DBUILD_SHARED_LIBS=$kind
	quietly "$cmake" --build "$folder/build" --parallel 2
	"$folder/build/user"
	needed=$(readelf -d "$folder/build/user" | grep -c 'NEEDED.*libchoir' || true)
	[ "$needed" = "$([ $static = ON ] && echo 0 || echo 1)" ] || fail "BUILD_SHARED_LIBS=$kind: the wrong library was linked"
done
[ ! -e "$folder/build/choir/choir" ] || fail 'the command was built too'
[ ! -d "$folder/build/choir/tests" ] || fail 'the tests were built too'
[ -z "$(find "$folder/build" -name 'libchoir-mpi*')" ] || fail 'a library for an MPI was built too'

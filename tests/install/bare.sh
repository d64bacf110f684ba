#!/usr/bin/env bash
# On a machine that has a C compiler and nothing else: CMake finds neither headers nor tools of what
# is optional. Configured as a user would, with tests and without, and built with Make.
. "$(dirname "$0")/common.sh"

bare=(-G "Unix Makefiles" "${fast[@]}" -DCHOIR_WERROR=ON -DCHOIR_MPI_COMPILERS=
	"-DCMAKE_IGNORE_PATH=/usr/include;/usr/include/hdf5/serial;/usr/local/include")
quietly "$cmake" -S "$project" -B "$folder/tests" "${bare[@]}" -DCHOIR_TESTS=ON
for name in ONEDNN ZLIB HDF5 cmocka; do
	grep -q "$name: .*not found" "$folder/log" || fail "nothing says that $name was not found"
done

quietly "$cmake" -S "$project" -B "$folder/build" "${bare[@]}"
quietly "$cmake" --build "$folder/build" --parallel 2
[ ! -d "$folder/build/tests" ] || fail 'the tests were built, which nobody asked for'
needed=$(readelf -d "$folder/build/libchoir.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
	grep -v -E '^(libc|libm|libpthread|ld-linux.*)\.so' || true)
[ -z "$needed" ] || fail "the library needs $needed"
for source in "$project"/examples/*.c; do
	grep -q '<mpi.h>' "$source" && continue
	[ -x "$folder/build/examples/$(basename "$source" .c)" ] || fail "$source was not built"
done
[ -x "$folder/build/choir" ] || fail 'the command was not built'

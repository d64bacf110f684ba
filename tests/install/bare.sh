#!/usr/bin/env bash
# With a C compiler and nothing else: plain CMake, every optional library off, no cmocka, Make instead
# of Ninja. The library, the command and the examples are built, and need nothing but the C library.
. "$(dirname "$0")/common.sh"

quietly "$cmake" -S "$project" -B "$folder/build" -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Debug \
	-DCHOIR_WERROR=ON -DCHOIR_ONEDNN=OFF -DCHOIR_ZLIB=OFF \
	-DCHOIR_CMOCKA_LIBRARY= -DCHOIR_MPI_COMPILERS=
grep -q 'cmocka: not found' "$folder/log" || fail 'nothing says that the unit tests are left out'
quietly "$cmake" --build "$folder/build" --parallel 2
needed=$(readelf -d "$folder/build/libchoir.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
	grep -v -E '^(libc|libm|libpthread|ld-linux.*)\.so' || true)
[ -z "$needed" ] || fail "the library needs $needed"
for source in "$project"/examples/*.c; do
	grep -q '<mpi.h>' "$source" && continue
	[ -x "$folder/build/examples/$(basename "$source" .c)" ] || fail "$source was not built"
done
if [ -d "$project/cli" ]; then
	[ -x "$folder/build/choir" ] || fail 'the command was not built'
fi

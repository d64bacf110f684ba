#!/usr/bin/env bash
# Installs into a prefix, moves the prefix, and uses it from there: pkg-config with gcc and clang,
# shared and static, and CMake's find_package.
. "$(dirname "$0")/common.sh"

quietly "$cmake" --install "$build" --prefix "$folder/first"
prefix=$folder/moved
mv "$folder/first" "$prefix"
lib=$(dirname "$(find "$prefix" -name libchoir.so)")
export PKG_CONFIG_PATH=$lib/pkgconfig

expected=(include/choir/choir.h include/choir/extend/{device_table,suite}.h "${lib#"$prefix"/}/libchoir.so.0.1"
	"${lib#"$prefix"/}"/libchoir{,-suites}.a bin/choir share/man/man1/choir.1 share/choir/examples/Makefile
	share/choir/fortran/choir.f90
	share/doc/choir/{LICENSE,tutorial.md,howto.md,tensorflow.md,pytorch.md,decisions/README.md})
for file in "${expected[@]}"; do
	[ -e "$prefix/$file" ] || fail "$file was not installed"
done
if grep -r -l -F -e "$project" -e "$build" -e "$folder" "$prefix"; then
	fail 'these name a folder of the machine they were built on'
fi
readelf -d "$lib/libchoir.so" | grep -q 'SONAME.*\[libchoir.so.0.1\]' || fail 'the soname is not libchoir.so.0.1'
(cd "$folder" && quietly "$prefix/bin/choir" train --model mlp --data mnist --epochs 1 --train-examples 64)

# The pages that are installed link to what is installed.
while IFS=: read -r page link; do
	target=${link#](}
	[ -e "$(dirname "$page")/${target%%[#)]*}" ] || fail "$page: $target leads nowhere"
done < <(grep -r -o -E '\]\([A-Za-z0-9_./-]+[#)]' "$prefix/share/doc/choir" --include='*.md')

flags=$(pkg-config --cflags --libs choir)
only_static=$(pkg-config --static --libs choir | sed 's/-lchoir\b/-l:libchoir.a/')
for compiler in $(compilers); do
	# shellcheck disable=SC2086  # flags are words
	quietly $compiler "$here/program.c" $flags -o "$folder/shared"
	readelf -d "$folder/shared" | grep -q 'NEEDED.*libchoir.so.0.1' || fail "$compiler: libchoir.so.0.1 is not needed"
	LD_LIBRARY_PATH=$lib "$folder/shared"
	# shellcheck disable=SC2086
	quietly $compiler "$here/program.c" $(pkg-config --cflags choir) $only_static -o "$folder/static"
	if readelf -d "$folder/static" | grep -q 'NEEDED.*libchoir'; then
		fail "$compiler: the static program needs libchoir.so"
	fi
	"$folder/static"
done
# The examples, where they are installed and in a folder of the user's.
LD_LIBRARY_PATH=$lib quietly make -C "$prefix/share/choir/examples" BUILD="$folder/examples" -j 2 try
if command -v gfortran >/dev/null; then
	LD_LIBRARY_PATH=$lib quietly make -C "$prefix/share/choir/examples" BUILD="$folder/examples" fortran
	LD_LIBRARY_PATH=$lib quietly "$folder/examples/heat_surrogate"
fi
# A stranger's tables: compiled with nothing but what is installed, under the installed suites.
tests=$project/tests
for compiler in $(compilers); do
	c11="$compiler -std=c11 -D_GNU_SOURCE -I$tests"
	for source in install/tables device/toy cluster/mailbox collective/toy collective/oracle; do
		# shellcheck disable=SC2086,SC2046
		quietly $c11 $(pkg-config --cflags choir-suites) -c "$tests/$source.c" -o "$folder/${source//\//_}.o"
	done
	# shellcheck disable=SC2046
	quietly $compiler "$folder"/{install_tables,device_toy,cluster_mailbox,collective_toy,collective_oracle}.o \
		$(pkg-config --libs choir-suites) -o "$folder/tables"
	LD_LIBRARY_PATH=$lib quietly "$folder/tables"
done
quietly "$prefix/bin/choir" --help

# The library of the site's own MPI, compiled as docs/cluster.md says, where the build's is not there.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=^ofi
for kind in openmpi mpich; do
	[ -x "$prefix/bin/choir" ] && command -v "mpicc.$kind" >/dev/null && command -v "mpirun.$kind" >/dev/null ||
		continue
	# shellcheck disable=SC2046  # flags are words
	quietly "mpicc.$kind" -shared -fPIC -o "$folder/libchoir-mpi-site.so" "$prefix/share/choir/mpi.c" \
		$(pkg-config --cflags choir)
	rm -f "$lib/libchoir-mpi-$kind.so"
	CHOIR_MPI=$folder/libchoir-mpi-site.so "mpirun.$kind" -n 2 "$prefix/bin/choir" doctor >"$folder/said" ||
		fail "$kind: two workers did not find each other"
	grep -q '^worker 1 ' "$folder/said" || fail "$kind: $(cat "$folder/said")"
done

mkdir "$folder/user"
cp "$here"/{program,tables}.c "$folder/user/"
cat >"$folder/user/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(choir 0.1 REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared choir::choir)
add_executable(static program.c)
target_link_libraries(static choir::static)
foreach(kind IN ITEMS choir static)
	add_executable(tables_${kind} tables.c $ENV{tests}/device/toy.c $ENV{tests}/cluster/mailbox.c
		$ENV{tests}/collective/toy.c $ENV{tests}/collective/oracle.c)
	target_include_directories(tables_${kind} PRIVATE $ENV{tests})
	target_link_libraries(tables_${kind} choir::suites choir::${kind})
endforeach()
TEXT
tests=$tests quietly "$cmake" -S "$folder/user" -B "$folder/user/build" "-DCMAKE_PREFIX_PATH=$prefix"
quietly "$cmake" --build "$folder/user/build"
"$folder/user/build/shared"
"$folder/user/build/static"
for kind in choir static; do
	quietly "$folder/user/build/tables_$kind"
done
if command -v man >/dev/null && [ -e "$prefix/share/man/man1/choir.1" ]; then
	[ -z "$(MANWIDTH=80 man --warnings -l "$prefix/share/man/man1/choir.1" 2>&1 >/dev/null)" ] ||
		fail 'man warns about choir.1'
fi

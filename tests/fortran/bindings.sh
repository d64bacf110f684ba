#!/usr/bin/env bash
# bindings.sh PROJECT LIBRARY_FOLDER FOLDER: the committed module is that of the headers; it compiles, the
# programs of this folder and the example run, and arrays of a wrong kind do not compile. Under each
# MPI with a Fortran compiler, two workers find each other by Fortran's communicator.
set -euo pipefail
project=$1 library=$2 folder=$3
fail() {
	printf 'failed: %s\n' "$*"
	exit 1
}

for python in python3 /usr/bin/python3 none; do
	"$python" -c 'import cffi, pycparser' 2>/dev/null && break
done
rm -rf "$folder"
mkdir -p "$folder"
if [ "$python" != none ]; then
	"$python" -B "$project/bindings/fortran/generate.py" "$project/include" "$folder/choir.f90"
	cmp "$folder/choir.f90" "$project/bindings/fortran/choir.f90" ||
		fail 'bindings/fortran/choir.f90 is not that of the headers; make fortran writes it'
	mkdir "$folder/other"
	cp -r "$project/include/choir" "$folder/other/"
	sed -i 's/^bool choir_optimizer_has_swapped/int choir_optimizer_has_swapped/' "$folder/other/choir/optimizer.h"
	"$python" -B "$project/bindings/fortran/generate.py" "$folder/other" "$folder/changed.f90"
	if cmp -s "$folder/changed.f90" "$folder/choir.f90"; then fail 'a changed header gives the same module'; fi
fi
if ! command -v gfortran >/dev/null; then
	echo 'skipped: no gfortran'
	exit 77
fi

cd "$folder"
flags=(-std=f2018 -Wall -Wextra -Werror -Wno-unused-dummy-argument -Wno-compare-reals -O1 "-L$library" "-Wl,-rpath,$library")
module=$project/bindings/fortran/choir.f90
gfortran "${flags[@]}" -c "$module" -o choir.o
gfortran "${flags[@]}" choir.o "$project/tests/fortran/arrays.f90" -lchoir -o arrays
./arrays
gfortran "${flags[@]}" choir.o "$project/examples/fortran/heat_surrogate.f90" -lchoir -o heat
./heat | tee heat.txt
awk 'END { exit !($NF < 0.1) }' heat.txt || fail 'the surrogate of the heat equation'
compiles() {
	printf '%s\n' 'program one' 'use choir' "$1, target :: a(2) = 1" 'type(c_ptr) :: t, f = c_null_ptr' \
		't = choir_array(f, a)' 'if (c_associated(t)) stop 1' 'end program' >one.f90
	gfortran "${flags[@]}" -fsyntax-only one.f90 2>wrong
}
compiles 'real(c_double)' || fail "an array of f64: $(cat wrong)"
for kind in 'integer(c_int8_t)' 'complex(c_float)'; do
	if compiles "$kind"; then fail "an array of $kind compiles"; fi
done

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=^ofi
export LD_LIBRARY_PATH=$library
for mpi in openmpi mpich; do
	if [ ! -e "$library/libchoir-mpi-$mpi.so" ] || ! command -v "mpif90.$mpi" >/dev/null; then
		continue
	fi
	own=("$folder/choir.o" "-I$folder")
	case $("mpif90.$mpi" -show) in
	gfortran\ *) ;; # it reads the module that is there
	*) mkdir -p "$mpi" && own=(-J "$mpi" "$module") ;;
	esac
	"mpif90.$mpi" -w "${own[@]}" "$project/tests/fortran/workers.f90" "-L$library" "-Wl,-rpath,$library" -lchoir \
		-o "workers_$mpi"
	timeout 60 "mpirun.$mpi" -n 2 "./workers_$mpi" >said || fail "$mpi: $(cat said)"
	[ "$(grep -c ' of 2: sum 3' said)" = 2 ] || fail "$mpi: $(cat said)"
done

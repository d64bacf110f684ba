#!/usr/bin/env bash
# What CMake makes of machines and wishes that are not the usual ones. Little is compiled here.
. "$(dirname "$0")/common.sh"

configure() { "$cmake" -S "$project" -B "$folder/$1" "${fast[@]}" "${@:2}"; }

# Tests without programs.
quietly configure no_programs -DCHOIR_PROGRAMS=OFF -DCHOIR_TESTS=ON
quietly configure nothing -DCHOIR_PROGRAMS=OFF

# Without any of the optional libraries.
without=(-DCHOIR_{ONEDNN,ZLIB,PNG,JPEG,HDF5,OPENSSL,CUDA}=OFF)
quietly configure without "${without[@]}"
for name in ONEDNN ZLIB PNG JPEG HDF5 OPENSSL CUDA; do
	grep -q "^-- $name: off" "$folder/log" || fail "$name is not off: $(cat "$folder/log")"
done

# For another kind of machine: the MPIs of this one are not for it.
quietly configure cross -DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=$(uname -m)"
if grep '^-- MPI: ' "$folder/log"; then
	fail 'the MPI of this machine was taken in a cross build'
fi

# Folders that are not below the prefix, as those of Nix and Guix.
quietly configure absolute "-DCMAKE_INSTALL_PREFIX=$folder/prefix" "-DCMAKE_INSTALL_LIBDIR=$folder/out/lib" \
	"-DCMAKE_INSTALL_INCLUDEDIR=$folder/dev/include"
mkdir -p "$folder/out/lib/pkgconfig" "$folder/dev/include"
cp "$folder/absolute/choir.pc" "$folder/out/lib/pkgconfig"
said=$(PKG_CONFIG_PATH=$folder/out/lib/pkgconfig pkg-config --cflags --libs choir)
for word in $said; do
	case $word in
	-I*) [ "$(realpath "${word#-I}")" = "$folder/dev/include" ] || fail "choir.pc: $word" ;;
	-L*) [ "$(realpath "${word#-L}")" = "$folder/out/lib" ] || fail "choir.pc: $word" ;;
	esac
done
[[ $said = *-I* && $said = *-L* ]] || fail "choir.pc: $said"

# Machines that Choir does not run on are refused in a line that says what it needs.
if configure narrow -DCMAKE_C_FLAGS=-m32 -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY >"$folder/log" 2>&1; then
	fail 'it was configured for 32 bits'
fi
grep -q 'needed: 64-bit Linux with glibc' "$folder/log" || fail "$(cat "$folder/log")"

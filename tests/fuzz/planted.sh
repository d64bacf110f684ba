#!/usr/bin/env bash
# planted.sh PROJECT FOLDER NAME: whether the fuzzer NAME finds a fault of the kind that it is for. The fault
# is planted in a copy of the source, as fuzz/planted/NAME says: a file, and how sed changes it.
set -euo pipefail
project=$1 out=$2/planted-$3 name=$3

rm -rf "$out"
mkdir -p "$out"
# Other fuzzers' objects serve: only the changed file is newer than its own.
mkdir "$out/build"
cp -a "$project/src" "$project/include" "$project/cli" "$project/fuzz" "$out"
[ ! -d "$2/objects" ] || flock "$2" cp -a "$2/objects" "$out/build"
{ read -r file && read -r change; } <"$project/fuzz/planted/$name"
sed -i "$change" "$out/$file"
if cmp -s "$out/$file" "$project/$file"; then
	printf '%s: the fault could not be planted in %s\n' "$name" "$file"
	exit 1
fi
if FUZZ_OUT=$out/build "$out/fuzz/run" "$name" 30 >"$out/log" 2>&1; then
	printf '%s: the planted fault was not found\n' "$name"
	exit 1
fi
if ! grep -q 'runtime error: unsigned integer overflow' "$out/log"; then
	tail -n 30 "$out/log"
	exit 1
fi

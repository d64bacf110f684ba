#!/usr/bin/env bash
# replay.sh PROJECT FOLDER NAME RUNS: builds the fuzzer NAME in FOLDER, runs it on every file of its corpus,
# and then on so many new inputs, for at most two seconds.
set -euo pipefail
project=$1 out=$2 name=$3 more=$4

mkdir -p "$out"
log=$out/$name.log
# A corpus that is gone would make this test pass for ever.
[ -d "$project/fuzz/corpus/$name" ] && files=$(find "$project/fuzz/corpus/$name" -type f | wc -l)
[ "${files:-0}" != 0 ] || {
	printf 'fuzz/corpus/%s has no files\n' "$name"
	exit 1
}
# The same search each time: what it finds is of the change that is tested.
rm -rf "${out:?}/$name/corpus"
if ! FUZZ_OUT=$out FUZZ_SEED=1 FUZZ_RUNS=$((files + more)) "$project/fuzz/run" "$name" 2 >"$log" 2>&1; then
	tail -n 60 "$log"
	exit 1
fi
# As many inputs as the corpus has files, at least, were really run.
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
printf '%s: %s inputs, %s files in the corpus\n' "$name" "${runs:-no}" "$files"
[ "${runs:-0}" -ge "$files" ]

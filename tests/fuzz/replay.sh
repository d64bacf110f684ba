#!/usr/bin/env bash
# replay.sh PROJECT FOLDER NAME SECONDS: builds the fuzzer NAME in FOLDER, runs it on every file of its
# corpus, and then lets it look for more for so many seconds. 77: there is no clang with libFuzzer.
set -euo pipefail
project=$1 out=$2 name=$3 seconds=$4

command -v clang >/dev/null || exit 77
mkdir -p "$out"
printf '%s\n' '#include <stddef.h>' '#include <stdint.h>' \
	'int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);' \
	'int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return data && size ? 0 : 0; }' |
	clang -fsanitize=address,undefined,fuzzer -x c - -o "$out/probe-$name" 2>/dev/null || exit 77

# A corpus that is gone would make this test pass for ever.
[ -n "$(find "$project/fuzz/corpus/$name" -type f 2>/dev/null)" ] || {
	printf 'fuzz/corpus/%s has no files\n' "$name"
	exit 1
}
log=$out/$name.log
# The same search each time: what it finds is of the change that is tested.
rm -rf "${out:?}/$name/corpus"
if ! FUZZ_OUT=$out FUZZ_SEED=1 "$project/fuzz/run" "$name" "$seconds" >"$log" 2>&1; then
	tail -n 60 "$log"
	exit 1
fi
# As many inputs as the corpus has files, at least, were really run.
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
files=$(find "$project/fuzz/corpus/$name" -type f | wc -l)
printf '%s: %s inputs, %s files in the corpus\n' "$name" "${runs:-no}" "$files"
[ "${runs:-0}" -ge "$files" ]

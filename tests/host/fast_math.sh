#!/usr/bin/env bash
# fast_math.sh PLAIN FAST: runs the two builds of fast_math.c. They must differ in what the processor does
# with small numbers, before and after, and in nothing else. 77: this toolchain flushes nothing.
set -euo pipefail
plain=$("$1")
fast=$("$2")
printf '%s\n--\n%s\n' "$plain" "$fast"

flushes() { grep '^flushes' <<<"$1" | tr '\n' ' '; }
results() { grep -v '^flushes' <<<"$1"; }

[ "$(flushes "$plain")" = 'flushes no flushes no ' ] || exit 1
case $(flushes "$fast") in
'flushes yes flushes yes ') ;;
'flushes no flushes no ') exit 77 ;;
*) exit 1 ;; # the host's setting was changed
esac
[ "$(results "$plain")" = "$(results "$fast")" ]

# And something was learnt, through all those small numbers.
first=$(sed -n 's/^loss //p' <<<"$plain" | head -n 1)
last=$(sed -n 's/^loss //p' <<<"$plain" | tail -n 1)
awk -v first="$first" -v last="$last" 'BEGIN { exit !(last < 0.8 * first) }'
grep -q '^weights [0-9a-f]\{16\}$' <<<"$plain"

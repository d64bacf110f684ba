#!/bin/sh
# Has Spin look at every state of a model:  check.sh MODEL proved|refuted [-Dname[=value]...]
# refuted: the model is wrong on purpose, and Spin must say so. 77: there is no Spin here.
set -eu
model=$1 expected=$2
shift 2
if ! command -v spin >/dev/null; then
	echo "spin: not found, so nothing is proved"
	exit 77
fi
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cp "$(dirname "$0")"/*.pml "$(dirname "$0")"/*.h "$folder"
cd "$folder"
spin "$@" -a "$model.pml" >spin.log || { cat spin.log; exit 1; }
cc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=2048 -o pan pan.c
./pan -m1000000 >pan.log 2>&1 || { cat pan.log; exit 1; }
grep -E 'errors:|states, stored|invalid end|assertion' pan.log
if grep -qE 'depth too small|not completed|out of memory|reached -DMEMLIM' pan.log && [ "$expected" = proved ]; then
	cat pan.log
	exit 1
fi
if [ "$expected" = proved ]; then
	grep -q 'errors: 0' pan.log
else
	grep -qE 'errors: [1-9]' pan.log
fi

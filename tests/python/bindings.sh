#!/usr/bin/env bash
# bindings.sh PROJECT LIBRARY FOLDER: makes the module in a folder, declarations included, and runs its
# tests and its example.
set -euo pipefail
project=$1 library=$2 folder=$3
for python in python3 /usr/bin/python3 none; do
	"$python" -c 'import cffi, numpy, pytest' 2>/dev/null && break
done
if [ "$python" = none ]; then
	echo 'skipped: no Python with cffi, numpy and pytest'
	exit 77
fi
rm -rf "$folder"
mkdir -p "$folder"
"$python" -B "$project/bindings/python/package.py" "$project" "$library" "$folder"
ln -s "$project/data" "$folder/data"
export CHOIR_LIBRARY=$library PYTHONPATH=$folder PYTHONDONTWRITEBYTECODE=1
cd "$folder"
"$python" -m pytest -q -p no:cacheprovider "$project/bindings/python/tests"
"$python" "$project/examples/python/mnist.py" | tee mnist.txt
awk 'END { exit !($5 > 90) }' mnist.txt

# A wheel has the library in it.
wheel=$("$python" "$project/bindings/python/wheel.py" choir "$library" .)
mkdir unpacked
"$python" -m zipfile -e "$wheel" unpacked
cd unpacked
env -u CHOIR_LIBRARY PYTHONPATH=. "$python" -c 'import choir
s, step = choir.Strategy(replicas=2), choir.function(lambda r: r.frame.constant([1.5]) + r.id)
assert s.run(step) == s.run(step) == [1.5, 2.5]'

# What the tests of installation share: their arguments (the project, its build folder, cmake), a
# folder that goes away, and how they fail. Sourced.
set -euo pipefail
project=$1 build=$2 cmake=$3
here=$project/tests/install
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
	printf 'failed: %s\n' "$*"
	exit 1
}

# quietly COMMAND...: its output only if it fails.
quietly() {
	"$@" >"$folder/log" 2>&1 || {
		cat "$folder/log"
		fail "$*"
	}
}

compilers() {
	local name
	for name in gcc clang; do
		if command -v $name >/dev/null; then echo $name; fi
	done
}

# With a compiler cache, the flags that the project's own objects have; without one, the least work.
fast=(-DCMAKE_BUILD_TYPE=Debug)
if command -v ccache >/dev/null; then
	fast=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER_LAUNCHER=ccache)
fi

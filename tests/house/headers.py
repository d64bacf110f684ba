"""Each public header compiles alone, and each example compiles, as C11 and as C++17, with gcc and
clang, without a warning. Arguments: the project's folder, and where an MPI's headers are; without them
the example that needs them is left out."""

import concurrent.futures
import os
import subprocess
import sys

from house import compilers, judge, must_find, project, read, sources

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
LANGUAGES = {"c": "c11", "c++": "c++17"}
MPI = [word for folder in sys.argv[2:] for word in ("-isystem", folder)]


def complaint(root, compiler, language, where, text):
    done = subprocess.run([compiler, "-x", language, f"-std={LANGUAGES[language]}", *STRICT,
                           "-I", str(root / "include"), *MPI, "-"],
                          input=text, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    first = next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr)
    return f"{where}: {os.path.basename(compiler)} -std={LANGUAGES[language]}: {first}"


def check(root):
    tasks = []
    for language in LANGUAGES:
        for compiler in compilers(language):
            for path in sources(root / "include" / "choir", "."):
                name = path.relative_to(root / "include")
                tasks.append((compiler, language, name, f"#include <{name}>\nextern int used;\n"))
            for path in sources(root, "examples"):
                if not MPI and "<mpi.h>" in read(path):
                    continue
                tasks.append((compiler, language, path.relative_to(root), f'#include "{path}"\n'))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda task: complaint(root, *task), tasks)
    return [line for line in found if line]


c, cxx = len(compilers("c")), len(compilers("c++"))
must_find(check, {
    "include/choir/good.h": "#pragma once\n#include <stddef.h>\nsize_t choir_good(void);\n",
    "include/choir/needs.h": "#pragma once\nsize_t choir_needs(void);\n",
    "include/choir/only_c.h": "#pragma once\nint choir_new(int class);\n",
    "examples/warns.c": "int main(void) { int unused; return 0; }\n",
}, ["needs.h"] * (c + cxx) + ["only_c.h"] * cxx + ["warns.c"] * (c + cxx))
judge(check(project()))

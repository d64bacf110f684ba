"""Each public header compiles alone and beside all others, and each example compiles, as C11 and as C++17,
with gcc and clang, without a warning, and the compiler warns where the status of a public function is thrown away,
but for functions whose failure somebody keeps. Arguments: the project's folder, and where an MPI's headers are; without them
the example that needs them is left out."""

import concurrent.futures
import os
import re
import subprocess
import sys

from house import code, compilers, judge, must_find, project, read, sources

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
LANGUAGES = {"c": "c11", "c++": "c++17"}
MPI = [word for folder in sys.argv[2:] for word in ("-isystem", folder)]


# The run, the frame or the queue keeps these functions' failures; a scope's exit cannot do otherwise.
MAY_IGNORE = ("return", "set_arg", "add_gradient", "exit", "fail")


def unchecked(root):
    """Public functions whose status a program may throw away without a warning."""
    for path in sources(root / "include" / "choir", "."):
        for found in re.finditer(r"^([\w \t]*)\bchoir_status\s+(choir_\w+)\s*\(", code(read(path)), re.M):
            before, name = found.groups()
            if "typedef" not in before and "CHOIR_MUST_CHECK" not in before and \
                    not name.endswith(tuple("_" + verb for verb in MAY_IGNORE)):
                yield f"{path.relative_to(root)}: {name} returns a status without CHOIR_MUST_CHECK"


def silent(root, compiler, language):
    """What is wrong with CHOIR_MUST_CHECK: the compiler says nothing where it should."""
    done = subprocess.run([compiler, "-x", language, "-S", "-o", os.devnull, "-Werror",
                           "-I", str(root / "include"), "-"],
                          input="#include <choir/export.h>\nCHOIR_MUST_CHECK int used(void);\n"
                                "int main(void) { used(); return 0; }\n",
                          text=True, stderr=subprocess.DEVNULL, check=False)
    if done.returncode == 0:
        return f"choir/export.h: {os.path.basename(compiler)}: CHOIR_MUST_CHECK warns of nothing"
    return None


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
    pairs = [(compiler, language) for language in LANGUAGES for compiler in compilers(language)]
    names = [path.relative_to(root / "include") for path in sources(root / "include" / "choir", ".")]
    for compiler, language in pairs:
        # What a header lacks, it lacks with each compiler: one of a language looks for it.
        alone = compiler == compilers(language)[0]
        for some in [[name] for name in names] if alone else [names]:
            text = "".join(f"#include <{name}>\n" for name in some) + "extern int used;\n"
            tasks.append((compiler, language, some[0] if alone else "all headers", text))
        for path in sources(root, "examples"):
            if not MPI and "<mpi.h>" in read(path):
                continue
            tasks.append((compiler, language, path.relative_to(root), f'#include "{path}"\n'))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda task: complaint(root, *task), tasks)
        silences = pool.map(lambda pair: silent(root, *pair), pairs)
    return [line for line in [*found, *silences, *unchecked(root)] if line]


c, cxx = len(compilers("c")), len(compilers("c++"))
must_find(check, {
    "include/choir/good.h": "#pragma once\n#include <stddef.h>\nsize_t choir_good(void);\n",
    "include/choir/needs.h": "#pragma once\nsize_t choir_needs(void);\n",
    "include/choir/only_c.h": "#pragma once\nint choir_new(int class);\n",
    "include/choir/export.h": "#pragma once\n#define CHOIR_MUST_CHECK\n",
    "include/choir/status.h": "#pragma once\n#include \"export.h\"\ntypedef int choir_status;\n"
                              "typedef choir_status choir_try_fn(void *user);\n"
                              "CHOIR_MUST_CHECK choir_status choir_try_this(void);\n"
                              "choir_status choir_try_set_arg(void);\n"
                              "choir_status choir_unmarked(\n    choir_try_fn *fn);\n",
    "examples/warns.c": "int main(void) { int unused; return 0; }\n",
}, ["choir_unmarked returns a status"] + ["export.h: "] * (c + cxx) + ["needs.h"] * (min(c, 1) + min(cxx, 1)) + ["only_c.h"] * cxx + ["warns.c"] * (c + cxx))
judge(check(project()))

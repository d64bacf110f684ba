"""Compiles the fragments of C in the documentation:  fragments.py PROJECT COMPILER [FORTRAN_COMPILER]

A fragment is a program, or declarations, or statements, or functions and then statements. What it uses
and does not declare is in fragments.txt: declarations below a line "== PAGE: HEADING" or, for the n-th
fragment below a heading, "== PAGE: HEADING, n". A fragment of Fortran is compiled as part of a module. Fragments of Python must be valid Python."""

import ast
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
from house import judge, must_find, read  # noqa: E402

FRAGMENT = re.compile(r"^```(c|fortran|python)\n(.*?)^```", re.S | re.M)
INCLUDES = ("#define _GNU_SOURCE\n#include <choir/choir.h>\n#include <choir/extend.h>\n#include <choir/extend/suite.h>\n#include <math.h>\n"
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n")


def pages(root):
    return [root / "README.md"] + sorted((root / "docs").glob("*.md"))


def fragments(root):
    """The fragments of all pages: page, line, heading, language, text."""
    for page in pages(root):
        text = read(page)
        headings = [(m.start(), m[1]) for m in re.finditer(r"^#+ (.*)$", re.sub(
            r"^```.*?^```", lambda m: " " * len(m[0]), text, flags=re.S | re.M), re.M)]
        for m in FRAGMENT.finditer(text):
            heading = [name for at, name in headings if at < m.start()][-1:]
            yield page.name, text[:m.start()].count("\n") + 1, "".join(heading), m[1], m[2]


def declarations(root):
    """What fragments.txt declares, by page and heading."""
    found, here = {}, []
    path = root / "tests/host/fragments.txt"
    for line in read(path).splitlines() if path.exists() else []:
        if line.startswith("== "):
            here = found.setdefault(line[3:], [])
        else:
            here.append(line)
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}


def functions_first(text):
    """A fragment as functions at its beginning and the statements behind them."""
    ends = [m.end() for m in re.finditer(r"^}\n", text, re.M)]
    at = ends[-1] if ends else 0
    return f"{text[:at]}\nint statements_(void);\nint statements_(void)\n{{\n{text[at:]};\nreturn 0;\n}}\n"


def ways(text, declared):
    """The sources of which one must compile."""
    text = re.sub(r"^\s*\.\.\.$", "", text, flags=re.M)
    if re.search(r"^int main\(", text, re.M):
        return [text, INCLUDES + declared + text]
    return [INCLUDES + declared + text, INCLUDES + declared + functions_first(text)]


def first_error(compiler, root, source):
    done = subprocess.run([compiler, "-std=gnu11", "-fsyntax-only", "-Werror=implicit-function-declaration", "-Werror=implicit-int",
                           "-Werror=incompatible-pointer-types", "-Werror=int-conversion", f"-I{root}/include",
                           "-x", "c", "-"], input=source, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else next((line for line in done.stderr.splitlines() if "error" in line), "?")


def check_c(root, compiler, text, declared):
    errors = [first_error(compiler, root, source) for source in ways(text, declared)]
    return None if None in errors else errors[-1]


def check_fortran(root, compiler, text):
    source = (root / "bindings/fortran/choir.f90").read_text() + (
        f"module fragment\nuse choir\nimplicit none\ntype(c_ptr) :: net, adam\ncontains\n{text}\nend module\n")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "fragment.f90"
        path.write_text(source, encoding="utf-8")
        done = subprocess.run([compiler, "-std=f2018", "-fsyntax-only", path], cwd=folder, capture_output=True,
                              text=True, check=False)
    return None if done.returncode == 0 else "".join(done.stderr.splitlines()[-1:])


def check_python(text):
    try:
        ast.parse(text)
    except SyntaxError as error:
        return str(error)
    return None


def check(root, compiler, fortran=None):
    declared = declarations(root)
    used, work = set(), []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        count = collections.Counter()
        for page, line, heading, language, text in fragments(root):
            count[page, heading] += 1
            names = [f"{page}: {heading}", f"{page}: {heading}, {count[page, heading]}"]
            used.update(names)
            if language == "c":
                made = pool.submit(check_c, root, compiler, text, "".join(declared.get(n, "") for n in names))
            elif language == "python":
                made = pool.submit(check_python, text)
            elif fortran:
                made = pool.submit(check_fortran, root, fortran, text)
            else:
                continue
            work.append((f"{page}:{line}", made))
        complaints = [f"{where}: {made.result()}" for where, made in work if made.result() is not None]
    return complaints + [f"tests/host/fragments.txt: {name} has no fragment" for name in sorted(set(declared) - used)]


COMPILER = sys.argv[2]
must_find(lambda root: check(root, COMPILER), {
    "include/choir/choir.h": "int choir_good(int x);\n#define CHOIR_CHECK(x) (x)\n",
    "include/choir/extend.h": "",
    "include/choir/extend/suite.h": "",
    "README.md": "# Top\n```c\nint y = choir_good(1);\n```\n```c\nint y = choir_bad(1);\n```\n",
    "docs/a.md": "# One\n```c\nint f(int x)\n{\n\treturn choir_good(x);\n}\n\n\tz = f(3);\n```\n"
                 "# Two\n```c\nz = 3;\n```\n```python\nx = = 2\n```\n",
    "tests/host/fragments.txt": "== a.md: One\nint z;\n== a.md: Three\nint z;\n",
}, ["README.md:5: ", "a.md:11: ", "a.md:14: ", "a.md: Three has no fragment"])
judge(check(pathlib.Path(sys.argv[1]), *sys.argv[2:]))

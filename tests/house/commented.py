"""Every public name has a comment: each declaration of a public header has one behind it, or stands below
one without an empty line between. Arguments: the project's folder, and perhaps a folder for Doxygen's
reference, which then must have no warning and all functions (make reference)."""

import pathlib
import re
import subprocess
import sys

from house import judge, must_find, project, read

NAME = re.compile(r"\b(?:choir|CHOIR)_\w+")


def declarations(text):
    """The first lines of declarations and macros, with whether a comment stands above in their block."""
    commented = inside = False
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0].strip()
        if not inside and depth == 0:
            if not line.strip():
                commented = False
            elif not code:
                commented = True
            elif code.startswith("#define") or not code.startswith(("#", "CHOIR_C_")):
                yield number, line, commented
        depth += code.count("{") - code.count("}")
        inside = code.endswith("\\") if code.startswith("#") else \
            bool(code) and (depth > 0 or not code.endswith((";", "}"))) and not code.startswith("CHOIR_C_")


def check(root):
    complaints = []
    for header in sorted((root / "include").rglob("*.h")):
        for number, line, commented in declarations(read(header)):
            name = NAME.search(line) or re.match(r"typedef (?:struct|enum)", line)
            opaque = re.match(r"typedef struct (\w+) \1;", line)
            if name and not commented and "//" not in line and not opaque:
                complaints.append(f"{header.relative_to(root)}:{number}: {name[0]} has no comment")
    return complaints


def check_reference(root, folder):
    """The complaints about Doxygen's pages."""
    done = subprocess.run([root / "tools/reference", folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return (done.stdout + done.stderr).splitlines()
    pages = "".join(read(page) for page in pathlib.Path(folder).glob("*_8h.html"))
    functions = {name for header in (root / "include").rglob("*.h")
                 for name in re.findall(r"^[\w* ]*\b(choir_\w*[a-z0-9])\(", read(header), re.M)}
    return [f"the reference has no {name}" for name in sorted(functions) if not re.search(rf"\b{name}\b", pages)]


must_find(check, {
    "include/choir/a.h": "// All of it.\n#pragma once\nCHOIR_C_BEGIN\n\nint choir_a(void);\n// Good.\nint choir_b(int x,\n\t\t"
                         "int choir_y);\nint choir_c(void);\n\nint choir_d(void); // good\nstruct choir_e {\n\tint choir_x;"
                         "\n};\n#define CHOIR_F \\\n\t1\n\ntypedef struct choir_g choir_g;\ntypedef struct {\n\tint x;\n} choir_h;\n",
}, ["a.h:5: choir_a", "a.h:12: choir_e", "a.h:15: CHOIR_F", "a.h:19: typedef struct"])
judge(check(project()) + (check_reference(project(), sys.argv[2]) if len(sys.argv) > 2 else []))

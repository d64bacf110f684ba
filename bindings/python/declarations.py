"""Writes the declarations of Choir's public headers as a Python module, for cffi:

    declarations.py INCLUDE_FOLDER FILE

The headers are regular: without comments, directives and Choir's own markers, what is left is what
cffi reads. A declaration that cffi cannot read is an error here, not at a user's import.
"""

import re
import sys
from pathlib import Path

import cffi

from calls import functions

MARKERS = re.compile(r"\bCHOIR_(C_BEGIN|C_END|MUST_CHECK)\b|\bCHOIR_PRINTF\(\d+, \d+\)")
FIRST = "choir/choir.h"


def directives(text: str) -> str:
    """The text without directives, but @include for headers of Choir, and without what only C++ sees."""
    kept, levels = [], []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        word = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        if not word or (word[1] == "include" and word[2].startswith('"')):
            line = re.sub(r"^#include", "@include", line)
            if False not in levels:
                kept.append(line)
        elif word[1] in ("if", "ifdef", "ifndef"):
            levels.append(not (word[1] == "ifdef" and word[2] == "__cplusplus"))
        elif word[1] in ("else", "elif"):
            levels[-1] = not levels[-1]
        elif word[1] == "endif":
            levels.pop()
    return "\n".join(kept)


def header(include: Path, name: str, seen: set[str]) -> str:
    """The declarations of a header, with those of the headers that it includes where they stand."""
    if name in seen:
        return ""
    seen.add(name)
    text = (include / name).read_text()
    folder = Path(name).parent
    text = directives(re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S))
    return re.sub(r'^@include "([^"]+)"', lambda other: header(include, str(folder / other[1]), seen),
                  MARKERS.sub("", text), flags=re.M) + "\n"


# The default of these depends on another field.
DEPEND = {("choir_schedule", "factor"), ("choir_variable_options", "scale")}


def zeros(include: Path) -> dict[str, dict[str, str]]:
    """What the comments of options say about 0: "zero" for fields that take CHOIR_ZERO, else "default" if the
    default is another number."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((include / "choir").glob("*.h")):
        for body, struct in re.findall(r"^typedef struct(?: \w+)? \{\n\tsize_t size;(.*?)^\} (\w+);", path.read_text(), re.M | re.S):
            for above, fields, after in re.findall(r"((?:^\t//.*\n)*)^\t\w+ ([\w, ]+);(.*)", body, re.M):
                said = re.search(r"CHOIR_ZERO|\b0: [0-9]", above.replace("\n\t//", "") + after)
                for field in fields.split(", ") if said else ():
                    if (struct, field) not in DEPEND:
                        zero = "CHOIR_ZERO" in above + after
                        found.setdefault(struct, {})[field] = "zero" if zero else "default"
    return found


FUNCTION = re.compile(r"(?:CHOIR_MUST_CHECK )?(?:choir_tensor \*|choir_status )(choir_\w+)\(")


def described(text: str) -> dict[str, tuple[str, str]]:
    """The comment of each function of a header, and that of its section. A comment is of all functions below it, up to
    an empty line or a function with a comment of its own behind it. A section's comment has an empty line below it."""
    found: dict[str, tuple[str, str]] = {}
    section, own, name = "", [], ""
    for line in text.split("\n\n", 1)[1].splitlines():  # the first comment is the header's
        function, behind = FUNCTION.match(line), re.search(r"\); // (.*)", line)
        if line.startswith("//"):
            own = own + [line[3:]] if own and not name else [line[3:]]
            name = ""
        elif function:
            name = function[1]
            found[name] = "\n".join(own), section
        if behind and name:
            found[name] = behind[1], section
            own = []
        if not line:
            section = "\n".join(own) if own and not name else section
            own, name = [], ""
        elif not line.startswith(("//", "\t", "choir", "CHOIR")):  # a type or another declaration
            own, name = [], ""
    return found


def docs(include: Path) -> tuple[dict[str, str], list[str]]:
    """The comments of the operations, and the names of the losses."""
    found = {name: both for header in ("op", "nn") for name, both in described((include / f"choir/{header}.h").read_text()).items()}
    texts = {name: "\n\n".join(filter(None, (own, re.sub(r"^[^\n]*(?<![.:])(\n\n|$)", "", section))))  # without its title
             for name, (own, section) in found.items()}
    return ({name: re.sub(r"\bchoir_(\w+)", lambda other: other[1] if other[0] in found else other[0], text)
             for name, text in texts.items()},
            [name.removeprefix("choir_") for name, (_, section) in found.items() if re.match("(Losses|Other losses)", section)])


def status(text: str) -> str:
    """The statuses as a class of Python, which type checkers know."""
    ffi = cffi.FFI()
    ffi.cdef(text)
    every = sorted(ffi.typeof("choir_status").elements.items())
    return ("class Status(enum.IntEnum):\n    \"\"\"How a call failed.\"\"\"\n\n"
            + "".join(f"    {name.removeprefix('CHOIR_')} = {number}\n" for number, name in every))


def declarations(include: Path) -> str:
    """All declarations of choir.h; ValueError names what cffi cannot read."""
    text = re.sub(r"\n\s*\n+", "\n", header(include, FIRST, set()))
    try:
        cffi.FFI().cdef(text)
    except (cffi.CDefError, cffi.FFIError) as error:
        raise ValueError(f"{include / FIRST}: {error}") from error
    return text


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: declarations.py INCLUDE_FOLDER FILE")
    try:
        found = declarations(Path(sys.argv[1]))
        replay = header(Path(__file__).parent / "replay", "replay.h", set())
    except (OSError, ValueError) as failure:
        sys.exit(f"declarations.py: {failure}")
    Path(sys.argv[2]).write_text('"""Generated by declarations.py from Choir\'s public headers."""\n\nimport enum\n\n'
                                 f'C = r"""{found}"""\n\nZEROS = {zeros(Path(sys.argv[1]))}\n\nREPLAY = r"""{replay}"""\n\n'
                                 f"{status(found)}\n\n"
                                 f"DOCS = {docs(Path(sys.argv[1]))[0]}\n\nLOSSES = {docs(Path(sys.argv[1]))[1]}\n\n"
                                 f"CALLS = {[(name, kind) for name, (kind, _) in functions(Path(sys.argv[1])).items()]}\n")

"""What the tests of the house share: finding files, reading C roughly, and the way a check runs.

A check is a function from a project's folder to a list of complaints. Every check first proves on a
small project with planted faults that it finds them, and then looks at the real one."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

FLOORS = {
    "base": 0,
    "trace": 1,
    "net": 1,
    "device": 2,
    "cluster": 2,
    "supervisor": 2,
    "tensor": 3,
    "op": 4,
    "data": 4,
    "value": 5,
    "serve": 5,
    "collective": 6,
    "strategy": 7,
    "train": 8,
    "input": 8,
    "fit": 9,
    "coordinator": 9,
}


def sources(root, *folders):
    """The C files in these folders of a project, in order."""
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".inc", ".cu", ".cc") and path.is_file():
                found.append(path)
    return found


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code(text):
    """The text without comments and without what is in strings; lines keep their numbers."""

    def blank(match):
        token = match.group(0)
        if token[0] == "/":
            return "\n" * token.count("\n") or " "
        return token[0] * 2

    return _TOKEN.sub(blank, text)


def plant(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def must_find(check, files, expected, *more):
    """Ends the program unless the check finds in a project of these files a complaint that contains
    each expected text, and none besides."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        plant(root, files)
        found = check(root, *more)
    for text in expected:
        if not any(text in complaint for complaint in found):
            sys.exit(f"the check itself is broken: planted '{text}', found {found}")
    if len(found) != len(expected):
        sys.exit(f"the check itself is broken: {len(expected)} faults planted, found {found}")


def judge(complaints):
    """Prints the complaints and ends the program accordingly."""
    for complaint in complaints:
        print(complaint)
    print(f"{len(complaints)} complaints")
    sys.exit(1 if complaints else 0)


def project():
    return pathlib.Path(sys.argv[1]).resolve()


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def compilers(language):
    names = {"c": ("gcc", "clang"), "c++": ("g++", "clang++")}[language]
    here = [os.path.join(folder, name) for name in names
            for folder in os.environ["PATH"].split(":")
            if os.access(os.path.join(folder, name), os.X_OK)]
    chosen = {os.path.basename(path): path for path in reversed(here)}
    return [chosen[name] for name in names if name in chosen]

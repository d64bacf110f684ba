"""The layout of the sources is clang-format's, by .clang-format. Versions differ in what they make of
the same rules, so it is Debian 12's that counts; without it the test is skipped. Arguments: the project's
folder, and --write to put the files into the layout instead."""

import shutil
import subprocess
import sys

from house import judge, must_find, output, project, skip, sources

VERSION = "14"
FOLDERS = ("include", "src", "cuda", "cli", "suites", "mpi", "net", "examples", "tests", "bench", "fuzz")


def find_tool():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if shutil.which(name) and f"version {VERSION}." in output(name, "--version"):
            return name
    skip(f"clang-format {VERSION} is not installed")


def check(root):
    style = project() / ".clang-format"
    done = subprocess.run([tool, f"-style=file:{style}", "--dry-run", *sources(root, *FOLDERS)],
                          capture_output=True, text=True, check=False)
    found = {line.split(":")[0] for line in done.stderr.splitlines() if "clang-format-violations" in line}
    return [f"{path[len(str(root)) + 1:]}: is not laid out by .clang-format (make format)"
            for path in sorted(found)]


tool = find_tool()
if "--write" in sys.argv:
    subprocess.run([tool, "-i", *sources(project(), *FOLDERS)], check=True)
    sys.exit()
must_find(check, {
    "src/a.c": "int f(int x)\n{\n\treturn x;\n}\n",
    "src/b.c": "int f(int x) {\n  return x;\n}\n",
}, ["src/b.c: is not laid out"])
judge(check(project()))

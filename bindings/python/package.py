"""Makes the package: the module, its declarations and types, and the library that replays steps.

    package.py PROJECT LIBRARY FOLDER

FOLDER/choir is made anew. CC is the compiler (cc)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def make(project: Path, library: Path, folder: Path) -> None:
    here, package = project / "bindings/python", folder / "choir"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(here / "choir", package, ignore=shutil.ignore_patterns("__pycache__"))
    for script, to in (("declarations.py", package / "_declarations.py"), ("calls.py", package / "calls.inc")):
        subprocess.run([sys.executable, "-B", here / script, project / "include", to], check=True)
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror",
                    f"-I{project / 'include'}", f"-I{package}", here / "replay/replay.c", library,
                    "-o", package / "libchoir-replay.so"], check=True)
    (package / "calls.inc").unlink()
    subprocess.run([sys.executable, "-BP", here / "stub.py", package / "op.pyi"], check=True,
                   env=os.environ | {"PYTHONPATH": str(folder), "CHOIR_LIBRARY": str(library)})


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: package.py PROJECT LIBRARY FOLDER")
    make(*(Path(path).resolve() for path in sys.argv[1:]))

"""Other libraries that benchmarks compare Choir with: where they are installed."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "bench/peers"
ENVIRONMENTS = pathlib.Path(os.environ.get("ENVIRONMENTS") or ROOT / "build/peers")
MODULES = {"torch": "torch", "jax": "jax", "tf": "tensorflow"}


def find_python(name, environments=ENVIRONMENTS):
    """The python that has a library, or None."""
    own = environments / name / "bin/python"
    if os.access(own, os.X_OK):
        return str(own)
    python = shutil.which("python3")
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{MODULES[name]}') is None)"
    has = python and subprocess.run([python, "-c", code], check=False).returncode == 0
    return python if has else None

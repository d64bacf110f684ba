"""Writes a wheel of the module with the shared library in it:  wheel.py PACKAGE LIBRARY FOLDER

PACKAGE is the folder choir with its generated declarations. The format is that of PEP 427.
"""

import base64
import ctypes
import hashlib
import re
import sys
import sysconfig
import zipfile
from pathlib import Path


def files(package: Path, library: Path, version: str, tag: str) -> dict[str, bytes]:
    found = {f"choir/{path.name}": path.read_bytes() for path in sorted(package.iterdir()) if path.is_file()}
    found["choir/libchoir.so.0.1"] = library.read_bytes()
    info = f"choir-{version}.dist-info"
    found[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: choir\nVersion: {version}\n"
                                 "Summary: tf.distribute for C, from Python\nRequires-Python: >=3.11\n"
                                 "Requires-Dist: cffi\nRequires-Dist: numpy\n").encode()
    found[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: choir\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    lines = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
             for name, data in found.items()]
    found[f"{info}/RECORD"] = ("\n".join(lines + [f"{info}/RECORD,,"]) + "\n").encode()
    return found


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: wheel.py PACKAGE LIBRARY FOLDER")
    number = ctypes.CDLL(sys.argv[2]).choir_version()
    release = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    platform = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    to = Path(sys.argv[3]) / f"choir-{release}-{platform}.whl"
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as wheel:
        for inside, content in files(Path(sys.argv[1]), Path(sys.argv[2]), release, platform).items():
            wheel.writestr(inside, content)
    print(to)

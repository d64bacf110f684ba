"""What is in the repository: no path of somebody's machine, no file over 5 MB, no spaces at the end of
a line, and a newline at the end of each file. Argument: the project's folder."""

import re
import subprocess

from house import judge, must_find, project

MOST_BYTES = 5_000_000
PLACES = ("work", "farm", "root", "home")
PATH = re.compile(r"(?:^|[^\w.~}])/(" + "|".join(PLACES) + r")/[\w.]")
OTHERS_TEXT = ("LICENSE",)


def tracked(root):
    """Files that are in the repository or would be added; outside of one, all but builds."""
    done = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "-c", "-o", "--exclude-standard"],
                          capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return sorted(root / name for name in set(done.stdout.split("\0")) if name)
    return sorted(path for path in root.rglob("*") if path.is_file()
                  and not path.relative_to(root).parts[0].startswith("build"))


def check(root):
    complaints = []
    for path in tracked(root):
        if not path.is_file():
            continue
        where = path.relative_to(root)
        if path.stat().st_size > MOST_BYTES:
            complaints.append(f"{where}: {path.stat().st_size} bytes, at most {MOST_BYTES}")
            continue
        content = path.read_bytes()
        if b"\0" in content[:8000]:
            continue
        text = content.decode("utf-8", errors="replace")
        for number, line in enumerate(text.split("\n"), 1):
            if PATH.search(line):
                complaints.append(f"{where}:{number}: a path of a machine: {line.strip()}")
            if line != line.rstrip() and path.name not in OTHERS_TEXT and path.suffix != ".md":
                complaints.append(f"{where}:{number}: space at the end of the line")
        if text and not text.endswith("\n"):
            complaints.append(f"{where}: no newline at the end")
    return complaints


must_find(check, {
    "a.c": f"// See /{PLACES[0]}/notes.\n",
    "b.md": f"Run `/{PLACES[3]}/me/choir`; not include/{PLACES[0]}/x, not /proc/x.\n",
    "c.c": "int x; \n",
    "d.c": "int x;",
    "big.bin": "x" * (MOST_BYTES + 1),
}, ["a.c:1: a path", "b.md:1: a path", "c.c:1: space", "d.c: no newline", "big.bin: 5000001 bytes"])
judge(check(project()))

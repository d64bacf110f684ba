"""A room includes only rooms on lower floors, never one beside or above it; the same holds for what
its objects call. Arguments: the project's folder and the library's objects, if they were built."""

import pathlib
import re
import subprocess
import sys

from house import FLOORS, code, judge, must_find, output, project, read, sources

# Which room a public header belongs to. Those of no room include others and are for programs.
HEADERS = {
    "export.h": "base",
    "status.h": "base",
    "library.h": "base",
    "log.h": "base",
    "trace.h": "trace",
    "device.h": "device",
    "extend/device_table.h": "device",
    "tensor.h": "tensor",
    "op.h": "op",
    "nn.h": "op",
    "precision.h": "op",
    "tape.h": "op",
    "extend/kernel_table.h": "op",
    "extend/suite.h": "base",
    "extend/cuda.h": "device",
    "dataset.h": "data",
    "source.h": "data",
    "value.h": "value",
    "variable.h": "value",
    "cluster.h": "cluster",
    "extend/transport_table.h": "cluster",
    "extend/mpi.h": "cluster",
    "supervisor.h": "supervisor",
    "extend/connection_table.h": "net",
    "extend/net.h": "net",
    "extend/cross_device_ops_table.h": "collective",
    "replica.h": "strategy",
    "cross.h": "strategy",
    "update.h": "strategy",
    "scope.h": "strategy",
    "strategy.h": "strategy",
    "replay.h": "strategy",
    "extend/strategy_table.h": "strategy",
    "layer.h": "train",
    "export_c.h": "train",
    "optimizer.h": "train",
    "metric.h": "train",
    "weights.h": "train",
    "checkpoint.h": "train",
    "input.h": "input",
    "fit.h": "fit",
    "coordinator.h": "coordinator",
    "serve.h": "serve",
    "choir.h": None,
    "extend.h": None,
}
# The same for headers of tests that belong to no room themselves.
TEST_HEADERS = {"far/far.h": "device"}
PROGRAM = 10
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def public_name(path):
    """tensor.h for include/choir/tensor.h."""
    return str(path).split("include/choir/", 1)[1]


def header_floor(name):
    room = HEADERS.get(name, "?")
    if room is None:
        return PROGRAM, "programs"
    return FLOORS.get(room, -1), room


def target(root, path, bracket, name):
    """(floor, room) of what is included; None for a header that is not ours."""
    if name.startswith("choir/"):
        return header_floor(name[len("choir/"):])
    if bracket == "<":
        return None
    public = root / "include" / "choir"
    if public in path.parents:
        inside = (path.parent / name).resolve()
        return header_floor(str(inside.relative_to(public.resolve())))
    if name in TEST_HEADERS:
        return FLOORS[TEST_HEADERS[name]], TEST_HEADERS[name]
    room = name.split("/")[0]
    if "/" not in name:
        return None  # beside the file: its own folder
    if root / "cli" in path.parents and (root / "cli" / name).exists():
        return PROGRAM, "programs"
    if room not in FLOORS and (root / "tests" / room).is_dir():
        return PROGRAM, "programs"
    return FLOORS.get(room, -1), room


def own(root, path):
    public = root / "include" / "choir"
    if public in path.parents:
        return header_floor(public_name(path))
    parts = path.relative_to(root).parts
    if parts[0] in ("src", "tests") and parts[1] in FLOORS:
        return FLOORS[parts[1]], parts[1]
    if parts[0] == "src":
        return -1, parts[1]
    return PROGRAM, "programs"


def check(root):
    complaints = []
    for path in sources(root, "include", "src", "tests", "cli", "suites", "examples", "bench"):
        floor, room = own(root, path)
        where = path.relative_to(root)
        if floor < 0:
            complaints.append(f"{where}: belongs to no room that tests/house knows")
            continue
        for bracket, name in INCLUDE.findall(keep_includes(read(path))):
            to = target(root, path, bracket, name)
            if to is None or to[1] == room:
                continue
            if to[0] < 0:
                complaints.append(f"{where}: {name} is in no room that tests/house knows")
            elif to[0] >= floor and room != "programs":
                complaints.append(f"{where}: {room} (floor {floor}) includes {name}, which is in "
                                  f"{to[1]} (floor {to[0]})")
            elif where.parts[0] in ("cli", "suites", "examples", "bench") and not name.startswith("choir/"):
                complaints.append(f"{where}: {name} is internal; programs see choir/ only")
    return complaints


def keep_includes(text):
    """Without comments, but with the names of what is included."""
    names = {}
    for number, line in enumerate(text.split("\n")):
        if INCLUDE.match(line):
            names[number] = line
    lines = code(text).split("\n")
    return "\n".join(names.get(i, "") for i in range(len(lines)) if "include" in lines[i])


def check_calls(objects):
    """Objects are .../src/ROOM/...: no room may use what a room beside or above it defines."""
    home, uses = {}, []
    for line in output("nm", "-g", "-A", *map(str, objects)).splitlines():
        path, symbol = line.split(":", 1)
        path = pathlib.Path(path)
        room = path.parts[max(i for i, part in enumerate(path.parts) if part == "src") + 1]
        kind, name = symbol.split()[-2:]
        if kind == "U":
            uses.append((room, path.name, name))
        else:
            home[name] = room
    complaints = set()
    for room, file, name in uses:
        other = home.get(name, room)
        if other != room and FLOORS.get(other, -1) >= FLOORS.get(room, 99):
            complaints.add(f"{room}/{file}: uses {name}, which {other} "
                           f"(floor {FLOORS[other]}) defines")
    return sorted(complaints)


def test_calls(root):
    objects = []
    for path in sources(root, "src"):
        objects.append(path.with_suffix(".o"))
        subprocess.run(["cc", "-c", str(path), "-o", str(objects[-1])], check=True)
    return check_calls(objects)


must_find(check, {
    "include/choir/status.h": '#include "tensor.h"\n',
    "include/choir/extend/kernel_table.h": '#include "../op.h"\n#include "../status.h"\n',
    "include/choir/surprise.h": "\n",
    "src/op/a.c": '#include "base/x.h"\n#include "op/op.h"\n#include <data/x.h>\n// #include "train/x.h"\n',
    "src/op/b.c": '#include "data/dataset.h"\n',
    "src/op/c.c": '#include "choir/strategy.h"\n',
    "src/attic/a.c": "int x;\n",
    "tests/op/b_test.c": '#include "op/op.h"\n#include "far/far.h"\n#include "value/x.h"\n',
    "tests/base/b_test.c": '#include "far/far.h"\n',
    "cli/train.c": '#include <choir/choir.h>\n#include "base/x.h"\n#include "train.h"\n',
    "cli/train/part.h": "\n",
    "cli/run.c": '#include "train/part.h"\n#include "train/layer.h"\n',
    "examples/e.c": "#include <choir/choir.h>\n",
}, ["status.h: base (floor 0) includes tensor.h", "surprise.h: belongs to no room",
    "b.c: op (floor 4) includes data/dataset.h", "c.c: op (floor 4) includes choir/strategy.h",
    "attic", "b_test.c: op (floor 4) includes value/x.h", "b_test.c: base (floor 0) includes far/far.h",
    "train.c: base/x.h is internal", "run.c: train/layer.h is internal"])
must_find(test_calls, {
    "src/base/low.c": "int chi_high(void); int chi_low(void) { return chi_high(); }\n",
    "src/tensor/high.c": "int chi_low(void); int chi_high(void) { return chi_low(); }\n",
}, ["low.o: uses chi_high, which tensor (floor 3)"])

judge(check(project()) + check_calls([pathlib.Path(name) for name in sys.argv[2:]]))

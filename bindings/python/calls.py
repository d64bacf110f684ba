"""Writes the switch of replay.c from Choir's public headers:  calls.py INCLUDE_FOLDER FILE

A function can be recorded if it takes a tensor, the replica, its frame or its tape, gives a tensor, a tape
or a status, and has no function among its arguments. A kind is a letter for each argument, in CALLS of
_declarations.py, too."""

import re
import sys
from pathlib import Path

HEADERS = ("tensor", "op", "nn", "tape", "layer", "metric", "optimizer", "replica", "variable")
# These give the program a value, or its caller another object than a tensor.
LEFT_OUT = {"choir_tensor_to_host", "choir_copy", "choir_from_dlpack", "choir_borrow",
            "choir_custom_op_apply", "choir_layer_set_precision"}
ARGUMENTS = (  # pattern, kind, how C gets it
    (r"(?:const )?choir_tensor \*\w+", "T", "TENSOR({i})"),
    (r"choir_tensor \*const \w+\[\]", "A", "READ({i})"),
    (r"choir_tensor \*(?:\w+\[\]|\*\w+)", "W", "WRITTEN({i})"),
    (r"choir_frame \*\w+", "F", "s->replica->frame"),
    (r"choir_replica \*\w+", "R", "s->replica"),
    (r"choir_tape \*\w+", "G", "s->tape"),
    (r"double \w+", "D", "REAL({i})"),
    (r"choir_shape \w+", "S", "SHAPE({i})"),
    (r"choir_axes \w+", "X", "CHOIR_AXES_BITS(NUMBER(uint32_t, {i}))"),
    (r"(\w+) \w+", "N", "NUMBER({type}, {i})"),
    (r".*[*\]].*", "P", "POINTER({i})"),
)
RESULTS = {"choir_tensor *": "keep(s, {})", "choir_tape *": "keep_tape(s, {})", "choir_status ": "{}"}


def functions(include: Path) -> dict[str, tuple[str, str]]:
    """The kind and the call in C of each function that can be recorded."""
    found = {}
    for header in HEADERS:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", (include / f"choir/{header}.h").read_text(), flags=re.S)
        for result, name, arguments in re.findall(
                r"^(?:CHOIR_MUST_CHECK )?(choir_tensor \*|choir_tape \*|choir_status )(choir_\w+)\(([^()]*)\);", text, re.M):
            given = [" ".join(one.split()) for one in arguments.split(",")]
            if name in LEFT_OUT or any(re.search(r"_(fn|op) \*", one) for one in given):
                continue
            kind, call = "", []
            for i, one in enumerate(given):
                pattern, letter, how = next(row for row in ARGUMENTS if re.fullmatch(row[0], one))
                match = re.fullmatch(pattern, one)
                kind += letter
                call.append(how.format(i=i, type=match[1] if match.groups() else ""))
            if set(kind) & set("TAFRG"):
                made = RESULTS[result].format(f"{name}({', '.join(call)})")
                found[name] = kind, f"return {made};"
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: calls.py INCLUDE_FOLDER FILE")
    Path(sys.argv[2]).write_text("".join(f"\tcase {i}:\n\t\t{call}\n" for i, (_, call) in
                                         enumerate(functions(Path(sys.argv[1])).values())))

"""Which tests pin which rule. A line of tags ("spec:", then rows of conformance.txt beside this file)
right above a test's function, or above the main function of a program that is one test, says what
they pin. This check fails when a row that must have a test has none, when a row is unknown, when a
tag stands above what never runs or may skip itself, and when tests/conformance.md is not what it
would write (make conformance writes it). Whether the tests pass is for ctest to say: each program
counted here must be one of its tests, whose names are given.
Arguments: the project's folder, then --write to write the map, or the names of all unit tests."""

import re
import sys

from house import judge, must_find, project, read

ROWS = "tests/house/conformance.txt"
MAP = "tests/conformance.md"
TAGS = re.compile(r"^// spec: (.*)\n((?:(?:static )?void|int) (?=\w+\()|TEST\w*\()(\w+)", re.M)
FUNCTION = re.compile(r"^(?!\s|#|//)(?:TEST\w*\(|[^\n]*?\b(?=\w+\())(\w+)\b[^;{}]*\)\n\{\n(.*?)^\}", re.M | re.S)
SKIPS = re.compile(r"\bskip\(\)|\b(?:return|exit\s*\()\s*77\b")


def rows(root):
    """The parts of the table: [(heading, [(row, what it is about, whether it must have a test)])]."""
    parts = []
    for line in read(root / ROWS).splitlines():
        if line.startswith("## "):
            parts.append((line[3:], []))
        elif "\t" in line:
            row, about = line.split("\t", 1)
            parts[-1][1].append((row.rstrip("?"), about, not row.endswith("?")))
    return parts


def may_skip(functions, name, seen):
    """Whether a function of this file, or one of it that it calls, ends the test before its time."""
    seen.add(name)
    body = functions[name]
    return bool(SKIPS.search(body)) or any(
        may_skip(functions, called, seen) for called in re.findall(r"\b(\w+)\b", body)
        if called in functions and called not in seen)


def faults(text, match):
    """Why what is tagged here may not run, if so."""
    before = text[:match.start()]
    functions = dict(FUNCTION.findall(text))
    test = match.group(3)
    if len(re.findall(r"^#\s*if", before, re.M)) != len(re.findall(r"^#\s*endif", before, re.M)):
        yield "stands in an #if"
    if test != "main" and not re.search(
            r"\b(?:cmocka_unit_test\w*|TEST|TEST_WITHIN)\(\s*" + test + r"\b", text):
        yield "is no test"
    if may_skip(functions, test, set()) or SKIPS.search(functions.get("main", "")):
        yield "may skip itself"


def collect(root, built):
    """{row: ["room/name: test"]}, and complaints."""
    known = {row for _, members in rows(root) for row, _, _ in members}
    pinned, complaints = {}, []
    for path in sorted((root / "tests").rglob("*.c")):
        text = read(path)
        if not path.name.endswith("_test.c"):
            if re.search(r"^// spec:", text, re.M):
                complaints.append(f"{path.relative_to(root)}: is tagged, and is no test")
            continue
        program = str(path.relative_to(root / "tests"))[:-len("_test.c")]
        found = list(TAGS.finditer(text))
        if len(found) != len(re.findall(r"// spec:", text)):
            complaints.append(f"{program}: tags that are not right above a test")
        if found and built is not None and program not in built:
            complaints.append(f"{program}: is tagged, and is none of the tests that run")
        for match in found:
            name = program if match.group(3) == "main" else f"{program}: {match.group(3)}"
            complaints += [f"{name}: is tagged, and {fault}" for fault in faults(text, match)]
            for tag in (tag.strip() for tag in match.group(1).split(",")):
                if tag not in known:
                    complaints.append(f"{name}: there is no row '{tag}'")
                pinned.setdefault(tag, []).append(name)
    return pinned, complaints


def written(root, pinned):
    lines = [
        "# Conformance", "",
        "The tests that pin each rule of replicas, variables, reductions, strategies and input. `make conformance`",
        "writes this page from the tests. A test of the house fails when the page is stale, or when a row has no",
        "test that runs. [rules.md](../docs/rules.md) has the rules, [tensorflow.md](../docs/tensorflow.md) the differences",
        "from TensorFlow. A row \"not yet\" is about something that Choir does not have yet.",
    ]
    for heading, members in rows(root):
        lines += ["", f"## {heading}", "", "| row | about | tests |", "|---|---|---|"]
        for row, about, needed in members:
            tests = "<br>".join(f"`{test}`" for test in pinned.get(row, []))
            lines.append(f"| {row} | {about} | {tests or ('none' if needed else 'not yet')} |")
    return "\n".join(lines) + "\n"


def check(root, built=None):
    pinned, complaints = collect(root, built)
    complaints += [f"{row}: no test pins it ({about})" for _, members in rows(root)
                   for row, about, needed in members if needed and row not in pinned]
    if not (root / MAP).is_file() or read(root / MAP) != written(root, pinned):
        complaints.append(f"{MAP}: stale, run make conformance")
    return complaints


def check_the_check():
    table = {ROWS: "# Rows\n## A. First\nA1\tone\nA2\ttwo\nA3?\tthree\n"}
    good = "// spec: A1\nTEST(test_a)\n{\n}\n"
    skips = "static void leave(void)\n{\n\tskip();\n}\n\n" + good.replace("{\n}", "{\n\tleave();\n}")
    must_find(check, {**table, "tests/x/a_test.c": good}, ["A2: no test", "stale"])
    must_find(check, {
        **table,
        "tests/x/a_test.c": good.replace("A1", "A1, A2, A9"),
        "tests/x/b_test.c": "// spec: A1\nint x;\n",
        "tests/x/c_test.c": good.replace("TEST(test_a)", "static void test_a(void **state)"),
        "tests/x/d_test.c": skips,
        "tests/x/e_test.c": "#if 0\n" + good + "#endif\n",
        "tests/x/f_test.c": "// spec: A1\nint main(void)\n{\n\treturn 77;\n}\n",
        "tests/x/g_test.c": good,
        "tests/x/h.c": good,
    }, ["x/a: test_a: there is no row 'A9'", "x/b: tags that are not", "x/c: test_a: is tagged, and is no",
        "x/d: test_a: is tagged, and may skip", "x/e: test_a: is tagged, and stands in an #if",
        "x/f: is tagged, and may skip", "x/g: is tagged, and is none of", "x/h.c: is tagged, and", "stale"],
        {f"x/{name}" for name in "abcdef"})


if __name__ == "__main__":
    check_the_check()
    if sys.argv[2:] == ["--write"]:
        (project() / MAP).write_text(written(project(), collect(project(), None)[0]), encoding="utf-8")
    else:
        judge(check(project(), set(sys.argv[2:]) or None))

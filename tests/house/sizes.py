"""Functions of at most 60 lines, nineteen in twenty of them under 40; files under 600 lines; lines
under 100 columns; a paragraph at the top of each file; libchoir-cuda under 6,000 lines. Argument: the
project's folder."""

import re

from house import judge, must_find, project, read, sources

FILE_LINES, FUNCTION_LINES, MOST_FUNCTIONS, COLUMNS, TAB = 599, 60, 39, 99, 4
CUDA_LINES = 5999
OPENS = re.compile(r"^[A-Za-z_].*\)[^;=]*\{\s*$")


def functions(lines):
    """(name, first line, lines) of each function and each long macro. A function's brace stands at the
    start of a line, or ends the line of its signature; its end is a brace at the start of a line."""
    start = None
    for i, line in enumerate(lines):
        if start is None and (line.rstrip() == "{" or OPENS.match(line)):
            start = i
            while start > 0 and re.match(r"[A-Za-z_\s]", lines[start - 1] or "#") \
                    and not lines[start - 1].rstrip().endswith((";", "}")):
                start -= 1
            head = " ".join(lines[start:i + 1])
        elif start is not None and line.startswith("}"):
            name = re.search(r"(\w+)\s*\(", head)
            yield (name.group(1) if name else "?"), start + 1, i - start + 1
            start = None
    i = 0
    while i < len(lines):
        first = i
        while lines[i].endswith("\\") and i + 1 < len(lines):
            i += 1
        if lines[first].lstrip().startswith("#") and i > first + 1:
            yield lines[first].split("(")[0], first + 1, i - first + 1
        i += 1


def check(root):
    complaints, sizes, cuda = [], [], 0
    for path in sources(root, "include", "src", "cuda", "cli", "suites", "examples", "bench", "tests"):
        where = path.relative_to(root)
        lines = read(path).split("\n")
        if len(lines) - 1 > FILE_LINES:
            complaints.append(f"{where}: {len(lines) - 1} lines, at most {FILE_LINES}")
        cuda += len(lines) - 1 if where.parts[0] == "cuda" else 0
        if not re.match(r"//|/\*", lines[0]):
            complaints.append(f"{where}:1: no paragraph that says what the file is for")
        for number, line in enumerate(lines, 1):
            columns = len(line.expandtabs(TAB))
            if columns > COLUMNS:
                complaints.append(f"{where}:{number}: {columns} columns, at most {COLUMNS}")
        for name, first, size in functions(lines):
            if size > FUNCTION_LINES:
                complaints.append(f"{where}:{first}: {name} has {size} lines, at most {FUNCTION_LINES}")
            sizes.append((size, f"{where}:{first}: {name}"))
    if cuda > CUDA_LINES:
        complaints.append(f"cuda: {cuda} lines, at most {CUDA_LINES}")
    sizes.sort(reverse=True)
    longer = [entry for entry in sizes if entry[0] > MOST_FUNCTIONS]
    if len(longer) > len(sizes) // 20:
        complaints.append(f"{len(longer)} of {len(sizes)} functions have {MOST_FUNCTIONS + 1} lines or "
                          "more, at most one in twenty: "
                          + ", ".join(f"{name} ({size})" for size, name in longer))
    return complaints


def body(lines):
    return "{\n" + "\tx();\n" * (lines - 3) + "}\n"


small = "".join(f"static void small{i}(void)\n" + body(5) for i in range(60))
must_find(check, {
    **{f"cuda/part{i}.cu": "// Part.\n" + "int x;\n" * 590 for i in range(11)},
    "src/op/fine.c": "// Fine.\n" + small + "static const int table[] = {\n" + "\t1,\n" * 90 + "};\n",
    "src/op/long.c": "// Long.\nint long_one(int a,\n\t\tint b)\n" + body(60),
    "src/op/fits.c": "// Fits.\nint fits(void)\n" + body(60),
    "src/op/macro.c": "// Macro.\n#define MANY(x) \\\n" + "\tx; \\\n" * 60 + "\tx\n",
    "src/op/kernel.inc": "// Kernel.\nstatic void NAME(kernel)(int a) {\n" + "\tx();\n" * 80 + "}\n",
    "src/op/file.c": "// File.\n" + "int x;\n" * 600,
    "src/op/wide.c": "// Wide.\n\t" + "x" * 95 + "\n\t" + "x" * 96 + "\n",
    "src/op/silent.c": "#include <stdio.h>\n",
}, ["long.c:2: long_one has 61 lines", "macro.c:2: #define MANY has 62 lines",
    "kernel.inc:2: NAME has 82 lines", "file.c: 601 lines", "wide.c:3: 100 columns", "silent.c:1",
    "cuda: 6501 lines", "4 of 64 functions"])
judge(check(project()))

"""What the documentation says is there: the README's program is examples/mnist.c, links lead somewhere,
names of Choir's API exist in the public headers, and tests that are named as `room/name: function` exist. Arguments: the project's folder, and --write to put
examples/mnist.c into the README first."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
from house import judge, must_find, project, read  # noqa: E402

LISTING = re.compile(r"<!-- (examples/\w+\.c) -->\n```c\n(.*?)```", re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
TEST = re.compile(r"`(\w+(?:/\w+)+): (\w+)`")
NAME = re.compile(r"\b(?:choir|CHOIR)_[A-Za-z0-9_]+\b(?!\*)")
# Settings of the environment and of the build, which are in no header.
SETTINGS = {"CHOIR_CUDA", "CHOIR_DEVICES", "CHOIR_KERNELS", "CHOIR_INSTRUCTION_SET", "CHOIR_CMAKE", "CHOIR_ONEDNN",
            "CHOIR_FLIPS", "CHOIR_SCHEDULES", "CHOIR_RUN_KEY", "CHOIR_WORKER", "CHOIR_TESTS", "CHOIR_WERROR"}


def pages(root):
    return sorted(root.glob("*.md")) + sorted(root.glob("docs/**/*.md")) + sorted(root.glob("tests/*.md"))


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def check_links(root, page, text):
    complaints = []
    where = page.relative_to(root)
    for link in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.S)):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if not path.exists():
            complaints.append(f"{where}: {link} leads nowhere")
        elif anchor and anchor not in anchors(read(path)):
            complaints.append(f"{where}: {link}: there is no such heading")
    return complaints


def check(root):
    complaints = []
    known = set(SETTINGS)
    for header in [*(root / "include").rglob("*.h"), *(root / "bindings").rglob("*.f90")]:
        known.update(NAME.findall(read(header)))
    for page in pages(root):
        text = read(page)
        for name in sorted(set(NAME.findall(text)) - known):
            complaints.append(f"{page.relative_to(root)}: {name} is in no public header")
        complaints += check_links(root, page, text)
        for program, function in sorted(set(TEST.findall(text))):
            source = root / "tests" / f"{program}_test.c"
            if not source.exists() or not re.search(rf"\b{function}\(|TEST\w*\({function}\b", read(source)):
                complaints.append(f"{page.relative_to(root)}: there is no test {program}: {function}")
    readme = root / "README.md"
    listings = LISTING.findall(read(readme))
    if not listings:
        complaints.append("README.md: there is no listing of an example")
    for name, listing in listings:
        if not (root / name).exists():
            complaints.append(f"README.md: there is no {name}")
        elif listing != read(root / name):
            complaints.append(f"README.md: its listing is not {name}: run tests/host/docs.py . --write")
    return complaints


def write(root):
    readme = root / "README.md"
    text = LISTING.sub(lambda m: f"<!-- {m.group(1)} -->\n```c\n{read(root / m.group(1))}```", read(readme))
    readme.write_text(text, encoding="utf-8")


must_find(check, {
    "include/choir/a.h": "int choir_good(void);\n",
    "examples/one.c": "int one;\n",
    "README.md": "# Top\n<!-- examples/one.c -->\n```c\nint two;\n```\n[a](docs/b.md#here) [c](docs/c.md)\n"
                 "[d](docs/b.md#a-b-c) choir_good choir_bad [e](https://a.b/c) [f](#top)\n",
    "docs/b.md": "# A, b (c)\n`CHOIR_WORSE` and choir_g*\n`a/b: c` `a/b: d` `a/e: c`\n",
    "tests/a/b_test.c": "TEST(c)\n",
}, ["its listing is not examples/one.c", "docs/b.md#here: there is no such heading", "docs/c.md leads nowhere",
    "choir_bad is in no", "CHOIR_WORSE is in no", "no test a/b: d", "no test a/e: c"])
if "--write" in sys.argv[2:]:
    write(project())
judge(check(project()))

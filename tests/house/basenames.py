"""A file is found by its name: no two files of src have the same one, and no file of the command has
one of src. Argument: the project's folder."""

from house import judge, must_find, project


def check(root):
    places = {}
    for folder in ("src", "cli"):
        for path in sorted((root / folder).rglob("*.*")):
            places.setdefault(path.name, []).append(str(path.relative_to(root)))
    return [f"{name}: is the name of {' and '.join(found)}" for name, found in sorted(places.items())
            if len(found) > 1 and found[0].startswith("src/")]


must_find(check, {
    "src/op/late.c": "", "src/op/late.h": "", "src/data/late.c": "",
    "src/op/loops.c": "", "src/op/loops.avx2.c": "",
    "src/base/file.c": "", "cli/data/file.c": "",
    "cli/a/say.c": "", "cli/b/say.c": "",
}, ["late.c: is the name of src/data/late.c and src/op/late.c",
    "file.c: is the name of src/base/file.c and cli/data"])
judge(check(project()))

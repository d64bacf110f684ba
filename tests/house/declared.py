"""The header that declares a function leads to its file. A shared function (chi_) is declared in the
header of its own file (tree.c: tree.h), or in the header of its folder (tensor/tensor.h) if that has
at most twenty .c files. A public function of choir/x.h is in x.c or in a folder x, one of
choir/extend/x_table.h in x.c. ELSEWHERE has the exceptions. Argument: the project's folder."""

import re

from house import code, judge, must_find, project, read, sources

MOST_FILES = 20
# Public functions that are not in a file of their header's name, by reason.
ELSEWHERE = {
    "a set of values is made by its strategy, whose room is above": "choir_values_new",
    "choir_check ends the program, and status.c does not": "choir_check choir_check_new",
    "a chain counts them, whichever its sources": "choir_dataset_dropped choir_dataset_skipped",
    "it sizes a stage's buffer": "choir_component_resize",
    "a table of kernels is a registry, and its kernels are run":
        "choir_kernel_attribute_bytes choir_kernel_run choir_register_kernel",
    "a replay is a run of one replica, and a hook of the strategy":
        "choir_strategy_run_replica choir_strategy_set_gradient_hook",
    "library.h gives out what instruction_set.h knows": "choir_instruction_set",
}
HEAD = r"^(?!static\b|typedef\b)[A-Za-z][^;{}()#]*?\b(ch(?:oir|i)_\w+)\s*\("
DEFINED = re.compile(HEAD + r"[^;{}]*\)[^;{}]*\{", re.M)
DECLARED = re.compile(HEAD + r"[^;{}]*\)[^;{}]*;", re.M)


def stem(path):
    """tree for tree.c, loops for loops.avx2.c."""
    return path.name.split(".")[0]


def found(pattern, paths):
    """{function: file}"""
    return {name: path for path in paths for name in pattern.findall(code(read(path)))}


def belongs(path, header):
    """Whether the shared functions of a file may be declared in a header."""
    folder = path.parent
    return header.parent == folder and (stem(header) == stem(path) or stem(header) == folder.name
                                        and len(list(folder.glob("*.c"))) <= MOST_FILES)


def implements(path, header, root):
    """Whether the functions of a public header may be in a file."""
    if header.parent.name == "extend":
        return stem(path) == stem(header).removesuffix("_table")
    return stem(header) in (stem(path), *path.parent.relative_to(root / "src").parts)


def check(root):
    complaints = []
    files = sources(root, "src")
    defined = found(DEFINED, [path for path in files if path.suffix == ".c"])
    shared = found(DECLARED, [path for path in files if path.suffix == ".h"])
    public = found(DECLARED, sources(root, "include"))
    for name, path in sorted(defined.items()):
        header = shared.get(name) or public.get(name)
        if header is None or (name in shared and belongs(path, header)) or \
                (name in public and implements(path, header, root)):
            continue
        complaints.append(f"{name}: is in {path.relative_to(root)}, declared in "
                          f"{header.relative_to(root)}")
    return complaints


def but_elsewhere(complaints, exceptions):
    """The complaints, without those of the exceptions. One that nothing needs is a complaint too."""
    names = {name for group in exceptions.values() for name in group.split()}
    found = {complaint.split(": ")[0] for complaint in complaints}
    return [complaint for complaint in complaints if complaint.split(": ")[0] not in names] + \
        [f"{name}: is where its header says; take it out of ELSEWHERE" for name in sorted(names - found)]


many = {f"src/op/plain/f{i}.c": f"int chi_f{i}(void)\n{{\n}}\n" for i in range(MOST_FILES)}
must_find(check, {
    "src/op/tree.h": "int chi_tree_new(\n\t\tint a);\nint chi_lost(void) CHOIR_PRINTF(1, 2);\n"
                     "static inline int chi_small(void)\n{\n\treturn chi_lost();\n}\n",
    "src/op/op.h": "int chi_run(void);\nint chi_tree_free(void);\n",
    "src/op/tree.c": "int chi_tree_new(\n\t\tint a)\n{\n\tchi_run();\n}\nint chi_tree_free(void)\n{\n}\n"
                     "int choir_tree_grow(void)\n{\n}\nint choir_op_new(void)\n{\n}\n",
    "src/op/call.c": "int chi_lost(void)\n{\n}\nint chi_run(void)\n{\n}\nint choir_tape_end(void)\n{\n}\n",
    "src/op/tape/record.c": "int choir_tape_new(void)\n{\n}\nint choir_register_device(void)\n{\n}\n",
    "src/op/plain/plain.h": "int chi_f0(void);\nint chi_one_more(void);\n",
    "src/op/plain/f_one_more.c": "int chi_one_more(void)\n{\n}\n",
    "src/op/plain/f1.h": "int chi_f1(void);\n",
    "src/device/device.c": "int choir_register_cpu(void)\n{\n}\n",
    "include/choir/tree.h": "int choir_tree_grow(void);\n",
    "include/choir/tape.h": "int choir_tape_new(void);\nint choir_tape_end(void);\n",
    "include/choir/op.h": "int choir_op_new(void);\n",
    "include/choir/extend/device_table.h": "int choir_register_device(void);\nint choir_register_cpu(void);\n",
    **many,
}, ["chi_lost: is in src/op/call.c, declared in src/op/tree.h", "choir_tape_end: is in src/op/call.c",
    "choir_register_device: is in src/op/tape/record.c, declared in include/choir/extend/device_table.h",
    "chi_f0: is in src/op/plain/f0.c, declared in src/op/plain/plain.h", "chi_one_more: "])
must_find(lambda root: but_elsewhere(["a: is", "b: is"], {"why": "b c"}), {}, ["a: is", "c: is where"])
judge(but_elsewhere(check(project()), ELSEWHERE))

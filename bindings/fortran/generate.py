"""Writes the module choir for Fortran (ISO_C_BINDING) from Choir's public headers:

    generate.py INCLUDE_FOLDER FILE

The declarations are those of bindings/python; pycparser reads them. The rules:
- An enumerator is a parameter. Fortran ignores case, so an enumerator with the name of a function ends
  in _VALUE: CHOIR_RELU_VALUE beside choir_relu.
- A struct of options is a type whose size is set. An argument that points to one is optional: absent is
  NULL. So are texts, which end with c_null_char.
- Another pointer is a c_ptr, and a pointer to a function is a c_funptr.
- An array is an assumed-size array. A pointer to a pointer or to a number is an optional inout argument.
"""

import re
import sys
from pathlib import Path

import cffi
from pycparser import c_ast, c_parser

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import declarations  # noqa: E402

PRELUDE = """typedef unsigned long size_t; typedef long int64_t; typedef unsigned long uint64_t;
typedef int int32_t; typedef unsigned int uint32_t; typedef unsigned char uint8_t; typedef _Bool bool;
"""
KINDS = {"int": "integer(c_int)", "unsigned": "integer(c_int)", "unsigned int": "integer(c_int)",
         "char": "character(kind=c_char)", "float": "real(c_float)", "double": "real(c_double)",
         "_Bool": "logical(c_bool)", "bool": "logical(c_bool)", "size_t": "integer(c_size_t)",
         "int64_t": "integer(c_int64_t)", "uint64_t": "integer(c_int64_t)", "int32_t": "integer(c_int32_t)",
         "uint32_t": "integer(c_int32_t)", "uint8_t": "integer(c_int8_t)", "long": "integer(c_long)"}
ARRAYS = {"f32": "real(c_float)", "f64": "real(c_double)", "i32": "integer(c_int32_t)", "i64": "integer(c_int64_t)"}
MOST_AXES = 5
ZERO = {"i": "0", "r": "0", "l": ".false.", "c": "c_null_char"}


class Headers:
    """The parsed declarations, and what their names mean."""

    def __init__(self, include: Path) -> None:
        text = declarations.declarations(include)
        self.ffi = cffi.FFI()
        self.ffi.cdef(text)
        self.tree = c_parser.CParser().parse(PRELUDE + text).ext
        self.types = {n.name: n.type for n in self.tree if isinstance(n, c_ast.Typedef)}
        self.functions = [n for n in self.tree if isinstance(n, c_ast.Decl) and isinstance(n.type, c_ast.FuncDecl)
                          and not n.name.endswith("_")]
        self.names = {f.name.lower() for f in self.functions}

    def structs(self) -> list[str]:
        """The names of the structs that have members, in order."""
        return [name for name, node in self.types.items() if self.members(name)]

    def members(self, name: str) -> list:
        node = self.types.get(name)
        if not isinstance(node, c_ast.TypeDecl) or not isinstance(node.type, c_ast.Struct):
            return []
        if node.type.decls is None:  # declared before, or only named
            whole = [n.type for n in self.tree if isinstance(n, c_ast.Decl) and isinstance(n.type, c_ast.Struct)
                     and n.type.name == node.type.name and n.type.decls]
            return whole[0].decls if whole else []
        return node.type.decls

    def value(self, node) -> str:
        """A type that is passed by value: its Fortran declaration."""
        if isinstance(node, c_ast.PtrDecl):
            return "type(c_funptr)" if self.is_function(node.type) else "type(c_ptr)"
        if isinstance(node.type, c_ast.Enum):
            return "integer(c_int)"
        if isinstance(node.type, c_ast.Struct):
            return f"type({node.type.name})"
        word = " ".join(node.type.names)
        if word in KINDS:
            return KINDS[word]
        if self.members(word):
            return f"type({word})"
        return self.value(self.types[word])

    def is_function(self, node) -> bool:
        if isinstance(node, c_ast.FuncDecl):
            return True
        name = node.type.names[0] if isinstance(node, c_ast.TypeDecl) and hasattr(node.type, "names") else None
        return name in self.types and isinstance(self.types[name], c_ast.FuncDecl)

    def argument(self, node) -> str:
        """The declaration of a function's argument, without its name."""
        kind = node.type
        if isinstance(kind, c_ast.ArrayDecl):
            intent = "in" if "const" in (kind.type.quals or []) else "inout"
            return f"{self.value(kind.type)}, intent({intent}), dimension(*)"
        if not isinstance(kind, c_ast.PtrDecl) or self.is_function(kind.type):
            return f"{self.value(kind)}, value"
        inner = kind.type
        constant = "const" in (inner.quals or [])
        if isinstance(inner, c_ast.PtrDecl):
            return f"{self.value(inner)}, intent({'in' if constant else 'inout'}), optional"
        name = inner.type.names[0] if hasattr(inner.type, "names") else inner.type.name
        if name == "char" and constant:
            return "character(kind=c_char), intent(in), optional, dimension(*)"
        if self.members(name):
            return f"type({name}), intent({'in' if constant else 'inout'}), optional"
        base = self.value(inner) if name in KINDS or name in self.types and \
            isinstance(self.types[name].type, (c_ast.Enum, c_ast.IdentifierType)) else None
        if base is None or name in ("void", "char"):
            return "type(c_ptr), value"
        return f"{base}, intent({'in), dimension(*' if constant else 'inout'}), optional"


def wrapped(text: str, indent: str = "") -> list[str]:
    """A statement in lines of at most 110 columns."""
    lines, rest = [], indent + text
    while len(rest) > 110:
        cut = rest.rfind(" ", 0, 108)
        lines.append(rest[:cut] + " &")
        rest = indent + "    " + rest[cut + 1:]
    return lines + [rest]


def enumerators(h: Headers) -> list[str]:
    lines = []
    for node in h.tree:
        enum = node.type.type if isinstance(node, c_ast.Typedef) and isinstance(node.type, c_ast.TypeDecl) else \
            node.type if isinstance(node, c_ast.Decl) else None
        if not isinstance(enum, c_ast.Enum) or enum.values is None:
            continue
        for one in enum.values.enumerators:
            name = one.name + ("_VALUE" if one.name.lower() in h.names else "")
            lines.append(f"integer(c_int), parameter :: {name} = {getattr(h.ffi.dlopen(None), one.name)}")
    return lines


def type_lines(h: Headers, name: str) -> list[str]:
    lines = [f"type, bind(c) :: {name}"]
    for i, member in enumerate(h.members(name)):
        node, lengths = member.type, []
        kind = dict(h.ffi.typeof(name).fields)[member.name].type
        while isinstance(node, c_ast.ArrayDecl):
            lengths.insert(0, str(kind.length))  # the last axis of C is the first of Fortran
            node, kind = node.type, kind.item
        dims = f", dimension({', '.join(lengths)})" if lengths else ""
        kind = h.value(node)
        start = {"type(c_ptr)": "c_null_ptr", "type(c_funptr)": "c_null_funptr"}.get(kind)
        if start is None:
            start = f"{kind[5:-1]}()" if kind.startswith("type(") else ZERO[kind[0]]
        if i == 0 and member.name == "size":
            start = str(h.ffi.sizeof(name))
        lines.append(f"  {kind}{dims} :: {member.name} = {start}")
    return lines + ["end type"]


def interface(h: Headers, function) -> list[str]:
    given = function.type.args.params if function.type.args else []
    if any(isinstance(p, c_ast.EllipsisParam) for p in given):
        return []
    given = [p for p in given if not (isinstance(p.type, c_ast.TypeDecl) and
                                      getattr(p.type.type, "names", None) == ["void"])]
    names = [p.name + ("_" if p.name.lower() == function.name.lower() else "") for p in given]
    result = None if getattr(function.type.type.type, "names", None) == ["void"] and \
        isinstance(function.type.type, c_ast.TypeDecl) else h.value(function.type.type)
    word = "subroutine" if result is None else "function"
    ending = "" if result is None else " result(r_)"
    lines = wrapped(f"{word} {function.name}({', '.join(names)}) bind(c){ending}", "  ") + ["    import"]
    for param, name in zip(given, names):
        lines += wrapped(f"{h.argument(param)} :: {name}", "    ")
    if result:
        lines.append(f"    {result} :: r_")
    return lines + [f"  end {word}"]


def arrays(own: str, template: str) -> str:
    """added.f90 with the procedures of arrays.f90 for each kind and number of axes."""
    names, procedures = [], ""
    for dtype, kind in ARRAYS.items():
        for rank in range(1, MOST_AXES + 1):
            names.append(f"{dtype}_{rank}")
            procedures += template.replace("@name@", names[-1]).replace("@dtype@", f"CHOIR_{dtype.upper()}") \
                .replace("@kind@", kind).replace("@axes@", ",".join(":" * rank))
    for word in ("array", "to", "column"):
        listed = "\n".join(wrapped(f"module procedure {', '.join(f'{word}_{name}' for name in names)}", "  "))
        own = own.replace(f"  module procedure @{word}@", listed)
    return own.replace("@procedures@\n", procedures)


def module(include: Path, own: str) -> str:
    h = Headers(include)
    lines = ["! Choir for Fortran. Generated by bindings/fortran/generate.py from the headers, which are the reference.",
             "! An enumerator with the name of a function ends in _VALUE. An absent optional argument is NULL.",
             "module choir", "use, intrinsic :: iso_c_binding", "implicit none", "public", ""]
    lines += enumerators(h) + [""]
    for name in h.structs():
        lines += type_lines(h, name) + [""]
    lines.append("interface")
    for function in h.functions:
        lines += interface(h, function)
    return "\n".join(lines + ["end interface", ""]) + own


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: generate.py INCLUDE_FOLDER FILE")
    own = [Path(__file__).with_name(name).read_text() for name in ("added.f90", "arrays.f90")]
    try:
        found = module(Path(sys.argv[1]), arrays(*own))
    except (OSError, ValueError, KeyError) as failure:
        sys.exit(f"generate.py: {failure}")
    repeated = re.findall(r"(?im)^(?:integer\(c_int\), parameter|type, bind\(c\)) :: (\w+)", found)
    twice = {name for name in repeated if [one.lower() for one in repeated].count(name.lower()) > 1}
    if twice:
        sys.exit(f"generate.py: Fortran would see one name twice: {', '.join(sorted(twice))}")
    Path(sys.argv[2]).write_text(found)

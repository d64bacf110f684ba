"""Arguments and options of C: names of enumerators and dtypes, options as dicts, and what 0 means.

In C, an option that is 0 has its default. Here only an option that is left out, or None, has it: False is CHOIR_OFF,
and 0 is CHOIR_ZERO where a field takes it. If 0 would be another number, it is an error. The comments of the headers
say which fields these are."""

from __future__ import annotations

import difflib
import functools
import operator
import os
import re
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _declarations
from .library import ffi, lib
from .names import OPTIONS, unknown

DTYPES = {lib.CHOIR_F32: "f4", lib.CHOIR_F64: "f8", lib.CHOIR_I32: "i4", lib.CHOIR_I64: "i8",
          lib.CHOIR_U8: "u1", lib.CHOIR_BOOL: "?", lib.CHOIR_F16: "f2"}
WIDER = {np.dtype(given): np.dtype(wider) for given, wider in (("i1", "i4"), ("i2", "i4"), ("u2", "i4"), ("u4", "i8"))}
CODES = {np.dtype(name): code for code, name in DTYPES.items()}
_PADDINGS = {"valid": 0, "same": lib.CHOIR_PADDING_SAME}
_kept: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()  # what a struct points to


@functools.cache
def names(type_: Any) -> dict[str, int]:
    """The enumerators by what follows the words that all have: "relu" for CHOIR_RELU, "r2" for CHOIR_METRIC_R2."""
    every = list(type_.elements.values())
    common = len(os.path.commonprefix(every).rpartition("_")[0]) + 1
    return {name[common:].lower(): number for number, name in sorted(type_.elements.items())}


def whole(what: str, value: Any, least: int) -> int:
    """A whole number, or an error."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{what} is {value!r}; expected a whole number")
    if number < least:
        raise ValueError(f"{what} is {value!r}; expected {least} or more")
    return number


def constant(type_: Any, value: Any) -> Any:
    """An enumerator by its name, a toggle of a bool, a dtype of numpy's, or what it is."""
    if type_.kind != "enum":
        return _PADDINGS.get(value, value) if isinstance(value, str) and type_.cname == "int" else value
    if type_.cname == "choir_toggle" and value in (False, True):
        return lib.CHOIR_ON if value else lib.CHOIR_OFF
    known = names(type_)
    if isinstance(value, str) and value in known:
        return known[value]
    if type_.cname == "choir_dtype" and not isinstance(value, int):
        try:
            return CODES[np.dtype(value)]
        except (KeyError, TypeError):
            pass
    if not isinstance(value, int):
        error = unknown("", value, known)
        raise ValueError(f"{error}. The option log names a log: log={value!r}") if type_.cname == "choir_monitor" else error
    return value


@functools.cache
def parameters(name: str) -> list[str]:
    """The names of a function's parameters."""
    found = re.search(rf"\b{name}\(([^()]*)\);", _declarations.C)
    return re.findall(r"(\w+)(?:\[\])?(?:,|$)", found[1]) if found and found[1] != "void" else []


LEFT_OUT: Any = object()


def fields_of(type_: Any) -> list[str]:
    """The names of the options, if this is a pointer to a struct of options."""
    fields = type_.item.fields if type_.kind == "pointer" and type_.item.kind == "struct" else None
    return [name for name, _ in fields[1:]] if fields and fields[0][0] == "size" else []


def placed(where: str, types: Sequence[Any], named: list[str], arguments: Sequence[Any], keywords: dict[str, Any]) -> list[Any]:
    """The arguments by position, or LEFT_OUT. The keyword in_ is the parameter in. Keywords that are no parameters are
    options, if the last argument has options."""
    if len(arguments) > len(named):
        raise TypeError(f"{where}: {len(arguments)} arguments; expected {len(named)}: {', '.join(named)}")
    given, more = [*arguments, *[LEFT_OUT] * (len(named) - len(arguments))], {}
    for keyword, value in keywords.items():
        keyword = keyword.removesuffix("_")
        if keyword not in named:
            more[keyword] = value
        elif given[named.index(keyword)] is LEFT_OUT:
            given[named.index(keyword)] = value
        else:
            raise TypeError(f"{where}: {keyword} is given twice; expected it once")
    if more and not (types and fields_of(types[-1])):
        raise TypeError(f"{where}: no parameter {next(iter(more))!r}; expected {', '.join(named) or 'none'}")
    if more:
        given[-1] = {**(given[-1] if isinstance(given[-1], dict) else {}), **more}
    return given


def explain(where: str, types: Iterable[Any], named: Iterable[str], values: Sequence[Any]) -> None:
    """Raises TypeError for the first value that C does not take."""
    for type_, name, value in zip(types, named, values):
        try:
            ffi.new(ffi.getctype(type_, "[1]"), [value])
        except (TypeError, OverflowError):
            is_options = type_.kind == "pointer" and type_.item.kind == "struct" and fields_of(type_)
            expected = f"a dict of {type_.item.cname}" if is_options else {"char *": "a str"}.get(type_.cname, type_.cname)
            raise TypeError(f"{where}: {name} is {value!r}; expected {expected}") from None


def number(what: str, value: Any, zero: str | None) -> Any:
    """A number for a field with this meaning of 0."""
    if zero == "zero" and isinstance(value, (int, float)) and value <= 0:
        if value < 0:
            raise ValueError(f"{what} is {value!r}; expected 0 or more")
        return lib.CHOIR_ZERO
    if zero == "default" and isinstance(value, (int, float)) and value == 0:
        raise ValueError(f"{what} is 0; expected another number, or leave it out for the default")
    return value


def _field(type_: Any, value: Any, kept: list[Any]) -> Any:
    if type_.kind == "pointer":
        if isinstance(value, str):
            value = ffi.new("char[]", value.encode())
        elif isinstance(value, dict):
            value = options(type_, value)
        elif isinstance(value, (list, tuple)) and value and all(isinstance(one, dict) for one in value):
            given = ffi.new(ffi.getctype(type_.item, "[]"), len(value))
            for to, one in zip(given, value):
                _fill(to, type_.item, one, kept)
            value = given
        else:
            value = getattr(value, "pointer", value)
        kept.append(value)
    return constant(type_, value)


def _fill(to: Any, type_: Any, given: dict[str, Any], kept: list[Any]) -> None:
    fields, what = dict(type_.fields), type_.cname.removeprefix("choir_").removesuffix("_options")
    zeros = _declarations.ZEROS.get(type_.cname, {})
    size = fields.pop("size", None)
    if size is not None:
        to.size = ffi.sizeof(type_)
    for name, value in given.items():
        if name not in fields:
            near = sorted(fields, key=lambda one: (OPTIONS.get(name) != one, -difflib.SequenceMatcher(None, name, one).ratio()))
            raise TypeError(f"{what}: no option {name!r}; options: {', '.join(near)}")
        if value is None:
            continue
        of = fields[name].type
        try:
            found = number(name, _field(of, value, kept), zeros.get(name))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{what}: {name}: {error}" if str(error)[:len(name)] != name else f"{what}: {error}") from None
        explain(what, [of], [name], [found])
        setattr(to, name, found)
        if isinstance(value, (list, tuple)) and "n_" + name in fields:
            setattr(to, "n_" + name, len(value))


def options(type_: Any, given: Any) -> Any:
    """A struct of this type from a dict, or NULL."""
    if given is None:
        return ffi.NULL
    if not isinstance(given, dict):
        raise TypeError(f"{type_.item.cname}: {type(given).__name__}; expected a dict")
    made, kept = ffi.new(type_), list[Any]()
    _kept[made] = kept
    _fill(made, type_.item, given, kept)
    return made

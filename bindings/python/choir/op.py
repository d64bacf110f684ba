"""The library's operations, by the signatures of its headers: choir.op.maximum(a, b). help(choir.op.maximum) shows
the header's comment."""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from . import _declarations
from .library import check, ffi, lib
from .options import LEFT_OUT, constant, explain, fields_of, options, parameters, placed
from .tensor import Frame, Tensor, shape_of

ALL_AXES = ffi.new("choir_axes *", [0xFFFFFFFF])[0]
_TENSOR, _FRAME = ffi.typeof("choir_tensor *"), ffi.typeof("choir_frame *")


def axis(*axes: int) -> Any:
    """A set of axes for a reduction. An int or a tuple in its place is the same."""
    return ffi.new("choir_axes *", [builtins.sum({1 << (31 & a) for a in axes})])[0]


def _argument(frame: Any, type_: Any, value: Any) -> Any:
    if type_ == _TENSOR:
        return ffi.NULL if value is None else frame.tensor(value).pointer
    if type_ == _FRAME:
        return frame.pointer
    if type_.kind == "pointer" and type_.item.kind == "struct" and (value is None or isinstance(value, dict)):
        return options(type_, value)
    if type_.kind == "struct" and type_.cname == "choir_shape":
        return shape_of(value)
    if type_.kind == "struct" and type_.cname == "choir_axes" and isinstance(value, (int, list, tuple)):
        return axis(*((value,) if isinstance(value, int) else value))
    if type_.cname == "char *" and isinstance(value, str):
        return value.encode()
    if type_.kind == "pointer":
        return ffi.NULL if value is None else getattr(value, "pointer", value)
    return 0 if value is None and type_.kind == "enum" and type_.cname != "choir_dtype" else constant(type_, value)


def _may_be_left_out(name: str, type_: Any, parameter: str) -> bool:
    if (name, parameter) in (("gru", "state"), ("transpose", "axes")):
        return True
    return bool(fields_of(type_)) or (type_.kind == "enum" and type_.cname != "choir_dtype")


@functools.cache
def signature(name: str) -> inspect.Signature:
    """The parameters of an operation. Fields of its options are keywords, too."""
    types, kinds = ffi.typeof(getattr(lib, "choir_" + name)).args, inspect.Parameter
    given = [kinds(parameter, kinds.POSITIONAL_OR_KEYWORD,
                   default=None if _may_be_left_out(name, type_, parameter) else kinds.empty)
             for type_, parameter in zip(types, parameters("choir_" + name))]
    return inspect.Signature(given + [kinds(field, kinds.KEYWORD_ONLY, default=None)
                                      for field in fields_of(types[-1])])


def _bound(name: str, types: Sequence[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
    """The arguments by position, with None for those that may be left out."""
    named = parameters("choir_" + name)
    given = placed(name, types, named, arguments, keywords)
    for i, (type_, parameter) in enumerate(zip(types, named)):
        if given[i] is LEFT_OUT:
            if not _may_be_left_out(name, type_, parameter):
                raise TypeError(f"{name}: {parameter} is missing; expected {', '.join(named)}")
            given[i] = None
    return given


@functools.cache
def _call(name: str) -> Callable[..., Tensor]:
    fn = getattr(lib, "choir_" + name)
    types = ffi.typeof(fn).args
    plain = len(types) if all(type_ == _TENSOR for type_ in types) else -1

    def operation(*arguments: Any, **keywords: Any) -> Tensor:
        if len(arguments) == plain and not keywords:  # most calls: without conversions
            pointers = [a._pointer for a in arguments if type(a) is Tensor and a._frame._pointer is not None]
            if len(pointers) == plain:
                frame, found = arguments[0]._frame, fn(*pointers)
                if frame.program is not None and found:
                    frame.program.note("choir_" + name, pointers, found)
                return Tensor(frame, found)
        given = _bound(name, types, arguments, keywords)
        frame = next((getattr(a, "frame", a) for a in given if isinstance(getattr(a, "frame", a), Frame)), None)
        if frame is None:
            raise TypeError(f"{name}: no tensor; expected one or more")
        try:
            given = [_argument(frame, *one) for one in zip(types, given)]
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        try:
            return Tensor(frame, frame.call("choir_" + name, *given))
        except (TypeError, OverflowError):
            explain(name, types, parameters("choir_" + name), given)
            raise
    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = _declarations.DOCS.get("choir_" + name) or f"choir_{name} of the C headers."
    operation.__signature__ = signature(name)  # type: ignore[attr-defined]
    return operation


def _joined(name: str, tensors: Sequence[Tensor], axis: int) -> Tensor:
    frame = next((t.frame for t in tensors if isinstance(t, Tensor)), None)
    if frame is None:
        raise TypeError(f"{name}: no tensor; expected one or more")
    pointers = [frame.tensor(t).pointer for t in tensors]
    return Tensor(frame, frame.call("choir_" + name, len(pointers), pointers, axis))


def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Joins tensors along an axis."""
    return _joined("concat", tensors, axis)


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Joins tensors of one shape along a new axis."""
    return _joined("stack", tensors, axis)


def split(x: Tensor, n: int, axis: int = 0) -> list[Tensor]:
    """The n equal parts of an axis."""
    parts = ffi.new("choir_tensor *[]", n)
    check(x.frame.call("choir_split", x.pointer, axis, n, parts))
    return [Tensor(x.frame, part) for part in parts]


def top_k(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest elements along the last axis, and their indices."""
    values, indices = ffi.new("choir_tensor *[1]"), ffi.new("choir_tensor *[1]")
    check(x.frame.call("choir_top_k", x.pointer, k, values, indices))
    return Tensor(x.frame, values[0]), Tensor(x.frame, indices[0])


def _is_operation(name: str) -> bool:
    fn = getattr(lib, "choir_" + name, None)
    return fn is not None and ffi.typeof(fn).kind == "function" and ffi.typeof(fn).result == _TENSOR


def __dir__() -> list[str]:
    """The operations of choir/op.h and choir/nn.h."""
    own = ["ALL_AXES", "axis", "concat", "split", "stack", "top_k"]
    every = (name.removeprefix("choir_") for name in _declarations.DOCS)
    return sorted({*own, *(name for name in every if _is_operation(name) and name != "custom_op_apply")})


def __getattr__(name: str) -> Callable[..., Tensor]:
    if not _is_operation(name):
        raise AttributeError(f"choir.op has no {name}; the operations are those of choir/op.h and choir/nn.h")
    globals()[name] = _call(name)  # the next use does not come here
    return globals()[name]

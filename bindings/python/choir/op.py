"""The library's operations, by the signatures of its headers: choir.op.maximum(a, b)."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any

from .library import check, ffi, lib
from .options import constant, explain, options, parameters
from .tensor import Frame, Tensor, shape_of

ALL_AXES = ffi.new("choir_axes *", [0xFFFFFFFF])[0]
_TENSOR, _FRAME = ffi.typeof("choir_tensor *"), ffi.typeof("choir_frame *")


def axis(*axes: int) -> Any:
    """A set of axes for a reduction. An int or a tuple in its place is the same."""
    return ffi.new("choir_axes *", [builtins.sum({1 << (31 & a) for a in axes})])[0]


def _argument(frame: Any, type_: Any, value: Any) -> Any:
    if type_ == _TENSOR:
        return frame.tensor(value).pointer
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


@functools.cache
def _call(name: str) -> Callable[..., Tensor]:
    fn = getattr(lib, "choir_" + name)
    types = ffi.typeof(fn).args
    plain = len(types) if all(type_ == _TENSOR for type_ in types) else -1

    def operation(*arguments: Any) -> Tensor:
        if len(arguments) == plain: # most calls: without conversions
            pointers = [a._pointer for a in arguments if type(a) is Tensor and a._frame._pointer is not None]
            if len(pointers) == plain:
                frame, found = arguments[0]._frame, fn(*pointers)
                if frame.program is not None and found:
                    frame.program.note("choir_" + name, pointers, found)
                return Tensor(frame, found)
        frame = next((getattr(a, "frame", a) for a in arguments if isinstance(getattr(a, "frame", a), Frame)), None)
        if frame is None:
            raise TypeError(f"{name}: no tensor; expected one or more")
        if len(arguments) > len(types):
            raise TypeError(f"{name}: {len(arguments)} arguments; expected {len(types)}")
        given = list(arguments) + [None] * (len(types) - len(arguments)) # options may be left out
        try:
            given = [_argument(frame, *one) for one in zip(types, given)]
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        try:
            return Tensor(frame, frame.call("choir_" + name, *given))
        except (TypeError, OverflowError):
            explain(name, types, parameters("choir_" + name), given)
            raise
    operation.__name__ = name
    operation.__doc__ = f"choir_{name} of the C headers."
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


def __getattr__(name: str) -> Callable[..., Tensor]:
    fn = getattr(lib, "choir_" + name, None)
    if fn is None or ffi.typeof(fn).kind != "function" or ffi.typeof(fn).result != _TENSOR:
        raise AttributeError(f"choir.op has no {name}; the operations are those of choir/op.h and choir/nn.h")
    globals()[name] = _call(name)  # the next use does not come here
    return globals()[name]

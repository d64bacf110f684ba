"""Tensors of a replica's frame. A tensor that is used after its replica has returned raises Error."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import dlpack
from .library import Error, Status, address, check, failure, ffi, lib, made, short
from .options import CODES, DTYPES, WIDER

_begin_tape = short("choir_tape_begin", None)
_tape_type = ffi.typeof("choir_tape *")


def packed(array: Any, what: str = "array") -> tuple[np.ndarray, int, Any]:
    """A C-ordered array of one of Choir's dtypes, its dtype and its shape. Another order is copied, and so is an
    integer dtype that a wider one holds. Another dtype is a TypeError."""
    array = np.asarray(array)
    array = np.require(array, WIDER.get(array.dtype.newbyteorder("=")), requirements="C")
    if array.dtype not in CODES:
        raise TypeError(f"{what}: dtype {array.dtype}; expected {', '.join(map(str, [*CODES, *WIDER]))}. Convert it first, as by "
                        "array.astype(numpy.float32)")
    if array.ndim > lib.CHOIR_MAX_RANK:
        raise ValueError(f"{what}: rank {array.ndim}; expected at most {lib.CHOIR_MAX_RANK}")
    shape = ffi.new("choir_shape *", {"rank": array.ndim, "dim": list(array.shape)})
    return array, CODES[array.dtype], shape[0]


def dtype_of(code: int, what: str) -> np.dtype:
    """The dtype of numpy."""
    if code not in DTYPES:
        raise TypeError(f"{what}: numpy has no dtype {ffi.string(lib.choir_dtype_name(code)).decode()}; cast it first")
    return np.dtype(DTYPES[code])


def described(dtype: int, shape: Any) -> str:
    """A dtype and a shape as Choir's messages write them: f32 [2, 3]."""
    return f"{ffi.string(lib.choir_dtype_name(dtype)).decode()} {list(shape)}"


def shape_of(dims: Any) -> Any:
    """A choir_shape of a sequence of dimensions."""
    return ffi.new("choir_shape *", {"rank": len(dims), "dim": list(dims)})[0]


class Frame:
    """The frame of a replica, until the replica has returned."""

    __slots__ = ("_pointer", "program")

    def __init__(self, pointer: Any) -> None:
        self._pointer = pointer
        self.program: Any = None  # records the calls

    @property
    def pointer(self) -> Any:
        if self._pointer is None:
            raise Error(Status.STATE, "tensor: its replica has returned; expected a use inside the step")
        return self._pointer

    def close(self) -> None:
        self._pointer = None

    def call(self, name: str, *arguments: Any) -> Any:
        """Calls a function of the library."""
        found = getattr(lib, name)(*arguments)
        if self.program is not None and bool(found) == isinstance(found, ffi.CData):  # it succeeded
            self.program.note(name, arguments, found or None)
        return found

    def refuse_recording(self, what: str) -> None:
        """Raises Error if the calls are recorded."""
        if self.program is not None:
            raise Error(Status.UNSUPPORTED, f"function: {what} in a step that is recorded; return the tensor, or run the "
                        "step without choir.function")

    def tensor(self, value: Any) -> Tensor:
        """A tensor as it is, a number for the other operand's dtype, or an array as a constant."""
        if isinstance(value, Tensor):
            return value
        if isinstance(value, (int, float)):
            return Tensor(self, self.call("choir_number", self.pointer, value))
        return self.constant(value)

    def constant(self, array: Any) -> Tensor:
        """A tensor with a copy of the array's elements."""
        array, dtype, shape = packed(array)
        return Tensor(self, self.call("choir_constant", self.pointer, dtype, shape, ffi.from_buffer(array)))

    def from_dlpack(self, array: Any) -> Tensor:
        """A tensor that shares the memory of a numpy array, a torch tensor or another object with __dlpack__.
        Do not write to it before the tensor is gone."""
        self.refuse_recording("from_dlpack")
        return Tensor(self, dlpack.take(self.pointer, array))


@contextlib.contextmanager
def own_frame() -> Iterator[Frame]:
    """A frame of the program, outside of steps."""
    frame = Frame(made(lib.choir_frame_new(ffi.NULL)))
    try:
        yield frame
    finally:
        pointer = frame.pointer
        frame.close()
        lib.choir_frame_free(pointer)


class Tape:
    """Records the operations of a frame; see choir/tape.h."""

    __slots__ = ("_frame", "_pointer")

    def __init__(self, frame: Frame) -> None:
        self._frame, self._pointer = frame, ffi.cast(_tape_type, _begin_tape(address(frame.pointer)))
        if not self._pointer:
            raise failure()
        if frame.program is not None:
            frame.program.note("choir_tape_begin", (frame.pointer,))

    @property
    def pointer(self) -> Any:
        if self._frame._pointer is None:
            self._frame.pointer  # raises
        return self._pointer

    def gradient(self, y: Tensor, sources: list[Tensor], recorded: bool = False) -> list[Tensor]:
        """The gradients of the sum of y with respect to the sources. Recorded ones have gradients, too."""
        found = ffi.new("choir_tensor *[]", len(sources))
        name = "choir_tape_gradient_recorded" if recorded else "choir_tape_gradient"
        check(self._frame.call(name, self.pointer, y.pointer, len(sources), [s.pointer for s in sources], found))
        return [Tensor(self._frame, one) for one in found]


class Tensor:
    """A value of a frame: its elements never change."""

    __array_ufunc__ = None  # numpy leaves array + tensor to __radd__, and refuses numpy.exp(tensor)

    __slots__ = ("_frame", "_pointer")

    def __init__(self, frame: Frame, pointer: Any) -> None:
        self._frame, self._pointer = frame, pointer
        if not pointer:
            check(lib.choir_frame_status(frame.pointer))
            raise failure()

    def __repr__(self) -> str:
        if self._frame._pointer is None:
            return "<choir.Tensor of a replica that has returned>"
        return f"<choir.Tensor {described(lib.choir_tensor_dtype(self._pointer), self.shape)}>"

    @property
    def frame(self) -> Frame:
        return self._frame

    @property
    def pointer(self) -> Any:
        if self._frame._pointer is None:
            self._frame.pointer  # raises
        return self._pointer

    @property
    def dtype(self) -> np.dtype:
        return dtype_of(lib.choir_tensor_dtype(self.pointer), "tensor")

    @property
    def shape(self) -> tuple[int, ...]:
        shape = lib.choir_tensor_shape(self.pointer)
        return tuple(shape.dim[0:shape.rank])

    def numpy(self) -> np.ndarray:
        """A copy of the elements; waits for them."""
        self._frame.refuse_recording("numpy() of a tensor")
        array = np.empty(self.shape, self.dtype)
        check(lib.choir_tensor_to_host(self.pointer, ffi.from_buffer(array), array.nbytes))
        return array

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        """For numpy.from_dlpack and torch.from_dlpack: shares the memory, which lives as long as the consumer
        needs it. Memory that may change is copied."""
        self._frame.refuse_recording("__dlpack__ of a tensor")
        return dlpack.export(self.pointer, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __float__(self) -> float:
        self._frame.refuse_recording("float() of a tensor")
        value = lib.choir_tensor_number(self.pointer)
        check(lib.choir_frame_status(self._frame.pointer))
        return value

    def __bool__(self) -> bool:
        return float(self) != 0

    def _with(self, name: str, other: Any, swapped: bool = False, *more: Any) -> Tensor:
        other = self._frame.tensor(other)
        pair = (other.pointer, self.pointer) if swapped else (self.pointer, other.pointer)
        return Tensor(self._frame, self._frame.call(name, *pair, *more))

    def __add__(self, other: Any) -> Tensor:
        return self._with("choir_add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Tensor:
        return self._with("choir_subtract", other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._with("choir_subtract", other, True)

    def __mul__(self, other: Any) -> Tensor:
        return self._with("choir_multiply", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Tensor:
        return self._with("choir_divide", other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._with("choir_divide", other, True)

    def __matmul__(self, other: Any) -> Tensor:
        return self._with("choir_matmul", other, False, lib.CHOIR_TRANSPOSED_NONE)

    def __rmatmul__(self, other: Any) -> Tensor:
        return self._with("choir_matmul", other, True, lib.CHOIR_TRANSPOSED_NONE)

    def __neg__(self) -> Tensor:
        return Tensor(self._frame, self._frame.call("choir_negate", self.pointer))

    def __abs__(self) -> Tensor:
        return Tensor(self._frame, self._frame.call("choir_abs", self.pointer))

    def __pow__(self, other: Any) -> Tensor:
        return self._with("choir_pow", other)

    def __rpow__(self, other: Any) -> Tensor:
        return self._with("choir_pow", other, True)

    def __lt__(self, other: Any) -> Tensor:
        return self._with("choir_less", other)

    def __le__(self, other: Any) -> Tensor:
        return self._with("choir_less_equal", other)

    def __gt__(self, other: Any) -> Tensor:
        return self._with("choir_greater", other)

    def __ge__(self, other: Any) -> Tensor:
        return self._with("choir_greater_equal", other)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return self._with("choir_equal", other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return self._with("choir_not_equal", other)

    __hash__ = object.__hash__  # of the object, as in torch

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(lib, "choir_" + name):
            raise AttributeError(f"tensor: no method {name!r}; choir.op.{name}(x, ..) is the operation")
        raise AttributeError(f"tensor: no attribute {name!r}")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("tensor: a scalar has no length")
        return self.shape[0]

    def __getitem__(self, where: Any) -> Tensor:
        """Elements by whole numbers and slices of step 1, as in numpy: x[2:5], x[:, 0], x[..., -1]."""
        given, found, kept = list(where) if isinstance(where, tuple) else [where], self, []
        at = next((i for i, one in enumerate(given) if one is Ellipsis), None)  # == of arrays and tensors gives one
        if at is not None:
            given[at:at + 1] = [slice(None)] * (self.ndim - len(given) + 1)
        if len(given) > self.ndim:
            raise IndexError(f"tensor: {len(given)} indices for shape {list(self.shape)}")
        for axis, (one, size) in enumerate(zip(given, self.shape)):
            if isinstance(one, slice) and one.step in (None, 1):
                first, last, _ = one.indices(size)
                kept.append(max(0, last - first))
            elif isinstance(one, (int, np.integer)) and not isinstance(one, bool):
                if not -size <= one < size:
                    raise IndexError(f"tensor: index {one} of axis {axis}, which has {size} elements")
                first = int(one) % size
                last = first + 1
            else:
                raise TypeError(f"tensor: index {one!r}; expected whole numbers and slices of step 1. choir.op.gather selects rows")
            if (first, last) != (0, size):
                found = Tensor(self._frame, self._frame.call("choir_slice", found.pointer, axis, first, max(0, last - first)))
        kept += self.shape[len(given):]
        if len(kept) < self.ndim:
            found = Tensor(self._frame, self._frame.call("choir_reshape", found.pointer, shape_of(kept)))
        return found

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


def packed(array: Any) -> tuple[np.ndarray, int, Any]:
    """A C-ordered array of one of Choir's dtypes, its dtype and its shape. Another order is copied, and so is an
    integer dtype that a wider one holds. Another dtype is a TypeError."""
    array = np.asarray(array)
    array = np.require(array, WIDER.get(array.dtype.newbyteorder("=")), requirements="C")
    if array.dtype not in CODES:
        raise TypeError(f"array: dtype {array.dtype}; expected {', '.join(map(str, [*CODES, *WIDER]))}. Convert it first, as by "
                        "array.astype(numpy.float32)")
    if array.ndim > lib.CHOIR_MAX_RANK:
        raise ValueError(f"array: rank {array.ndim}; expected at most {lib.CHOIR_MAX_RANK}")
    shape = ffi.new("choir_shape *", {"rank": array.ndim, "dim": list(array.shape)})
    return array, CODES[array.dtype], shape[0]


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

    __array_priority__ = 100  # numpy leaves array + tensor to __radd__

    __slots__ = ("_frame", "_pointer")

    def __init__(self, frame: Frame, pointer: Any) -> None:
        self._frame, self._pointer = frame, pointer
        if not pointer:
            check(lib.choir_frame_status(frame.pointer))
            raise failure()

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
        code = lib.choir_tensor_dtype(self.pointer)
        if code not in DTYPES:
            raise TypeError("tensor: numpy has no such dtype; cast it first")
        return np.dtype(DTYPES[code])

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

    def __getitem__(self, rows: slice) -> Tensor:
        """Rows along the first axis: x[2:5]."""
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise TypeError("tensor: only slices of rows are possible, as x[2:5]; expected step 1")
        first, last, _ = rows.indices(self.shape[0])
        return Tensor(self._frame, self._frame.call("choir_slice", self.pointer, 0, first, max(0, last - first)))

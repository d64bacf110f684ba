"""The shared library, its declarations, and its failures as exceptions."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import cffi

from . import _declarations

ffi = cffi.FFI()
ffi.cdef(_declarations.C)
# The library beside this module (in a wheel), or the one that the loader finds; CHOIR_LIBRARY names
# another file.
_inside = os.path.join(os.path.dirname(__file__), "libchoir.so.0.1")
lib: Any = ffi.dlopen(os.environ.get("CHOIR_LIBRARY") or (_inside if os.path.exists(_inside) else "libchoir.so.0.1"))

Status = _declarations.Status


def address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def short(name: str, *arguments: Any) -> Callable[..., int]:
    """A function of the library that gives a pointer, and takes and gives pointers as numbers. It keeps Python's
    lock. For calls that compute next to nothing and wait for no other replica: handing over the lock takes longer."""
    return ctypes.PYFUNCTYPE(ctypes.c_size_t, *(ctypes.c_size_t if a is None else a for a in arguments))(
        address(getattr(lib, name)))


class Error(Exception):
    """A failure of Choir: its status, and Choir's line of text."""

    __module__ = "choir"  # for tracebacks

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = Status(status)


def failure() -> Error:
    """The last failure of this thread, without an earlier one, which an exception has told."""
    text = ffi.string(lib.choir_error()).decode(errors="replace")
    return Error(lib.choir_error_status(), text.partition("; the last failure before it: ")[0])


def check(status: int) -> None:
    """Raises Error unless an action succeeded."""
    if status:
        found = failure()
        raise found if found.status == status else Error(status, Status(status).name)


def made(pointer: Any) -> Any:
    """What a constructor or an expression gave; raises Error if it failed."""
    if not pointer:
        raise failure()
    return pointer


def pointer_of(where: str, value: Any, expected: str) -> Any:
    """value.pointer; TypeError if value is something else, as an array."""
    try:
        return value.pointer
    except AttributeError:
        raise TypeError(f"{where}: {type(value).__name__}; expected {expected}") from None


def counted(n: int, what: str) -> str:
    """1 replica, 2 replicas."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"

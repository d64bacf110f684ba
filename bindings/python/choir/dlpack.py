"""DLPack's capsules: memory shared with numpy, torch and others, in its versions 0.x ("dltensor") and 1.x
("dltensor_versioned"). The binary interface is https://dmlc.github.io/dlpack/latest/c_api.html."""

from __future__ import annotations

import ctypes
from typing import Any

from .library import Error, Status, ffi, lib, made

_dl = ffi.__class__()
_dl.cdef("""
typedef struct { void *data; int32_t device, index, rank; uint8_t code, bits; uint16_t lanes;
                 int64_t *shape, *strides; uint64_t byte_offset; } tensor;
typedef struct managed { tensor of; void *context; void (*deleter)(struct managed *); } managed;
typedef struct versioned { uint32_t major, minor; void *context; void (*deleter)(struct versioned *);
                           uint64_t flags; tensor of; } versioned;
""")
_OLD, _NEW, _USED = b"dltensor", b"dltensor_versioned", b"used_"
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_destructor_type = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
# A destructor gets an object without references, so these take a plain pointer.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_SetName", _api))
_names = {name: ctypes.create_string_buffer(name) for name in (_OLD, _NEW, _USED + _OLD, _USED + _NEW)}
_kept: dict[int, Any] = {}  # structs that wait for their deleters, by address


def _delete(type_: str, address: int) -> None:
    managed = _dl.cast(type_, address)
    if managed.deleter != _dl.NULL:
        managed.deleter(managed)


@_destructor_type
def _destroy(capsule: int) -> None:
    """Deletes what nobody has taken out of its capsule."""
    for name, type_ in ((_OLD, "managed *"), (_NEW, "versioned *")):
        if _is_valid(capsule, name):
            _delete(type_, _pointer(capsule, name))


def _capsule(managed: Any, name: bytes) -> Any:
    address = int(_dl.cast("uintptr_t", managed))
    return _api.PyCapsule_New(address, ctypes.cast(_names[name], ctypes.c_char_p), _destroy)


def _other(kind: str, managed: Any, type_: str) -> Any:
    """A struct of the other version with the same tensor, whose deleter deletes this one."""
    other = _dl.new(f"{kind} *", {"of": managed.of, "context": managed})

    def deleter(_self: Any) -> None:
        _delete(type_, int(_dl.cast("uintptr_t", managed)))
        _kept.pop(int(_dl.cast("uintptr_t", other)), None)
    function = _dl.callback(f"void(*)(struct {kind} *)", deleter)
    other.deleter = function
    _kept[int(_dl.cast("uintptr_t", other))] = (other, function)
    return other


def export(tensor: Any, max_version: tuple[int, int] | None) -> Any:
    """A capsule that shares the tensor's memory, for __dlpack__."""
    managed = _dl.cast("versioned *", int(ffi.cast("uintptr_t", made(lib.choir_tensor_to_dlpack(tensor)))))
    if max_version is not None and max_version[0] >= 1:
        return _capsule(managed, _NEW)
    return _capsule(_other("managed", managed, "versioned *"), _OLD)


def take(frame: Any, array: Any) -> Any:
    """The tensor of an object with __dlpack__, in a frame; its memory is shared."""
    if array.__dlpack_device__()[0] != 1:
        raise Error(Status.UNSUPPORTED, f"from_dlpack: device {array.__dlpack_device__()}; expected memory of the host")
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except TypeError:  # before DLPack 1.0
        capsule = array.__dlpack__()
    name = _NEW if _is_valid(id(capsule), _NEW) else _OLD
    if not _is_valid(id(capsule), name):
        raise TypeError(f"from_dlpack: {type(array).__name__} gave no capsule of DLPack")
    address = _pointer(id(capsule), name)
    _rename(id(capsule), ctypes.cast(_names[_USED + name], ctypes.c_char_p))
    if name == _OLD:
        other = _other("versioned", _dl.cast("managed *", address), "managed *")
        other.major = 1
        address = int(_dl.cast("uintptr_t", other))
    return lib.choir_from_dlpack(frame, ffi.cast("struct DLManagedTensorVersioned *", address))

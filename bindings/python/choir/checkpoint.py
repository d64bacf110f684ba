"""Saves of everything that a training needs to go on."""

from __future__ import annotations

import os
from typing import Any

from .library import Error, Status, check, ffi, lib, made
from .options import options
from .strategy import Strategy


class Checkpoints:
    """A folder of saves of a strategy: its weights, optimizers, metrics, and positions of Datasets. max_to_keep and the
    other options are those of choir_checkpoint_options. The folder is locked until close, or the end of a with block:
    with choir.Checkpoints(strategy, folder, max_to_keep=3) as saves."""

    _pointer: Any = None

    def __init__(self, strategy: Strategy, folder: str | os.PathLike[str], **given: Any) -> None:
        self._strategy, self._folder = strategy, os.fspath(folder)
        self._pointer = made(lib.choir_checkpoint_manager_new(
            strategy.pointer, os.fsencode(folder), options(ffi.typeof("choir_checkpoint_options *"), given)))

    def __repr__(self) -> str:
        return f"<choir.Checkpoints in {self._folder!r}{', closed' if self._pointer is None else ''}>"

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()

    @property
    def pointer(self) -> Any:
        self._strategy.pointer  # raises if it is closed
        if self._pointer is None:
            raise Error(Status.STATE, f"checkpoints: {self._folder} is closed")
        return self._pointer

    def close(self) -> None:
        """Waits for writes, and unlocks the folder."""
        pointer, self._pointer = self._pointer, None
        if pointer is not None and not self._strategy.closed:
            lib.choir_checkpoint_manager_free(pointer)

    def save(self, **metadata: Any) -> None:
        """Saves the strategy, outside of steps, with metadata: save(epoch=3, val_loss=0.2)."""
        lines = "\n".join(f"{name}={value}" for name, value in metadata.items())
        check(lib.choir_checkpoint_manager_save(self.pointer, lines.encode() if lines else ffi.NULL))

    def restore(self) -> bool:
        """Restores the last save. False: there is none."""
        status = lib.choir_checkpoint_manager_restore_latest(self.pointer)
        if status == lib.CHOIR_NOT_FOUND:
            return False
        check(status)
        self._strategy.restores += 1
        return True

    def metadata(self, name: str) -> str | None:
        """What save was given under this name, of the last save or restore, or None."""
        latest = lib.choir_checkpoint_manager_latest(self.pointer)
        if not latest:
            return None
        check(lib.choir_checkpoint_manager_wait(self.pointer))
        steps = ffi.gc(made(lib.choir_checkpoint_list_new(os.fsencode(self._folder))), lib.choir_checkpoint_list_free)
        for i in range(lib.choir_checkpoint_list_steps(steps)):
            path = ffi.string(lib.choir_checkpoint_list_path(steps, i))
            if os.path.basename(path) == os.path.basename(ffi.string(latest)):
                found = lib.choir_checkpoint_list_metadata(steps, i, name.encode())
                return ffi.string(found).decode() if found else None
        return None

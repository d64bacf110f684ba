"""Datasets of numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .library import Status, check, counted, ffi, lib, made
from .options import whole
from .strategy import Strategy
from .tensor import described, packed


class Batch:
    """The parts of a global batch, one for each replica. It keeps its memory, which a later batch then uses again."""

    __slots__ = ("_strategy", "_spare", "_owned", "_pointer")

    def __init__(self, strategy: Strategy, spare: list[Any], owned: list[Any], pointer: Any) -> None:
        self._strategy, self._spare, self._owned, self._pointer = strategy, spare, owned, pointer

    def __del__(self) -> None:
        if len(self._spare) < 2:
            self._spare.append(self._pointer)
        else:
            self._owned.remove(self._pointer)

    @property
    def pointer(self) -> Any:
        if self._strategy.closed:
            self._strategy.pointer  # raises
        return self._pointer

    def __repr__(self) -> str:
        return "<choir.Batch>"


def distribute(strategy: Strategy, arrays: dict[str, tuple[np.ndarray, int, Any]], batch: int, shuffle: int | bool,
               seed: int, *, copy: bool = True, checkpoint: bool = True) -> Any:
    """A distributed dataset of packed arrays. Without copy, the arrays live as long as it. A checkpoint of the strategy
    has its position, if checkpoint is true."""
    kept = [ffi.new("char[]", name.encode()) for name in arrays]
    given = ffi.new("choir_column[]", len(arrays))
    for column, name, (array, dtype, shape) in zip(given, kept, arrays.values()):
        column.name, column.dtype, column.data = name, dtype, ffi.from_buffer(array)
        column.shape.rank = shape.rank - 1
        for i in range(shape.rank - 1):
            column.shape.dim[i] = shape.dim[i + 1]
    examples = len(next(iter(arrays.values()))[0])
    data = made(lib.choir_memory_dataset_new(examples, len(arrays), given, copy))
    if shuffle:
        data = lib.choir_dataset_shuffle(data, lib.CHOIR_ALL if shuffle is True else shuffle, seed)
    how = ffi.new("choir_input_options *", {"size": ffi.sizeof("choir_input_options"),
                                            "checkpoint": lib.CHOIR_ON if checkpoint else lib.CHOIR_OFF})
    return made(lib.choir_strategy_distribute_dataset(strategy.pointer, lib.choir_dataset_batch(data, batch), how))


class Dataset:
    """Batches of numpy arrays, whose first axes are the examples, for the replicas of a strategy:
    Dataset(strategy, {"x": x, "y": y}, batch=64, shuffle=True, seed=1). The arrays are copied. shuffle is the number of
    examples among which the next one is drawn; True: all. len gives the number of batches."""

    def __init__(self, strategy: Strategy, columns: dict[str, Any], batch: int, shuffle: int | bool = False,
                 seed: int = 0) -> None:
        if not isinstance(columns, dict) or not columns:
            raise TypeError(f"dataset: {type(columns).__name__}; expected a dict of arrays, as {{\"x\": x, \"y\": y}}")
        arrays = {name: packed(array, f"dataset: column {name!r}") for name, array in columns.items()}
        lengths = {name: shape.dim[0] if shape.rank else None for name, (_, _, shape) in arrays.items()}
        if len(set(lengths.values())) != 1 or None in lengths.values():
            raise ValueError("dataset: lengths " + ", ".join(f"{name} {'none' if n is None else n}" for name, n in lengths.items())
                             + "; expected one length for all columns")
        self._batch = whole("dataset: batch", batch, 1)
        if not isinstance(shuffle, bool):
            shuffle = whole("dataset: shuffle", shuffle, 0)
        self._text = (f"{counted(next(iter(lengths.values())), 'example')} in batches of {self._batch}: "  # type: ignore[arg-type]
                      + ", ".join(f"{name} {described(dtype, array.shape[1:])}" for name, (array, dtype, _) in arrays.items()))
        self._strategy = strategy
        self._begun: int | None = None  # the strategy's restores at the begin of a pass that has not ended
        self._spare: list[Any] = []  # memory of batches that are gone
        # All memory of batches. If only a batch had its memory, the collector of cycles (of an exception's frames)
        # would free this memory before __del__ keeps it.
        self._owned: list[Any] = []
        self._pointer = distribute(strategy, arrays, self._batch, shuffle, seed)

    def __repr__(self) -> str:
        return f"<choir.Dataset of {self._text}>"

    def __len__(self) -> int:
        return lib.choir_distributed_dataset_cardinality(self.pointer)

    @property
    def pointer(self) -> Any:
        if self._strategy.closed:
            self._strategy.pointer  # raises
        return self._pointer

    def __iter__(self) -> Iterator[Batch]:
        """The batches of one pass. A pass that was left before its end is given up, unless a restore has set the position."""
        end, following = int(Status.END), lib.choir_distributed_dataset_next
        if self._begun == self._strategy.restores:
            check(lib.choir_distributed_dataset_rewind(self.pointer))
        self._begun = self._strategy.restores
        values = ffi.new("choir_values **")
        while True:
            spare = self._spare.pop() if self._spare else ffi.NULL
            values[0] = spare
            status = following(self.pointer, values)
            pointer = spare
            if not spare and values[0]:
                pointer = ffi.gc(values[0], lib.choir_values_free)
                self._owned.append(pointer)
            if status and pointer:
                self._spare.append(pointer)
            if status == end:
                break
            check(status)
            yield Batch(self._strategy, self._spare, self._owned, pointer)
            del pointer, spare
        self._begun = None
        check(lib.choir_distributed_dataset_rewind(self._pointer))

"""Datasets of numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .library import Status, check, ffi, lib, made
from .strategy import Strategy
from .tensor import packed


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


class Dataset:
    """Batches of numpy arrays, whose first axes are the examples, for the replicas of a strategy:
    Dataset(strategy, {"x": x, "y": y}, batch=64, shuffle=1000, seed=1). The arrays are copied."""

    def __init__(self, strategy: Strategy, columns: dict[str, Any], batch: int, shuffle: int = 0,
                 seed: int = 0) -> None:
        arrays = {name: packed(array) for name, array in columns.items()}
        lengths = {array.shape[:1] for array, _, _ in arrays.values()}
        if len(lengths) != 1 or () in lengths:
            raise ValueError(f"dataset: lengths {sorted(lengths)}; expected one length for all columns")
        kept = [ffi.new("char[]", name.encode()) for name in arrays]
        given = ffi.new("choir_column[]", len(arrays))
        for column, name, (array, dtype, shape) in zip(given, kept, arrays.values()):
            column.name, column.dtype, column.data = name, dtype, ffi.from_buffer(array)
            column.shape.rank = shape.rank - 1
            for i in range(shape.rank - 1):
                column.shape.dim[i] = shape.dim[i + 1]
        data = made(lib.choir_memory_dataset_new(lengths.pop()[0], len(arrays), given, True))
        if shuffle:
            data = lib.choir_dataset_shuffle(data, shuffle, seed)
        self._strategy, self._begun = strategy, False
        self._spare: list[Any] = []  # memory of batches that are gone
        # All memory of batches. If only a batch had its memory, the collector of cycles (of an exception's frames)
        # would free this memory before __del__ keeps it.
        self._owned: list[Any] = []
        self._pointer = made(lib.choir_strategy_distribute_dataset(
            strategy.pointer, lib.choir_dataset_batch(data, batch), ffi.NULL))

    @property
    def pointer(self) -> Any:
        if self._strategy.closed:
            self._strategy.pointer  # raises
        return self._pointer

    def __iter__(self) -> Iterator[Batch]:
        """The batches of one pass. A pass that was left before its end is given up."""
        end, following = int(Status.END), lib.choir_distributed_dataset_next
        if self._begun:
            check(lib.choir_distributed_dataset_rewind(self.pointer))
        self._begun = True
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
        self._begun = False
        check(lib.choir_distributed_dataset_rewind(self._pointer))

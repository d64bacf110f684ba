"""Examples as arrays, as fit, evaluate and predict of Keras take them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dataset import distribute
from .library import ffi, lib
from .options import whole
from .strategy import Strategy
from .tensor import packed

BATCH_SIZE = 32  # as in Keras


@dataclass
class Columns:
    """The names of the columns that a model reads, None if the first data decide."""

    input: str | None
    labels: str | None
    sample_weights: str | None

    def take(self, data: Any, labels: bool) -> None:
        """Fills in the names, as C does, from the first two columns of a distributed dataset."""
        for field, i in (("input", 0), ("labels", 1))[:1 + labels]:
            column = lib.choir_distributed_dataset_column(data, i)
            if getattr(self, field) is None and column:
                setattr(self, field, ffi.string(column.name).decode())


Arrays = dict[str, tuple[np.ndarray, int, Any]]


def _array(what: str, value: Any) -> tuple[np.ndarray, int, Any]:
    array = np.asarray(value)
    packed_array = packed(array.astype(np.float32) if array.dtype == np.float64 else array, what)
    if not array.ndim:
        raise ValueError(f"{what}: one value; expected an array whose first axis has the examples")
    return packed_array


def arrays(where: str, x: Any, y: Any, sample_weight: Any, columns: Columns, classes: bool = True) -> Arrays:
    """The columns of these arrays, the input first and the labels second, as C takes them. x may be a dict of
    arrays by column. float64 becomes float32, as in Keras, and so do labels that are not classes."""
    given: Arrays = {name: _array(f"{where}: x[{name!r}]", array) for name, array in x.items()} if isinstance(x, dict) else {
        columns.input or "x": _array(f"{where}: x", x)}
    if not given:
        raise ValueError(f"{where}: x is empty; expected an array or a dict of arrays")
    labels = columns.labels or "y"
    others = [name for name in given if name != labels] or [labels]
    first = columns.input if columns.input is not None and columns.input in given else others[0]
    found = {first: given.pop(first)}
    if y is not None:
        if labels in found or labels in given:
            raise ValueError(f"{where}: x has a column {labels!r}, and so has y; expected labels in one of them")
        y = np.asarray(y)
        found[labels] = _array(f"{where}: y", y if classes or y.dtype.kind not in "biu" else y.astype(np.float32))
    elif labels in given:
        found[labels] = given.pop(labels)
    found |= given
    examples = len(found[first][0])
    if sample_weight is not None and columns.sample_weights is None:
        raise ValueError(f"{where}: sample_weight for a model without a column of weights; expected "
                         "choir.Model(..., sample_weights=\"w\")")
    if columns.sample_weights is not None and labels in found and columns.sample_weights not in found:
        weights = np.ones(examples, np.float32) if sample_weight is None else sample_weight
        found[columns.sample_weights] = _array(f"{where}: sample_weight", weights)
    for name, (array, _, _) in found.items():
        if len(array) != examples:
            raise ValueError(f"{where}: column {name!r} has {len(array)} examples, and {first!r} has {examples}; expected one number")
    return found


def split(given: Arrays, fraction: float) -> tuple[Arrays, Arrays]:
    """The first examples, and the last ones, which are this fraction of all."""
    examples = len(next(iter(given.values()))[0])
    if not isinstance(fraction, (int, float)) or not 0 < fraction < 1:
        raise ValueError(f"fit: validation_split is {fraction!r}; expected a number between 0 and 1")
    at = math.floor(examples * (1 - fraction))
    if at == 0:
        raise ValueError(f"fit: validation_split {fraction} of {examples} examples leaves none for the training")
    return tuple({name: packed(array[rows]) for name, (array, _, _) in given.items()}  # type: ignore[return-value]
                 for rows in (slice(at), slice(at, None)))


@contextmanager
def opened(strategy: Strategy, given: Arrays, batch_size: Any, where: str, shuffle: bool = False, **more: Any) -> Iterator[Any]:
    """A distributed dataset of the arrays, which is freed at the end."""
    batch = BATCH_SIZE if batch_size is None else whole(f"{where}: batch_size", batch_size, 1)
    data = distribute(strategy, given, batch, bool(shuffle), strategy.seed, copy=False, **more)
    try:
        yield data
    finally:
        lib.choir_distributed_dataset_free(data)

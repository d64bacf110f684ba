"""Layers, optimizers and metrics. Make them in a strategy's scope, and use them in its steps."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from .library import check, ffi, lib, made
from .op import _options
from .strategy import current
from .tensor import Frame, Tape, Tensor


class _Owned:
    """What a strategy owns: it is gone with the strategy."""

    def __init__(self, pointer: Any) -> None:
        self._strategy, self._pointer = current(), made(pointer)

    @property
    def pointer(self) -> Any:
        if self._strategy.closed:
            self._strategy.pointer  # raises
        return self._pointer


class Layer(_Owned):
    """A layer: layer("dense", "hidden", 784, 128, "relu")."""

    def __call__(self, x: Tensor) -> Tensor:
        return Tensor(x._frame, x._frame.call("choir_layer_apply", self.pointer, x.pointer))


@functools.cache
def _names(type_: Any) -> dict[str, int]:
    """The enumerators by what follows the words that all have: "relu" for CHOIR_RELU, "r2" for CHOIR_METRIC_R2."""
    names = list(type_.elements.values())
    common = len(os.path.commonprefix(names).rpartition("_")[0]) + 1
    return {name[common:].lower(): number for number, name in sorted(type_.elements.items())}


def _constant(type_: Any, value: Any) -> Any:
    """An enumerator by its name, or what it is."""
    if type_.kind != "enum" or not isinstance(value, str):
        return value
    names = _names(type_)
    if value not in names:
        raise ValueError(f"{value!r} is unknown; known: {', '.join(names)}")
    return names[value]


def _made(what: str, kind: str, arguments: tuple[Any, ...]) -> Any:
    """A choir_WHAT of choir_KIND_new with these arguments. Missing ones are 0 or NULL, the library's defaults."""
    fn = getattr(lib, f"choir_{kind}_new", None)
    if fn is None or ffi.typeof(fn).result != ffi.typeof(f"choir_{what} *"):
        raise ValueError(f"{what}: {kind!r} is unknown; the kinds are those of choir/{what}.h")
    types, given = ffi.typeof(fn).args, []
    if len(arguments) > len(types):
        raise TypeError(f"{what} {kind}: {len(arguments)} arguments; expected {len(types)}")
    for type_, value in zip(types, list(arguments) + [None] * (len(types) - len(arguments))):
        if isinstance(value, str) and type_.kind == "pointer":
            value = ffi.new("char[]", value.encode())
        elif isinstance(value, Layer):
            value = value.pointer
        elif type_.kind == "pointer":
            value = _options(type_, value)
        given.append(0 if value is None else _constant(type_, value))
    return fn(*given)


def layer(kind: str, *arguments: Any) -> Layer:
    """choir_KIND_new with these arguments: layer("conv2d", "c", 1, 32, 3, {"padding": -1})."""
    current()
    return Layer(_made("layer", kind, arguments))


def sequential(*layers: Layer) -> Layer:
    """One layer that applies these, one after another."""
    return Layer(lib.choir_sequential_new(len(layers), [one.pointer for one in layers]))


class Optimizer(_Owned):
    """An optimizer by its kind ("adam"), with the fields of choir_optimizer_options."""

    def __init__(self, kind: str, **options: Any) -> None:
        number = _constant(ffi.typeof("choir_optimizer_kind"), kind)
        current()
        super().__init__(lib.choir_optimizer_new(
            number, _options(ffi.typeof("choir_optimizer_options *"), options)))

    def minimize(self, loss: Tensor, tape: Tape) -> None:
        """The backward pass and the update: called in all replicas."""
        status = loss._frame.call("choir_optimizer_minimize", self.pointer, loss.pointer, tape.pointer)
        if status:
            check(status)


class Metric(_Owned):
    """A metric by its kind, "mean", "accuracy", "r2" and so on, or by choir_KIND_new of choir/metric.h with more
    arguments: Metric("p", "precision", 0.5)."""

    def __init__(self, name: str, kind: str = "mean", *arguments: Any) -> None:
        current()
        if hasattr(lib, f"choir_{kind}_new"):
            super().__init__(_made("metric", kind, (name, *arguments)))
        else:
            super().__init__(lib.choir_metric_new(name.encode(), _constant(ffi.typeof("choir_metric_kind"), kind)))

    def update(self, values_or_labels: Tensor, scores: Tensor | None = None) -> None:
        check(values_or_labels._frame.call("choir_metric_update", self.pointer, values_or_labels.pointer,
                                           ffi.NULL if scores is None else scores.pointer))

    def result(self) -> float:
        return lib.choir_metric_result(self.pointer)

    def confusion_matrix(self) -> np.ndarray:
        """Of a metric "confusion_matrix": row i, column j counts the examples of class i with their highest score at j."""
        frame = Frame(lib.choir_frame_new(ffi.NULL))
        try:
            return Tensor(frame, lib.choir_metric_confusion_matrix(self.pointer, frame.pointer)).numpy()
        finally:
            lib.choir_frame_free(frame.pointer)

    def reset(self) -> None:
        check(lib.choir_metric_reset(self.pointer))

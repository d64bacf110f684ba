"""Layers, optimizers and metrics. Make them in a strategy's scope, and use them in its steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .library import check, ffi, lib, made
from .options import constant, explain, number, options, parameters
from .strategy import Calls, Replica, Variable, current, late
from .tensor import Tape, Tensor, own_frame


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

    def __call__(self, x: Tensor, lengths: Any = None) -> Tensor:
        """Applies the layer; with lengths [n], to sequences [n, t, ..] with padding behind them."""
        if not isinstance(x, Tensor):
            raise TypeError(f"layer: {type(x).__name__}; expected a Tensor of a step, as r.argument(\"x\")")
        if lengths is not None:
            return Tensor(x._frame, x._frame.call("choir_layer_apply_sequences", self.pointer, x.pointer,
                                                  x._frame.tensor(lengths).pointer))
        return Tensor(x._frame, x._frame.call("choir_layer_apply", self.pointer, x.pointer))

    @property
    def variables(self) -> list[Variable]:
        """The variables of the layer and of the layers in it."""
        return [Variable.of(self._strategy, lib.choir_layer_variable(self.pointer, i))
                for i in range(lib.choir_layer_variables(self.pointer))]


# What arguments of constructors are if they are left out. Other numbers must be given.
_DEFAULTS = {"stride": 0, "padding": 0, "epsilon": 0, "thresholds": 0, "threshold": 0.5}


def _made(what: str, kind: str, arguments: tuple[Any, ...]) -> Any:
    """A choir_WHAT of choir_KIND_new with these arguments."""
    name = f"choir_{kind}_new"
    fn = getattr(lib, name, None)
    if fn is None or ffi.typeof(fn).result != ffi.typeof(f"choir_{what} *"):
        raise ValueError(f"{what}: {kind!r} is unknown; the kinds are those of choir/{what}.h")
    types, named, given = ffi.typeof(fn).args, parameters(name), []
    if len(arguments) > len(types):
        raise TypeError(f"{what} {kind}: {len(arguments)} arguments; expected {len(types)}")
    for type_, parameter, value in zip(types, named, list(arguments) + [None] * (len(types) - len(arguments))):
        if isinstance(value, str) and type_.kind == "pointer":
            value = ffi.new("char[]", value.encode())
        elif isinstance(value, Layer):
            value = value.pointer
        elif type_.kind == "pointer":
            value = options(type_, value)
        elif value is None and type_.kind == "primitive":
            if parameter not in _DEFAULTS:
                raise TypeError(f"{what} {kind}: {parameter} is missing; expected {', '.join(named)}")
            value = _DEFAULTS[parameter]
        elif value is not None:
            value = number(f"{what} {kind}: {parameter}", value, "zero" if parameter == "epsilon" else None)
        try:
            given.append(0 if value is None else constant(type_, value))
        except ValueError as error:
            raise ValueError(f"{what} {kind}: {parameter}: {error}") from None
    explain(f"{what} {kind}", types, named, given)
    return fn(*given)


def layer(kind: str, *arguments: Any) -> Layer:
    """choir_KIND_new with these arguments: layer("conv2d", "c", 1, 32, 3, {"padding": -1})."""
    current()
    return Layer(_made("layer", kind, arguments))


def sequential(*layers: Layer) -> Layer:
    """One layer that applies these, one after another."""
    return Layer(lib.choir_sequential_new(len(layers), [one.pointer for one in layers]))


class Optimizer(_Owned):
    """An optimizer by its kind ("adam"), with the fields of choir_optimizer_options. schedule is a dict of
    choir_schedule, or a function that gives the learning rate for the number of updates so far."""

    def __init__(self, kind: str, **given: Any) -> None:
        of = constant(ffi.typeof("choir_optimizer_kind"), kind)
        current()
        schedule = given.get("schedule")
        if callable(schedule):
            self._calls = Calls(late)
            rate = self._calls.function("double(*)(int64_t, void *)", lambda step, _: schedule(step), math.nan)
            given["schedule"] = {"kind": "function", "fn": rate}
        super().__init__(lib.choir_optimizer_new(of, options(ffi.typeof("choir_optimizer_options *"), given)))

    def minimize(self, loss: Tensor, tape: Tape, variables: Sequence[Variable] | None = None) -> None:
        """The backward pass and the update of all variables, or of these: called in all replicas."""
        if variables is None:
            status = loss._frame.call("choir_optimizer_minimize", self.pointer, loss.pointer, tape.pointer)
        else:
            status = loss._frame.call("choir_optimizer_minimize_variables", self.pointer, loss.pointer, tape.pointer,
                                      len(variables), [v.pointer for v in variables])
        if status:
            check(status)

    def add_gradient(self, replica: Replica, variable: Variable, gradient: Tensor) -> None:
        """Adds a replica's gradient of a variable, as for several losses: called in all replicas, in the same order."""
        check(replica.frame.call("choir_optimizer_add_gradient", self.pointer, replica.pointer, variable.pointer,
                                 gradient.pointer))

    def apply_gradients(self, replica: Replica) -> None:
        """The update, after the last gradient: called in all replicas."""
        check(replica.frame.call("choir_optimizer_apply_gradients", self.pointer, replica.pointer))

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next update."""
        return lib.choir_optimizer_learning_rate(self.pointer)

    def set_learning_rate(self, rate: float) -> None:
        """Sets the rate that the schedule multiplies, outside of steps."""
        check(lib.choir_optimizer_set_learning_rate(self.pointer, rate))

    def swap_averages(self) -> None:
        """Swaps the weights with their averages (ema_momentum), outside of steps; the next call swaps them back."""
        check(lib.choir_optimizer_swap_averages(self.pointer))


class Metric(_Owned):
    """A metric by its kind, "mean", "accuracy", "r2" and so on, or by choir_KIND_new of choir/metric.h with more
    arguments: Metric("p", "precision", 0.5)."""

    def __init__(self, name: str, kind: str = "mean", *arguments: Any) -> None:
        current()
        if hasattr(lib, f"choir_{kind}_new"):
            super().__init__(_made("metric", kind, (name, *arguments)))
        else:
            super().__init__(lib.choir_metric_new(name.encode(), constant(ffi.typeof("choir_metric_kind"), kind)))

    def update(self, values_or_labels: Tensor, scores: Tensor | None = None) -> None:
        check(values_or_labels._frame.call("choir_metric_update", self.pointer, values_or_labels.pointer,
                                           ffi.NULL if scores is None else scores.pointer))

    def result(self) -> float:
        return lib.choir_metric_result(self.pointer)

    def confusion_matrix(self) -> np.ndarray:
        """Of a metric "confusion_matrix": row i, column j counts the examples of class i with their highest score at j."""
        with own_frame() as frame:
            return Tensor(frame, lib.choir_metric_confusion_matrix(self.pointer, frame.pointer)).numpy()

    def reset(self) -> None:
        check(lib.choir_metric_reset(self.pointer))

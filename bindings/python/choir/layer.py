"""Layers, optimizers and metrics. Make them in a strategy's scope, and use them in its steps."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _declarations
from .library import check, counted, ffi, lib, made, pointer_of
from .names import LAYERS, METRICS, unknown
from .options import LEFT_OUT, constant, explain, fields_of, names, number, options, parameters, placed
from .strategy import Replica, Variable, current
from .tensor import Tape, Tensor, own_frame


class _Owned:
    """What a strategy owns: it is gone with the strategy."""

    _text = "that was not made"

    def __init__(self, pointer: Any, kind: str, name: str | None = None) -> None:
        self._strategy, self._pointer, self._text = current(), made(pointer), kind + (f' "{name}"' if name else "")

    def __repr__(self) -> str:
        return f"<choir.{type(self).__name__} {self._text}>"

    @property
    def pointer(self) -> Any:
        if self._strategy.closed:
            self._strategy.pointer  # raises
        return self._pointer


class Layer(_Owned):
    """A layer: layer("dense", "hidden", 784, 128, "relu")."""

    def __init__(self, pointer: Any, kind: str, name: str | None = None, layers: Sequence[Layer] = ()) -> None:
        super().__init__(pointer, kind, name)
        self.layers = list(layers)  # inside this one

    def __repr__(self) -> str:
        if "_text" not in self.__dict__ or self._strategy.closed:
            return super().__repr__()
        return f"<choir.Layer {self._text}: {counted(sum(math.prod(v.shape) for v in self.variables), 'parameter')}>"

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

    def get_weights(self) -> list[np.ndarray]:
        """Copies of the values of the variables, in their order."""
        return [v.numpy() for v in self.variables]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets all variables, as to what get_weights gave. Nothing changes if a shape is wrong."""
        variables, arrays = self.variables, [np.asarray(one) for one in weights]
        if len(arrays) != len(variables):
            raise ValueError(f"set_weights: {counted(len(arrays), 'array')}; expected {len(variables)}: "
                             f"{', '.join(v.name for v in variables)}")
        for v, array in zip(variables, arrays):
            if array.shape != v.shape:
                raise ValueError(f"set_weights: {v.name}: shape {list(array.shape)}; expected {list(v.shape)}")
        for v, array in zip(variables, arrays):
            v.assign(array.astype(v.dtype, copy=False))


# What arguments of constructors are if they are left out. Other numbers must be given.
_DEFAULTS = {"stride": 0, "padding": 0, "epsilon": 0, "thresholds": 0, "threshold": 0.5}


@functools.cache
def _kinds(what: str) -> list[str]:
    """The kinds of layers or metrics that have a constructor."""
    found = re.findall(rf"^choir_{what} \*choir_(\w+)_new\(", _declarations.C, re.M)
    return [kind for kind in found if kind not in ("sequential", "metric")]


def _made(what: str, kind: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, str | None]:
    """A choir_WHAT of choir_KIND_new with these arguments, and its name."""
    fn, named = getattr(lib, f"choir_{kind}_new"), parameters(f"choir_{kind}_new")
    types, where = ffi.typeof(fn).args, f"{what} {kind}"
    values = [None if one is LEFT_OUT else one for one in placed(where, types, named, arguments, keywords)]
    given, name = [], values[0] if named[:1] == ["name"] else None
    for type_, parameter, value in zip(types, named, values):
        if isinstance(value, str) and type_.kind == "pointer":
            value = ffi.new("char[]", value.encode())
        elif isinstance(value, Layer):
            value = value.pointer
        elif type_.kind == "pointer" and fields_of(type_):
            value = options(type_, value)
        elif value is None and (type_.kind == "primitive" or parameter == "name"):
            if parameter not in _DEFAULTS:
                raise TypeError(f"{where}: {parameter} is missing; expected {', '.join(named)}")
            value = _DEFAULTS[parameter]
        elif value is not None:
            value = number(f"{where}: {parameter}", value, "zero" if parameter == "epsilon" else None)
        try:
            given.append((ffi.NULL if type_.kind == "pointer" else 0) if value is None else constant(type_, value))
        except ValueError as error:
            raise ValueError(f"{where}: {parameter}: {error}") from None
    explain(where, types, named, given)
    return fn(*given), name


def layer(kind: str, *arguments: Any, **keywords: Any) -> Layer:
    """choir_KIND_new with these arguments, by position or by name: layer("dense", "d", 784, 10, activation="relu").
    Options are keywords, too: layer("conv2d", "c", 1, 32, 3, padding="same", stride=2)."""
    current()
    if kind not in (known := _kinds("layer")):
        raise unknown("layer:", kind, known, LAYERS)
    pointer, name = _made("layer", kind, arguments, keywords)
    return Layer(pointer, kind, name, [one for one in (*arguments, *keywords.values()) if isinstance(one, Layer)])


def sequential(*layers: Layer) -> Layer:
    """One layer that applies these, one after another."""
    for one in layers:
        pointer_of("sequential", one, "layers, as choir.sequential(a, b)")
    return Layer(lib.choir_sequential_new(len(layers), [one.pointer for one in layers]), "sequential", None, layers)


class Optimizer(_Owned):
    """An optimizer by its kind ("adam"), with the fields of choir_optimizer_options. schedule is a dict of
    choir_schedule, or a function that gives the learning rate for the number of updates so far."""

    def __init__(self, kind: str, **given: Any) -> None:
        kinds = names(ffi.typeof("choir_optimizer_kind"))
        if kind not in kinds:
            raise unknown("optimizer:", kind, kinds)
        text = ", ".join([kind, *(f"{name}={value!r}" for name, value in given.items())])
        calls, schedule = current().calls, given.get("schedule")
        if callable(schedule):
            rate = calls.function("double(*)(int64_t, void *)", lambda step, _: schedule(step), math.nan)
            given["schedule"] = {"kind": "function", "fn": rate}
        super().__init__(lib.choir_optimizer_new(kinds[kind], options(ffi.typeof("choir_optimizer_options *"), given)), text)

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
        rate = lib.choir_optimizer_learning_rate(self.pointer)
        self._strategy.calls.check(0)
        return rate

    def set_learning_rate(self, rate: float) -> None:
        """Sets the rate that the schedule multiplies, outside of steps."""
        check(lib.choir_optimizer_set_learning_rate(self.pointer, rate))

    def swap_averages(self) -> None:
        """Swaps the weights with their averages (ema_momentum), outside of steps; the next call swaps them back."""
        check(lib.choir_optimizer_swap_averages(self.pointer))


class Metric(_Owned):
    """A metric by its kind, "mean", "accuracy", "r2" and so on, or by choir_KIND_new of choir/metric.h with more
    arguments: Metric("p", "precision", 0.5). Without a kind, the name is the kind, or else it is a mean."""

    def __init__(self, name: str, kind: str | None = None, *arguments: Any, **keywords: Any) -> None:
        current()
        kinds, made_by_name = names(ffi.typeof("choir_metric_kind")), _kinds("metric")
        if kind is None:
            kind = name if name in kinds or name in made_by_name else "mean"
        if kind in made_by_name:
            super().__init__(_made("metric", kind, (name, *arguments), keywords)[0], kind, name)
        elif kind not in kinds:
            raise unknown("metric:", kind, [*kinds, *made_by_name], METRICS)
        elif arguments or keywords:
            raise TypeError(f"metric {kind}: {counted(len(arguments) + len(keywords), 'argument')} beside the name; expected none")
        else:
            super().__init__(lib.choir_metric_new(name.encode(), kinds[kind]), kind, name)

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

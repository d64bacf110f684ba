"""The training loop: Model.fit, evaluate and predict, as in Keras."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _declarations
from .arrays import Columns, arrays, opened, split
from .checkpoint import Checkpoints
from .dataset import Dataset
from .layer import Layer, Metric, Optimizer
from .library import check, ffi, lib, made, pointer_of
from .names import LOSSES, unknown
from .options import options, whole
from .strategy import Calls, Replica, Variable, current, late
from .summary import summary
from .tensor import Frame, Tensor, own_frame

# What Keras' fit has, and Choir elsewhere.
ELSEWHERE = {"class_weight": "choir.Model(..., class_weights={0: 1.0, 1: 3.0}) has it",
             "verbose": "fit prints nothing; a callback can print", "validation_freq": "validation_every is it",
             "validation_batch_size": "validation=choir.Dataset(...) has a batch of its own",
             "steps": "steps_per_epoch is it", "initial_epoch": "a fit with checkpoints goes on where it ended"}
MOMENTS = ("train_begin", "train_end", "epoch_begin", "epoch_end", "batch_begin", "batch_end", "validation_begin")


@dataclass(frozen=True)
class Event:
    """Where a training is; see choir_fit_event of choir/fit.h."""

    model: Model
    epoch: int
    epochs: int
    batch: int
    batches: int
    step: int


def _tensor(where: str, found: Any) -> Any:
    """The pointer of what a function of the program returned."""
    if not isinstance(found, Tensor):
        raise TypeError(f"{where}: returned {type(found).__name__}; expected a Tensor")
    return found.pointer


class Model:
    """What a step is: a layer, or a function of a replica that gives results; a loss; an optimizer; metrics.

    The loss is the name of a function of choir/nn.h ("mean_squared_error"), or a function of labels and
    results. A dict of class weights needs the largest class as a key; classes that it lacks have the weight 1.
    lengths is the column of the lengths of sequences with padding behind them. Make a model in a strategy's scope."""

    def __init__(self, net: Layer | Callable[[Replica], Tensor], loss: str | Callable[..., Tensor] | None = None,
                 optimizer: Optimizer | None = None, metrics: Sequence[Metric] = (), *, name: str | None = None,
                 input: str | None = None, labels: str | None = None, sample_weights: str | None = None,
                 class_weights: Sequence[float] | dict[int, float] = (), regularized: Layer | None = None,
                 lengths: str | None = None) -> None:
        self._strategy, self._calls = current(), Calls()
        self._metrics, self._net, self._optimizer = list(metrics), net, optimizer
        self._columns, self._passes = Columns(input, labels, sample_weights), 0
        if not isinstance(net, Layer) and not callable(net):
            raise TypeError(f"model: {type(net).__name__}; expected a layer, or a function of a replica")
        if isinstance(class_weights, dict):  # as in Keras: other classes have the weight 1
            class_weights = [class_weights.get(i, 1.0) for i in range(max(class_weights, default=-1) + 1)]
        given: dict[str, Any] = {"name": name, "input": input, "labels": labels, "sample_weights": sample_weights, "lengths": lengths,
                                 "n_metrics": len(self._metrics), "n_classes": len(class_weights)}
        lists = (ffi.new("choir_metric *[]", [pointer_of("model: metrics", m, "metrics, as choir.Metric(\"accuracy\")")
                                              for m in self._metrics]),
                 ffi.new("double[]", list(class_weights)))
        given["metrics"], given["class_weights"] = lists
        if isinstance(net, Layer):
            given["layer"] = net.pointer
        else:
            given["forward"] = self._calls.function("choir_forward_fn", self._forward, ffi.NULL)
        if regularized is not None:
            given["regularized"] = regularized.pointer
        if optimizer is not None:
            given["optimizer"] = pointer_of("model: optimizer", optimizer, "an optimizer, as choir.Optimizer(\"adam\")")
        if loss is not None:
            given["loss"] = self._loss(loss)
        self._has_classes = not isinstance(loss, str) or loss.startswith("sparse")
        of_loss = loss if isinstance(loss, str) else getattr(loss, "__name__", "function")
        self._text = [name or "model", *([] if loss is None else [f"loss {of_loss}"]),
                      *([] if optimizer is None else [f"optimizer {optimizer._text}"])]
        self._pointer = made(lib.choir_model_new(options(ffi.typeof("choir_model_options *"), given)))

    def __repr__(self) -> str:
        return f'<choir.Model "{self._text[0]}": {", ".join([*self._text[1:], self._net_text()])}>'

    def _net_text(self) -> str:
        return repr(self._net) if isinstance(self._net, Layer) else f"function {getattr(self._net, '__name__', self._net)}"

    @property
    def pointer(self) -> Any:
        self._strategy.pointer  # raises if it is closed
        return self._pointer

    def _layer(self, what: str) -> Layer:
        if not isinstance(self._net, Layer):
            raise TypeError(f"{what}: the model is a function, whose layers it does not know; expected {what} of the layers")
        return self._net

    @property
    def variables(self) -> list[Variable]:
        """The variables of a model that is a layer."""
        return self._layer("variables").variables

    def get_weights(self) -> list[np.ndarray]:
        """Copies of the values of the variables, in their order, of a model that is a layer."""
        return self._layer("get_weights").get_weights()

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets all variables, as to what get_weights gave, of a model that is a layer."""
        self._layer("set_weights").set_weights(weights)

    def summary(self) -> None:
        """Prints the layers of a model that is a layer, with their variables."""
        print(summary(self._text, self._layer("summary")))

    def _forward(self, pointer: Any, _user: Any) -> Any:
        replica = Replica(pointer)
        try:
            return _tensor("forward", self._net(replica))  # type: ignore[arg-type]
        finally:
            replica.frame.close()

    def _loss(self, loss: str | Callable[..., Tensor]) -> Any:
        if isinstance(loss, str):
            known = {name: getattr(lib, "choir_" + name) for name in _declarations.LOSSES}
            known = {name: fn for name, fn in known.items() if len(ffi.typeof(fn).args) == 2}
            if loss not in known:
                raise unknown("model: loss", loss, known, LOSSES)
            return known[loss]

        def call(labels: Any, results: Any) -> Any:
            if labels == ffi.NULL or results == ffi.NULL:
                return ffi.NULL  # the frame has the failure
            frame = Frame(lib.choir_tensor_frame(results))
            try:
                return _tensor("loss", loss(Tensor(frame, labels), Tensor(frame, results)))
            finally:
                frame.close()
        return self._calls.function("choir_loss_fn", call, ffi.NULL)

    def _callback(self, calls: Calls, callback: Any) -> dict[str, Any]:
        """A choir_callback of the object's methods. Each batch calls Python, so that Ctrl-C ends the training."""

        def of(fn: Callable[[Event], Any] | None) -> Any:
            def call(e: Any, _user: Any) -> int:
                if fn is not None:
                    fn(Event(self, e.epoch, e.epochs, e.batch, e.batches, e.step))
                return lib.CHOIR_OK
            return calls.function("choir_callback_fn", call)
        if callback is not None and not any(hasattr(callback, name) for name in MOMENTS):
            raise TypeError(f"callback {type(callback).__name__}: no method of a known name; expected one of "
                            f"{', '.join(MOMENTS)}, which get an Event")
        found = {name: of(getattr(callback, name)) for name in MOMENTS if hasattr(callback, name)}
        if callback is None:
            found["batch_end"] = of(None)
        return {"size": ffi.sizeof("choir_callback"), **found}

    def fit(self, x: Any, y: Any = None, *, batch_size: int | None = None, epochs: int = 1, validation_split: float = 0.0,
            validation_data: Any = None, shuffle: bool = True, sample_weight: Any = None, validation: Dataset | None = None,
            callbacks: Sequence[Any] = (), early_stopping: dict[str, Any] | None = None,
            reduce_on_plateau: dict[str, Any] | None = None, checkpoints: Checkpoints | str | os.PathLike[str] | None = None,
            **more: Any) -> dict[str, list[float]]:
        """Trains, and returns the history of each log.

        x is a Dataset, or an array, or a dict of arrays by column; y is the labels. batch_size (of all replicas; 32),
        validation_split (the last examples, before a shuffle), validation_data ((x, y), (x, y, sample_weight) or a
        Dataset), shuffle and sample_weight are as in Keras. The order of a shuffle depends on the strategy's seed and
        on the passes that the model has made. validation is a Dataset.

        A callback is an object with methods of the names
        train_begin, train_end, epoch_begin, epoch_end, batch_begin, batch_end and validation_begin, which get an Event. early_stopping
        and reduce_on_plateau have the fields of choir/fit.h, and so have the other options. checkpoints is a
        folder, or Checkpoints."""
        for name in more:
            if name in ELSEWHERE:
                raise TypeError(f"fit: no option {name!r}; {ELSEWHERE[name]}")
        if validation is not None and validation_data is not None:
            raise TypeError("fit: validation and validation_data; expected one of them")
        with contextlib.ExitStack() as stack:
            data, held = self._training(stack, x, y, batch_size, validation_split, shuffle, sample_weight)
            validated = validation_data if validation is None else validation
            if held is not None and validated is not None:
                raise TypeError("fit: validation_split and validation data; expected one of them")
            if isinstance(validated, (tuple, list)):
                if len(validated) not in (2, 3):
                    raise ValueError(f"fit: validation_data of {len(validated)} values; expected (x, y) or (x, y, sample_weight)")
                held = self._arrays("fit: validation_data", *validated)
            if held is not None:
                more["validation"] = stack.enter_context(opened(self._strategy, held, batch_size, "fit", checkpoint=False))
            elif validated is not None:
                more["validation"] = pointer_of("validation", validated, "a Dataset, or (x, y)")
            calls = Calls()
            given = ffi.new("choir_callback[]", [self._callback(calls, c) for c in [None, *callbacks]])
            more |= {"epochs": whole("fit: epochs", epochs, 1), "callbacks": given, "n_callbacks": len(given),
                     "early_stopping": early_stopping, "reduce_on_plateau": reduce_on_plateau,
                     "checkpoints": ffi.NULL if checkpoints is None else self._manager(stack, checkpoints)}
            self._check(calls, lib.choir_fit(self.pointer, data, options(ffi.typeof("choir_fit_options *"), more)))
        return self.history()

    def _manager(self, stack: contextlib.ExitStack, given: Checkpoints | str | os.PathLike[str]) -> Any:
        return (given if isinstance(given, Checkpoints) else stack.enter_context(Checkpoints(self._strategy, given))).pointer

    def _arrays(self, where: str, x: Any, y: Any = None, sample_weight: Any = None) -> Any:
        if y is None and (self._columns.labels or "y") not in (x if isinstance(x, dict) else ()):
            raise TypeError(f"{where}: no y; expected labels, or a Dataset")
        return arrays(where, x, y, sample_weight, self._columns, self._has_classes)

    def _dataset(self, where: str, x: Any, labels: bool = True, **others: Any) -> Any:
        """The pointer of a Dataset, which has no other arguments of arrays beside it; None if x is arrays."""
        if not isinstance(x, Dataset):
            if isinstance(x, (np.ndarray, dict)) or hasattr(x, "__array__"):
                return None
            raise TypeError(f"{where}: data: {type(x).__name__}; expected a Dataset, an array, or a dict of arrays")
        for name, value in others.items():
            if value is not None:
                raise TypeError(f"{where}: {name} beside a Dataset, which has "
                                + ("it" if name != "y" else "labels itself; other arguments need their names, as epochs=5"))
        self._columns.take(x.pointer, labels)
        return x.pointer

    def _training(self, stack: contextlib.ExitStack, x: Any, y: Any, batch_size: Any, fraction: float, shuffle: bool,
                  sample_weight: Any) -> tuple[Any, Any]:
        """The training data, and the arrays that are held back for the validation."""
        data = self._dataset("fit", x, y=y, batch_size=batch_size, sample_weight=sample_weight, validation_split=fraction or None)
        if data is not None:
            return data, None
        given, held = self._arrays("fit", x, y, sample_weight), None
        if fraction:
            given, held = split(given, fraction)
        data = stack.enter_context(opened(self._strategy, given, batch_size, "fit", shuffle))
        self._columns.take(data, True)
        position = ffi.new("choir_input_position *", {"size": ffi.sizeof("choir_input_position")})
        check(lib.choir_distributed_dataset_save(data, position))
        setattr(position, "pass", self._passes)
        check(lib.choir_distributed_dataset_restore(data, position))

        def count() -> None:
            if not lib.choir_distributed_dataset_save(data, position):
                self._passes = getattr(position, "pass") + (position.steps > 0)
        stack.callback(count)
        return data, held

    def _check(self, calls: Calls, status: int) -> None:
        """Raises what a function of calls, or one of the model, has raised."""
        calls.check(status, self._calls, self._strategy.calls, late)

    def evaluate(self, x: Any, y: Any = None, *, batch_size: int | None = None, sample_weight: Any = None) -> dict[str, float]:
        """The loss and the metrics of one pass over a Dataset or arrays, without training."""
        with contextlib.ExitStack() as stack:
            data = self._dataset("evaluate", x, y=y, batch_size=batch_size, sample_weight=sample_weight)
            if data is None:
                data = stack.enter_context(opened(self._strategy, self._arrays("evaluate", x, y, sample_weight), batch_size, "evaluate"))
                self._columns.take(data, True)
            self._check(Calls(), lib.choir_evaluate(self.pointer, data))
        return {name.removeprefix("val_"): self.log(name) for name in self.logs() if name.startswith("val_")}

    def predict(self, x: Any, *, batch_size: int | None = None) -> np.ndarray:
        """The results of all examples of one pass over a Dataset or an array."""
        with contextlib.ExitStack() as stack:
            data = self._dataset("predict", x, labels=False, batch_size=batch_size)
            if data is None:
                data = stack.enter_context(opened(self._strategy, arrays("predict", x, None, None, self._columns), batch_size, "predict"))
                self._columns.take(data, False)
            frame = stack.enter_context(own_frame())
            found = lib.choir_predict(self.pointer, data, frame.pointer)
            self._check(Calls(), lib.choir_frame_status(frame.pointer))
            return Tensor(frame, found).numpy()

    def stop(self) -> None:
        """Asks fit to stop after the current step."""
        lib.choir_model_stop(self.pointer)

    def logs(self) -> list[str]:
        """The names of the logs."""
        return [ffi.string(lib.choir_model_log_name(self.pointer, i)).decode()
                for i in range(lib.choir_model_logs(self.pointer))]

    def log(self, name: str) -> float:
        """The newest value of a log, or nan."""
        return lib.choir_model_log(self.pointer, name.encode())

    def history(self) -> dict[str, list[float]]:
        """What each log was after each epoch, from the first on; logs without a number are left out."""
        epochs = range(1, lib.choir_model_epochs(self.pointer) + 1)
        every = {name: [lib.choir_model_history(self.pointer, name.encode(), e) for e in epochs]
                 for name in self.logs()}
        return {name: values for name, values in every.items() if not all(map(math.isnan, values))}

"""The training loop: Model.fit, evaluate and predict, as in Keras."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dataset import Dataset
from .layer import Layer, Metric, Optimizer
from .library import ffi, lib, made, pointer_of
from .options import options
from .strategy import Calls, Replica, current, late
from .tensor import Frame, Tensor, own_frame

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
        if isinstance(class_weights, dict):  # as in Keras: other classes have the weight 1
            class_weights = [class_weights.get(i, 1.0) for i in range(max(class_weights, default=-1) + 1)]
        given: dict[str, Any] = {"name": name, "input": input, "labels": labels, "sample_weights": sample_weights, "lengths": lengths,
                                 "n_metrics": len(self._metrics), "n_classes": len(class_weights)}
        lists = (ffi.new("choir_metric *[]", [m.pointer for m in self._metrics]),
                 ffi.new("double[]", list(class_weights)))
        given["metrics"], given["class_weights"] = lists
        if isinstance(net, Layer):
            given["layer"] = net.pointer
        else:
            given["forward"] = self._calls.function("choir_forward_fn", self._forward, ffi.NULL)
        if regularized is not None:
            given["regularized"] = regularized.pointer
        if optimizer is not None:
            given["optimizer"] = optimizer.pointer
        if loss is not None:
            given["loss"] = self._loss(loss)
        self._pointer = made(lib.choir_model_new(options(ffi.typeof("choir_model_options *"), given)))

    @property
    def pointer(self) -> Any:
        self._strategy.pointer  # raises if it is closed
        return self._pointer

    def _forward(self, pointer: Any, _user: Any) -> Any:
        replica = Replica(pointer)
        try:
            return _tensor("forward", self._net(replica))
        finally:
            replica.frame.close()

    def _loss(self, loss: str | Callable[..., Tensor]) -> Any:
        if isinstance(loss, str):
            fn = getattr(lib, "choir_" + loss, None)
            if fn is None or ffi.typeof(fn) != ffi.typeof("choir_tensor *(*)(choir_tensor *, choir_tensor *)"):
                raise ValueError(f"model: loss {loss!r} is unknown; expected a function of choir/nn.h of two tensors")
            return fn

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

    def fit(self, data: Dataset, epochs: int = 1, *, validation: Dataset | None = None,
            callbacks: Sequence[Any] = (), early_stopping: dict[str, Any] | None = None,
            reduce_on_plateau: dict[str, Any] | None = None, checkpoints: str | None = None,
            **more: Any) -> dict[str, list[float]]:
        """Trains, and returns the history of each log. A callback is an object with methods of the names
        train_begin, train_end, epoch_begin, epoch_end, batch_begin, batch_end and validation_begin, which get an Event. early_stopping
        and reduce_on_plateau have the fields of choir/fit.h, and so have the other options. checkpoints is a
        folder."""
        calls = Calls()
        given = ffi.new("choir_callback[]", [self._callback(calls, c) for c in [None, *callbacks]])
        more |= {"epochs": epochs, "callbacks": given, "n_callbacks": len(given), "early_stopping": early_stopping,
                 "reduce_on_plateau": reduce_on_plateau}
        if validation is not None:
            more["validation"] = pointer_of("validation", validation, "a Dataset")
        manager = ffi.NULL
        if checkpoints is not None:
            manager = made(lib.choir_checkpoint_manager_new(self._strategy.pointer, checkpoints.encode(), ffi.NULL))
        more["checkpoints"] = manager
        try:
            self._check(calls, lib.choir_fit(self.pointer, pointer_of("data", data, "a Dataset"),
                                             options(ffi.typeof("choir_fit_options *"), more)))
        finally:
            lib.choir_checkpoint_manager_free(manager)
        return self.history()

    def _check(self, calls: Calls, status: int) -> None:
        """Raises what a function of calls, or one of the model, has raised."""
        calls.check(status, self._calls, late)

    def evaluate(self, data: Dataset) -> dict[str, float]:
        """The loss and the metrics of one pass over data, without training."""
        self._check(Calls(), lib.choir_evaluate(self.pointer, pointer_of("data", data, "a Dataset")))
        return {name.removeprefix("val_"): self.log(name) for name in self.logs() if name.startswith("val_")}

    def predict(self, data: Dataset) -> np.ndarray:
        """The results of all examples of one pass over data."""
        with own_frame() as frame:
            found = lib.choir_predict(self.pointer, pointer_of("data", data, "a Dataset"), frame.pointer)
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

"""Strategies, variables, and the replicas that run a step written in Python."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .library import Error, Status, address, check, counted, ffi, lib, made, pointer_of, short
from .names import unknown
from .options import names, options
from .tensor import Frame, Tape, Tensor, described, dtype_of, own_frame, packed


_argument = short("choir_replica_arg", None, ctypes.c_char_p)
_average_loss = short("choir_replica_average_loss", None, None)
_tensor_type = ffi.typeof("choir_tensor *")


class Calls:
    """Functions of Python that C calls. The first exception is kept, and ends the call of C."""

    def __init__(self) -> None:
        self._raised: list[BaseException] = []
        self._kept: list[Any] = []

    def note(self, error: BaseException) -> None:
        """Keeps an exception that a function has raised."""
        self._raised.append(error)
        lib.choir_fail(lib.CHOIR_CANCELLED, b"%s", ffi.new("char[]", b"a function of Python raised"))

    def _onerror(self, _kind: Any, error: BaseException, _traceback: Any) -> None:
        self.note(error)

    def function(self, type_: str, fn: Callable[..., Any], error: Any = lib.CHOIR_INTERNAL) -> Any:
        """A function pointer for fn; it lives as long as this object."""
        self._kept.append(ffi.callback(type_, fn, error=error, onerror=self._onerror))
        return self._kept[-1]

    def check(self, status: int, *others: Calls) -> None:
        """Raises the exception of a function, of these or other calls, as itself, or Error unless the call of C
        succeeded."""
        raised = []
        for calls in (self, *others):
            raised += calls._raised
            calls._raised.clear()
        if raised:
            own = [e for e in raised if not (isinstance(e, Error) and e.status == Status.CANCELLED)]
            raise (own or raised)[0]
        check(status)


class Variable:
    """Named memory of a strategy, with the fields of choir_variable_options. Make it in the strategy's scope."""

    def __init__(self, name: str, value: Any, **given: Any) -> None:
        array, dtype, shape = packed(value)
        given |= {"dtype": dtype, "initial_value": ffi.from_buffer(array)}
        self._strategy = current()
        self._pointer = made(lib.choir_variable_new(
            name.encode(), shape, options(ffi.typeof("choir_variable_options *"), given)))

    @classmethod
    def of(cls, strategy: Strategy, pointer: Any) -> Variable:
        """A variable that C has made."""
        found = cls.__new__(cls)
        found._strategy, found._pointer = strategy, pointer
        return found

    @property
    def pointer(self) -> Any:
        self._strategy.pointer  # raises if it is closed
        return self._pointer

    def __repr__(self) -> str:
        return f'<choir.Variable "{self.name}" {described(self._options().dtype, self.shape)}>'

    def _options(self) -> Any:
        found = ffi.new("choir_variable_options *", {"size": ffi.sizeof("choir_variable_options")})
        check(lib.choir_variable_describe(self.pointer, found))
        return found

    @property
    def name(self) -> str:
        return ffi.string(lib.choir_variable_name(self.pointer)).decode()

    @property
    def shape(self) -> tuple[int, ...]:
        shape = lib.choir_variable_shape(self.pointer)
        return tuple(shape.dim[0:shape.rank])

    @property
    def dtype(self) -> np.dtype:
        return dtype_of(self._options().dtype, "variable")

    @property
    def trainable(self) -> bool:
        """Whether optimizers update the variable."""
        return self._options().trainable == lib.CHOIR_ON

    def numpy(self) -> np.ndarray:
        """The value, outside of steps. In a step, r.read(variable) reads it."""
        with own_frame() as frame:
            return Tensor(frame, lib.choir_variable_read(self.pointer, frame.pointer)).numpy()

    def assign(self, value: Any) -> None:
        """Sets the value: in a step to a tensor, outside of steps to an array or a number."""
        if isinstance(value, Tensor):
            check(value.frame.call("choir_variable_assign", self.pointer, value.pointer))
            return
        with own_frame() as frame:
            check(lib.choir_variable_assign(self.pointer, frame.tensor(value).pointer))


class Replica:
    """One replica in one call of a step."""

    __slots__ = ("frame", "_pointer")

    def __repr__(self) -> str:
        return "<choir.Replica that has returned>" if self.frame._pointer is None else f"<choir.Replica {self.id}>"

    def __init__(self, pointer: Any) -> None:
        self.frame, self._pointer = Frame(pointer.frame), pointer

    @property
    def pointer(self) -> Any:
        if self.frame._pointer is None:
            self.frame.pointer  # raises
        return self._pointer

    @property
    def id(self) -> int:
        return lib.choir_replica_id(self.pointer)

    def constant(self, array: Any) -> Tensor:
        return self.frame.constant(array)

    def from_dlpack(self, array: Any) -> Tensor:
        """A tensor that shares the memory of an array: see Frame.from_dlpack."""
        return self.frame.from_dlpack(array)

    def argument(self, name: str) -> Tensor:
        """This replica's part of a column of the batch."""
        found = Tensor(self.frame, ffi.cast(_tensor_type, _argument(address(self.pointer), name.encode())))
        if self.frame.program is not None:
            self.frame.program.argument(name.encode(), found.pointer)
        return found

    def tape(self) -> Tape:
        """Records the operations from here on."""
        return Tape(self.frame)

    def average_loss(self, losses: Tensor) -> Tensor:
        """The sum of losses divided by the size of the global batch."""
        found = Tensor(self.frame, ffi.cast(_tensor_type, _average_loss(address(self.pointer), address(losses.pointer))))
        if self.frame.program is not None:
            self.frame.program.note("choir_replica_average_loss", (None, losses.pointer), found.pointer)
        return found

    def read(self, variable: Variable) -> Tensor:
        """The variable's value in this replica."""
        if not isinstance(variable, Variable):
            raise TypeError(f"read: {type(variable).__name__}; expected a Variable, as one of layer.variables")
        return Tensor(self.frame, self.frame.call("choir_variable_read", variable.pointer, self.frame.pointer))

    def all_reduce(self, tensor: Tensor, mean: bool = False) -> Tensor:
        how = lib.CHOIR_MEAN if mean else lib.CHOIR_SUM
        return Tensor(self.frame, self.frame.call("choir_replica_all_reduce", self.pointer, how, tensor.pointer))


class Run(Calls):
    """One run of a step of Python. A strategy uses it again, since making one takes as long as a call of C."""

    def __init__(self) -> None:
        super().__init__()
        self.step: Callable[[Replica], Any] | None = None
        self.results: dict[int, np.ndarray] = {}
        self.handle = ffi.new_handle(self)

    @staticmethod
    def checked(found: Any) -> Tensor | None:
        if found is not None and not isinstance(found, Tensor):
            raise TypeError(f"step: returned {type(found).__name__}; expected a Tensor or nothing")
        return found

    def result_of(self, replica: Replica) -> None:
        """Runs the step."""
        found = self.checked(self.step(replica))  # type: ignore[misc]
        if found is not None:
            self.results[replica.id] = found.numpy()

    def call(self, pointer: Any) -> int:
        """The step in one replica, from C."""
        replica = Replica(pointer)
        try:
            self.result_of(replica)
            return 0
        except BaseException as error:  # also KeyboardInterrupt: it comes back as itself
            self.note(error)
            return lib.CHOIR_CANCELLED
        finally:
            replica.frame._pointer = None

    def take_results(self) -> dict[int, np.ndarray]:
        results, self.results = self.results, {}
        return results

    def go(self, strategy: Strategy, fn: Any, user: Any, batch: Any) -> list[np.ndarray]:
        """Runs a function of C in all replicas, which may come back to call."""
        try:
            status = lib.choir_strategy_run(strategy.pointer, fn, user,
                                            ffi.NULL if batch is None else pointer_of("run", batch, "a batch of a Dataset"), ffi.NULL)
            if status or self._raised or late._raised:
                self.check(status, strategy.calls, late)
            results = self.take_results()
            return [results[i] for i in sorted(results)] if results else []
        finally:
            self.results.clear()


# One function pointer for all runs, since making one takes longer than a small step. What is raised
# outside of the step, as by Ctrl-C, is kept here.
late = Calls()
_call_step = late.function("choir_replica_fn", lambda pointer, user: ffi.from_handle(user).call(pointer))

_scopes: list[Strategy] = []


def current() -> Strategy:
    """The strategy of the innermost scope."""
    if not _scopes:
        raise Error(Status.STATE, "no scope; expected `with strategy.scope():`")
    return _scopes[-1]


@contextlib.contextmanager
def _scope(enter: Callable[..., int], *arguments: Any) -> Iterator[None]:
    scope = ffi.new("choir_scope *")
    check(enter(scope, *arguments))
    try:
        yield
    finally:
        check(lib.choir_scope_exit(scope))


def regularizer(l1: float = 0.0, l2: float = 0.0) -> contextlib.AbstractContextManager[None]:
    """A scope whose kernels have the penalty l1 sum(|w|) + l2 sum(w^2), which Model.fit adds to the loss."""
    return _scope(lib.choir_scope_regularizer, l1, l2)


def initializer(kind: str, scale: float = 0.0) -> contextlib.AbstractContextManager[None]:
    """A scope whose kernels begin by an initializer: "he_normal", "orthogonal" and so on."""
    kinds = names(ffi.typeof("choir_initializer"))
    if kind not in kinds:
        raise unknown("initializer:", kind, kinds)
    return _scope(lib.choir_scope_initializer, kinds[kind], scale)


class Strategy:
    """A strategy by its kind, "mirrored", "one_device" and so on, with the fields of choir_strategy_options:
    Strategy("mirrored", replicas=4, seed=7, timeout=30, precision="mixed_bf16"). cluster is a dict of
    choir_cluster_options, also an empty one, by which the workers join."""

    def __init__(self, kind: str = "mirrored", *, cluster: dict[str, Any] | None = None, **given: Any) -> None:
        if cluster is not None:
            joined = options(ffi.typeof("choir_cluster_options *"), cluster)
            given["cluster"] = cluster = ffi.gc(made(lib.choir_cluster_new(joined)), lib.choir_cluster_free)

        free_strategy = lib.choir_strategy_free  # cffi looks a function up under a lock, which a collection may hold

        def free(pointer: Any) -> None:
            free_strategy(pointer)
            if cluster is not None:
                ffi.release(cluster)
        self._pointer = ffi.gc(made(lib.choir_strategy_new(
            kind.encode(), options(ffi.typeof("choir_strategy_options *"), given))), free)
        self.closed, self.seed = False, int(given.get("seed") or 0)
        self.calls = Calls()  # functions of its optimizers
        self.restores = 0  # of Checkpoints
        self._runs: list[Run] = []  # that nobody uses

    def __repr__(self) -> str:
        if self.closed:
            return "<choir.Strategy, closed>"
        devices = [ffi.string(lib.choir_device_name(lib.choir_strategy_worker_device(self.pointer, i))).decode()
                   for i in range(lib.choir_strategy_worker_devices(self.pointer))]
        name = ffi.string(lib.choir_strategy_name(self.pointer)).decode()
        return f"<choir.Strategy {name}: {counted(self.replicas, 'replica')} on {', '.join(devices)}>"

    @property
    def pointer(self) -> Any:
        if self._pointer is None:
            raise Error(Status.STATE, "strategy: it is closed")
        return self._pointer

    def close(self) -> None:
        """Frees the strategy; what was made in it raises Error from then on."""
        pointer, self._pointer, self.closed = self.pointer, None, True
        ffi.release(pointer)

    @property
    def replicas(self) -> int:
        return lib.choir_strategy_replicas(self.pointer)

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        scope = ffi.new("choir_scope *")
        check(lib.choir_scope_enter(scope, self.pointer))
        _scopes.append(self)
        try:
            yield self
        finally:
            _scopes.pop()
            check(lib.choir_scope_exit(scope))

    def save(self, path: str | os.PathLike[str], *, map: str | None = None, metadata: str | None = None) -> None:
        """Saves all weights to a safetensors file; with a map, under the names of the map: map="torch"."""
        texts = [ffi.NULL if text is None else ffi.new("char[]", text.encode()) for text in (map, metadata)]
        check(lib.choir_strategy_save(self.pointer, os.fsencode(path), texts[1]) if map is None else
              lib.choir_strategy_save_mapped(self.pointer, os.fsencode(path), *texts))

    def restore(self, path: str | os.PathLike[str], *, map: str | None = None) -> None:
        """Restores all weights from a safetensors file; with a map, those that the file has."""
        if map is None:
            check(lib.choir_strategy_restore(self.pointer, os.fsencode(path)))
            return
        text = ffi.new("char[]", map.encode())
        options = ffi.new("choir_restore_options *", {"size": ffi.sizeof("choir_restore_options"), "map": text})
        check(lib.choir_strategy_restore_partial(self.pointer, os.fsencode(path), options))

    def hash(self) -> int:
        """A hash of all weights."""
        return lib.choir_strategy_hash(self.pointer)

    def run_symbol(self, step: Any, user: Any = ffi.NULL, batch: Any = None) -> None:
        """Calls a C function, as lib.NAME of another cffi library, in every local replica."""
        status = lib.choir_strategy_run(self.pointer, ffi.cast("choir_replica_fn *", step), user,
                                        ffi.NULL if batch is None else pointer_of("run", batch, "a batch of a Dataset"), ffi.NULL)
        self.calls.check(status, late)

    def run(self, step: Callable[[Replica], Any], batch: Any = None) -> list[np.ndarray]:
        """Calls step in every local replica, with the parts of a Dataset's batch as arguments. Returns
        copies of the tensors that the steps returned, as numpy arrays in the order of the replicas. The first exception of a
        step ends the run and comes back as itself."""
        run_in = getattr(step, "run_in", None)  # of choir.function
        if run_in is not None:
            return run_in(self, batch)
        run = self._runs.pop() if self._runs else Run()
        run.step = step
        try:
            return run.go(self, _call_step, run.handle, batch)
        finally:
            run.step = None
            self._runs.append(run)

"""Strategies, variables, and the replicas that run a step written in Python."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .library import Error, Status, check, ffi, lib, made
from .tensor import Frame, Tape, Tensor, packed


class Variable:
    """Named memory of a strategy. Make it in the strategy's scope."""

    def __init__(self, name: str, value: Any) -> None:
        array, dtype, shape = packed(value)
        data = ffi.from_buffer(array)
        options = ffi.new("choir_variable_options *", {"dtype": dtype, "initial_value": data})
        options.size = ffi.sizeof("choir_variable_options")
        self._strategy = current()
        self._pointer = made(lib.choir_variable_new(name.encode(), shape, options))

    @property
    def pointer(self) -> Any:
        self._strategy.pointer  # raises if it is closed
        return self._pointer


class Replica:
    """One replica in one call of a step."""

    def __init__(self, pointer: Any) -> None:
        self.frame, self._pointer = Frame(pointer.frame), pointer

    @property
    def pointer(self) -> Any:
        self.frame.pointer  # raises if it is gone
        return self._pointer

    @property
    def id(self) -> int:
        return lib.choir_replica_id(self.pointer)

    def constant(self, array: Any) -> Tensor:
        return self.frame.constant(array)

    def argument(self, name: str) -> Tensor:
        """This replica's part of a column of the batch."""
        return Tensor(self.frame, lib.choir_replica_arg(self.pointer, name.encode()))

    def tape(self) -> Tape:
        """Records the operations from here on."""
        return Tape(self.frame)

    def average_loss(self, losses: Tensor) -> Tensor:
        """The sum of losses divided by the size of the global batch."""
        return Tensor(self.frame, lib.choir_replica_average_loss(self.pointer, losses.pointer))

    def read(self, variable: Variable) -> Tensor:
        return Tensor(self.frame, lib.choir_variable_read(variable.pointer, self.frame.pointer))

    def all_reduce(self, tensor: Tensor, mean: bool = False) -> Tensor:
        how = lib.CHOIR_MEAN if mean else lib.CHOIR_SUM
        return Tensor(self.frame, lib.choir_replica_all_reduce(self.pointer, how, tensor.pointer))


_scopes: list[Strategy] = []


def current() -> Strategy:
    """The strategy of the innermost scope."""
    if not _scopes:
        raise Error(Status.STATE, "no scope; expected `with strategy.scope():`")
    return _scopes[-1]


class Strategy:
    """A strategy by its kind: "mirrored", "one_device" and so on."""

    def __init__(self, kind: str = "mirrored", *, replicas: int = 0, seed: int = 0,
                 devices: str | None = None) -> None:
        names = ffi.NULL if devices is None else ffi.new("char[]", devices.encode())
        options = ffi.new("choir_strategy_options *", {"replicas": replicas, "seed": seed, "devices": names})
        options.size = ffi.sizeof("choir_strategy_options")
        self._pointer = ffi.gc(made(lib.choir_strategy_new(kind.encode(), options)),
                               lib.choir_strategy_free)

    @property
    def pointer(self) -> Any:
        if self._pointer is None:
            raise Error(Status.STATE, "strategy: it is closed")
        return self._pointer

    def close(self) -> None:
        """Frees the strategy; what was made in it raises Error from then on."""
        pointer, self._pointer = self.pointer, None
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

    def hash(self) -> int:
        """A hash of all weights."""
        return lib.choir_strategy_hash(self.pointer)

    def run_symbol(self, step: Any, user: Any = ffi.NULL, batch: Any = None) -> None:
        """Calls a C function, as lib.NAME of another cffi library, in every local replica."""
        check(lib.choir_strategy_run(self.pointer, ffi.cast("choir_replica_fn *", step), user,
                                     ffi.NULL if batch is None else batch.pointer, ffi.NULL))

    def run(self, step: Callable[[Replica], Any], batch: Any = None) -> list[np.ndarray]:
        """Calls step in every local replica, with the parts of a Dataset's batch as arguments. Returns
        the tensors that the steps returned, in the order of the replicas. The first exception of a
        step ends the run and comes back as itself."""
        first: list[BaseException] = []
        results: dict[int, np.ndarray] = {}

        def raised(_kind: Any, error: BaseException, _traceback: Any) -> None:
            first.append(error)
            lib.choir_fail(lib.CHOIR_CANCELLED, b"%s", ffi.new("char[]", b"a step raised"))

        def call(pointer: Any, _user: Any) -> int:
            replica = Replica(pointer)
            try:
                found = step(replica)
                if found is not None:
                    results[replica.id] = found.numpy()
                return lib.CHOIR_OK
            finally:
                replica.frame.close()

        fn = ffi.callback("choir_replica_fn", call, error=lib.CHOIR_INTERNAL, onerror=raised)
        status = lib.choir_strategy_run(self.pointer, fn, ffi.NULL,
                                        ffi.NULL if batch is None else batch.pointer, ffi.NULL)
        if first:
            own = [e for e in first if not (isinstance(e, Error) and e.status == Status.CANCELLED)]
            raise (own or first)[0]
        check(status)
        return [results[i] for i in sorted(results)]

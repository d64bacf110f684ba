"""Steps that are recorded once, as a list of calls of the library, and then run without Python.

The lock of Python is why: each call of C hands it from replica to replica, and a thread that waits for it
sleeps. A recorded step runs in all replicas at the same time, as a step in C does."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _declarations
from .dataset import Batch
from .library import address, ffi, lib, pointer_of
from .strategy import Replica, Run, Strategy, late
from .tensor import Tensor

MOST_PROGRAMS = 32  # of a replica; with other shapes it then runs in Python
_TENSOR = ffi.typeof("choir_tensor *")
_NULL, _run = ffi.NULL, lib.choir_strategy_run
_KINDS = {name: (number, kind) for number, (name, kind) in enumerate(_declarations.CALLS)}


@functools.cache
def _replay() -> Any:
    """The function of C that replays a step."""
    ffi.cdef(_declarations.REPLAY)
    return ffi.dlopen(os.path.join(os.path.dirname(__file__), "libchoir-replay.so")).choir_replay


def _has_pointers(options: Any) -> bool:
    return any(field.type.kind in ("pointer", "function") and getattr(options, name) != ffi.NULL
               for name, field in ffi.typeof(options).item.fields)


class Program:
    """The calls that one replica has made, and the arguments that it had."""

    def __init__(self, replica: int) -> None:
        self._replica, self._tensors, self._index = replica, 0, {0: -1}
        self._guards: list[tuple[bytes, int, Any]] = []
        self._calls: list[tuple[int, int, list[tuple[str, Any]]]] = []
        self._kept: list[Any] = []

    def _keep(self, value: Any) -> Any:
        self._kept.append(value)
        return value

    def _new(self, pointer: Any) -> int:
        self._index[address(pointer)] = self._tensors
        self._tensors += 1
        return self._tensors - 1

    def argument(self, name: bytes, pointer: Any) -> None:
        """The replica got an argument."""
        shape = self._keep(ffi.new("choir_shape *", lib.choir_tensor_shape(pointer)[0]))
        self._guards.append((name, lib.choir_tensor_dtype(pointer), shape[0]))
        self.note("choir_replica_arg", (None, name), pointer)

    def note(self, name: str, arguments: tuple[Any, ...], result: Any = None) -> None:
        """The replica called a function, which gave a tensor (result) or succeeded."""
        if name not in _KINDS:
            raise TypeError(f"function: {name} cannot be recorded; run the step without choir.function")
        number, kind = _KINDS[name]
        types = ffi.typeof(getattr(lib, name)).args
        given = [self._argument(*one) for one in zip(kind, types, arguments)]
        made = result is not None and ffi.typeof(result) == _TENSOR
        self._calls.append((number, self._new(result) if made else 0, given))

    def _argument(self, kind: str, type_: Any, value: Any) -> tuple[str, Any]:
        if kind == "T":
            return "number", self._index[address(value)]
        if kind == "A":
            return "pointer", self._keep(ffi.new("int64_t[]", [len(value), *(self._index[address(t)] for t in value)]))
        if kind == "W":
            return "number", [self._new(tensor) for tensor in value][0]
        if kind == "S":
            return "pointer", self._keep(ffi.new("choir_shape *", value))
        if kind == "P":
            return "pointer", self._pointer(type_, value)
        if kind == "X":
            return "number", value.bits
        if kind == "D":
            return "real", float(value)
        return "number", int(ffi.cast("int64_t", value)) if kind == "N" else 0

    def _pointer(self, type_: Any, value: Any) -> Any:
        if isinstance(value, bytes):
            return self._keep(ffi.new("char[]", value))
        if isinstance(value, (list, tuple)):
            return self._keep(ffi.new(ffi.getctype(type_.item, "[]"), value))
        if type_.item.kind == "struct" and dict(type_.item.fields or ()).get("size") and value != ffi.NULL:
            if _has_pointers(value):
                raise TypeError(f"function: {type_.item.cname} with a pointer in it cannot be recorded; run the step "
                                "without choir.function")
        if type_.item.kind == "void":
            return self._keep(ffi.new("char[]", bytes(ffi.buffer(value))))
        return self._keep(value)

    def finish(self, found: Tensor | None) -> tuple[Any, np.ndarray | None]:
        """The program of C, and memory for its result, which the recording has."""
        guards, calls = ffi.new("replay_guard[]", len(self._guards)), ffi.new("replay_call[]", len(self._calls))
        for guard, (name, dtype, shape) in zip(guards, self._guards):
            guard.name, guard.dtype, guard.shape = self._keep(ffi.new("char[]", name)), dtype, shape
        for call, (number, result, given) in zip(calls, self._calls):
            arguments = self._keep(ffi.new("replay_argument[]", len(given)))
            for argument, (field, value) in zip(arguments, given):
                setattr(argument, field, ffi.cast("void *", value) if field == "pointer" else value)
            call.function, call.result, call.argument = number, result, arguments
        program = ffi.new("replay_program *", {"replica": self._replica, "guards": len(guards), "calls": len(calls),
                                               "tensors": self._tensors, "guard": guards, "call": calls, "returned": -1})
        to = None if found is None else found.numpy()
        if found is not None and to is not None:
            program.returned, program.shape = self._index[address(found.pointer)], lib.choir_tensor_shape(found.pointer)[0]
            program.to, program.bytes = ffi.cast("void *", ffi.from_buffer(to)), to.nbytes
        self._kept += [guards, calls, to]
        return program, to


class _Recorded(Run):
    """The programs of a step in one strategy."""

    def __init__(self, step: Callable[[Replica], Any]) -> None:
        super().__init__()
        self.step, self._replay = step, _replay()
        self.c_step = ffi.new("replay_step *", {"record": record, "user": self.handle})
        self._programs: list[tuple[Any, np.ndarray | None, Program]] = []
        self._new: list[tuple[Any, np.ndarray | None, Program]] = []
        self._giving: list[tuple[Any, np.ndarray]] = []  # programs whose step returns a tensor

    def result_of(self, replica: Replica) -> None:
        if sum(program.replica == replica.id for program, _, _ in self._programs) == MOST_PROGRAMS:
            return super().result_of(replica)
        program = replica.frame.program = Program(replica.id)
        try:
            found = self.checked(self.step(replica))  # type: ignore[misc]
        finally:
            replica.frame.program = None
        c_program, to = program.finish(found)
        self._new.append((c_program, to, program))
        if to is not None:
            self.results[replica.id] = to.copy()
        return None

    def run(self, strategy: Strategy, batch: Any) -> list[np.ndarray]:
        """As go, in fewer words: a large step leaves no Python in the processor's caches."""
        pointer = _NULL if batch is None else batch.pointer if type(batch) is Batch else \
            pointer_of("run", batch, "a batch of a Dataset")
        status = _run(strategy._pointer or strategy.pointer, self._replay, self.c_step, pointer, _NULL)
        if status or self._raised or late._raised or self._new or self._giving or self.results:
            return self._finish(strategy, status)
        return []

    def _finish(self, strategy: Strategy, status: int) -> list[np.ndarray]:
        new, self._new = self._new, []
        try:
            self.check(status, strategy.calls, late)
            for one in new:
                one[0].next, self.c_step.first = self.c_step.first, one[0]
                if one[1] is not None:
                    self._giving.append((one[0], one[1]))
            self._programs += new
            results = self.take_results()
            return [results[i] for i in sorted(results)]
        finally:
            self.results.clear()

    def take_results(self) -> dict[int, np.ndarray]:
        for program, to in self._giving:
            if program.replays:
                self.results[program.replica] = to.copy()
            program.replays = 0
        return super().take_results()


record = late.function("choir_replica_fn", lambda pointer, user: ffi.from_handle(user).call(pointer))


class Function:
    """A step that is recorded; see function."""

    def __init__(self, step: Callable[[Replica], Any]) -> None:
        functools.update_wrapper(self, step)
        self._step = step
        self._recorded: weakref.WeakKeyDictionary[Strategy, _Recorded] = weakref.WeakKeyDictionary()
        self._last: tuple[Callable[[], Strategy | None], Any] = lambda: None, None  # the strategy of the last run

    def __call__(self, replica: Replica) -> Any:
        return self._step(replica)

    def run_in(self, strategy: Strategy, batch: Any) -> list[np.ndarray]:
        """strategy.run of the step."""
        of, run = self._last
        if of() is not strategy:
            recorded = self._recorded.get(strategy)
            if recorded is None:
                recorded = self._recorded[strategy] = _Recorded(self._step)
            run = recorded.run
            self._last = weakref.ref(strategy), run
        return run(strategy, batch)


def function(step: Callable[[Replica], Any]) -> Function:
    """Records what a step does, as tf.function does, so that later runs need no Python and no lock of it.

    Each replica's first run of the step records the calls, and so does the first run with arguments of other
    dtypes or shapes (at most 32 of them). So Python code in the step, as a branch, a print or a number that
    it computes, runs only then. A recorded step cannot read the elements of a tensor."""
    return Function(step)

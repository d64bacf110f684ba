"""choir.function: recorded steps have the bits of steps in Python, and say what cannot be recorded."""

import gc
import sys

import choir
import numpy as np
import pytest
from choir import op

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(70, 3)).astype(np.float32)
Y = (X @ np.float32([[1], [-2], [0.5]])).astype(np.float32)


def plain(step):
    return step


def trained(wrap, epochs=4):
    """The weights' hash, all losses, and how often Python ran the step."""
    s, calls = choir.Strategy("mirrored", devices="cpu:0,cpu:1", replicas=2, seed=5), []
    with s.scope():
        net = choir.sequential(choir.layer("dense", "hidden", 3, 16, "tanh"), choir.layer("dropout", "drop", 0.25),
                               choir.layer("dense", "out", 16, 1, "linear"))
        adam, loss = choir.Optimizer("adam", learning_rate=0.03), choir.Metric("loss")
    data = choir.Dataset(s, {"x": X, "y": Y}, batch=16, shuffle=64, seed=1)  # the last batch has 6 examples

    @wrap
    def step(r):
        calls.append(r.id)
        tape = r.tape()
        errors = op.mean_squared_error(r.argument("y"), net(r.argument("x")))
        loss.update(errors)
        mean = r.average_loss(errors)
        adam.minimize(mean, tape)
        return r.all_reduce(mean)

    losses = [[float(one) for one in s.run(step, batch)] for _ in range(epochs) for batch in data]
    return s.hash(), losses, loss.result(), len(calls)


def test_a_recorded_training_has_the_same_bits():
    eager, recorded = trained(plain), trained(choir.function)
    assert recorded[:3] == eager[:3] and len(recorded[1][0]) == 2
    assert eager[3] == 2 * 20 and recorded[3] == 2 * 2  # two replicas, two shapes


def operations(r):
    """Arguments of all kinds."""
    x, y = r.argument("x"), r.argument("y")
    image = op.reshape(op.tile(x, [1, 3]), (x.shape[0], 3, 3, 1))
    left, middle, right = op.split(x, 3, 1)
    values, indices = op.top_k(x, 2)
    parts = [op.sum(x * 2 - 1, op.axis(1)), op.clip(y, -0.5, 0.5), op.pad(left, [0, 1], [1, 0], {"value": 3.0}),
             op.cumsum(x, 1, {"reverse": 1}), op.einsum("ij,kj->ik", x, x), op.matmul(x, x, 2), abs(-middle) ** 2,
             op.where(x >= 0, x, 0), op.leaky_relu(right, 0.1), op.transpose(x, [1, 0]), op.argmax(x, 1), values,
             op.one_hot(indices, 3, 0), op.cast(x > y, 0), op.broadcast_to(y, x.shape), x[0:1],
             op.conv2d(image, r.constant(np.ones((2, 2, 1, 2), np.float32)), {"stride": 1, "padding": -1}),
             op.max_pool2d(image, 2, 1, 0), op.attention(*[op.reshape(x, (1, *x.shape))] * 3, {"causal": 1}),
             op.concat([x, x + r.constant(np.float32([1, 2, 3]))], 0), op.stack([x, y + x], 0), r.all_reduce(op.sum(x, op.ALL_AXES))]
    return op.concat([op.reshape(op.cast(part, 1), (-1,)) for part in parts], 0)


def derivatives(r):
    tape, x = r.tape(), r.constant(np.float64([1, 2, 3]))
    first, = tape.gradient(x ** 3, [x], recorded=True)
    second, third = tape.gradient(first * x, [x, first])
    return second + third


@pytest.mark.parametrize("step", [operations, derivatives])
def test_operations_of_all_kinds(step):
    s = choir.Strategy(replicas=2)
    batch = next(iter(passed := iter(choir.Dataset(s, {"x": X, "y": Y}, batch=10))))
    eager, recorded = s.run(step, batch), choir.function(step)
    for _ in range(3):
        for one, other in zip(s.run(recorded, batch), eager, strict=True):
            assert one.dtype == other.dtype and (one == other).all()
    del passed


def test_variables_metrics_and_layers():
    def results(wrap):
        s = choir.Strategy(replicas=2, seed=1)
        with s.scope():
            v, m = choir.Variable("v", np.float32([1, 2, 3])), choir.Metric("m", "accuracy")

        @wrap
        def step(r):
            m.update(op.argmax(r.argument("x"), 1), r.argument("x") * r.read(v))
            return op.sum(r.read(v) * r.argument("x"), 0)
        found = [s.run(step, batch) for batch in choir.Dataset(s, {"x": X}, batch=14)]
        return m.result(), [one.tolist() for both in found for one in both]
    assert results(choir.function) == results(plain)


def test_another_shape_is_recorded_and_another_strategy():
    calls = []

    @choir.function
    def step(r):
        calls.append(r.id)
        return r.argument("x") + 1
    for _ in range(2):
        s = choir.Strategy(replicas=2)
        before = len(calls)
        for n in (3, 4, 3, 4):  # 2 and 1 examples, 2 and 2
            for batch in choir.Dataset(s, {"x": X[:n]}, batch=n):
                assert np.concatenate(s.run(step, batch)).tolist() == (X[:n] + 1).tolist()
        assert len(calls) - before == 3
        s.close()
    for n in range(2, 90, 2):  # beyond 32 shapes of a replica it runs in Python
        s = s if n > 2 else choir.Strategy(replicas=1)
        for _ in range(2):
            for batch in choir.Dataset(s, {"x": np.ones((n, 1), np.float32)}, batch=n):
                assert s.run(step, batch)[0].shape == (n, 1)
    assert calls.count(0) == 2 * 1 + 32 + 2 * 12


@pytest.mark.parametrize("bad, kind", [
    (lambda r: float(op.sum(r.argument("x"), (0, 1))) and None, choir.Error),
    (lambda r: r.argument("x").numpy() is None and None, choir.Error),
    (lambda r: None if r.argument("x") > 0 else None, choir.Error),
    (lambda r: np.from_dlpack(r.argument("x")) is None and None, choir.Error),
    (lambda r: r.from_dlpack(X), choir.Error),
    (lambda r: op.attention(*[op.reshape(r.argument("x"), (1, 2, 3))] * 3, {"mask": op.matmul(*[r.argument("x")] * 2, 2) > 0}), TypeError),
])
def test_what_cannot_be_recorded_is_refused(bad, kind):
    s = choir.Strategy(replicas=1)
    for batch in choir.Dataset(s, {"x": X[:2]}, batch=2):
        with pytest.raises(kind, match="function: .*without choir.function"):
            s.run(choir.function(bad), batch)
        assert len(s.run(lambda r: r.argument("x"), batch)) == 1


def test_exceptions_and_failures():
    s, fail = choir.Strategy(replicas=2), True

    @choir.function
    def step(r):
        if fail and r.id == 1:
            raise ZeroDivisionError("one")
        return op.sqrt(r.argument("x"))
    for batch in choir.Dataset(s, {"x": X[:4]}, batch=4):
        with pytest.raises(ZeroDivisionError):
            s.run(step, batch)
        fail = False
        for _ in range(2):
            assert len(s.run(step, batch)) == 2
        with pytest.raises(choir.Error, match='no .*"x"|"x"'):
            s.run(step)
    with pytest.raises(TypeError, match="returned int"):
        s.run(choir.function(lambda r: 1))
    with s.scope():
        w = choir.layer("dense", "w", 3, 1, "linear")
    labels = choir.function(lambda r: op.sparse_softmax_cross_entropy(r.argument("y"), w(r.argument("x"))))
    right, wrong = ({"x": X[:4], "y": np.int32([[n]] * 4).ravel()} for n in (0, 7))
    for given in (right, right, wrong):
        for batch in choir.Dataset(s, given, batch=4):
            if given is wrong:
                with pytest.raises(choir.Error, match="label"):  # in the replay
                    s.run(labels, batch)
            else:
                assert s.run(labels, batch)[0].tolist() == [0, 0]


def test_recorded_runs_leak_no_reference():
    s = choir.Strategy(replicas=2)
    for batch in choir.Dataset(s, {"x": X[:4]}, batch=4):
        step = choir.function(lambda r: r.argument("x") * 2)
        s.run(step, batch)
        gc.collect()
        before = len(gc.get_objects()), sys.getrefcount(step)
        for _ in range(50):
            s.run(step, batch)
        gc.collect()
        after = len(gc.get_objects()), sys.getrefcount(step)
        assert after[0] <= before[0] + 5 and after[1] == before[1]


def test_operators_of_tensors():
    def step(r):
        x = r.constant(np.float32([[-1, 2], [3, -4]]))
        assert (x <= 2).numpy().tolist() == [[True, True], [False, True]]
        assert (x >= 2).numpy().tolist() == [[False, True], [True, False]]
        assert (x == 2).numpy().tolist() == [[False, True], [False, False]]
        assert (x != 2).numpy().tolist() == [[True, False], [True, True]]
        assert abs(x).numpy().tolist() == [[1, 2], [3, 4]] and (2 ** x).numpy()[1, 0] == 8
        assert (np.float32([[1, 0], [0, 2]]) @ x).numpy().tolist() == [[-1, 2], [6, -8]]
        assert x.dtype == np.float32 and bool(op.sum(x, op.ALL_AXES) == 0) and len({x, x}) == 1
        with pytest.raises(choir.Error):
            bool(x)
        return None
    with pytest.raises(choir.Error, match="number"):
        choir.Strategy("one_device").run(step)

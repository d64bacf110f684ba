"""Model.fit, evaluate and predict; regularizers, maps, and memory that is shared by DLPack."""

import gc
import math
import signal
import subprocess
import sys
import threading
import weakref

import choir
import numpy as np
import pytest

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(60, 3)).astype(np.float32)
Y = (X @ np.float32([[1], [-2], [0.5]])).astype(np.float32)


def opened(replicas=2, loss="mean_squared_error", forward=None, **more):
    s = choir.Strategy("mirrored", replicas=replicas, seed=5)
    with s.scope():
        net = choir.layer("dense", "w", 3, 1, "linear")
        adam = choir.Optimizer("adam", learning_rate=0.05, **more)
        error = choir.Metric("error", "mean_absolute_error")
        model = choir.Model(forward(net) if forward else net, loss, adam, [error])
    return s, model, choir.Dataset(s, {"x": X, "y": Y}, batch=16), net


class Callback:
    def __init__(self, fail_at=0, stop_at=0):
        self.seen, self.fail_at, self.stop_at = [], fail_at, stop_at

    def epoch_end(self, event):
        self.seen.append((event.epoch, event.step, event.model.log("val_loss")))

    def batch_end(self, event):
        if event.step == self.fail_at:
            raise ZeroDivisionError("a callback")
        if event.step == self.stop_at:
            event.model.stop()


def test_fit_evaluate_and_predict():
    s, model, data, _ = opened()
    callback = Callback()
    history = model.fit(data, epochs=30, validation=data, callbacks=[callback])
    assert len(history["loss"]) == 30 and history["loss"][-1] < 0.01 < history["loss"][0]
    assert [e for e, _, _ in callback.seen] == list(range(1, 31)) and callback.seen[-1][1] == 120
    assert callback.seen[-1][2] == history["val_loss"][-1]
    measured = model.evaluate(data)
    assert measured["loss"] == history["val_loss"][-1] and set(measured) == {"loss", "error"}
    found = model.predict(data)
    assert found.shape == (60, 1)
    assert math.isclose(np.mean((found - Y) ** 2), measured["loss"], rel_tol=1e-4)


def test_functions_of_python_are_the_model():
    plain, weights = opened(), []
    hand = opened(loss=lambda y, z: choir.op.square(y - z), forward=lambda net: lambda r: net(r.argument("x")))
    for s, model, data, _ in (plain, hand):
        model.fit(data, epochs=3)
        weights.append(s.hash())
    assert weights[0] == weights[1]


def test_options_of_fit():
    _, model, data, _ = opened(ema_momentum=0.9)
    history = model.fit(data, epochs=40, validation=data, use_averages=1, reduce_on_plateau={"log": "loss", "factor": 0.5,
                        "patience": 1, "min_delta": 0.05}, early_stopping={"patience": 40})
    assert history["learning_rate"][-1] < 0.05
    with pytest.raises(choir.Error, match="no log"):
        model.fit(data, early_stopping={"log": "nothing"})
    with pytest.raises(TypeError, match="fit: no option 'epoch'; options: epochs, "):
        model.fit(data, epoch=1)
    model.fit(data, epochs=41, validation=data, early_stopping={"log": "val_loss", "monitor": "min"})
    with pytest.raises(ValueError, match="early_stopping: .*monitor: 'least' is unknown; known: auto, min, max"):
        model.fit(data, early_stopping={"monitor": "least"})
    with pytest.raises(TypeError, match="early_stopping: patience is 'two'; expected int64_t"):
        model.fit(data, early_stopping={"patience": "two"})
    with pytest.raises(ValueError, match="fit: epochs is 0; expected"):
        model.fit(data, epochs=0)
    with pytest.raises(TypeError, match="callback C: no method of a known name; expected one of .*epoch_end"):
        model.fit(data, callbacks=[type("C", (), {"on_epoch_end": lambda self, epoch, logs: None})()])


def test_functions_that_return_no_tensor():
    for wrong in ({"forward": lambda net: lambda r: None}, {"loss": lambda y, z: None}):
        _, model, data, _ = opened(**wrong)
        with pytest.raises(TypeError, match="returned NoneType; expected a Tensor"):
            model.fit(data)


def test_zero_and_false_of_fit(tmp_path):
    folder = str(tmp_path / "run")
    losses = []
    for resume in (None, False, True):
        _, model, data, _ = opened()
        losses.append(model.fit(data, epochs=2, checkpoints=folder, resume=resume)["loss"])
    assert losses[0] == losses[1] and len(losses[2]) == 2
    _, model, data, _ = opened()
    model.fit(data, epochs=2, checkpoints=folder, resume=False, callbacks=[Callback(stop_at=1)])
    assert model.history().get("loss", []) == []  # it began again


def test_class_weights_of_a_dict():
    found = []
    for weights in ([1.0, 3.0], {1: 3.0}, {0: 1, 1: 3}, ()):
        s = choir.Strategy(replicas=2, seed=5)
        data = choir.Dataset(s, {"x": X, "y": (Y[:, 0] > 0).astype(np.int32)}, batch=16)
        with s.scope():
            model = choir.Model(choir.layer("dense", "w", 3, 2), "sparse_softmax_cross_entropy",
                                choir.Optimizer("sgd"), class_weights=weights)
        found.append(model.fit(data)["loss"])
    assert found[0] == found[1] == found[2] != found[3]


def test_a_fit_goes_on_from_a_checkpoint(tmp_path):
    whole, part, rest = opened(), opened(), opened()
    whole[1].fit(whole[2], epochs=4)
    part[1].fit(part[2], epochs=4, checkpoints=str(tmp_path / "run"), callbacks=[Callback(stop_at=6)])
    rest[1].fit(rest[2], epochs=4, checkpoints=str(tmp_path / "run"))
    assert rest[0].hash() == whole[0].hash()


def raising(net):
    def forward(r):
        if r.id == 1:
            raise LookupError("a forward")
        return net(r.argument("x"))
    return forward


def bad_loss(y, z):
    raise BufferError("a loss")


@pytest.mark.parametrize("kind, more, fit", [
    (ZeroDivisionError, {}, {"callbacks": [Callback(fail_at=3)]}),
    (LookupError, {"forward": raising}, {}),
    (BufferError, {"loss": bad_loss}, {}),
])
def test_exceptions_come_back_as_themselves(kind, more, fit):
    s, model, data, net = opened(**more)
    with pytest.raises(kind):
        model.fit(data, **fit)
    assert len(s.run(lambda r: net(r.constant(X[:2])))) == 2  # the strategy is usable


def test_ctrl_c_ends_a_fit():
    s, model, data, net = opened()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(data, epochs=1 << 30)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert len(s.run(lambda r: net(r.constant(X[:2])))) == 2


def test_wrong_models_and_data():
    s, model, data, net = opened()
    with s.scope(), pytest.raises(ValueError, match="'mse'"):
        choir.Model(net, "mse")
    with s.scope(), pytest.raises(ValueError, match="'relu'"):
        choir.Model(net, "relu")
    with s.scope(), pytest.raises(ValueError, match="'he'.*he_normal"):
        choir.initializer("he")
    with pytest.raises(TypeError, match="dtype complex64; expected .*int16.*astype"):
        choir.Dataset(s, {"x": X.astype(np.complex64)}, batch=4)
    with pytest.raises(TypeError, match="dtype uint64; expected"):
        choir.Dataset(s, {"x": X.astype(np.uint64)}, batch=4)
    with pytest.raises(TypeError, match="dtype object; expected"):
        choir.Dataset(s, {"x": np.array(["a", None])}, batch=4)
    with pytest.raises(TypeError, match=">f4"):
        choir.Dataset(s, {"x": X.astype(">f4")}, batch=4)
    with pytest.raises(ValueError, match="lengths"):
        choir.Dataset(s, {"x": X, "y": Y[:5]}, batch=4)
    s.close()
    with pytest.raises(choir.Error, match="closed"):
        model.fit(data)


def test_narrow_integers_become_wider_ones():
    s = choir.Strategy(replicas=1)
    for given, wider in (("i1", "i4"), ("i2", "i4"), (">i2", "i4"), ("u2", "i4"), ("u4", "i8")):
        info = np.iinfo(given)
        array = np.array([info.min, 0, info.max], given)
        found, = s.run(lambda r: r.constant(array))
        assert found.dtype == wider and (found == array).all()


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
def test_labels_may_have_a_last_axis_of_1(shape):
    s = choir.Strategy(replicas=2, seed=5)
    with s.scope():
        model = choir.Model(choir.layer("dense", "w", 3, 2), "sparse_softmax_cross_entropy", choir.Optimizer("sgd"),
                            [choir.Metric("a", "accuracy")], class_weights={1: 2.0})
    labels = np.int8([0, 1, 1, 0, 1, 0]).reshape(shape)
    history = model.fit(choir.Dataset(s, {"x": X[:6], "y": labels}, batch=6))
    for name in ("loss", "a"):
        assert history[name] == EXPECTED.setdefault(name, history[name])


EXPECTED = {}


def test_schedules_that_are_functions():
    fails, rates = [], []

    def schedule(step):
        if fails:
            raise ArithmeticError("a schedule")
        return 0.5 / (1 + step)

    class Rates:
        def batch_end(self, event):
            rates.append(adam.learning_rate)
    s = choir.Strategy(replicas=2, seed=5)
    with s.scope():
        adam = choir.Optimizer("sgd", schedule=schedule)
        model = choir.Model(choir.layer("dense", "w", 3, 1), "mean_squared_error", adam)
    data = choir.Dataset(s, {"x": X, "y": Y}, batch=20)
    assert model.fit(data, callbacks=[Rates()])["learning_rate"] == [0.125]
    assert rates == [0.25, 0.5 / 3, 0.125]
    weights = s.hash()
    fails.append(True)
    with pytest.raises(ArithmeticError, match="a schedule"):
        model.fit(data, epochs=2)
    assert s.hash() == weights
    with s.scope():
        choir.Optimizer("sgd", schedule={"kind": "cosine", "steps": 100, "factor": 0.1})
        with pytest.raises(TypeError, match="schedule.*no option 'step'"):
            choir.Optimizer("sgd", schedule={"kind": "cosine", "step": 100})


def test_an_array_of_another_order_is_copied():
    s, _, _, _ = opened(replicas=1)
    columns = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    found, = s.run(lambda r: r.constant(columns) + r.constant(columns[::1, ::1]) * 0)
    assert (found == columns).all()
    found, = s.run(lambda r: r.constant(columns[:, ::2]))
    assert found.tolist() == [[0, 2], [3, 5]]


def test_regularizers_and_initializers():
    s = choir.Strategy(replicas=2, seed=1)
    with s.scope(), choir.regularizer(l2=0.5), choir.initializer("constant", 2.0):
        net = choir.layer("dense", "r", 3, 1, "linear")
    with s.scope():
        model = choir.Model(net, "mean_squared_error")
    data = choir.Dataset(s, {"x": np.zeros((4, 3), np.float32), "y": np.zeros((4, 1), np.float32)}, batch=4)
    assert math.isclose(model.evaluate(data)["loss"], 0.5 * 3 * 4)


def test_weights_in_the_layout_of_torch(tmp_path):
    path, plain = str(tmp_path / "torch.safetensors"), str(tmp_path / "plain.safetensors")
    one, other = opened(), opened()
    one[1].fit(one[2])
    one[0].save(path, map="torch", metadata="a=b")
    other[0].restore(path, map="torch")
    assert other[0].hash() == one[0].hash()
    with pytest.raises(choir.Error, match="w.weight"):
        other[0].restore(path)
    one[0].save(plain)
    other[0].restore(plain)


def test_a_strategy_is_collected_while_cffi_looks_a_function_up():
    code = ("import gc, choir\ns = choir.Strategy(replicas=1)\n"
            "with choir.library.ffi._lock:\n    del s\n    gc.collect()\nprint('done')")
    found = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)
    assert found.stdout == "done\n", found.stderr


def test_a_batch_in_a_cycle_keeps_its_memory():
    s, _, data, net = opened()
    for _ in range(3):
        cycle = [next(iter(data))]
        cycle.append(cycle)
        del cycle
        gc.collect()
        assert len(s.run(lambda r: net(r.argument("x")), next(iter(data)))) == 2
    for _ in range(9):
        assert len(list(data)) == 4 and len(data._owned) <= 5


def test_fits_leak_no_reference():
    s, model, data, _ = opened()
    callback = Callback()
    model.fit(data, callbacks=[callback])
    gc.collect()
    before = sys.getrefcount(callback), sys.getrefcount(model), len(gc.get_objects())
    for _ in range(20):
        model.fit(data, callbacks=[callback])
        with pytest.raises(ZeroDivisionError):
            model.fit(data, callbacks=[Callback(fail_at=1)])
    gc.collect()
    after = sys.getrefcount(callback), sys.getrefcount(model), len(gc.get_objects())
    assert after[:2] == before[:2] and after[2] <= before[2] + 60  # what the callback has seen


# ---- DLPack

class Watched(np.ndarray):
    """An array that says when it is gone."""


def test_dlpack_shares_the_memory_of_numpy():
    s = choir.Strategy(replicas=1)
    array = np.arange(6, dtype=np.float32).reshape(2, 3).view(Watched)
    gone = weakref.ref(array)

    def step(r):
        shared = r.from_dlpack(array)
        array[0, 0] = 50  # the memory is the array's
        return shared + 0
    found, = s.run(step)
    assert found[0, 0] == 50
    del array, step
    gc.collect()
    assert gone() is None
    with pytest.raises(AttributeError):
        s.run(lambda r: r.from_dlpack([1, 2]))


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_dlpack_exports_to_numpy(version):
    s, kept = choir.Strategy(replicas=1), []

    def step(r):
        y = r.constant(np.float32([[1, 2], [3, 4]])) * 2
        if version is None:
            kept.append(np.from_dlpack(y))
        y.__dlpack__(max_version=version)  # a capsule that nobody takes
        second = choir.tensor.Frame(r.frame.pointer).from_dlpack(y)
        return second + y
    found, = s.run(step)
    assert found.tolist() == [[4, 8], [12, 16]]
    s.close()
    gc.collect()
    assert not kept or kept[0].tolist() == [[2, 4], [6, 8]]  # after its frame and strategy


def test_dlpack_lets_go():
    s = choir.Strategy(replicas=1)
    for _ in range(50):
        s.run(lambda r: np.from_dlpack(r.constant(np.float32([1])) * 2) is not None and None)
    gc.collect()
    assert len(choir.dlpack._kept) <= 2


def test_torch_shares_memory():
    torch = pytest.importorskip("torch")
    s = choir.Strategy(replicas=1)

    def step(r):
        y = r.from_dlpack(torch.arange(3, dtype=torch.float32)) * 2
        assert torch.from_dlpack(y).tolist() == [0, 2, 4]
        return y
    assert s.run(step)[0].tolist() == [0, 2, 4]

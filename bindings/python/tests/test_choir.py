"""Steps in Python: results, exceptions, and uses of what is gone."""

import gc
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import cffi
import choir
import numpy as np
import pytest


def test_two_replicas_compute_with_numpy():
    s = choir.Strategy(replicas=2)
    with s.scope():
        v = choir.Variable("v", np.array([[1, 2], [3, 4]], np.float32))

    def step(r):
        x = r.constant(np.array([[1, r.id]], np.float32).T.copy().T)
        return r.all_reduce((x @ r.read(v) - 1) * 2 / 2)

    for found in s.run(step):
        assert found.tolist() == [[3, 6]]  # [1 2] - 1 and [4 6] - 1
    s.close()
    with pytest.raises(choir.Error) as e:
        s.run(step)
    assert e.value.status == choir.Status.STATE


@pytest.mark.parametrize("error", [ZeroDivisionError("one"), KeyboardInterrupt()])
def test_an_exception_comes_back_and_the_strategy_goes_on(error):
    s = choir.Strategy(replicas=2)

    def bad(r):
        if r.id == 1:
            raise error
        return r.all_reduce(r.constant(np.float32([1])))

    with pytest.raises(type(error)) as e:
        s.run(bad)
    assert e.value is error
    assert len(s.run(lambda r: r.constant(np.float32([1])))) == 2


def test_a_tensor_is_gone_with_its_frame():
    s, kept = choir.Strategy(replicas=2), []
    s.run(lambda r: kept.append(r.constant(np.float32([1]))) or kept[-1])
    with pytest.raises(choir.Error, match="has returned"):
        kept[0].numpy()


def test_wrong_arrays_and_shapes_are_refused():
    s = choir.Strategy(replicas=1)
    with pytest.raises(TypeError, match="complex128"):
        s.run(lambda r: r.constant(np.zeros(1, complex)))
    with pytest.raises(choir.Error, match="matmul") as e:
        s.run(lambda r: r.constant(np.zeros((2, 3))) @ r.constant(np.zeros((2, 3))))
    assert e.value.status == choir.Status.INVALID


def test_wrong_results_and_batches_are_refused():
    s = choir.Strategy(replicas=2)
    with pytest.raises(TypeError, match="step: returned ndarray; expected a Tensor"):
        s.run(lambda r: np.zeros(2))
    with pytest.raises(TypeError, match="run: ndarray; expected a batch"):
        s.run(lambda r: None, np.zeros(2))
    with s.scope():
        model = choir.Model(choir.layer("dense", "a", 1, 1, "linear"), "mean_squared_error")
    with pytest.raises(TypeError, match="data: list; expected a Dataset"):
        model.evaluate([1.0])
    assert len(s.run(lambda r: r.constant(np.float32([1])))) == 2


def test_runs_leak_no_reference():
    s, x = choir.Strategy(replicas=2), np.float32([1])
    def step(r):
        return r.constant(x)
    s.run(step)
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(step), len(gc.get_objects())
    for _ in range(50):
        s.run(step)
    gc.collect()
    after = sys.getrefcount(x), sys.getrefcount(step), len(gc.get_objects())
    assert after[:2] == before[:2] and after[2] <= before[2] + 10


def test_exceptions_leak_no_reference():
    s, x = choir.Strategy(replicas=2), np.float32([1])

    def step(r):
        y = r.constant(x)
        if r.id == 1:
            raise LookupError(y)
        return r.all_reduce(y)

    def fail():
        with pytest.raises(LookupError):
            s.run(step)
    fail()
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(step), len(gc.get_objects())
    for _ in range(50):
        fail()
    gc.collect()
    after = sys.getrefcount(x), sys.getrefcount(step), len(gc.get_objects())
    assert after[:2] == before[:2] and after[2] <= before[2] + 10


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_step_in_c(tmp_path):
    include = pathlib.Path(__file__).parents[3] / "include"
    (tmp_path / "step.c").write_text("#include <choir/choir.h>\n"
                                     "choir_status step(choir_replica *r, void *user)\n"
                                     "{\n"
                                     "\tint *calls = user;\n"
                                     "\tcalls[choir_replica_id(r)]++;\n"
                                     "\treturn choir_replica_arg(r, \"x\") == NULL ? CHOIR_NOT_FOUND : CHOIR_OK;\n"
                                     "}\n")
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", tmp_path / "step.c", os.environ["CHOIR_LIBRARY"], "-o",
                    tmp_path / "step.so"], check=True)
    other = cffi.FFI()
    other.cdef("int step(void *r, void *user);")
    symbol, calls = other.dlopen(str(tmp_path / "step.so")).step, other.new("int[2]")
    s = choir.Strategy(replicas=2)
    for batch in choir.Dataset(s, {"x": np.zeros((6, 1), np.float32)}, batch=2):
        s.run_symbol(symbol, calls, batch)
    assert list(calls) == [3, 3]
    with pytest.raises(choir.Error, match='"x"') as e:
        s.run_symbol(symbol, calls)
    assert e.value.status == choir.Status.NOT_FOUND


def test_the_fragments_of_the_documentation_run(tmp_path, monkeypatch):
    text = (pathlib.Path(__file__).parents[3] / "docs/howto.md").read_text(encoding="utf-8")
    section = text.split("\n## Use Choir from Python\n")[1].split("\n## ")[0]
    x, y = np.random.default_rng(1).random((300, 784), np.float32), np.arange(300, dtype=np.int32) % 10
    fragments, names = re.findall(r"^```python\n(.*?)^```", section, re.S | re.M), {"choir": choir, "x": x, "y": y}
    assert len(fragments) == 4
    monkeypatch.chdir(tmp_path)
    for fragment in fragments:
        exec(fragment, names)
        before = names["both"].hash()
        for batch in choir.Dataset(names["both"], {"x": x, "y": y}, batch=150):
            names["both"].run(names["step"], batch)
        assert names["both"].hash() != before
    assert len(names["history"]["val_accuracy"]) == 2 and names["scores"].shape == (300, 10) and os.listdir("run")


def trained(replicas, devices):
    """The weights' hash and the losses after an epoch of a small regression."""
    random = np.random.default_rng(3)
    x = random.normal(size=(64, 3)).astype(np.float32)
    y = (x @ np.float32([[1], [-2], [0.5]])).astype(np.float32)
    s = choir.Strategy("mirrored", devices=devices, replicas=replicas, seed=5)
    with s.scope():
        net = choir.sequential(choir.layer("dense", "hidden", 3, 16, "tanh"),
                               choir.layer("dense", "out", 16, 1, "linear"))
        adam = choir.Optimizer("adam", learning_rate=0.03)
        loss = choir.Metric("loss")
    data, losses = choir.Dataset(s, {"x": x, "y": y}, batch=16, shuffle=64, seed=1), []

    def step(r):
        tape = r.tape()
        errors = choir.op.mean_squared_error(r.argument("y"), net(r.argument("x")))
        loss.update(errors)
        adam.minimize(r.average_loss(errors), tape)

    for _ in range(20):
        for batch in data:
            assert s.run(step, batch) == []
        losses.append(loss.result())
        loss.reset()
    return s.hash(), losses


def test_a_training_has_the_same_bits_on_any_devices():
    hash_, losses = trained(2, "cpu:0,cpu:1")
    assert losses[-1] < losses[0] / 20
    assert trained(2, "cpu:0")[0] == hash_
    assert trained(4, "cpu:0,cpu:1")[0] == trained(4, "cpu:0")[0]


def test_a_pass_that_was_left_begins_again():
    s, x = choir.Strategy(replicas=1), np.arange(4, dtype=np.float32)
    data = choir.Dataset(s, {"x": x}, batch=2)
    for _ in range(2):
        for batch in data:
            assert s.run(lambda r: r.argument("x"), batch)[0].tolist() == [0, 1]
            break
    assert len(list(data)) == len(list(data)) == 2


def test_a_batch_keeps_its_memory():
    s, x = choir.Strategy(replicas=1), np.arange(8, dtype=np.float32)
    data = choir.Dataset(s, {"x": x}, batch=2)

    def read(batch):
        return s.run(lambda r: r.argument("x"), batch)[0].tolist()
    first = next(iter(data))
    for last in data:
        if read(last) == [4, 5]:
            break
    every = list(data)
    gc.collect()
    assert [read(first), read(last)] == [[0, 1], [4, 5]]
    assert [read(batch) for batch in every] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    del every
    assert len({int(choir.library.address(batch.pointer)) for batch in data}) == 2  # used again
    other = choir.Strategy(replicas=1)
    s.close()
    with pytest.raises(choir.Error, match="closed"):
        other.run(lambda r: r.argument("x"), first)


def test_operations_by_name():
    def step(r):
        x = r.constant(np.float64([[1, -2, 3], [4, 5, -6]]))
        for axes in (choir.op.axis(1), 1, -1, (1,)):
            assert choir.op.sum(x, axes).numpy().tolist() == [2, 3]
        assert choir.op.sum(x, (0, -1)).numpy() == 5
        assert choir.op.max(x, choir.op.ALL_AXES).numpy() == 5
        assert choir.op.clip(x, -1, 2.5).numpy().tolist() == [[1, -1, 2.5], [2.5, 2.5, -1]]
        assert choir.op.reshape(x, (3, 2)).shape == (3, 2)
        assert choir.op.einsum("ij,kj->ik", x, x).numpy().tolist() == [[14, -24], [-24, 77]]
        assert choir.op.cumsum(x, 1, {"reverse": 1}).numpy().tolist() == [[2, 1, 3], [3, -1, -6]]
        assert choir.op.where(x > 0, x, 0).numpy().tolist() == [[1, 0, 3], [4, 5, 0]]
        assert (x[1:2] ** 2 - 1).numpy().tolist() == [[15, 24, 35]]
        assert (-x / 2).numpy()[0, 1] == 1
        assert choir.op.transpose(x).numpy().tolist() == choir.op.transpose(x, [1, 0]).numpy().tolist() == x.numpy().T.tolist()
        with pytest.raises(AttributeError, match="no such_op"):
            choir.op.such_op
        with pytest.raises(TypeError, match="2 arguments|3 arguments"):
            choir.op.relu(x, 1, 2)
    s = choir.Strategy("one_device")
    s.run(step)
    with pytest.raises(choir.Error, match=r"reshape: \[2, 3\]"):
        s.run(lambda r: choir.op.reshape(r.constant(np.zeros((2, 3))), (4, 2)))


def after_a_step(kind, **options):
    """A weight 1 after two updates with the gradient 1."""
    s = choir.Strategy("one_device")
    with s.scope():
        w, optimizer = choir.Variable("w", np.float32([1])), choir.Optimizer(kind, **({"learning_rate": 0.25} | options))

    def step(r):
        tape = r.tape()
        optimizer.minimize(choir.op.sum(r.read(w), choir.op.ALL_AXES), tape)
    for _ in range(2):
        s.run(step)
    return float(s.run(lambda r: r.read(w))[0][0])


def test_zero_of_the_caller_is_zero():
    assert after_a_step("momentum", momentum=0) == after_a_step("sgd", momentum=0.0, weight_decay=0) == 0.5
    assert after_a_step("momentum", momentum=None) == after_a_step("momentum") == pytest.approx(1 - 0.25 - 0.25 * 1.9)
    assert after_a_step("adamw", weight_decay=0) == after_a_step("adam") != after_a_step("adamw")
    assert after_a_step("momentum", nesterov=False) == after_a_step("momentum") != after_a_step("momentum", nesterov=True)
    frozen = [{"names": "w", "learning_rate_multiplier": 0}]
    assert after_a_step("sgd", groups=frozen) == 1
    assert after_a_step("sgd", schedule={"kind": "cosine", "steps": 2, "factor": 0}) == 0.625
    for wrong, text in (({"learning_rate": 0}, "learning_rate is 0"), ({"momentum": -1}, "momentum is -1; expected 0"),
                        ({"schedule": {"kind": "cosine", "power": 0}}, "schedule: power is 0")):
        with pytest.raises(ValueError, match=text):
            after_a_step("momentum", **({"learning_rate": 0.25} | wrong))
    s = choir.Strategy("one_device")
    with s.scope():
        plain = choir.layer("conv2d", "plain", 1, 2, 3, {"bias": False, "activation": "relu"})
        for missing in (("dropout", "d"), ("dense", "e", 3)):
            with pytest.raises(TypeError, match="(rate|out) is missing"):
                choir.layer(*missing)
        exact = choir.layer("layer_normalization", "n", 2, 0)
        half, zero = choir.Metric("half", "precision"), choir.Metric("zero", "precision", 0)
    assert choir.library.lib.choir_layer_variables(plain.pointer) == 1

    def step(r):
        for metric in (half, zero):
            metric.update(r.constant(np.int32([1, 0])), r.constant(np.float32([0.9, 0.1])))
        return exact(r.constant(np.float32([[1, -1]])))
    assert s.run(step)[0].tolist() == [[1, -1]]  # an epsilon of 1e-3 would change it
    assert half.result() == 1 and zero.result() == 0.5


def test_variables_and_gradients_by_hand():
    s = choir.Strategy("multi_worker_mirrored", replicas=2, cluster={"transport": "alone"})
    with s.scope():
        net, other = choir.layer("dense", "net", 2, 1), choir.Variable("other", np.float32([1, 2]))
        sgd = choir.Optimizer("sgd", learning_rate=0.5, ema_momentum=0.5)
        seen = choir.Variable("seen", np.float32([1]), synchronization="on_read", aggregation="sum")
    kernel, bias = net.variables
    assert [v.name for v in net.variables] == ["net/kernel", "net/bias"]
    kernel.assign(np.float32([[1], [2]]))
    bias.assign(3)
    assert kernel.numpy().tolist() == [[1], [2]] and bias.numpy().tolist() == [3]
    with pytest.raises(choir.Error, match="net/kernel"):
        kernel.assign(np.zeros(3, np.float32))

    def step(r):  # the loss changes net alone
        tape, x = r.tape(), r.constant(np.float32([[1, 2]]))
        of = [r.read(v) for v in net.variables]
        loss = choir.op.sum((x @ of[0] + of[1]) * r.read(other), choir.op.ALL_AXES)
        for v, gradient in zip(net.variables, tape.gradient(loss, of)):
            sgd.add_gradient(r, v, gradient)
        sgd.apply_gradients(r)
        seen.assign(r.constant(np.float32([r.id])))
    for run in (step, choir.function(step)):
        s.run(run)
    assert kernel.numpy().tolist() == [[1 - 6], [2 - 12]] and bias.numpy().tolist() == [3 - 6]
    assert other.numpy().tolist() == [1, 2] and seen.numpy().tolist() == [1]
    sgd.swap_averages()
    assert bias.numpy().tolist() == [-1.5]  # of 0 and -3
    sgd.swap_averages()
    assert sgd.learning_rate == 0.5
    sgd.set_learning_rate(0.25)
    s.run(step)
    assert bias.numpy().tolist() == [-4.5]
    s.close()
    with pytest.raises(choir.Error, match="closed"):
        bias.numpy()


def test_two_networks_with_losses_of_their_own():
    def weights(wrap):
        s = choir.Strategy(replicas=2)
        with s.scope():
            nets = [choir.layer("dense", name, 1, 1) for name in ("maker", "judge")]
            optimizers = [choir.Optimizer("sgd", learning_rate=0.5) for _ in nets]
        for net in nets:
            net.variables[0].assign(np.float32([[2]]))

        def of(net, optimizer, sign):
            def step(r):
                tape = r.tape()
                judged = nets[1](nets[0](r.constant(np.float32([[1]]))))
                optimizer.minimize(r.average_loss(choir.op.reshape(judged, [1]) * sign), tape, net.variables)
            return wrap(step)
        batch = next(iter(choir.Dataset(s, {"x": np.zeros((2, 1), np.float32)}, batch=2)))
        steps = [of(*one) for one in zip(nets, optimizers, (1, -1))]
        for step in steps * 3:
            s.run(step, batch)
        return [v.numpy().item() for net in nets for v in net.variables]
    a, b, c, d = 2, 0, 2, 0  # of the maker a x + b and the judge c y + d
    for _ in range(3):
        a, b = a - c / 2, b - c / 2
        c, d = c + (a + b) / 2, d + 1 / 2
    assert weights(lambda step: step) == weights(choir.function) == [a, b, c, d]


def test_messages_name_the_argument():
    s = choir.Strategy("one_device")
    with s.scope():
        for call, text in ((lambda: choir.Optimizer("adam", lr=0.1), "optimizer: no option 'lr'; options: "),
                           (lambda: choir.layer("conv2d", "c", 1, 2, 3, {"pad": -1}), "conv: no option 'pad'; options: pad"),
                           (lambda: choir.layer("conv2d", "c", 1, 2, 3, [1]), "choir_conv_options.*list; expected a dict"),
                           (lambda: choir.layer("dense", "c", 1, 2.5), "dense: out is 2.5; expected int64_t"),
                           (lambda: choir.layer("dense", "c", 1, 2)(np.zeros(1)), "layer: ndarray; expected a Tensor"),
                           (lambda: choir.Optimizer("adam", learning_rate="big"), "learning_rate is 'big'; expected double")):
            with pytest.raises(TypeError, match=text):
                call()

    def step(r):
        x = r.constant(np.float32([[1, 2], [3, 4]]))
        assert choir.op.cast(x, "f64").dtype == choir.op.cast(x, np.float64).dtype == np.float64
        assert choir.op.matmul(x, x).numpy().tolist() == (x @ x).numpy().tolist()
        assert choir.op.matmul(x, x, "b").numpy().tolist() == [[5, 11], [11, 25]]
        drawn = choir.op.random_normal(r, "float32", [3], 7)
        assert drawn.shape == (3,) and choir.op.fill(r, "i32", [2], 4).numpy().tolist() == [4, 4]
        assert r.constant(np.float16([0.5, 2])).numpy().tolist() == [0.5, 2]
        for call, text in ((lambda: choir.op.clip(x, 1), "clip: high is missing; expected x, low, high"),
                           (lambda: choir.op.cumsum(x, 1.5), "cumsum: axis is 1.5; expected int"),
                           (lambda: choir.op.cast(x, "f8"), None), (lambda: choir.op.relu(3.0), "relu: no tensor")):
            if text:
                with pytest.raises(TypeError, match=text):
                    call()
        with pytest.raises(ValueError, match="cast: 'f31' is unknown; did you mean 'f32'"):
            choir.op.cast(x, "f31")
    s.run(step)
    with pytest.raises(TypeError, match="strategy: no option 'timeouts'; options: timeout"):
        choir.Strategy("mirrored", timeouts=1)
    choir.Strategy("mirrored", timeout=5, precision="mixed_bf16", replicas=2)


def test_metrics_of_all_kinds():
    s = choir.Strategy(replicas=1)
    with s.scope():
        precision, matrix = choir.Metric("p", "precision", 0.5), choir.Metric("m", "confusion_matrix", 2)
        pool = choir.layer("max_pool2d", 2)  # what is left out is the default
        with pytest.raises(ValueError, match="metric: 'dense'"):
            choir.Metric("d", "dense")
        with pytest.raises(TypeError, match="4 arguments; expected 3"):
            choir.layer("max_pool2d", 2, 0, 0, 0)

    def step(r):
        labels = r.constant(np.int32([1, 0]))
        precision.update(labels, r.constant(np.float32([0.9, 0.8])))
        matrix.update(labels, r.constant(np.float32([[0, 1], [0, 1]])))
        return pool(r.constant(np.ones((1, 4, 4, 1), np.float32)))
    assert s.run(step)[0].shape == (1, 2, 2, 1)
    assert precision.result() == 0.5 and matrix.confusion_matrix().tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid", "gelu", "gelu_tanh", "silu"])
def test_activations_by_name(name):
    s = choir.Strategy("one_device", seed=3)
    with s.scope(), choir.initializer("constant", 1.0):
        dense, alone = choir.layer("dense", "d", 1, 1, name), choir.layer("activation", name)

    def step(r):
        x = r.constant(np.float32([[-2], [-0.5], [0.3], [1.7]]))
        expected = getattr(choir.op, name)(x).numpy()
        assert np.allclose(dense(x).numpy(), expected, atol=1e-6) and np.allclose(alone(x).numpy(), expected, atol=1e-6)
    s.run(step)


def test_metrics_of_one_ending():
    s, found = choir.Strategy("one_device"), {}
    with s.scope():
        for kind in ("mean_squared_error", "root_mean_squared_error", "mean_absolute_error"):
            found[kind] = choir.Metric(kind, kind)
        with pytest.raises(ValueError, match="'error' is unknown"):
            choir.Metric("error", "error")

    def step(r):
        for metric in found.values():
            metric.update(r.constant(np.float32([0, 0])), r.constant(np.float32([3, 1])))
    s.run(step)
    assert [metric.result() for metric in found.values()] == [5, 5 ** 0.5, 2]


def test_gradients_of_gradients():
    def step(r):
        tape, x = r.tape(), r.constant(np.float64([1, 2, 3]))
        first, = tape.gradient(x ** 3, [x], recorded=True)
        second, = tape.gradient(first, [x])
        assert np.allclose(first.numpy(), [3, 12, 27]) and np.allclose(second.numpy(), [6, 12, 18])
    choir.Strategy("one_device").run(step)


def test_wrong_names_are_refused():
    s = choir.Strategy("one_device")
    with pytest.raises(choir.Error, match="no scope"):
        choir.layer("dense", "a", 1, 1, "relu")
    with s.scope():
        with pytest.raises(ValueError, match="layer dense: activation: 'step' is unknown; known: linear, relu, tanh, .*gelu_tanh"):
            choir.layer("dense", "a", 1, 1, "step")
        with pytest.raises(ValueError, match="layer: 'lens'"):
            choir.layer("lens")
        with pytest.raises(choir.Error, match="learning_rate"):
            choir.Optimizer("sgd", learning_rate=-1.0)
    with pytest.raises(ValueError, match="lengths"):
        choir.Dataset(s, {"x": np.zeros(3), "y": np.zeros(4)}, batch=2)
    with pytest.raises(choir.Error, match="wrong"):
        choir.Strategy("wrong")


def test_ctrl_c_ends_a_run_and_the_program(tmp_path):
    program = tmp_path / "loop.py"
    program.write_text("import choir, numpy as np\n"
                       "s = choir.Strategy(replicas=2)\n"
                       "step = lambda r: r.all_reduce(r.constant(np.float32([1])))\n"
                       "for one in (step, choir.function(step)):\n"
                       "    try:\n"
                       "        print('ready', flush=True)\n"
                       "        while True:\n"
                       "            s.run(one)\n"
                       "    except KeyboardInterrupt:\n"
                       "        if one is not step:\n"
                       "            raise\n")
    with subprocess.Popen([sys.executable, "-B", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as running:
        for _ in range(2):
            assert running.stdout.readline() == "ready\n"
            running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt")

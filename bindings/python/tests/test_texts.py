"""What objects say about themselves: repr, len, summary, weights, signatures, help; and nearest names."""

import ast
import inspect
import itertools
import pathlib
import pydoc

import choir
import numpy as np
import pytest
from choir import op


def opened():
    s = choir.Strategy("mirrored", replicas=2, devices="cpu:0", seed=2)
    with s.scope():
        inside = choir.layer("dense", "inside", in_=4, out=4, activation="relu")
        net = choir.sequential(choir.layer("dense", "first", 3, 4), choir.layer("batch_normalization", "norm", 4),
                               choir.layer("residual", inside), choir.layer("dropout", "drop", rate=0.5))
        model = choir.Model(net, "mean_squared_error", choir.Optimizer("adam", learning_rate=0.5), [choir.Metric("r2")], name="m")
    return s, net, model


def test_objects_say_what_they_are():
    s, net, model = opened()
    data = choir.Dataset(s, {"x": np.zeros((5, 3), np.float32), "y": np.zeros(5, np.int32)}, batch=2)
    assert len(data) == 3 == len(list(data))
    assert repr(s) == "<choir.Strategy mirrored: 2 replicas on cpu:0>"
    assert repr(data) == "<choir.Dataset of 5 examples in batches of 2: x f32 [3], y i32 []>"
    assert repr(net) == "<choir.Layer sequential: 52 parameters>"
    assert repr(net.layers[0]) == '<choir.Layer dense "first": 16 parameters>'
    assert repr(net.variables[0]) == '<choir.Variable "first/kernel" f32 [3, 4]>'
    assert repr(model._metrics[0]) == '<choir.Metric r2 "r2">'
    assert repr(model._optimizer) == "<choir.Optimizer adam, learning_rate=0.5>"
    assert repr(model) == ('<choir.Model "m": loss mean_squared_error, optimizer adam, learning_rate=0.5, '
                           "<choir.Layer sequential: 52 parameters>>")
    assert [(v.shape, v.dtype, v.trainable) for v in net.variables[3:5]] == [
        ((4,), np.float32, True), ((4,), np.float32, False)]
    seen = []

    def step(r):
        x = r.constant(np.zeros((2, 3), np.float32))
        seen.extend([repr(r), repr(x), x, r])
    s.run(step)
    assert seen[:2] == ["<choir.Replica 0>", "<choir.Tensor f32 [2, 3]>"]
    assert repr(seen[2]) == "<choir.Tensor of a replica that has returned>"
    assert repr(seen[3]) == "<choir.Replica that has returned>"
    s.close()
    assert repr(s) == "<choir.Strategy, closed>" and repr(net) == "<choir.Layer sequential>"


def test_summary(capsys):
    _, _, model = opened()
    model.summary()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'Model "m", loss mean_squared_error, optimizer adam, learning_rate=0.5'
    assert [line.split() for line in lines[1:4]] == [
        ["layer", "variables", "parameters"], ["sequential"],
        ["dense", '"first"', "kernel", "[3,", "4],", "bias", "[4]", "16"]]
    assert lines[4].split()[-1] == "16" and "moving_mean [4]" in lines[4]
    assert lines[5].split() == ["residual"] and lines[6].startswith('    dense "inside"') and lines[6].endswith(" 20")
    assert lines[-1] == "52 parameters, 44 of them trainable"
    s = choir.Strategy("one_device")
    with s.scope():
        by_hand = choir.Model(lambda r: r.argument("x"))
    with pytest.raises(TypeError, match="summary: the model is a function"):
        by_hand.summary()


def test_weights_are_lists_of_arrays():
    s, net, model = opened()
    weights = model.get_weights()
    assert [w.shape for w in weights] == [v.shape for v in net.variables]
    before = s.hash()
    model.set_weights([w + 1 for w in weights])
    assert s.hash() != before and (net.get_weights()[0] == weights[0] + 1).all()
    model.set_weights([w.astype(np.float64) for w in weights])
    assert s.hash() == before
    with pytest.raises(ValueError, match="set_weights: 1 array; expected 8: first/kernel, first/bias"):
        model.set_weights(weights[:1])
    wrong = [w + 1 for w in weights]
    wrong[1] = np.zeros(5)
    with pytest.raises(ValueError, match=r"set_weights: first/bias: shape \[5\]; expected \[4\]"):
        model.set_weights(wrong)
    assert s.hash() == before  # nothing changed
    net.layers[0].set_weights(weights[:2])


def test_operations_have_signatures_and_help():
    assert str(inspect.signature(op.relu)) == "(x)"
    assert str(inspect.signature(op.matmul)) == "(a, b, which=None)"
    assert str(inspect.signature(op.cumsum)) == "(x, axis, o=None, *, exclusive=None, reverse=None)"
    assert op.log_softmax.__doc__ == "x - log(sum(exp(x))) along the last axis, without overflow. x is not a scalar."
    assert op.subtract.__doc__ == ("a + b, a - b, and a times b.\n\nOperands broadcast as in NumPy: [16, 784] and [784] give [16, 784]. "
                                   "Dtypes: f32, f64, i32, i64,\nu8; integers wrap around.")
    assert "Gradients are 0." in op.ceil.__doc__ and op.negate.__doc__.startswith("also i32")
    assert "approximation of gelu:" in op.gelu_tanh.__doc__
    text = "".join(pydoc.plain(pydoc.render_doc(op)).split()) # Python 3.13 breaks long lines
    for name in ("conv2d(x,filter,o=None,*,stride=None", "top_k(x", "bias_add(x,bias)", "einsum(equation,a,b)"):
        assert name in text
    assert {"relu", "concat", "conv2d", "random_normal", "split"} <= set(dir(op)) and "custom_op_apply" not in dir(op)


def test_arguments_by_name():
    def step(r):
        x = r.constant(np.float32([[1, -2, 3], [4, 5, -6]]))
        assert op.relu(x=x).numpy().tolist() == [[1, 0, 3], [4, 5, 0]]
        assert op.sum(x, axes=1).numpy().tolist() == op.sum(axes=(1,), x=x).numpy().tolist() == [2, 3]
        assert op.clip(x, high=2, low=0).numpy().tolist() == [[1, 0, 2], [2, 2, 0]]
        assert op.matmul(x, b=x, which="b").shape == (2, 2)
        assert op.cumsum(x, 1, reverse=True).numpy().tolist() == op.cumsum(x, 1, {"reverse": True}).numpy().tolist()
        image = op.reshape(x, shape=(1, 2, 3, 1))
        kernel = r.constant(np.ones((2, 2, 1, 1), np.float32))
        assert op.conv2d(image, kernel, padding="same", stride=2).shape == (1, 1, 2, 1)
        assert op.conv2d(image, kernel, {"stride": 2}, padding="same").shape == (1, 1, 2, 1)
        assert op.max_pool2d(image, 2, 1, "same").shape == (1, 2, 3, 1)
        assert op.random_normal(f=r, dtype="f32", shape=[2], seed=1).shape == (2,)
        states = op.gru(op.reshape(x, (1, 2, 3)), *[r.constant(np.zeros(n, np.float32)) for n in ((3, 6), (2, 6), (6,), (6,))])
        assert states.shape == (1, 2, 2)
        for call, text in ((lambda: op.relu(), "relu: x is missing; expected x"),
                           (lambda: op.relu(y=x), "relu: no parameter 'y'; expected x"),
                           (lambda: op.relu(x, x=x), "relu: x is given twice"),
                           (lambda: op.clip(x, 1), "clip: high is missing; expected x, low, high"),
                           (lambda: op.cumsum(x, 1, backwards=1), "cumsum: no option 'backwards'; options: "),
                           (lambda: op.conv2d(image, kernel, padding="full"), "padding is 'full'; expected int")):
            with pytest.raises(TypeError, match=text):
                call()
    choir.Strategy("one_device").run(step)


def test_constructors_by_name():
    s = choir.Strategy("one_device")
    with s.scope():
        conv = choir.layer("conv2d", "c", 1, out=2, kernel=3, padding="same", activation="relu", bias=False)
        other = choir.layer("conv2d", "d", 1, 2, 3, {"padding": -1, "activation": "relu", "bias": False})
        pool = choir.layer("max_pool2d", size=2, padding="valid")
        rate, auc = choir.Metric("accuracy"), choir.Metric("area", "auc", thresholds=100)
        plain = choir.Metric("something")
        assert [m._text for m in (rate, auc, plain)] == ['accuracy "accuracy"', 'auc "area"', 'mean "something"']
        for call, text in ((lambda: choir.layer("dense", "a", 3, units=4), "layer dense: no parameter 'units'; expected name, in, out"),
                           (lambda: choir.layer("dense", "a", 3, 4, out=4), "layer dense: out is given twice"),
                           (lambda: choir.layer("dense", in_=3, out=4), "layer dense: name is missing"),
                           (lambda: choir.layer("flatten", 1), "layer flatten: 1 arguments; expected 0"),
                           (lambda: choir.layer("conv2d", "e", 1, 2, 3, strides=2), "conv: no option 'strides'; options: stride"),
                           (lambda: choir.Metric("m", "accuracy", 3), "metric accuracy: 1 argument beside the name"),
                           (lambda: choir.sequential([conv]), "sequential: list; expected layers, as choir.sequential"),
                           (lambda: choir.Model(conv, "hinge", "adam"), "optimizer: str; expected an optimizer, as choir.Opt"),
                           (lambda: choir.Model(conv, "hinge", None, ["acc"]), "metrics: str; expected metrics, as"),
                           (lambda: choir.Model("conv"), "model: str; expected a layer, or a function")):
            with pytest.raises(TypeError, match=text):
                call()
    assert [v.shape for v in conv.variables] == [v.shape for v in other.variables] == [(3, 3, 1, 2)]
    x = np.ones((1, 4, 4, 1), np.float32)
    assert s.run(lambda r: pool(conv(r.constant(x))))[0].shape == (1, 2, 2, 2)


@pytest.mark.parametrize("name, near", [
    ("mse", "'mean_squared_error'?"), ("MSELoss", "'mean_squared_error'?"), ("mean_square_error", "'mean_squared_error'?"),
    ("L1Loss", "choir.op.abs"), ("sparse_categorical_crossentropy", "'sparse_softmax_cross_entropy'? It takes logits"),
    ("CrossEntropyLoss", "'sparse_softmax_cross_entropy'? It takes logits"), ("BCELoss", "'sigmoid_cross_entropy'? It takes logits"),
    ("add", None), ("huber", "choir.op.huber"), ("sparse_softmax_cross_entropy_smoothed", "the function lambda")])
def test_losses_of_keras_and_pytorch(name, near):
    s = choir.Strategy("one_device")
    with s.scope():
        net = choir.layer("dense", "d", 1, 1)
        with pytest.raises(ValueError) as e:
            choir.Model(net, name)
    text = str(e.value)
    assert text.startswith(f"model: loss {name!r} is unknown; ") and text.endswith(
        "nown: sparse_softmax_cross_entropy, mean_squared_error, sigmoid_cross_entropy, hinge, kl_divergence")
    assert near is None or f"did you mean {near}" in text or near in text


def test_near_names_of_keras_and_pytorch():
    s = choir.Strategy("one_device")
    with s.scope():
        for call, text in ((lambda: choir.Optimizer("Adam"), "optimizer: 'Adam' is unknown; did you mean 'adam'? Known: "),
                           (lambda: choir.Optimizer("SGD"), "did you mean 'sgd'?"), (lambda: choir.layer("Linear"), "mean 'dense'?"),
                           (lambda: choir.layer("Conv2D"), "mean 'conv2d'?"), (lambda: choir.layer("MaxPool2d"), "'max_pool2d'?"),
                           (lambda: choir.layer("BatchNorm2d"), "'batch_normalization'?"), (lambda: choir.layer("LSTM"), "'lstm'?"),
                           (lambda: choir.Metric("m", "sparse_categorical_accuracy"), "unknown; did you mean 'accuracy'?"),
                           (lambda: choir.Metric("m", "AUC"), "mean 'auc'?"), (lambda: choir.layer("xyz"), "unknown; known: dense")):
            with pytest.raises(ValueError) as e:
                call()
            assert text in str(e.value)
        with pytest.raises(TypeError, match="no option 'lr'; options: learning_rate, "):
            choir.Optimizer("adam", lr=1)


def test_exceptions_of_schedules_come_from_their_call():
    def schedule(step):
        if step in bad:
            raise LookupError(f"step {step}")
        return 0.5
    bad, s, other = {0, 2}, choir.Strategy(replicas=2), choir.Strategy(replicas=1)
    with s.scope():
        v, sgd = choir.Variable("v", np.float32([1])), choir.Optimizer("sgd", schedule=schedule)

    def step(r):
        tape = r.tape()
        sgd.minimize(op.sum(r.read(v), 0), tape)
    with pytest.raises(LookupError, match="step 0"):
        sgd.learning_rate
    other.run(lambda r: None)  # not from another call
    for run in (step, choir.function(step)):
        with pytest.raises(LookupError, match="step 0"):
            s.run(run)
        other.run(lambda r: None)
    bad.remove(0)
    s.run(step)
    assert v.numpy() == 0 and sgd.learning_rate == 0.5
    s.run(step)
    with pytest.raises(LookupError, match="step 2"):
        s.run(choir.function(step))
    with s.scope():
        net = choir.layer("dense", "d", 1, 1)
        model = choir.Model(net, "mean_squared_error", choir.Optimizer("sgd", schedule=schedule))
    x = np.ones((4, 1))
    with pytest.raises(LookupError, match="step 2"):  # of the log "learning_rate", after the last update
        model.fit(x, x, batch_size=2)
    bad.clear()
    assert model.fit(x, x, batch_size=2)["learning_rate"] == [0.5]


def test_indices_and_arrays_of_tensors():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def step(r):
        x = r.constant(array)
        for where in (0, -1, slice(1, 2), (slice(None), 0), (1, slice(0, 2), -1), (Ellipsis, -1), (0, Ellipsis), (0, 1, 2),
                      (slice(None), slice(2, 9)), (Ellipsis, slice(1, 1)), np.int64(1)):
            found = x[where].numpy()
            assert found.shape == array[where].shape and (found == array[where]).all()
        assert len(x) == 2 and x.ndim == 3 and [len(row) for row in x] == [3, 3]
        assert (np.asarray(x) == array).all() and np.mean(x) == array.mean()
        assert (np.float32(2) * x).numpy().tolist() == (array * 2 + x - array).numpy().tolist() == (array * 2).tolist()
        for call, kind, text in ((lambda: x[2], IndexError, "index 2 of axis 0, which has 2 elements"),
                                 (lambda: x[0, 0, 0, 0], IndexError, "4 indices for shape"), (lambda: x[::2], TypeError, "step 1"),
                                 (lambda: x[[0, 1]], TypeError, r"index \[0, 1\]; .*choir.op.gather"),
                                 (lambda: x[np.array([0, 1])], TypeError, r"index array\(\[0, 1\]\);"), (lambda: x[x], TypeError, "index <choir"),
                                 (lambda: x[True], TypeError, "True"),
                                 (lambda: len(x[0, 0, 0]), TypeError, "a scalar"), (lambda: np.exp(x), TypeError, "ufunc"),
                                 (lambda: x.mean(), AttributeError, r"no method 'mean'; choir.op.mean\(x"),
                                 (lambda: x.means, AttributeError, "no attribute 'means'"),
                                 (lambda: r.read(x), TypeError, "read: Tensor; expected a Variable")):
            with pytest.raises(kind, match=text):
                call()
        return x[:, 1]
    s = choir.Strategy(replicas=1)
    assert s.run(step)[0].tolist() == array[:, 1].tolist()
    recorded = choir.function(lambda r: r.argument("x")[0, 1:, -1])
    for _ in range(2):
        assert s.run(recorded, next(iter(choir.Dataset(s, {"x": array}, batch=2))))[0].tolist() == array[0, 1:, -1].tolist()


def test_an_error_does_not_repeat_an_earlier_one(tmp_path):
    s = choir.Strategy("one_device")
    with s.scope():
        model = choir.Model(choir.layer("dense", "d", 1, 1), "hinge")
    with pytest.raises(choir.Error, match="reshape"):
        s.run(lambda r: op.reshape(r.constant(np.zeros(2)), (3,)))
    with pytest.raises(choir.Error) as e:
        model.fit(np.ones((2, 1)), np.ones(2))
    assert str(e.value).endswith("has no optimizer; it is needed") and type(e.value).__module__ == "choir"
    s.save(tmp_path / "w.safetensors")
    s.restore(tmp_path / "w.safetensors")
    with pytest.raises(TypeError, match="devices is .*; expected a str"):
        choir.Strategy(devices=["cpu:0"])
    with pytest.raises(TypeError, match="early_stopping is True; expected a dict of choir_early_stopping"):
        model.fit(np.ones((2, 1)), np.ones(2), early_stopping=True)
    for of_keras, kind, text in (({"monitor": "loss"}, ValueError, "'loss' is unknown; .*auto, min, max. The option log .*log='loss'"),
                                 ({"mode": "min"}, TypeError, "no option 'mode'; options: monitor")):
        with pytest.raises(kind, match=text):
            model.fit(np.ones((2, 1)), np.ones(2), early_stopping=of_keras)
    with pytest.raises(ValueError, match="initializer: 'HeNormal' is unknown; did you mean 'he_normal'"):
        choir.initializer("HeNormal")


def test_checkpoints(tmp_path):
    def opened():
        s = choir.Strategy(replicas=2, seed=4)
        with s.scope():
            net, adam = choir.layer("dense", "d", 2, 1), choir.Optimizer("adam", learning_rate=0.1)
        x = np.random.default_rng(1).normal(size=(12, 2)).astype(np.float32)
        data = choir.Dataset(s, {"x": x, "y": x[:, :1]}, batch=4, shuffle=True)

        def step(r):
            tape = r.tape()
            adam.minimize(r.average_loss(op.mean_squared_error(r.argument("y"), net(r.argument("x")))), tape)

        def train(epochs, steps=None):
            for _ in range(epochs):
                for batch in itertools.islice(data, steps):
                    s.run(step, batch)
        return s, train
    whole, part, rest = opened(), opened(), opened()
    whole[1](4)
    part[1](2)
    folder = tmp_path / "run"
    with choir.Checkpoints(part[0], folder, max_to_keep=1) as saves:
        assert repr(saves) == f"<choir.Checkpoints in {str(folder)!r}>" and not saves.restore()
        assert saves.metadata("epoch") is None
        saves.save(epoch=2, loss=0.5)
        assert saves.metadata("epoch") == "2"
        with pytest.raises(choir.Error, match="is in use"):
            choir.Checkpoints(rest[0], folder)
    with pytest.raises(choir.Error, match="is closed"):
        saves.save()
    saves.close()
    with choir.Checkpoints(rest[0], folder) as saves:
        assert saves.restore() and saves.metadata("loss") == "0.5" and saves.metadata("other") is None
        rest[1](1, 2)  # leaves the pass after 2 batches
        assert saves.restore()
    rest[1](2)
    assert rest[0].hash() == whole[0].hash() != part[0].hash()
    with pytest.raises(TypeError, match="checkpoint: no option 'keep'; options: max_to_keep"):
        choir.Checkpoints(part[0], folder, keep=3)


def test_a_fit_with_checkpoints_of_options(tmp_path):
    s, _, model = opened()
    x = np.zeros((8, 3))
    with choir.Checkpoints(s, tmp_path / "run", max_to_keep=1) as saves:
        model.fit(x, np.zeros((8, 4)), epochs=3, checkpoints=saves)
        model.fit(x, np.zeros((8, 4)), epochs=4, checkpoints=saves)
        assert len(model.history()["loss"]) == 4
    assert len([one for one in (tmp_path / "run").iterdir() if one.name.startswith("step")]) == 1


def test_types_of_operations_are_written():
    stub = pathlib.Path(op.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    found = {one.name: one for one in ast.parse(stub).body if isinstance(one, ast.FunctionDef)}
    assert set(found) == set(dir(op)) - {"ALL_AXES"}
    for name, one in found.items():
        given = inspect.signature(getattr(op, name)).parameters.values()
        for kind, arguments in ((inspect.Parameter.POSITIONAL_OR_KEYWORD, one.args.args), (inspect.Parameter.KEYWORD_ONLY, one.args.kwonlyargs)):
            assert [p.name for p in given if p.kind == kind] == [a.arg for a in arguments]
    texts = {name: ast.unparse(one) for name, one in found.items()}
    assert texts["sum"].startswith("def sum(x: _Operand, axes: _Axes) -> Tensor:")
    assert "padding: int | str | None=None, dilation: int | None=None" in texts["conv2d"]
    assert texts["top_k"].startswith("def top_k(x: Tensor, k: int) -> tuple[Tensor, Tensor]:")

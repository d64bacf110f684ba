"""fit, evaluate and predict on arrays: as Keras means the arguments, and with the bits of Datasets."""

import choir
import numpy as np
import pytest

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(50, 3))
Y = X @ [[1], [-2], [0.5]]
CLASSES = (Y[:, 0] > 0).astype(np.int64)


def opened(replicas=2, loss="mean_squared_error", out=1, net=None, optimizer=None, **more):
    s = choir.Strategy("mirrored", replicas=replicas, seed=5)
    with s.scope():
        layer = choir.layer("dense", "w", 3, out)
        model = choir.Model(net(layer) if net else layer, loss, optimizer or choir.Optimizer("sgd", learning_rate=0.05),
                            [choir.Metric("accuracy")] if out > 1 else [], **more)
    return s, model


def dataset(s, rows=slice(None), **more):
    return choir.Dataset(s, {"x": X[rows].astype(np.float32), "y": Y[rows].astype(np.float32)}, **more)


def test_arrays_have_the_bits_of_a_dataset():
    one, other = opened(), opened()
    history = one[1].fit(X, Y, batch_size=8, epochs=3)
    data = dataset(other[0], batch=8, shuffle=True, seed=5)
    assert history == other[1].fit(data, epochs=3)
    assert one[0].hash() == other[0].hash()
    assert one[1].fit(X, Y, batch_size=8, epochs=2) == other[1].fit(data, epochs=2)  # other orders than before
    whole = dataset(other[0], batch=8)
    assert one[1].evaluate(X, Y, batch_size=8) == other[1].evaluate(whole)
    assert (one[1].predict(X) == other[1].predict(whole)).all()
    plain, fixed = opened(), opened()
    plain[1].fit(X, Y, shuffle=False)  # 32 examples in a batch
    fixed[1].fit(dataset(fixed[0], batch=32))
    assert plain[0].hash() == fixed[0].hash() != one[0].hash()


def test_a_shuffle_depends_on_the_seed_and_the_pass():
    def losses(seed, *epochs):
        s = choir.Strategy(replicas=2, seed=seed)
        with s.scope():
            model = choir.Model(choir.layer("dense", "w", 3, 1), "mean_squared_error", choir.Optimizer("sgd"))
        model.set_weights([np.ones((3, 1)), np.zeros(1)])
        for n in epochs:
            model.fit(X, Y, batch_size=4, epochs=n)
        return [w.tolist() for w in model.get_weights()]
    assert losses(1, 3) == losses(1, 1, 2) != losses(2, 3)


def test_the_last_examples_are_held_back():
    one, other = opened(), opened()
    history = one[1].fit(X, Y, batch_size=8, epochs=2, validation_split=0.25)  # floor(50 * 0.75) = 37 remain
    data, held = dataset(other[0], slice(37), batch=8, shuffle=True, seed=5), dataset(other[0], slice(37, None), batch=8)
    assert history == other[1].fit(data, epochs=2, validation=held) and len(history["val_loss"]) == 2
    assert history["val_loss"][-1] == one[1].evaluate(X[37:], Y[37:], batch_size=8)["loss"]
    for given in ((X[37:], Y[37:]), held):
        s, model = opened()
        if given is held:
            given = dataset(s, slice(37, None), batch=8)
        assert model.fit(X[:37], Y[:37], batch_size=8, epochs=2, validation_data=given) == history
    for wrong, text in ((1.5, "1.5; expected a number between 0 and 1"), (0.999, "of 50 examples leaves none"), (-0.1, "-0.1; expected")):
        with pytest.raises(ValueError, match=f"validation_split.*{text}"):
            one[1].fit(X, Y, validation_split=wrong)


def test_sample_weights():
    weights = RANDOM.uniform(size=50)
    s, model = opened(sample_weights="w")
    expected = (weights * (model.predict(X)[:, 0] - Y[:, 0]) ** 2).mean()
    assert model.evaluate(X, Y, sample_weight=weights)["loss"] == pytest.approx(expected, rel=1e-5)
    plain, held = model.evaluate(X, Y)["loss"], {}
    assert plain == pytest.approx(((model.predict(X) - Y) ** 2).mean(), rel=1e-5)  # weights of 1
    for i, data in enumerate([(X, Y), (X, Y, weights)]):
        _, model = opened(sample_weights="w")
        held[i] = model.fit(X, Y, sample_weight=0 * weights, validation_data=data)["val_loss"][0]
    assert held[0] == plain and held[1] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="fit: sample_weight .*sample_weights="):
        opened()[1].fit(X, Y, sample_weight=weights)
    with pytest.raises(ValueError, match="'w' has 49 examples, and 'x' has 50"):
        model.fit(X, Y, sample_weight=weights[1:])


def test_several_inputs_and_names_of_columns():
    def net(layer):
        return lambda r: layer(r.argument("a") + r.argument("b"))
    inputs = {"a": X / 2, "b": X / 2}
    _, model = opened(net=net)
    _, plain = opened()
    assert np.allclose(model.predict(inputs), plain.predict(X))
    assert model.fit(inputs, Y)["loss"] == pytest.approx(plain.fit(X, Y)["loss"])
    assert opened(net=net)[1].evaluate({"y": Y, **inputs}) == opened(net=net)[1].evaluate(inputs, Y)
    s, model = opened()  # the first data have other names
    data = choir.Dataset(s, {"points": X.astype(np.float32), "values": Y.astype(np.float32)}, batch=5)
    assert model.evaluate(data) == pytest.approx(model.evaluate(X, Y))
    assert (model.predict(data) == model.predict(X)).all()
    s, model = opened(input="points", labels="values")
    model.fit(X, Y)
    with pytest.raises(choir.Error, match="points"):
        model.fit({"x": X}, Y)
    with pytest.raises(ValueError, match="column 'values', and so has y"):
        model.fit({"points": X, "values": Y}, Y)


def test_predictions_before_any_labels():
    s, model = opened()
    kernel, bias = model.get_weights()
    assert np.allclose(model.predict(X.tolist() and X), X @ kernel + bias, atol=1e-6)
    assert model.predict(X[:1]).shape == (1, 1)
    model.fit(X, Y)


def test_datasets_of_arrays_are_freed(tmp_path):
    folder = str(tmp_path / "run")
    whole, part, rest = opened(), opened(), opened()
    whole[1].fit(X, Y, epochs=4)

    class Stop:
        def batch_end(self, event):
            if event.step == 3:
                event.model.stop()
    part[1].fit(X, Y, epochs=4, checkpoints=folder, callbacks=[Stop()], save_at_stop=True)
    for _ in range(3):
        rest[1].evaluate(X, Y)  # a checkpoint does not have the data of this
    history = rest[1].fit(X, Y, epochs=4, checkpoints=folder)
    assert rest[0].hash() == whole[0].hash() and len(history["loss"]) == 4


def test_labels_and_arrays_that_do_not_fit():
    s, model = opened(loss="sparse_softmax_cross_entropy", out=2)
    model.fit(X, CLASSES.astype(np.uint16), epochs=2)
    with pytest.raises(choir.Error, match="labels?.* f32"):
        model.fit(X, CLASSES.astype(np.float32))
    with pytest.raises(choir.Error, match="label"):
        model.fit(X, CLASSES + 1)
    data = dataset(s, batch=8)
    for call, kind, text in (
            (lambda: model.fit(X, CLASSES[:49]), ValueError, "fit: column 'y' has 49 examples, and 'x' has 50"),
            (lambda: model.fit(X), TypeError, "fit: no y; expected labels"),
            (lambda: model.fit(X, np.array(["a"] * 50)), TypeError, "fit: y: dtype <U1; expected"),
            (lambda: model.fit(X, 3), ValueError, "fit: y: one value; expected an array"),
            (lambda: model.fit(data, 5), TypeError, "fit: y beside a Dataset, .*epochs=5"),
            (lambda: model.fit(data, batch_size=5), TypeError, "fit: batch_size beside a Dataset"),
            (lambda: model.fit(data, validation_split=0.1), TypeError, "fit: validation_split beside a Dataset"),
            (lambda: model.fit(X, CLASSES, batch_size=2.5), TypeError, "fit: batch_size is 2.5; expected a whole number"),
            (lambda: model.fit(X, CLASSES, batch_size=0), ValueError, "fit: batch_size is 0; expected 1 or more"),
            (lambda: model.fit(X, CLASSES, epochs=-1), ValueError, "fit: epochs is -1; expected 1 or more"),
            (lambda: model.fit(X, CLASSES, epochs=1.5), TypeError, "fit: epochs is 1.5; expected a whole number"),
            (lambda: model.fit(X, CLASSES, class_weight={0: 2}), TypeError, "no option 'class_weight'; choir.Model"),
            (lambda: model.fit(X, CLASSES, verbose=1), TypeError, "no option 'verbose'; fit prints nothing"),
            (lambda: model.fit(X, CLASSES, validation_data=X), TypeError, "validation: ndarray; expected a Dataset, or"),
            (lambda: model.fit(X, CLASSES, validation_data=(X,)), ValueError, "1 values; expected"),
            (lambda: model.fit(X, CLASSES, validation_split=0.1, validation_data=(X, CLASSES)), TypeError, "one of them"),
            (lambda: model.fit(list(X), CLASSES), TypeError, "fit: data: list; expected a Dataset, an array"),
            (lambda: model.fit({}, CLASSES), ValueError, "x is empty"),
            (lambda: choir.Dataset(s, {"x": X}, batch=2.5), TypeError, "dataset: batch is 2.5; expected a whole number"),
            (lambda: choir.Dataset(s, {"x": X}, batch=0), ValueError, "dataset: batch is 0; expected 1 or more"),
            (lambda: choir.Dataset(s, {"x": X, "y": 1.0}, batch=2), ValueError, "lengths x 50, y none; expected one"),
            (lambda: choir.Dataset(s, X, batch=2), TypeError, "dataset: ndarray; expected a dict of arrays")):
        with pytest.raises(kind, match=text):
            call()
    model.fit(X, CLASSES)


@pytest.mark.parametrize("loss", ["mean_squared_error", "sigmoid_cross_entropy"])
def test_whole_numbers_are_labels_of_losses_of_numbers(loss):
    found = [opened(loss=loss)[1].fit(X, y)["loss"] for y in (CLASSES, CLASSES[:, None] > 0, CLASSES.astype(float), CLASSES.astype(np.uint8))]
    assert found[0] == found[1] == found[2] == found[3]
    s, model = opened(loss=loss)
    with pytest.raises(choir.Error, match=f"{loss}: targets are i64 and predictions f32; one dtype"):
        model.fit(choir.Dataset(s, {"x": X.astype(np.float32), "y": CLASSES}, batch=4))


def test_shuffle_true_is_the_whole_dataset():
    s = choir.Strategy(replicas=1)
    def order(shuffle):
        data = choir.Dataset(s, {"x": np.arange(64)}, batch=64, shuffle=shuffle, seed=3)
        return s.run(lambda r: r.argument("x"), next(iter(data)))[0].tolist()
    assert order(True) == order(64) != order(8) != order(False) == order(0) == list(range(64))

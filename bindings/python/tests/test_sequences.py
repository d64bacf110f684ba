"""Sequences of different lengths: against numbers of Keras, in steps and in Model.fit."""

import choir
import numpy as np
import pytest

LENGTHS = [4, 1, 3]
# Keras 3.15: Bidirectional(LSTM(2), backward_layer=GRU(2, go_backwards=True)) after Masking()
KERAS = [[-0.2903326, 0.3272969, -0.3094134, -0.4631059], [-0.4406358, -0.070592, 0.5219439, 0.0841605],
         [-0.5317786, 0.229605, -0.4706201, -0.4652264]]


def waves(*shape, at=0):
    return np.sin(np.arange(np.prod(shape)) + at).astype(np.float32).reshape(shape)


def opened():
    s = choir.Strategy(replicas=1)
    with s.scope():
        last = [choir.sequential(rnn, choir.layer("last_timestep"))
                for rnn in (choir.layer("lstm", "f", 2, 2), choir.layer("gru", "b", 2, 2))]
        both = choir.layer("bidirectional", *last)
    for variable, value in zip(both.variables, [waves(2, 8), waves(2, 8, at=1), waves(8, at=2), waves(2, 6, at=3),
                                                waves(2, 6, at=4), waves(6, at=5), waves(6, at=6)]):
        variable.assign(value)
    return s, both


@pytest.mark.parametrize("padding", [0, 50])
def test_padded_sequences_are_those_of_keras(padding):
    s, both = opened()
    x = waves(3, 4, 2)
    for row, length in zip(x, LENGTHS):
        row[length:] = padding
    found, = s.run(lambda r: both(r.constant(x), lengths=np.int16(LENGTHS)))
    assert np.abs(found - KERAS).max() < 1e-6
    by_hand, = s.run(lambda r: choir.op.last_timestep(r.constant(x), np.int64(LENGTHS)))
    assert (by_hand == [x[i, n - 1] for i, n in enumerate(LENGTHS)]).all()
    with pytest.raises(choir.Error, match="lengths of sequences: index 5 at position 1"):
        s.run(lambda r: both(r.constant(x), lengths=[4, 5, 3]))


def test_a_model_of_sequences():
    losses = []
    for padding in (0, 7):
        s, both = opened()
        x = np.full((3, 4, 2), padding, np.float32)
        for row, length in zip(x, LENGTHS):
            row[:length] = waves(length, 2, at=length)
        with s.scope():
            net = choir.sequential(both, choir.layer("dense", "d", 4, 2))
            model = choir.Model(net, "sparse_softmax_cross_entropy", choir.Optimizer("sgd", learning_rate=0.5),
                                [choir.Metric("a", "accuracy")], input="x", labels="y", lengths="n")
        data = choir.Dataset(s, {"x": x, "y": np.uint8([[0], [1], [0]]), "n": np.int16(LENGTHS)}, batch=3)
        losses.append(model.fit(data, epochs=5)["loss"])
        assert set(model.evaluate(data)) == {"loss", "a"}
    assert losses[0][-1] < losses[0][0] - 0.1 and np.allclose(losses[0], losses[1])

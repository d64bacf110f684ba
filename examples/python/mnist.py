"""Trains a classifier of handwritten digits on two replicas, from Python. Run it with the module choir in
PYTHONPATH, in a folder that has data/ (the digits of the C examples)."""

import gzip

import choir
import numpy as np


def digits(name, skip, dtype):
    with gzip.open(f"data/mnist-10k-{name}-ubyte.gz") as file:
        return np.frombuffer(file.read()[skip:], np.uint8).astype(dtype)


x = digits("images-idx3", 16, np.float32).reshape(-1, 784) / 255
y = digits("labels-idx1", 8, np.int32)
both = choir.Strategy("mirrored", devices="cpu:0,cpu:1", seed=1)
with both.scope():
    net = choir.sequential(choir.layer("dense", "hidden", 784, 128, "relu"),
                           choir.layer("dense", "digits", 128, 10, "linear"))
    adam = choir.Optimizer("adam", learning_rate=1e-3)
    loss, accuracy = choir.Metric("loss"), choir.Metric("accuracy", "accuracy")
train = choir.Dataset(both, {"x": x[:8000], "y": y[:8000]}, batch=128, shuffle=8000, seed=42)
test = choir.Dataset(both, {"x": x[8000:], "y": y[8000:]}, batch=128)


def train_step(r):
    tape = r.tape()
    losses = choir.op.sparse_softmax_cross_entropy(r.argument("y"), net(r.argument("x")))
    loss.update(losses)
    adam.minimize(r.average_loss(losses), tape)


def test_step(r):
    accuracy.update(r.argument("y"), net(r.argument("x")))


for epoch in range(3):
    for batch in train:
        both.run(train_step, batch)
    for batch in test:
        both.run(test_step, batch)
    print(f"epoch {epoch + 1}: loss {loss.result():.4f}, {100 * accuracy.result():.2f} % of the test set right")
    loss.reset()
    accuracy.reset()

"""A net of torch in Choir: its losses, step by step. Those of torch are stored; where a test finds torch, it
compares with torch, too."""

import importlib.util
import json
import struct

import choir
import pytest

from torch_net import BATCH, STEPS, STORED, draw, losses_of_torch

has_torch = importlib.util.find_spec("torch") is not None


def write_safetensors(path, arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def losses_of_choir(folder):
    x, y, weights = draw()
    write_safetensors(folder / "torch.safetensors", weights)
    s = choir.Strategy("mirrored", replicas=2)
    with s.scope():
        net = choir.sequential(choir.layer("dense", "hidden", 12, 48, "tanh"), choir.layer("dense", "out", 48, 5, "linear"))
        momentum = choir.Optimizer("momentum", learning_rate=0.05, momentum=0.9)
    s.restore(str(folder / "torch.safetensors"), map="torch")

    def step(r):
        tape = r.tape()
        losses = choir.op.sparse_softmax_cross_entropy(r.argument("y"), net(r.argument("x")))
        mean = r.average_loss(losses)
        momentum.minimize(mean, tape)
        return r.all_reduce(mean)

    data, losses = choir.Dataset(s, {"x": x, "y": y}, batch=BATCH), []
    while len(losses) < STEPS:
        losses += [float(s.run(step, batch)[0]) for batch in data]
    return losses


@pytest.mark.parametrize("source", ["stored", pytest.param("torch", marks=pytest.mark.skipif(not has_torch, reason="no torch"))])
def test_a_net_follows_the_losses_of_torch(tmp_path, source):
    theirs = losses_of_torch() if source == "torch" else [float(line) for line in STORED.read_text().split()]
    ours = losses_of_choir(tmp_path)
    assert len(theirs) == len(ours) == STEPS
    for step, (found, needed) in enumerate(zip(ours, theirs)):
        assert abs(found - needed) < 1e-5, step
    assert ours[-1] < ours[0] / 2

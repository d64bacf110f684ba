"""A net of torch in Choir: its losses, step by step. Without torch the test is skipped."""

import json
import struct

import choir
import numpy as np
import pytest

STEPS, BATCH = 100, 32


def write_safetensors(path, arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_a_net_follows_the_losses_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    random = np.random.default_rng(2)
    x = random.normal(size=(4 * BATCH, 12)).astype(np.float32)
    y = (x @ random.normal(size=(12, 5))).argmax(1).astype(np.int32)
    theirs = torch.nn.Sequential()
    theirs.add_module("hidden", torch.nn.Linear(12, 48))
    theirs.add_module("tanh", torch.nn.Tanh())
    theirs.add_module("out", torch.nn.Linear(48, 5))
    write_safetensors(tmp_path / "torch.safetensors", {k: v.numpy() for k, v in theirs.state_dict().items()})
    s = choir.Strategy("mirrored", replicas=2)
    with s.scope():
        ours = choir.sequential(choir.layer("dense", "hidden", 12, 48, "tanh"), choir.layer("dense", "out", 48, 5, "linear"))
        momentum = choir.Optimizer("momentum", learning_rate=0.05, momentum=0.9)
    s.restore(str(tmp_path / "torch.safetensors"), map="torch")

    def step(r):
        tape = r.tape()
        losses = choir.op.sparse_softmax_cross_entropy(r.argument("y"), ours(r.argument("x")))
        mean = r.average_loss(losses)
        momentum.minimize(mean, tape)
        return r.all_reduce(mean)

    sgd = torch.optim.SGD(theirs.parameters(), lr=0.05, momentum=0.9)
    data, first, steps = choir.Dataset(s, {"x": x, "y": y}, batch=BATCH), None, 0
    while steps < STEPS:
        for i, batch in enumerate(data):
            part = slice(i * BATCH, (i + 1) * BATCH)
            sgd.zero_grad()
            loss = torch.nn.functional.cross_entropy(theirs(torch.from_numpy(x[part])), torch.from_numpy(y[part]).long())
            loss.backward()
            sgd.step()
            found = float(s.run(step, batch)[0])
            assert abs(found - loss.item()) < 1e-5, steps
            first = first or found
            steps += 1
    assert found < first / 2

"""A net, its data and its losses in torch. With torch, `python3 torch_net.py` writes torch_losses.txt."""

import pathlib

import numpy as np

STEPS, BATCH = 100, 32
STORED = pathlib.Path(__file__).with_name("torch_losses.txt")


def draw():
    """Inputs, labels and initial weights, which are as uniform as those of torch.nn.Linear."""
    random = np.random.Generator(np.random.PCG64(2))

    def numbers(*shape, bound=1.0):
        return ((random.random(shape) * 2 - 1) * bound).astype(np.float32)
    x = 2 * numbers(4 * BATCH, 12)
    y = (x @ numbers(12, 5)).argmax(1).astype(np.int32)
    hidden, out = 12 ** -0.5, 48 ** -0.5
    weights = {"hidden.weight": numbers(48, 12, bound=hidden), "hidden.bias": numbers(48, bound=hidden),
               "out.weight": numbers(5, 48, bound=out), "out.bias": numbers(5, bound=out)}
    return x, y, weights


def losses_of_torch():
    import torch
    x, y, weights = draw()
    net = torch.nn.Sequential()
    net.add_module("hidden", torch.nn.Linear(12, 48))
    net.add_module("tanh", torch.nn.Tanh())
    net.add_module("out", torch.nn.Linear(48, 5))
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(STEPS):
        part = slice(step % 4 * BATCH, (step % 4 + 1) * BATCH)
        sgd.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(torch.from_numpy(x[part])), torch.from_numpy(y[part]).long())
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    STORED.write_text("".join(f"{loss:.9g}\n" for loss in losses_of_torch()))

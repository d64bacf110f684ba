"""Makes the cases that torch_test.c wrote with PyTorch: largest difference over largest value below
1e-5, of each result and each gradient. With a second argument, writes that file as torch_stored.txt."""
import sys

import torch
import torch.nn.functional as F

MOST = 1e-5


def nchw(x):
    return x.permute(0, 3, 1, 2)


def nhwc(x):
    return x.permute(0, 2, 3, 1)


def oihw(filter):
    return filter.permute(3, 2, 0, 1)


def attend(q, k, v, heads, causal):
    (n, t, width), s = q.shape, k.shape[1]
    q, k, v = (z.reshape(n, -1, heads, width // heads).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.transpose(2, 3) * q.shape[3] ** -0.5
    if causal:
        scores = scores.masked_fill(torch.ones(t, s).triu(1 + s - t).bool(), float("-inf"))
    return (torch.softmax(scores, 3) @ v).transpose(1, 2).reshape(n, t, width)


def recurrent(cell, x, kernel, recurrent, bias, recurrent_bias):
    """PyTorch's weights are ours transposed."""
    layer = cell(x.shape[2], recurrent.shape[0], batch_first=True)
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    given = [kernel.T, recurrent.T, bias, recurrent_bias]
    return torch.func.functional_call(layer, dict(zip(names, given)), x)[0] \
        if hasattr(torch, "func") else by_hand(layer, names, given, x)


def by_hand(layer, names, given, x):
    state = torch.zeros(1, x.shape[0], layer.hidden_size)
    if isinstance(layer, torch.nn.LSTM):
        return torch._VF.lstm(x, (state, state), given, True, 1, 0.0, True, False, True)[0]
    return torch._VF.gru(x, state, given, True, 1, 0.0, True, False, True)[0]


def lstm(x, kernel, again, bias):
    return recurrent(torch.nn.LSTM, x, kernel, again, bias, torch.zeros_like(bias))


def packed_lstm(x, kernel, again, bias, lengths):
    """Both directions, with the same weights, of padded sequences; behind them the last states."""
    layer = torch.nn.LSTM(x.shape[2], again.shape[0], batch_first=True, bidirectional=True)
    names = [f"{name}_l0{way}" for way in ("", "_reverse") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    given = [kernel.T, again.T, bias, torch.zeros_like(bias)] * 2
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y, (last, _) = torch.func.functional_call(layer, dict(zip(names, given)), (packed,))
    y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])
    return torch.cat([y, torch.cat([last[0], last[1]], 1)[:, None]], 1)


def packed_cell(x, kernel, again, bias, lengths):
    """Of padded sequences: the states, and behind them the last cells."""
    layer = torch.nn.LSTM(x.shape[2], again.shape[0], batch_first=True)
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    given = [kernel.T, again.T, bias, torch.zeros_like(bias)]
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    y, (_, cell) = torch.func.functional_call(layer, dict(zip(names, given)), (packed,))
    y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])
    return torch.cat([y, cell[0][:, None]], 1)


def gru(x, kernel, again, bias, again_bias):
    """PyTorch's order of parts is reset, update, new; ours update, reset, new."""
    def order(w):
        z, r, m = w.chunk(3, -1)
        return torch.cat([r, z, m], -1)
    return recurrent(torch.nn.GRU, x, order(kernel), order(again), order(bias), order(again_bias))


def read_tensor(file):
    kind, rank, *rest = file.readline().split()
    shape = [int(word) for word in rest[:int(rank)]]
    numbers = [float(word) for word in rest[int(rank):]]
    dtype = torch.float32 if kind == "float" else torch.int64
    return torch.tensor(numbers, dtype=torch.float64).to(dtype).reshape(shape)


def difference(ours, theirs):
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-30))


def line_of(t):
    """As in torch_stored.c."""
    v = t.detach().double().flatten()
    i = torch.arange(1, len(v) + 1, dtype=torch.float64)
    sums = [float((v * torch.cos(0.7 * k * i)).sum() / len(v) ** 0.5) for k in range(1, 9)]
    return " ".join(f"{number:.9g}" for number in [float(v.abs().max()), *sums]) + "\n"


def main():
    worst, wrong, cases, stored = 0.0, 0, 0, []
    with open(sys.argv[1]) as file:
        while formula := file.readline().strip():
            inputs = [read_tensor(file) for _ in range(int(file.readline()))]
            result, back = read_tensor(file), read_tensor(file)
            sources = [t for t in inputs if t.is_floating_point()]
            gradients = [read_tensor(file) for _ in sources]
            for t in sources:
                t.requires_grad_()
            theirs = eval(formula, globals(), dict(zip("abcde", inputs)))
            theirs.backward(back)
            stored += [formula + "\n", line_of(theirs), *(line_of(t.grad) for t in sources)]
            for what, ours, other in [("result", result, theirs.detach())] + [
                    (f"gradient {i}", g, t.grad) for i, (g, t) in enumerate(zip(gradients, sources))]:
                off = difference(ours, other)
                worst = max(worst, off)
                if not off < MOST:
                    print(f"{formula}: {what} is off by {off:.3g}, allowed {MOST}")
                    wrong += 1
            cases += 1
    print(f"PyTorch {torch.__version__}: {cases} formulas, off by at most {worst:.3g}")
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            file.writelines([f"# PyTorch {torch.__version__}\n", *stored])
    return 1 if wrong or cases < 90 else 0


sys.exit(main())

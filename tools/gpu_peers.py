"""Times the training steps of gpu_figures.c in PyTorch, on the same GPU. Arguments: gpt2, resnet50 or mlp128, the
number of steps, the batch, the device, and perhaps "small". Prints a JSON line."""

import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WARM = 5


class Block(nn.Module):
    """A block of GPT-2 with causal attention."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.hidden, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = (part.view(n, t, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(y.transpose(1, 2).reshape(n, t, width))
        return x + self.back(F.gelu(self.hidden(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2 with tied embeddings."""

    def __init__(self, words, places, width, blocks, heads):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.norm(self.blocks(x)) @ self.words.weight.T


def convolve(before, after, size, stride, relu):
    layers = [nn.Conv2d(before, after, size, stride, size // 2, bias=False), nn.BatchNorm2d(after)]
    return layers + [nn.ReLU()] * relu


class Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, before, middle, stride):
        super().__init__()
        after = 4 * middle
        self.inside = nn.Sequential(*convolve(before, middle, 1, 1, True), *convolve(middle, middle, 3, stride, True),
                                    *convolve(middle, after, 1, 1, False))
        self.shortcut = nn.Identity() if before == after else nn.Sequential(*convolve(before, after, 1, stride, False))

    def forward(self, x):
        return F.relu(self.inside(x) + self.shortcut(x))


def make_resnet50(small):
    channels = middle = 8 if small else 64
    layers = [*convolve(3, channels, 7, 2, True), nn.MaxPool2d(3, 2)]
    for stage, blocks in enumerate([1, 1] if small else [3, 4, 6, 3]):
        for block in range(blocks):
            layers.append(Bottleneck(channels, middle, 2 if block == 0 and stage > 0 else 1))
            channels = 4 * middle
        middle *= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10 if small else 1000))


def make(model, batch, small, device):
    """The net, its inputs and labels."""
    labels = torch.ones(batch, dtype=torch.long, device=device)
    if model == "gpt2":
        words, places = (50, 16) if small else (50257, 1024)
        net = Gpt2(words, places, 24, 2, 2) if small else Gpt2(words, places, 768, 12, 12)
        tokens = (torch.arange(batch * places, device=device) * 7919 % words).view(batch, places)
        return net, tokens, tokens
    if model == "resnet50":
        side = 32 if small else 224
        x = torch.full((batch, 3, side, side), 0.5, device=device).to(memory_format=torch.channels_last)
        return make_resnet50(small).to(memory_format=torch.channels_last), x, labels
    net = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    return net, torch.full((batch, 784), 0.5, device=device), labels


def main():
    model, steps, batch, device = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    small, mixed = len(sys.argv) > 5, model != "mlp128"
    on_gpu = device.startswith("cuda")
    net, x, labels = make(model, batch, small, device)
    net = net.to(device)
    optimizer = torch.optim.Adam(net.parameters(), fused=on_gpu and mixed)
    compiled = torch.compile(net) if mixed and on_gpu else net

    def run(count):
        for _ in range(count):
            with torch.autocast(device.split(":", maxsplit=1)[0], dtype=torch.bfloat16, enabled=mixed):
                scores = compiled(x)
            loss = F.cross_entropy(scores.flatten(0, -2).float(), labels.flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()

    run(WARM)
    begun = time.monotonic()
    run(steps)
    each = (time.monotonic() - begun) / steps
    print(json.dumps({"figure": model, "by": "torch " + torch.__version__, "batch": batch, "step_ms": round(each * 1e3, 4),
                      "examples_per_s": round(batch / each, 1), "small": small, "compiled": compiled is not net,
                      "memory_mib": torch.cuda.max_memory_allocated() >> 20 if on_gpu else 0}))


main()

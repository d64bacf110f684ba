"""PyTorch: resnet18, mobilenet and lstm of `choir bench train`, on the same random data.

usage: torch_nets.py CASE REPLICAS SECONDS [THREADS [compile]]
REPLICAS > 1: a process and a core each, DistributedDataParallel over gloo. 1: THREADS intra-op threads."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from timing import BLOCKS, BYTES, CLASSES, IMAGES, LENGTH, STAGES, TEXTS, WIDTH, measure, report


def conv(n, m, size, stride=1, groups=1):
    return [nn.Conv2d(n, m, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(m)]


class Block(nn.Module):
    def __init__(self, n, m, stride):
        super().__init__()
        self.inside = nn.Sequential(*conv(n, m, 3, stride), nn.ReLU(inplace=True), *conv(m, m, 3))
        self.beside = nn.Identity() if n == m and stride == 1 else nn.Sequential(*conv(n, m, 1, stride))

    def forward(self, x):
        return F.relu(self.inside(x) + self.beside(x), inplace=True)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.lstm = nn.Embedding(BYTES, WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.scores = nn.Linear(WIDTH, BYTES)

    def forward(self, x):
        return self.scores(self.lstm(self.token(x))[0]).flatten(0, 1)


def net(case):
    if case == "lstm":
        return Lstm()
    n = 64 if case == "resnet18" else 32
    layers = [*conv(3, n, 3), nn.ReLU(inplace=True)]
    if case == "resnet18":
        for width, stride in STAGES:
            layers.append(Block(n, width, stride))
            n = width
    else:
        for factor, stride in BLOCKS:
            layers += [*conv(n, n, 3, stride, n), nn.ReLU(inplace=True), *conv(n, 32 * factor, 1), nn.ReLU(inplace=True)]
            n = 32 * factor
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n, CLASSES))
    return model.to(memory_format=torch.channels_last)


def data(case, replicas):
    if case == "lstm":
        shape = (TEXTS // replicas, LENGTH)
        return torch.randint(0, BYTES, shape), torch.randint(0, BYTES, shape).flatten()
    n = IMAGES // replicas
    return torch.randn(n, 3, 32, 32).to(memory_format=torch.channels_last), torch.randint(0, CLASSES, (n,))


def worker(rank, case, replicas, seconds, threads=1, compiled=False):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("PORT", "29542"), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(threads)
    os.sched_setaffinity(0, range(rank, rank + threads))
    if replicas > 1:
        dist.init_process_group("gloo", rank=rank, world_size=replicas)
    torch.manual_seed(0)
    model, (x, y) = net(case), data(case, replicas)
    parallel = DDP(model) if replicas > 1 else torch.compile(model) if compiled else model
    optimizer = torch.optim.Adam(model.parameters(), 1e-3) if case == "lstm" else \
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def steps(n):
        for _ in range(n):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(parallel(x), y).backward()
            optimizer.step()

    def is_over(over):
        flag = torch.tensor([float(over)])
        if replicas > 1:
            dist.all_reduce(flag)
        return flag.item() > 0

    times = measure(steps, seconds, is_over)
    if rank == 0:
        report("torch-" + torch.__version__, case, replicas,
               "DDP" if replicas > 1 else f"{threads} threads" + " compiled" * compiled, times)
    if replicas > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    CASE, REPLICAS, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if REPLICAS == 1:
        worker(0, CASE, 1, SECONDS, int((sys.argv + [1])[4]), "compile" in sys.argv)
    else:
        mp.spawn(worker, args=(CASE, REPLICAS, SECONDS), nprocs=REPLICAS)

"""PyTorch peer: the cases of `choir bench train`, one process a replica, DistributedDataParallel over gloo.

With a fourth argument THREADS, one process with that many intra-op threads and no distribution; with a fifth, `compile`,
the same through torch.compile.
"""
import json, os, resource, sys, time
import torch, torch.nn as nn, torch.nn.functional as F
import torch.distributed as dist, torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, h, mask):
        batch, time_, width = h.shape
        q, k, v = self.qkv(self.norm1(h)).split(width, 2)
        q, k, v = [z.view(batch, time_, self.heads, -1).transpose(1, 2) for z in (q, k, v)]
        att = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        att = F.softmax(att.masked_fill(mask, float('-inf')), -1)
        h = h + self.out((att @ v).transpose(1, 2).reshape(batch, time_, width))
        return h + self.down(F.gelu(self.up(self.norm2(h))))


class GPT(nn.Module):
    def __init__(self, width, layers=4, heads=4, context=128, vocabulary=256):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.register_buffer('mask', torch.tril(torch.ones(context, context)).view(1, 1, context, context) == 0)

    def forward(self, x):
        h = self.token(x) + self.place(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h, self.mask)
        return self.head(self.norm(h))


def build(case, replicas):
    torch.manual_seed(0)
    if case.startswith('mlp'):
        n = int(case[3:]) // replicas
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        return (model, torch.randn(n, 784), torch.randint(0, 10, (n,)), F.cross_entropy,
                torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), n)
    if case == 'cnn':
        n = 128 // replicas
        model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                              nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))
        return (model, torch.randn(n, 1, 28, 28), torch.randint(0, 10, (n,)), F.cross_entropy,
                torch.optim.Adam(model.parameters(), lr=1e-3), n)
    width, n = int(case[3:]), 16 // replicas
    model = GPT(width)
    return (model, torch.randint(0, 256, (n, 128)), torch.randint(0, 256, (n, 128)),
            lambda a, b: F.cross_entropy(a.view(-1, 256), b.view(-1)),
            torch.optim.AdamW(model.parameters(), lr=3e-4), n)


def worker(rank, case, replicas, seconds, threads=1, compiled=False):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=os.environ.get('PORT', '29541'), GLOO_SOCKET_IFNAME='lo')
    torch.set_num_threads(threads)
    os.sched_setaffinity(0, range(rank, rank + threads))
    if replicas > 1:
        dist.init_process_group('gloo', rank=rank, world_size=replicas)
    model, x, y, loss, optimizer, n = build(case, replicas)
    parallel = DDP(model) if replicas > 1 else torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(parallel(x), y).backward()
        optimizer.step()

    for _ in range(5):
        step()
    times, end = [], time.perf_counter() + seconds
    while True:
        if replicas > 1:
            dist.barrier()
        start = time.perf_counter()
        for _ in range(3):
            step()
        times.append((time.perf_counter() - start) / 3)
        over = torch.tensor([float(time.perf_counter() > end)])
        if replicas > 1:
            dist.all_reduce(over)
        if over.item() > 0:
            break
    if rank == 0:
        times.sort()
        print(json.dumps({'peer': 'torch-' + torch.__version__, 'case': case, 'replicas': replicas,
                          'strategy': 'DDP' if replicas > 1 else f'{threads} threads' + ' compiled' * compiled,
                          'step_ms_median': 1e3 * times[len(times) // 2], 'step_ms_min': 1e3 * times[0],
                          'examples_per_s': n * replicas / times[len(times) // 2],
                          'rss_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)
    if replicas > 1:
        dist.destroy_process_group()


if __name__ == '__main__':
    case, replicas, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if replicas == 1:
        worker(0, case, 1, seconds, int((sys.argv + [1])[4]), 'compile' in sys.argv)
    else:
        mp.spawn(worker, args=(case, replicas, seconds), nprocs=replicas)

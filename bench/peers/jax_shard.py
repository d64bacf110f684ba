"""JAX peer: the cases of `choir bench train`, data parallel by shard_map over REPLICAS host devices, one core a replica.

With a fourth argument THREADS, one device with that many cores.
"""
import json, os, resource, sys, time

CASE, REPLICAS, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
CORES = int((sys.argv + [REPLICAS])[4])
os.sched_setaffinity(0, range(min(CORES, os.cpu_count())))
os.environ['XLA_FLAGS'] = f'--xla_force_host_platform_device_count={REPLICAS}'
os.environ['JAX_PLATFORMS'] = 'cpu'
import jax, jax.numpy as jnp, numpy as np, optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

RNG = np.random.default_rng(0)
W = lambda *shape: jnp.asarray(RNG.standard_normal(shape, np.float32) * (2 / max(1, np.prod(shape[:-1]))) ** 0.5)
dense = lambda n, m: {'w': W(n, m), 'b': jnp.zeros(m)}
apply = lambda p, x: x @ p['w'] + p['b']


def mlp(params, x):
    h = jax.nn.relu(apply(params[0], x))
    return apply(params[2], jax.nn.relu(apply(params[1], h)))


def cnn(params, x):
    conv = lambda p, x: jax.lax.conv_general_dilated(
        x, p['w'], (1, 1), 'VALID', dimension_numbers=('NHWC', 'HWIO', 'NHWC')) + p['b']
    h = jax.nn.relu(conv(params[1], jax.nn.relu(conv(params[0], x))))
    h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')
    return apply(params[3], jax.nn.relu(apply(params[2], h.reshape(h.shape[0], -1))))


def norm(p, h):
    h = h - h.mean(-1, keepdims=True)
    return h * jax.lax.rsqrt((h * h).mean(-1, keepdims=True) + 1e-5) * p['g'] + p['b']


def gpt(params, x):
    n, t = x.shape
    h = params['token'][x] + params['place'][None, :t]
    mask = jnp.tril(jnp.ones((t, t), bool))
    for b in params['blocks']:
        heads = lambda z: z.reshape(n, t, 4, -1).transpose(0, 2, 1, 3)
        q, k, v = map(heads, jnp.split(apply(b['qkv'], norm(b['norm1'], h)), 3, axis=2))
        a = jax.nn.softmax(jnp.where(mask, q @ k.swapaxes(2, 3) * q.shape[-1] ** -0.5, -jnp.inf))
        h = h + apply(b['out'], (a @ v).transpose(0, 2, 1, 3).reshape(n, t, -1))
        h = h + apply(b['down'], jax.nn.gelu(apply(b['up'], norm(b['norm2'], h)), approximate=False))
    return norm(params['norm'], h) @ params['head']


def build(case):
    if case.startswith('mlp'):
        n = int(case[3:])
        return (mlp, [dense(784, 512), dense(512, 512), dense(512, 10)], optax.sgd(0.01, momentum=0.9),
                RNG.standard_normal((n, 784), np.float32), RNG.integers(0, 10, n))
    if case == 'cnn':
        return (cnn, [{'w': W(3, 3, 1, 32), 'b': jnp.zeros(32)}, {'w': W(3, 3, 32, 64), 'b': jnp.zeros(64)},
                      dense(9216, 128), dense(128, 10)], optax.adam(1e-3),
                RNG.standard_normal((128, 28, 28, 1), np.float32), RNG.integers(0, 10, 128))
    w = int(case[3:])
    ln = lambda: {'g': jnp.ones(w), 'b': jnp.zeros(w)}
    blocks = [{'norm1': ln(), 'qkv': dense(w, 3 * w), 'out': dense(w, w), 'norm2': ln(), 'up': dense(w, 4 * w),
               'down': dense(4 * w, w)} for _ in range(4)]
    return (gpt, {'token': W(256, w), 'place': W(128, w), 'blocks': blocks, 'norm': ln(), 'head': W(w, 256)},
            optax.adamw(3e-4), RNG.integers(0, 256, (16, 128)), RNG.integers(0, 256, (16, 128)))


def main(case, replicas, seconds):
    mesh = Mesh(np.array(jax.devices()[:replicas]), ('r',))
    model, params, optimizer, x, y = build(case)
    whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P('r'))
    params, state = jax.device_put((params, optimizer.init(params)), whole)
    x, y = jax.device_put((jnp.asarray(x), jnp.asarray(y)), split)

    def loss(params, x, y):
        return optax.softmax_cross_entropy_with_integer_labels(model(params, x), y).mean()

    def replica_step(params, state, x, y):
        value, grad = jax.value_and_grad(loss)(params, x, y)
        value, grad = jax.lax.pmean((value, grad), 'r')
        updates, state = optimizer.update(grad, state, params)
        return optax.apply_updates(params, updates), state, value

    step = jax.jit(jax.shard_map(replica_step, mesh=mesh, in_specs=(P(), P(), P('r'), P('r')),
                                 out_specs=(P(), P(), P()), check_vma=False), donate_argnums=(0, 1))
    for _ in range(5):
        params, state, value = step(params, state, x, y)
        value.block_until_ready()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(3):
            params, state, value = step(params, state, x, y)
        value.block_until_ready()
        times.append((time.perf_counter() - start) / 3)
    times.sort()
    print(json.dumps({'peer': 'jax-' + jax.__version__, 'strategy': 'shard_map', 'case': case, 'replicas': replicas, 'cores': CORES,
                      'step_ms_median': 1e3 * times[len(times) // 2], 'step_ms_min': 1e3 * times[0],
                      'examples_per_s': len(x) / times[len(times) // 2], 'loss': float(value),
                      'rss_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)


main(CASE, REPLICAS, SECONDS)

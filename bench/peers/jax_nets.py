"""JAX: resnet18, mobilenet and lstm of `choir bench train`, on the same random data, by shard_map over host devices.

usage: jax_nets.py CASE REPLICAS SECONDS [CORES]"""
import os
import sys

CASE, REPLICAS, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
CORES = int((sys.argv + [REPLICAS])[4])
os.sched_setaffinity(0, range(min(CORES, os.cpu_count())))
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={REPLICAS}"
os.environ["JAX_PLATFORMS"] = "cpu"
# pylint: disable=wrong-import-position
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from timing import BLOCKS, BYTES, CLASSES, IMAGES, LENGTH, STAGES, TEXTS, WIDTH, measure, report

RANDOM = np.random.default_rng(0)


def weights(*shape):
    return jnp.asarray(RANDOM.standard_normal(shape, np.float32) * (2 / max(1, np.prod(shape[:-1]))) ** 0.5)


def dense(n, m):
    return {"w": weights(n, m), "b": jnp.zeros(m)}


def conv(n, m, size):
    return {"w": weights(size, size, n, m), "g": jnp.ones(m), "b": jnp.zeros(m)}


def apply(p, x, stride=1, groups=1):
    """A convolution and batch normalization, with the batch's statistics, which are also returned."""
    pad = p["w"].shape[0] // 2
    y = lax.conv_general_dilated(x, p["w"], (stride, stride), [(pad, pad)] * 2,
                                 dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)
    mean, variance = y.mean((0, 1, 2)), y.var((0, 1, 2))
    return (y - mean) * lax.rsqrt(variance + 1e-5) * p["g"] + p["b"], (mean, variance)


def resnet18(params, x):
    h, seen = apply(params["stem"], x)
    h, moving = jax.nn.relu(h), [seen]
    for p, (_, stride) in zip(params["blocks"], STAGES):
        y, first = apply(p["one"], h, stride)
        y, second = apply(p["two"], jax.nn.relu(y))
        moving += [first, second]
        if "beside" in p:
            h, seen = apply(p["beside"], h, stride)
            moving.append(seen)
        h = jax.nn.relu(h + y)
    return h.mean((1, 2)) @ params["out"]["w"] + params["out"]["b"], moving


def mobilenet(params, x):
    h, seen = apply(params["stem"], x)
    h, moving = jax.nn.relu(h), [seen]
    for p, (_, stride) in zip(params["blocks"], BLOCKS):
        y, first = apply(p["one"], h, stride, h.shape[3])
        h, second = apply(p["two"], jax.nn.relu(y))
        h, moving = jax.nn.relu(h), moving + [first, second]
    return h.mean((1, 2)) @ params["out"]["w"] + params["out"]["b"], moving


def lstm(params, x):
    gates = params["token"][x] @ params["in"]["w"] + params["in"]["b"]

    def cell(carry, z):
        h, c = carry
        i, f, g, o = jnp.split(z + h @ params["recurrent"], 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[0], WIDTH))
    _, states = lax.scan(cell, (zero, zero), gates.swapaxes(0, 1))
    return states.swapaxes(0, 1) @ params["out"]["w"] + params["out"]["b"], []


def build(case):
    """The model, its weights, the optimizer, examples and labels."""
    if case == "lstm":
        shape = (TEXTS, LENGTH)
        return (lstm, {"token": weights(BYTES, WIDTH), "in": dense(WIDTH, 4 * WIDTH), "recurrent": weights(WIDTH, 4 * WIDTH),
                       "out": dense(WIDTH, BYTES)}, optax.adam(1e-3), RANDOM.integers(0, BYTES, shape),
                RANDOM.integers(0, BYTES, shape))
    blocks, n = [], 64 if case == "resnet18" else 32
    params = {"stem": conv(3, n, 3), "blocks": blocks}
    if case == "resnet18":
        for m, stride in STAGES:
            beside = {} if n == m and stride == 1 else {"beside": conv(n, m, 1)}
            blocks.append({"one": conv(n, m, 3), "two": conv(m, m, 3), **beside})
            n = m
    else:
        for factor, _ in BLOCKS:
            blocks.append({"one": conv(1, n, 3), "two": conv(n, 32 * factor, 1)})
            n = 32 * factor
    return (resnet18 if case == "resnet18" else mobilenet, {**params, "out": dense(n, CLASSES)},
            optax.sgd(0.1, momentum=0.9), RANDOM.standard_normal((IMAGES, 32, 32, 3), np.float32),
            RANDOM.integers(0, CLASSES, IMAGES))


def main(case, replicas, seconds):
    mesh = Mesh(np.array(jax.devices()[:replicas]), ("r",))
    model, params, optimizer, x, y = build(case)
    whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("r"))
    zeros = jax.tree.map(jnp.zeros_like, jax.eval_shape(model, params, jnp.asarray(x))[1])
    params, state, moving = jax.device_put((params, optimizer.init(params), zeros), whole)
    x, y = jax.device_put((jnp.asarray(x), jnp.asarray(y)), split)

    def loss(params, x, y):
        scores, seen = model(params, x)
        return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean(), seen

    def replica_step(params, state, moving, x, y):
        (value, seen), gradient = jax.value_and_grad(loss, has_aux=True)(params, x, y)
        value, gradient, seen = lax.pmean((value, gradient, seen), "r")
        updates, state = optimizer.update(gradient, state, params)
        moving = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, moving, seen)
        return optax.apply_updates(params, updates), state, moving, value

    step = jax.jit(jax.shard_map(replica_step, mesh=mesh, in_specs=(P(), P(), P(), P("r"), P("r")),
                                 out_specs=(P(), P(), P(), P()), check_vma=False), donate_argnums=(0, 1, 2))

    def steps(n):
        nonlocal params, state, moving
        for _ in range(n):
            params, state, moving, value = step(params, state, moving, x, y)
        value.block_until_ready()

    report("jax-" + jax.__version__, case, replicas, f"shard_map on {CORES} cores", measure(steps, seconds))


main(CASE, REPLICAS, SECONDS)

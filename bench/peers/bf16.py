"""Runs one of these programs in bf16, with variables in f32: PyTorch's autocast, Keras' policy mixed_bfloat16, or a JAX
model on parameters that are cast.

usage: bf16.py [arguments of PROGRAM] PROGRAM"""

import pathlib
import runpy
import sys


def narrow_torch():
    import torch
    import torch_ddp

    class Autocast(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                return self.model(x)
    build = torch_ddp.build

    def build_narrow(*arguments):
        model, x, y, loss, *rest = build(*arguments)
        return Autocast(model), x, y, lambda scores, labels: loss(scores.float(), labels), *rest
    torch_ddp.build = build_narrow
    # One process: processes that are spawned would not be changed.
    torch_ddp.worker(0, sys.argv[1], 1, float(sys.argv[3]), int(sys.argv[4]), "compile" in sys.argv)


def narrow_keras():
    import keras
    import tensorflow as tf
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    import tf_models
    band_part, loss_of = tf.linalg.band_part, tf_models.loss_of
    # The mask has the dtype of the scores.
    tf.linalg.band_part = lambda *arguments: tf.cast(band_part(*arguments), tf.bfloat16)
    tf_models.loss_of = lambda case, y, scores: loss_of(case, y, tf.cast(scores, tf.float32))


def narrow_jax():
    import jax
    import jax.numpy as jnp
    import optax
    value_and_grad, loss = jax.value_and_grad, optax.softmax_cross_entropy_with_integer_labels

    def narrow(tree):
        return jax.tree.map(lambda x: x.astype(jnp.bfloat16) if x.dtype == jnp.float32 else x, tree)
    jax.value_and_grad = lambda f: value_and_grad(lambda params, x, y: f(narrow(params), narrow(x), y))
    optax.softmax_cross_entropy_with_integer_labels = lambda scores, y: loss(scores.astype(jnp.float32), y)


def main():
    program = sys.argv.pop()
    if program == "torch_ddp.py":
        narrow_torch()
        return
    if program == "jax_shard.py":
        import os
        os.environ.update(JAX_PLATFORMS="cpu",
                          XLA_FLAGS=f"--xla_force_host_platform_device_count={sys.argv[2]}")
        narrow_jax()
    else:
        narrow_keras()
    runpy.run_path(str(pathlib.Path(__file__).parent / program), run_name="__main__")


main()

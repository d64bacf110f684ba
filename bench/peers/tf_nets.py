"""TensorFlow: resnet18, mobilenet and lstm of `choir bench train`, on the same random data, with MirroredStrategy on
logical CPU devices; OneDeviceStrategy for one replica.

usage: tf_nets.py CASE REPLICAS SECONDS [CORES]"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
CORES = int((sys.argv + [sys.argv[2]])[4])
os.sched_setaffinity(0, range(min(CORES, os.cpu_count())))
# pylint: disable=wrong-import-position
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers as L

from timing import BLOCKS, BYTES, CLASSES, IMAGES, LENGTH, STAGES, TEXTS, WIDTH, measure, report


def norm():
    return L.BatchNormalization(momentum=0.9, epsilon=1e-5)


def conv(x, n, size, stride=1):
    return norm()(L.Conv2D(n, size, stride, "same", use_bias=False)(x))


def build(case):
    if case == "lstm":
        x = keras.Input((LENGTH,), dtype="int32")
        h = L.LSTM(WIDTH, return_sequences=True)(L.Embedding(BYTES, WIDTH)(x))
        return keras.Model(x, L.Dense(BYTES)(h))
    x = keras.Input((32, 32, 3))
    h = L.ReLU()(conv(x, 64 if case == "resnet18" else 32, 3))
    if case == "resnet18":
        for n, stride in STAGES:
            y = conv(L.ReLU()(conv(h, n, 3, stride)), n, 3)
            beside = h if h.shape[3] == n and stride == 1 else conv(h, n, 1, stride)
            h = L.ReLU()(L.Add()([y, beside]))
    else:
        for factor, stride in BLOCKS:
            h = L.ReLU()(norm()(L.DepthwiseConv2D(3, stride, "same", use_bias=False)(h)))
            h = L.ReLU()(conv(h, 32 * factor, 1))
    return keras.Model(x, L.Dense(CLASSES)(L.GlobalAveragePooling2D()(h)))


def data(case, replicas):
    if case == "lstm":
        shape = (TEXTS // replicas, LENGTH)
        return [tf.random.uniform(shape, 0, BYTES, tf.int32, seed=i) for i in (1, 2)]
    n = IMAGES // replicas
    return tf.random.normal((n, 32, 32, 3), seed=1), tf.random.uniform((n,), 0, CLASSES, tf.int32, seed=2)


def main(case, replicas, seconds):
    cpus = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * replicas)
    strategy = (tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)]) if replicas > 1
                else tf.distribute.OneDeviceStrategy("CPU:0"))
    with strategy.scope():
        model = build(case)
        optimizer = keras.optimizers.Adam(1e-3) if case == "lstm" else keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build(model.trainable_variables)
    x, y = (strategy.experimental_distribute_values_from_function(lambda _, part=part: part)
            for part in data(case, replicas))

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True))
            loss = tf.reduce_mean(losses) / replicas
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def step(x, y):
        return strategy.reduce("SUM", strategy.run(replica_step, args=(x, y)), axis=None)

    def steps(n):
        for _ in range(n):
            loss = step(x, y)
        loss.numpy()

    report("tf-" + tf.__version__, case, replicas,
           f"{type(strategy).__name__} on {CORES} cores", measure(steps, seconds))


main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))

"""The cases of `choir bench train` as Keras models, shared by the TensorFlow peers."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers as L


def global_batch(case):
    return int(case[3:]) if case.startswith('mlp') else 128 if case == 'cnn' else 16


class Block(L.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.width, self.heads = width, heads
        self.norm1, self.norm2 = L.LayerNormalization(epsilon=1e-5), L.LayerNormalization(epsilon=1e-5)
        self.qkv, self.out = L.Dense(3 * width), L.Dense(width)
        self.up, self.down = L.Dense(4 * width), L.Dense(width)

    def call(self, h):
        n, t = tf.shape(h)[0], h.shape[1]
        split = lambda z: tf.transpose(tf.reshape(z, [n, t, self.heads, self.width // self.heads]), [0, 2, 1, 3])
        q, k, v = [split(z) for z in tf.split(self.qkv(self.norm1(h)), 3, axis=2)]
        att = tf.matmul(q, k, transpose_b=True) * (self.width // self.heads) ** -0.5
        mask = tf.linalg.band_part(tf.ones([t, t]), -1, 0)
        att = tf.nn.softmax(att * mask - 1e9 * (1 - mask))
        h = h + self.out(tf.reshape(tf.transpose(tf.matmul(att, v), [0, 2, 1, 3]), [n, t, self.width]))
        return h + self.down(tf.nn.gelu(self.up(self.norm2(h))))


class GPT(keras.Model):
    def __init__(self, width, layers=4, heads=4, context=128, vocabulary=256):
        super().__init__()
        self.token, self.place = L.Embedding(vocabulary, width), L.Embedding(context, width)
        self.blocks = [Block(width, heads) for _ in range(layers)]
        self.norm, self.head = L.LayerNormalization(epsilon=1e-5), L.Dense(vocabulary, use_bias=False)

    def call(self, x):
        h = self.token(x) + self.place(tf.range(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def build_model(case):
    if case.startswith('mlp'):
        model = keras.Sequential([L.Dense(512, activation='relu'), L.Dense(512, activation='relu'), L.Dense(10)])
    elif case == 'cnn':
        model = keras.Sequential([L.Conv2D(32, 3, activation='relu'), L.Conv2D(64, 3, activation='relu'),
                                  L.MaxPooling2D(2), L.Flatten(), L.Dense(128, activation='relu'), L.Dense(10)])
    else:
        model = GPT(int(case[3:]))
    model(batch_of(case, 2)[0])
    return model


def batch_of(case, n):
    rng = np.random.default_rng(0)
    if case.startswith('mlp'):
        return tf.constant(rng.standard_normal((n, 784), np.float32)), tf.constant(rng.integers(0, 10, n))
    if case == 'cnn':
        return tf.constant(rng.standard_normal((n, 28, 28, 1), np.float32)), tf.constant(rng.integers(0, 10, n))
    return tf.constant(rng.integers(0, 256, (n, 128))), tf.constant(rng.integers(0, 256, (n, 128)))


def loss_of(case, y, logits):
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    return loss if loss.shape.rank == 1 else tf.reduce_mean(loss, axis=1)


def optimizer_of(case):
    if case.startswith('mlp'):
        return keras.optimizers.SGD(0.01, momentum=0.9)
    return keras.optimizers.Adam(1e-3) if case == 'cnn' else keras.optimizers.AdamW(3e-4)


def step_of(case, strategy, model, optimizer):
    """A step of all replicas, on the batches of its arguments."""
    def replica_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(loss_of(case, y, model(x, training=True)),
                                              global_batch_size=global_batch(case))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def step(x, y):
        return strategy.reduce('SUM', strategy.run(replica_step, args=(x, y)), axis=None)
    return step

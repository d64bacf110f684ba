"""Writes and checks TFRecord files of 50 Examples by code of its own, or by TensorFlow's.

usage: tfrecord.py write|check own|tensorflow plain|gzip|zlib FILE"""

import gzip
import os
import struct
import sys
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
COUNT = 50


def example(i):
    """The features of Example i, by name: a list, of one type."""
    return {"id": [i], "wide": [-i, i * 2**40], "x": [i * 0.5, i + 1.0, -2.25],
            "name": [b"example %04d" % i]}


# ---- Own code: only what these files need.

def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) % 2**32


def varint(value):
    value %= 2**64
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, content):
    return varint(number * 8 + 2) + varint(len(content)) + content


def value_list(values):
    if isinstance(values[0], bytes):
        return 1, b"".join(field(1, value) for value in values)
    if isinstance(values[0], float):
        return 2, field(1, struct.pack(f"<{len(values)}f", *values))
    return 3, field(1, b"".join(varint(value) for value in values))


def encode(features):
    entries = b""
    for name, values in features.items():
        kind, content = value_list(values)
        entries += field(1, field(1, name.encode()) + field(2, field(kind, content)))
    return field(1, entries)


def take_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = take_varint(data, at)
        assert tag % 8 == 2, tag
        length, at = take_varint(data, at)
        assert at + length <= len(data)
        yield tag // 8, data[at:at + length]
        at += length


def values_of(kind, content):
    parts = [part for _, part in fields(content)]
    if kind == 1:
        return parts
    packed = b"".join(parts)
    if kind == 2:
        return list(struct.unpack(f"<{len(packed) // 4}f", packed))
    values, at = [], 0
    while at < len(packed):
        value, at = take_varint(packed, at)
        values.append(value - 2**64 if value >= 2**63 else value)
    return values


def decode(data):
    features = {}
    for _, entries in fields(data):
        for _, entry in fields(entries):
            parts = dict(fields(entry))
            (kind, content), = fields(parts[2])
            features[parts[1].decode()] = values_of(kind, content)
    return features


OPEN = {"plain": lambda data: data, "gzip": gzip.compress, "zlib": zlib.compress}
UNPACK = {"plain": lambda data: data, "gzip": gzip.decompress, "zlib": zlib.decompress}


def write_own(path, compression):
    out = b""
    for i in range(COUNT):
        data = encode(example(i))
        length = struct.pack("<Q", len(data))
        out += length + struct.pack("<I", crc(length)) + data + struct.pack("<I", crc(data))
    with open(path, "wb") as file:
        file.write(OPEN[compression](out))


def read_own(path, compression):
    with open(path, "rb") as file:
        data = UNPACK[compression](file.read())
    at = 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert crc(data[at:at + 8]) == check, at
        record = data[at + 12:at + 12 + length]
        assert crc(record) == struct.unpack_from("<I", data, at + 12 + length)[0], at
        yield decode(record)
        at += length + 16


# ---- TensorFlow.

def write_tensorflow(path, compression):
    import tensorflow as tf
    def feature(values):
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    kind = "" if compression == "plain" else compression.upper()
    with tf.io.TFRecordWriter(path, kind) as writer:
        for i in range(COUNT):
            features = tf.train.Features(feature={k: feature(v) for k, v in example(i).items()})
            writer.write(tf.train.Example(features=features).SerializeToString())


def read_tensorflow(path, compression):
    import tensorflow as tf
    kind = "" if compression == "plain" else compression.upper()
    for record in tf.data.TFRecordDataset(path, compression_type=kind):
        features = tf.train.Example.FromString(record.numpy()).features.feature
        yield {name: list(getattr(feature, feature.WhichOneof("kind")).value)
               for name, feature in features.items()}


def main():
    what, whose, compression, path = sys.argv[1:]
    if what == "write":
        (write_own if whose == "own" else write_tensorflow)(path, compression)
        return
    read = list((read_own if whose == "own" else read_tensorflow)(path, compression))
    assert read == [example(i) for i in range(COUNT)], read[:2]


if __name__ == "__main__":
    main()

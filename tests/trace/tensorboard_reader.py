"""Reads the event file of a folder and checks that it says what folder_scalars recorded.
Arguments: who reads ("own": the parser below, written from the format's description; "tensorboard"; or
the name of another expectation, with the parser below) and the folder."""

import math
import pathlib
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8])
        content = data[at + 12:at + 12 + length]
        assert len(content) == length
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(content)
        yield content
        at += 16 + length
    assert at == len(data)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """{number: [values]} of a message."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        else:
            assert kind == 5, kind
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        found.setdefault(key >> 3, []).append(value)
    return found


def own(folder):
    """[(tag, step, value)], after the checks that hold for every file."""
    (path,) = pathlib.Path(folder).glob("events.out.tfevents.*")
    second, host = path.name.split(".", 4)[3:]
    assert len(second) == 10 and second.isdigit() and host, path.name
    found, before = [], int(second)
    for i, record in enumerate(records(path.read_bytes())):
        event = fields(record)
        (wall,) = event[1]
        assert wall >= before - 1, (wall, before)
        before = wall
        if i == 0:
            assert event[3] == [b"brain.Event:2"] and set(event) == {1, 3}, event
            continue
        assert set(event) == {1, 2, 5}, event
        (step,) = event[2]
        (value,) = fields(event[5][0])[1]
        value = fields(value)
        assert set(value) == {1, 2}, value
        found.append((value[1][0].decode(), step - (step >> 63 << 64), value[2][0]))
    return found


def tensorboard(folder):
    from tensorboard.backend.event_processing import event_accumulator

    log = event_accumulator.EventAccumulator(folder, size_guidance={event_accumulator.SCALARS: 0})
    log.Reload()
    assert log.file_version == 2.0
    return [(tag, e.step, e.value) for tag in log.Tags()["scalars"] for e in log.Scalars(tag)]


def close(a, b):
    return a == b or math.isclose(a, b, rel_tol=1e-6)


def check(mode, where):
    found = sorted(tensorboard(where) if mode == "tensorboard" else own(where))
    if mode == "ids":
        expected = [("id", 1, 0)] + [("merged", 1, i) for i in range(3)]
    elif mode == "threads":
        expected = [(tag, i, i) for tag in "abc" for i in range(500)]
    else:
        expected = [("loss", step, 1 / (1 + step)) for step in (0, 100, 200)]
        expected += [("test/accuracy", step, 0.5) for step in (0, 100, 200)]
        expected += [("large \u00e9", 1 << 40, -1e30), ("before", -3, math.inf)]
    expected = sorted(expected)
    assert len(found) == len(expected), (found, expected)
    for a, b in zip(found, expected):
        assert a[:2] == b[:2] and close(a[2], b[2]), (a, b)
    print(f"{len(found)} scalars")


if __name__ == "__main__":
    check(*sys.argv[1:3])

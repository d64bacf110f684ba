"""Files with named columns through the command: TFRecord, npz, HDF5 and CIFAR-10 are learned, saved,
predicted and looked at; what is taken for input and target, and what cannot be."""

import io
import struct
import sys
import zipfile

from command import Case, SOURCE, main

sys.path.insert(0, SOURCE + "/tests/data/source/tfrecord")
import tfrecord

TRAIN = ("train", "--widths", "16", "--epochs", "8", "--batch", "16", "--rate", "0.01", "--data")


def kind(i):
    return i * 7 % 3


def record(features):
    data = tfrecord.encode(features)
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", tfrecord.crc(length)) + data + \
        struct.pack("<I", tfrecord.crc(data))


def flower(i):
    """Measures that tell the kinds apart, in features of several types and shapes."""
    return {"height": [100.0 + 50 * kind(i) + i % 5], "kind": [kind(i)], "noise": [i % 11],
            "widths": [kind(i) * 2.0, 1.0 + i % 2]}


def write_records(folder, name, numbers, compression="plain"):
    data = b"".join(record(flower(i)) for i in numbers)
    (folder / name).write_bytes(tfrecord.OPEN[compression](data))


def npy(descr, shape, data):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def write_npz(folder, name, numbers):
    numbers = list(numbers)
    x = b"".join(struct.pack("<4d", kind(i) == 0, kind(i) == 1, kind(i) == 2, i % 5) for i in numbers)
    y = b"".join(struct.pack("<q", kind(i)) for i in numbers)
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("x.npy", npy("<f8", (len(numbers), 4), x))
        archive.writestr("y.npy", npy("<i8", (len(numbers),), y))


def write_cifar(folder, files):
    """Batches of 20 images of one colour for each of ten classes."""
    for name, first in files:
        out = io.BytesIO()
        for i in range(first, first + 20):
            label = i % 10
            out.write(bytes([label]))
            for channel in range(3):
                out.write(bytes([(label * 25 * (channel + 1)) % 256]) * 1024)
        (folder / name).write_bytes(out.getvalue())


class Columns(Case):
    def test_records_are_learned(self):
        write_records(self.folder, "f.tfrecord", range(120))
        train = (*TRAIN, "tfrecord:f.tfrecord", "--target", "kind")
        text = self.succeed(*train, "--save", "w.safetensors")
        self.assertIn("input: height, noise, widths\ntarget: kind\n", text)
        self.assertIn("mlp on tfrecord:f.tfrecord", text)  # a vector: no cnn
        start, *_, end = self.events(*train)
        self.assertEqual((start["image"], start["classes"]), ([4], 3))
        self.assertGreaterEqual(end["test_accuracy"], 0.95)
        *lines, last = self.events("predict", "w.safetensors", "--data", "tfrecord:f.tfrecord")
        self.assertEqual([line["label"] for line in lines], [kind(i) for i in range(120)])
        self.assertGreaterEqual(last["accuracy"], 0.95)

    def test_several_files_are_one_after_another(self):
        write_records(self.folder, "f.tfrecord", range(90))
        for part, compression in enumerate(("plain", "gzip", "zlib")):
            write_records(self.folder, f"part-{part}.tfrecord", range(30 * part, 30 * part + 30),
                          compression)
        write_npz(self.folder, "all.npz", range(60))
        write_npz(self.folder, "part-0.npz", range(40))
        write_npz(self.folder, "part-1.npz", range(40, 60))
        def weights(data, *more):
            return self.events(*TRAIN, data, *more)[-1]["weights"]
        whole = weights("tfrecord:f.tfrecord", "--target", "kind")
        self.assertEqual(weights("tfrecord:part-*.tfrecord", "--target", "kind"), whole)
        self.assertEqual(weights("tfrecord:part-0.tfrecord,part-1.tfrecord,part-2.tfrecord",
                                 "--target", "kind"), whole)
        for i in range(258):
            write_records(self.folder, str(i), [i])
        text = self.events(*TRAIN, "tfrecord:" + ",".join(str(i) for i in range(258)), "--target", "kind")
        self.assertEqual(text[0]["train_examples"] + text[0]["test_examples"], 258)
        whole = weights("all.npz")
        self.assertEqual(weights("npz:part-*.npz"), whole)
        self.assertEqual(weights("npz:part-0.npz,part-1.npz"), whole)

    def test_arrays_are_learned(self):
        write_npz(self.folder, "a.npz", range(120))
        text = self.succeed(*TRAIN, "a.npz", "--save", "w.safetensors")
        self.assertIn("input: x\ntarget: y\n", text)
        *_, last = self.events("predict", "w.safetensors", "--data", "npz:a.npz")
        self.assertEqual((last["examples"], last["accuracy"]), (120, 1))

    def test_cifar_has_its_own_test_set(self):
        write_cifar(self.folder, [("data_batch_1.bin", 0), ("data_batch_2.bin", 20),
                                  ("test_batch.bin", 40)])
        start, *_ = self.events("train", "--widths", "2,2,4", "--epochs", "1", "--data", "cifar10:.")
        self.assertEqual((start["model"], start["image"], start["classes"]), ("cnn", [32, 32, 3], 10))
        self.assertEqual((start["train_examples"], start["test_examples"]), (40, 20))
        for name, row in (("data_batch_2.bin", 3), ("test_batch.bin", 0), ("test_batch.bin", 19)):
            content = bytearray((self.folder / name).read_bytes())
            content[3073 * row] = 10 + row
            (self.folder / name).write_bytes(content)
        self.fail_with(1, "data_batch_2.bin: record 3", "train", "--data", "cifar10:.")
        lines = self.succeed("train", "--widths", "2,2,4", "--epochs", "1", "--data", "cifar10:.",
                             "--wrong-rows", "skip")
        self.assertIn("bad rows, skipped: 3\n", lines)
        self.assertIn("10 classes, 39 examples to train and 18 to test", lines)
        (self.folder / "test_batch.bin").unlink()
        write_cifar(self.folder, [("data_batch_2.bin", 20)])
        start, *_ = self.events("train", "--widths", "2,2,4", "--epochs", "1", "--data", "cifar10:.")
        self.assertEqual((start["train_examples"], start["test_examples"]), (32, 8))
        (self.folder / "test_batch.bin").write_bytes(b"short")
        self.fail_with(1, "test_batch.bin", "train", "--data", "cifar10:.")
        self.fail_with(1, "test_batch.bin", "inspect", "cifar10:.")
        write_cifar(self.folder, [("test_batch.bin", 40)])
        (event,) = self.events("inspect", "cifar10:.")
        self.assertEqual((event["rows"], [c["shape"] for c in event["columns"]]),
                         (60, [[], [32, 32, 3]]))
        self.fail_with(1, "nowhere/data_batch_*.bin", "train", "--data", "cifar10:nowhere")

    def test_what_cannot_be_learned(self):
        write_records(self.folder, "f.tfrecord", range(9))
        self.fail_with(1, ('column "sort"', '"height", "kind", "noise", "widths"'), *TRAIN,
                       "tfrecord:f.tfrecord", "--target", "sort")
        self.fail_with(1, ('"widths"', "f32", "1 dimensions", "--target"), *TRAIN, "tfrecord:f.tfrecord")
        (self.folder / "y.tfrecord").write_bytes(record({"label": [1]}))
        self.fail_with(1, ("no column of numbers", '"label"'), *TRAIN, "tfrecord:y.tfrecord")
        (self.folder / "minus.tfrecord").write_bytes(record({"label": [-1], "x": [0.5]}))
        self.fail_with(1, ("example 0", "label -1"), *TRAIN, "tfrecord:minus.tfrecord")
        (self.folder / "minus.tfrecord").write_bytes(b"".join(
            record({"label": [i % 4 - 1], "x": [i / 20]}) for i in range(20)))
        start, *_ = self.events(*TRAIN, "tfrecord:minus.tfrecord", "--wrong-rows", "skip")
        self.assertEqual((start["train_examples"], start["test_examples"], start["classes"]), (12, 3, 3))
        self.assertEqual((start["inputs"], start["target"], start["wrong_rows"]), ([{"name": "x"}], "label", 5))
        damaged = bytearray((self.folder / "f.tfrecord").read_bytes())
        damaged[-5] ^= 1
        (self.folder / "d.tfrecord").write_bytes(damaged)
        self.fail_with(1, "d.tfrecord: record 8", *TRAIN, "tfrecord:d.tfrecord", "--target", "kind")
        text = self.succeed(*TRAIN, "tfrecord:d.tfrecord", "--target", "kind", "--wrong-rows", "skip")
        self.assertIn("bad rows, skipped: 1\n", text)
        self.fail_with(1, "no.tfrecord", *TRAIN, "tfrecord:no.tfrecord")
        (self.folder / "empty.tfrecord").write_bytes(b"")
        self.fail_with(1, "empty.tfrecord", *TRAIN, "tfrecord:empty.tfrecord")

    def test_what_a_file_of_records_holds(self):
        write_records(self.folder, "f.tfrecord", range(9))
        text = self.succeed("inspect", "f.tfrecord")
        self.assertIn("f.tfrecord: tfrecord\n", text)
        self.assertRegex(text, r"height +f32 \[\]\n  kind +i64 \[\]\n  noise +i64 \[\]\n"
                               r"  widths +f32 \[2\]\n")
        self.assertIn("example 1: 151 1 1 [2 2]\n", text)
        self.assertIn("  9 rows\n", text)
        write_records(self.folder, "z", range(9), "zlib")
        (event,) = self.events("inspect", "tfrecord:z")
        self.assertEqual((event["rows"], event["compression"]), (9, "zlib"))
        self.assertIn("z: tfrecord, zlib\n", self.succeed("inspect", "tfrecord:z"))
        data = bytearray((self.folder / "f.tfrecord").read_bytes())
        place = len(data) // 9 * 4 + 20
        data[place] ^= 4
        (self.folder / "d.tfrecord").write_bytes(data)
        self.fail_with(1, "d.tfrecord: record 4", "inspect", "d.tfrecord")

    def test_lines_and_fixed_records(self):
        (self.folder / "t.txt").write_text("one\nand a longer one\n\n")
        text = self.succeed("inspect", "t.txt")
        self.assertIn('example 0: "one"\n  example 1: "and a longer one"\n', text)
        self.assertIn("  3 rows\n", text)
        (self.folder / "r").write_bytes(bytes(range(12)))
        text = self.succeed("inspect", "fixed:4:r")
        self.assertIn("example 2: [8 9 10 11]\n  3 rows\n", text)
        self.fail_with(1, ('"fixed:r"', "fixed:BYTES:FILE"), "inspect", "fixed:r")
        self.fail_with(1, "12 bytes", "inspect", "fixed:5:r")

    def test_every_pipeline_is_measured(self):
        write_records(self.folder, "f.tfrecord", range(40))
        (self.folder / "r").write_bytes(bytes(4000))
        (self.folder / "t.txt").write_text("one\nand a longer one\n" * 50)
        sources = (("f.tfrecord", 40), ("fixed:40:r", 100), ("t.txt", 100))
        for source, examples in sources:
            for pipeline in ("read", "shuffle", "prefetch", "cache"):
                (event,) = self.events("bench", "input", "--source", source, "--pipeline", pipeline,
                                       "--passes", "2", "--batch", "7")
                self.assertEqual((event["pipeline"], event["examples"]), (pipeline, examples))
                self.assertGreater(event["ratio_to_cat"], 0)
        (event,) = self.events("bench", "input", "--source", "fixed:40:r", "--pipeline", "mnist")
        self.assertEqual(event["examples"], 100)
        self.fail_with(2, "known: read, float, shuffle, mnist", "bench",
                       "input", "--source", "r", "--pipeline", "fast")


main()

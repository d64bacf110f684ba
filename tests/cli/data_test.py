"""Files of examples, good and bad, through the command: what a damaged one is told, and images of other
sizes than digits."""

import gzip
import pathlib
import re
import struct

from command import SOURCE, Case, idx, main, write_examples

QUICK = ("--model", "mlp", "--widths", "4", "--epochs", "1", "--batch", "8")


class Data(Case):
    def setUp(self):
        super().setUp()
        self.data = write_examples(self.folder, 30, (6, 7))
        self.images = (self.folder / "images.idx").read_bytes()
        self.labels = (self.folder / "labels.idx").read_bytes()

    def refused(self, text, data=None):
        done = self.fail_with(1, text, "train", *QUICK, "--data", data or self.data)
        self.assertEqual(done.stdout, "")

    def write(self, name, content):
        (self.folder / name).write_bytes(content)

    def test_names(self):
        for name in ("idx:,labels.idx", "idx:images.idx,", "idx:a,b,c"):
            self.refused((f'"{name}"', "idx:IMAGES[,LABELS]"), name)
        for name in ("idx:IMAGES[,LABELS]", "tfrecord:FILE", "npz:FILE", "hdf5:FILE", "csv:FILE", "text:FILE",
                     "cifar10:DIR"):
            kind = name.split(":")[0] + ":"
            self.refused((f'data "{kind}": ', name), kind)
        self.refused("needs idx:images.idx,LABELS", "idx:images.idx")
        self.refused("no-such.idx", "idx:no-such.idx,labels.idx")
        self.refused("no-such.idx", "idx:images.idx,no-such.idx")
        for count in ("0", "-1", "x", "", "1x", "99999999999"):
            self.refused((f'"digits:{count}"', "needs digits:N"), f"digits:{count}")
        self.fail_with(1, ("--train-examples 31: ", "has 30 examples"), "train", *QUICK, "--data", self.data,
                       "--train-examples", "31")

    def test_a_kind_means_the_same_in_each_command(self):
        """Errors, help and manual list the kinds that a command reads, and it refuses the others."""
        manual = (pathlib.Path(SOURCE) / "man/choir.1").read_text()
        commands = (("train", "--data"), ("predict", "w", "--data"), ("inspect",), ("bench", "input", "--source"))
        self.succeed("train", *QUICK, "--data", self.data, "--save", "w")
        known = {}
        for command in commands:
            known[command] = self.fail_with(1, '"x"', *command, "x").stderr.split("known: ")[1].strip().split(", ")
            text = self.succeed(*(word for word in command if word[:2] != "--"), "--help")
            for form in known[command]:
                self.assertIn(form, text)
                self.assertIn("\\fB" + re.match(r"\w+", form)[0], manual)
        self.assertEqual(known[commands[0]], known[commands[1]])
        for command in commands:
            for form in {form for each in known.values() for form in each} - set(known[command]):
                name = re.match(r"\w+", form)[0]
                self.fail_with(1, (form, "known: "), *command, name if name in ("mnist", "digits") else name + ":x")

    def test_files_by_suffix_and_in_lists(self):
        weights = [self.events("train", *QUICK, "--data", name)[-1]["weights"]
                   for name in (self.data, "images.idx,labels.idx")]
        self.assertEqual(*weights)
        (event,) = self.events("inspect", self.data)
        self.assertEqual((event["rows"], [c["shape"] for c in event["columns"]]), (30, [[6, 7], []]))
        for name in ("a.csv", "b.csv"):
            self.write(name, b"a,label\n1,0\n2,1\n")
        for name in ("a.csv,b.csv", "csv:[ab].csv"):
            self.assertIn("  4 rows\n", self.succeed("inspect", name))
            (event,) = self.events("bench", "input", "--source", name, "--passes", "1")
            self.assertEqual(event["examples"], 4)
            start, *_ = self.events("train", *QUICK, "--data", name, "--train-examples", "4")
            self.assertEqual(start["train_examples"], 4)
        self.refused("a.idx", "a.idx,b.idx")
        self.refused('"kind:a.csv"', "kind:a.csv")

    def test_damaged_files(self):
        for name, whole in (("images.idx", self.images), ("labels.idx", self.labels)):
            header = 4 + 4 * (3 if name == "images.idx" else 1)
            for length in [*range(header + 1), len(whole) // 2, len(whole) - 1]:
                self.write(name, whole[:length])
                self.refused(name)
            self.write(name, whole + b"x")
            self.refused(name)
            self.write(name, b"\x01" + whole[1:])
            self.refused(name)
            self.write(name, whole[:4] + b"\xff" * (header - 4) + whole[header:])
            self.refused(name)
            packed = gzip.compress(whole)
            for damaged in (packed[:-1], packed[:-9], packed[:-4] + b"xxxx", packed[:20],
                            packed[:12] + b"\x00\xff" + packed[14:]):
                self.write(name, damaged)
                self.refused(name)
            self.write(name, whole)
        self.succeed("train", *QUICK, "--data", self.data)

    def test_files_that_do_not_fit(self):
        self.write("labels.idx", idx((29,), bytes(29)))
        self.refused(('30 examples of "image"', '29 of "label"'))
        self.write("labels.idx", idx((30, 2), bytes(60)))
        self.refused("labels")
        self.write("labels.idx", idx((30,), bytes(120), kind=0x0D))
        self.refused("whole number")
        self.write("labels.idx", idx((30,), b"\xff\xff\xff\xfe" * 30, kind=0x0C))
        self.refused("example 0 has label -2")
        self.write("labels.idx", idx((30,), (b"\xff\xff\xff\xfe" + bytes(3) + b"\1") * 15, kind=0x0C))
        lines = self.succeed("train", *QUICK, "--data", self.data, "--wrong-rows", "skip")
        self.assertIn("2 classes, 12 examples to train and 3 to test", lines)
        self.assertIn("bad rows, skipped: 15\n", "\n" + lines)
        # One label must not ask for memory that the data do not come near to filling.
        self.write("labels.idx", idx((30,), (1048575).to_bytes(4, "big") + bytes(29 * 4), kind=0x0C))
        self.refused(("label 1048575", "1048576 classes", "30 examples", "labels below 4096"))
        self.write("labels.idx", self.labels)
        self.write("images.idx", idx((0, 6, 7), b""))
        self.refused("no examples")
        self.write("images.idx", idx((30,), bytes(30)))
        self.refused("images and labels swapped")

    def test_images_of_any_size(self):
        for shape in ((6, 7), (9, 6, 3), (6, 6, 1), (11, 30)):
            for compressed in (False, True):
                data = write_examples(self.folder, 60, shape, compressed=compressed)
                start, *_, end = self.events("train", "--model", "cnn", "--widths", "8,8,16", "--data",
                                             data, "--epochs", "12", "--batch", "8", "--rate",
                                             "0.01")
                self.assertEqual((start["image"], start["classes"]), (list(shape), 3))
                self.assertEqual((start["train_examples"], start["test_examples"]), (48, 12))
                self.assertGreater(end["test_accuracy"], 0.9, shape)
        data = write_examples(self.folder, 30, (40,))
        self.events("train", *QUICK, "--data", data)
        self.fail_with(1, "images with 1 dimensions", "train", "--model", "cnn", "--data", data)
        data = write_examples(self.folder, 30, (5, 6))
        self.fail_with(1, ("images of 5 x 6", "at least 6 x 6"), "train", "--data", data)

    def test_all_examples_for_training(self):
        *_, end = self.events("train", *QUICK, "--data", self.data, "--train-examples", "30")
        self.assertIsNone(end["test_accuracy"])
        self.assertIn("no test", self.succeed("train", *QUICK, "--data", self.data,
                                              "--train-examples", "30"))

    def test_the_real_digits_are_found(self):
        start, *_ = self.events("train", *QUICK, "--train-examples", "64")
        self.assertEqual((start["data"], start["test_examples"]), ("mnist", 9936))
        self.fail_with(1, "images.gz", "train", "--data", "idx:images.gz,labels.gz")
        # A folder that is named and has none is passed over; there is the built-in one.
        self.succeed("train", *QUICK, "--train-examples", "64", env={"CHOIR_DATA_DIR": "."})


main()

"""Directories of images through the command: they are learned with their classes' names, changed at
random by the same bits on any devices, predicted by file, and exported; bad ones are named or counted."""

import csv
import io
import struct
import zlib

from command import Case, forge, main

SIDE = 8
TRAIN = ("train", "--data", "images:set", "--image-size", SIDE, "--model", "cnn", "--widths", "4,4,8",
         "--batch", "8", "--rate", "0.01")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(pixels):
    """pixels: rows of (red, green, blue)."""
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def stripes(upright, i):
    """An image of 12 x 10 pixels, whose stripes tell its class."""
    return png([[(40 + 150 * ((x if upright else y) // 2 % 2), i * 5 % 60, 90) for x in range(12)]
                for y in range(10)])


class Images(Case):
    def setUp(self):
        super().setUp()
        for name in ("flat", "up"):
            (self.folder / "set" / name).mkdir(parents=True)
            for i in range(20):
                (self.folder / f"set/{name}/{i:02}.png").write_bytes(stripes(name == "up", i))

    def predict(self, *arguments):
        run = self.start("predict", "m.safetensors", *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return list(csv.reader(io.StringIO(run.stdout))), run.stderr

    def test_a_checkpoint_may_not_ask_for_huge_images(self):
        self.succeed("train", "--data", "images:set", "--image-size", "8", "--model", "resnet20", "--layers", "8",
                     "--width", "2", "--epochs", "1", "--batch", "16", "--checkpoint", "c")
        for path in (self.folder / "c").glob("step-*"):
            forge(path, **{"train__options__image-size": "3000"})
        replay = ("replay", "--checkpoint", "c", "--step", "2", "--replica", "0", "--data", "images:set")
        facts = ("c/step-2: records --image-size 3000", "1024")
        self.fail_with(1, facts, *replay)
        self.fail_with(1, facts, *replay, "--image-size", "8")

    def test_reading_them_is_measured(self):
        run = self.succeed("bench", "input", "--source", "images:set", "--passes", "1", "--batch", "8")
        self.assertIn("40 examples", run)

    def test_learned_and_predicted_by_file(self):
        run = self.succeed(*TRAIN, "--epochs", "12", "--save", "m.safetensors")
        self.assertIn("classes: flat, up", run)
        self.assertIn("images [8, 8, 3], 2 classes, 32 examples to train and 8 to test", run)
        self.assertIn("test accuracy 100.00 %", run)
        rows, after = self.predict("--data", "images:set")
        self.assertEqual(rows[0], ["file", "class", "label"])
        self.assertEqual(rows[1], ["set/flat/00.png", "flat", "flat"])
        self.assertIn("accuracy 100.00 % on 40 examples", after)
        # Without classes, and with one of them: names decide, not the order.
        (self.folder / "new").mkdir()
        (self.folder / "new/b.png").write_bytes(stripes(True, 3))
        rows, after = self.predict("--data", "images:new")
        self.assertEqual(rows, [["file", "class"], ["new/b.png", "up"]])
        (self.folder / "some/up").mkdir(parents=True)
        (self.folder / "some/up/b.png").write_bytes(stripes(True, 3))
        self.assertEqual(self.predict("--data", "images:some")[0][1], ["some/up/b.png", "up", "up"])
        (self.folder / "some/down").mkdir()
        (self.folder / "some/down/b.png").write_bytes(stripes(True, 3))
        self.fail_with(1, ("some/down", "known: flat, up"), "predict", "m.safetensors", "--data",
                       "images:some")
        objects = self.events("predict", "m.safetensors", "--data", "images:new")
        self.assertEqual((objects[0]["file"], objects[0]["class_name"]), ("new/b.png", "up"))
        self.fail_with(1, ("[8, 8, 3]",), "predict", "m.safetensors", "--data", "mnist")
        self.assertIn("192 numbers to 2 scores", self.succeed("export", "m.safetensors", "--c", "m.c"))

    def test_augmentation_is_the_same_on_any_devices(self):
        hashes = set()
        for devices in ("cpu:0", "cpu:0,cpu:1"):
            hashes.add(self.events(*TRAIN, "--epochs", "2", "--augment", "both", "--replicas", "2",
                                 "--devices", devices)[-1]["weights"])
        self.assertEqual(len(hashes), 1)
        for other in ("none", "crop", "flip"):
            hashes.add(self.events(*TRAIN, "--epochs", "2", "--augment", other, "--replicas", "2")[-1]["weights"])
        self.assertEqual(len(hashes), 4)

    def test_bad_images_are_named_or_counted(self):
        (self.folder / "set/up/20.png").write_bytes(stripes(True, 1)[:60])
        self.fail_with(1, ("set/up/20.png", "PNG cannot be decoded"), *TRAIN, "--epochs", "1")
        (self.folder / "set/up/21.jpg").write_bytes(b"not an image")
        run = self.start(*TRAIN, "--epochs", "1", "--bad-rows", "skip")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("bad images, skipped: 2", run.stdout)
        self.assertIn("set/up/20.png", run.stderr)
        self.assertIn("set/up/21.jpg", run.stderr)
        self.assertIn("32 examples to train and 8 to test", run.stdout)

    def test_files_of_other_formats_are_counted(self):
        (self.folder / "set/flat/b.gif").write_bytes(b"GIF89a")
        (self.folder / "set/up/a.webp").write_bytes(b"RIFF")
        (self.folder / "set/up/.hidden").write_bytes(b"")
        run = self.start(*TRAIN, "--epochs", "1", "--save", "m.safetensors")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("set: 2 files are left out, such as set/flat/b.gif; only PNG and JPEG", run.stderr)
        self.assertEqual(run.stderr.count("left out"), 1)
        self.assertIn("set/flat/b.gif", self.predict("--data", "images:set")[1])

    def test_one_class_gets_a_warning(self):
        (self.folder / "set/up").rename(self.folder / "up")
        run = self.start(*TRAIN, "--epochs", "1")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("one class only", run.stderr)

    def test_residual_nets_learn_images(self):
        for more in ("--width", "4"), ("--width", "4", "--image-size", "65"):
            run = self.succeed("train", "--data", "images:set", "--image-size", "16", *more, "--batch", "16",
                                "--epochs", "1", "--save", "m.safetensors")
            self.assertIn("resnet18 on images:set", run)
            self.assertIn("stem/conv/kernel   [7, 7, 3, 4]" if "65" in more else
                          "stem/conv/kernel   [3, 3, 3, 4]", run)
            self.assertEqual(len(self.predict("--data", "images:set")[0]), 41)

    def test_wrong_use(self):
        for facts, *arguments in (
                (("nowhere",), "--data", "images:nowhere"),
                (("images:DIR",), "--data", "images:"),
                (("--image-size 9", "images:DIR"), "--data", "mnist", "--image-size", "9"),
                (("--layers 5", "resnet18"), "--data", "images:set", "--layers", "5"),
                (("--augment",), "--data", "images:set", "--augment", "turn")):
            self.fail_with(2 if "turn" in arguments else 1, facts, "train", *arguments)
        (self.folder / "set/none").mkdir()
        self.fail_with(1, ("set/none", "no PNG or JPEG"), *TRAIN)


main()

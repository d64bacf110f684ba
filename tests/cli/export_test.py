"""What choir export writes: compiled as strangers would, by each compiler that is there, and asked the
same as choir predict, to the bit."""

import ctypes
import json
import math
import os
import random
import shutil
import struct
import subprocess

from command import SMALL, Case, idx, main, read_safetensors, some_of, write_examples, write_safetensors

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
COMPILERS = (("gcc", "-std=c11", "-x", "c"), ("clang", "-std=c11", "-x", "c"), ("clang-14", "-x", "c"),
             ("g++", "-std=c++17", "-x", "c++"), ("clang++-14", "-std=c++17", "-x", "c++"))
PLAIN = {"CHOIR_KERNELS": "plain"}
# All that a model asks of the C library and libm: no memory, no files, no errors.
NEEDED = {"memcpy", "memmove", "memset", "sqrt"}
IMAGES = ("--batch", "8", "--epochs", "2", "--save", "w")


def compilers():
    """Those that are there, each program once: Debian 12's clang is clang-14."""
    programs = {}
    for c in COMPILERS:
        path = shutil.which(c[0])
        if path:
            programs.setdefault((os.path.realpath(path), c[-1]), c)
    return some_of(*programs.values(), slow=1) # a sanitizer sees the command, not what it writes


class Export(Case):
    def setUp(self):
        super().setUp()
        if not compilers():
            self.skipTest("no compiler")

    def compile(self, compiler, source, *arguments):
        done = subprocess.run([*compiler, *WARNINGS, *arguments, source, "-lm"],
                              cwd=self.folder, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), compiler)

    def functions(self):
        """model_predict as each compiler makes it, from model.c."""
        for i, compiler in enumerate(compilers()):
            self.compile(compiler, "model.c", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o",
                         f"model{i}.so")
            self.assertLessEqual(self.needs(f"model{i}.so"), NEEDED, compiler)
            yield ctypes.CDLL(str(self.folder / f"model{i}.so")).model_predict

    def needs(self, library):
        """The names that a library does not bring itself, but for those of every library."""
        lines = subprocess.run(["nm", "-D", "--undefined-only", library], cwd=self.folder, check=True,
                               stdout=subprocess.PIPE, text=True).stdout.splitlines()
        return {name.split("@")[0] for kind, name in map(str.split, lines) if kind == "U"}

    def constant(self, name):
        text = (self.folder / "model.c").read_text().split(f" {name} = ", 1)[1]
        return int(text.split(" ")[0].rstrip(","))

    def export(self):
        self.assertRegex(self.succeed("export", "w", "--c", "model.c"), r"^wrote model.c: model_predict, "
                         r"(up to )?\d+ (numbers|bytes) to \d+ (scores|numbers)\n$")
        text = (self.folder / "model.c").read_text()
        self.assertEqual({line for line in text.splitlines() if line.startswith("#include")},
                         {f"#include <{h}.h>" for h in ("math", "stddef", "stdint", "string", "stdio")}
                         | ({"#include <stdlib.h>"} if "length" in text.split("enum {")[1] else set()))

    def check_numbers(self, examples, data):
        """Each example's scores, against those that choir predict has of data."""
        self.export()
        inputs, outputs = self.constant("model_inputs"), self.constant("model_outputs")
        self.assertEqual({len(x) for x in examples}, {inputs})
        *said, _ = self.events("predict", "w", "--data", data, "--scores", env=PLAIN)
        self.assertEqual(len(said), len(examples))
        output = (ctypes.c_float * outputs)()
        scratch = (ctypes.c_float * self.constant("model_scratch"))()
        for function in self.functions():
            function.restype = None
            for numbers, line in zip(examples, said):
                for i in range(len(scratch)):
                    scratch[i] = float("nan")
                function((ctypes.c_float * inputs)(*numbers), output, scratch)
                self.assertEqual(single(output), single(line["scores"]))
        # Other kernels add in another order.
        *said, _ = self.events("predict", "w", "--data", data, "--scores")
        for a, b in zip(output, said[-1]["scores"]):
            self.assertAlmostEqual(a, b, delta=1e-4 * max(1, *(abs(x) for x in output)))

    def images(self, shape):
        data = write_examples(self.folder, 40, shape)
        size = len((self.folder / "images.idx").read_bytes()) - 4 - 4 * (len(shape) + 1)
        pixels = (self.folder / "images.idx").read_bytes()[-size:]
        each = size // 40
        return data, [list(pixels[i * each:(i + 1) * each]) for i in range(40)]

    def test_mlp(self):
        data, examples = self.images((6, 7))
        self.succeed("train", "--data", data, "--model", "mlp", "--widths", "70,5", *IMAGES)
        self.check_numbers(examples, data)

    def test_cnn(self):
        data, examples = self.images((9, 8, 3))
        self.succeed("train", "--data", data, "--model", "cnn", "--widths", "3,4,8", *IMAGES)
        self.check_numbers(examples, data)

    def test_resnet(self):
        data, examples = self.images((11, 9))
        self.succeed("train", "--data", data, "--model", "resnet20", "--layers", "14", "--width", "5",
                     *IMAGES)
        self.check_numbers(examples, data)

    def test_resnet_whose_last_images_are_one_channel_of_one_pixel(self):
        data, examples = self.images((3, 2))
        self.succeed("train", "--data", data, "--model", "resnet20", "--layers", "8", "--width", "1",
                     *IMAGES)
        self.check_numbers(examples, data)

    def test_table_with_means_and_deviations(self):
        draw = random.Random(7)
        rows = [[draw.gauss(k, 1 + k) for k in range(4)] for _ in range(50)]
        lines = ["a,b,c,d,label"] + [",".join(map(repr, r)) + f",{'xyz'[i % 3]}"
                                     for i, r in enumerate(rows)]
        (self.folder / "t.csv").write_text("\n".join(lines) + "\n")
        self.succeed("train", "--data", "csv:t.csv", "--model", "mlp", "--widths", "6", *IMAGES)
        self.check_numbers(rows, "csv:t.csv")
        text = (self.folder / "model.c").read_text()
        self.assertIn("// Inputs, by column: 0 a, 1 b, 2 c, 3 d\n// Scores, by class: 0 x, 1 y, 2 z\n", text)

    def check_table(self, inputs, data, field):
        """As check_numbers, by the numbers or scores of each line."""
        self.export()
        *said, _ = self.events("predict", "w", "--data", data, *(("--scores",) if field == "scores" else ()),
                               env=PLAIN)
        self.assertEqual(len(said), len(inputs))
        output = (ctypes.c_float * self.constant("model_outputs"))()
        scratch = (ctypes.c_float * self.constant("model_scratch"))()
        for function in self.functions():
            function.restype = None
            for numbers, line in zip(inputs, said):
                function((ctypes.c_float * len(numbers))(*numbers), output, scratch)
                self.assertEqual(single(output), single(line[field]))

    def test_regression_with_missing_numbers(self):
        """In the units of the table, to the bit."""
        draw = random.Random(11)
        rows = [[draw.gauss(5, 2), draw.gauss(0, 30)] for _ in range(60)]
        numbers = [[1000 + 70 * a - b, b / 1000] for a, b in rows]
        lines = [f"{'NA' if i % 7 == 3 else repr(a)},{b!r},{y!r},{z!r}" for i, ((a, b), (y, z)) in
                 enumerate(zip(rows, numbers))]
        (self.folder / "t.csv").write_text("\n".join(["a,b,y,z", *lines]) + "\n")
        self.succeed("train", "--data", "csv:t.csv", "--model", "mlp", "--widths", "6", *IMAGES, "--target", "y,z",
                     "--missing", "impute")
        inputs = [[float("nan") if i % 7 == 3 else a, float(i % 7 == 3), b] for i, (a, b) in enumerate(rows)]
        self.check_table(inputs, "csv:t.csv", "numbers")
        text = (self.folder / "model.c").read_text()
        self.assertIn("// model_predict: a mlp; computes 2 numbers, in the units of the table.\n"
                      "// Inputs, by column: 0 a, 1 a is missing, 2 b\n"
                      "// NaN means a missing number; its column's mean replaces it.\n// Outputs: 0 y, 1 z\n", text)

    def train_text(self, *arguments):
        draw = random.Random(3)
        text = bytes(draw.randrange(256) for _ in range(2000))
        (self.folder / "text").write_bytes(text)
        self.succeed("train", "--data", "text:text", "--model", "gpt", "--layers", "2", "--width", "12",
                     "--heads", "3", "--context", "70", "--batch", "8", "--epochs", "3", "--save", "w",
                     *arguments)
        return text

    def test_gpt(self):
        text = self.train_text("--dropout", "0.1")
        self.export()
        *said, _ = self.events("predict", "w", "--data", "text:text", "--scores", "--limit", "3",
                               env=PLAIN)
        output = (ctypes.c_float * self.constant("model_outputs"))()
        scratch = (ctypes.c_float * self.constant("model_scratch"))()
        self.assertEqual((len(output), self.constant("model_most")), (256, 70))
        for function in self.functions():
            for i, line in enumerate(said):
                window = text[70 * i:70 * (i + 1)]
                self.assertEqual(function(window, 70, output, scratch), 0)
                self.assertEqual(single(output), single(line["scores"]))
            for wrong in (0, -1, 71):
                self.assertEqual(function(text, wrong, output, scratch), -1)

    def test_programs(self):
        self.train_text()
        (said,) = self.events("export", "w", "--c", "g.c", "--name", "speech")
        self.assertEqual(said, {"event": "end", "file": "g.c", "function": "speech_predict", "inputs": 70,
                                "outputs": 256})
        self.compile(compilers()[0], "g.c", "-Dspeech_main", "-ffp-contract=off", "-o", "speech")
        prompt = "ROMEO:"
        done = subprocess.run(["./speech", "90"], cwd=self.folder, input=prompt.encode(),
                              stdout=subprocess.PIPE, check=True)
        (said,) = self.events("sample", "w", "--prompt", prompt, "--bytes", "90", "--greedy", env=PLAIN)
        self.assertEqual(done.stdout, prompt.encode() + bytes(said["bytes"]))
        data, examples = self.images((6, 7))
        self.succeed("train", "--data", data, "--model", "mlp", "--widths", "5", *IMAGES)
        self.succeed("export", "w", "--c", "m.c")
        self.compile(compilers()[0], "m.c", "-Dmodel_main", "-ffp-contract=off", "-o", "numbers")
        done = subprocess.run(["./numbers"], cwd=self.folder, text=True, check=True,
                              input=" ".join(str(x) for e in examples for x in e),
                              stdout=subprocess.PIPE)
        lines = self.succeed("predict", "w", "--data", data, "--scores", env=PLAIN).splitlines()[:-1]
        self.assertEqual([" ".join(line.split()[3:]) for line in lines], done.stdout.splitlines())
        commas = subprocess.run(["./numbers"], cwd=self.folder, text=True, check=True, stdout=subprocess.PIPE,
                                input="\n".join(",".join(str(x) for x in e) for e in examples))
        self.assertEqual(commas.stdout, done.stdout)
        for wrong, words in (("1 2 3", "it ends where number 4 of 42"), ("1,x", "no number where number 2 of 42")):
            failed = subprocess.run(["./numbers"], cwd=self.folder, text=True, check=False, input=wrong,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((failed.returncode, failed.stdout), (1, ""))
            self.assertIn(words, failed.stderr)

    def test_weights_of_another_library_become_a_model(self):
        data, _ = self.images((9, 8, 3))
        self.succeed("train", "--data", data, "--model", "cnn", "--widths", "3,4,8", *IMAGES)
        self.succeed("export", "w", "--weights", "t.st", "--map", "torch")
        scores = ("--data", data, "--scores")
        *said, last = self.events("predict", "w", *scores)
        classes = str(len(said[0]["scores"]))
        cnn = ("import", "t.st", "--save", "i.st", "--model", "cnn", "--widths", "3,4,8", "--image", "9,8,3")
        self.assertEqual(self.events(*cnn, "--classes", classes),
                         [{"event": "end", "file": "i.st", "restored": 8}])
        self.assertEqual(self.events("predict", "i.st", *scores), [*said, last])
        self.succeed(*cnn, "--classes", classes, "--scale", "1", "--mean", "0,0,0", "--deviation", "255,255,255")
        self.assertAlmostEqual(self.events("predict", "i.st", *scores)[0]["scores"][0], said[0]["scores"][0], places=3)
        names = [f"kind {i}" for i in range(int(classes))]
        (self.folder / "names.txt").write_text("\r\n".join(names))
        for given in ("names.txt", ",".join(names)):
            self.succeed(*cnn, "--classes", classes, "--class-names", given)
            self.assertEqual(self.events("predict", "i.st", *scores)[0]["class_name"], names[said[0]["class"]])
        os.remove(self.folder / "i.st")
        # A weight that the file lacks, and a layer that the model lacks.
        (self.folder / "less.map").write_text("torch\nconv1.bias -\n")
        self.succeed("train", "--data", data, "--model", "mlp", "--widths", "5,5", *IMAGES)
        self.succeed("export", "w", "--weights", "m.st", "--map", "torch")
        other = ("import", "m.st", "--save", "i.st", "--classes", classes, "--image", "9,8,3", "--model")
        for code, words, arguments in (
                (1, "\"classes/bias\" needs F32 [17]", (*cnn, "--classes", "17")),
                (1, "\"conv2/bias\" needs F32 [5]", (*cnn, "--classes", classes, "--widths", "3,5,8")),
                (1, "--image 9,8,x: wrong shape", (*cnn, "--classes", classes, "--image", "9,8,x")),
                (1, "--mean 1,2: wrong list", (*cnn, "--classes", classes, "--mean", "1,2")),
                (1, "--deviation 1,0,1: wrong list", (*cnn, "--classes", classes, "--deviation", "1,0,1")),
                (1, ("--class-names a,b: 2 names", f"needs {classes}"),
                 (*cnn, "--classes", classes, "--class-names", "a,b")),
                (1, "--class-names no/file: ", (*cnn, "--classes", classes, "--class-names", "no/file")),
                (1, ("no tensor for 1 of 8 weights", "conv1/bias"), (*cnn, "--classes", classes, "--map", "less.map")),
                (1, ("2 tensors without a weight in the mlp, first hidden2.", "leaves a tensor out"),
                 (*other, "mlp", "--widths", "5")),
                (1, "epsilon 1e-5", (*other, "mobilenet", "--map", "keras")),
                (1, "--model gpt: needs neither --image", (*other, "gpt")),
                (1, "--model cnn: needs --image and --classes", cnn),
                (2, "--save FILE", ("import", "t.st", "--model", "cnn")),
                (2, "--model NAME", ("import", "t.st", "--save", "i.st"))):
            self.fail_with(code, words, *arguments)
        self.assertFalse((self.folder / "i.st").exists())

    def test_a_resnet18_of_torchvision(self):
        shapes = {"fc.weight": [3, 16], "fc.bias": [3]}

        def add(convolution, norm, out, inside, kernel):
            shapes[f"{convolution}.weight"] = [out, inside, kernel, kernel]
            shapes.update({f"{norm}.{word}": [out] for word in ("weight", "bias", "running_mean", "running_var")})
        add("conv1", "bn1", 2, 3, 7)
        inside = 2
        for stage, out in enumerate((2, 4, 8, 16), 1):
            for at in (f"layer{stage}.0", f"layer{stage}.1"):
                add(f"{at}.conv1", f"{at}.bn1", out, inside, 3)
                add(f"{at}.conv2", f"{at}.bn2", out, out, 3)
                if inside != out:
                    add(f"{at}.downsample.0", f"{at}.downsample.1", out, inside, 1)
                inside = out
        def numbers(name):
            return [random.Random(f"{name} {i}").random() for i in range(math.prod(shapes[name]))]
        tensors = {name: struct.pack(f"<{math.prod(shape)}f", *numbers(name)) for name, shape in shapes.items()}
        write_safetensors(self.folder / "v.st", {name: ("F32", shapes[name], data) for name, data in tensors.items()} | {
            "bn1.num_batches_tracked": ("I64", [], bytes(8))})
        self.succeed("import", "v.st", "--model", "resnet18", "--width", "2", "--image", "70,90,3", "--classes", "3",
                     "--map", "torchvision", "--save", "i.st")
        self.succeed("export", "i.st", "--weights", "again.st", "--map", "torchvision")
        header, again = read_safetensors(self.folder / "again.st")
        self.assertEqual(again, tensors)
        self.assertEqual({name: header[name]["shape"] for name in again}, shapes)

    def test_wrong_use(self):
        self.fail_with(2, "FILE", "export")
        self.fail_with(2, "--c FILE", "export", "w")
        self.fail_with(1, "w: ", "export", "w", "--c", "model.c")
        (self.folder / "images").write_bytes(idx((2, 3, 3), bytes(18)))
        self.fail_with(1, "is not a safetensors file", "export", "images", "--c", "model.c")
        self.succeed("train", *SMALL, "--model", "mlp", "--widths", "4", "--save", "w")
        self.fail_with(1, "no/such/m.c", "export", "w", "--c", "no/such/m.c")
        self.fail_with(1, "--c ./w: ", "export", "w", "--c", "./w")
        self.fail_with(2, ("--name", "empty", "NAME"), "export", "w", "--c", "model.c", "--name", "")
        for name in ("1st", "a-b", "a" * 65):
            self.fail_with(1, f"name is \"{name}\"", "export", "w", "--c", "model.c", "--name", name)
        self.assertEqual(sorted(os.listdir(self.folder)), ["images", "w"])
        # Weights without the lines that say what model they are of.
        whole = (self.folder / "w").read_bytes()
        (size,) = struct.unpack("<Q", whole[:8])
        header = json.loads(whole[8:8 + size])
        del header["__metadata__"]
        packed = json.dumps(header).encode()
        (self.folder / "w").write_bytes(struct.pack("<Q", len(packed)) + packed + whole[8 + size:])
        self.fail_with(1, "choir.model", "export", "w", "--c", "model.c")

    def test_a_full_disk(self):
        self.succeed("train", *SMALL, "--model", "mlp", "--widths", "4", "--save", "w")
        self.fail_with(1, "/dev/full", "export", "w", "--c", "/dev/full/model.c")


def single(numbers):
    """As bit patterns of floats."""
    return [struct.pack("<f", x) for x in numbers]


main()

"""Saving and using what was saved: the file, its reader in Python, the model that is rebuilt from it, and
what is told of files that do not fit."""

import json
import os
import resource
import struct
import subprocess

from command import Case, SMALL, main, read_safetensors, write_examples

MLP = (*SMALL, "--model", "mlp", "--widths", "24,12")


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


class Predict(Case):
    def train(self, *arguments):
        return self.events("train", *arguments, "--save", "w.safetensors")[-1]

    def test_what_was_trained_predicts_the_same(self):
        for model in (("--model", "mlp", "--widths", "24,12"), ("--model", "cnn", "--widths", "3,4,8")):
            trained = self.train(*SMALL, *model, "--replicas", "3")
            for replicas in ("1", "2", "5"):
                *each, end = self.events("predict", "w.safetensors", "--data", "digits:500", "--skip",
                                         "400", "--batch", "32", "--replicas", replicas)
                self.assertEqual(end["event"], "end")
                self.assertEqual(end["examples"], 100)
                self.assertEqual(end["accuracy"], trained["test_accuracy"])
                self.assertEqual([e["example"] for e in each], list(range(400, 500)))
                right = sum(e["class"] == e["label"] for e in each)
                self.assertAlmostEqual(end["accuracy"], right / 100)

    def test_plain_lines_and_no_labels(self):
        data = write_examples(self.folder, 40, (6, 7))
        self.train("--data", data, "--model", "mlp", "--widths", "8", "--batch", "8", "--epochs", "20")
        lines = self.succeed("predict", "w.safetensors", "--data", data, "--limit", "7").splitlines()
        self.assertEqual(len(lines), 8)
        self.assertEqual(lines[0].split()[0], "0")
        self.assertRegex(lines[-1], r"^accuracy \d+\.\d\d % on 7 examples$")
        *each, end = self.events("predict", "w.safetensors", "--data", "idx:images.idx")
        self.assertEqual(end, {"event": "end", "examples": 40})
        self.assertEqual([list(e) for e in each], [["event", "example", "class"]] * 40)

    def test_the_file(self):
        self.train(*MLP)
        header, tensors = read_safetensors(self.folder / "w.safetensors")
        metadata = header["__metadata__"]
        self.assertEqual(metadata["choir.model"], "mlp")
        self.assertEqual(metadata["choir.widths"], "24,12")
        self.assertEqual(metadata["choir.image"], "28,28")
        self.assertEqual(metadata["choir.classes"], "10")
        self.assertAlmostEqual(float(metadata["choir.scale"]), 1 / 255)
        self.assertEqual(header["hidden1/kernel"]["shape"], [784, 24])
        self.assertEqual(header["hidden1/kernel"]["dtype"], "F32")
        self.assertEqual(set(tensors), {f"{layer}/{part}" for layer in ("hidden1", "hidden2", "classes")
                                        for part in ("kernel", "bias")})
        self.assertEqual(len(tensors["hidden1/kernel"]), 4 * 784 * 24)

    def test_python_reads_it(self):
        python = os.environ.get("CHOIR_TEST_PYTHON", "")
        if not os.access(python, os.X_OK) or subprocess.run(
                [python, "-c", "import safetensors.numpy"], capture_output=True).returncode != 0:
            self.skipTest("no Python with safetensors")
        self.train(*MLP, "--checkpoint", "c")
        text = "import sys, json; from safetensors.numpy import load_file; " \
               "print(json.dumps([{n: list(a.shape) for n, a in load_file(p).items()} for p in sys.argv[1:]]))"
        step = max((self.folder / "c").glob("step-*"), key=lambda path: int(path.name[5:]))
        files = self.folder / "w.safetensors", step / "weights.safetensors", step / "state.safetensors"
        done = subprocess.run([python, "-c", text, *files], check=True, capture_output=True, text=True)
        saved, weights, state = json.loads(done.stdout)
        self.assertEqual(saved["hidden2/kernel"], [24, 12])
        self.assertEqual(weights, saved)
        self.assertEqual(state["adam/hidden2/kernel/v"], [24, 12])
        self.assertEqual(state["adam/step"], [])

    def test_no_disk_space(self):
        self.train(*MLP)
        old = (self.folder / "w.safetensors").read_bytes()
        # Python ignores SIGXFSZ, and so does what it starts: writing fails as on a full disk.
        self.fail_with(1, "w.safetensors", "train", *MLP, "--save", "w.safetensors",
                       preexec_fn=limit_file_size, restore_signals=False)
        self.assertEqual((self.folder / "w.safetensors").read_bytes(), old)
        self.assertEqual(sorted(os.listdir(self.folder)), ["w.safetensors"])

    def test_places_that_cannot_be_saved_to(self):
        self.fail_with(1, "--save no/such/w", "train", *MLP, "--save", "no/such/w")
        self.fail_with(1, "/proc/w", "train", *MLP, "--save", "/proc/w")
        self.fail_with(1, "--save", "train", *MLP, "--save", "/dev/null/w")
        self.fail_with(1, "is a directory", "train", *MLP, "--save", self.folder)

    def test_files_that_do_not_fit(self):
        self.fail_with(1, "none.safetensors", "predict", "none.safetensors", "--data", "mnist")
        self.train(*MLP)
        path = self.folder / "w.safetensors"
        whole = path.read_bytes()
        for shape in ((784,), (28, 30)):
            self.fail_with(1, (f"{list(shape)}; ", "needs [28, 28]"), "predict", path, "--data",
                           write_examples(self.folder, 9, shape))
        for length in (0, 7, 8, 100, len(whole) - 1):
            path.write_bytes(whole[:length])
            self.fail_with(1, "w.safetensors", "predict", path, "--data", "digits:9")
        (size,) = struct.unpack("<Q", whole[:8])
        header = json.loads(whole[8:8 + size])

        def rewrite(change, text):
            changed = json.loads(json.dumps(header))
            change(changed)
            packed = json.dumps(changed).encode()
            path.write_bytes(struct.pack("<Q", len(packed)) + packed + whole[8 + size:])
            return self.fail_with(1, text, "predict", path, "--data", "digits:9")

        rewrite(lambda h: h.pop("__metadata__"), "choir.model")
        rewrite(lambda h: h["__metadata__"].update({"choir.model": "rnn"}), "known: mlp, cnn")
        rewrite(lambda h: h["__metadata__"].update({"choir.model": "cnn"}), "3 widths")
        rewrite(lambda h: h["__metadata__"].update({"choir.scale": "nan"}), "choir.scale")
        rewrite(lambda h: h["__metadata__"].update({"choir.classes": "0"}), "choir.classes")
        rewrite(lambda h: h["__metadata__"].update({"choir.image": "28,-28"}), "choir.image")
        rewrite(lambda h: h["__metadata__"].update({"choir.image": "2147483647,2147483647"}),
                "choir.image")
        rewrite(lambda h: h["__metadata__"].update({"choir.mean": "0", "choir.deviation": "1"}),
                ("means of 1 inputs", "784"))
        rewrite(lambda h: h["__metadata__"].update({"choir.widths": "12000,12000"}),
                "153552010 weights")
        rewrite(lambda h: h["__metadata__"].update({"choir.widths": "24,11"}), "hidden2/kernel")

        def rename(h):
            h["hidden9/kernel"] = h.pop("hidden2/kernel")
        done = rewrite(rename, "hidden9/kernel") # what is too many, and what is missing
        self.assertIn("hidden2/kernel", done.stderr)


main()

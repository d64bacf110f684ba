"""Models of text and residual nets: what they learn, that devices do not matter, how they are saved, gone
on with and begun from other weights, and what is said of what cannot be."""

import json
import math
import os
import pty
import struct
import subprocess

from command import COMMAND, Case, main, read_safetensors, some_of, write_safetensors

TEXT = b"the cat sat on the mat, and the dog sat on the log; " * 60
GPT = ("--model", "gpt", "--data", "text:t.txt", "--width", "16", "--layers", "2", "--heads", "2",
       "--context", "16", "--epochs", "2")
RESNET = ("--model", "resnet20", "--data", "digits:100", "--width", "4", "--layers", "8", "--epochs", "2",
          "--batch", "16")
LSTM = ("--model", "lstm", "--data", "text:t.txt", "--width", "16", "--context", "16", "--epochs", "2")
MOBILENET = ("--model", "mobilenet", "--data", "digits:50", "--width", "2", "--epochs", "1")


class Model(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "t.txt").write_bytes(TEXT)

    def rewrite_metadata(self, name, to, change):
        """A copy of a file of weights with other metadata; None takes a line away."""
        content = (self.folder / name).read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + length])
        lines = {**header["__metadata__"], **change}
        header["__metadata__"] = {key: value for key, value in lines.items() if value is not None}
        packed = json.dumps(header).encode()
        (self.folder / to).write_bytes(struct.pack("<Q", len(packed)) + packed + content[8 + length:])

    def weights(self, *arguments):
        return self.events("train", *arguments)[-1]["weights"]

    def test_text_is_learnt_and_gone_on_with(self):
        start, *epochs, end = self.events("train", *GPT, "--width", "32", "--epochs", "12", "--rate", "0.01",
                                          "--schedule", "cosine", "--warmup", "5", "--optimizer", "adamw",
                                          "--clip", "1", "--save", "g.st")
        self.assertEqual((start["model"], start["image"], start["classes"]), ("gpt", [16], 256))
        windows = (len(TEXT) - 1) // 16
        self.assertEqual(start["test_examples"], (windows + 9) // 10)
        self.assertEqual(start["train_examples"], windows - (windows + 9) // 10)
        self.assertEqual([e["epoch"] for e in epochs], list(range(1, 13)))
        self.assertEqual(end["bits_per_byte"], epochs[-1]["bits_per_byte"])
        self.assertNotIn("test_accuracy", end)
        self.assertLess(end["bits_per_byte"], 1)
        self.assertGreater(epochs[0]["bits_per_byte"], 3)
        text = self.succeed("sample", "g.st", "--prompt", "the cat sat", "--bytes", "40", "--greedy")
        self.assertTrue(text.startswith("the cat sat on the mat, and the dog sat"), text)
        *each, last = self.events("predict", "g.st", "--data", "text:t.txt", "--replicas", "2")
        self.assertLess(last["bits_per_byte"], 1)
        self.assertEqual(last["examples"], windows)
        for line in each[:10]:
            self.assertEqual(line["label"], TEXT[16 * line["example"] + 16])

    def test_an_lstm_learns_text(self):
        end = self.events("train", *LSTM, "--width", "32", "--epochs", "12", "--batch", "4", "--rate", "0.01",
                          "--save", "l.st")[-1]
        self.assertLess(end["bits_per_byte"], 1)
        text = self.succeed("sample", "l.st", "--prompt", "the cat sat", "--bytes", "12", "--greedy")
        self.assertTrue(text.startswith("the cat sat on the"), text)
        self.assertEqual(self.events("predict", "l.st", "--data", "text:t.txt")[-1]["examples"], (len(TEXT) - 1) // 16)
        self.fail_with(1, "--heads 2: model lstm has no such size", "train", *LSTM, "--heads", "2")
        self.fail_with(1, ("lstm: ", "--data text:FILE"), "train", "--model", "lstm", "--data", "digits:20")

    def test_text_of_several_files(self):
        # Cut between two windows, the byte that is asked for last stands in both: the same windows.
        cut = 16 * 77
        (self.folder / "a.txt").write_bytes(TEXT[:cut + 1])
        (self.folder / "b.txt").write_bytes(TEXT[cut:])
        start, *_, end = self.events("train", *GPT, "--data", "text:a.txt,b.txt", "--save", "g.st")
        windows = (len(TEXT) - 1) // 16
        self.assertEqual(start["test_examples"], (windows + 9) // 10)
        self.assertEqual(start["train_examples"], windows - (windows + 9) // 10)
        self.assertEqual(self.weights(*GPT, "--data", "text:[ab].txt"), end["weights"])
        of = [self.events("predict", "g.st", "--data", data) for data in ("text:t.txt", "text:a.txt,b.txt")]
        self.assertEqual(of[0], of[1])
        # What is too short for a window has none, and none goes on into the next file.
        (self.folder / "c.txt").write_bytes(TEXT[:16])
        (self.folder / "d.txt").write_bytes(TEXT[:17])
        start, *_ = self.events("train", *GPT, "--data", "text:c.txt,d.txt,c.txt,d.txt", "--epochs", "1")
        self.assertEqual((start["train_examples"], start["test_examples"]), (1, 1))
        self.fail_with(1, ("3 files", "1 windows of 16 bytes", "at least 2"),
                       "train", *GPT, "--data", "text:c.txt,d.txt,c.txt")
        self.fail_with(1, "none.txt", "train", *GPT, "--data", "text:a.txt,none.txt")

    def test_a_model_commands_no_terminal(self):
        """Bytes as they come into a file, and made harmless where somebody reads them."""
        self.succeed("train", *GPT, "--epochs", "1", "--save", "g.st")
        asked = ("sample", "g.st", "--bytes", "300", "--temperature", "1000")
        done = self.start(*asked, text=False)
        self.assertRegex(done.stdout, rb"[\x00-\x08]")
        terminal, line = pty.openpty()
        with os.fdopen(terminal, "rb", buffering=0) as terminal:
            done = self.start(*asked, stdout=line)
            os.close(line)
            shown = b""
            try:
                while chunk := terminal.read(65536):
                    shown += chunk
            except OSError: # Linux: the other end is closed
                pass
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = shown.decode().replace("\r\n", "\n")
        self.assertGreater(len(text), 300)
        for c in text.replace("\n", "").replace("\t", ""):
            self.assertTrue(c.isprintable(), hex(ord(c)))

    def test_samples_follow_the_seed(self):
        self.events("train", *GPT, "--save", "g.st")
        def draw(*more):
            return self.events("sample", "g.st", "--bytes", "30", *more)[-1]["bytes"]
        self.assertEqual(draw(), draw("--seed", "1"))
        self.assertNotEqual(draw(), draw("--seed", "2"))
        self.assertEqual(len(draw()), 30)
        greedy = draw("--greedy")
        self.assertEqual(draw("--temperature", "1e-6"), greedy)
        self.assertEqual(draw("--greedy", "--prompt", "x" * 100), draw("--greedy", "--prompt", "x" * 16))

    def test_the_same_weights_whatever_carries_the_replicas(self):
        for model in ((*GPT, "--dropout", "0.1", "--epochs", "1"), RESNET, LSTM, MOBILENET):
            one = self.weights(*model, "--replicas", "4", "--devices", "cpu:0")
            for devices in some_of("cpu:0,cpu:1,cpu:2", "far:0,far:1", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2,cpu:3"):
                self.assertEqual(self.weights(*model, "--replicas", "4", "--devices", devices), one,
                                 devices)
        self.assertNotEqual(self.weights(*GPT, "--dropout", "0.1"), self.weights(*GPT))
        # One replica's batch is large enough to be cut into what two threads share.
        alone, shared = (self.weights(*RESNET, "--batch", "64", "--epochs", "1", "--devices", "cpu:0",
                                      "--cores", cores) for cores in ("1", "2"))
        self.assertEqual(alone, shared)

    def test_the_same_weights_in_16_bits(self):
        for model, *precisions in some_of((GPT, "mixed_bf16", "mixed_f16"), (LSTM, "mixed_f16", "mixed_bf16"),
                                          (RESNET, "mixed_bf16", "mixed_f16")):
            for precision in some_of(*precisions, slow=1):
                last = [self.start("train", *model, "--epochs", "1", "--precision", precision, "--replicas", "4",
                                   "--devices", devices, "--cores", cores).stdout.splitlines()[-1]
                        for devices, cores in some_of(("cpu:0", "1"), ("cpu:0,cpu:1", "2"), ("cpu:0,cpu:1,cpu:2", "1"))]
                self.assertRegex(last[0], "^weights [0-9a-f]+$")
                self.assertEqual(last, last[:1] * len(last), (model, precision))

    def test_a_saved_residual_net_predicts_as_it_was_tested(self):
        end = self.events("train", *RESNET, "--save", "r.st")[-1]
        last = self.events("predict", "r.st", "--data", "digits:100", "--skip", "80")[-1]
        self.assertEqual(last["accuracy"], end["test_accuracy"])
        header, tensors = read_safetensors(self.folder / "r.st")
        self.assertEqual({k: header["__metadata__"][k] for k in
                          ("choir.model", "choir.width", "choir.layers", "choir.image")},
                         {"choir.model": "resnet20", "choir.width": "4", "choir.layers": "8",
                          "choir.image": "28,28"})
        self.assertEqual(len(tensors), 2 + 5 * 9)  # dense; stem, 3 blocks of 2 and 2 shortcuts

    def test_the_bytes_said_before_are_those_of_the_variables(self):
        for model in (GPT, RESNET, LSTM, MOBILENET, ("--data", "digits:50", "--epochs", "1"),
                      ("--data", "digits:50", "--epochs", "1", "--model", "mlp")):
            start = self.events("train", *model)[0]
            self.assertEqual(start["memory"]["weights"], sum(v["bytes"] for v in start["variables"]), model)
            self.assertEqual(start["memory"]["optimizer"], 2 * start["memory"]["weights"])

    def test_patience_stops_and_goes_back_to_the_best(self):
        start, *epochs, end = self.events("train", *GPT, "--epochs", "60", "--rate", "0.3", "--patience",
                                          "2", "--save", "g.st")
        bits = [e["bits_per_byte"] for e in epochs]
        self.assertLess(len(bits), 60)
        self.assertEqual(end["bits_per_byte"], min(bits))
        self.assertEqual(bits.index(min(bits)), len(bits) - 3)
        again = self.events("train", *GPT, "--epochs", str(len(bits) - 2), "--rate", "0.3")[-1]
        self.assertEqual(again["weights"], end["weights"])
        self.fail_with(1, ("--patience 1: ", "100 of 100 examples"), "train", *RESNET, "--patience", "1", "--train-examples",
                       "100")

    def test_a_test_whose_score_is_no_number(self):
        wild = (*GPT, "--epochs", "1", "--optimizer", "sgd", "--rate", "1e30", "--nonfinite", "go_on") # the old name of ignore
        done = self.start("train", *wild)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^epoch 1/1 .* -?nan bits per byte$")
        self.assertRegex(done.stdout, r"(?m)^-?nan bits per byte on \d+ held-out bytes$")

    def test_gradients_that_are_not_finite(self):
        nan = struct.pack(">f", float("nan"))
        values = b"".join(nan if i == 35 else struct.pack(">f", i % 7) for i in range(40 * 9))
        (self.folder / "x.idx").write_bytes(struct.pack(">BBBB3I", 0, 0, 13, 3, 40, 3, 3) + values)
        (self.folder / "y.idx").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, 40) + bytes(i % 3 for i in
                                                                                         range(40)))
        wrong = ("train", "--data", "idx:x.idx,y.idx", "--model", "mlp", "--widths", "4", "--batch", "8",
                 "--replicas", "2", "--epochs", "1")
        done = self.fail_with(1, "step ", *wrong)
        self.assertRegex(done.stderr, r"step \d+: replica [01]: .*(hidden1|classes)/(kernel|bias)")
        done = self.start(*wrong, "--nonfinite", "stop", "--precision", "mixed_bf16") # it may say that it is slow
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"step \d+: replica [01]: .*(hidden1|classes)/(kernel|bias)")
        for policy, outcome in (("skip", "is skipped"), ("ignore", "is applied")):
            done = self.start(*wrong, "--nonfinite", policy, "--save", "w.st")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count("\n"), 1 + done.stderr.count("the test loss is nan"), done.stderr)
            self.assertEqual("the test loss is nan" in done.stderr, policy == "ignore")
            _, tensors = read_safetensors(self.folder / "w.st")
            weights = struct.unpack("<36f", tensors["hidden1/kernel"])
            self.assertEqual(any(math.isnan(w) for w in weights), policy == "ignore", policy)
            self.assertRegex(done.stderr, r"replica [01]: .*(hidden1|classes)/(kernel|bias).* in update \d+; "
                             f"the update {outcome}")

    def test_init(self):
        base = self.events("train", *GPT, "--save", "g.st")[-1]
        begin, said, *_, end = self.events("train", *GPT, "--init", "g.st", "--freeze", "*", "--epochs",
                                           "1")
        self.assertEqual((begin["event"], said["event"]), ("init", "start"))
        self.assertEqual((begin["missing"], begin["unexpected"]), ([], []))
        self.assertEqual(begin["restored"], len(said["variables"]))
        self.assertEqual(end["weights"], base["weights"])
        self.assertEqual(end["bits_per_byte"], base["bits_per_byte"])
        self.events("train", *GPT, "--init", "g.st", "--freeze", "token/*,*/kernel", "--save", "f.st")
        _, old = read_safetensors(self.folder / "g.st")
        _, new = read_safetensors(self.folder / "f.st")
        for name, data in old.items():
            same = name.startswith("token/") or name.endswith("/kernel")
            self.assertEqual(new[name] == data, same, name)

    def test_init_from_others(self):
        import random
        draw = random.Random(1)
        dense = [draw.uniform(-1, 1) for _ in range(32 * 16)]  # [out, in], as PyTorch has it
        halves = b"".join(struct.pack("<e", x) for x in dense)
        write_safetensors(self.folder / "o.st", {
            "h.0.up.weight": ("F16", [64, 16], halves + halves),
            "h.0.up.bias": ("F32", [64], struct.pack("<64f", *range(64))),
            "h.9.norm": ("F32", [16], bytes(64)),
            "h.0.mask": ("U8", [4], bytes(4)),
        })
        (self.folder / "map").write_text("# names of others\nh.*.up.weight block*/up/kernel 1,0\n\n"
                                         "h.*.up.bias block*/up/bias # as it is\n*.mask -\n")
        init, *_ = self.events("train", *GPT, "--init", "o.st", "--init-map", "map", "--freeze",
                               "block0/up/*", "--save", "g.st")
        self.assertEqual(init["restored"], 2)
        self.assertEqual(init["unexpected"], [{"name": "h.9.norm"}])
        self.assertIn({"name": "token/embeddings"}, init["missing"])
        self.assertNotIn({"name": "block0/up/bias"}, init["missing"])
        _, tensors = read_safetensors(self.folder / "g.st")
        self.assertEqual(tensors["block0/up/bias"], struct.pack("<64f", *range(64)))
        kernel = struct.unpack("<1024f", tensors["block0/up/kernel"])
        rows = struct.unpack("<1024e", halves + halves)
        self.assertEqual(kernel, tuple(rows[o * 16 + i] for i in range(16) for o in range(64)))
        lines = self.succeed("train", *GPT, "--init", "o.st", "--init-map", "map").splitlines()
        self.assertEqual(lines[0], "restored 2 weights from o.st")
        self.assertIn("  unexpected: h.9.norm", lines)

    def test_weights_of_torch_and_back(self):
        """What is exported for torch is brought in again; numpy's view of the layouts is that of torch."""
        small = ("--data", "digits:64", "--model", "cnn", "--widths", "3,4,5", "--epochs", "1", "--batch", "16")
        self.events("train", *small, "--save", "w.st")
        self.assertEqual(self.succeed("export", "w.st", "--weights", "t.st", "--map", "torch"),
                         "wrote t.st: weights with the names of torch\n")
        _, ours = read_safetensors(self.folder / "w.st")
        _, torch = read_safetensors(self.folder / "t.st")
        self.assertEqual(len(ours), len(torch))
        bias = {name.replace("/", "."): data for name, data in ours.items() if name.endswith("/bias")}
        self.assertEqual(bias, {name: data for name, data in torch.items() if name.endswith(".bias")})
        self.assertTrue(all(name.endswith((".bias", ".weight")) for name in torch))
        init, *_ = self.events("train", *small, "--init", "t.st", "--init-map", "torch", "--learning-rate", "1e-30",
                               "--save", "back.st")
        self.assertEqual((init["missing"], init["unexpected"]), ([], []))
        _, back = read_safetensors(self.folder / "back.st")
        self.assertEqual(back, ours)
        self.events("export", "w.st", "--weights", "k.st")
        _, keras = read_safetensors(self.folder / "k.st")
        self.assertEqual(keras, ours)
        self.fail_with(2, "either --c FILE or --weights", "export", "w.st", "--c", "a.c", "--weights", "b.st")
        self.fail_with(2, "--map without --weights", "export", "w.st", "--c", "a.c", "--map", "torch")
        self.fail_with(1, ("--map jax", "torch, torchvision or keras"), "export", "w.st", "--weights", "b.st", "--map", "jax")
        self.fail_with(1, "is the weights file itself", "export", "w.st", "--weights", "w.st")

    def test_init_that_cannot_be(self):
        self.events("train", *GPT, "--epochs", "1", "--save", "g.st")
        train = ("train", *GPT, "--epochs", "1")
        self.fail_with(1, '"place/embeddings" is F32 [16, 16]; variable "place/embeddings" needs F32 [8, 16]',
                       *train, "--context", "8", "--init", "g.st")
        write_safetensors(self.folder / "v.st", {"token/embeddings": ("F32", [65, 16], bytes(65 * 64))})
        self.fail_with(1, 'is F32 [65, 16]; variable "token/embeddings" needs F32 [256, 16]', *train, "--init",
                       "v.st")
        write_safetensors(self.folder / "n.st", {"x": ("F32", [1], bytes(4))})
        self.fail_with(1, "none of its 1 tensors", *train, "--init", "n.st")
        self.fail_with(1, "--freeze tokens/*: ", *train, "--freeze",
                       "*/kernel,tokens/*")
        self.fail_with(1, "none.st", *train, "--init", "none.st")
        self.fail_with(1, ("--init-map map: ", "--init FILE"), *train, "--init-map", "map")
        self.fail_with(1, "--init-map none", *train, "--init", "g.st", "--init-map", "none")
        for line, text in (("a", "one word"), ("a b c d", "after the two names only"), ("a* b* 1,1", "axes"),
                           ("a b*", "one star"), ("a** b", "one star"), ("a b 0,2", "axes"),
                           ("a b 1,", "axes")):
            (self.folder / "map").write_text("x y\n" + line)
            done = self.fail_with(1, text, *train, "--init", "g.st", "--init-map", "map")
            self.assertIn("map: line 2", done.stderr)
        (self.folder / "map").write_text("norm/* block0/attention_norm/*\n")
        self.fail_with(1, 'are both for variable "block0/attention_norm/beta"', *train, "--init", "g.st",
                       "--init-map", "map")
        (self.folder / "map").write_bytes(b"x y\0")
        self.fail_with(1, ("--init-map map: ", "1048576"), *train, "--init", "g.st", "--init-map", "map")

    def test_sizes_that_cannot_be(self):
        gpt = ("train", "--model", "gpt", "--data", "text:t.txt")
        self.fail_with(1, ("--heads 3", "--width 128"), *gpt, "--heads", "3")
        self.fail_with(1, "--dropout 1", *gpt, "--dropout", "1")
        # 0 is what is meant without the option.
        none = ("--dropout", "0", "--warmup", "0", "--clip", "0", "--patience", "0")
        self.assertEqual(self.weights(*GPT, "--epochs", "1", *none), self.weights(*GPT, "--epochs", "1"))
        self.fail_with(1, ("3120 bytes", "context of 1560", "at least 3121"), *gpt, "--context",
                       "1560")
        self.fail_with(2, ("--context 0: ", "a whole number"), *gpt, "--context", "0")
        self.fail_with(1, "widths \"3\": ", *gpt, "--widths", "3")
        self.fail_with(1, ("--heads 2: ", "model cnn"), "train", "--heads", "2")
        self.fail_with(1, ("--dropout 0.1: ", "model cnn"), "train", "--model", "cnn", "--dropout",
                       "0.1")
        self.fail_with(1, ("--layers 9", "6 n + 2"), "train", "--model", "resnet20", "--layers", "9", "--data",
                       "digits:20")
        self.fail_with(1, ('"text:t.txt"', "--model gpt"), "train", "--data", "text:t.txt")
        self.fail_with(1, "--data text:FILE", "train", "--model", "gpt", "--data", "digits:20")
        (self.folder / "empty.txt").write_bytes(b"")
        self.fail_with(1, "empty.txt", *gpt[:-1], "text:empty.txt")
        self.fail_with(1, "none.txt", *gpt[:-1], "text:none.txt")
        self.fail_with(1, '"text:": ', *gpt[:-1], "text:")

    def test_a_text_that_vanishes_or_shrinks(self):
        for change, code in ((lambda path: path.unlink(), 0), (lambda path: os.truncate(path, 500), 1)):
            path = self.folder / "gone.txt"
            path.write_bytes(TEXT)
            with subprocess.Popen([COMMAND, "train", *GPT, "--data", "text:gone.txt", "--epochs",
                                   "100000" if code else "10", "--json"], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as training:
                for _ in range(3):
                    training.stdout.readline()
                change(path)
                out, errors = training.communicate(timeout=250)
            self.assertEqual(training.returncode, code, errors)
            if code == 0: # who has the file open still reads it
                self.assertEqual(json.loads(out.splitlines()[-1])["event"], "end")
            else:
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertIn("gone.txt", errors)

    def test_too_large_for_memory(self):
        done = self.fail_with(1, " of memory (weights ", "train", *GPT, "--width", "1048576", "--layers",
                              "1024")
        self.assertRegex(done.stderr, r"about \d\S* TB of memory.*weights .*gradients .*optimizer "
                                      r".*activations .*the machine has")
        self.fail_with(1, " of memory (weights ", "train", "--data", "digits:20", "--model", "mlp",
                       "--widths", "1000000,1000000")

    def test_wrong_weights_for_the_command(self):
        self.events("train", *GPT, "--save", "g.st")
        self.events("train", "--data", "digits:50", "--epochs", "1", "--model", "mlp", "--save", "m.st")
        self.fail_with(1, ("m.st: ", "a mlp", "gpt"), "sample", "m.st")
        self.fail_with(1, ('"digits:10"', "a gpt", "text:FILE"), "predict", "g.st", "--data", "digits:10")
        self.fail_with(1, ('"text:t.txt"', "weights of a gpt"), "predict", "m.st", "--data", "text:t.txt")
        self.fail_with(2, "FILE", "sample")
        for change, text in (({"choir.classes": "65"}, "a vocabulary of 65"),
                             ({"choir.heads": "3"}, "--heads 3"),
                             ({"choir.context": "17"}, "windows of 17 bytes"), ({"choir.width": "x"}, 'choir.width has the invalid value "x"'),
                             ({"choir.activation": "silu"}, 'choir.activation has the invalid value "silu"'),
                             ({"choir.dropout": "2"}, 'choir.dropout has the invalid value "2"')):
            self.rewrite_metadata("g.st", "w.st", change)
            self.fail_with(1, text, "sample", "w.st")

    def test_a_file_says_which_form_of_gelu_its_gpt_has(self):
        self.events("train", *GPT, "--save", "g.st")
        header, _ = read_safetensors(self.folder / "g.st")
        self.assertEqual(header["__metadata__"]["choir.activation"], "gelu")

        def bits(activation):
            self.rewrite_metadata("g.st", "w.st", {"choir.activation": activation})
            return self.events("predict", "w.st", "--data", "text:t.txt")[-1]["bits_per_byte"]

        exact, by_tanh = bits("gelu"), bits("gelu_tanh")
        self.assertNotEqual(exact, by_tanh)
        self.assertAlmostEqual(exact, by_tanh, places=2)
        self.assertEqual(bits(None), by_tanh)  # a file that does not say so


main()

"""Training, from the first line to the last: what is said, what comes of it, and what it does not depend
on."""

import re
import struct

from command import RELEASE, SMALL, Case, idx, main, only_in_the_release, some_of, threads

LEARNABLE = ("--data", "digits:2500", "--batch", "25", "--epochs", "8", "--rate", "0.003")
MLP = (*SMALL, "--model", "mlp", "--widths", "24")
CNN = (*SMALL, "--model", "cnn", "--widths", "3,4,8")


class Train(Case):
    def weights(self, *arguments, **more):
        end = self.events("train", *arguments, **more)[-1]
        self.assertEqual(end["event"], "end")
        self.assertRegex(end["weights"], r"^[0-9a-f]{16}$")
        return end["weights"]

    @only_in_the_release
    def test_drawn_digits_are_learnt(self):
        start, *epochs, end = self.events("train", "--data", "digits:2500", "--model", "mlp", "--widths",
                                          "64", "--batch", "50", "--epochs", "6", "--rate", "0.003",
                                          "--replicas", "2")
        self.assertEqual([event["event"] for event in epochs], ["epoch"] * 6)
        self.assertEqual([event["epoch"] for event in epochs], [1, 2, 3, 4, 5, 6])
        self.assertEqual((start["train_examples"], start["test_examples"]), (2000, 500))
        losses = [event["loss"] for event in epochs]
        self.assertLess(losses[-1], losses[0] / 3)
        self.assertEqual(end["loss"], losses[-1])
        self.assertGreater(end["test_accuracy"], 0.85)
        self.assertGreater(end["examples_per_s"], 0)

    def test_the_summary(self):
        start = self.events("train", *CNN, "--replicas", "3", "--devices", "cpu:0,far:0")[0]
        self.assertEqual((start["event"], start["model"], start["replicas"]), ("start", "cnn", 3))
        self.assertEqual((start["image"], start["classes"], start["batch"]), ([28, 28], 10, 32))
        self.assertEqual(start["seed"], 1)
        self.assertIn(", adam, seed 18446744073709551615\n",
                      self.succeed("train", *CNN, "--seed", "18446744073709551615"))
        shapes = {v["name"]: v["shape"] for v in start["variables"]}
        self.assertEqual(shapes["conv1/kernel"], [3, 3, 1, 3])
        self.assertEqual(shapes["hidden/kernel"], [12 * 12 * 4, 8])
        weights = sum(v["bytes"] for v in start["variables"])
        self.assertEqual([d["name"] for d in start["devices"]], ["cpu:0", "far:0"])
        for device in start["devices"]: # memory of its own: a copy each
            self.assertEqual(device["weight_bytes"], weights)
            self.assertEqual(device["optimizer_bytes"], 2 * weights)
        shared = self.events("train", *CNN, "--replicas", "2", "--devices", "cpu:0,cpu:1")[0]
        self.assertEqual([d["weight_bytes"] for d in shared["devices"]], [weights, 0])

    def test_patience_needs_a_test(self):
        for train, *data in ((4, "--data", "digits:4"), (50, "--data", "digits:50", "--train-examples", "50")):
            self.fail_with(1, ("--patience 1: ", f"{train} of {train} examples"), "train", *data, "--model", "mlp", "--patience", "1")

    def test_plain_lines(self):
        lines = self.succeed("train", *MLP).splitlines()
        self.assertIn("mlp on digits:500: images [28, 28], 10 classes, 400 examples to train and 100",
                      lines[0])
        self.assertTrue(any("hidden1/kernel" in line and "[784, 24]" in line for line in lines))
        epochs = [line for line in lines if re.match(r"epoch \d/2  loss \d\.\d{4}, \d+\.\d\d % right  \d+ examples/s, \d+\.\d s  "
                                                         r"test \d+\.\d\d %, loss \d\.\d{4}", line)]
        self.assertEqual(len(epochs), 2)
        self.assertRegex(lines[-2], r"^test accuracy \d+\.\d\d %, loss \d\.\d{4} on 100 examples$")
        self.assertRegex(lines[-1], r"^weights [0-9a-f]{16}$")
        self.assertFalse(any("\r" in line or "\033" in line for line in lines))

    @threads
    def test_the_same_weights_whatever_carries_the_replicas(self):
        for model in (MLP, CNN):
            one = self.weights(*model, "--replicas", "4", "--devices", "cpu:0")
            for devices in some_of("cpu:0,far:0,far:1", "cpu:0,cpu:1,cpu:2", "cpu:0,cpu:1", "far:0,far:1",
                                   "cpu:0,cpu:1,cpu:2,cpu:3"):
                self.assertEqual(self.weights(*model, "--replicas", "4", "--devices", devices), one,
                                 devices)
            self.assertEqual(self.weights(*model, "--replicas", "4"), one)
            self.assertEqual(self.weights(*model, "--replicas", "4",
                                          env={"CHOIR_DEVICES": "cpu:1,cpu:0,cpu:2"}), one)

    def test_strategies_that_compute_the_same(self):
        base = self.weights(*MLP, "--replicas", "3", "--devices", "cpu:0,cpu:1")
        for other in (("central_storage",), ("central_storage", "--parameter-devices", "far:0"),
                      ("parameter_server", "--parameter-devices", "far:0,cpu:0")):
            self.assertEqual(self.weights(*MLP, "--replicas", "3", "--devices", "cpu:0,cpu:1",
                                          "--strategy", *other), base, other)
        one = self.weights(*MLP, "--replicas", "1")
        self.assertEqual(self.weights(*MLP, "--strategy", "one_device"), one)

    @threads
    def test_cosine_over_workers(self):
        # Of 33 examples each of 4 workers has 8 or 9, a batch: 4 updates an epoch, not 2.
        _, *epochs, _ = self.events("train", "--model", "mlp", "--widths", "8", "--data", "digits:40",
                                    "--train-examples", "33", "--batch", "32", "--epochs", "4", "--rate", "0.01",
                                    "--schedule", "cosine", "--strategy", "parameter_server", "--workers", "4",
                                    "--devices", "cpu:0")
        self.assertNotAlmostEqual(epochs[2]["loss"], epochs[3]["loss"], places=3)

    @threads
    def test_workers_of_a_parameter_server(self):
        for more in ((), ("--lock-free",)):
            start, *_, end = self.events(
                "train", *(LEARNABLE if RELEASE else SMALL), "--model", "mlp", "--widths", "64", "--strategy", "parameter_server", "--workers", "4",
                "--devices", "cpu:0,cpu:1", *more)
            self.assertEqual((start["strategy"], start["workers"], start["replicas"]),
                             ("parameter_server", 4, 1))
            self.assertGreater(end["test_accuracy"], 0.85 if RELEASE else 0)

    def test_strategies_that_cannot_be(self):
        self.fail_with(1, 'strategy "central": is unknown; known: ', "train", *MLP, "--strategy",
                       "central")
        self.fail_with(1, '"mirrored" has no workers', "train", *MLP, "--workers", "2")
        self.fail_with(1, "2 replicas for 4 workers", "train", *MLP, "--strategy", "parameter_server",
                       "--workers", "4", "--replicas", "2")

    def test_who_trains_on_what(self):
        lines = self.succeed("train", *MLP, "--replicas", "3", "--show-split").splitlines()
        at = lines.index("worker 0 reads everything")
        self.assertEqual(lines[at:at + 4], ["worker 0 reads everything",
                                     "  replica 0: examples 0 to 10 of each global batch of 32",
                                     "  replica 1: examples 11 to 21 of each global batch of 32",
                                     "  replica 2: examples 22 to 31 of each global batch of 32"])
        split = self.events("train", *MLP, "--replicas", "3", "--show-split")[1]
        self.assertEqual(split["text"].splitlines(), lines[at:at + 4])
        self.assertEqual((split["auto_shard"], split["fell_back"]), ("data", 0))

    @only_in_the_release
    def test_numbers_of_replicas_that_do_not_divide(self):
        for replicas in ("6", "7"):
            one = self.weights(*MLP, "--replicas", replicas, "--devices", "cpu:0")
            for devices in ("cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2", "cpu:0,cpu:1,cpu:2,cpu:3,cpu:4"):
                self.assertEqual(self.weights(*MLP, "--replicas", replicas, "--devices", devices), one)

    @only_in_the_release
    def test_what_the_weights_do_depend_on(self):
        base = self.weights(*MLP)
        self.assertEqual(self.weights(*MLP), base)
        for other in (("--seed", "2"), ("--batch", "16"), ("--epochs", "1"), ("--rate", "0.002"),
                      ("--optimizer", "sgd"), ("--optimizer", "momentum"), ("--optimizer", "adamw"),
                      ("--optimizer", "rmsprop"), ("--widths", "25"), ("--train-examples", "399")):
            self.assertNotEqual(self.weights(*MLP, *other), base, other)

    def test_replicas_agree_on_the_loss(self):
        losses = [self.events("train", *MLP, "--replicas", replicas)[-1]["loss"]
                  for replicas in ("1", "2", "4")]
        for loss in losses:
            self.assertAlmostEqual(loss, losses[0], delta=1e-5)

    def test_more_replicas_than_examples(self):
        *_, end = self.events("train", *MLP, "--replicas", "7", "--batch", "5", "--epochs", "1")
        self.assertLess(end["loss"], 3)

    def mixed(self, *arguments, **more):
        """What a training prints in mixed precision; on standard error it may say that it is slow."""
        done = self.start("train", *MLP, *arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_precision(self):
        f32 = self.events("train", *MLP, "--replicas", "2")[-1]
        for precision in some_of("mixed_bf16", "mixed_f16", slow=1):
            options = ("--precision", precision, "--replicas", "2", "--devices")
            one, said = self.mixed(*options, "cpu:0", "--save", "w.safetensors")
            two, _ = self.mixed(*options, "cpu:0,cpu:1", "--cores", "2")
            self.assertEqual(one.splitlines()[-1], two.splitlines()[-1])
            self.assertNotEqual(one.splitlines()[-1], f"weights {f32['weights']}")
            loss = float(re.search(r"epoch 2/2  loss (\d+\.\d+)", one).group(1))
            self.assertAlmostEqual(loss, f32["loss"], delta=0.02)
            self.assertLess(said.count("\n"), 2)
            self.assertIn("F32", (self.folder / "w.safetensors").read_bytes()[:2000].decode("latin-1"))
        done = self.start("predict", "w.safetensors", "--data", "digits:20", "--precision", "mixed_bf16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 21)
        self.fail_with(2, "mixed_bf16", "train", *MLP, "--precision", "bf16")

    def test_tf32_on_a_cpu_is_f32(self):
        f32 = self.succeed("train", *MLP)
        shown, said = self.mixed("--precision", "tf32", "--verbose")
        self.assertEqual(shown.splitlines()[-1], f32.splitlines()[-1])
        self.assertRegex(said, r"^choir train: --precision tf32: cpu:0 has no TF32; .*\n$")
        self.assertRegex(shown, r"precision tf32\n  TF32:\n  f32: abs add")

    def test_precision_without_instructions(self):
        for env in some_of({"CHOIR_INSTRUCTION_SET": "avx2"}, {"CHOIR_KERNELS": "plain"}, slow=1):
            _, said = self.mixed("--precision", "auto", env=env)
            self.assertRegex(said, r"^choir train: --precision auto: f32; no instructions .* \d\.\d\d times")
            _, said = self.mixed("--precision", "mixed_bf16", env=env)
            self.assertRegex(said, r"^choir train: --precision mixed_bf16: no instructions .*\n$")
            _, said = self.mixed("--precision", "mixed_bf16", "--devices", "far:0", env=env)
            self.assertNotIn("instructions", said)

    def test_overflow_in_every_step(self):
        (self.folder / "x.idx").write_bytes(idx((120, 3, 3), struct.pack(">1080f", *[1e30] * 1080), 13))
        (self.folder / "y.idx").write_bytes(idx((120,), bytes(i % 3 for i in range(120))))
        done = self.start("train", "--data", "idx:x.idx,y.idx", "--model", "mlp", "--widths", "4", "--batch", "4",
                          "--epochs", "1", "--precision", "mixed_f16")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], r"^choir train: fit: epoch \d+, batch \d+, step 16: .*not finite.*loss scale is 1,")

    def test_rules_of_precision(self):
        shown, _ = self.mixed("--precision", "mixed_bf16", "--verbose")
        narrow, wide = re.search(r"16 bits:(.*)\n  f32:(.*)\n  other", shown, re.DOTALL).groups()
        self.assertTrue({"dense", "matmul", "gelu"} <= set(narrow.split()))
        self.assertTrue({"softmax", "exp", "log_softmax"} <= set(wide.split()))
        self.assertIn("precision f32\n", self.succeed("train", *MLP, "--verbose"))

    def test_checkpoint_of_another_precision(self):
        self.succeed("train", *SMALL[:-1], "1", *MLP[len(SMALL):], "--checkpoint", "saved")
        shown, _ = self.mixed("--precision", "mixed_bf16", "--checkpoint", "saved")
        self.assertIn("--precision mixed_bf16 (was not given)", shown)
        self.assertIn("epoch 2/2", shown)

    @only_in_the_release
    def test_checkpoints_in_16_bits(self):
        whole, _ = self.mixed("--precision", "mixed_bf16", "--replicas", "2")
        self.mixed("--precision", "mixed_bf16", "--epochs", "1", "--replicas", "2", "--checkpoint", "half")
        rest, _ = self.mixed("--precision", "mixed_bf16", "--replicas", "2", "--checkpoint", "half")
        self.assertEqual(rest.splitlines()[-1], whole.splitlines()[-1])

    def test_devices_and_kernels_by_the_environment(self):
        start, *_, end = self.events("train", *MLP, env={"CHOIR_DEVICES": "CPU:1,/cpu:0",
                                                         "CHOIR_KERNELS": "plain"})
        self.assertEqual(start["replicas"], 2)
        self.assertEqual([d["name"] for d in start["devices"]], ["cpu:1", "cpu:0"])
        usual = self.events("train", *MLP, "--replicas", "2")[-1]
        self.assertAlmostEqual(end["loss"], usual["loss"], delta=1e-3)


main()

"""The benchmarks run and say what they promise; how fast is no matter here."""

import json

from command import COMMAND, Case, main, only_in_the_release, some_of


class Bench(Case):
    def test_train(self):
        for replicas in ("1", "2"):
            (line,) = self.events("bench", "train", "--case", "mlp128", "--replicas", replicas,
                                  "--seconds", "0.2")
            self.assertRegex(line["peer"], r"^choir-\d+\.\d+\.\d+$")
            self.assertEqual((line["strategy"], line["case"], line["replicas"]),
                             ("mirrored", "mlp128", int(replicas)))
            self.assertGreater(line["step_ms_median"], 0)
            self.assertLessEqual(line["step_ms_min"], line["step_ms_median"])
            self.assertAlmostEqual(line["examples_per_s"], 128e3 / line["step_ms_median"], delta=1)
            self.assertGreater(line["rss_mb"], 1)
            self.assertTrue(0 <= line["loss"] < 3)
            # 669,706 weights of which and of whose gradients and velocities 4 + devices numbers are
            # moved, beside 4,136 for each example.
            devices = line["devices"]
            self.assertAlmostEqual(line["step_mflop"], 410.779648, places=6)
            self.assertAlmostEqual(line["step_mb_moved"], 4e-6 * (669706 * (4 + devices) + 128 * 4136),
                                   places=6)
            if line["peak_gflops"] > 0:
                limit = line["step_mflop"] / line["peak_gflops"] + line["step_mb_moved"] / line["copy_gb_per_s"]
                self.assertAlmostEqual(line["limit_ms"], limit / devices, delta=1e-3 * line["limit_ms"])
                self.assertAlmostEqual(line["share_of_limit"],
                                       line["limit_ms"] / line["step_ms_median"], places=6)

    def test_train_in_16_bits(self):
        for _ in range(50):  # the loss is that of as many steps as the time was long
            wide, line = (self.events("bench", "train", "--precision", precision, "--seconds", "0.001")[0]
                          for precision in ("f32", "mixed_bf16"))
            if wide["steps"] == line["steps"]:
                break
        self.assertEqual(wide["steps"], line["steps"])
        self.assertEqual((wide["precision"], line["precision"]), ("f32", "mixed_bf16"))
        # The numbers between products have half the bytes.
        self.assertAlmostEqual(line["step_mb_moved"], wide["step_mb_moved"] - 2e-6 * 128 * 4136, places=6)
        self.assertNotEqual(line["loss"], wide["loss"])
        self.assertAlmostEqual(line["loss"], wide["loss"], delta=0.1)

    @only_in_the_release
    def test_closures(self):
        said = self.succeed("run", "-n", "4", "--servers", "1", "--", COMMAND, "bench", "closures", "--seconds", "0.1")
        lines = {int(line[1]): json.loads(line[4:]) for line in said.splitlines() if line[4:5] == "{"}
        self.assertEqual(sorted(lines), [0, 1, 2, 3], said)
        self.assertEqual([lines[i]["task"] for i in (1, 2, 3)], ["ps", "worker", "worker"])
        self.assertEqual((lines[0]["case"], lines[0]["workers"]), ("null", 2))
        self.assertGreater(lines[0]["steps_per_s"], 0)
        for line in lines.values():  # without a model
            self.assertTrue(1 < line["rss_mb"] < 40, line)

    @only_in_the_release
    def test_closures_of_threads(self):
        (line,) = self.events("bench", "closures", "--threads", "--case", "mlp128", "--workers", "3", "--seconds", "0.1")
        self.assertEqual((line["case"], line["workers"]), ("mlp128", 3))
        for name in ("steps_per_s", "steps_per_s_of_one", "ratio"):
            self.assertGreater(line[name], 0)
        done = self.start("bench", "closures", "--threads")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--threads: case null with 2 workers", done.stderr)

    def test_save(self):
        (line,) = self.events("bench", "train", "--seconds", "0.01", "--save", "saves")
        self.assertEqual(line["workers"], 1)
        self.assertEqual(line["save_bytes"], 669706 * 2 * 4)  # weights and their velocities
        for name in ("save_call_ms", "copy_ms", "step_after_save_ms"):
            self.assertGreater(line[name], 0)
        self.assertEqual(len(list((self.folder / "saves").glob("step-*"))), 1)

    @only_in_the_release
    def test_models(self):
        # Multiplications and additions of an example: of a product for its result and for two
        # gradients, but for that of an image; a head of attention sees half of a square of places.
        tokens, places = 128, 128 * 129 // 2
        gpt = 6 * tokens * (4 * 12 * 128 * 128 + 128 * 256) + 4 * 3 * 2 * 2 * places * 128
        cnn = 4 * 26 * 26 * 9 * 32 + 6 * (24 * 24 * 9 * 32 * 64 + 12 * 12 * 64 * 128 + 128 * 10)
        def stage(side, width): # the first of three halves the image, and a 1x1 goes past its block
            halved = (9 + 1) * width // 2 * width if width > 16 else 9 * width * width
            return side * side * (5 * 9 * width * width + halved)
        resnet = 4 * 32 * 32 * 9 * 3 * 16 + 6 * (stage(32, 16) + stage(16, 32) + stage(8, 64) + 64 * 10)
        onednn = self.events("doctor")[0]["onednn"] == "yes"
        for case, batch, operations, most in (("gpt128", 16, gpt, 6.5), ("cnn", 128, cnn, 4),
                                              ("resnet20", 128, resnet, 4)):
            (line,) = self.events("bench", "train", "--case", case, "--seconds", "0.01")
            self.assertEqual((line["case"], line["steps"]), (case, 8))
            self.assertAlmostEqual(line["step_mflop"], batch * operations / 1e6, places=5, msg=case)
            # Filters are brought into oneDNN's layout in each call, matrices never.
            self.assertEqual(line["reorders"] > 0, onednn and case != "gpt128", case)
            self.assertAlmostEqual(line["examples_per_s"], 1e3 * batch / line["step_ms_median"], delta=1)
            self.assertTrue(0 <= line["loss"] < most)

    def test_kernels(self):
        peak, *lines = self.events("bench", "kernels", "--seconds", "0.001")
        self.assertGreaterEqual(peak["peak_gflops"], 0)
        rows = {(line["operation"], line["shape"], line["pass"]): line for line in lines}
        self.assertEqual(len(rows), len(lines))
        operations = [line for line in lines if line["pass"] != "update"]
        self.assertEqual([line["pass"] for line in operations], ["forward", "backward"] * (len(operations) // 2))
        self.assertEqual([line["operation"] for line in lines if line["pass"] == "update"],
                         ["sgd", "momentum", "adagrad", "lion", "rmsprop", "nadam", "adam", "adamw"])
        self.assertGreaterEqual({line["operation"] for line in operations}, {
            "matmul", "conv2d", "attention", "lstm", "gru", "layer_norm", "rms_norm", "batch_norm",
            "embedding", "dropout", "average_pool2d", "max_pool2d", "gelu", "gelu_tanh"})
        for line in lines:
            seconds = line["us_median"] / 1e6 # the backward pass is a difference of medians, of few calls here
            self.assertTrue(seconds > 0 or line["pass"] == "backward", line)
            if seconds == 0:
                continue
            self.assertGreater(line["share_of_limit"] * seconds, 0)
            self.assertAlmostEqual(line["gb_per_s"] * seconds, line["bytes"] / 1e9, places=9)
            products = line["operation"] in ("matmul", "conv2d", "attention", "lstm", "gru")
            self.assertEqual(line["gflops"] * seconds > 0, products)
        for forward, backward in zip(operations[::2], operations[1::2]): # two gradients of a product
            if backward["us_median"] != 0:
                self.assertAlmostEqual(backward["gflops"] * backward["us_median"],
                                       2 * forward["gflops"] * forward["us_median"], delta=1e-3)
        # Numbers of [1024, 512], read and written: of a sum, both gradients are the result's own.
        n = 4 * 1024 * 512
        for operation, there, back in (("add", 3 * n, n), ("relu", 2 * n, 3 * n), ("dropout", 2 * n, 2 * n),
                                       ("bias_add", 2 * n + 2048, n + 2048)):
            self.assertEqual([rows[operation, "[1024, 512]", way]["bytes"] for way in ("forward", "backward")],
                             [there, back], operation)
        for operation, numbers in (("sgd", 3), ("momentum", 5), ("adam", 7)):
            self.assertEqual(rows[operation, "[1024, 1024]", "update"]["bytes"], numbers * 4 * 1024 * 1024)
        few = self.events("bench", "kernels", "--seconds", "0.001", "--only", "softmax")
        self.assertEqual([line["operation"] for line in few[1:]], ["log_softmax"] * 2)

    def test_all_reduce(self):
        for more in some_of(("--replicas", "3", "--devices", "cpu:0,cpu:1"), ("--operations", "reduce_to_one_device"),
                            (), slow=1):
            before, *sums, after = self.events("bench", "all-reduce", "--most", "70000", "--rounds", "9", *more)
            self.assertGreater(before["read_gb_per_s"], 0)
            self.assertGreater(after["read_gb_per_s"], 0)
            self.assertEqual([line["bytes"] for line in sums], [4096, 16384, 65536])
            for line in sums:
                self.assertEqual(line["rounds"], 9)
                self.assertAlmostEqual(line["gb_per_s"], line["bytes"] / line["us_median"] / 1e3,
                                       delta=1e-3 * line["gb_per_s"])

    def test_updates_of_variables(self):
        for more in some_of(("--wire", "bf16", "--replicas", "3", "--devices", "cpu:0,cpu:1"),
                            ("--wire", "f16", "--operations", "ring"), ("--wire", "f32")):
            _, *sums, _ = self.events("bench", "all-reduce", "--most", "20000", "--rounds", "9", *more)
            self.assertEqual([(line["wire"], line["bytes"]) for line in sums], [(more[1], 4096), (more[1], 16384)])
            for line in sums:
                self.assertGreater(line["us_median"], 0)
        self.fail_with(2, ("--wire", "f64", "bf16"), "bench", "all-reduce", "--wire", "f64")
        self.fail_with(2, ("--rounds 0", "2001"), "bench", "all-reduce", "--rounds", "0")

    @only_in_the_release
    def test_all_reduce_of_shapes(self):
        for more in ((), ("--replicas", "3", "--devices", "cpu:0,cpu:1")):
            _, sums, _ = self.events("bench", "all-reduce", "--shapes", "resnet50", "--rounds", "2", *more)
            self.assertEqual((sums["shapes"], sums["tensors"], len(sums["elements"])), ("resnet50", 161, 161))
            self.assertEqual(sums["rounds"], 2)
            self.assertEqual(sum(sums["elements"]), 25557032)
            self.assertEqual(sums["bytes"], 4 * 25557032)
            self.assertGreater(sums["ms_median"], 0)
        _, sums, _ = self.events("bench", "all-reduce", "--shapes", "resnet50", "--wire", "bf16", "--rounds", "1")
        self.assertEqual((sums["wire"], sums["tensors"]), ("bf16", 161))

    @only_in_the_release
    def test_run(self):
        for replicas in ("1", "2", "3"):
            (line,) = self.events("bench", "run", "--replicas", replicas)
            self.assertGreater(line["run_us_median"], 0)
            self.assertGreater(line["merge_call_us_median"], 0)


main()

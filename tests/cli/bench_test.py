"""The benchmarks run and say what they promise; how fast is no matter here."""

from command import Case, main, not_in_every_suite, only_in_the_release


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
            self.assertEqual(line["reorders"], 0)
            # 410.8 million operations in products; 669,706 weights of which and of whose gradients
            # and velocities 4 + devices numbers are moved, beside 4,136 for each example.
            if line["peak_gflops"] > 0:
                devices = line["devices"]
                moved = 4 * (669706 * (4 + devices) + 128 * 4136)
                limit = 410.779648e6 / line["peak_gflops"] + moved / line["copy_gb_per_s"]
                self.assertAlmostEqual(line["limit_ms"], limit / 1e6 / devices,
                                       delta=1e-3 * line["limit_ms"])
                self.assertAlmostEqual(line["share_of_limit"],
                                       line["limit_ms"] / line["step_ms_median"], places=6)

    def test_save(self):
        (line,) = self.events("bench", "train", "--seconds", "0.01", "--save", "saves")
        self.assertEqual(line["workers"], 1)
        self.assertEqual(line["save_bytes"], 669706 * 2 * 4)  # weights and their velocities
        for name in ("save_call_ms", "copy_ms", "step_behind_save_ms"):
            self.assertGreater(line[name], 0)
        self.assertEqual(len(list((self.folder / "saves").glob("step-*"))), 1)

    @only_in_the_release
    def test_models(self):
        for case, batch, most in (("gpt128", 16, 6.5), ("resnet20", 128, 4)):
            (line,) = self.events("bench", "train", "--case", case, "--seconds", "0.01")
            self.assertEqual((line["case"], line["steps"]), (case, 8))
            self.assertAlmostEqual(line["examples_per_s"], 1e3 * batch / line["step_ms_median"], delta=1)
            self.assertTrue(0 <= line["loss"] < most)

    @not_in_every_suite
    def test_kernels(self):
        peak, *lines = self.events("bench", "kernels", "--seconds", "0.001")
        self.assertGreaterEqual(peak["peak_gflops"], 0)
        ways = [(line["operation"], line["shape"], line["way"]) for line in lines]
        self.assertEqual(len(set(ways)), len(ways))
        self.assertEqual([way for _, _, way in ways], ["there", "back"] * (len(ways) // 2))
        for line in lines[::2]:
            self.assertGreater(line["us_median"], 0)
            self.assertGreater(line["gb_per_s"], 0)
            self.assertGreater(line["share_of_limit"], 0)
            products = line["operation"] in ("matmul", "conv2d", "attention")
            self.assertEqual(line["gflops"] > 0, products)
        few = self.events("bench", "kernels", "--seconds", "0.001", "--only", "softmax")
        self.assertEqual([line["operation"] for line in few[1:]], ["log_softmax"] * 2)

    @not_in_every_suite
    def test_all_reduce(self):
        for more in ((), ("--replicas", "3", "--devices", "cpu:0,cpu:1"),
                     ("--operations", "reduce_to_one_device")):
            before, *sums, after = self.events("bench", "all-reduce", "--most", "70000", *more)
            self.assertGreater(before["read_gb_per_s"], 0)
            self.assertGreater(after["read_gb_per_s"], 0)
            self.assertEqual([line["bytes"] for line in sums], [4096, 16384, 65536])
            for line in sums:
                self.assertAlmostEqual(line["gb_per_s"], line["bytes"] / line["us_median"] / 1e3,
                                       delta=1e-3 * line["gb_per_s"])

    @only_in_the_release
    def test_all_reduce_of_shapes(self):
        for more in ((), ("--replicas", "3", "--devices", "cpu:0,cpu:1")):
            _, sums, _ = self.events("bench", "all-reduce", "--shapes", "resnet50", *more)
            self.assertEqual((sums["shapes"], sums["tensors"], len(sums["elements"])), ("resnet50", 161, 161))
            self.assertEqual(sum(sums["elements"]), 25557032)
            self.assertEqual(sums["bytes"], 4 * 25557032)
            self.assertGreater(sums["ms_median"], 0)

    @only_in_the_release
    def test_run(self):
        for replicas in ("1", "2", "3"):
            (line,) = self.events("bench", "run", "--replicas", replicas)
            self.assertGreater(line["run_us_median"], 0)
            self.assertGreater(line["merge_call_us_median"], 0)


main()

"""The benchmarks run and say what they promise; how fast is no matter here."""

from command import Case, main


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

    def test_run(self):
        for replicas in ("1", "2", "3"):
            (line,) = self.events("bench", "run", "--replicas", replicas)
            self.assertGreater(line["run_us_median"], 0)
            self.assertGreater(line["merge_call_us_median"], 0)


main()

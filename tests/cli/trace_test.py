"""--trace, --log and --breakdown: what they write is what other tools read, and adds up."""

import importlib.util
import json

from command import SMALL, SOURCE, Case, main, threads

MLP = (*SMALL, "--model", "mlp", "--widths", "24", "--replicas", "2", "--devices", "cpu:0,cpu:1")
CATEGORIES = ("compute", "wait", "reduce", "update", "input", "checkpoint", "other")


class Trace(Case):
    def adds_up(self, event, replicas):
        self.assertEqual(event["event"], "breakdown")
        tracks = event["tracks"]
        self.assertEqual([t["track"] for t in tracks],
                         ["program"] + [f"replica {i}" for i in range(replicas)])
        for track in tracks:
            for name in CATEGORIES:
                self.assertGreaterEqual(track[name], 0)
            self.assertGreaterEqual(track["no_span"], -1e-9)
            if track["track"] != "program":
                whole = sum(track[name] for name in (*CATEGORIES, "no_span"))
                self.assertAlmostEqual(whole, event["seconds"], delta=1e-6 * event["seconds"])
                self.assertGreater(track["compute"], 0)
                self.assertGreater(track["update"], 0)
        # The program's thread: its own spans, and those of the replica that it carries.
        thread = sum(tracks[0][name] + tracks[1][name] for name in CATEGORIES) + tracks[0]["no_span"]
        self.assertAlmostEqual(thread, event["seconds"], delta=1e-6 * event["seconds"])
        self.assertAlmostEqual(event["input_share"], tracks[0]["input"] / event["seconds"])
        self.assertTrue(0.5 < event["explained"] <= 1)
        operations = event["operations"]
        self.assertEqual(operations, sorted(operations, key=lambda o: -o["seconds"]))
        self.assertIn("matmul", [o["operation"] for o in operations])
        self.assertAlmostEqual(sum(o["seconds"] for o in operations),
                               sum(t["compute"] for t in tracks[1:]), delta=1e-6 * event["seconds"])

    @threads
    def test_trace(self):
        *_, traced, end = self.events("train", *MLP, "--trace", "t.json", "--save", "m.safetensors")
        self.assertEqual(end["event"], "end")
        self.adds_up(traced, 2)
        # Two epochs of 13 training steps and 4 of tests.
        self.assertEqual(traced["steps"], 2 * (13 + 4))
        self.assertGreater(traced["input_share"], 0)
        trace = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        names = {e["tid"]: e["args"]["name"] for e in trace if e["name"] == "thread_name"}
        self.assertEqual([names[tid] for tid in sorted(names)],
                         ["program", "replica 0", "replica 1", "communication", "choir-input"])
        found = {(names[e["tid"]], e["cat"], e["name"]) for e in trace if e["ph"] == "X"}
        for expected in (("program", "input", "next batch"), ("program", "checkpoint", "save"),
                         ("replica 1", "compute", "matmul"), ("replica 1", "reduce", "hidden1/kernel"),
                         ("communication", "reduce", "hidden1/kernel")):
            self.assertIn(expected, found)
        runs = [e for e in trace if e["ph"] == "X" and e["name"] == "run"]
        self.assertEqual(len(runs), traced["steps"])

    @threads
    def test_the_weights_are_the_same(self):
        plain = self.events("train", *MLP)[-1]["weights"]
        traced = self.events("train", *MLP, "--trace", "t.json", "--log", "log")[-1]["weights"]
        self.assertEqual(plain, traced)

    def test_table(self):
        out = self.succeed("train", *MLP, "--trace", "t.json")
        self.assertRegex(out, r"34 steps of [\d.]+ ms.*\n +compute +wait ")
        for row in ("program", "replica 0", "replica 1"):
            self.assertRegex(out, rf"(?m)^{row} +ms( +[\d.]+)+\n +%( +[\d.]+)+$")

    def test_log(self):
        spec = importlib.util.spec_from_file_location("events", f"{SOURCE}/tests/trace/tensorboard_reader.py")
        events = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(events)
        epochs = [e for e in self.events("train", *MLP, "--rate", "0.002", "--log", "log")
                  if e["event"] == "epoch"]
        found = {}
        for tag, step, value in events.own(self.folder / "log"):
            found.setdefault(tag, []).append((step, value))
        self.assertEqual(set(found), {"train/loss", "train/rate", "train/examples_per_s", "epoch/loss",
                                      "epoch/accuracy", "test/loss", "test/accuracy"})
        self.assertEqual([step for step, _ in found["train/loss"]], [10, 20])
        for (step, value), epoch in zip(found["epoch/loss"], epochs):
            self.assertEqual(step, epoch["step"])
            self.assertAlmostEqual(value, epoch["loss"], delta=1e-6)
        # A row is of one step: one of ten batches of one size has the loss of the tenth, as a
        # training of ten times as many epochs has it, whose epochs are of one step.
        same = ("--train-examples", "320", "--batch", "320", "--data", "digits:400", "--seed", "3",
                "--model", "mlp", "--widths", "8", "--replicas", "2", "--rate", "0.01")
        means = [e["loss"] for e in self.events("train", *same, "--epochs", "20", "--log", "one")
                 if e["event"] == "epoch"]
        losses = [value for tag, _, value in events.own(self.folder / "one") if tag == "train/loss"]
        self.assertEqual((len(losses), len(means)), (2, 20))
        for loss, mean in zip(losses, means[9::10]):
            self.assertAlmostEqual(loss, mean, delta=1e-6)
        # Two steps an epoch: the logged one is the second, and the epoch's mean is of both.
        half = (*same[:3], "160", *same[4:])
        means = [e["loss"] for e in self.events("train", *half, "--epochs", "5", "--log", "two")
                 if e["event"] == "epoch"]
        losses = [value for tag, _, value in events.own(self.folder / "two") if tag == "train/loss"]
        self.assertEqual(len(losses), 1)
        self.assertNotAlmostEqual(losses[0], means[-1], delta=1e-4)
        for (_, value), epoch in zip(found["test/accuracy"], epochs):
            self.assertAlmostEqual(value, epoch["test_accuracy"], delta=1e-6)
        for _, rate in found["train/rate"]:
            self.assertAlmostEqual(rate, 0.002, delta=1e-9)
        self.assertFalse((self.folder / "t.json").exists())

    def test_bad_places(self):
        self.fail_with(1, "no/t.json: open its directory: No such file or directory", "train", *MLP,
                       "--trace", "no/t.json")
        (self.folder / "file").write_text("")
        self.fail_with(1, "file: make the directory: File exists", "train", *MLP, "--log", "file")
        # A training that fails says its own failure, and leaves its trace.
        self.fail_with(1, "nan", "train", *MLP, "--optimizer", "sgd", "--rate", "1e30", "--trace",
                       "t.json")
        json.loads((self.folder / "t.json").read_text())

    def test_bench(self):
        line, traced, *distance = self.events("bench", "train", "--case", "mlp128", "--replicas", "2", "--devices",
                                   "cpu:0,cpu:1", "--seconds", "0.1", "--breakdown")
        self.assertEqual(line["case"], "mlp128")
        self.adds_up(traced, 2)
        self.assertGreater(traced["steps"], 0)
        self.assertEqual(traced["input_share"], 0)
        # What the limit is made of adds up to it, and what the step is made of to the step.
        if line["peak_gflops"] > 0:
            (distance,) = distance
            kinds = {kind["kind"]: kind for kind in distance["kinds"]}
            self.assertEqual(distance["event"], "distance")
            self.assertAlmostEqual(distance["limit_ms"], line["limit_ms"], places=9)
            self.assertAlmostEqual(distance["step_ms"], 1e3 * traced["seconds"] / traced["steps"], places=6)
            for key, whole in (("ms", "step_ms"), ("limit_ms", "limit_ms")):
                self.assertAlmostEqual(sum(kind[key] for kind in kinds.values()), distance[whole], places=6)
            for name in ("products", "other operations", "update", "calls"):
                self.assertGreater(kinds[name]["ms"], 0)
            for name in ("convolutions", "attention"):
                self.assertEqual((kinds[name]["ms"], kinds[name]["limit_ms"]), (0, 0))


main()

"""What a training of a table says: numbers of the epoch that it keeps, of each target and of the most
frequent class; hints; and a resume, which needs the table of the checkpoint."""

import json
from random import Random

from command import COMMAND, Case, main, only_in_the_release

MLP = ("train", "--model", "mlp", "--widths", "8")


class TableTraining(Case):
    def table(self, name, header, rows):
        (self.folder / name).write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
        return "csv:" + name

    def noisy(self, name="noisy.csv", rows=120):
        """A small target with a relation to the input, and one in large units without any."""
        random = Random(3)
        x = [random.gauss(0, 1) for _ in range(rows)]
        return self.table(name, "x,noise,sig", [(f"{v:.5f}", f"{random.gauss(0, 1e4):.3f}",
                                                 f"{1e-3 * v + random.gauss(0, 2e-4):.7f}") for v in x])

    def test_patience_ends_with_the_numbers_of_the_epoch_that_it_keeps(self):
        data = self.noisy()
        train = (*MLP, "--data", data, "--target", "noise", "--epochs", "30", "--batch", "8", "--rate", "0.03",
                 "--patience", "2")
        keys = ("loss", "test_mean_squared_error", "test_mean_absolute_error", "test_r2")
        _, *epochs, end = self.events(*train, "--run", "run")
        best = min(epochs, key=lambda e: e["test_mean_squared_error"])
        self.assertLess(best["epoch"], len(epochs))
        self.assertNotEqual(best["test_r2"], epochs[-1]["test_r2"])
        self.assertEqual([end[key] for key in keys], [best[key] for key in keys])
        said = json.loads((self.folder / "run/run.jsonl").read_text().splitlines()[-1]) # for choir report
        self.assertEqual([said[key] for key in keys], [best[key] for key in keys])
        self.succeed("report", "run")
        page = (self.folder / "run/report.html").read_text()
        for name, key in (("Training loss", "loss"), ("Test R2", "test_r2")):
            self.assertIn(f"<span>{name}</span><b>{best[key]:.3g}</b>", page)
        # Also if a resume has nothing left to train.
        self.events(*train, "--checkpoint", "c")
        self.assertEqual({key: self.events(*train, "--checkpoint", "c")[-1][key] for key in keys},
                         {key: best[key] for key in keys})
        kind = self.table("kind.csv", "x,kind", [(i % 17, "ab"[i % 3 > 1]) for i in range(90)])
        _, *epochs, end = self.events(*MLP, "--data", kind, "--epochs", "30", "--patience", "2", "--rate", "0.1",
                                      "--batch", "8")
        best = max(epochs, key=lambda e: e["test_accuracy"])
        for key in ("loss", "train_accuracy", "test_loss", "test_accuracy"):
            self.assertEqual(end[key], best[key], key)

    def test_several_targets(self):
        """Each has its numbers, and none decides alone when the training stops."""
        data = self.noisy()
        train = (*MLP, "--data", data, "--epochs", "12", "--batch", "8", "--rate", "0.01")
        *_, end = self.events(*train, "--target", "noise,sig", "--patience", "3", "--checkpoint", "c")
        noise, sig = end["targets"]
        self.assertEqual((noise["name"], sig["name"]), ("noise", "sig"))
        self.assertGreater(sig["test_r2"], 0.8)
        self.assertLess(noise["test_r2"], 0.3)
        self.assertLess(sig["test_mean_absolute_error"], 1e-3)
        self.assertAlmostEqual((noise["test_mean_absolute_error"] + sig["test_mean_absolute_error"]) / 2,
                               end["test_mean_absolute_error"], delta=1)
        text = self.succeed(*train, "--target", "noise,sig", "--patience", "3", "--checkpoint", "c")
        self.assertRegex(text, r"examples\n  noise: MAE [\d.e+]+, R2 -?0\.\d{4}\n  sig: MAE 0\.000\d+, R2 0\.\d{4}\n")
        self.assertIn(f"{sig['test_r2']:.4f}", text)
        self.assertNotIn("targets", self.events(*train, "--target", "sig")[-1])

    def test_a_resume_needs_the_same_table(self):
        rows = [(i % 5, ("up", "down", "left")[i % 3], "pqr"[(i + i // 7) % 3]) for i in range(60)]
        train = (*MLP, "--data", "csv:t.csv", "--target", "kind", "--checkpoint", "c", "--epochs")
        self.table("t.csv", "x,way,kind", rows)
        self.succeed(*train, "1")
        def change(facts, header, changed, *more):
            self.table("t.csv", header, changed)
            self.fail_with(1, ("--checkpoint c", *facts), *train, "2", *more)
        change(("class 1", '"o"', '"p"'), "x,way,kind", [(x, w, k.replace("p", "o")) for x, w, k in rows])
        change(("class 4", '"s"'), "x,way,kind", rows[:-1] + [(1, "up", "s")])
        change(('category 1 of column "way"', '"below"', '"down"'), "x,way,kind",
               [(x, w.replace("down", "below"), k) for x, w, k in rows])
        change(('kind of column "way"', '"numbers"', '"3 categories"'), "x,way,kind",
               [(x, len(w), k) for x, w, k in rows])
        change(("input column 1", '"y"', '"x"'), "y,way,kind", rows)
        change(('mean of "x"', '"7.02083"', '"2.02083"'), "x,way,kind", [(x + 5, w, k) for x, w, k in rows])
        change(("57 examples", "60"), "x,way,kind", rows[3:])
        self.table("t.csv", "x,way,kind", rows)
        self.fail_with(1, "other stages, seeds or columns", *train, "2", "--seed", "2")
        change(("the target", '"way"', '"kind"'), "x,way,kind", rows, "--target", "way")
        numbers = [(i % 5, i % 7) for i in range(60)]
        self.table("n.csv", "x,n", numbers)
        other = (*MLP, "--data", "csv:n.csv", "--checkpoint", "d", "--epochs")
        self.succeed(*other, "1")
        self.fail_with(1, ("the task", '"regression"'), *other, "2", "--task", "regression")
        self.table("t.csv", "x,way,kind", rows)
        self.assertIn("resuming from c/", self.succeed(*train, "2"))
        # If the newest one is damaged, the one before it is compared.
        newest = max((self.folder / "c").glob("*/weights.safetensors"), key=lambda path: path.stat().st_mtime_ns)
        newest.write_bytes(newest.read_bytes()[:99])
        self.table("t.csv", "x,way,kind", [(x, w, k.replace("p", "o")) for x, w, k in rows])
        self.fail_with(1, ("--checkpoint c", "class 1", '"o"', '"p"'), *train, "3")

    def test_hints(self):
        """Each only where it applies."""
        kinds = self.table("kind.csv", "x,kind", [(i % 10, "yn"[i % 10 == 0]) for i in range(200)] + [("", "y")])
        text = self.succeed(*MLP, "--data", kinds, "--epochs", "5")
        for more in ((), ("--class-weights", "balanced")):
            self.assertIn("with a missing value, skipped: 1\n", self.succeed(*MLP, "--data", kinds, *more))
        self.assertRegex(text, r"hint: only 10 steps were made, and the loss still falls; try --epochs 50\n")
        self.assertNotIn("hint", self.succeed(*MLP, "--data", kinds, "--epochs", "30", "--batch", "16"))
        for more, epochs in (((), 20), (("--batch", "64"), 14), (("--batch", "16"), 5)): # at least 40 steps
            *_, end = self.events(*MLP, "--data", kinds, *more)
            self.assertEqual(end["epochs"], epochs)
        self.assertNotIn("hint", self.succeed(*MLP, "--data", kinds))
        part = self.events(*MLP, "--data", kinds, "--run", "run")[-1]["test_majority_class"]
        self.assertGreater(part, 0.8)
        self.assertIn(f" on 40 examples; the majority class has {100 * part:.2f} %\n", text)
        self.succeed("report", "run")
        page = (self.folder / "run/report.html").read_text()
        self.assertIn(f"{100 * part:.2f} %", page)
        self.assertIn("<th>recall</th>", page)
        self.assertIn("<td>100.0 %</td>", page)

    def test_two_classes(self):
        """They have the area under the curve, precision and recall, also those of the epoch that is kept."""
        kinds = self.table("kind.csv", "x,z,kind", [(i % 10, i % 7, "yn"[i % 10 < 2]) for i in range(400)])
        train = (*MLP, "--data", kinds, "--epochs", "40", "--batch", "16", "--rate", "0.02")
        *_, epoch, end = self.events(*train, "--run", "run")
        for key in ("test_auc", "test_precision", "test_recall"):
            self.assertGreater(end[key], 0.99)
        self.assertIn("  AUC 1.0000; of class y: precision 1.0000, recall 1.0000\n", self.succeed(*train))
        self.succeed("report", "run")
        self.assertIn("<span>Test AUC</span><b>1</b>", (self.folder / "run/report.html").read_text())
        noise = self.table("noise.csv", "x,kind", [(Random(i).random(), i * i % 3 % 2) for i in range(300)])
        *_, end = self.events(*MLP, "--data", noise, "--epochs", "3", "--patience", "1")
        self.assertLess(abs(end["test_auc"] - 0.5), 0.25)
        self.assertEqual((end["test_recall"] == 1, end["test_accuracy"]), (True, end["test_precision"]))
        three = self.table("three.csv", "x,kind", [(i % 10, i % 3) for i in range(100)])
        self.assertNotIn("test_auc", self.events(*MLP, "--data", three, "--epochs", "1")[-1])

    def test_a_training_begins_with_a_linear_model(self):
        """A tiny rate leaves it as it is. Correlated inputs, a text, one and several outputs, any number of layers."""
        random = Random(5)
        rows = []
        for _ in range(300):
            x, w = random.gauss(5, 2), random.choice("pq")
            z = x + random.gauss(0, 0.5)
            y = 8 * (x - z) + 3 * (w == "p") + random.gauss(0, 0.3)
            rows.append((f"{x:.4f}", f"{z:.4f}", w, f"{y:.4f}", f"{-y + x:.4f}", "lmh"[(y > 0) + (y > 3)], int(y > 1)))
        data = self.table("t.csv", "x,z,w,y,v,level,up", rows)
        self.table("n.csv", "x,z,w,y", [row[:4] for row in rows])
        self.table("v.csv", "x,z,w,y,v", [row[:5] for row in rows])
        self.table("c.csv", "x,z,w,level", [(*row[:3], row[5]) for row in rows])
        self.table("b.csv", "x,z,w,up", [(*row[:3], row[6]) for row in rows])
        def end(name, *more):
            return self.events("train", "--data", name, "--epochs", "1", "--rate", "1e-9", *more)[-1]
        self.assertGreater(end("n.csv")["test_r2"], 0.97)
        self.assertLess(end("n.csv", "--start", "random")["test_r2"], 0.6)
        self.assertGreater(end("n.csv", "--widths", "8")["test_r2"], 0.97)
        self.assertGreater(end("n.csv", "--widths", "16,12,9")["test_r2"], 0.97)
        self.assertGreater(end("v.csv", "--target", "y,v")["test_r2"], 0.97)
        self.assertGreater(end("c.csv")["test_accuracy"], 0.85)
        self.assertGreater(end("b.csv")["test_auc"], 0.97)
        self.assertLess(end("b.csv", "--start", "random")["test_auc"], 0.9)
        balanced = end("b.csv", "--class-weights", "balanced")
        self.assertGreater(balanced["test_recall"], end("b.csv")["test_recall"] - 1e-9)
        same = {end("c.csv", "--replicas", "2", "--devices", devices)["weights"] for devices in ("cpu:0", "cpu:0,cpu:1")}
        self.assertEqual(len(same), 1)
        narrow = [end("c.csv", "--widths", "11", "--start", start)["weights"] for start in ("linear", "random")]
        self.assertEqual(*narrow) # 11 units are too few for 3 classes

    def test_a_table_with_more_columns_than_rows(self):
        """The linear model does not fit all the noise of columns that share a few causes."""
        random, r2 = Random(6), []
        for _ in range(3):
            loads = [[random.gauss(0, 1) for _ in range(90)] for _ in range(3)]
            rows = []
            for _ in range(100):
                cause = [random.gauss(0, 1) for _ in loads]
                rows.append([*(f"{sum(c * l[k] for c, l in zip(cause, loads)) + random.gauss(0, 2):.3f}" for k in range(90)),
                             f"{cause[0] + random.gauss(0, 0.5):.4f}"])
            data = self.table("t.csv", ",".join([*(f"x{k}" for k in range(90)), "y"]), rows)
            r2.append(self.events("train", "--data", data, "--epochs", "1", "--rate", "1e-9")[-1]["test_r2"])
        self.assertGreater(sum(r2) / 3, 0)

    def test_the_linear_start_of_a_large_table(self):
        """More than 4 million numbers: of a wide table all rows count, unless they are more than 16 million."""
        random, starts = Random(8), []
        for columns, classes, width in ((1000, 10, 40), (1000, 36, 144)):
            rows = [[*random.choices("0123456789", k=columns), f"c{i % classes}"] for i in range(600)]
            data = self.table("t.csv", ",".join([*(f"x{k}" for k in range(columns)), "y"]), rows)
            starts.append(len({self.events("train", "--data", data, "--epochs", "1", "--rate", "1e-9", "--widths", str(width),
                                           "--start", start)[-1]["weights"] for start in ("linear", "random")}))
        self.assertEqual(starts, [2, 1])

    @only_in_the_release
    def test_a_job_with_servers(self):
        """Its processes count the classes before they are in the scope of the strategy."""
        data = self.table("t.csv", "x,kind", [(i % 10, "ab"[i % 10 > 3]) for i in range(100)])
        for more in ((), ("--class-weights", "balanced")):
            said = self.succeed("run", "-n", "3", "--servers", "1", "--", COMMAND, "train", "--strategy", "parameter_server",
                                "--data", data, "--widths", "8", "--epochs", "2", *more)
            self.assertIn("the majority class has", said)

    def test_the_schedule_of_a_small_table(self):
        """A cosine of few steps; with a warm-up of more steps than these, the rate stays constant."""
        data = self.noisy()
        train = ("train", "--data", data, "--target", "sig")
        weights = {self.events(*train, *more)[-1]["weights"]
                   for more in ((), ("--epochs", "40", "--schedule", "cosine"))}
        self.assertEqual(len(weights), 1)
        self.assertEqual(self.events(*train, "--warmup", "60")[-1]["epochs"], 40)

    def test_weight_decay(self):
        data = self.noisy()
        train = (*MLP, "--data", data, "--target", "sig", "--epochs", "3", "--optimizer", "adamw")
        def weights(*more):
            return self.events(*train, *more)[-1]["weights"]
        self.assertEqual(weights("--weight-decay", "0.01"), weights())
        self.assertNotEqual(weights("--weight-decay", "0.5"), weights())
        self.fail_with(1, ("--weight-decay 0.5", "sgd", "adamw, lion or lamb"), *train, "--weight-decay", "0.5",
                       "--optimizer", "sgd")


main()

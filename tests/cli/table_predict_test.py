"""Predictions of tables whose labels or values are missing, unknown or not finite."""

import struct

from random import Random

from command import Case, main

MLP = ("train", "--model", "mlp", "--widths", "8", "--rate", "0.01", "--save", "w", "--data")


class TablePredict(Case):
    def table(self, name, header, rows):
        (self.folder / name).write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
        return "csv:" + name

    def kinds(self):
        rows = [(i % 10, "ab"[i % 2], ("low", "high")[i % 10 > 4]) for i in range(100)]
        self.succeed(*MLP, self.table("t.csv", "x,way,kind", rows), "--epochs", "40", "--batch", "10")
        return rows

    def test_labels_are_not_needed(self):
        """A row with a missing or unknown label gets its prediction; others make the accuracy."""
        rows = self.kinds()
        full = self.start("predict", "w", "--data", "csv:t.csv")
        classes = [line.split(",")[1] for line in full.stdout.splitlines()[1:]]
        self.assertEqual(full.stderr, "accuracy 100.00 % on 100 examples\nAUC 1.0000\n")
        changed = [(x, w, ("", "middle", kind)[min(i, 2)]) for i, (x, w, kind) in enumerate(rows)]
        changed[2] = (2, "a", "high") # wrong
        done = self.start("predict", "w", "--data", self.table("p.csv", "x,way,kind", changed))
        lines = [line.split(",") for line in done.stdout.splitlines()[1:]]
        self.assertEqual([line[1] for line in lines], classes)
        self.assertEqual([line[2] for line in lines[:4]], ["", "", "high", "low"])
        self.assertEqual(done.stderr, "accuracy 98.98 % on 98 examples\nAUC 0.9898\n2 of 100 examples have no known label\n")
        first, *_, last = self.events("predict", "w", "--data", "csv:p.csv")
        self.assertNotIn("label", first)
        self.assertEqual((last["examples"], last["known_labels"], round(last["accuracy"], 4)), (100, 98, 0.9898))
        blank = self.start("predict", "w", "--data", self.table("b.csv", "x,way,kind", [(*r[:2], "") for r in rows]))
        self.assertEqual((blank.returncode, blank.stderr),
                         (0, "100 examples\n100 of 100 examples have no known label\n"))

    def test_the_area_under_the_curve(self):
        """That of all pairs of rows, over several replicas."""
        self.kinds()
        rows = [(i % 10, "ab"[i % 2], ("low", "high", "")[i * i % 3 % 2 + (i == 9)]) for i in range(90)]
        *lines, end = self.events("predict", "w", "--data", self.table("p.csv", "x,way,kind", rows), "--probabilities",
                                  "--replicas", "2", "--batch", "32")
        scores = {name: [line["probabilities"][0] for line in lines if line.get("label_name") == name]
                  for name in ("high", "low")}
        pairs = [(low < high) + (low == high) / 2 for high in scores["low"] for low in scores["high"]]
        self.assertGreater(len(pairs), 1700)
        self.assertAlmostEqual(end["auc"], 1 - sum(pairs) / len(pairs), delta=0.02)
        self.assertLess(abs(end["auc"] - 0.5), 0.2)

    def test_the_area_under_the_curve_of_a_rare_class(self):
        """All its probabilities are small, where equal steps of a threshold would not tell rows apart."""
        random = Random(4)
        rows = [(f"{random.gauss(2 * (i % 1000 == 7), 1):.4f}", int(i % 1000 == 7)) for i in range(6000)]
        data = self.table("r.csv", "x,y", rows)
        *_, trained = self.events(*MLP, data, "--task", "classification", "--train-examples", "3000", "--epochs", "1", "--rate", "1e-9")
        *lines, end = self.events("predict", "w", "--data", data, "--probabilities")
        scores = [[line["probabilities"][1] for line in lines if line["label"] == kind] for kind in (0, 1)]
        self.assertLess(sorted(scores[0])[len(scores[0]) // 2], 1e-3)
        pairs = [(low < high) + (low == high) / 2 for low in scores[0] for high in scores[1]]
        area = sum(pairs) / len(pairs)
        self.assertGreater(area, 0.8)
        self.assertAlmostEqual(end["auc"], area, delta=0.004)
        self.assertGreater(trained["test_auc"], 0.7)

    def test_probabilities_of_many_classes(self):
        """Their sum is 1, as exactly as scikit-learn checks it."""
        self.succeed(*MLP, self.table("t.csv", "x,kind", [(i * 7 % 401, f"c{i % 1000}") for i in range(2000)]),
                     "--target", "kind", "--epochs", "1")
        done = self.start("predict", "w", "--data", "csv:t.csv", "--probabilities")
        sums = [sum(map(float, line.split(",")[3:])) for line in done.stdout.splitlines()[1:]]
        self.assertEqual(len(sums), 2000)
        self.assertLess(max(abs(s - 1) for s in sums), 1e-7)

    def test_labels_of_a_regression(self):
        rows = [(i % 10, i % 10 * 2.5 + i % 3 / 8) for i in range(100)]
        self.succeed(*MLP, self.table("t.csv", "x,y", rows), "--epochs", "20", "--batch", "10")
        *known, last = self.events("predict", "w", "--data", "csv:t.csv")
        data = self.table("p.csv", "x,y", [*rows, (3, ""), (4, "much")])
        *lines, end = self.events("predict", "w", "--data", data)
        self.assertEqual([line["numbers"] for line in lines[:100]], [line["numbers"] for line in known])
        self.assertEqual((len(lines), lines[100]["labels"]), (102, [None]))
        self.assertEqual((end["known_labels"], end["mean_squared_error"], end["r2"]),
                         (100, last["mean_squared_error"], last["r2"]))
        done = self.start("predict", "w", "--data", data)
        self.assertRegex(done.stdout.splitlines()[-1], r"^102,[\d.]+,$")
        self.assertRegex(done.stderr, r"R2 0\.\d{4} on 100 examples\n2 of 102 examples have no known label\n$")

    def test_several_numbers(self):
        """R2 is that of the training, and a row without all labels has no part in the errors."""
        rows = [(i % 10, i % 10 * 2.5 + i % 3 / 8, 1000 * (i % 7) + 0.5) for i in range(100)]
        data = self.table("t.csv", "x,y,z", rows)
        train = self.events(*MLP, data, "--target", "y,z", "--train-examples", "99", "--epochs", "20", "--batch", "10")
        self.assertEqual(train[0]["test_examples"], 1)
        *_, whole = self.events("predict", "w", "--data", data)
        *lines, last = self.events("predict", "w", "--data", self.table("p.csv", "x,y,z", [*rows, (3, 9999, "")]))
        keys = ("mean_squared_error", "mean_absolute_error", "r2")
        self.assertEqual((len(lines), last["known_labels"]), (101, 100))
        self.assertEqual([last[key] for key in keys], [whole[key] for key in keys])
        def squares(k, mean):
            return sum((row[k + 1] - (mean if mean is not None else line["numbers"][k])) ** 2
                       for row, line in zip(rows, lines))
        deviations = [squares(k, sum(row[k + 1] for row in rows) / 100) for k in range(2)]
        # Of standardized numbers, where both targets weigh the same.
        r2 = 1 - sum(squares(k, None) / deviations[k] for k in range(2)) / 2
        self.assertAlmostEqual(whole["r2"], r2, 2)
        self.assertNotAlmostEqual(r2, 1 - sum(squares(k, None) for k in range(2)) / sum(deviations), 1)

    def test_numbers_as_labels_of_a_classifier(self):
        """A model of arrays has no names of columns. Labels that are no classes are unknown."""
        def npy(name, kind, shape, data):
            header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
            (self.folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
        npy("x.npy", "<f4", (60, 3), struct.pack("<180f", *(i % 7 for i in range(180))))
        npy("y.npy", "|u1", (60,), bytes(i % 3 for i in range(60)))
        self.succeed(*MLP, "npy:x.npy,y.npy")
        data = self.table("t.csv", "a,b,c,y", [(i, 1, 2, y) for i, y in enumerate(("1.4e-45", 0, 0.5))])
        done = self.start("predict", "w", "--data", data)
        self.assertEqual([line.split(",")[2] for line in done.stdout.splitlines()[1:]], ["", "0", ""], done.stderr)

    def test_scores_that_are_not_finite(self):
        """Their row is bad. No probability is ever NaN."""
        self.kinds()
        data = self.table("p.csv", "x,way", [(3, "a"), ("3e38", "b"), (8, "a")])
        self.fail_with(1, ("p.csv", "row 2", '"x" is 3e+38', "training 4.4"), "predict", "w", "--data", data,
                       "--probabilities")
        done = self.start("predict", "w", "--data", data, "--probabilities", "--bad-rows", "skip")
        self.assertEqual([line.split(",")[0] for line in done.stdout.splitlines()], ["row", "1", "3"])
        self.assertNotIn("nan", done.stdout)
        self.assertEqual(done.stderr, "2 examples\n1 bad row was skipped: no prediction\n")
        last = self.events("predict", "w", "--data", data, "--bad-rows", "skip")[-1]
        self.assertEqual((last["examples"], last["skipped"]), (2, 1))

    def test_a_test_loss_that_is_not_finite_is_named(self):
        for number in range(40): # until the row is one of the test, which are shuffled
            rows = [("3e38" if i == number else i % 10 / 1000, "ab"[i % 10 > 4]) for i in range(40)]
            done = self.start("train", "--model", "mlp", "--widths", "4", "--nonfinite", "skip", "--epochs", "1",
                              "--data", self.table("t.csv", "x,kind", rows))
            if ", loss nan on 8 examples" in done.stdout:
                break
        self.assertEqual((done.returncode, done.stderr), (0, "choir train: the test loss is nan: the scores of a test "
                                                          "example are not finite; choir predict names the row\n"))

    def test_rows_that_lack_a_column(self):
        rows = self.kinds()
        data = self.table("p.csv", "x,way,kind", [("", "" if i < 9 else w, k) for i, (_, w, k) in enumerate(rows)])
        self.fail_with(1, ("p.csv", "of 100 rows", '100 lack "x"', '9 lack "way"', "--missing impute"), "predict",
                       "w", "--data", data)


main()

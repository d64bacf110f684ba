"""Tables through the command: a CSV file is learned, saved and predicted; what is taken for input and
target; and what is said of columns and rows that cannot be."""

import datetime
import pathlib
import re
from random import Random

from command import Case, main


def flowers(folder, rows=120, name="flowers.csv"):
    """Three kinds that two of their measures tell apart, sorted by kind, with some rows that lack one."""
    lines = ["kind,garden,width,height,noise"]
    for i in range(rows):
        kind = i * 3 // rows
        width, height = 10 + 5 * kind + i % 3, 2000 - 900 * (kind == 1) + i % 7
        lines.append(f"{('rose', 'lily', 'iris')[kind]},{'ab'[i % 2]}{i},"
                     f"{'NA' if i % 40 == 39 else width},{height},{i % 5}")
    (folder / name).write_text("\n".join(lines) + "\n")
    return "csv:" + name


class Table(Case):
    def test_a_table_is_learned(self):
        data = flowers(self.folder)
        train = ("train", "--model", "mlp", "--widths", "16", "--data", data, "--target", "kind",
                 "--epochs", "20", "--batch", "16", "--rate", "0.01")
        text = self.succeed(*train, "--save", "w.safetensors")
        self.assertIn("input: width, height, noise\ntarget: kind: iris, lily, rose\n"
                      "ignored: garden (text)\n", text)
        self.assertIn("rows with a missing value, skipped: 3\n", text)
        start, *_, end = self.events(*train)
        self.assertEqual((start["image"], start["classes"]), ([3], 3))
        self.assertEqual(start["inputs"], [{"name": "width"}, {"name": "height"}, {"name": "noise"}])
        self.assertEqual((start["target"], start["left_out"]), ("kind", [{"name": "garden", "holds": "text"}]))
        self.assertEqual((start["rows_without_value"], start["wrong_rows"]), (3, 0))
        self.assertEqual((start["train_examples"], start["test_examples"]), (94, 23))
        self.assertGreaterEqual(end["test_accuracy"], 0.95)
        *lines, last = self.events("predict", "w.safetensors", "--data", data)
        self.assertEqual(len(lines), 117)
        self.assertGreaterEqual(last["accuracy"], 0.95)
        # The classes keep their numbers in a file that has only one of them.
        content = (self.folder / "flowers.csv").read_text().splitlines()
        (self.folder / "one.csv").write_text("\n".join(content[:1] + content[1:20]) + "\n")
        *lines, last = self.events("predict", "w.safetensors", "--data", "csv:one.csv")
        self.assertEqual(last["dropped"], sum(",NA" in row or ",," in row or row[0] == "," for row in content[1:20]))
        self.assertEqual({line["label"] for line in lines}, {2})
        self.assertGreaterEqual(last["accuracy"], 0.95)

    def test_a_file_is_read_twice_at_most(self):
        """Once for what its columns hold, once for its rows, whatever an epoch does with them."""
        def bytes_read(*train): # by this process and those that it has waited for
            before = int(io.read_text().split()[1])
            self.succeed(*train)
            return int(io.read_text().split()[1]) - before
        io = pathlib.Path("/proc/self/io")
        if not io.exists():
            self.skipTest("only Linux counts the bytes that a process reads")
        random = Random(1)
        rows = [f"{random.uniform(-9, 9):.9f},{random.uniform(0, 1):.9f},{'ab'[i % 2]}" for i in range(200000)]
        for name, n in (("few.csv", 10), ("all.csv", len(rows))):
            (self.folder / name).write_text("\n".join(["x,y,kind", *rows[:n]]) + "\n")
        small = ("train", "--model", "mlp", "--widths", "2", "--batch", "8192", "--epochs", "2", "--data")
        for more in ((), ("--target", "kind")):
            program = bytes_read(*small, "csv:few.csv", *more) # and its libraries
            passes = (bytes_read(*small, "csv:all.csv", *more) - program) / (self.folder / "all.csv").stat().st_size
            self.assertLess(passes, 2.3, more) # a reader's buffer reads ahead of a header
            self.assertGreater(passes, 1.9, more)

    def test_predictions_join_the_rows_of_the_file(self):
        """Rows that are left out leave a gap in the numbers, also over several files."""
        data = flowers(self.folder)
        self.events("train", "--model", "mlp", "--widths", "2", "--data", data, "--target", "kind", "--epochs", "1",
                    "--save", "w")
        whole = [row for row in range(120) if row % 40 != 39]
        for files, rows in ((data, whole), (data + ",flowers.csv", whole + [120 + row for row in whole])):
            *lines, last = self.events("predict", "w", "--data", files)
            self.assertEqual([line["example"] for line in lines], rows)
            self.assertEqual([line["row"] for line in lines], [row + 1 for row in rows])
            self.assertEqual(last["dropped"], len(rows) // 39)
        *lines, last = self.events("predict", "w", "--data", data, "--skip", "38", "--limit", "3")
        self.assertEqual([line["example"] for line in lines], [38, 40, 41])
        self.assertIn("3 rows have a missing value and were skipped: no prediction\n",
                      self.start("predict", "w", "--data", data).stderr)

    def test_columns_keep_their_order(self):
        rows = [(i % 3, i % 5, i % 2) for i in range(40)]
        def table(name, order):
            lines = [",".join("abl"[k] for k in order), *(",".join(str(row[k]) for k in order) for row in rows)]
            (self.folder / name).write_text("\n".join(lines) + "\n")
            return "csv:" + name
        self.events("train", "--model", "mlp", "--widths", "4", "--data", table("t.csv", (0, 1, 2)), "--target",
                    "l", "--epochs", "1", "--save", "w")
        whole = self.events("predict", "w", "--data", "csv:t.csv")
        self.assertEqual(self.events("predict", "w", "--data", table("u.csv", (2, 0, 1))), whole)
        self.assertEqual(self.events("predict", "w", "--data", table("v.csv", (1, 0, 2))), whole)
        self.fail_with(1, ('v.csv"', 'no column "a", "b"'), "predict", "w", "--data",
                       "csv:" + self.renamed("v.csv", "b,a,l", "x,y,l"))

    def renamed(self, name, header, other):
        file = self.folder / name
        file.write_text(file.read_text().replace(header, other))
        return name

    def test_rows_without_labels(self):
        """From a file and from a pipe, with names of classes, probabilities, and the file's rows."""
        data = flowers(self.folder)
        self.events("train", "--model", "mlp", "--widths", "16", "--data", data, "--target", "kind", "--epochs", "20",
                    "--batch", "16", "--rate", "0.01", "--save", "w")
        rows = [line.split(",") for line in (self.folder / "flowers.csv").read_text().splitlines()]
        (self.folder / "bare.csv").write_text("".join(f"{row[4]},{row[3]},{row[2]}\n" for row in rows))
        done = self.start("predict", "w", "--data", "csv:bare.csv")
        self.assertEqual((done.returncode, done.stderr.splitlines()[0]), (0, "117 examples"))
        header, *lines = done.stdout.splitlines()
        self.assertEqual(header, "row,class")
        kept = [i for i, row in enumerate(rows) if i > 0 and row[2] != "NA"]
        self.assertEqual([int(line.split(",")[0]) for line in lines], kept)
        right = sum(rows[int(row)][0] == kind for row, kind in (line.split(",") for line in lines))
        self.assertGreater(right, 110)
        with (self.folder / "bare.csv").open() as pipe:
            piped = self.start("predict", "w", "--data", "-", stdin=pipe)
        self.assertEqual((piped.returncode, piped.stdout), (0, done.stdout))
        done = self.start("predict", "w", "--data", data, "--probabilities")
        header, first, *_ = done.stdout.splitlines()
        self.assertEqual(header, "row,class,label,probability iris,probability lily,probability rose")
        self.assertEqual(first.split(",")[2], "rose")
        self.assertAlmostEqual(sum(map(float, first.split(",")[3:])), 1, 5)
        one, *_ = self.events("predict", "w", "--data", data, "--probabilities")
        self.assertEqual((one["label_name"], len(one["probabilities"])), ("rose", 3))
        self.fail_with(2, "--scores and --probabilities", "predict", "w", "--data", data, "--scores", "--probabilities")
        (self.folder / "new.csv").write_text((self.folder / "flowers.csv").read_text().replace("lily", "tulip"))
        self.assertIn("39 of 117 examples have no known label\n", self.start("predict", "w", "--data", "csv:new.csv").stderr)
        (self.folder / "text.csv").write_text("width,height,noise\n1,two,3\n")
        self.fail_with(1, ("row 1", '"height"', '"two"'), "predict", "w", "--data", "csv:text.csv")

    def test_texts_dates_and_missing_values(self):
        """They become numbers, in the same way for a prediction."""
        random = Random(2)
        rows = ["guest,town,age,paid,day,stays"]
        for i in range(600):
            town, age = random.choice(("Oslo", "Rome, It", "")), random.uniform(1, 80)
            day = datetime.date(2020, 1, 1) + datetime.timedelta(days=random.randrange(700))
            stays = (town == "Oslo") * 2 - (age < 30) - (day.year == 2020) > -0.5
            quoted = f'"{town}"' if "," in town else town
            rows.append(f"Mr {i},{quoted},{'NA' if i % 7 == 6 else f'{age:.1f}'},{i % 9},{day},{'yn'[stays]}")
        (self.folder / "stays.csv").write_text("\n".join(rows) + "\n")
        train = ("train", "--model", "mlp", "--widths", "16", "--data", "csv:stays.csv", "--epochs", "30",
                 "--rate", "0.01", "--batch", "32", "--normalization", "batch", "--dropout", "0.05")
        text = self.succeed(*train, "--missing", "impute", "--save", "w")
        self.assertIn("input: town (2 categories, with an indicator), age (with an indicator), paid, day (date)\n"
                      "target: stays: n, y\nignored: guest (text)\nmlp on csv:stays.csv: inputs [7], 2 classes", text)
        start, *_, end = self.events(*train, "--missing", "impute")
        self.assertEqual(start["inputs"], [{"name": "town", "categories": 2, "indicator": 1},
                                           {"name": "age", "indicator": 1}, {"name": "paid"},
                                           {"name": "day", "holds": "dates"}])
        self.assertGreater(end["test_accuracy"], 0.85)
        *lines, last = self.events("predict", "w", "--data", "csv:stays.csv")
        self.assertEqual((len(lines), last["dropped"]), (600, 0))
        self.assertGreater(last["accuracy"], 0.85)
        # Without the label, in another order, and with a row of nothing but missing values.
        (self.folder / "new.csv").write_text('day,town,paid,age\n2021-05-05,Oslo,1,20\nNA,,,\n2020-02-02,"Rome, It",3,9\n')
        done = self.start("predict", "w", "--data", "csv:new.csv")
        self.assertEqual((done.returncode, done.stdout.count("\n")), (0, 4))
        for bad, what in (("2021-05-05,Bonn,1,2", '"town": "Bonn" is not one'), ("5.5.21,Oslo,1,2", '"day": "5.5.21" is not a date')):
            (self.folder / "bad.csv").write_text(f"day,town,paid,age\n2021-05-05,Oslo,1,20\n{bad}\n")
            self.fail_with(1, ("bad.csv: row 2", what), "predict", "w", "--data", "csv:bad.csv")
            done = self.start("predict", "w", "--data", "csv:bad.csv", "--bad-rows", "skip")
            self.assertEqual((done.returncode, [line.split(",")[0] for line in done.stdout.splitlines()]), (0, ["row", "1"]))
            self.assertIn("1 bad row was skipped", done.stderr)
        self.succeed("export", "w", "--c", "w.c")
        self.assertIn("0 town=Oslo, 1 town=Rome, It, 2 town is missing, 3 age, 4 age is missing, 5 paid, 6 day\n"
                      "// NaN means a missing number; its column's mean replaces it.", (self.folder / "w.c").read_text())
        # Metadata that contradict themselves.
        weights = (self.folder / "w").read_bytes()
        for old, new in ((b"number?", b"numbex?"), (b"number?", b"number!"), (b"Oslo\\t", b"Osloxx")):
            self.assertIn(old, weights)
            (self.folder / "x").write_bytes(weights.replace(old, new))
            self.fail_with(1, "choir.encodings", "predict", "x", "--data", "csv:new.csv")
        # By default their rows are left out, and few texts are categories.
        done = self.start(*train, "--max-categories", "1")
        self.assertIn('column "age" has no value in 85 of 600 rows', done.stderr)
        text = done.stdout
        self.assertIn("input: age, paid, day (date)\n", text)
        self.assertIn("ignored: guest (text), town (text)\nrows with a missing value, skipped: 85\n", text)

    def test_class_weights(self):
        """Balanced classes weigh as much as without weights."""
        train = ("train", "--model", "mlp", "--widths", "4", "--epochs", "2", "--train-examples", "30", "--data")
        def weights(*arguments):
            return self.events(*train, *arguments)[-1]["weights"]
        for name, rare in (("same", 15), ("rare", 3)):
            rows = [f"{i % 7},{'ab'[i % 30 < rare]}" for i in range(30)]
            (self.folder / f"{name}.csv").write_text("\n".join(["x,kind", *rows]) + "\n")
        balanced = ("--class-weights", "balanced")
        self.assertEqual(weights("csv:same.csv", *balanced), weights("csv:same.csv"))
        self.assertNotEqual(weights("csv:rare.csv", *balanced), weights("csv:rare.csv"))
        self.fail_with(1, ("--class-weights balanced", "needs a classification"), *train, "csv:same.csv", "--target",
                       "x", "--task", "regression", *balanced)

    def test_names_of_any_bytes(self):
        """Classes and a target with what ends lines and names in the file of weights."""
        names = ["a\nb", "a\tc", "100%", "50%41", "\u00fc=\u00df"]
        def table(name, kinds, each=40, kind='"ki\nnd\t%"'):
            rows = [f'{k + i % 2 / 4},"{names[k]}"' for i in range(each) for k in kinds]
            (self.folder / name).write_text("\n".join([f"x,{kind}", *rows]) + "\n", encoding="utf-8")
            return "csv:" + name
        self.events("train", "--model", "mlp", "--widths", "8", "--data", table("all.csv", range(5)),
                    "--epochs", "1", "--save", "w.safetensors", "--checkpoint", "c")
        order = sorted(range(5), key=lambda k: names[k].encode())
        for k in range(5):
            *lines, _ = self.events("predict", "w.safetensors", "--data", table("one.csv", [k]))
            self.assertEqual({line["label"] for line in lines}, {order.index(k)}, names[k])
        names[:] = [f"{k}" * 99 + "\n" * 80 for k in range(100, 300)]
        many = ("train", "--model", "mlp", "--widths", "4", "--epochs", "1", "--data", table("many.csv", range(200), 2))
        self.fail_with(1, ("1 inputs", "200 class", "65535 bytes"), *many, "--save",
                       "m.safetensors")
        # Memory is asked after before the rows are measured, and so before what is made of them.
        self.fail_with(1, " of memory (weights ", *many, "--save", "m.safetensors", "--widths", "1000000,1000000")
        self.succeed(*many)

    def test_the_target(self):
        flowers(self.folder)
        base = ("train", "--model", "mlp", "--widths", "4", "--epochs", "1", "--data")
        self.assertIn("target: noise\n", self.succeed(*base, "csv:flowers.csv"))
        text = re.sub(",([ab])[0-9]+,", r",\1,", (self.folder / "flowers.csv").read_text())
        text = text.replace("garden", "label")
        (self.folder / "labelled.csv").write_text(text)
        self.assertIn("target: label: a, b\n", self.succeed(*base, "csv:labelled.csv"))
        self.fail_with(1, ('column "sort"', '"kind", "garden", "width"'), *base,
                       "csv:flowers.csv", "--target", "sort")
        self.fail_with(1, ('--target kind: ', '"digits:9"'), *base, "digits:9",
                       "--target", "kind")
        for row, more in (("", ("--target", "y" * 256)), (",1", ())):
            (self.folder / "long.csv").write_text(f"x{row and ',' + 'y' * 256}\n1{row}\n")
            self.fail_with(1, ("256 bytes", "at most 255"), *base, "csv:long.csv", *more)
        (self.folder / "words.csv").write_text("x,y\na,b\n")
        self.fail_with(1, ('words.csv: no column of numbers', 'input', '"x" holds text'), *base, "csv:words.csv")
        (self.folder / "none.csv").write_text("x,y\n")
        self.fail_with(1, ("none.csv:", "no rows"), *base, "csv:none.csv")
        self.fail_with(1, "nothing.csv", *base, "csv:nothing.csv")
        self.fail_with(1, '"csv:": ', *base, "csv:")

    def numbers(self, name, columns, rows=400):
        """A table of a, b and functions of them with a little noise."""
        random = Random(1)
        lines = [",".join(columns)]
        for _ in range(rows):
            a, b = random.uniform(-3, 3), random.uniform(0, 10)
            values = {"a": a, "b": b, "y": 3 * a - b + random.gauss(0, 0.1), "z": 1000 + 50 * b, "k": round(b)}
            lines.append(",".join(f"{values[c]:.6g}" for c in columns))
        (self.folder / name).write_text("\n".join(lines) + "\n")
        return "csv:" + name

    def test_a_regression(self):
        """Numbers are predicted in their own units, whatever these are."""
        data = self.numbers("y.csv", ("a", "b", "y"))
        train = ("train", "--model", "mlp", "--widths", "16", "--data", data, "--epochs", "60", "--batch", "16", "--rate",
                 "0.01")
        start, *epochs, end = self.events(*train, "--save", "w")
        self.assertEqual((start["task"], start["classes"]), ("regression", 1))
        self.assertGreater(end["test_r2"], 0.99)
        self.assertNotIn("test_accuracy", end)
        done = self.start("predict", "w", "--data", data)
        header, *lines = done.stdout.splitlines()
        self.assertEqual(header, "row,y,label y")
        pairs = [tuple(map(float, line.split(",")[1:])) for line in lines]
        mean = sum((y - is_) ** 2 for y, is_ in pairs) / len(pairs)
        self.assertLess(mean, 0.2)
        *_, last = self.events("predict", "w", "--data", data)
        self.assertAlmostEqual(last["mean_squared_error"], mean, 5)
        self.assertRegex(done.stderr, r"^MSE [\d.e-]+, MAE [\d.e-]+, R2 0\.99\d+ on 400 examples\n$")
        (self.folder / "bare.csv").write_text("b,a\n2,1\n")
        one, _ = self.events("predict", "w", "--data", "csv:bare.csv")
        self.assertAlmostEqual(one["numbers"][0], 1, delta=1)
        self.assertRegex(self.succeed(*train), r"test MSE [\d.e-]+, MAE [\d.e-]+, R2 0\.99\d+ on 80 examples\n")

    def test_several_targets_and_one_input(self):
        data = self.numbers("two.csv", ("a", "b", "y", "z"))
        train = ("train", "--model", "mlp", "--widths", "16", "--epochs", "40", "--batch", "16", "--rate", "0.01", "--data")
        *_, end = self.events(*train, data, "--target", "y,z", "--save", "w")
        self.assertGreater(end["test_r2"], 0.98)
        header, first, *_ = self.start("predict", "w", "--data", data).stdout.splitlines()
        self.assertEqual(header, "row,y,z,label y,label z")
        self.assertAlmostEqual(float(first.split(",")[2]), float(first.split(",")[4]), delta=60)
        one = self.numbers("one.csv", ("b", "z"))
        *_, end = self.events(*train, one, "--save", "w")
        self.assertGreater(end["test_r2"], 0.98)
        *_, last = self.events("predict", "w", "--data", one)
        self.assertGreater(last["r2"], 0.98)
        self.fail_with(1, ("w: is a regression", "--scores"), "predict", "w", "--data", one, "--scores")
        self.fail_with(1, ('"digits:9"', "csv:FILE"), "predict", "w", "--data", "digits:9")

    def test_the_task(self):
        """Whole numbers are classes, unless a regression is asked for."""
        data = self.numbers("k.csv", ("a", "b", "k"))
        train = ("train", "--model", "mlp", "--widths", "8", "--epochs", "1", "--data")
        self.assertEqual(self.events(*train, data)[0]["task"], "classification")
        start, *_, end = self.events(*train, data, "--task", "regression", "--patience", "2")
        self.assertEqual((start["task"], start["classes"]), ("regression", 1))
        self.assertIsNotNone(end["test_mean_absolute_error"])
        flowers(self.folder)
        self.fail_with(1, ("row 1", '"kind"', '"rose"'), *train, "csv:flowers.csv", "--target", "kind", "--task",
                       "regression")
        self.fail_with(1, ('"digits:9"', "no table"), *train, "digits:9", "--task", "regression")
        self.fail_with(1, ('no column "nope"', '"k"'), *train, data, "--target", "k,nope")
        self.fail_with(1, "more than 16 columns", *train, data, "--target", ",".join("abcdefghijklmnopq"))

    def test_wrong_rows(self):
        """Each is named with its file, row and byte, or left out and counted."""
        base = ("train", "--model", "mlp", "--widths", "4", "--epochs", "1", "--data")
        good = "".join(f"{i},{i % 2}\n" for i in range(20))
        for row, text in (("2\n", "row 21, byte 94: 1 fields, the header has 2"),
                          ("2,1,5\n", "row 21, byte 94: 3 fields, the header has 2"),
                          ("2,\xff\n", "row 21, byte 94: column \"y\": \"\\xff\" is not UTF-8"),
                          ('2,"1\n', "row 21, byte 96: a quote that is not closed")):
            data = self.wrong("x,y\n" + good + row)
            self.fail_with(1, "wrong.csv: " + text, *base, data)
            if '"' in row:
                continue  # its field goes on to the end of the file
            done = self.start(*base, self.wrong("x,y\n" + row + good), "--bad-rows", "skip")
            self.assertIn("bad rows, skipped: 1\n", done.stdout)
            if "\xff" in row:
                self.assertTrue(done.stderr.endswith('20 of 21 values are numbers; row 1 has "\\xff"\n'), done.stderr)
                continue
            start, *_ = self.events(*base, "csv:wrong.csv", "--wrong-rows", "skip")
            self.assertEqual((start["train_examples"], start["test_examples"]), (16, 4))
        # A text among numbers makes texts of them, which is said where no number is left.
        self.fail_with(1, ('wrong.csv: no column of numbers', 'input', '"x" holds text'), *base, self.wrong("x,y\n" + good + "2z,1\n"))
        self.fail_with(1, ('wrong.csv: row 21, byte 94: column "x"', '"inf" is not finite'), *base, self.wrong("x,y\n" + good + "inf,1\n"))
        data = self.wrong("x,y\n-1e60,0\n2,1,5\n" + good)
        start, *_, end = self.events(*base, data, "--wrong-rows", "skip")
        self.assertEqual((start["train_examples"], start["test_examples"], start["classes"]), (16, 4, 2))
        self.assertEqual((start["inputs"], start["target"], start["left_out"], start["wrong_rows"]),
                         ([{"name": "x"}], "y", [], 2))
        self.assertEqual(end["weights"], self.events(*base, self.wrong("x,y\n" + good))[-1]["weights"])
        self.fail_with(1, ("wrong.csv:", "empty", "header"), *base, self.wrong(""))
        (self.folder / "empty").mkdir()
        self.fail_with(1, ("empty: ", "directory"), *base, "csv:empty")
        self.fail_with(1, ("empty/*: ", "no file"), *base, "csv:empty/*")
        self.fail_with(1, ("--bad-rows skip: ", '"digits:40"'), *base, "digits:40",
                       "--wrong-rows", "skip")
        self.fail_with(2, "known: error, skip", *base, "digits:40", "--wrong-rows", "pass")

    def wrong(self, text):
        (self.folder / "wrong.csv").write_text(text, encoding="latin-1")
        return "csv:wrong.csv"

    def test_the_penguins(self):
        path = pathlib.Path(__file__).parents[2].parent / "shared" / "data" / "penguins.csv"
        if not path.exists():
            self.skipTest("penguins.csv is not beside the project")
        *_, end = self.events("train", "--model", "mlp", "--data", f"csv:{path}", "--target", "species",
                              "--epochs", "20", "--batch", "32")
        self.assertGreaterEqual(end["test_accuracy"], 0.95)


main()

"""How the command reads tables that other programs write: labels of any numbers, other separators, decimal
marks and missing texts, and what it says of columns that are not what they seem."""

import bz2
from random import Random

from command import Case, main

TRAIN = ("train", "--model", "mlp", "--widths", "8", "--epochs", "1", "--data")
LEARN = ("train", "--model", "mlp", "--widths", "8", "--epochs", "20", "--batch", "16", "--rate", "0.02", "--data")


class Reading(Case):
    def table(self, rows, name="t.csv", header="x,y"):
        (self.folder / name).write_text("\n".join([header, *rows]) + "\n")
        return name

    def start_of(self, *arguments):
        """The first event, and what is said on standard error."""
        import json
        done = self.start(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[0]), done.stderr

    def warned(self, facts, *arguments):
        """The training succeeds, with one line on standard error that has the facts."""
        done = self.start(*TRAIN, *arguments)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done.stderr)
        for fact in facts:
            self.assertIn(fact, done.stderr)
        return done.stdout

    def test_labels_of_any_numbers(self):
        """They are printed as they stand in the training's file, and found by their values."""
        for labels, others in ((("10", "20", "30"), ("10.0", "20", "3e1")), (("01", "02", "10"), ("1", "2", "10")),
                               (("-1", "0", "1"), ("-1.0", "-0", "1")), (("1", "2", "3"), ("1", "02", "3.0")),
                               (("0.0", "1.0", "2.0"), ("0", "1", "2")), (("9", "10", "11"), ("9", "10", "11"))):
            data = self.table([f"{i % 3},{labels[i % 3]}" for i in range(120)])
            start, *_ = self.events(*LEARN, data, "--save", "w")
            self.assertEqual((start["task"], start["classes"]), ("classification", 3), labels)
            done = self.start("predict", "w", "--data", self.table([f"{i},{others[i]}" for i in range(3)], "u.csv"),
                              "--probabilities")
            header, *lines = done.stdout.splitlines()
            self.assertEqual(header, "row,class,label," + ",".join(f"probability {text}" for text in labels))
            self.assertEqual([line.split(",")[1:3] for line in lines], [[text, text] for text in labels])
            done = self.start("predict", "w", "--data", self.table(["1,77"], "u.csv"))
            self.assertRegex(done.stdout, r"\n1,[-.0-9]+,\n$")

    def test_labels_from_0_stay_as_they_are(self):
        """Nothing of them is saved, and a file with points is read alike."""
        self.events(*LEARN, self.table([f"{i % 3},{i % 3}" for i in range(120)]), "--save", "w")
        self.assertNotIn(b"choir.names", (self.folder / "w").read_bytes())
        done = self.start("predict", "w", "--data", self.table(["0,0.0", "2,2.0"], "u.csv"))
        self.assertEqual(done.stdout, "row,class,label\n1,0,0\n2,2,2\n")

    def test_the_task_of_numbers(self):
        few = self.table([f"{i % 3},{i % 3 + 0.5}" for i in range(60)])
        self.assertEqual(self.events(*TRAIN, few)[0]["task"], "regression")
        start = self.events(*TRAIN, few, "--task", "classification")[0]
        self.assertEqual((start["task"], start["classes"]), ("classification", 3))
        money = self.table([f"{i % 30},{i % 25}.0" for i in range(300)])
        self.assertEqual(self.events(*TRAIN, money)[0]["task"], "regression")
        whole = self.table([f"{i % 30},{i * 1000 + 7}" for i in range(3000)])
        self.fail_with(1, ('the target "y" has 3000 different values in 3000 rows', "--task regression"), *TRAIN, whole)
        self.events(*TRAIN, whole, "--task", "regression")
        plain = self.table([f"{i % 30},{i}" for i in range(200)])
        self.fail_with(1, ('the target "y" has 200 different values in 200 rows',), *TRAIN, plain)
        # More classes than a model names.
        gaps = self.table([f"{i % 30},{i % 1200 * 2}" for i in range(3000)])
        start, said = self.start_of(*TRAIN, gaps)
        self.assertEqual(start["classes"], 2399)
        self.assertIn('the target "y" has whole numbers, which are 2399 classes; --task regression', said)
        self.events(*TRAIN, gaps, "--task", "classification")
        self.fail_with(1, ('column "y" holds text (row 1: "a")', "a regression needs numbers"), *TRAIN,
                       self.table(["1,a", "2,b"]), "--task", "regression")
        self.fail_with(1, ('column "y" holds text (row 1: "a")', "several targets"), *TRAIN,
                       self.table(["1,a,1", "2,b,1"], header="x,y,z"), "--target", "y,z")

    def test_one_text_among_numbers(self):
        rows = [f"{i / 2},{i % 5},{'np'[i % 7 > 3]}" for i in range(200)]
        for odd, more in (("?", "-, ?"), ("unknown", "unknown")):
            data = self.table([*rows[:5], f"{odd},1,n", *rows[5:]], header="x,z,y")
            text = self.warned(('t.csv: column "x" is an ignored text, but 200 of 201 values are numbers; row 6 has '
                                f'"{odd}"', f'--missing-values "NA,N/A,NaN,nan,null,NULL,n/a,None,#N/A,<NA>,{odd}"'), data)
            self.assertIn("ignored: x (text)\n", text)
            text = self.succeed(*TRAIN, data, "--missing-values", more, "--save", "w")
            self.assertIn("input: x, z\n", text)
            self.assertIn("rows with a missing value, skipped: 1\n", text)
            # The prediction reads alike, and NA is now a text.
            done = self.start("predict", "w", "--data", self.table([f"{odd},1", "1,1"], "u.csv", "x,z"))
            self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 2), done.stderr)
            self.fail_with(1, ("row 1", '"x"', '"NA"'), "predict", "w", "--data", self.table(["NA,1"], "u.csv", "x,z"))
        data = self.table([*rows[:5], "?,1,n", "none,1,n", *rows[5:]], header="x,z,y")
        self.warned(('--missing-values "?" makes',), data, "--missing-values", "none")
        for odd in ("none", '"1,234,"', "o" * 39): # a list of "none" has no texts, and a long text is cut
            data = self.table([f"{odd},1,n", *rows], header="x,z,y")
            text = self.start(*TRAIN, data, "--missing-values", "none").stderr
            self.assertIn("200 of 201 values are numbers", text)
            self.assertNotIn("makes it", text)
        data = self.table(["1,?", *(f"{i % 9},{i % 7 + 0.5}" for i in range(99))])
        self.warned(('column "y" is the target, but 99 of 100',), data, "--task", "regression", "--bad-rows", "skip")
        few = self.table(["-,n", *(f"{i % 3},{'np'[i % 2]}" for i in range(99))])
        self.warned(('column "x" is text with 4 categories, but 99 of 100 values are numbers; row 1 has "-"',), few)
        data = self.table([*rows[:5], "2020-02-30,1,n", *(f"2020-01-{i % 28 + 1:02},{row.split(',', 1)[1]}" for i, row in enumerate(rows))],
                          header="x,z,y")
        self.warned(('200 of 206 values are dates; row 6 has "2020-02-30"',), data)
        self.fail_with(1, ("--missing-values", "256 bytes", "at most 255"), *TRAIN, data, "--missing-values", "?" * 256)

    def test_separators_and_decimal_commas(self):
        random = Random(1)
        pairs = [(random.uniform(0, 9), random.randrange(9)) for _ in range(300)]
        rows = [(f"{x:.3f}", str(n), f"{2 * x - n:.4f}") for x, n in pairs]
        plain = self.table([",".join(row) for row in rows], header="x,n,y")
        weights = self.events(*TRAIN, plain)[-1]["weights"]
        self.table([";".join(row).replace(".", ",") for row in rows], "euro.csv", "x;n;y")
        self.table(["\t".join(row) for row in rows], "t.tsv", "x\tn\ty")
        self.table(["|".join(row) for row in rows], "bar.csv", "x|n|y")
        (self.folder / "sep.csv").write_text("sep=;\n" + "\n".join([";".join(row) for row in [("x", "n", "y"), *rows]]))
        for arguments in (("euro.csv", "--decimal", "comma"), ("t.tsv",), ("sep.csv",), ("bar.csv", "--separator", "bar"),
                          ("bar.csv", "--separator", "|")):
            self.assertEqual(self.events(*TRAIN, *arguments)[-1]["weights"], weights, arguments)
        self.assertIn("separator: semicolon\ninput: x, n\n", self.succeed(*TRAIN, "euro.csv", "--decimal", "comma", "--save", "w"))
        self.assertIn("separator", self.start_of(*TRAIN, "t.tsv")[0])
        self.assertNotIn("separator", self.start_of(*TRAIN, plain)[0])
        # The prediction reads alike.
        header, first, *_ = self.start("predict", "w", "--data", "euro.csv").stdout.splitlines()
        self.assertEqual(header, "row,y,label y")
        self.assertAlmostEqual(float(first.split(",")[2]), float(rows[0][2]), 3)
        self.fail_with(1, ('the target "y"', "300 of 300 values are numbers with a decimal comma", "--decimal comma"), *TRAIN, "euro.csv")
        self.table([f"{i}\t{i % 3}\t{i % 5 + 0.5}" for i in range(40)], "t.tsv", "x\tn, m\ty")
        self.assertIn("input: x, n, m\n", self.succeed(*TRAIN, "t.tsv"))
        for more in (("--separator", "tab"), ("--decimal", "comma"), ("--missing-values", "?")):
            self.fail_with(1, (more[0], '"digits:50" are no table'), *TRAIN, "digits:50", *more)
        self.fail_with(1, "--separator colon: unknown", *TRAIN, plain, "--separator", "colon")
        self.fail_with(1, ("separator '.'",), *TRAIN, plain, "--separator", ".")
        # Texts that are nearly all different are no classes either.
        self.fail_with(1, ('the target "y" has 300 different values in 300 rows',), *TRAIN,
                       self.table([f'{i % 9},"{i},{i:03},000"' for i in range(300)]))

    def test_columns_that_look_like_numbers(self):
        """One text in up to half of the values, and signs beside numbers: a column is not lost without a word."""
        head = [f"{i},{i % 5},{'np'[i % 7 > 3]}" for i in range(60)]
        data = self.table([*head, *(f"-,{i % 5},n" for i in range(50))], header="x,z,y")
        self.warned(('column "x" is an ignored text, but 60 of 110 values are numbers; row 61 has "-"', "--missing-values"), data)
        for odd in ("-%d", "%d-"): # several texts, in as many rows, are no exception
            data = self.table([*head, *(f"a{odd % i},{i % 5},n" for i in range(50))], header="x,z,y")
            self.assertEqual(self.start(*TRAIN, data).stderr, "")
        for form in ("%d%%", "$%d", "€ -%d.5", "%d kg", "24.11.%d", '"%d,234,56"', "%d:30"):
            data = self.table([f"{form % (i + 1)},{row}" for i, row in enumerate(head)], header="q,x,z,y")
            self.warned(('column "q" is an ignored text, but 60 of 60 values are numbers with', "row 1 has"), data)
        for form in ("A/%d", "u%d", "%d Main Street"):
            data = self.table([f"{form % i},{row}" for i, row in enumerate(head)], header="q,x,z,y")
            self.assertEqual(self.start(*TRAIN, data).stderr, "", form)
        data = self.table([f"{'<>'[i % 2]}{i % 2}0,{row}" for i, row in enumerate(head)], header="q,x,z,y")
        self.assertEqual(self.start(*TRAIN, data).stderr, "") # categories
        for text in ("None", "n/a", "#N/A", "<NA>"):
            data = self.table([*head, f"{text},1,n"], header="x,z,y")
            self.assertIn("skipped: 1\n", self.succeed(*TRAIN, data))

    def test_thousands(self):
        """Commas between groups of three digits, in quotes. A point never is such a separator, unless commas are
        decimal marks."""
        rows = [f'"{1000 + 37 * i:,}",{(1000 + 37 * i) / 8}' for i in range(100)]
        data = self.table(rows)
        text = self.warned(('column "x" has thousands separators: "1,234" is read as 1234; with --decimal comma it is 1.234',),
                           data, "--save", "w", "--task", "regression")
        self.assertNotIn("ignored", text)
        plain = self.table([row.replace('"', "").replace(",", "", 1) for row in rows], name="p.csv")
        def answers(data, *more):
            return self.start("predict", "w", "--data", data, *more).stdout
        self.assertEqual(answers(data), answers(plain))
        mixed = self.table([row.replace('"', "").replace(",", ".", 1) for row in rows[:3]], name="q.csv")
        self.assertNotEqual(answers(mixed), answers(self.table([r.replace('"', "").replace(",", "", 1) for r in rows[:3]],
                                                               name="p.csv")))
        self.assertEqual(self.start(*TRAIN, self.table([f"{i / 1000 + 1:.3f},{i % 2}" for i in range(100)])).stderr, "")
        for odd in ("0,123", "12,34", "1,2345", "1,23,456", "1234,567", "1,234,"):  # no such groups
            self.assertIn("decimal comma" if odd[-1] != "," and odd.count(",") == 1 else "text",
                          "".join(self.start_of(*TRAIN, self.table([f'"{odd}",{i % 2},{i}' for i in range(40)],
                                                                   header="x,y,z"), "--target", "y")[1]) or "text")
        # A target, and a table with decimal commas.
        self.table([f"{i % 9};1.{i % 9:03},5" for i in range(80)], header="x;y")
        first, said = self.start_of(*TRAIN, "t.csv", "--decimal", "comma")
        self.assertEqual(first["task"], "regression")
        self.assertIn('column "y" has thousands separators: 1.234 is read as 1234; without --decimal comma it is 1.234', said)

    def test_categorical(self):
        """Numbers of a column that is named are codes: each text is a category, however many there are."""
        rows = [f"{i % 80:02},{i % 3},{(i % 80 * 7 % 11) % 2}" for i in range(800)]
        data = self.table(rows, header="zip,x,y")
        def inputs(*more):
            return {c["name"]: c.get("categories") for c in self.start_of(*TRAIN, data, *more)[0]["inputs"]}
        self.assertEqual(inputs()["zip"], None)
        self.assertEqual(inputs("--categorical", "zip"), {"zip": 80, "x": None})
        self.assertEqual(inputs("--categorical", "x,zip"), {"zip": 80, "x": 3})
        last = [*self.events(*LEARN, data, "--categorical", "zip", "--save", "w", "--checkpoint", "c")][-1]
        self.assertGreater(last["test_accuracy"], 0.95)
        self.assertLess(self.events(*LEARN, data)[-1]["test_accuracy"], 0.8)
        *answers, end = self.events("predict", "w", "--data", data)
        self.assertGreater(end["accuracy"], 0.95)
        self.fail_with(1, ('"7"', "zip"), "predict", "w", "--data", self.table(["7,1,0"], "n.csv", "zip,x,y"))
        self.assertIn("resuming", self.succeed(*LEARN, data, "--categorical", "zip", "--checkpoint", "c"))
        self.fail_with(1, ('no column "zap"', '"zip"'), *TRAIN, data, "--categorical", "zap")
        self.fail_with(1, ("--categorical y", "is the target"), *TRAIN, data, "--categorical", "zip,y")
        self.fail_with(1, ("--categorical", "no table", "csv:FILE"), "train", "--data", "mnist", "--categorical", "x")

    def test_other_formats(self):
        """A table in another format or encoding is refused by its name for it."""
        text = "x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(50))
        for first, name in ((text.encode("utf-16"), "UTF-16"), (b"PAR1\x15\4", "Parquet"), (b"PK\3\4\0", ".xlsx"),
                            (b'{"x":1,"y":2}\n', "JSON"), (b'[{"x":1}]', "JSON"), (b"ARROW1\0\0", "Feather"),
                            (bz2.compress(b"x,y\n1,2\n"), "bzip2"), (bz2.compress(b""), "bzip2")):
            (self.folder / "t.csv").write_bytes(first)
            self.fail_with(1, ("t.csv", name, "CSV file in UTF-8"), *TRAIN, "t.csv")
        for name in ("PAR1", "ARROW1", "BZh"):  # columns of these names are no formats
            self.assertIn(name, self.succeed("inspect", self.table([f"{i},{i % 2}" for i in range(50)], header=name + ",y")))
        for name in ("t.parquet", "t.xlsx", "t.jsonl", "t.csv.zip"):
            (self.folder / name).write_bytes(b"PAR1")
            self.fail_with(1, (name, "format is not read", "CSV"), *TRAIN, name)
        rows = "".join(f"{i},{city},{i % 2}\n" for i in range(20) for city in ("Köln", "Bonn"))
        (self.folder / "t.csv").write_bytes(("x,city,y\n" + rows).encode("latin-1"))
        self.warned(('column "city" is ignored: row 1 has "K', "not UTF-8", "iconv"), "t.csv")
        for separator, mark, facts in (("|", ".", ('"x|z|y" is the only column', "separator")), ("\t", ",", ())):
            rows = "\n".join(separator.join(row) for row in (("x", "z", "y"), *((f"{i}{mark}5", f"4{mark}{i}", "ab"[i % 2]) for i in range(18))))
            (self.folder / "t.csv").write_text(rows + "\n")
            self.fail_with(1, facts or ('"x" holds text (numbers with a decimal comma)',), *TRAIN, "t.csv")

    def test_what_a_table_lacks(self):
        """Rows, classes, or names of columns."""
        rows = [f"{i % 3},{i % 5},{'ab'[i % 2]}" for i in range(50)]
        less = [row if i % 4 else "," + row.split(",", 1)[1] for i, row in enumerate(rows)]
        data = self.table(less, header="x,z,y")
        self.warned(('column "x" has no value in 13 of 50 rows', "--missing impute"), data)
        self.succeed(*TRAIN, data, "--missing", "impute")
        self.succeed(*TRAIN, self.table(less[:1] + rows[1:], header="x,z,y"))
        data = self.table([row if i % 10 else row[:-1] + "NA" for i, row in enumerate(rows)], header="x,z,y")
        self.warned(('the target "y" has no value in 5 of 50 rows', "NA, None"), data)
        text = self.succeed(*TRAIN, data, "--missing-values", "none")
        self.assertIn("target: y: NA, a, b\n", text)
        data = self.table([f"{i % 3},{i % 5},{'' if i % 6 == 0 else i % 4 + 0.5}" for i in range(50)], header="x,z,y")
        self.warned(('the target "y" has no value in 9 of 50 rows, which are left out\n',), data)
        parts = [[i % 7, i % 5, i % 3, "ab"[i % 2]] for i in range(100)]
        for i in range(15): # no column lacks a tenth
            parts[i][i % 3] = ""
        data = self.table([",".join(map(str, part)) for part in parts], header="x,z,w,y")
        self.warned(("15 of 100 rows lack a value in a column", "--missing impute"), data)
        self.succeed(*TRAIN, data, "--missing", "impute")
        self.warned(('the target "y" has one class only',), self.table([f"{i},a" for i in range(9)]))
        self.warned(("the header has only numbers",), self.table([f"{i}.5,{i % 2}" for i in range(9)], header="1.5,0"))

    def test_large_numbers_that_differ_little(self):
        rows = [f"{10**9 + i % 7},{i % 7 + 0.5}" for i in range(70)]
        self.warned(('column "x" has different values near 1e+09, where f32 has steps of 64',), self.table(rows), "--run", "run")
        rows = [f"{i % 9},{i % 7 + 0.5},{10**9 + i % 7 + 0.5}" for i in range(70)]
        self.warned(('column "z" has different values near 1e+09, where f32 has steps of 64',),
                    self.table(rows, header="x,y,z"), "--target", "y,z")
        self.succeed(*TRAIN, self.table([f"{10**9 if i % 20 else i},{i if i % 20 else ''},{i % 7 + 0.5}" for i in range(70)], header="x,z,y"))
        self.succeed(*TRAIN, self.table([f"1000000000.3,{i},{i % 7 + 0.5}" for i in range(70)], header="x,z,y"))

    def test_names_of_targets(self):
        for number in ("0.5", "a"):
            data = self.table([f"{i % 5},{i % 2 if number == 'a' else i % 2 + 0.5}" for i in range(40)], header='x,"grade, final"')
            for target in ((), ("--target", "grade, final")):
                self.assertIn("target: grade, final", self.succeed(*TRAIN, data, *target, "--save", "w"))
            header = self.start("predict", "w", "--data", data).stdout.splitlines()[0]
            self.assertEqual(header, 'row,class,label' if number == "a" else 'row,"grade, final","label grade, final"')
        data = self.table([f"{i},{i % 5 + 0.5},{i % 7}" for i in range(40)], header="x,y,Class")
        self.assertIn("target: y,Class\n", self.succeed(*TRAIN, data, "--target", "y, Class"))
        self.fail_with(1, ('no column "class"; there is "Class"',), *TRAIN, data, "--target", "class")
        self.fail_with(1, ('no column "class"; there is "Class"',), *TRAIN, data, "--target", "y,class")
        self.fail_with(1, ("--target ,y", "a name is empty"), *TRAIN, data, "--target", ",y")

    def test_standard_input_has_its_name(self):
        self.events(*TRAIN, self.table([f"{i % 5},{'ab'[i % 2]}" for i in range(40)]), "--save", "w")
        for text, facts in (("x\nabc\n", ("standard input: row 1", '"abc"')), ("x\n1e60\n", ("standard input: row 1", '"1e60" is not finite')),
                            ("x\n", ("standard input:", "no rows")), ("z\n1\n", ('"standard input"', 'no column "x"'))):
            (self.folder / "in").write_text(text)
            with (self.folder / "in").open() as pipe:
                done = self.fail_with(1, facts, "predict", "w", "--data", "-", stdin=pipe)
            self.assertNotIn("choir-input", done.stderr)
        (self.folder / "in").write_text("x\n1\ninf\n2\n")
        with (self.folder / "in").open() as pipe:
            done = self.start("predict", "w", "--data", "-", "--bad-rows", "skip", stdin=pipe)
        self.assertEqual([line.split(",")[0] for line in done.stdout.splitlines()], ["row", "1", "3"])


main()

"""--run, choir report and choir trace: the page has what the training printed, is whole HTML without
network and scripts, and escapes what comes from files; damaged runs are refused."""

import html.parser
import json
import re
import signal
import subprocess

from command import COMMAND, SMALL, Case, main

RUN = ("train", *SMALL, "--model", "mlp", "--widths", "24", "--replicas", "2", "--devices", "cpu:0,cpu:1",
       "--run", "run")
EMPTY = {"meta"}


class Page(html.parser.HTMLParser):
    """Its elements must nest; svg's empty ones end themselves."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        if data.strip():
            self.words.append(data.strip())

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


class Report(Case):
    def page(self, *arguments, run="run"):
        self.assertIn("report.html", self.succeed("report", run, *arguments))
        return Page((self.folder / run / "report.html").read_text(encoding="utf-8"))

    def lines(self):
        return [json.loads(line) for line in (self.folder / "run/run.jsonl").read_text().splitlines()]

    def test_page_of_a_classification(self):
        events = self.events(*RUN)
        self.assertEqual(self.events("report", "run"), [{"event": "end", "file": "run/report.html"}])
        page = self.page()
        end, words = events[-1], " ".join(page.words)
        for expected in ("mlp on digits:500", "400", "100", "2", "seed", end["weights"],
                         f"{100 * end['test_accuracy']:.2f} %", "2 of 2", "Confusion matrix",
                         "Errors by class", "matmul", "replica 1", "Who waited for whom", "adam"):
            self.assertIn(expected, words)
        # Nothing is loaded, and nothing runs.
        self.assertEqual([e for e in page.elements if e[0] in ("script", "link", "img", "iframe", "a")], [])
        self.assertFalse([a for _, attrs in page.elements for a in attrs if a.startswith("on") or a == "href"])
        text = (self.folder / "run/report.html").read_text()
        self.assertNotRegex(text, r"https?://|url\(|@import")
        self.assertIn("default-src 'none'", text)
        self.assertIn("prefers-color-scheme:dark", text)
        # The events: each epoch as it was printed, the loss of each tenth step, and all test examples.
        lines = self.lines()
        self.assertEqual([e["loss"] for e in lines if e["event"] == "epoch"],
                         [e["loss"] for e in events if e["event"] == "epoch"])
        self.assertEqual([e["step"] for e in lines if e["event"] == "step"], [10, 20])
        rows = [e["predicted"] for e in lines if e["event"] == "class"]
        self.assertEqual((len(rows), sum(map(sum, rows))), (10, 100))
        self.assertEqual(sum(row[i] for i, row in enumerate(rows)), round(100 * end["test_accuracy"]))
        # A point of each epoch; the curve of steps has two points.
        dots = [c for c in page.all("circle") if c["class"] == "b"]
        self.assertEqual(len(dots), 2 * 2)
        for label in page.all("text"):
            if label["class"] == "tick":
                self.assertTrue(0 <= float(label["x"]) <= 420 - 8, label)
        for line in page.all("polyline"):
            for point in line["points"].split():
                x, y = map(float, point.split(","))
                self.assertTrue(0 <= x <= 420 and 0 <= y <= 230, point)
        cells = [c for c in page.all("td") if c.get("class", "").startswith(("g", "e")) and "style" in c]
        self.assertEqual(len(cells), sum(1 for row in rows for n in row if n > 0))
        self.assertEqual(self.events(*RUN[:-2])[-1]["weights"], end["weights"])

    def test_pages_of_other_trainings(self):
        (self.folder / "t.csv").write_text("a,y\n" + "".join(f"{i},{i * 0.5 + 0.25}\n" for i in range(60)))
        self.succeed("train", "--data", "csv:t.csv", "--epochs", "3", "--run", "run")
        words = " ".join(self.page().words)
        for expected in ("Test R2", "Mean squared error", "Test mean absolute error"):
            self.assertIn(expected, words)
        self.assertNotIn("Confusion", words)
        (self.folder / "t.txt").write_bytes(b"to be or not to be " * 40)
        self.succeed("train", "--model", "gpt", "--data", "text:t.txt", "--width", "8", "--heads", "2",
                     "--layers", "1", "--context", "16", "--epochs", "2", "--run", "text")
        self.assertIn("Bits per byte", " ".join(self.page(run="text").words))

    def test_names_of_files_are_escaped(self):
        name = "<script>alert('1')</script>&\"\x1b"
        names = ("plain", name.replace("\x1b", ""))
        text = "x,kind\n" + "".join(f'{i},"{names[i % 2]}"\n'.replace('&"', '&""') for i in range(60))
        (self.folder / "<b>.csv").write_text(text)
        self.succeed("train", "--data", "csv:<b>.csv", "--epochs", "1", "--run", "run")
        page = self.page()
        self.assertEqual(page.all("script"), [])
        self.assertIn("mlp on csv:<b>.csv", page.words)
        self.assertIn(names[1], page.words)
        # Also in events that others have changed.
        path = self.folder / "run/run.jsonl"
        path.write_text(path.read_text().replace('"adam"', json.dumps(name)))
        page = self.page()
        self.assertEqual(page.all("script"), [])
        self.assertIn(name.replace("\x1b", "\ufffd"), page.words)

    def test_a_training_that_goes_on_or_is_resumed(self):
        self.succeed(*RUN, "--checkpoint", "c")
        path = self.folder / "run/run.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        whole = path.read_text()
        path.write_text("".join(line for line in lines if '"event": "end"' not in line and
                                '"event": "class"' not in line) + '{"event": "st')
        (self.folder / "run/trace.json").unlink()
        words = " ".join(self.page().words)
        self.assertIn("the training has not ended", words)
        self.assertNotIn("Confusion", words)
        path.write_text(whole)
        self.succeed(*RUN, "--checkpoint", "c", "--epochs", "3") # the last --epochs counts
        self.assertEqual([e["epoch"] for e in self.lines() if e["event"] == "epoch"], [1, 2, 3])
        page = self.page()
        self.assertIn("3 of 3", page.words)
        self.assertEqual(len([c for c in page.all("circle") if c["class"] == "b"]), 2 * 3)

    def test_a_training_that_diverges_or_fails(self):
        (self.folder / "t.csv").write_text("a,y\n" + "".join(f"{i % 7}e19,{i % 5}.5e19\n" for i in range(60)))
        wild = ("train", "--data", "csv:t.csv", "--optimizer", "sgd", "--learning-rate", "1e10", "--run", "run")
        out = self.start(*wild, "--epochs", "3", "--nonfinite", "ignore").stdout
        self.assertRegex(out, r"epoch 3/3  loss (inf|nan) .*test MSE nan, MAE nan, R2 nan\n")
        self.assertNotRegex(out, r"-nan|R2 -?\d{8}")
        words = self.page().words
        self.assertIn("not finite", words[words.index("Training loss") + 1])
        self.assertIn("not finite", words[words.index("training, mean of epoch") + 1])
        self.fail_with(1, "is -inf at", *wild, "--epochs", "3")
        words = " ".join(self.page().words)
        self.assertRegex(words, r"the training failed: .*the gradient of .* is -inf")
        # One logged step is no line, and no reason for another range.
        self.succeed("train", "--data", "csv:t.csv", "--epochs", "10", "--run", "run")
        self.assertFalse([e for e in self.page().elements if "faint" in e[1].get("class", "")])
        # Without a test set, nothing of it is missing; a resumed training forgets the failure.
        self.succeed(*wild[:3], "--epochs", "1", "--train-examples", "60", "--run", "run")
        path = self.folder / "run/run.jsonl"
        path.write_text('{"event": "failed", "text": "old"}\n' + path.read_text())
        words = " ".join(self.page().words)
        self.assertNotRegex(words, "not finite|failed")

    def test_a_training_that_is_stopped(self):
        with subprocess.Popen([COMMAND, *RUN, "--epochs", "100000", "--checkpoint", "c"], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            while "epoch" not in running.stdout.readline():
                pass
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=100)
        self.assertRegex(" ".join(self.page().words), r"the training was stopped by a signal after step \d+; checkpoint c/step-")

    def test_damaged_runs(self):
        self.succeed(*RUN)
        path = self.folder / "run/run.jsonl"
        good = path.read_text()
        for text, *facts in (("", 'no event "start"'), ("x\n" + good, "line 1"),
                             (good + '{"event": "class", "class": 7, "predicted": [1]}\n', "class"),
                             (good.replace("}", "", 1), "line 1"), (good + "\0\n", "line")):
            path.write_text(text)
            self.fail_with(1, ("run.jsonl", *facts), "report", "run")
        path.write_text(good)
        trace = self.folder / "run/trace.json"
        trace.write_text(trace.read_text()[:-4])
        self.fail_with(1, ("trace.json", "byte"), "report", "run")
        self.fail_with(1, ("trace.json", "byte"), "trace", "run")
        self.fail_with(1, "nowhere/run.jsonl: No such file or directory", "report", "nowhere")
        self.fail_with(1, "nowhere: no such file", "trace", "nowhere")
        self.fail_with(1, ("--run", "--log"), *RUN, "--log", "log")
        (self.folder / "file").write_text("")
        self.fail_with(1, "file/run.jsonl: Not a directory", *RUN[:-1], "file")
        trace.write_text(json.dumps({"traceEvents": []}))
        self.fail_with(1, "no/x.html.part: No such file or directory", "report", "run", "--output",
                       "no/x.html")

    def test_traces_of_workers_are_merged(self):
        self.succeed(*RUN)
        whole = (self.folder / "run/trace.json").read_text()
        self.assertRegex(self.succeed("trace", "run"), r"(?m)^replica [01] +replica [01] +\d+ times")
        (self.folder / "run/trace.json.1").write_text(whole.replace('"pid": 1,', '"pid": 2,'))
        out = self.succeed("trace", "run", "--output", "all.json")
        self.assertRegex(out, r"(?m)^worker 1, replica [01] +replica [01] +\d+ times")
        merged = json.loads((self.folder / "all.json").read_text())["traceEvents"]
        self.assertEqual(len(merged), 2 * len(json.loads(whole)["traceEvents"]))
        self.assertEqual({e["args"]["name"] for e in merged if e["name"] == "process_name"},
                         {"worker 0", "worker 1"})
        waits = self.events("trace", "run/trace.json")
        self.assertEqual({e["event"] for e in waits}, {"wait"})
        for wait in waits:
            self.assertTrue(re.fullmatch(r"worker [01], (replica [01]|program)", wait["waiter"]), wait)
            self.assertGreater(wait["seconds"], 0)
        (self.folder / "run/trace.json.1").write_text(whole)
        self.fail_with(1, ("worker 0", "one file for each worker"), "trace", "run", "--output", "b.json")
        self.assertFalse((self.folder / "b.json").exists())
        self.assertIn("worker", " ".join(self.page().words))


main()

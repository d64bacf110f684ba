"""One replica of one step of a training, run again: with the bits that it had, on whatever carries it."""

import fcntl
import json
import random
import re
import shutil

from command import Case, forge, main

MLP = ("--data", "digits:600", "--batch", "32", "--epochs", "3", "--model", "mlp", "--widths", "24",
       "--replicas", "4")


class Replay(Case):
    def train(self, directory, *arguments):
        self.succeed("train", *arguments, "--checkpoint", directory, "--checkpoint-every", "6",
                     "--keep", "100")

    def replay(self, directory, step, replica, *arguments):
        """What it says of the replica; with --check it must say that it was checked."""
        first, *checked = self.events("replay", "--checkpoint", directory, "--step", step,
                                      "--replica", replica, *arguments)
        self.assertEqual((first["step"], first["replica"]), (step, replica))
        self.assertEqual(len(checked), "--check" in arguments)
        return first

    def same(self, first, second):
        for key in ("examples", "loss", "hash", "gradients"):
            self.assertEqual(first[key], second[key])

    def test_any_step_on_any_devices(self):
        self.train("c", *MLP, "--devices", "cpu:0,cpu:1", "--optimizer", "adamw", "--clip", "0.5",
                   "--schedule", "cosine", "--warmup", "5", "--freeze", "classes/bias")
        dice, hashes = random.Random(3), set()
        for step in (1, 6, 7, 15, 16, 44, 45):
            replica = dice.randrange(4)
            here = self.replay("c", step, replica, "--check", "--devices", "cpu:0")
            self.assertEqual(here["examples"], 8)
            self.assertEqual(sum(g["nonfinite"] for g in here["gradients"]), 0)
            self.assertEqual(len(here["gradients"]), 4)
            there = self.replay("c", step, replica, "--check", "--devices", "far:0,cpu:0,far:1")
            self.same(here, there)
            hashes.add(here["hash"])
        self.assertEqual(len(hashes), 7)

    def test_from_the_beginning_and_from_any_checkpoint(self):
        self.train("all", *MLP)
        whole = self.replay("all", 40, 1)
        self.assertEqual((whole["from"], whole["from_step"]), ("all/step-36", 36))
        for path in (self.folder / "all").glob("step-*"):
            if path.name != "step-45":
                shutil.rmtree(path)
        alone = self.replay("all", 40, 1, "--check")
        self.assertEqual((alone["from"], alone["from_step"]), ("", 0))
        self.same(alone, whole)

    def test_older_names(self):
        """A checkpoint with the older words of options is that of a training with the newer ones."""
        self.train("c", *MLP, "--epochs", "1", "--learning-rate", "0.01", "--max-to-keep", "100", "--nonfinite", "error")
        header = (self.folder / "c/step-15/manifest.json").read_text()
        for key in ('"train/options/rate"', '"train/options/wrong-rows"'):
            self.assertIn(key, header)
        for path in (self.folder / "c").glob("step-*"):
            forge(path, **{"train__options__nonfinite": "stop", "train__options__wrong-rows": "stop"})
        self.replay("c", 14, 1)
        for policy in ("--nonfinite", "--wrong-rows", "--unsaved"):
            again = self.events("train", *MLP, "--epochs", "1", "--rate", "0.01", "--checkpoint", "c", policy, "stop")
            self.assertEqual([event.get("changed") for event in again if event["event"] == "resume"], [None])

    def test_options_that_changed(self):
        """A training that goes on with other options is replayed with those that each step had."""
        self.train("c", *MLP, "--epochs", "1", "--rate", "0.01")
        first = self.replay("c", 3, 1, "--check")
        last = self.replay("c", 14, 1)
        self.train("c", *MLP, "--epochs", "2", "--rate", "0.02")
        self.train("c", *MLP, "--epochs", "3", "--rate", "0.02")
        self.same(self.replay("c", 3, 1, "--check"), first)
        self.same(self.replay("c", 14, 1, "--check"), last)
        second = self.replay("c", 17, 1, "--check")
        # With the checkpoint after which the options changed both sides of it can be replayed.
        for path in (self.folder / "c").glob("step-*"):
            if path.name not in ("step-15", "step-42", "step-45"):
                shutil.rmtree(path)
        self.same(self.replay("c", 3, 1, "--check"), first)
        self.same(self.replay("c", 17, 1, "--check"), second)
        shutil.rmtree(self.folder / "c" / "step-15")
        for step in (3, 14, 17, 42):
            self.fail_with(1, (f"--step {step}: ", "after step 15", "checkpoint of step 15", "steps 1 to 42",
                               "--learning-rate 0.02 (was 0.01)"), "replay", "--checkpoint", "c", "--step", step, "--replica", "1")
        self.replay("c", 43, 1, "--check")

    def test_replicas_that_changed(self):
        self.train("c", *MLP, "--epochs", "1")
        self.train("c", *MLP, "--epochs", "2", "--replicas", "2")
        self.assertEqual(self.replay("c", 14, 3)["replicas"], 4)
        self.assertEqual(self.replay("c", 16, 1, "--check")["replicas"], 2)
        for steps in (6, 12, 15):
            shutil.rmtree(self.folder / "c" / f"step-{steps}")
        self.fail_with(1, ("steps 1 to 18", "--replicas 2 (was 4)"),
                       "replay", "--checkpoint", "c", "--step", "3", "--replica", "1")

    def test_dropout_and_text(self):
        text = random.Random(1).choices("abc def\n", k=6000)
        (self.folder / "t").write_text("".join(text))
        self.train("gpt", "--model", "gpt", "--data", "text:t", "--layers", "1", "--width", "16",
                   "--heads", "2", "--context", "32", "--dropout", "0.2", "--batch", "24",
                   "--epochs", "2", "--replicas", "3")
        for step in (3, 9, 13):
            self.replay("gpt", step, 2, "--check", "--data", "text:t")

    def test_while_a_job_has_the_directory(self):
        self.train("c", *MLP, "--epochs", "1")
        with open(self.folder / "c" / ".lock", "a", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.fail_with(1, "is in use by", "train", *MLP, "--checkpoint", "c")
            self.replay("c", 3, 0, "--check")

    def test_what_is_not_finite_is_shown(self):
        broken = (*MLP[:-2], "--replicas", "2", "--optimizer", "sgd", "--rate", "1e30")
        done = self.start("train", *broken, "--checkpoint", "n", "--checkpoint-every", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("step 2: replica 0: sgd: the gradient of", done.stderr)
        for replica in range(2):
            shown = self.replay("n", 2, replica)
            self.assertGreater(sum(g["nonfinite"] for g in shown["gradients"]), 0)
        self.assertEqual(sum(g["nonfinite"] for g in self.replay("n", 1, 1)["gradients"]), 0)
        failed = self.start("replay", "--checkpoint", "n", "--step", "2", "--replica", "1", "--check")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("step 2: replica 0: sgd: the gradient of", failed.stderr)

    def test_other_data_are_found(self):
        rows = [f"{i % 7},{i * i % 11},{i % 3}" for i in range(60)]
        (self.folder / "a.csv").write_text("\n".join(["x,y,label", *rows]) + "\n")
        rows[2], rows[5] = "5,4,2", "2,3,2" # which leaves means and deviations as they were
        (self.folder / "b.csv").write_text("\n".join(["x,y,label", *rows]) + "\n")
        self.train("c", "--data", "csv:a.csv", "--batch", "8", "--epochs", "2", "--replicas", "2")
        step = ("replay", "--checkpoint", "c", "--step", "5", "--replica", "1")
        self.replay("c", 5, 1, "--check", "--data", "csv:a.csv")
        # The file that the checkpoint names is there, and nobody but the checkpoint named it.
        self.fail_with(1, ('--data "csv:a.csv"', "needs --data"), *step)
        (self.folder / "a.csv").rename(self.folder / "moved.csv")
        self.replay("c", 5, 1, "--check", "--data", "csv:moved.csv")
        done = self.start("replay", "--checkpoint", "c", "--step", "5", "--replica", "1", "--check",
                          "--data", "csv:b.csv")
        self.assertEqual(done.returncode, 1)
        self.assertIn("but c/step-6 has", done.stderr)

    def test_a_checkpoint_opens_no_file(self):
        """Whatever a checkpoint says, a file is opened only if the command line names it."""
        self.train("w", "--data", "digits:60", "--batch", "8", "--epochs", "1", "--model", "mlp", "--widths", "8")
        weights = next((self.folder / "w").glob("step-*")) / "weights.safetensors"
        (self.folder / "map").write_text("* *\n")
        self.train("c", "--data", "digits:60", "--batch", "8", "--epochs", "1", "--model", "mlp", "--widths", "8",
                   "--init", weights, "--init-map", "map")
        step = ("replay", "--checkpoint", "c", "--replica", "0", "--step")
        self.fail_with(1, "needs --init", *step, "3")
        self.fail_with(1, "needs --init-map", *step, "3", "--init", weights)
        self.events(*step, "3", "--init", weights, "--init-map", "map")
        for path in (self.folder / "c").glob("step-*"):
            forge(path, train__options__data="idx:/etc/passwd,/etc/passwd")
        done = self.fail_with(1, "needs --data", *step, "3")
        self.assertNotIn("IDX", done.stderr)

    def test_sizes_are_borne_out(self):
        """No number of a checkpoint asks for memory that its file does not come near to filling."""
        self.train("c", "--data", "digits:60", "--batch", "8", "--epochs", "1", "--model", "mlp", "--widths", "8")
        whole = self.folder / "c"
        for text, forged in (
                ("bytes; a mlp of", {"train__options__widths": "1048576"}),
                ("bytes; a mlp of", {"train__options__widths": ",".join(["1048576"] * 8)}),
                ("needs --data", {"train__options__data": "digits:2147483647"}),
                ("1048576 replicas", {"replicas": 1 << 20}),
                ("batches of 16777216", {"train__options__batch": "16777216"}),
                ("bytes; a gpt of", {"train__options__model": "gpt", "train__options__width": "1048576",
                                              "train__options__widths": None, "train__options__data": "text:t"}),
                ("--batch ", {"train__options__batch": "0"})):
            shutil.rmtree(self.folder / "f", ignore_errors=True)
            shutil.copytree(whole, self.folder / "f")
            for path in (self.folder / "f").glob("step-*"):
                forge(path, **forged)
            (self.folder / "t").write_text("some text " * 100)
            more = ("--data", "text:t") if "train__options__model" in forged else ()
            done = self.start_within(1 << 30, "replay", "--checkpoint", "f", "--step", "3", "--replica", "0", *more)
            self.assertEqual(done.returncode, 1, (forged, done.stderr))
            self.assertIn(text, done.stderr)
            self.assertTrue(done.stderr.startswith("choir replay: "), done.stderr)

    def test_what_a_checkpoint_says_is_shown_cleanly(self):
        self.train("c", "--data", "digits:60", "--batch", "8", "--epochs", "1", "--model", "mlp", "--widths", "8")
        for path in (self.folder / "c").glob("step-*"):
            forge(path, train__options__model="%1B]0;owned%07\u202e")
        done = self.fail_with(1, "choir replay: ", "replay", "--checkpoint", "c", "--step", "3", "--replica", "0")
        self.assertIn("--model", done.stderr)
        self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", done.stderr))
        self.assertNotIn("choir train", done.stderr)

    def test_damage_is_passed_over(self):
        self.train("c", *MLP)
        whole = self.replay("c", 40, 1)
        weights = self.folder / "c" / "step-36" / "weights.safetensors"
        data = bytearray(weights.read_bytes())
        data[-1] ^= 4
        weights.write_bytes(data)
        done = self.start("replay", "--checkpoint", "c", "--step", "40", "--replica", "1", "--json")
        self.assertEqual(done.returncode, 0)
        self.assertIn("c/step-36/weights.safetensors: tensor", done.stderr)
        again = json.loads(done.stdout)
        self.assertEqual(again["from_step"], 30)
        self.same(again, whole)

    def test_wrong_use(self):
        self.train("c", *MLP, "--epochs", "1")
        step = ("--checkpoint", "c", "--step", "3")
        self.fail_with(2, "needs --checkpoint DIR", "replay", "--step", "3", "--replica", "0")
        self.fail_with(2, "needs --step S", "replay", "--checkpoint", "c", "--replica", "0")
        self.fail_with(2, "needs --replica K", "replay", *step)
        self.fail_with(2, "--step 0", "replay", "--checkpoint", "c", "--step", "0", "--replica", "0")
        self.fail_with(2, "--replica -1", "replay", *step, "--replica", "-1")
        self.fail_with(1, ("--replica 4: ", "4 replicas", "0 to 3"), "replay", *step, "--replica", "4")
        self.fail_with(1, ("steps 1 to 15", "6, 12, 15"),
                       "replay", "--checkpoint", "c", "--step", "16", "--replica", "0")
        self.fail_with(1, "nowhere", "replay", "--checkpoint", "nowhere", "--step", "1",
                       "--replica", "0")
        (self.folder / "empty").mkdir()
        self.fail_with(1, ("empty: ", "no undamaged checkpoint"), "replay",
                       "--checkpoint", "empty", "--step", "1", "--replica", "0")
        self.fail_with(1, "gone", "replay", *step, "--replica", "0", "--data", "csv:gone.csv")


main()

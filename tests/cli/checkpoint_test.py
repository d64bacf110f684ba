"""Trainings that are stopped, at any moment and by signals, and go on: to the weights of one that was not."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time

from command import COMMAND, RELEASE, Case, command_for, main, threads

MLP = ("--data", "digits:600", "--batch", "32", "--epochs", "3", "--model", "mlp", "--widths", "24",
       "--replicas", "4", "--json")
STOPPED = 75
# CHOIR_STOPS: how many stops at random moments.
STOPS = int(os.environ.get("CHOIR_STOPS", "6" if RELEASE else "3"))


class Checkpoint(Case):
    def end(self, *arguments):
        last = json.loads(self.succeed("train", *MLP, *arguments).splitlines()[-1])
        self.assertEqual(last["event"], "end")
        return last["weights"], last["loss"], last["test_accuracy"]

    @threads
    def test_checkpoints_change_nothing(self):
        whole = self.end()
        self.assertEqual(self.end("--checkpoint", "all", "--checkpoint-every", "4", "--keep", "2"), whole)
        steps = sorted(path.name for path in (self.folder / "all").iterdir() if path.name[0] != ".")
        self.assertEqual(len(steps), 2, steps)
        # Nothing is left to do, and it says the same.
        self.assertEqual(self.end("--checkpoint", "all"), whole)
        # With only the last step to do, the rate is that of one batch.
        shutil.rmtree(self.folder / "all/step-45")
        self.assertEqual(self.trained("--checkpoint", "all"), [32])

    def trained(self, *arguments):
        """The examples that this process had trained on behind each epoch, by its rate and time."""
        events = [json.loads(line) for line in self.succeed("train", *MLP, *arguments).splitlines()]
        self.assertAlmostEqual(events[-1]["examples_per_s"], events[-2]["examples_per_s"])
        return [round(e["examples_per_s"] * e["seconds"], 3) for e in events if e["event"] == "epoch"]

    def test_more_epochs_on_other_devices(self):
        whole = self.end()
        self.assertEqual(self.trained("--checkpoint", "more", "--epochs", "1", "--devices", "cpu:0"), [480])
        self.assertEqual(self.trained("--checkpoint", "more", "--epochs", "2", "--devices", "cpu:0,far:0",
                                      "--strategy", "mirrored"), [480])
        self.assertEqual(self.end("--checkpoint", "more", "--strategy", "central_storage",
                                  "--devices", "cpu:0,cpu:1"), whole)

    def test_a_run_s_directory_may_come_and_go(self):
        """--run is no part of a training's state: its checkpoints resume, and replay, with and without it."""
        whole = self.end()
        self.assertEqual(self.trained("--checkpoint", "c", "--epochs", "1", "--run", "r"), [480])
        self.succeed("replay", "--checkpoint", "c", "--step", "2", "--replica", "1", "--check")
        self.assertEqual(self.trained("--checkpoint", "c", "--epochs", "2"), [480])
        self.assertEqual(self.end("--checkpoint", "c", "--run", "r2"), whole)
        self.succeed("report", "r2")

    def stop_once(self, after, number, *arguments):
        """The command's code, asked to stop so many seconds after its start. What it says is not
        buffered, or communicate would miss what came with the first line."""
        with subprocess.Popen([command_for(arguments), "train", *MLP, *arguments], cwd=self.folder, bufsize=0,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            begun = running.stdout.readline()
            time.sleep(after)
            running.send_signal(number)
            out, error = running.communicate(timeout=100)
        return running.returncode, (begun + out).decode(), error.decode()

    @threads
    def test_stopped_at_random_moments(self):
        long = ("--epochs", "8", "--patience", "7")
        whole = self.end(*long)
        dice = random.Random(5)
        stops = 0
        for attempt in range(20 * STOPS):
            if stops >= STOPS:
                break
            name, code = f"stop-{attempt}", None
            number = dice.choice((signal.SIGTERM, signal.SIGINT))
            for run in range(40):
                devices = dice.choice(("cpu:0", "cpu:0,cpu:1", "far:0,far:1"))
                code, out, error = self.stop_once(dice.uniform(0.01, 0.25 + run / 40), number, *long, "--checkpoint",
                                                  name, "--devices", devices)
                if code not in (STOPPED, 0):
                    self.assertEqual(code, -number, error) # before it listened
                    continue
                if code == 0:
                    break
                stops += 1
                self.assertIn("after step", error)
            if code == 0:
                last = json.loads(out.splitlines()[-1])
            else:
                last = json.loads(self.succeed("train", *MLP, *long, "--checkpoint",
                                               name).splitlines()[-1])
            self.assertEqual((last["weights"], last["loss"], last["test_accuracy"]), whole)
        self.assertGreaterEqual(stops, STOPS)

    def test_a_checkpoint_that_cannot_be_saved(self):
        """Files may not grow beyond a size that the state needs and nothing else does."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
        limited = {"preexec_fn": limit} # SIGXFSZ, which would end it without a word, is ignored
        whole = self.end()
        self.end("--checkpoint", "full", "--epochs", "1")
        stopped = self.start("train", *MLP, "--checkpoint", "full", **limited)
        self.assertEqual(stopped.returncode, 1, stopped.stderr)
        self.assertRegex(stopped.stderr, r"step 30 was not saved: full/.*: File too large "
                         r"\(it needs 2\d{5} bytes, \d+ are free\)")
        gone_on = self.start("train", *MLP, "--checkpoint", "full", "--unsaved", "ignore",
                             "--checkpoint-every", "7", **limited)
        self.assertEqual(gone_on.returncode, 0, gone_on.stderr)
        events = [json.loads(line) for line in gone_on.stdout.splitlines()]
        lost = [event["why"] for event in events if event["event"] == "unsaved"]
        for step in (21, 28, 30, 35, 42, 45):
            self.assertEqual(sum(f"step {step} was not saved" in why for why in lost), 1, lost)
            self.assertIn(f"step {step} was not saved", gone_on.stderr)
        last = events[-1]
        self.assertEqual((last["weights"], last["loss"], last["test_accuracy"]), whole)
        self.assertEqual([path.name for path in (self.folder / "full").iterdir()
                          if path.name != ".lock"], ["step-15"])
        self.assertEqual(self.end("--checkpoint", "full"), whole)

    def test_a_stop_that_cannot_be_saved(self):
        """Whoever asks for a stop is told that there is nothing to go on from, in any case."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
        with subprocess.Popen([COMMAND, "train", *MLP, "--epochs", "100000", "--checkpoint", "full",
                               "--unsaved", "ignore"], cwd=self.folder, text=True, preexec_fn=limit,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            while "unsaved" not in running.stdout.readline():
                pass
            running.send_signal(signal.SIGTERM)
            _, error = running.communicate(timeout=100)
        self.assertEqual(running.returncode, 1, error)
        self.assertIn("was not saved", error.splitlines()[-1])

    def test_a_full_disk(self):
        """A disk of 1 MiB, where that can be made without being root."""
        (self.folder / "disk").mkdir()
        inside = ["unshare", "-r", "-m", "sh", "-c",
                  'mount -t tmpfs -o size=1m none disk && "$@" && ls disk/c', "sh", COMMAND, "train",
                  *MLP, "--checkpoint", "disk/c", "--keep", "100", "--checkpoint-every", "3"]
        try:
            done = subprocess.run(["unshare", "-r", "-m", "mount", "-t", "tmpfs", "none", "disk"],
                                  cwd=self.folder, check=False, stderr=subprocess.PIPE)
        except OSError as why:
            self.skipTest(str(why))
        if done.returncode != 0:
            self.skipTest("no disk of one's own")
        stopped = subprocess.run(inside, cwd=self.folder, check=False, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(stopped.returncode, 1, stopped.stderr)
        self.assertRegex(stopped.stderr, r"step \d+ was not saved: .*too little free space \(it needs 2\d{5} bytes, \d+ are free\)")
        gone_on = subprocess.run([*inside, "--unsaved", "ignore"], cwd=self.folder, check=False,
                                 text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(gone_on.returncode, 0, gone_on.stderr)
        lines = gone_on.stdout.splitlines()
        kept = [line for line in lines if line.startswith("step-")]
        self.assertIn(len(kept), (3, 4)) # of about 230 KB
        self.assertEqual(set(kept), {f"step-{3 * (i + 1)}" for i in range(len(kept))})
        last = json.loads(lines[-1 - len(kept)])
        self.assertEqual((last["weights"], last["loss"], last["test_accuracy"]), self.end())

    def test_patience_goes_on(self):
        """Started again behind each epoch it ends as one that never stopped, with the same best weights."""
        early = ("--rate", "0.05", "--patience", "2")
        events = [json.loads(line) for line in self.succeed("train", *MLP, *early, "--epochs", "40").splitlines()]
        whole = tuple(events[-1][name] for name in ("weights", "loss", "test_accuracy"))
        scores = [e["test_accuracy"] for e in events if e["event"] == "epoch"]
        best = scores.index(max(scores)) + 1
        self.assertLess(best, len(scores))
        self.assertLess(len(scores), 40)
        kept = (*early, "--checkpoint", "early", "--keep", "1")
        for epochs in sorted(range(len(scores) + 1, 0, -1 if RELEASE else -3)):
            done = self.end(*kept, "--epochs", str(epochs), "--devices", ("cpu:0", "far:0,far:1")[epochs % 2])
        self.assertEqual(done, whole)

        def damage(epoch):
            for file in self.folder.glob("early/step-*/state.safetensors"):
                if file.parent.name.split(".")[0] != f"step-{15 * epoch}":
                    continue
                content = bytearray(file.read_bytes())
                content[200:203] = b"xyz"
                file.write_bytes(content)
        damage(len(scores)) # the newest
        done = self.start("train", *MLP, *kept, "--epochs", "40")
        self.assertRegex(done.stderr, "state.safetensors: .*; (passed over|it is skipped)\n$")
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["weights"], whole[0])
        damage(best) # what was the best is said to be no more, and then the next epoch is
        more = str(len(scores) + 1)
        done = self.start("train", *MLP, *kept, "--epochs", more)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done.stderr)
        self.assertRegex(done.stderr, f"early.* epoch {best},.* --patience .* epoch {len(scores)}\n$")
        last = self.end("--rate", "0.05", "--epochs", more)
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["weights"], last[0])
        # Behind one without patience none is the best yet.
        self.end("--rate", "0.05", "--checkpoint", "unaware", "--epochs", str(len(scores)))
        self.assertEqual(self.end(*early, "--checkpoint", "unaware", "--epochs", more), last)

    def test_which_signals_stop_it(self):
        """SIGHUP as well; what whoever starts it has it ignore stays ignored."""
        def hold(*numbers):
            return lambda: [signal.signal(number, signal.SIG_IGN) for number in numbers]
        long = ("train", *MLP, "--epochs", "100000", "--checkpoint")
        for name, ignored, number in (("up", (), signal.SIGHUP), ("no", (signal.SIGINT, signal.SIGHUP), signal.SIGTERM)):
            with subprocess.Popen([COMMAND, *long, name], cwd=self.folder, text=True, preexec_fn=hold(*ignored),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
                while "epoch" not in running.stdout.readline():
                    pass
                for one in ignored:
                    running.send_signal(one)
                for _ in range(3 if ignored else 0):
                    self.assertIn("epoch", running.stdout.readline())
                running.send_signal(number)
                _, error = running.communicate(timeout=100)
            self.assertEqual(running.returncode, STOPPED, error)
            self.assertIn("after step", error)

    def test_closed_descriptors(self):
        """Files that are opened must not get the place of standard output: what is printed would be in them."""
        def close():
            for number in range(3):
                os.close(number)
        whole = self.end()
        closed = subprocess.Popen([COMMAND, "train", *MLP[:-1], "--checkpoint", "closed", "--checkpoint-every", "1",
                                   "--keep", "100", "--trace", "trace.json"], cwd=self.folder, preexec_fn=close)
        self.assertEqual(closed.wait(timeout=200), 0)
        self.assertIn("45", self.succeed("inspect", "closed"))
        self.assertEqual(len(json.loads((self.folder / "trace.json").read_text())) > 0, True)
        self.assertEqual(self.end("--checkpoint", "closed"), whole)

    def test_options_that_have_changed(self):
        """They are named in one line, since the weights are not those of one that never stopped."""
        self.end("--checkpoint", "rate", "--epochs", "1", "--rate", "0.01")
        same = self.start("train", *MLP[:-1], "--checkpoint", "rate", "--epochs", "2", "--rate", "0.01").stdout
        self.assertIn("rate/step-15, after step 15", same)
        self.assertNotIn("changed", same)
        other = self.start("train", *MLP[:-1], "--checkpoint", "rate", "--rate", "0.02", "--clip", "3").stdout
        self.assertIn(": --learning-rate 0.02 (was 0.01), --clip 3 (was not given)\n", other)
        events = [json.loads(line) for line in self.succeed("train", *MLP, "--checkpoint", "rate").splitlines()]
        changed = [event["changed"] for event in events if event["event"] == "resume"]
        self.assertEqual(len(changed), 1)
        self.assertRegex(changed[0], r"^--learning-rate not given .was 0.02., --clip not given .was 3.$")

    def test_another_optimizer(self):
        self.end("--checkpoint", "adam", "--epochs", "1")
        self.fail_with(1, ('"sgd/loss_scale"', "adam, confusion, dataset"),
                       "train", *MLP, "--checkpoint", "adam", "--optimizer", "sgd")

    def test_a_lock_that_is_gone(self):
        """Another job may have the directory then, and its checkpoints are not to be mixed with these."""
        with subprocess.Popen([COMMAND, "train", *MLP, "--epochs", "100000", "--checkpoint", "lost"], cwd=self.folder,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            while "epoch" not in running.stdout.readline():
                pass
            (self.folder / "lost/.lock").unlink()
            _, error = running.communicate(timeout=100)
        self.assertEqual(running.returncode, 1, error)
        self.assertIn("lost/.lock: was removed or replaced while this job used the directory", error)

    def test_a_folder_s_weights(self):
        """predict, sample and export take a directory of checkpoints, and one step of it."""
        self.end("--checkpoint", "c")
        data = ("--data", "digits:50", "--json")
        newest = self.folder / "c/step-45"
        needed = self.succeed("predict", newest / "weights.safetensors", *data)
        self.assertNotEqual(self.succeed("predict", "c/step-15/weights.safetensors", *data), needed)
        for name in ("c", "c/", newest, "c/step-45/"):
            self.assertEqual(self.succeed("predict", name, *data), needed)
        self.succeed("export", "c", "--c", "c.c")
        self.fail_with(1, ("c/step-45/weights.safetensors: ", "a mlp", "gpt"), "sample", "c")
        (newest / "weights.safetensors").rename(self.folder / "w.safetensors")
        (newest / "weights.safetensors").symlink_to(self.folder / "w.safetensors")
        self.fail_with(1, ("c/step-45/weights.safetensors: ", "link"), "predict", newest, *data)
        self.assertEqual(self.succeed("predict", "c", *data), self.succeed("predict", "c/step-30", *data))
        (self.folder / "empty").mkdir()
        self.fail_with(1, ("empty: ", "no checkpoints"), "predict", "empty", *data)

    def test_what_is_refused(self):
        self.fail_with(1, ("--max-to-keep: ", "--checkpoint DIR"), "train", *MLP, "--keep", "3")
        self.fail_with(1, ("--checkpoint-every: ", "--checkpoint DIR"), "train", *MLP, "--checkpoint-every", "3")
        self.fail_with(1, ("--unsaved ignore: ", "--checkpoint DIR"), "train", *MLP, "--unsaved", "ignore")
        self.fail_with(1, "2 workers", "train", *MLP, "--checkpoint", "p", "--strategy",
                       "parameter_server", "--workers", "2")
        self.end("--checkpoint", "one", "--epochs", "1")
        self.fail_with(1, 'different "classes/kernel" is F32 [24, 10], not F32 [25, 10], "hidden1/bias" is F32 '
                       "[24], not F32 [25]", "train", *MLP, "--checkpoint", "one", "--widths", "25")
        self.fail_with(1, 'missing "hidden2/bias", "hidden2/kernel"', "train", *MLP, "--checkpoint", "one",
                       "--widths", "24,8")
        self.fail_with(1, "momentum/loss_scale", "train", *MLP, "--checkpoint", "one", "--optimizer",
                       "momentum")
        self.fail_with(1, "from a dataset with other stages", "train", *MLP, "--checkpoint", "one",
                       "--batch", "16")

    def test_damage_is_named_and_passed_over(self):
        self.end("--checkpoint", "hurt", "--epochs", "2")
        newest = max((self.folder / "hurt").glob("step-*"), key=lambda path: int(path.name[5:]))
        weights = newest / "weights.safetensors"
        data = bytearray(weights.read_bytes())
        data[-1] ^= 4
        weights.write_bytes(data)
        steps = self.start("inspect", "hurt", "--json")
        self.assertEqual(steps.returncode, 1)
        self.assertIn("1 of 2 checkpoints", steps.stderr)
        first, second = (json.loads(line) for line in steps.stdout.splitlines())
        tensors = {(t["of"], t["name"]): (t["dtype"], t["shape"]) for t in first["tensors"]}
        self.assertEqual(tensors["weights", "hidden1/kernel"], ("f32", [784, 24]))
        self.assertEqual(tensors["state", "adam/hidden1/kernel/m"], ("f32", [784, 24]))
        self.assertEqual(tensors["state", "adam/step"], ("i64", []))
        self.assertIn("is damaged", second["damage"])
        self.fail_with(1, ("no checkpoints", "parent directory"), "inspect", str(newest))
        self.fail_with(1, ('"nowhere"', "no such file"), "inspect", "nowhere")
        (self.folder / "empty").mkdir()
        self.fail_with(1, "no checkpoints", "inspect", "empty")
        done = self.start("train", *MLP, "--checkpoint", "hurt")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"hurt/{newest.name}/weights.safetensors: tensor \"", done.stderr)
        whole = self.end()
        last = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((last["weights"], last["loss"], last["test_accuracy"]), whole)


main()

"""Wrong use of the command: exit code 2 where the command line is wrong and 1 where what it asks for
fails, one line that says what is wrong, and known names where one is not known."""

import json
import os
import pathlib
import re
import signal
import subprocess

from command import COMMAND, SOURCE, Case, main

COMMANDS = ("train", "predict", "sample", "export", "import", "inspect", "replay", "report", "trace", "run", "status", "serve", "key", "devices", "doctor",
            "bench train", "bench kernels", "bench all-reduce", "bench run", "bench fit", "bench input", "bench closures")


class Usage(Case):
    def test_help(self):
        for command in COMMANDS:
            text = self.succeed(*command.split(), "--help")
            self.assertTrue(text.startswith(f"usage: choir {command}"), text)
            self.assertIn("--json", text)
            self.assertRegex(text, rf"\n\nexamples:\n(  .*choir {command}.*\n){{2}}$")
            self.assertLess(max(len(line) for line in text.splitlines()), 100)
        self.assertIn("train a model", self.succeed("--help"))
        self.assertIn("all-reduce", self.succeed("bench", "--help"))
        for command in ("", "train", "bench", "bench all-reduce"):
            self.assertEqual(self.succeed("help", *command.split()), self.succeed(*command.split(), "--help"))
        self.assertRegex(self.succeed("--version"), r"^choir \d+\.\d+\.\d+\n$")
        self.assertIn("usage:", self.start().stderr)
        self.assertEqual(self.start().returncode, 2)
        self.assertEqual(self.start("bench").returncode, 2)
        self.assertIn("usage:", self.succeed("train", "--no-such", "--help"))
        self.fail_with(1, "no-such", "sample", "no-such", "--prompt", "-h") # a prompt

    def test_the_manual_has_every_option(self):
        manual = (pathlib.Path(SOURCE) / "man/choir.1").read_text().replace("\\-", "-")
        for command in COMMANDS:
            for option in re.findall(r"^  (--[a-z-]+)", self.succeed(*command.split(), "--help"), re.M):
                self.assertRegex(manual, rf"{option}\b(?!-)", command)
        for name in set(re.findall(r"^  (\w+)", self.succeed("--help"), re.M)) - {"choir"}: # of the examples
            self.assertIn(f".B choir {name}\n", manual)
            self.assertIn(f".SH {name.upper()}\n", manual)

    def test_unknown_names(self):
        self.fail_with(2, ("trian: unknown", "did you mean train?", "known: train, predict, sample, export, import, inspect, "
                           "replay, report, trace, run, status, serve, key, devices, doctor, bench"), "trian")
        self.fail_with(2, ("al-reduce: unknown", "did you mean all-reduce?", "known: all-reduce, train, kernels, run, fit, input"), "bench", "al-reduce")
        self.fail_with(2, ("--modle: ", "did you mean --model?"), "train", "--modle", "cnn")
        self.fail_with(2, ("--xyzzyxyzzy: unknown", "--help"), "train", "--xyzzyxyzzy")
        self.fail_with(2, ("-b: unknown", "--help"), "train", "-b", "3")
        self.fail_with(2, ("--epochs2: ", "did you mean --epochs?"), "train", "--epochs2=1")
        self.fail_with(2, ("--model resnet: ", "did you mean resnet20?", "known: mlp, cnn"), "train", "--model", "resnet")
        self.fail_with(2, "known: sgd, momentum, adam, adamw, rmsprop, nadam, adagrad, lion", "train",
                       "--optimizer", "adamm")
        self.fail_with(2, "known: mlp128, mlp1024, cnn", "bench", "train", "--case", "gpt")
        self.fail_with(1, ("\"cifar\"", "known: mnist, digits[:N], idx:IMAGES[,LABELS]"), "train", "--data", "cifar")
        done = self.fail_with(1, ('device "gpu:0": is unknown', "known: cpu:0"), "train", "--devices", "gpu:0")
        self.assertTrue(done.stderr.endswith("(more by name)\n"), done.stderr) # the CPU alone
        self.fail_with(1, "cpu:0", "train", "--devices", "cpu:0,cpu:0")
        self.fail_with(1, "gpu:3", "train", env={"CHOIR_DEVICES": "gpu:3"})

    def test_numbers(self):
        for option in ("--batch", "--replicas", "--epochs", "--train-examples"):
            for value in ("0", "-1", "-9223372036854775808", "1.5", "", "two", "1x", " 1", "1e3",
                          "99999999999999999999", "0x10"):
                self.fail_with(2, (f"{option} {value}: ", "a whole number"), "train", option, value)
        for value in ("0", "-0.1", "nan", "-nan", "inf", "1e999", "", "fast", "0.1x", " 1"):
            self.fail_with(2, (f"--learning-rate {value}: ", "a number greater than 0"), "train", "--rate", value)
        for value in ("-1", "1.5", "18446744073709551616", ""):
            self.fail_with(2, (f"--seed {value}: ", "a whole number"), "train", "--seed", value)
        self.fail_with(2, "from 1 to", "train", "--replicas", "1000000000")
        self.fail_with(2, "--seconds nan", "bench", "train", "--seconds", "nan")

    def test_missing_and_surplus(self):
        self.fail_with(2, ("--learning-rate: ", "needs X"), "train", "--rate")
        self.fail_with(2, "--json: ", "train", "--json=yes")
        self.fail_with(2, '"cnn": unexpected argument', "train", "cnn")
        self.fail_with(2, "FILE", "predict")
        self.fail_with(2, "FILE", "inspect", "--")
        self.fail_with(1, "--json: ", "predict", "--data", "digits:9", "--", "--json")
        self.fail_with(2, "--data DATA", "predict", "w.safetensors")
        self.fail_with(1, "x.csv: ", "train", "--data", "x.csv")
        self.fail_with(2, '"b": unexpected argument', "predict", "a", "b")
        self.fail_with(2, ("--data: ", "empty", "DATA"), "train", "--data=")

    def test_widths(self):
        for widths in ("0", "8,", ",8", "8,x", "-8", "8 8", "1,2,3,4,5,6,7,8,9", "99999999"):
            self.fail_with(1, f'widths "{widths}": ', "train", "--model", "mlp", "--widths", widths)
        self.fail_with(1, ("\"8,8\"", "3 widths"), "train", "--model", "cnn", "--widths", "8,8")

    def test_output_that_does_not_get_out(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = self.start("devices", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)

    def test_devices(self):
        lines = self.succeed("devices", "--json").splitlines()
        for i, line in enumerate(lines):
            device = json.loads(line)
            self.assertEqual(device["name"], f"cpu:{i}")
            self.assertEqual(device["kind"], "cpu")
            self.assertGreaterEqual(device["cores"], 1)
            self.assertGreater(device["memory_total"], 1 << 20)
        self.assertEqual(len(self.succeed("devices").splitlines()), len(lines) + 1)

    def test_key(self):
        path = pathlib.Path(self.folder) / "job.key"
        self.assertEqual(self.succeed("key", str(path)), "")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(path.stat().st_size, 32)
        key = path.read_bytes()
        self.fail_with(1, ("job.key", "exists"), "key", str(path))
        self.assertEqual(path.read_bytes(), key)
        self.fail_with(1, "Not a directory", "key", str(path / "below"))
        self.fail_with(2, "FILE", "key")

    def serve(self, stderr=subprocess.DEVNULL, **more):
        """A server that listens."""
        server = subprocess.Popen([COMMAND, "serve", "--address", f"unix:{self.folder}/s", "--devices", "cpu:0"],
                                  stdout=subprocess.PIPE, stderr=stderr, text=True, **more)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.kill)
        self.assertIn("listens at", server.stdout.readline())
        return server

    def test_a_server_leaves_cores_to_those_that_run(self):
        self.assertEqual(os.sched_getscheduler(self.serve().pid), os.SCHED_BATCH)

    def test_a_server_ends_by_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            server = self.serve()
            server.send_signal(number)
            self.assertEqual((server.wait(30), list(self.folder.iterdir())), (0, []))
        server = self.serve(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # as nohup
        server.send_signal(signal.SIGHUP)
        self.succeed("devices", f"remote:unix:{self.folder}/s")
        server.terminate()
        self.assertEqual(server.wait(30), 0)

    def test_the_reader_of_a_servers_log_may_end(self):
        server = self.serve(stderr=subprocess.STDOUT)
        server.stdout.close()
        for _ in range(2):  # each program is a line of the log
            self.succeed("devices", f"remote:unix:{self.folder}/s")
        server.terminate()
        self.assertEqual(server.wait(30), 0)

    def test_manual(self):
        from command import SOURCE
        try:
            done = subprocess.run(["man", "--warnings", "-l", f"{SOURCE}/man/choir.1"], check=True,
                                  capture_output=True, text=True, env={"MANWIDTH": "80",
                                                                       "PATH": "/usr/bin:/bin"})
        except (OSError, subprocess.CalledProcessError) as why:
            self.skipTest(f"no man: {why}")
        self.assertEqual(done.stderr, "")
        for word in ("--train-examples", "--devices", "--widths", "CHOIR_KERNELS", "all-reduce",
                     "CHOIR_DATA_DIR"):
            self.assertIn(word, done.stdout.replace("\u2010", "-").replace("\u2212", "-"))


main()

"""The examples run and do what their comments say."""

import glob
import gzip
import json
import os
import pathlib
import re
import subprocess

from command import COMMAND, EXAMPLES, SOURCE, Case, main


class Examples(Case):
    def example(self, name):
        done = subprocess.run([f"{EXAMPLES}/{name}"], cwd=self.folder, capture_output=True, text=True,
                              timeout=250, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), name)
        return done.stdout

    def numbers(self, name):
        return [float(n) for n in re.findall(r"-?\d+\.?\d*", self.example(name))]

    def test_programs_in_the_documentation_are_the_examples(self):
        shown = 0
        for page in [f"{SOURCE}/README.md", *glob.glob(f"{SOURCE}/docs/*.md")]:
            text = pathlib.Path(page).read_text(encoding="utf-8")
            for name, code in re.findall(r"<!-- examples/(\w+\.c) -->\n```c\n(.*?)```", text, re.S):
                with open(f"{SOURCE}/examples/{name}", encoding="utf-8") as file:
                    self.assertEqual(code, file.read(), f"{page}: {name}")
                shown += 1
        self.assertGreater(shown, 0)

    def test_all_are_tested(self):
        names = {name[:-2] for name in os.listdir(f"{SOURCE}/examples") if name.endswith(".c")}
        tested = {name[5:] for name in dir(self) if name.startswith("test_")}
        # One is tested with mnist, the other in tests/mpi.
        self.assertEqual(names - tested, {"predict", "in_mpi_program"})

    def test_mnist(self):
        os.symlink(f"{SOURCE}/data", self.folder / "data")
        lines = self.example("mnist").splitlines()
        self.assertEqual(len(lines), 3)
        self.assertGreater(float(re.search(r"([\d.]+) % of the test set", lines[-1]).group(1)), 90)
        named = self.example("predict").split()
        self.assertEqual(len(named), 20)
        right = sum(int(digit) == label for digit, label in zip(named, self.labels(8000, 20)))
        self.assertGreaterEqual(right, 17)

    def test_coordinator(self):
        cluster = {"chief": [f"unix:{self.folder}/c"], "ps": [f"unix:{self.folder}/s"], "worker": ["", ""]}
        tasks = [("ps", 0), ("worker", 0), ("worker", 1), ("chief", 0)]
        jobs = [subprocess.Popen([f"{EXAMPLES}/coordinator"], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(COMMAND), "TF_CONFIG": json.dumps(
                                     {"cluster": cluster, "task": {"type": kind, "index": index}})})
                for kind, index in tasks]
        done = [job.communicate(timeout=100) for job in jobs]
        self.assertEqual([job.returncode for job in jobs], [0] * len(tasks), done)
        losses = [float(loss) for loss in re.findall(r"epoch \d, 2 workers, loss ([\d.]+)", done[-1][0])]
        self.assertEqual(len(losses), 3, done)
        self.assertLess(losses[-1], 0.8 * losses[0])  # the order of updates differs from run to run

    def test_fit(self):
        os.symlink(f"{SOURCE}/data", self.folder / "data")
        lines = self.example("fit").splitlines()
        right = [float(re.search(r"([\d.]+) % right", line).group(1)) for line in lines]
        best = int(re.search(r"weights of epoch (\d)", lines[-1]).group(1))
        self.assertEqual(right[-1], right[best - 1])
        self.assertGreater(right[-1], 90)

    def labels(self, first, count):
        with gzip.open(f"{SOURCE}/data/mnist-10k-labels-idx1-ubyte.gz") as file:
            return file.read()[8 + first:8 + first + count]

    def test_tutorial(self):
        first = self.example("tutorial").splitlines()
        self.assertLess(float(re.search(r"test ([\d.]+)", first[-2]).group(1)), 0.01)
        again = self.example("tutorial").splitlines() # goes on from the checkpoint: nothing is left to do
        self.assertEqual(again[-1], first[-1])

    def test_custom_merge(self):
        self.assertIn("w is 1.500", self.example("custom_merge"))

    def test_custom_op(self):
        self.assertIn("is right", self.example("custom_op"))

    def test_four_steps(self):
        self.assertIn("w is 2.500", self.example("four_steps"))

    def test_heat_pinn(self):
        error = float(re.search(r"relative error ([\d.]+) %", self.example("heat_pinn")).group(1))
        self.assertLess(error, 2)

    def test_in_simulation(self):
        losses = self.numbers("in_simulation")[1::2]
        self.assertEqual(len(losses), 5)
        self.assertLess(losses[-1], losses[0])

    def test_other_gradients(self):
        self.assertEqual(self.example("other_gradients"),
                         "w is 1.000 -2.000 3.000, bias 4.000\nthe library has 0 blocks in use\n")

    def test_own_backward(self):
        before, after = self.numbers("own_backward")
        self.assertLess(after, before / 50)

    def test_three_plus_id(self):
        self.assertEqual(self.example("three_plus_id"), "10\n11\n")


main()

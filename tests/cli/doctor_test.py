"""choir doctor: what it finds, as lines and as JSON, and what it says of things that are set wrong."""

import json

from command import Case, main


class Doctor(Case):
    def look(self, **env):
        done = self.start("doctor", env=env)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_lines(self):
        said = self.look()
        for word in ("processors ", "instruction set ", "oneDNN ", "openmpi ", "mpich "):
            self.assertIn(word, said)

    def test_json(self):
        done = self.start("doctor", "--json")
        self.assertEqual(done.stdout.count("\n"), 1)
        found = json.loads(done.stdout)
        self.assertGreaterEqual(found["online"], found["cores"])
        self.assertGreater(found["cores"], 0)
        for mpi in ("openmpi", "mpich"):
            self.assertTrue(found[mpi] == "" or "MPI_THREAD_" in found[mpi], found)
        self.assertIsInstance(found["notes"], list)

    def test_what_is_set(self):
        if "oneDNN           yes" in self.look():
            self.assertIn("CHOIR_KERNELS=plain leaves oneDNN aside", self.look(CHOIR_KERNELS="plain"))

    def test_wrong_use(self):
        self.fail_with(2, "--probe", "doctor", "--probe", "lam")
        self.fail_with(2, "--jsn", "doctor", "--jsn")


main()

"""choir doctor: what it finds, as lines and as JSON, and what it says of things that are set wrong."""

import json

from command import Case, main


def steady(said):
    """The lines that nobody changes who works beside it, as with shared memory."""
    return [line for line in said.splitlines() if "/dev/shm" not in line]


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
        found = self.look()
        if "oneDNN           yes" in found:
            self.assertIn("CHOIR_KERNELS=plain disables oneDNN", self.look(CHOIR_KERNELS="plain"))
        # What gives a process a role among several changes nothing of what is found.
        self.assertEqual(steady(self.look(RANK="1", WORLD_SIZE="2", LOCAL_RANK="1")), steady(found))

    def test_what_is_set_wrongly(self):
        for env, texts in (
                ({"CHOIR_KERNELS": "fast", "CHOIR_OVERLAP": "maybe", "CHOIR_MPI": "lam", "CHOIR_GPU_AWARE_MPI": "1"},
                 ("CHOIR_KERNELS: 'fast' is unknown", "CHOIR_OVERLAP=maybe: unknown", "CHOIR_GPU_AWARE_MPI=1: unknown",
                  "CHOIR_MPI=lam: unknown")),
                ({"CHOIR_DEVICES": "no:0", "CHOIR_MPI": "/no/such.so"},
                 ("no:0", "CHOIR_MPI=/no/such.so: No such file"))):
            done = self.start("doctor", env=env)
            self.assertEqual(done.returncode, 1)
            for text in texts:
                self.assertIn(text, done.stdout)
            self.assertNotIn("build Choir again", done.stdout)

    def test_other_mpi(self):
        found = json.loads(self.start("doctor", "--json").stdout)
        if not (found["openmpi"] and found["mpich"] and "mpirun" in found):
            self.skipTest("needs both MPIs and an mpirun")
        other = "mpich" if found["mpirun"] == "Open MPI's" else "openmpi"
        self.assertIn(f"CHOIR_MPI={other}, but mpirun belongs to the other MPI: start programs with mpirun.{other}",
                      self.look(CHOIR_MPI=other))

    def test_wrong_use(self):
        self.fail_with(2, "--probe", "doctor", "--probe", "lam")
        self.fail_with(2, "--jsn", "doctor", "--jsn")


main()

"""Runs workers under the launcher of an MPI. Arguments: the MPI, the test, the suite's program, the
worker's program, the folder of the build, the command, the MPIs that there are."""

import contextlib
import fcntl
import functools
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MPI, TEST, SUITE, WORKER, BUILD, CHOIR = sys.argv[1:7]
MPIS = sys.argv[7:]
SECONDS = 250
ROLES = ("TF_CONFIG", "RANK", "WORLD_SIZE", "LOCAL_RANK", "CHOIR_MPI", "CHOIR_KERNELS",
         "CHOIR_INSTRUCTION_SET", "CHOIR_OVERLAP")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def launcher():
    for name in (f"mpirun.{MPI}", "mpirun"):
        if shutil.which(name):
            return [name, "--oversubscribe"] if MPI == "openmpi" else [name]
    return skip(f"no mpirun of {MPI}")


def environment(**more):
    env = {name: value for name, value in os.environ.items()
           if name not in ROLES and not name.startswith(("OMPI_", "PMI", "SLURM_"))}
    # Open MPI asks root for these. All workers are on this machine: Open MPI 5 warns where it finds no
    # way between its network addresses, and its btl "ofi" searches for a network for a second. What a
    # program leaves unread after a failure is no news, and nothing that UCX 1.18 may abort at in
    # MPI_Finalize. MPIs do not give back all of their memory.
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="^tcp,ofi",
               UCX_LOG_LEVEL="error", UCX_RCACHE_ENABLE="n", CHOIR_MPI=MPI, LD_LIBRARY_PATH=BUILD)
    env.update(more)
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    return env


def start(workers, *command, **more):
    """(exit status, what it said) of a program with so many workers; 0: without a launcher."""
    line = [*(launcher() + ["-n", str(workers)] if workers else []), *command]
    try:
        done = subprocess.run(line, capture_output=True, text=True, env=environment(**more),
                              timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as expired:
        sys.exit(f"{line}: not over after {SECONDS} s: {expired.stdout} {expired.stderr}")
    return done.returncode, done.stdout + done.stderr


@functools.cache
def takes_several():
    """Whether the launcher takes several programs: that of Debian 13's Open MPI (5.0.7) crashes, and leaves
    a folder that stops a later one with the same process number. MPICH's takes them, but at times fails where
    programs end at once."""
    if MPI != "openmpi":
        return True
    with tempfile.TemporaryDirectory() as folder:
        return start(0, *launcher(), "-n", "1", "true", ":", "-n", "1", "true", TMPDIR=folder)[0] == 0


def each(*lines):
    """The line that starts a worker with each of these."""
    words = launcher()
    if not takes_several():
        cases = "".join(f"{i}) exec {shlex.join(line)} ;; " for i, line in enumerate(lines))
        return [*words, "-n", str(len(lines)), "sh", "-c", f"case $OMPI_COMM_WORLD_RANK in {cases}esac"]
    for i, line in enumerate(lines):
        words += [*([":"] if i > 0 else []), "-n", "1", *line]
    return words


def need(good, line, said):
    if not good:
        sys.exit(f"{line}: {said}")


def suite(workers):
    status, said = start(workers, SUITE)
    need(status == 0, f"{workers} workers: exit {status}", said)


AT_ONCE = {"OMPI_MCA_odls_base_sigkill_timeout": "0"}  # else Open MPI gives a failed job's others a second


def refused(name, words, run):
    """What a run said that failed, with all of these words."""
    # MPICH's launcher at times drops what processes said that end at once, or how they ended.
    ends = [] # of each attempt: exit status, length of its output, seconds
    for attempt in range(20 if MPI == "mpich" else 4):
        time.sleep(0.1 * attempt) # on a busy machine it drops them more often
        begun = time.monotonic()
        status, said = run()
        if status != 0 and all(word in said for word in words):
            return said
        ends.append((status, len(said), round(time.monotonic() - begun, 2)))
        if MPI != "mpich" and (status == 0 or said.strip()):
            break
    return need(False, f"{name}: not all of {words}; each attempt's status, length of output and seconds: {ends}", said)


def must_fail(name, workers, words, *command, **more):
    return refused(name, words, lambda: start(workers, *command, **AT_ONCE, **more))


def config(workers, index):
    return json.dumps({"cluster": {"worker": [f"host{i}:1" for i in range(workers)]},
                       "task": {"type": "worker", "index": index}})


def roles():
    """Two workers whose tasks are in the environment, of each its own."""
    tasks = [json.dumps({"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": name, "index": 0}})
             for name in ("chief", "worker")]
    settings = [(f"TF_CONFIG={tasks[i]}", f"RANK={i}", f"WORLD_SIZE={2 - i}", f"LOCAL_RANK={i}") for i in range(2)]
    settings[1] += ("CHOIR_KERNELS=all",)  # which it is without being told
    status, said = start(0, *each(*(["env", *setting, WORKER] for setting in settings)))
    need(status == 0, f"chief and worker: exit {status}", said)
    for words in ("worker 0 of 2, chief 0, ", "worker 1 of 2, worker 0, "):
        need(words in said, f"no '{words}'", said)
    lines = [["env", f"RANK={i}", "WORLD_SIZE=2", f"LOCAL_RANK={i}", WORKER] for i in range(2)]
    status, said = start(0, *each(*lines))
    need(status == 0 and "worker 1 of 2, worker 1, " in said, f"of torchrun's variables: exit {status}", said)


def launch():
    status, said = start(2, WORKER, CHOIR_MPI="")  # the launcher's MPI
    need(status == 0, f"two workers: exit {status}", said)
    name = "Open MPI" if MPI == "openmpi" else "MPICH"
    for i in range(2):
        need(f"worker {i} of 2, worker {i}, mpi: {name}" in said, f"worker {i}", said)
    need("MPI_THREAD_" in said, "the thread level", said)
    parts = f"{os.path.dirname(WORKER)}/libmpi_parts_{MPI}.so"
    status, said = start(2, SUITE, "bytes arrive", CHOIR_MPI=parts)
    need(status == 0, "in parts of 4096 bytes, by its path", said)
    roles()
    for workers in (2, 4):
        status, said = start(workers, WORKER, "alike")
        need(status == 0 and f"worker 1 of {workers}" in said, f"{workers} that fail alike: exit {status}", said)
    for level in ("", "funneled", "serialized"):
        status, said = start(2, SUITE, f"host {level}")
        need(status == 0, f"a host with another level, {level}", said)
    status, said = start(2, SUITE, "late")
    need(status == 0, "one that is late", said)
    status, said = start(0, WORKER)
    need(status == 0 and "worker 0 of 1, worker 0, alone" in said, "without a launcher", said)
    status, said = start(0, WORKER, "mpi")
    need(status == 0 and f"worker 0 of 1, worker 0, mpi: {name}" in said, "one by itself", said)
    must_fail("two of one", 0, ["TF_CONFIG names 2 workers", "started alone", "mpirun -n 2"], WORKER,
              TF_CONFIG=config(2, 0))
    must_fail("three of two", 2, ["TF_CONFIG names 3 workers", "finds 2", "mpirun -n 3"], WORKER,
              TF_CONFIG=config(3, 1))
    must_fail("both worker 1", 2, ["makes this process worker 1", "worker 0"], WORKER,
              TF_CONFIG=config(2, 1))
    must_fail("another program", 2, ["worker 1 (", "program is \"another\""], WORKER, "differ")
    if MPI == "mpich":
        starved()
    must_fail("no such library", 2, ["no-such.so"], WORKER, CHOIR_MPI=f"{BUILD}/no-such.so")
    must_fail("MPI twice", 2, ["MPI was finalised in this process"], WORKER, "again")
    must_fail("one dies", 2, [], WORKER, "die")
    status, said = start(2, WORKER, "exit", **AT_ONCE)  # whatever the launcher thinks of it, it is over
    need("worker 0 of 2, worker 0" not in said, "one exits early, the other is content", said)
    must_fail("no MPI", 2, ["no libchoir-mpi for ", "set CHOIR_MPI to the path of one"], WORKER,
              CHOIR_MPI="", LD_LIBRARY_PATH="")
    if MPI == "openmpi":  # MPICH knows no slots
        must_fail("more than slots", 0, ["There are not enough slots"], "mpirun.openmpi", "--host", "localhost:1",
                  "-n", "2", WORKER)
    if MPI == MPIS[-1]:  # no MPI changes that
        differing()
    for other in MPIS:
        if other != MPI:
            must_fail("two MPIs", 2, [f"{other} is requested, but this program has loaded {MPI}"], SUITE, "bytes",
                      CHOIR_MPI=other)
            must_fail("the wrong MPI", 2, ["has started 2 processes", "finds 1", f"CHOIR_MPI={MPI}"],
                      WORKER, CHOIR_MPI=other)


def starved():
    """Workers that fail finalise MPI together, or MPICH loses what they say: also where one is late, and none has
    much of a processor."""
    with tempfile.NamedTemporaryFile("r") as finalised:
        late = ["env", f"LD_PRELOAD={os.path.dirname(WORKER)}/libmpi_starved.so", f"FINALISED={finalised.name}"]
        must_fail("starved", 0, ["worker 1 (", "program is \"another\""],
                  *each([*late, WORKER, "differ"], [*late, "LATE=", WORKER, "differ"]))
        need(len(finalised.read()) >= 2, "not all finalised", "")


def differing():
    """What must be the same of the processes: builds of the program, of Choir and of oneDNN, and settings."""
    folder = os.path.dirname(WORKER)
    shared, onednn = f"{folder}/mpi_worker_shared", f"{folder}/libmpi_other_onednn.so"
    library, soname = os.path.realpath(f"{BUILD}/libchoir.so"), os.readlink(f"{BUILD}/libchoir.so")
    train = [CHOIR, "train", *SHORT]
    with tempfile.TemporaryDirectory() as other:
        for path, name in ((WORKER, "program"), (library, soname)):
            shutil.copy(path, f"{other}/{name}")
            with open(f"{other}/{name}", "ab") as file:
                file.write(b"\0")
        size, longer = os.path.getsize(library), os.path.getsize(library) + 1
        for words, *lines in (
                ("program is \"a file of |, CRC-32C ", [WORKER], [f"{other}/program"]),
                (f"libchoir is \"a file of {longer} bytes, CRC-32C |, but \"a file of {size} bytes", [shared],
                 ["env", f"LD_LIBRARY_PATH={other}", shared]),
                ('CHOIR_KERNELS is "plain", but "all"', [WORKER], ["env", "CHOIR_KERNELS=plain", WORKER]),
                ('ONEDNN_MAX_CPU_ISA is "AVX", but ""', [WORKER], ["env", "ONEDNN_MAX_CPU_ISA=AVX", WORKER]),
                ('.lowest_instruction_set is "1", but "0"', train, [*train, "--lowest-instruction-set"]),
                ('library is "oneDNN 9.8.7 (654)", but "oneDNN ', train, ["env", f"LD_PRELOAD={onednn}", *train])):
            if "9.8.7" in words and not os.path.exists(onednn):
                continue
            must_fail(words, 0, ["worker 1 (", *words.split("|")], *each(*lines),
                      CHOIR_MPI=f"{BUILD}/libchoir-mpi-{MPI}.so")


def host():
    """A program with an MPI and gradients of its own: all workers learn the same, from data of all."""
    last = {}
    for workers in (1, 2, 3):
        status, said = start(workers, f"{BUILD}/examples/in_mpi_program_{MPI}")
        need(status == 0, f"{workers} workers: exit {status}", said)
        lines = sorted(said.splitlines())
        last[workers] = [line for line in lines if line.startswith("step 300: loss ")]
        need(len(lines) == 3 + workers and len(last[workers]) == 1, f"{workers} workers", said)
        need(float(last[workers][0].split()[-1]) < 1e-12, "the loss", said)
        for i in range(workers):
            need(f"worker {i}: w is 0.200 -0.400 0.200" in lines, f"worker {i}", said)
    need(last[1] != last[2], "two workers see what one does not", last)
    for other in MPIS:
        if other != MPI:
            must_fail("the other MPI's", 2, [f"{other} is requested, but this program has loaded {MPI}"],
                      f"{BUILD}/examples/in_mpi_program_{MPI}", CHOIR_MPI=other)


SHORT = ("--data", "digits", "--model", "mlp", "--widths", "16", "--epochs", "2", "--batch", "50",
         "--train-examples", "420", "--replicas", "4")


def trained(workers, *options, **more):
    """What a short training says."""
    line = [CHOIR, "train", *SHORT, *options]
    status, said = start(workers, *line, **more)
    need(status == 0, f"{workers} workers: {line}: exit {status}", said)
    return said


def known(said):
    return [line for line in said.splitlines() if line.startswith(("weights ", "test accuracy "))]


def mixed(*options):
    """(exit status, what it said) of two workers, of which the second has no more than x86-64."""
    line = [CHOIR, "train", *SHORT, *options]
    return start(0, *each(line, ["env", "CHOIR_INSTRUCTION_SET=x86-64", *line]))


def instructions():
    """Processors that differ are refused by name, or all take what all have, to the bits that has."""
    if "x86-64 avx" not in start(0, CHOIR, "doctor")[1]:
        skip("this processor has no more than any")
    refused("two kinds of processors", ["worker 1 (", 'its instruction set is "x86-64", but "x86-64 avx',
                                        ".lowest_instruction_set"], mixed)
    status, low = start(0, CHOIR, "train", *SHORT, CHOIR_INSTRUCTION_SET="x86-64")
    need(status == 0 and len(known(low)) == 2, "one process", low)
    status, said = mixed("--lowest-instruction-set")
    need(status == 0 and known(said) == known(low), f"not {known(low)}", said)
    need("2 workers (x86-64), " in said, "the instruction set", said)
    must_fail("an unknown set", 1, ["CHOIR_INSTRUCTION_SET: 'sse' is unknown; known: "], CHOIR, "train",
              *SHORT, CHOIR_INSTRUCTION_SET="sse")


def train():
    """The same weights from one process and from several, which speak with one voice."""
    alone = known(trained(0, "--devices", "cpu:0"))
    need(len(alone) == 2, "one process", str(alone))
    for workers, options in ((2, ("--devices", "cpu:0,cpu:1")), (4, ()), (3, ("--devices", "cpu:0"))):
        said = trained(workers, *options)
        need(known(said) == alone, f"{workers} workers: not {alone}", said)
        need(f"{workers} workers (" in said and "in total 4 replicas" in said, "the workers", said)
        need(said.count("epoch 1/2  loss ") == 1, "not one that speaks", said)
    for workers, options in ((2, ("--precision", "mixed_bf16", "--wire", "bf16")), (4, ("--precision", "mixed_f16")),
                             (3, ("--wire", "f16", "--devices", "cpu:0"))):
        alone = known(trained(0, *options, "--devices", "cpu:0"))
        need(known(trained(workers, *options)) == alone, f"{workers} workers, {options}: not {alone}", "")
    large = ("--devices", "cpu:0", "--widths", "256", "--wire", "bf16")  # enough to be exchanged beside the backward pass
    said = trained(2, *large, CHOIR_OVERLAP="on")
    need(known(said) == known(trained(0, *large)), "beside the backward pass", said)
    need("exchanged during the backward pass; " in said, "what it costs", said)
    if MPI == MPIS[-1]:  # no MPI changes that: the same exchanges of the same library
        stops_and_traces()
        command()
        refused_options()


def stops_and_traces():
    """What the command does beside a training, on several workers as on one."""
    early = ("--data", "digits:600", "--epochs", "12", "--rate", "0.05", "--patience", "1")
    said, one = trained(2, *early), trained(0, *early)
    need(known(said) == known(one) and said.count("/12  loss ") == one.count("/12  loss ") < 12, f"it stops as {one}", said)
    with tempfile.TemporaryDirectory() as folder:  # with other workers from the best epoch on, and from behind it
        trained(2, *early, "--epochs", str(one.count("/12  loss ") - 1), "--checkpoint", folder)
        for workers in (3, 2):
            said = trained(workers, *early, "--devices", "cpu:0", "--checkpoint", folder)
            need(known(said) == known(one) and "resuming from " in said, f"{workers} workers: not {one}", said)
    with tempfile.TemporaryDirectory() as folder:
        trained(2, "--data", "digits:600", "--replicas", "2", "--devices", "cpu:0", "--trace", f"{folder}/t.json")
        for name in ("t.json", "t.json.1"):
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                tracks = {e["args"]["name"] for e in json.load(file)["traceEvents"] if e["name"] == "thread_name"}
            need("program" in tracks, f"{name}: no track of its program", str(tracks))
        need(sorted(os.listdir(folder)) == ["t.json", "t.json.1"], "a file each", str(os.listdir(folder)))
    with tempfile.TemporaryDirectory() as folder:  # one trace of both, in which each waits for the other
        run, merged = f"{folder}/run", f"{folder}/all.json"
        said = trained(2, "--data", "digits:600", "--replicas", "2", "--devices", "cpu:0", "--run", run)
        plain = trained(0, "--data", "digits:600", "--replicas", "2")
        need(known(said) == known(plain), "--run changes the weights", said)
        status, said = start(0, CHOIR, "trace", run, "--output", merged)
        need(status == 0 and re.search(r"(?m)^worker 0, \S.* worker 1 +\d+ times", said) and
             re.search(r"(?m)^worker 1, \S.* worker 0 +\d+ times", said), "who waited for whom", said)
        with open(merged, encoding="utf-8") as file:
            need({e["pid"] for e in json.load(file)["traceEvents"]} == {1, 2}, "spans of both workers", said)
        status, said = start(0, CHOIR, "report", run)
        with open(f"{run}/report.html", encoding="utf-8") as file:
            need(status == 0 and "worker 1, replica 1" in file.read(), "a report of both workers", said)
    drawn = ("--data", "digits:420", "--replicas", "2")
    said = trained(2, *drawn, "--auto-shard", "auto")
    need(known(said) == known(trained(0, *drawn)), "nothing to share out", said)
    need("no files to divide: every worker reads all examples" in said, "nothing is said of it", said)
    must_fail("files of their own", 2, ["--auto-shard file", "--train-examples "], CHOIR, "train", *SHORT,
              "--auto-shard", "file")
    must_fail("fewer replicas", 3, ["2 replicas for 3 workers"], CHOIR, "train", "--data", "digits",
              "--replicas", "2")
    must_fail("a way to sum", 2, ["--operations ring: ", "2 processes"], CHOIR, "bench",
              "all-reduce", "--operations", "ring")
    must_fail("another strategy", 2, ["--strategy ", "several processes"], CHOIR, "train", "--data", "digits",
              "--strategy", "central_storage")


def command():
    """What else the command does between workers: one of them speaks, for all."""
    status, said = start(2, CHOIR, "bench", "all-reduce", "--most", "4096", "--rounds", "9", "--json")
    need(status == 0 and said.count('"bytes":') == 1 and '"us_median":' in said, f"sums: exit {status}", said)
    status, said = start(2, CHOIR, "bench", "all-reduce", "--most", "4096", "--rounds", "9", "--wire", "bf16", "--json")
    need(status == 0 and '"wire":"bf16"' in said.replace(" ", ""), f"updates: exit {status}", said)
    status, said = start(2, CHOIR, "bench", "train", "--seconds", "0.01", "--devices", "cpu:0", "--json")
    need(status == 0 and said.count("step_ms_median") == 1, f"steps: exit {status}", said)
    found = json.loads(said)
    need((found["workers"], found["devices"], found["replicas"]) == (2, 1, 2), "the workers", said)
    need(found["steps"] >= 8 and 0 < found["loss"] < 3, "it learns", said)
    status, said = start(2, CHOIR, "doctor", "--json")
    name = "Open MPI" if MPI == "openmpi" else "MPICH"
    found = json.loads(said)
    need(status == 0 and found["workers"] == 2 and name in found["transport"], f"doctor: exit {status}", said)
    status, said = start(2, CHOIR, "doctor")
    need(status == 0 and "\nworker 0 " in said and "\nworker 1 " in said, f"doctor: exit {status}", said)


def refused_options():
    """Workers with other options are refused before anything is read, by the first that differs."""
    train = [CHOIR, "train", "--data", "no-such", "--model", "gpt", "--dropout", "0.1", "--epochs", "2", "--json"]
    steps = [CHOIR, "bench", "train", "--case", "mlp128"]
    sums = [CHOIR, "bench", "all-reduce"]
    for words, *lines in (
            ('worker 2 (|) differs: --dropout is "0.5", but "0.1" at worker 0 (', train,
             [*train, "--devices", "cpu:0", "--cores", "2"], [*train, "--epochs", "3", "--dropout", "0.5"]),
            ('worker 1 (|) differs: --checkpoint is not given, but "a b" at worker 0 (',
             [*train, "--checkpoint", "a b"], train),
            ('worker 1 (|) differs: --wire is "bf16", but "f32" at worker 0 (', steps, [*steps, "--wire", "bf16"]),
            ('worker 1 (|) differs: --json is "on", but not given at worker 0 (', steps, [*steps, "--json"]),
            ('worker 1 (|) differs: --most is "8192", but "67108864" at worker 0 (', sums, [*sums, "--most", "8192"])):
        said = must_fail(words, 0, words.split("|"), *each(*lines))
        need("no-such" not in said, f"{words}: something was read", said)


def refused_files():
    """Workers whose data files are not the same are refused, by the first file that is not."""
    rows = [f"{i % 7},{i * i % 11},{'abc'[i % 3]}" for i in range(4000)]
    train = ("train", "--epochs", "1", "--data")
    with tempfile.TemporaryDirectory() as folder:
        def write(worker, name, text):
            os.makedirs(f"{folder}/{worker}", exist_ok=True)
            with open(f"{folder}/{worker}/{name}", "w", encoding="ascii") as file:
                file.write(text)
        for worker in range(2):
            for part in "xyz":
                write(worker, part + ".csv", "\n".join(["x,y,label", *rows]) + "\n")
            write(worker, "t.txt", "some text " * (400 + worker))
        rows[2] = "5,4,a"
        write(1, "y.csv", "\n".join(["x,y,label", *rows]) + "\n")
        for words, *data in (
                ("y.csv: on worker 1 (| it has | bytes and the checksum |, on worker 0 (", "csv:x.csv,y.csv,z.csv"),
                ("worker 1 (| reads 1 files, worker 0 (| 3;", "csv:[xyz].csv", "csv:x.csv"),
                ("t.txt: on worker 1 (| it has 4010 bytes |, on worker 0 (| it has 4000 bytes", "text:t.txt")):
            more = ("--model", "gpt" if "text" in data[0] else "mlp")
            if len(data) > 1:  # one name, of which worker 1 has fewer
                for part in "yz":
                    os.rename(f"{folder}/1/{part}.csv", f"{folder}/1/{part}")
            must_fail(words, 0, words.split("|"), *each(*(
                ["env", "-C", f"{folder}/{worker}", CHOIR, *train, data[0], *more] for worker in range(2))))


LONG = ("--data", "digits:600", "--model", "mlp", "--widths", "16", "--batch", "30", "--epochs", "12",
        "--replicas", "4", "--json")
STOPPED = 75
# CHOIR_STOPS: how many stops at random moments.
STOPS = int(os.environ.get("CHOIR_STOPS", "3"))


def workers_of(folder):
    """The processes of a training that saves there."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if os.path.basename(words[0]) == b"choir" and os.fsencode(folder) in words:
            found.append(int(pid))
    return found


def kill(process, number):
    with contextlib.suppress(ProcessLookupError):  # it has ended by itself
        os.kill(process, number)


def end_of(said):
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    end = [line for line in lines if line["event"] == "end"]
    need(len(end) == 1, "not one end", said)
    return end[0]["weights"], end[0]["loss"], end[0]["test_accuracy"]


def run_and_stop(workers, folder, after, options, launched=False):
    """(exit status, what it said) of a training one worker of which, or its launcher, is asked to stop,
    so many seconds after it has gone on or an epoch has ended."""
    line = [*launcher(), "-n", str(workers), CHOIR, "train", *LONG, "--checkpoint", folder, *options]
    with tempfile.NamedTemporaryFile("w+") as output:
        def said():
            with open(output.name, encoding="utf-8") as file:
                return file.read()

        with subprocess.Popen(line, stdout=output, stderr=subprocess.STDOUT, env=environment()) as running:
            begun = time.monotonic()
            while running.poll() is None and time.monotonic() - begun < SECONDS:
                if '"resume"' in said() or '"epoch"' in said():
                    break
                time.sleep(0.01)
            time.sleep(after)
            processes = workers_of(folder)
            if launched:
                running.terminate()
            elif len(processes) == workers:
                kill(random.choice(processes), random.choice((signal.SIGTERM, signal.SIGINT)))
            try:
                running.wait(SECONDS)
            except subprocess.TimeoutExpired:
                for process in workers_of(folder):
                    kill(process, signal.SIGKILL)
                sys.exit(f"{line}: does not end: {said()}")
        while workers_of(folder) and time.monotonic() - begun < SECONDS:
            time.sleep(0.01)  # a launcher may be over before they are
        return running.returncode, said()


def checkpoint():
    """Stopped at any moment, by any worker, and gone on with by others: the weights of one that was not."""
    whole = end_of(start(0, CHOIR, "train", *LONG)[1])
    random.seed(7)
    with tempfile.TemporaryDirectory() as above:
        stops = 0
        for attempt in range(20 * STOPS):
            if stops >= STOPS:
                break
            folder = os.path.join(above, f"run-{attempt}")
            os.mkdir(folder)
            for workers, options in ((2, ()), (3, ("--devices", "cpu:0")), (2, ("--devices", "cpu:0,cpu:1"))):
                status, said = run_and_stop(workers, folder, random.uniform(0, 0.3), options)
                if status == 0:
                    break
                need(status == STOPPED, f"{workers} workers: exit {status}", said)
                need(said.count("stopped by a signal after step") == 1, "not one says that it stopped", said)
                stops += 1
            status, said = start(random.choice((0, 2)), CHOIR, "train", *LONG, "--checkpoint", folder)
            need(status == 0 and end_of(said) == whole, f"not {whole}", said)
        need(stops >= STOPS, "stops", str(stops))
        folder = os.path.join(above, "launcher")
        os.mkdir(folder)
        said = run_and_stop(2, folder, 0, (), launched=True)[1]  # it ends as it likes
        need("epoch" in said and not workers_of(folder), "the launcher was stopped", said)
        status, said = start(0, CHOIR, "train", *LONG, "--checkpoint", folder)
        need(status == 0 and end_of(said) == whole, f"not {whole}", said)
        folder = os.path.join(above, "run-0")
        with open(os.path.join(folder, ".lock"), "a", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            must_fail("two jobs", 2, ["is in use by"], CHOIR, "train", *LONG, "--checkpoint", folder)
        must_fail("another training", 2, ["weights differ"], CHOIR, "train", *LONG, "--checkpoint", folder,
                  "--widths", "17")


def hang():
    """A worker that is stopped is noticed after --timeout seconds, and named a second before."""
    with tempfile.TemporaryDirectory() as folder:
        line = [*launcher(), "-n", "2", CHOIR, "train", *SHORT, "--epochs", "100000", "--checkpoint", folder,
                "--checkpoint-every", "1000000", "--timeout", "3"]
        with tempfile.TemporaryFile("w+") as output, subprocess.Popen(
                line, stdout=output, stderr=subprocess.STDOUT, env=environment(**AT_ONCE)) as running:
            begun = time.monotonic()
            while len(workers_of(folder)) < 2 and time.monotonic() - begun < SECONDS:
                time.sleep(0.01)
            time.sleep(1.5)  # both are in steps
            stopped = max(workers_of(folder))
            kill(stopped, signal.SIGSTOP)
            begun = time.monotonic()
            try:
                running.wait(SECONDS)
            except subprocess.TimeoutExpired:
                running.kill()
            took = time.monotonic() - begun
            for process in workers_of(folder):
                kill(process, signal.SIGKILL)
            output.seek(0)
            said = output.read()
    need(running.returncode != 0 and 2.5 < took < 10, f"it took {took:.1f} s", said)
    who = re.search(rf"waited 2 s for (worker [01] \(.*, pid {stopped}\)) in .*; the timeout is 3 s", said)
    need(who is not None, f"no word before of the process {stopped}", said)
    need(re.search(rf"waited 3\.\d s for {re.escape(who[1])} in ", said) is not None, f"the failure does not name {who[1]}", said)


def data():
    """Workers with unequal data stop together, each with all that it has."""
    status, said = start(3, WORKER, "data")
    need(status == 0, f"exit {status}", said)
    for i in range(3):
        need(f"worker {i} read {5 + 7 * i} examples in 14 steps" in said, f"worker {i}", said)
    files()
    refused_files()


def files():
    """Each process reads files of its own, and goes on from its own place in the middle of an epoch."""
    with tempfile.TemporaryDirectory() as folder:
        random.seed(3)
        for part, rows in enumerate((90, 50)):
            with open(os.path.join(folder, f"part-{part}.csv"), "w", encoding="ascii") as file:
                file.write("a,b,label\n")
                for label in random.choices(range(3), k=rows):
                    file.write(f"{random.random() + label:.3f},{random.random() - label:.3f},{label}\n")
        kept = os.path.join(folder, "kept")
        line = [CHOIR, "train", "--data", f"csv:{folder}/part-*.csv", "--auto-shard", "file", "--train-examples",
                "140", "--model", "mlp", "--widths", "8", "--batch", "20", "--epochs", "1", "--replicas", "2",
                "--show-split", "--checkpoint", kept]
        status, said = start(2, *line, "--checkpoint-every", "3", "--keep", "9")
        whole = [line for line in said.splitlines() if line.startswith("weights ")]
        need(status == 0 and len(whole) == 1, f"exit {status}", said)
        for worker, more in enumerate((" (this worker)", "")):  # the chief speaks
            need(f"worker {worker} reads files of its own: {folder}/part-{worker}.csv{more}\n" in said,
                 "who reads what", said)
        for step in os.listdir(kept):
            if step.startswith("step-") and step != "step-3":
                shutil.rmtree(os.path.join(kept, step))
        must_fail("fewer workers", 0, ["is of 2 workers under FILE, here it is one for all"], *line)
        status, said = start(2, *line)
        need(status == 0 and "after step 3" in said and whole[0] in said.splitlines(), f"not {whole}", said)
    status, said = start(2, CHOIR, "train", "--data", "digits:20", "--auto-shard", "auto", "--train-examples", "20",
                         "--model", "mlp", "--widths", "4", "--epochs", "1", "--replicas", "2", "--json")
    need(status == 0 and '"auto_shard":"data","fell_back":1' in said.replace(" ", ""), "nothing is said of it", said)


if MPI == "none":
    skip("no MPI was found when this was configured")
{"suite2": lambda: suite(2), "suite4": lambda: suite(4), "launch": launch, "host": host,
 "train": train, "instructions": instructions,
 "checkpoint": checkpoint, "hang": hang, "data": data}[TEST]()

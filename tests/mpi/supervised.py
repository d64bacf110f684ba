"""`choir run` with real processes. Arguments: the MPI (or none), the test, the command, the folder of the
build. The long campaigns end with N: `kills` kills workers at random moments, `stops` stops them, `worker-kills`
kills workers of coordinators' jobs, `leavings` ends jobs in all ways. They print their figures as JSON."""

import contextlib
import fcntl
import functools
import json
import os
import pathlib
import pty
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import termios
import time

MPI, TEST = sys.argv[1:3]
CHOIR, BUILD = (os.path.abspath(path) for path in sys.argv[3:5])
MORE = sys.argv[5:]
SECONDS = 120
WORKERS = 1 if MPI == "none" else 4
HOSTS = ["--hosts", "a:4", "--address", "127.0.0.1"] if MPI == "none" else []
ROLES = ("TF_CONFIG", "RANK", "WORLD_SIZE", "LOCAL_RANK", "CHOIR_MPI", "CHOIR_KERNELS",
         "CHOIR_INSTRUCTION_SET", "CHOIR_OVERLAP")


def environment(**more):
    """As in run.py: Open MPI asks root for two variables, and all workers are on this machine."""
    env = {name: value for name, value in os.environ.items()
           if name not in ROLES and not name.startswith(("OMPI_", "PMI", "SLURM_"))}
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="^tcp,ofi",
               UCX_LOG_LEVEL="error", UCX_RCACHE_ENABLE="n", LD_LIBRARY_PATH=BUILD)
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    env.update(more)
    return env


class Job:
    """A running `choir run`, in a folder of its own."""

    def __init__(self, *options, program, workers=WORKERS, mpi=MPI, folder=None, terminal=None, **more):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp())
        self.events_file = self.folder / "events"
        self.sockets = self.folder / "sockets"
        self.sockets.mkdir(exist_ok=True)
        self.mark = f"supervised-{os.getpid()}-{random.random()}"
        line = [CHOIR, "run", "-n", str(workers), "--mpi", mpi, "--events", str(self.events_file), *options,
                "--", *program]
        self.output = open(self.folder / "output", "w+")
        at_terminal = {"start_new_session": True, "pass_fds": (terminal,),
                       "preexec_fn": lambda: fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)} if terminal else {}
        self.process = subprocess.Popen(line, cwd=self.folder, stdout=self.output, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, env=self.environment(**more), **at_terminal)

    def environment(self, **more):
        return environment(MARK=self.mark, XDG_RUNTIME_DIR=str(self.sockets), **more)

    def said(self):
        return (self.folder / "output").read_text(errors="replace")

    def events(self, *kinds, attempt=None):
        try:
            lines = self.events_file.read_text().splitlines(True)
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return [e for e in found if (not kinds or e["event"] in kinds) and attempt in (None, e["attempt"])]

    def until(self, what, seconds=SECONDS):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = what()
            if found:
                return found
            time.sleep(0.005)
        self.process.kill()
        return sys.exit(f"not within {seconds} s: {self.said()[-3000:]} {self.events()[-3:]}")

    def wait_for(self, kind, attempt=None):
        return self.until(lambda: self.events(kind, attempt=attempt))[0]

    def started(self, attempt=1):
        """The workers' processes once the first step of an attempt has begun."""
        self.wait_for("step", attempt)
        found = self.until(lambda: [e for e in [self.events("started", attempt=attempt)] if len(e) == WORKERS])
        return {e["worker"]: e["pid"] for e in found[0]}

    def end(self, seconds=SECONDS):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return sys.exit(f"not over after {seconds} s: {self.said()[-3000:]}")

    def left(self):
        """Sockets and processes of the job: all processes have its mark in their environment."""
        found = list(self.sockets.glob("choir/*"))
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.mark.encode() in path.read_bytes():
                    found.append((path.parent / "cmdline").read_bytes())
            except OSError:
                continue
        return found

    def need_none_left(self):
        """Seconds until no process is left."""
        begin = time.monotonic()
        while self.left():
            if time.monotonic() > begin + 5:
                sys.exit(f"left after 5 s: {self.left()}")
            time.sleep(0.005)
        return time.monotonic() - begin

    def need(self, status, *facts):
        found = self.end()
        said = self.said()
        if found != status:
            sys.exit(f"exit {found}, not {status}: {said[-3000:]}")
        for fact in facts:
            if fact not in said:
                sys.exit(f"no '{fact}' in {said[-3000:]}")
        self.need_none_left()
        return said


def training(epochs, folder, *options):
    return [CHOIR, "train", "--model", "mlp", "--data", "digits:500", "--batch", "32", "--replicas", "4",
            "--epochs", str(epochs), "--checkpoint", f"{folder}/saved", "--checkpoint-every", "5", *options]


def weights(said):
    found = re.findall(r"\[0\] weights ([0-9a-f]{16})", said)
    return found[-1] if found else sys.exit(f"no weights in {said[-3000:]}")


@functools.cache
def undisturbed(epochs):
    with tempfile.TemporaryDirectory() as folder:
        job = Job(program=training(epochs, folder), folder=folder)
        return weights(job.need(0))


def first_step(job, attempt):
    """When an attempt began, and when its first step did."""
    return [job.wait_for(kind, attempt)["time"] for kind in ("attempt", "step")]


def pick_victim(job, attempt, rng, number):
    """Sends a signal to a random worker within the second after the first step of an attempt. (when, worker)"""
    pids = job.started(attempt)
    time.sleep(rng.random())
    worker = rng.choice(sorted(pids))
    when = time.monotonic()
    try:
        os.kill(pids[worker], number)
    except ProcessLookupError:
        return None  # the training has ended
    return when, worker


def lose(n, seed, epochs, number, words, *options):
    """Loses n workers by a signal, and compares the weights. Seconds to the name, to the first new step, and from
    each attempt's begin to its first step."""
    rng, named, stepped, loading = random.Random(seed), [], [], []
    expected = undisturbed(epochs)
    with tempfile.TemporaryDirectory() as folder:
        job = Job("--restarts", str(n + 1), *options, program=training(epochs, folder), folder=folder)
        for attempt in range(1, n + 1):
            hit = pick_victim(job, attempt, rng, number)
            if hit is None:
                break
            when, worker = hit
            failure = job.until(lambda: job.events("failure", attempt=attempt) or job.process.poll() is not None)
            if failure is True:
                break
            failure = failure[0]
            if failure["worker"] != worker or words not in failure["why"]:
                sys.exit(f"worker {worker} was lost: {failure}")
            named.append(failure["time"] - when)
            begin, step = first_step(job, attempt + 1)
            stepped.append(step - when)
            loading.append(step - begin)
        said = job.need(0)
        if weights(said) != expected:
            sys.exit(f"weights {weights(said)}, undisturbed {expected}, after {len(named)} losses")
    if not named:
        sys.exit("the training ended before a worker was lost")
    return named, stepped, loading


def figures(what, seconds, at_most=None):
    """A line of JSON. Quantiles are the next larger of the values."""
    values = sorted(1e3 * value for value in seconds)
    n = len(values)
    line = {"what": what, "mpi": MPI, "workers": WORKERS, "n": n, "unit": "ms"}
    for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1)):
        line[name] = round(values[max(0, -(-int(1000 * part) * n // 1000) - 1)], 1)
    if at_most is not None:
        line["at_most"] = 1e3 * at_most
    print(json.dumps(line), flush=True)


def kill():
    named, stepped, _ = lose(2, 7, 4 if WORKERS > 1 else 40, signal.SIGKILL, "killed by SIGKILL")  # one worker is fast
    figures("a killed worker is named", named)
    figures("the first new step", stepped)


def campaign(n, number, words, *options):
    """At most 25 losses in one training."""
    all_ = [], [], []
    while len(all_[0]) < n:
        more = lose(min(25, n - len(all_[0])), 100 + len(all_[0]), 60, number, words, *options)
        for values, found in zip(all_, more):
            values += found
        print(f"{MPI}: {len(all_[0])} lost, weights equal", file=sys.stderr, flush=True)
    return all_


def kills(n):
    named, stepped, loading = campaign(n, signal.SIGKILL, "killed by SIGKILL")
    figures("a killed worker is named", named, 0.05)
    figures("the first new step", stepped)
    figures("from the begin of an attempt to its first step", loading)
    figures("the first new step, without this", [a - b for a, b in zip(stepped, loading)], 1.5)


def stops(n):
    named, _, _ = campaign(n, signal.SIGSTOP, "it is stopped", "--lost-after", "1")
    figures("a stopped worker is named after the time-out", [value - 1 for value in named], 0.5)


def leavings(n):
    """How long processes are left after jobs have ended: by themselves, by signals, by SIGKILL to each part."""
    rng, took = random.Random(9), {}
    for i in range(n):
        way = ("success", "worker", "SIGTERM", "SIGINT twice", "choir run", "launcher", "agent")[i % 7]
        with tempfile.TemporaryDirectory() as folder:
            job = Job(program=training(1 if way == "success" else 10000, folder), folder=folder)
            if way != "success":
                pids = job.started()
                time.sleep(rng.random() / 2)
                end_job(job, way, rng.choice(sorted(pids.values())))
            job.end()
            took.setdefault(way, []).append(job.need_none_left())
    for way, seconds in took.items():
        figures(f"processes are left: {way}", seconds, 5)


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def end_job(job, way, pid):
    if way == "worker":
        os.kill(pid, signal.SIGKILL)
    elif way == "agent":
        os.kill(parent_of(pid), signal.SIGKILL)
    elif way == "launcher":  # of all workers, or else of one
        children = pathlib.Path(f"/proc/{job.process.pid}/task/{job.process.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
    elif way == "choir run":
        job.process.kill()
    else:
        job.process.send_signal(signal.SIGINT if way == "SIGINT twice" else signal.SIGTERM)
        if way == "SIGINT twice":
            job.until(lambda: "to save" in job.said() or job.process.poll() is not None)
            job.process.send_signal(signal.SIGINT)


def stop():
    """A stopped worker is named within the time-out and half a second."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job("--lost-after", "1", program=training(10000, folder), folder=folder)
        pids = job.started()
        worker = max(pids)
        when = time.monotonic()
        os.kill(pids[worker], signal.SIGSTOP)
        failure = job.wait_for("failure")
        late = failure["time"] - when
        said = job.need(1, f"worker {worker} (", "sent no heartbeat for 1.", "it is stopped")
        # On a busy machine the last heartbeat is older than the stop; make kills measures it.
        if failure["worker"] != worker or not 0.5 < late < 10:
            sys.exit(f"named after {late} s: {said[-2000:]}")
    with tempfile.TemporaryDirectory() as folder:  # SIGTERM: all save and stop; then it goes on
        job = Job("--lost-after", "60", program=training(10000, folder), folder=folder)
        job.started()
        state = subprocess.run([CHOIR, "status", str(job.process.pid)], capture_output=True, text=True,
                               env=job.environment(), timeout=20, check=False)
        if state.returncode != 0 or f"worker {WORKERS - 1} (" not in state.stdout:
            sys.exit(f"choir status: {state}")
        job.process.send_signal(signal.SIGSTOP)
        for name in ([], [str(job.process.pid)]):
            state = subprocess.run([CHOIR, "status", *name], capture_output=True, text=True, env=job.environment(),
                                   timeout=20, check=False)
            if state.returncode != 1 or f"job {job.process.pid} does not answer" not in state.stderr:
                sys.exit(f"choir status of a stopped choir run: {state}")
        job.process.send_signal(signal.SIGCONT)
        job.process.send_signal(signal.SIGTERM)
        job.need(75, "stopped by a signal after step")


def ends():
    """Programs that end wrongly, twice in the same way, or without a record."""
    cluster = [CHOIR, "train", "--data", "nowhere.csv"]
    Job("--restarts", "3", program=cluster).need(1, "nowhere.csv", "same way twice", "failed: ")
    Job(program=["sh", "-c", "exit 0"]).need(1, "exited with status 0", "choir_cluster_new")
    Job(program=["sh", "-c", "kill -SEGV $$"]).need(1, "killed by SIGSEGV")
    Job(program=["./no-such-program"]).need(1, "no-such-program", "No such file")
    Job("--events", "/no/such/folder/events", program=["true"]).need(1, "--events /no/such/folder/events: No such")
    with tempfile.TemporaryDirectory() as folder:
        job = Job("--events", "/dev/full", program=training(1, folder), folder=folder)
        weights(job.need(1, "--events /dev/full: write failed"))
        Job("--events", "/dev/full", program=["false"], folder=folder).need(1, "--events /dev/full: write failed")
    # Orphans in sessions of their own end with the job.
    Job(program=["sh", "-c", "setsid sleep 1000 & exit 3"]).need(1, "exited with status 3")
    job = Job(program=["sleep", "1000"])
    job.wait_for("started")
    job.process.send_signal(signal.SIGTERM)
    job.need(128 + signal.SIGTERM, "stops")
    job = Job(program=["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"])
    job.until(lambda: "ready" in job.said())
    job.process.send_signal(signal.SIGTERM)
    job.until(lambda: "to save" in job.said())
    job.process.send_signal(signal.SIGINT)
    job.need(128 + signal.SIGINT)
    job = Job(program=["sh", "-c", "sleep 1000 & setsid sleep 1000"])
    job.wait_for("started")
    time.sleep(0.2)
    job.process.kill()
    job.process.wait()
    job.need_none_left()


def asynchronous(epochs, folder, *options):
    return [CHOIR, "train", "--strategy", "parameter_server", "--model", "mlp", "--widths", "32", "--data",
            "digits:500", "--batch", "32", "--epochs", str(epochs), "--checkpoint", f"{folder}/saved",
            "--checkpoint-every", "40", *options]


def updates(folder):
    """The step of the newest checkpoint, and how many updates the servers' optimizer has made."""
    newest = max(pathlib.Path(folder).glob("saved/step-*"), key=lambda path: path.stat().st_mtime_ns)
    data = (newest / "state.safetensors").read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    first, end = json.loads(data[8:begin])["adam/step"]["data_offsets"]
    return int(newest.name[5:].split(".")[0]), int.from_bytes(data[begin + first:begin + end], "little")


def is_there(job, worker):
    """The worker's process, or None after it was lost."""
    found = [e for e in job.events("started", "lost") if e["worker"] == worker]
    return found[-1]["pid"] if found and found[-1]["event"] == "started" else None


def lose_workers(n, seed, epochs):
    """Kills n workers of a coordinator's job at random moments. Each step must be made once. Gives the seconds
    until they were named."""
    rng, named = random.Random(seed), []
    with tempfile.TemporaryDirectory() as folder:
        job = Job("--servers", "1", program=asynchronous(epochs, folder), workers=5, folder=folder)
        for i in range(n):
            job.wait_for("step")
            time.sleep(rng.random() / 4)
            worker = rng.randrange(2, 5)
            if job.process.poll() is not None:
                sys.exit(f"over after {i} kills: {job.said()[-3000:]}")
            pid = job.until(lambda w=worker: is_there(job, w))
            losses = len(job.events("lost"))
            when = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                job.until(lambda k=losses: len(job.events("lost")) > k)
                named.append(next(e["time"] for e in job.events("lost")[losses:] if e["worker"] == worker) - when)
        job.process.send_signal(signal.SIGTERM)
        said = job.need(75, "stopped by a signal after step")
        lost = len(job.events("lost"))
        newest, made = updates(folder)
        if newest != made or f"after step {newest};" not in said or lost < n / 2:
            sys.exit(f"{lost} kills, step {newest}, {made} updates: {said[-3000:]}")
        return named


def servers():
    """A coordinator's job: a worker's end is survived, a server's is not, and a restart goes on."""
    lose_workers(3, 5, 100000)
    with tempfile.TemporaryDirectory() as folder:
        job = Job("--servers", "2", "--restarts", "3", program=asynchronous(100000, folder), workers=5,
                  folder=folder)
        job.until(lambda: any(pathlib.Path(folder).glob("saved/step-*")))
        # Both at once; then one that ends by itself, twice, but not in the same step.
        for attempt, number, lost in ((1, signal.SIGKILL, (1, 2)), (2, signal.SIGSEGV, (2,)), (3, signal.SIGSEGV, (2,))):
            job.wait_for("step", attempt)
            time.sleep(0.3 * (attempt - 1))
            for event in job.events("started", attempt=attempt):
                if event["worker"] in lost:
                    with contextlib.suppress(ProcessLookupError):  # the job ends with the first that is lost
                        os.kill(event["pid"], number)
            failure = job.wait_for("failure", attempt)
            if failure["worker"] not in lost:
                sys.exit(f"servers {lost} were lost: {failure}")
        job.wait_for("step", 4)
        job.process.send_signal(signal.SIGTERM)
        said = job.need(75, "killed by SIGKILL", "restart 1 of 3 with 5 workers; the last checkpoint",
                        "resuming from", "restart 3 of 3", "the job was in step", "stopped by a signal after step")
        newest, made = updates(folder)
        told, resumed = (re.findall(rf"{words}(\d+)", said) for words in ("checkpoint is of step ", "resuming from .*-"))
        # A checkpoint may be newer than the last report about it.
        if newest != made or len(told) != 3 or any(int(a) > int(b) for a, b in zip(told, resumed, strict=True)):
            sys.exit(f"step {newest}, {made} updates: {said[-3000:]}")
    with tempfile.TemporaryDirectory() as folder:  # killed processes leave no sockets
        for way in ("SIGINT twice", "choir run"):
            job = Job("--servers", "2", program=asynchronous(100000, folder), workers=4, folder=folder)
            job.wait_for("step")
            end_job(job, way, None)
            # All may have saved before the second signal comes.
            found, wanted = job.end(), (75, 128 + signal.SIGINT) if way == "SIGINT twice" else (-signal.SIGKILL,)
            if found not in wanted:
                sys.exit(f"exit {found}, not one of {wanted}: {job.said()[-3000:]}")
            job.need_none_left()
            job.events_file.unlink()
    with tempfile.TemporaryDirectory() as folder:  # on two hosts, which agree on addresses and a key
        job = Job("--servers", "2", "--hosts", "127.0.0.1:2,me@127.0.0.2:3", "--address", "127.0.0.1", "--launcher",
                  script(folder, "shell", SHELL), program=asynchronous(3, folder), workers=5, folder=folder)
        weights(job.need(0, "[0] weights"))
        job = Job("--servers", "1", "--hosts", "127.0.0.1:3,bad", "--address", "127.0.0.1", "--launcher", f"{folder}/shell",
                  program=asynchronous(100000, folder), workers=4, folder=folder)
        job.until(lambda: "it does not start again" in job.said() or job.process.poll() is not None)
        job.process.send_signal(signal.SIGTERM)
        job.need(75, "worker 3 has not joined: shell to host bad exited with status 255", "it starts again")
        job = Job("--servers", "1", "--hosts", "a", "--min", "2", program=["true"], workers=4, folder=folder)
        job.need(1, "at least 2 workers with 1 servers given; a coordinator, the servers and at least 1 worker")
    with tempfile.TemporaryDirectory() as folder:  # without choir run; a worker has another option
        more = {"CHOIR_TASK": f"1@unix:{folder}/job"}
        started = [subprocess.Popen(asynchronous(2, folder, *(["--batch", "16"] if i == 3 else [])),
                                    env=environment(SLURM_PROCID=str(i), **more), stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True) for i in range(4)]
        said = [p.communicate(timeout=SECONDS)[0] for p in started]
        if [p.returncode for p in started] != [0, 0, 0, 1] or "--batch 16" not in said[3] or "weights" not in said[0]:
            sys.exit(f"{[p.returncode for p in started]}: {said}")


def progress():
    """On a terminal, one line is written again and again, and is gone at the end. Elsewhere there is none."""
    with tempfile.TemporaryDirectory() as folder:
        program = asynchronous(10, folder)
        said = Job("--servers", "1", program=program, workers=3, folder=folder).need(0, "[0] weights")
        if "workers, step" in said or "\r" in said or "\x1b" in said:
            sys.exit(f"progress without a terminal: {said[-3000:]!r}")
    with tempfile.TemporaryDirectory() as folder:
        keyboard, terminal = pty.openpty()
        process = subprocess.Popen([CHOIR, "run", "-n", "3", "--servers", "1", "--", *asynchronous(100, folder)],
                                   stdout=terminal, stderr=terminal, stdin=subprocess.DEVNULL, env=environment())
        os.close(terminal)
        raw = b""
        with contextlib.suppress(OSError):  # EIO: all its writers have ended
            while more := os.read(keyboard, 65536):
                raw += more
        os.close(keyboard)
        status, said = process.wait(SECONDS), raw.decode()
        steps = [int(step) for step in re.findall(r"\r3 of 3 workers, step (\d+)\x1b\[K", said)]
        # "\r" goes to the begin of the line, and "\x1b[K" erases what follows.
        shown = [row.rpartition("\r")[2].replace("\x1b[K", "") for row in said.replace("\r\n", "\n").split("\n")]
        if status != 0 or len(steps) < 2 or steps != sorted(steps) or shown.pop() != "" or \
                not all(re.match(r"\[[012]\] |choir run: ", row) for row in shown):
            sys.exit(f"exit {status}: {said[-3000:]!r}")
    with tempfile.TemporaryDirectory() as folder:  # a reader that pauses, such as less, ends nothing
        many = ["sh", "-c", f"yes | head -100000; exec {shlex.join(training(1, folder))}"]
        process = subprocess.Popen([CHOIR, "run", "--lost-after", "1", "--", *many], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment(), text=True)
        time.sleep(3)
        said = process.communicate(timeout=SECONDS)[0]
        if process.returncode != 0 or said.count("[0] y\n") != 100000 or "[0] weights" not in said:
            sys.exit(f"exit {process.returncode}: {said[-3000:]}")


def script(folder, name, text):
    path = pathlib.Path(folder) / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def hang():
    """A launcher that does not end, and one that starts nothing."""
    with tempfile.TemporaryDirectory() as folder:
        real = {"none": SHELL, "openmpi": "mpirun.openmpi \"$@\"\n", "mpich": "mpiexec.mpich \"$@\"\n"}[MPI]
        text = real.replace("exec ", "")
        slow = script(folder, "slow", f"trap told=late TERM\n{text}while :; do [ -z $told ] && sleep 0.01 || echo $told; done\n")
        job = Job("--launcher", slow, "--restarts", "1", *HOSTS, program=training(100000, folder), folder=folder)
        for attempt in (1, 2):
            os.kill(job.started(attempt)[0], signal.SIGKILL)
            job.wait_for("failure", attempt)
        said = job.need(1, "killed by SIGKILL", "gives up after 1 restart", "slow (pid ", "does not end; killed")
        if "late" in said:
            sys.exit(f"noise of a killed launcher: {said[-3000:]}")
    with tempfile.TemporaryDirectory() as folder:
        silent = script(folder, "silent", "trap '' TERM\nwhile :; do sleep 1; done\n")
        job = Job("--launcher", silent, *HOSTS, "--start-timeout", "1", program=["true"], folder=folder)
        job.need(1, f"0 of {WORKERS} workers have joined within 1 s")


# What a remote shell does, on this machine: it leaves out its options and the host.
SHELL = """while [ "${1#-}" != "$1" ]; do shift 2; done
host=$1; shift
case $host in
bad) echo "ssh: Could not resolve hostname bad: Name or service not known" >&2; exit 255 ;;
closed) echo "me@closed: Permission denied (publickey,password)." >&2; exit 255 ;;
esac
exec sh -c "$*"
"""


# A remote shell that asks, if it may and if there is somebody to ask.
ASKS = """case "$*" in
*BatchMode=yes*) ;;
*) if (: < /dev/tty) 2> /dev/null; then printf 'password: ' > /dev/tty; read -r word < /dev/tty; else sleep 1000; fi ;;
esac
echo "me@closed: Permission denied (publickey,password)." >&2
exit 255
"""


def password():
    """Nobody is asked for a password: not by ssh, and not by a launcher that calls it."""
    keyboard, terminal = pty.openpty()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}:{os.environ['PATH']}"
        script(folder, "ssh", ASKS)
        asks = script(folder, "asks", ASKS.replace("BatchMode", "NoSuchMode").replace("sleep 1000", ":"))
        for launcher in ([], ["--launcher", "ssh -p 22"], ["--launcher", asks]):
            job = Job("--hosts", "closed", "--address", "127.0.0.1", "--start-timeout", "10", *launcher,
                      program=["true"], workers=1, folder=folder, terminal=terminal, PATH=path)
            job.need(1, "to host closed exited with status 255", "me@closed: Permission denied")
    os.close(keyboard)
    os.close(terminal)


def ssh():
    password()
    with tempfile.TemporaryDirectory() as folder:
        shell = script(folder, "shell", SHELL)
        common = ["--launcher", shell, "--address", "127.0.0.1"]
        Job("--hosts", "a", "--launcher", shell + " -p 22" * 40, "--address", "127.0.0.1", program=training(1, folder)[:-4],
            workers=1, folder=folder).need(0, "[0] weights")
        many = training(2, folder)[:-4]
        job = Job("--hosts", "a,b:2", *common, program=many, workers=3, folder=folder)
        weights(job.need(0, "[2] weights"))
        for host, words in (("bad", "Could not resolve hostname"), ("closed", "Permission denied")):
            job = Job("--hosts", f"a,{host}", *common, program=["sleep", "100"], workers=2, folder=folder)
            job.need(1, f"to host {host} exited with status 255", words)
        # Without the lost host the job goes on with fewer workers.
        job = Job("--hosts", "a,bad", "--restarts", "1", "--min", "1", *common, program=many, workers=2,
                  folder=folder)
        job.need(0, "to host bad exited", "restart 1 of 1 with 1 worker")
        job = Job("--hosts", "a:1", *common, program=many, workers=2, folder=folder)
        job.need(1, "capacity for 1 workers; at least 2")
    # The real ssh asks nobody, and names the host.
    job = Job("--hosts", "no-such-host.invalid", "--address", "127.0.0.1", program=["true"], workers=1)
    job.need(1, "to host no-such-host.invalid exited with status 255")


# What srun does for the workers of one step, on this machine.
SRUN = {"openmpi": "exec env -u SLURM_JOB_ID mpirun.openmpi --oversubscribe -n \"$n\" \"$@\"",
        "mpich": "exec env -u SLURM_JOB_ID mpiexec.mpich -n \"$n\" \"$@\""}


def slurm():
    """In a Slurm job srun starts the workers, and without it the job says what is missing."""
    with tempfile.TemporaryDirectory() as folder:
        kind = {"openmpi": "--mpi=pmix", "mpich": "--mpi=pmi2"}[MPI]
        text = f'[ "$1 $2" = "{kind} -n" ] || exit 2\nn=$3\nshift 3\n[ "$n" = {WORKERS} ] || exit 3\n{SRUN[MPI]}\n'
        script(folder, "srun", text)
        job = Job(program=training(2, folder)[:-4], folder=folder, PATH=f"{folder}:{os.environ['PATH']}",
                  SLURM_JOB_ID="17")
        if weights(job.need(0)) != undisturbed(2):
            sys.exit("other weights under srun")
        job = Job(program=["true"], folder=folder, PATH=f"{folder}:{os.environ['PATH']}", SLURM_JOB_ID="17", workers=2)
        job.need(1, "srun exited with status 3")
    if not any(os.access(f"{where}/srun", os.X_OK) for where in os.environ["PATH"].split(":")):
        Job(program=["true"], SLURM_JOB_ID="17").need(1, "srun", "No such file")


if __name__ == "__main__":
    if TEST == "worker-kills":  # 50 in each job
        figures("a killed worker of a coordinator is named",
                [value for i in range(int(MORE[0]) // 50) for value in lose_workers(50, i, 10000000)], 0.05)
    elif MORE:
        {"kills": kills, "stops": stops, "leavings": leavings}[TEST](int(MORE[0]))
    else:
        {"kill": kill, "stop": stop, "ends": ends, "hang": hang, "ssh": ssh, "servers": servers, "slurm": slurm,
         "progress": progress}[TEST]()

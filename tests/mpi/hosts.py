"""The commands of docs/cluster.md, as they are written there, on hosts that are namespaces of this machine: each
has its own network, host name and /dev/shm. No key of a job may be seen meanwhile. Commands for two hosts begin with a line such as "# on b".
A script takes the place of ssh, another one that of srun. Arguments: the project's folder, the command, the
folder of the build, then the MPIs of this build. Exit status 77: the system makes no namespaces."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT, CHOIR, BUILD = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
MPIS = sys.argv[4:]
SECONDS = 120
NAMES = {"a": "10.97.0.1", "b": "10.97.0.2"}
TWO = "Commands for two hosts"
SECTIONS = {"choir run": 1, "Devices of other machines": 1, "Coordinator, workers and parameter servers": 3,
            TWO: 8}  # and listings
TABLES = {"choir run": 6, "Hosts": 4}  # and commands that start ./program

SSH = """printf '%s\\n' "$*" >> FOLDER/arguments
while [ "${1#-}" != "$1" ]; do case $1 in -[opl]) shift 2 ;; *) shift ;; esac; done
host=${1#*@}
shift
exec FOLDER/enter "$host" sh -c "$*"
"""
ENTER = """pid=$(cat FOLDER/"$1".pid)
shift
exec nsenter -t "$pid" -n -u -m -- "$@"
"""
# One step with a number for each process.
SRUN = """[ "$1" = -n ] || exit 2
n=$2
shift 2
for i in $(seq 0 $((n - 1))); do
	SLURM_JOB_ID=17 SLURM_STEP_ID=0 SLURM_NTASKS=$n SLURM_STEP_NUM_TASKS=$n SLURM_PROCID=$i SLURM_LOCALID=$i "$@" &
	last="$last $!"
done
for i in $last; do
	wait "$i" || exit 1
done
"""
# The process that keeps a host's namespaces.
INIT = """set -e
hostname "$1"
mount -t tmpfs tmpfs /dev/shm
mount --bind FOLDER/hosts /etc/hosts
ip link set lo up
echo there
exec sleep 100000
"""


def environment(folder):
    left_out = ("TF_CONFIG", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TMPDIR")
    env = {name: value for name, value in os.environ.items()
           if name not in left_out and not name.startswith(("CHOIR_", "OMPI_", "PMI", "SLURM_"))}
    env.update(MARK=str(folder), PATH=f"{folder}:{env['PATH']}", LD_LIBRARY_PATH=str(BUILD), OMPI_ALLOW_RUN_AS_ROOT="1",
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="self,tcp", OMPI_MCA_btl_tcp_if_include="10.97.0.0/24",
               OMPI_MCA_oob_tcp_if_include="10.97.0.0/24", UCX_LOG_LEVEL="error", UCX_TLS="self,tcp")
    return env


def write(path, text, folder):
    path.write_text(text.replace("FOLDER", str(folder)))
    path.chmod(0o755)


class Hosts:
    """Both hosts, which see the same files."""

    def __init__(self, folder):
        self.folder = folder
        self.started = []
        write(folder / "hosts", "127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in NAMES.items()), folder)
        for name, text in (("ssh", SSH), ("enter", ENTER), ("srun", SRUN), ("init", INIT)):
            write(folder / name, "#!/bin/sh\n" + text, folder)
        (folder / "choir").symlink_to(CHOIR)
        for name in NAMES:
            self.start(name)
        self.connect()

    def start(self, name):
        process = subprocess.Popen(["unshare", "-n", "-u", "-m", "--", str(self.folder / "init"), name],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.started.append(process)
        said = process.stdout.readline()
        if said != "there\n":
            print(f"skipped: this system makes no namespaces: {said.strip()}")
            self.end()
            sys.exit(77)
        (self.folder / f"{name}.pid").write_text(str(process.pid))

    def connect(self):
        pids = {name: (self.folder / f"{name}.pid").read_text() for name in NAMES}
        (a, b), line = NAMES, ["ip", "link", "add", "eth0", "netns"]
        subprocess.run([*line, pids[a], "type", "veth", "peer", "name", "eth0", "netns", pids[b]], check=True)
        for name, address in NAMES.items():
            enter = ["nsenter", "-t", pids[name], "-n", "ip"]
            subprocess.run([*enter, "addr", "add", f"{address}/24", "dev", "eth0"], check=True)
            subprocess.run([*enter, "link", "set", "eth0", "up"], check=True)

    def run(self, name, text, where, attempts=1):
        """Runs commands on a host, and gives what they have printed. Repeats them only where MPICH's launcher itself
        fails: a worker that comes late has to leave MPI_Finalize, which does not come back (mpi/mpi.c)."""
        # bash: %1 names a job there also without a terminal
        line = [str(self.folder / "enter"), name, "bash", "-e", "-c", f"cd {where}\n{text}"]
        with open(where / f"output.{name}", "a+") as output:
            begin, began = output.tell(), time.monotonic()
            process = subprocess.Popen(line, env=environment(self.folder), stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                status = f"none in {SECONDS} s"
            output.seek(begin)
            said = output.read()
        print(f"{time.monotonic() - began:.1f} s: {text.splitlines()[-1]}", flush=True)
        if status != 0 and attempts > 1 and "[mpiexec@" in said:
            return self.run(name, text, where, attempts - 1)
        if status != 0:
            sys.exit(f"exit status {status} on {name}:\n{text}\n{said[-3000:]}")
        return said

    def processes(self):
        """The number, the environment and the command line of each process."""
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                environ = path.read_bytes().split(b"\0")
                if f"MARK={self.folder}".encode() in environ:
                    yield int(path.parent.name), environ, (path.parent / "cmdline").read_bytes().split(b"\0")

    def end(self):
        for pid, _, _ in self.processes():  # in the background
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.kill()
            process.wait()


class Watch:
    """Looks for keys where other users or programs could read them, while commands run: on all command lines, and
    in the environment of programs. Only launchers and agents may have one there."""

    def __init__(self, hosts):
        self.hosts, self.over, self.found, self.programs, self.keyed = hosts, threading.Event(), set(), 0, 0
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def is_key(self, text):
        files = [path.read_bytes() for path in self.hosts.folder.glob("*/job.key")]
        return re.search(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", text) or any(key in text for key in files if key)

    def look(self):
        while not self.over.wait(0.05):
            for _, environ, line in self.hosts.processes():
                secrets = [text for text in environ if self.is_key(text)]
                program = line[1:2] in ([b"train"], [b"serve"]) or line[0].endswith(b"program")
                self.programs += program
                self.keyed += bool(secrets)
                if any(map(self.is_key, line)) or (program and secrets):
                    self.found.add((*line, *secrets))

    def end(self):
        self.over.set()
        self.thread.join()
        arguments = (self.hosts.folder / "arguments").read_bytes()
        if self.found or self.is_key(arguments) or not self.programs or not self.keyed:
            sys.exit(f"keys in {self.found}, ssh got {arguments[:500]}, {self.programs} programs, {self.keyed} keys")


def commands(page, section):
    """(host, commands) of a section's listings."""
    text = page.split(f"\n## {section}\n")[1].split("\n## ")[0]
    for listing in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
        host = re.match(r"# on (\w+)\n", listing)
        yield (host[1] if host else "a"), listing


def run_tables(hosts, page, folder):
    """The commands in the tables of two sections. All workers are on the hosts that a command names."""
    where = folder / "tables"
    where.mkdir()
    write(where / "program", "#!/bin/sh\necho on $(hostname)\n"
          "exec choir train --model mlp --data digits:200 --epochs 1 --replicas 4\n", folder)
    write(where / "hosts.txt", "a:2\nb slots=2\n", folder)
    weights = set()
    for section, number in TABLES.items():
        text = page.split(f"\n## {section}\n")[1].split("\n## ")[0]
        found = re.findall(r"`((?:choir run|mpirun) [^`]*\./program)`", text)
        if len(found) != number:
            sys.exit(f"{len(found)} commands in the table of \"{section}\", not {number}")
        for command in found:
            mpi = "mpich" if re.search("--mpi mpich|-hosts ", command.replace("--hosts", "")) else "openmpi"
            if mpi not in MPIS and "--mpi none" not in command and command != "choir run -- ./program":
                continue
            line = re.sub(r"^mpirun\b", f"mpirun.{mpi}", command)  # the system's choice is one of them
            said = hosts.run("a", line, where, attempts=2 if line.startswith("mpirun.mpich") else 1)
            workers = int((re.search(r"-n (\d)", command) or [0, 1])[1])
            places = [said.count(f"on {name}\n") for name in NAMES]
            if places != ([workers // 2] * 2 if "host" in command else [workers, 0]):
                sys.exit(f"{command}: workers on hosts: {places}: {said[-3000:]}")
            weights.update(re.findall(r"weights ([0-9a-f]{16})", said))
    if len(weights) != 1:
        sys.exit(f"weights of the tables' commands: {weights}")


def main():
    page = (ROOT / "docs/cluster.md").read_text()
    folder = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))  # which both hosts see
    hosts = Hosts(folder)
    watch = Watch(hosts)
    try:
        weights = set()
        for section, number in SECTIONS.items():
            found = list(commands(page, section))
            if len(found) != number:
                sys.exit(f"{len(found)} listings in \"{section}\", not {number}")
            for i, (host, text) in enumerate(found):
                where = folder / (section[:3] + ("" if section == TWO else str(i)))
                if not where.exists():
                    where.mkdir()
                    (where / "program").symlink_to(BUILD / "examples/coordinator")
                    if "choir key" not in text:
                        hosts.run("a", "choir key job.key", where)
                if "--mpi" in text and not set(re.findall(r"--mpi (\w+)", text)) <= set(MPIS):
                    continue
                said = hosts.run(host, text, where)
                if section == TWO and "parameter_server" not in text:
                    weights.update(re.findall(r"weights ([0-9a-f]{16})", said))
        if len(weights) != 1:
            sys.exit(f"on two hosts the weights should be those of one: {weights}")
        run_tables(hosts, page, folder)
        watch.end()
    finally:
        watch.over.set()
        hosts.end()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

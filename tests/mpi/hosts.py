"""The commands of docs/cluster.md, as they are written there, on hosts that are namespaces of this machine: each
has its own network, host name and /dev/shm. Commands for two hosts begin with a line such as "# on b".
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
import time

ROOT, CHOIR, BUILD = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
MPIS = sys.argv[4:]
SECONDS = 120
NAMES = {"a": "10.97.0.1", "b": "10.97.0.2"}
TWO = "Commands for two hosts"
SECTIONS = {"Devices of other machines": 1, "Coordinator, workers and parameter servers": 3, TWO: 8}  # and listings

SSH = """while [ "${1#-}" != "$1" ]; do case $1 in -[opl]) shift 2 ;; *) shift ;; esac; done
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

    def run(self, name, text, where):
        """Runs commands on a host, and gives what they have printed."""
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
        if status != 0:
            sys.exit(f"exit status {status} on {name}:\n{text}\n{said[-3000:]}")
        return said

    def end(self):
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):  # what runs in the background
            with contextlib.suppress(OSError):
                if f"MARK={self.folder}".encode() in path.read_bytes().split(b"\0"):
                    os.kill(int(path.parent.name), signal.SIGKILL)
        for process in self.started:
            process.kill()
            process.wait()


def commands(page, section):
    """(host, commands) of a section's listings."""
    text = page.split(f"\n## {section}\n")[1].split("\n## ")[0]
    for listing in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
        host = re.match(r"# on (\w+)\n", listing)
        yield (host[1] if host else "a"), listing


def main():
    page = (ROOT / "docs/cluster.md").read_text()
    folder = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))  # which both hosts see
    hosts = Hosts(folder)
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
    finally:
        hosts.end()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

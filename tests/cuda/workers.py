"""Two workers with two GPUs each give the weights of one process on one GPU: sums go through the host's memory,
or from GPU to GPU if the MPI takes memory of GPUs. Such an MPI is played by a layer (gpu_aware.c).
Arguments: the command choir, an MPI, and the layer for this MPI."""

import os
import re
import subprocess
import sys

TRAINING = ["train", "--model", "mlp", "--data", "digits:64", "--epochs", "1", "--replicas", "4", "--widths"]
SMALL, LARGE = "8", "600"  # the gradients of one fit into one round of messages


def weights(*command):
    """And how many messages the layer took from GPUs."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(command, env=environment, timeout=100, capture_output=True, text=True, check=False)
    found = re.findall(r"\bweights ([0-9a-f]{16})$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or len(found) != 1:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    taken = re.findall(r"gpu_aware: (\d+) messages", done.stdout + done.stderr)
    return found[0], sum(map(int, taken))


def main():
    choir, mpi, layer = sys.argv[1:]
    workers = [choir, "run", "-n", "2", "--mpi", mpi, "--"]
    aware = [*workers, "env", f"LD_PRELOAD={layer}"]
    refused = [*aware, "CHOIR_GPU_AWARE_MPI=off"]
    for width, command, takes in ((SMALL, workers, False), (LARGE, aware, True), (LARGE, refused, False)):
        one, _ = weights(choir, *TRAINING, width, "--devices", "gpu:0")
        two, taken = weights(*command, choir, *TRAINING, width, "--devices", "gpu:0,gpu:1")
        if one != two:
            sys.exit(f"the weights of two workers are {two}; those of one GPU are {one}")
        if takes != (taken > 0):
            sys.exit(f"{' '.join(command)}: {taken} messages had memory of GPUs")


main()

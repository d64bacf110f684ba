"""Two workers with two GPUs each give the weights of one process on one GPU: sums go through the host's memory.
Arguments: the command choir, and an MPI."""

import os
import re
import subprocess
import sys

TRAINING = ["train", "--model", "mlp", "--widths", "8", "--data", "digits:64", "--epochs", "1", "--replicas", "4"]


def weights(*command):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(command, env=environment, timeout=100, capture_output=True, text=True, check=False)
    found = re.findall(r"\bweights ([0-9a-f]{16})$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or len(found) != 1:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return found[0]


def main():
    choir, mpi = sys.argv[1:]
    one = weights(choir, *TRAINING, "--devices", "gpu:0")
    two = weights(choir, "run", "-n", "2", "--mpi", mpi, "--", choir, *TRAINING, "--devices", "gpu:0,gpu:1")
    if one != two:
        sys.exit(f"the weights of two workers are {two}; those of one GPU are {one}")


main()

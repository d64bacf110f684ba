"""The MPIs by which measurements start processes, each on a core of its own."""

import os

# The launcher, before the number of processes.
RUN = {
    "openmpi": ["mpirun.openmpi", "--bind-to", "core", "-np"],
    "mpich": ["mpirun.mpich", "-bind-to", "core", "-np"],
}
PACKAGES = {"openmpi": "openmpi-bin libopenmpi-dev", "mpich": "mpich libmpich-dev"}


def environment(**more):
    """The variables for a launcher: Open MPI asks root for two."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)

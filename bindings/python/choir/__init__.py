"""Choir from Python: strategies, replicas, tensors, layers and training of the C library, by cffi.

The operations of choir/op.h and choir/nn.h are in choir.op, under their names without "choir_":
choir.op.relu(x), choir.op.sum(x, choir.op.ALL_AXES).
"""

from . import op
from .library import Error, Status
from .model import Layer, Metric, Optimizer, layer, sequential
from .dataset import Dataset
from .strategy import Replica, Strategy, Variable
from .tensor import Tape, Tensor

__all__ = ["Dataset", "Error", "Layer", "Metric", "Optimizer", "Replica", "Status", "Strategy", "Tape", "Tensor",
           "Variable", "layer", "op", "sequential"]

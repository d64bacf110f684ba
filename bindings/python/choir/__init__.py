"""Choir from Python: strategies, replicas, tensors, layers and training of the C library, by cffi.

The operations of choir/op.h and choir/nn.h are in choir.op, under their names without "choir_":
choir.op.relu(x), choir.op.sum(x, choir.op.ALL_AXES).
"""

from . import op
from .checkpoint import Checkpoints
from .dataset import Dataset
from .fit import Event, Model
from .function import Function, function
from .layer import Layer, Metric, Optimizer, layer, sequential
from .library import Error, Status
from .strategy import Replica, Strategy, Variable, initializer, regularizer
from .tensor import Tape, Tensor

__all__ = ["Checkpoints", "Dataset", "Error", "Event", "Function", "Layer", "Metric", "Model", "Optimizer", "Replica", "Status", "Strategy", "Tape",
           "Tensor", "Variable", "function", "initializer", "layer", "op", "regularizer", "sequential"]

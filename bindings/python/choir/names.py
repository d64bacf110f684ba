"""What to say about an unknown name: the name of Choir that is near it, or that Keras' or PyTorch's name means."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

# By the name in small letters and digits: the answer to "did you mean", and what is different.
_SQUARES, _ABSOLUTE = "'mean_squared_error'?", "the function lambda y, z: choir.op.abs(y - z)?"
_HUBER = "the function lambda y, z: choir.op.huber(y, z, 1)?"
_CLASSES = "'sparse_softmax_cross_entropy'? It takes logits, so the model ends without a softmax."
_BINARY = "'sigmoid_cross_entropy'? It takes logits, so the model ends without a sigmoid."
LOSSES = {"mse": _SQUARES, "mseloss": _SQUARES, "mae": _ABSOLUTE, "l1loss": _ABSOLUTE, "meanabsoluteerror": _ABSOLUTE,
          "huber": _HUBER, "huberloss": _HUBER, "smoothl1loss": _HUBER,
          "crossentropyloss": _CLASSES, "sparsecategoricalcrossentropy": _CLASSES,
          "categoricalcrossentropy": _CLASSES + " Its labels are classes, as y.argmax(-1).",
          "binarycrossentropy": _BINARY, "bceloss": _BINARY, "bcewithlogitsloss": _BINARY,
          "kldivloss": "'kl_divergence'? It takes probabilities, also as predictions.",
          "kldivergence": "'kl_divergence'?", "sparsesoftmaxcrossentropysmoothed":
          "the function lambda y, z: choir.op.sparse_softmax_cross_entropy_smoothed(y, z, 0.1)?"}
METRICS = {"acc": "'accuracy'?", "sparsecategoricalaccuracy": "'accuracy'?", "mse": _SQUARES, "mae": "'mean_absolute_error'?",
           "categoricalaccuracy": "'accuracy'? Its labels are classes, as y.argmax(-1).", "r2score": "'r2'?",
           "rmse": "'root_mean_squared_error'?"}
OPTIONS = {"lr": "learning_rate", "eps": "epsilon", "alpha": "rho", "clipnorm": "global_clip_norm", "strides": "stride",
           "mode": "monitor"}
LAYERS = {"linear": "'dense'?", "maxpooling2d": "'max_pool2d'?", "averagepooling2d": "'average_pool2d'?",
          "avgpool2d": "'average_pool2d'?", "batchnorm2d": "'batch_normalization'?", "batchnorm1d": "'batch_normalization'?",
          "layernorm": "'layer_normalization'?", "groupnorm": "'group_normalization'?", "rmsnorm": "'rms_normalization'?",
          "globalaveragepooling2d": "'global_average_pool2d'?", "upsampling2d": "'upsample'?",
          "multiheadattention": "'self_attention'?", "relu": "layer('activation', 'relu')?"}


def unknown(what: str, value: object, known: Iterable[str], meant: dict[str, str] | None = None) -> ValueError:
    """The error of an unknown name, with the name that was probably meant."""
    known = list(known)
    plain = {re.sub("[^a-z0-9]", "", name.lower()): name for name in known}
    given = re.sub("[^a-z0-9]", "", str(value).lower())
    near = (meant or {}).get(given) or next((f"{plain[one]!r}?" for one in difflib.get_close_matches(given, plain, 1)), None)
    return ValueError(f"{what} {value!r} is unknown; ".lstrip() + (f"did you mean {near} Known: " if near else "known: ")
                      + ", ".join(known))

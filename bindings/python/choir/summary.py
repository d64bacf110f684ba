"""A table of a model's layers, as model.summary of Keras prints it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from .layer import Layer


def _rows(layer: Layer, depth: int) -> Iterator[tuple[str, str, int]]:
    """The layer and those in it: a text, its own variables, their number of elements."""
    inside = {v.name for one in layer.layers for v in one.variables}
    own = [v for v in layer.variables if v.name not in inside]
    yield ("  " * depth + layer._text, ", ".join(f"{v.name.rpartition('/')[2]} {list(v.shape)}" for v in own),
           sum(math.prod(v.shape) for v in own))
    for one in layer.layers:
        yield from _rows(one, depth + 1)


def summary(texts: Sequence[str], layer: Layer) -> str:
    """The table. texts are the model's name, loss and optimizer."""
    rows = list(_rows(layer, 0))
    widths = [max(len(row[i]) for row in [*rows, ("layer", "variables")]) for i in (0, 1)]  # type: ignore[arg-type]
    every = {v.name: v for v in layer.variables}.values()
    total = sum(math.prod(v.shape) for v in every)
    trained = sum(math.prod(v.shape) for v in every if v.trainable)
    lines = [f'Model "{texts[0]}"' + "".join(f", {text}" for text in texts[1:]),
             f"{'layer':{widths[0]}}  {'variables':{widths[1]}}  {'parameters':>12}",
             *(f"{text:{widths[0]}}  {variables:{widths[1]}}  {n or '':>12,}" if n else f"{text}" for text, variables, n in rows),
             f"{total:,} parameters, {trained:,} of them trainable"]
    return "\n".join(lines)

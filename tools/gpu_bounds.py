"""Compares the figures of tools/gpu-check with what is asked of libchoir-cuda. Argument: the file results.jsonl.
Prints a JSON line for each bound. The status is 1 if one is not met. Small nets, of a trial, have no verdict."""

import json
import sys

PLACES = 1024  # tokens of an example of gpt2

# The bound, the figure, its key, whose figure divides Choir's (None: Choir's alone), and the least or most.
BOUNDS = [
    ("tokens/s of GPT-2 beside PyTorch, compiled", "gpt2", "examples_per_s", "torch", "at_least", 1),
    ("tokens/s of GPT-2 beside llm.c", "gpt2", "tokens_per_s", "llm.c", "at_least", 1),
    ("examples/s of ResNet-50 beside PyTorch", "resnet50", "examples_per_s", "torch", "at_least", 0.95),
    ("step of mlp128 beside PyTorch, eager", "mlp128", "step_ms", "torch", "at_most", 0.3),
    ("microseconds to queue an operation", "launch", "us", None, "at_most", 3),
    ("memory of GPT-2 beside PyTorch", "gpt2", "memory_mib", "torch", "at_most", 0.8),
    ("memory of ResNet-50 beside PyTorch", "resnet50", "memory_mib", "torch", "at_most", 0.8),
]


def read(path):
    """Figures by net and library, and whether shares of a GPU gave the bits of one device."""
    figures, same = {}, None
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if "figure" in line:
                figures[line["figure"], line["by"].split()[0]] = line
            if line.get("phase") == "same_hash" and "status" in line:
                same = line["status"] == 0
    choir = figures.get(("gpt2", "choir"))
    if choir:
        choir["tokens_per_s"] = choir["examples_per_s"] * PLACES
    return figures, same


def judge(figures, row, trial):
    what, figure, key, other, side, bound = row
    value = figures.get((figure, "choir"), {}).get(key)
    by = figures.get((figure, other), {}).get(key) if other else 1
    if not value or not by:
        return {"bound": what, "skipped": f"no {key} of {other if value else 'choir'}"}
    ratio = value / by
    line = {"bound": what, "ratio": round(ratio, 4), side: bound}
    return line | ({"trial": True} if trial else {"met": ratio >= bound if side == "at_least" else ratio <= bound})


def main():
    figures, same = read(sys.argv[1])
    trial = any(line.get("small") for line in figures.values())
    lines = [judge(figures, row, trial) for row in BOUNDS]
    what = "the bits of replicas on shares of a GPU are those on one device"
    lines.append({"bound": what} | ({"skipped": "same_hash did not run"} if same is None else {"met": same}))
    for line in lines:
        print(json.dumps(line))
    sys.exit(any(line.get("met") is False for line in lines))


main()

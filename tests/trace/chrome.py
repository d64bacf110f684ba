"""Reads a Chrome trace as its viewers do and checks that it can be drawn: spans of one track lie in each
other or behind each other, every track has a name. Arguments: the file, and what is expected in it:
"empty", or the step that tests/trace/chrome_test.c records."""

import json
import sys

CATEGORIES = {"other", "compute", "wait", "reduce", "update", "input", "checkpoint"}

with open(sys.argv[1], encoding="utf-8") as file:
    trace = json.load(file)
expected = sys.argv[2] if len(sys.argv) > 2 else "step"
events = trace["traceEvents"]
names, order, spans = {}, {}, {}
for event in events:
    assert event["pid"] == 1, event
    if event["ph"] == "M":
        if event["name"] == "thread_name":
            assert event["tid"] not in names, event
            names[event["tid"]] = event["args"]["name"]
        elif event["name"] == "thread_sort_index":
            order[event["tid"]] = event["args"]["sort_index"]
        else:
            assert event["name"] == "process_name", event
    else:
        assert event["ph"] == "X" and event["cat"] in CATEGORIES, event
        assert event["ts"] >= 0 and event["dur"] >= 0, event
        spans.setdefault(event["tid"], []).append(event)
assert set(spans) <= set(names) == set(order), (set(spans), names, order)
SLACK = 0.0021  # times are rounded to nanoseconds
for track in spans.values():
    stack = []
    for event in sorted(track, key=lambda e: (e["ts"], -e["dur"])):
        while stack and event["ts"] >= stack[-1]["ts"] + stack[-1]["dur"] - SLACK:
            stack.pop()
        if stack:
            assert event["ts"] + event["dur"] <= stack[-1]["ts"] + stack[-1]["dur"] + SLACK, (event, stack[-1])
        stack.append(event)
shown = [names[tid] for tid in sorted(names, key=order.get)]
assert trace["otherData"]["started"] > 1.6e9 and trace["otherData"]["lost_spans"] == 0
if expected == "empty":
    assert not spans and shown == ["program"], (spans, shown)
elif expected == "step":
    assert shown == ["program", "replica 0", "replica 1", "communication"], shown
    found = {names[tid]: [(e["cat"], e["name"]) for e in track] for tid, track in spans.items()}
    assert found["program"] == [("input", 'next "batch"\n\\ \ufffd of \u00e9l\u00e8ve'), ("other", "run")], found
    for replica in ("replica 0", "replica 1"):
        assert found[replica] == [("compute", "replica"), ("reduce", "dense/kernel"),
                                  ("update", "dense/kernel")], found
    assert found["communication"] == 2 * [("reduce", "dense/kernel")], found
print(f"{len(events)} events, {len(names)} tracks")

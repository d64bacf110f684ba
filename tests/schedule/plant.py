#!/usr/bin/env python3
"""Writes a file of the library with a bug in it: plant.py NAME SOURCES OUT. Without arguments: the
names. The tests of the schedules must find each of them; so a campaign that has gone blind fails.
The text that a bug replaces must occur exactly once, so that no bug is lost when the source
changes."""
import os
import sys

# name: file, text, instead. The last two were real.
BUGS = {
    "wait_without_a_loop": ("base/gate.c",
        "while (in_time && chi_atomic32_load(&g->word) == old) {",
        "if (chi_atomic32_load(&g->word) == old) {"),
    "one_wake_for_many": ("base/gate.c", "wake(g, INT_MAX);", "wake(g, 1);"),
    "no_leave_check": ("strategy/run/sync_point.c",
        "const bool short_of = r->sequence != run->next_sync_point && left_for_good(r);",
        "const bool short_of = false;"),
    "comes_unseen": ("strategy/run/sync_point.c",
        "chi_atomic32_add(&run->arrivals, 1);", "(void) 0;"),
    "returns_unseen": ("strategy/run/sync_point.c",
        "chi_atomic32_store_seq_cst(&r->has_returned, 1);\n"
        "\tconst bool behind = chi_atomic32_load_seq_cst(&run->arrivals) != r->sequence;\n",
        "const bool behind = chi_atomic32_load_seq_cst(&run->arrivals) != r->sequence;\n"
        "\tchi_atomic32_store_seq_cst(&r->has_returned, 1);\n"),
    "no_generation_check": ("collective/rendezvous.c", "(int32_t) (word - target) >= 0",
        "target != 0 && word >= STEP"),
    "no_generation_check_of_light_sums": ("strategy/run/small_all_reduce.c", "ahead(word, mine, SUMS) >= 0)",
        "ahead(word, 0, SUMS) > 0)"),
    "woken_before_it_is_told": ("strategy/run/scheduler.c",
        "chi_atomic32_add(&parked->baton.word, 1);\n\t\tchi_gate_wake_one(&parked->baton);",
        "chi_gate_wake_one(&parked->baton);\n\t\tchi_atomic32_add(&parked->baton.word, 1);"),
    "open_before_there_is_memory": ("strategy/gradients/overlap_sum.c",
        "CHOIR_TRY(find_memory(u, s));\n\tchi_atomic32_exchange(&s->open, 1);",
        "chi_atomic32_exchange(&s->open, 1);\n\tif (!u->overlap.with_workers)\n\t\tCHOIR_TRY(find_memory(u, s));"),
    "cancelled_as_a_cause": ("strategy/run/run.c", "if (first || cause ||",
        "(void) cause;\n\tif (first ||"),
    "cancelled_as_a_leaver": ("strategy/run/sync_point.c", "chi_atomic32_load_seq_cst(&r->has_returned) != 0 && !r->cancelled &&",
        "chi_atomic32_load_seq_cst(&r->has_returned) != 0 &&"),
}


def main(arguments):
    if not arguments:
        print(";".join(BUGS))
        return
    name, sources, out = arguments
    file, text, instead = BUGS[name]
    with open(os.path.join(sources, file)) as f:
        source = f.read()
    if source.count(text) != 1:
        sys.exit(f"{name}: found {source.count(text)} times in {file}, needed once: {text}")
    with open(out, "w") as f:
        f.write(source.replace(text, instead))


main(sys.argv[1:])

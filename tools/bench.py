#!/usr/bin/env python3
"""Runs the benchmark scenarios on stores of its own beside their baselines and peers.

usage: bench.py BUILD_DIRECTORY [--seconds S] [--rounds N] [--write FILE]
                   [--peers] [--curves] [--all] [ENGINE|SCENARIO...]

Ours and the others take turns, N rounds; figures are medians. --peers measures other people's locks
instead of the baselines, --curves what happens when there is more of it, --all everything. --write
puts what was measured, with date and machine, into its place in FILE (docs/benchmarks.md).
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench"))

import curves  # noqa: E402
import page
import peers
from measure import measure
from store_versions import all_versions, version_of
from tables import chapter, table
from targets import RATIOS, SCENARIOS


def arguments_of():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("what", nargs="*")
    arguments = parser.parse_intermixed_args()
    unknown = [name for name in arguments.what if name not in SCENARIOS and name not in RATIOS]
    if unknown:
        parser.error(f"no engine or scenario {unknown[0]}; there are {', '.join([*RATIOS, *SCENARIOS])}")
    arguments.engines = [name for name in RATIOS if name in arguments.what] or list(RATIOS)
    arguments.scenarios = [name for name in SCENARIOS if name in arguments.what] or SCENARIOS
    if arguments.write and arguments.scenarios != SCENARIOS:
        parser.error("--write needs all scenarios")
    if arguments.write and (arguments.peers or arguments.curves) and arguments.engines != list(RATIOS):
        parser.error("--peers and --curves are one table each: --write needs all engines")
    return arguments


def heading(arguments, stores, more=""):
    return [f"{page.machine()}, {stores}. Medians of {arguments.rounds} rounds of "
            f"{arguments.seconds:g} s{more}.", ""]


def main():
    arguments = arguments_of()
    missed = []

    def keep(name, lines):
        if arguments.write:  # at once: a run takes long
            page.write(arguments.write, RATIOS, {name: lines})

    if arguments.all or not (arguments.peers or arguments.curves):
        for engine in arguments.engines:
            ours, theirs, limits = measure(arguments.build, engine, arguments.scenarios,
                                           arguments.seconds, arguments.rounds)
            rows, not_met = table(engine, arguments.scenarios, ours, theirs, limits)
            missed += not_met
            print("\n".join(["", f"{engine}:", "| scenario | what | measured | wanted | reached |",
                             "|---|---|---|---|---|", *rows, ""]), flush=True)
            keep(engine, heading(arguments, version_of(engine), ", ours and the baseline in turn; the "
                                 "W and L scenarios once") + chapter(engine, rows, ours, theirs))
    if arguments.all or arguments.peers:
        lines = peers.measure(arguments.build, arguments.engines, arguments.scenarios,
                              arguments.seconds, arguments.rounds)
        print("\n".join(["", *lines, ""]), flush=True)
        keep("peers", heading(arguments, all_versions(), ", all in turn") + lines)
    if arguments.all or arguments.curves:
        charts = os.path.join(os.path.dirname(arguments.write), "charts") if arguments.write else None
        lines = curves.measure(arguments.build, arguments.engines, arguments.seconds,
                               arguments.rounds, charts)
        print("\n".join([*lines, ""]), flush=True)
        keep("curves", heading(arguments, all_versions()) + lines)
    for line in missed:
        print(f"not reached: {line}")


if __name__ == "__main__":
    main()

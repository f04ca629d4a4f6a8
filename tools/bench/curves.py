"""Growth: throughput and latency against the number of names, of waiters and of threads."""

import os
import statistics

import svg
from measure import run_ours
from stores import store_of
from targets import ONLY


class Curve:
    """One thing that grows, and what is looked at meanwhile."""

    def __init__(self, key, what, scenario, option, points, charts):
        self.key, self.what, self.scenario = key, what, scenario
        self.option, self.points, self.charts = option, points, charts


RATE, WAIT = ("cycles_per_s", "cycles/s"), ("p99_us", "p99 of a cycle, µs")
CURVES = [
    Curve("names", "names that 32 threads go through", "U32", "--names",
          [100, 1_000, 10_000, 100_000, 1_000_000], [RATE, WAIT]),
    Curve("threads", "threads of one process", "U1", "--threads",
          [1, 2, 4, 8, 16, 32, 64, 128, 256], [RATE, WAIT]),
    Curve("waiters", "callers in line for one name", "Q100", "--waiters",
          [10, 100, 1_000, 10_000],
          [("hand_overs_per_s", "hand-overs/s"), ("p50_us", "median wait, µs")]),
    Curve("waiting", "callers that wait for a held lock", "W1000", "--waiters",
          [10, 100, 1_000, 10_000], [("cpu_percent", "% of one core")]),
]


def measure_curve(build, store, engine, curve, seconds, rounds):
    """field: [(point, median)]"""
    lines = {}
    for point in curve.points:
        print(f"  {engine}: {point:,} {curve.what}", flush=True)
        runs = [run_ours(build, store, curve.scenario, seconds, more=[curve.option, str(point)])
                for _ in range(rounds)]
        for field, _ in curve.charts:
            lines.setdefault(field, []).append((point, statistics.median(run[field] for run in runs)))
    return lines


def table(curve, field, label, lines):
    def shown(value):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    points = curve.points
    yield f"| {label} | " + " | ".join(f"{point:,}" for point in points) + " |"
    yield "|---|" + "---|" * len(points)
    for engine, found in lines.items():
        values = dict(found[field])
        yield f"| {engine} | " + " | ".join(
            shown(values[point]) if point in values else "" for point in points) + " |"


def measure(build, engines, seconds, rounds, charts):
    """The lines of the section; draws into the directory `charts` if there is one."""
    found = {curve.key: {} for curve in CURVES}
    for engine in (each for each in engines if each not in ONLY):
        for curve in CURVES:
            # A store of its own: a million names are not left to the next.
            with store_of(engine, build) as store:
                found[curve.key][engine] = measure_curve(build, store, engine, curve, seconds, rounds)
    lines = []
    for curve in CURVES:
        for field, label in curve.charts:
            title = f"{label} against {curve.what}"
            lines += ["", f"### {label[0].upper() + label[1:]} against {curve.what}", ""]
            if charts:
                name = f"{curve.key}-{field.replace('_', '-')}.svg"
                draw(f"{charts}/{name}", title, curve.what, label,
                     {engine: each[field] for engine, each in found[curve.key].items()})
                lines += [f"![{title}](charts/{name})", ""]
            lines += table(curve, field, label, found[curve.key])
    return lines


def draw(path, title, x_label, y_label, lines):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(svg.chart(title, x_label, y_label, lines))

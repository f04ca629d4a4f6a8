#!/usr/bin/env python3
"""Runs the benchmark scenarios on stores of its own beside their baselines.

usage: bench.py BUILD_DIRECTORY [--seconds S] [--rounds N] [--write FILE] [ENGINE|SCENARIO...]

Ours and the baseline take turns, N rounds; figures are medians. --write puts
the table, with date and machine, into FILE (docs/benchmarks.md).
"""

import argparse
import datetime
import json
import contextlib
import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
import time

FIFO = ("hand_overs_per_s", "fifo-C16", "FIFO queue of condition variables, no store",
        lambda r: r >= 0.5, "at least 0.5")
BY_HAND = "INSERT + DELETE by hand, each awaited"
FLOCK = ("p50_us", "flock-P2", "`flock(2)`", lambda r: r <= 3, "at most 3")
FOUR_TIMES = ("cycles_per_s", "U1", "our own U1", lambda r: r >= 4, "at least 4")
# engine: scenario: (our field, baseline, what the baseline is, target on ours/baseline, as shown)
RATIOS = {
    "sqlite": {
        "U1": ("cycles_per_s", "sqlite-U1", "bare SQLite loop, same two write transactions",
               lambda r: r >= 0.5, "at least 0.5"),
        "U32": ("cycles_per_s", "U1", "our own U1", lambda r: r >= 2, "at least 2"),
        "C16": FIFO,
        "P2": FLOCK,
    },
    "mysql": {
        "U1": ("cycles_per_s", "mysql-U1", BY_HAND, lambda r: r >= 1.5, "at least 1.5"),
        "U32": ("cycles_per_s", "mysql-U32", BY_HAND + ", 32 connections", lambda r: r >= 2.5,
                "at least 2.5"),
        "C16": FIFO,
        "P2": ("p50_us", "mysql-P2", "`SELECT ... FOR UPDATE`", lambda r: r <= 2.5, "at most 2.5"),
    },
    "postgres": {
        "U1": ("cycles_per_s", "postgres-U1", BY_HAND, lambda r: r >= 1.5, "at least 1.5"),
        "U32": ("cycles_per_s", "postgres-U32", BY_HAND + ", 32 connections", lambda r: r >= 2,
                "at least 2"),
        "C16": FIFO,
        "P2": ("p50_us", "postgres-P2", "`pg_advisory_lock`", lambda r: r <= 2.5, "at most 2.5"),
    },
    "redis": {
        "U1": ("cycles_per_s", "redis-U1", "half of the raw SETs on one connection",
               lambda r: r >= 1.4, "at least 1.4"),
        "C16": FIFO,
        "P2": FLOCK,
    },
    "zookeeper": {
        "U1": ("cycles_per_s", "zookeeper-U1", "create + delete by hand, each awaited",
               lambda r: r >= 0.85, "at least 0.85"),
        "U32": FOUR_TIMES,
        "C16": FIFO,
    },
    "etcd": {"U32": FOUR_TIMES, "C16": FIFO},
}
EMBEDDED_FIGURES = {
    "W1000": [("wake_ups_per_s", "wake-ups/s", lambda v: v <= 2, "the backstop poll alone")],
    "W1000n": [("wake_ups_per_s", "wake-ups/s", lambda v: v <= 2, "the backstop poll alone")],
    "L100k": [("bytes_per_lease", "bytes a lease", lambda v: v < 1024, "under 1024")],
}
# engine: most connections, most commands/s while 1,000 wait; commands/s while 100,000 leases are held
AT_THE_SERVER = {"mysql": (4, 10, 50), "postgres": (3, 10, None), "redis": (2, 20, None)}
# scenario: field, unit, target, as shown
FIGURES = {
    "C16": [("largest_share", "x the mean share", lambda v: v <= 2, "at most 2")],
    "H4": [("overtakes", "overtakes", lambda v: v == 0, "none"),
           ("overlaps", "overlaps", lambda v: v == 0, "none")],
    "W100": [("cpu_percent", "% of one core", lambda v: v < 1, "under 1")],
    "W1000": [("cpu_percent", "% of one core", lambda v: v < 1, "under 1")],
    "W1000n": [("cpu_percent", "% of one core", lambda v: v < 1, "under 1")],
    "W50p": [("cpu_percent", "% of one core, all 50", lambda v: v < 1, "under 1")],
    "L100k": [("lost", "leases lost", lambda v: v == 0, "none")],
}
HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIOS = ["U1", "U32", "C16", "H4", "P2", "W100", "W1000", "W1000n", "W50p", "L100k"]
COUNTED = {"W1000", "W1000n", "L100k"}
ONCE = {"W100", "W1000", "W1000n", "W50p", "L100k"}  # steady states: one round tells


class Store:
    """A store for the time of a benchmark: url for us, address for the baselines."""

    def __init__(self, url, address):
        self.url, self.address = url, address


@contextlib.contextmanager
def store_of(engine, build):
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        if engine == "sqlite":
            with tempfile.TemporaryDirectory(dir=build) as files:
                yield Store(f"sqlite:{files}/locks.db", files)
            return
        kind, options = {"mysql": ("mariadb", []), "postgres": ("postgres", ["durable=1"]),
                         "redis": ("redis", []), "zookeeper": ("zookeeper", ["durable=1"]), "etcd": ("etcd", [])}[engine]
        server = subprocess.Popen([f"{HERE}/server.py", kind, f"{directory}/server", *options],
                                  stdout=subprocess.PIPE, text=True)
        try:
            facts = {}
            for line in server.stdout:
                if not line.strip():
                    break
                key, value = line.strip().split("=", 1)
                facts[key] = value
            port = facts["port"]
            yield {
                "mysql": lambda: Store(f"mysql://app@127.0.0.1:{port}/holdfast", port),
                "postgres": lambda: Store(f"postgres://postgres@127.0.0.1:{port}/postgres",
                                          f"host=127.0.0.1 port={port} user=postgres"),
                "redis": lambda: Store(f"redis://127.0.0.1:{port}/0", port),
                "zookeeper": lambda: Store(f"zookeeper://127.0.0.1:{port}/bench", port),
                "etcd": lambda: Store(f"etcd://127.0.0.1:{port}/bench", port),
            }[engine]()
        finally:
            server.terminate()
            server.wait()


def at_the_server(engine, store):
    """Commands so far and connections now, as the server counts them, without our own."""
    def ask(*command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    if engine == "mysql":
        out = ask("mariadb", "-h", "127.0.0.1", "-P", store.address, "-u", "root", "-N", "-e",
                  "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Threads_connected')")
        found = dict(line.split() for line in out.splitlines())
        return int(found["Questions"]), int(found["Threads_connected"]) - 1
    if engine == "postgres":
        out = ask("psql", store.address, "-X", "-t", "-A", "-F", " ", "-c",
                  "SELECT sum(xact_commit + xact_rollback), (SELECT count(*) FROM pg_stat_activity "
                  "WHERE backend_type = 'client backend') FROM pg_stat_database")
        commands, connections = out.split()
        return int(commands), int(connections) - 1
    found = dict(line.split(":", 1) for line in ask("redis-cli", "-p", store.address, "info").split()
                 if ":" in line)
    return int(found["total_commands_processed"]), int(found["connected_clients"]) - 1


def run_ours(build, store, scenario, seconds, engine=None):
    ours = subprocess.Popen([f"{build}/bin/holdfast", "bench", "--url", store.url, "--scenario",
                             scenario, "--seconds", str(seconds), "--json"],
                            stdout=subprocess.PIPE, text=True)
    counted = []
    while engine in AT_THE_SERVER and scenario in COUNTED and ours.poll() is None:
        counted.append((time.monotonic(), *at_the_server(engine, store)))
        time.sleep(0.5)
    out = ours.communicate()[0]
    if ours.returncode != 0:
        raise subprocess.CalledProcessError(ours.returncode, ours.args)
    found = json.loads(out)["scenarios"][0]
    if len(counted) > 4:
        # The middle, when all wait: it takes a while to come and to go. One command is the count's.
        rates = [(b[1] - a[1] - 1) / (b[0] - a[0]) for a, b in zip(counted, counted[1:])]
        found["commands_per_s"] = statistics.median(rates)
        found["connections"] = statistics.median(each[2] for each in counted)
    return found


def run_baseline(build, store, name, seconds):
    with tempfile.TemporaryDirectory(dir=build) as directory:
        address = store.address if name.split("-")[0] in RATIOS else directory
        return float(subprocess.run([f"{build}/bench/bench_baselines", name, str(seconds), address],
                                    check=True, capture_output=True, text=True).stdout)


def measure(build, engine, scenarios, seconds, rounds):
    ours, theirs = {}, {}
    with store_of(engine, build) as store:
        subprocess.run([f"{build}/bin/holdfast", "init", "--url", store.url], check=True,
                       capture_output=True)
        for turn in range(rounds):
            for scenario in scenarios:
                if turn > 0 and scenario in ONCE:
                    continue
                print(f"  {engine}, round {turn + 1}: {scenario}", flush=True)
                baseline = RATIOS[engine].get(scenario, (None, None))[1]
                if baseline and baseline not in SCENARIOS:
                    theirs.setdefault(scenario, []).append(
                        run_baseline(build, store, baseline, seconds))
                for field, value in run_ours(build, store, scenario, seconds, engine).items():
                    if field != "scenario":
                        ours.setdefault(scenario, {}).setdefault(field, []).append(value)
    return ours, theirs


def table(engine, scenarios, ours, theirs):
    rows, missed = [], []

    def row(scenario, what, value, target, good):
        rows.append(f"| {scenario} | {what} | {value} | {target} | {'yes' if good else '**no**'} |")
        if not good:
            missed.append(f"{engine} {scenario}: {what}: {value}")

    for scenario in scenarios:
        medians = {field: statistics.median(values) for field, values in ours[scenario].items()}
        if scenario in RATIOS[engine]:
            field, baseline, name, met, target = RATIOS[engine][scenario]
            if baseline in SCENARIOS:
                base = statistics.median(ours[baseline][field]) if baseline in ours else None
            else:
                base = statistics.median(theirs[scenario])
            if base:
                ratio = medians[field] / base
                row(scenario, f"ratio to {name}", f"{ratio:.2f}", target, met(ratio))
        embedded = EMBEDDED_FIGURES.get(scenario, []) if engine == "sqlite" else []
        server = []
        if engine in AT_THE_SERVER and "commands_per_s" in medians:
            most, waiting, holding = AT_THE_SERVER[engine]
            limit = holding if scenario == "L100k" else waiting
            if scenario != "L100k":
                most *= 2
            server = [("connections", "connections" if scenario == "L100k" else
                       "connections, of the holder's and the waiters' clients",
                       lambda v, m=most: v <= m, f"at most {most}")]
            if limit:
                server.append(("commands_per_s", "commands/s at the server",
                               lambda v, m=limit: v <= m, f"at most {limit}"))
        for field, unit, met, target in FIGURES.get(scenario, []) + embedded + server:
            row(scenario, unit, f"{medians[field]:.3g}" if medians[field] < 100
                else f"{medians[field]:.0f}", target, met(medians[field]))
    return rows, missed


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        models = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return (f"{os.cpu_count()} cores ({models[0] if models else platform.machine()}), "
            f"Linux {platform.release().split('-')[0]}, SQLite {sqlite3.sqlite_version}")


def chapter(engine, rows, ours, theirs):
    lines = [f"## {engine}", "", "| scenario | what | measured | wanted | reached |",
             "|---|---|---|---|---|", *rows, "",
             "The figures behind the ratios, only good for comparing with each other:", "",
             "| scenario | figure | ours | baseline |", "|---|---|---|---|"]
    for scenario, fields in ours.items():
        for field, values in fields.items():
            base = ""
            if scenario in theirs and field == RATIOS[engine][scenario][0]:
                base = f"{statistics.median(theirs[scenario]):,.0f}"
            value = statistics.median(values)
            lines.append(f"| {scenario} | {field} | {value:,.3g} | {base} |" if value < 100
                         else f"| {scenario} | {field} | {value:,.0f} | {base} |")
    return [*lines, ""]


def page(chapters, arguments):
    lines = [
        "# Benchmarks", "",
        "Made by `./dev bench --write`; do not edit. Ratios within one run on one machine: they say "
        "what the library costs, not how fast your machine is. "
        "Measure your own store with `holdfast bench`.", "",
        f"{datetime.date.today().isoformat()}, {machine()}. Each store on the local disk of the same "
        f"machine, syncing at every commit where it can. "
        f"Medians of {arguments.rounds} rounds of {arguments.seconds:g} s, ours and the baseline in turn; "
        "the W and L scenarios once.", ""]
    for each in chapters:
        lines += each
    lines.pop()
    lines += ["", "## Scenarios", "",
              "| name | what |", "|---|---|",
              "| U1, U32 | lock+unlock cycles/s by 1 / 32 threads of one process, each rotating over "
              "100 names of its own; nobody contends |",
              "| C16 | 16 threads of one process, one name, empty critical section: hand-overs/s, and "
              "the largest share over the mean |",
              "| H4 | 4 processes, one name, 1 ms of work, re-lock at once: gap between one's release "
              "and the next one's entry, overtakes |",
              "| P2 | one holder, one sleeping waiter in another process, a hand-over every 700 ms: "
              "release-to-entry latency |",
              "| W100, W1000, W1000n | that many waiters of one process on one held lock (n: on as many "
              "held locks): processor time and wake-ups |",
              "| W50p | 50 waiting processes together |",
              "| L100k | 100,000 held leases in one process: memory a lease |", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write")
    parser.add_argument("what", nargs="*")
    arguments = parser.parse_intermixed_args()
    unknown = [name for name in arguments.what if name not in SCENARIOS and name not in RATIOS]
    if unknown:
        parser.error(f"no engine or scenario {unknown[0]}; there are {', '.join([*RATIOS, *SCENARIOS])}")
    engines = [name for name in RATIOS if name in arguments.what] or list(RATIOS)
    scenarios = [name for name in SCENARIOS if name in arguments.what] or SCENARIOS
    if arguments.write and (scenarios != SCENARIOS or engines != list(RATIOS)):
        parser.error("--write needs all engines and scenarios")
    chapters, missed = [], []
    for engine in engines:
        ours, theirs = measure(arguments.build, engine, scenarios, arguments.seconds, arguments.rounds)
        rows, not_met = table(engine, scenarios, ours, theirs)
        missed += not_met
        chapters.append(chapter(engine, rows, ours, theirs))
        print("\n".join(["", f"{engine}:", "| scenario | what | measured | wanted | reached |",
                         "|---|---|---|---|---|", *rows, ""]), flush=True)
    if arguments.write:
        with open(arguments.write, "w", encoding="utf-8") as out:
            out.write(page(chapters, arguments))
        print(f"\nwritten to {arguments.write}")
    for line in missed:
        print(f"not reached: {line}")


if __name__ == "__main__":
    main()

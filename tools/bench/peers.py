"""Other people's locks beside ours; see bench/peers/README.md."""

import json
import os
import statistics
import subprocess

from measure import run_baseline, run_ours, warm_up
from stores import TOOLS, store_of

ROOT = os.path.dirname(TOOLS)
DIRECTORY = os.environ.get("PEERS_DIR", f"{ROOT}/build/peers")
ALL = ["U1", "U32", "C16", "P2"]
NODE = [*ALL, "A32"]  # what they call U32 is our A32: callbacks of one thread
FIELDS = {"U1": "cycles_per_s", "U32": "cycles_per_s", "A32": "cycles_per_s",
          "C16": "hand_overs_per_s", "P2": "p50_us"}
# engine: peer: scenarios that make sense for it
INSTALLED = {
    "mysql": {"shedlock": ["U1", "U32"]},
    "redis": {"redisson": ALL, "redsync": ALL, "node-redlock": NODE, "redis-semaphore": NODE,
              "redis-py": ALL},
    "zookeeper": {"curator": ALL, "kazoo": ALL},
    "etcd": {"etcd-concurrency": ALL, "etcdctl-lock": ["U1", "P2"],
             "etcd-put-delete": ["U1", "U32"]},
}
# engine: what the server or the system has itself: scenario: baseline
NATIVE = {
    "sqlite": {"`flock(2)`": {"U1": "flock-U1", "C16": "flock-C16", "P2": "flock-P2"}},
    "mysql": {"`GET_LOCK()`": {each: f"get_lock-{each}" for each in ALL},
              "`SELECT ... FOR UPDATE`": {each: f"for_update-{each}" for each in ALL}},
    "postgres": {"`pg_advisory_lock()`": {each: f"pg_advisory-{each}" for each in ALL}},
}


class Missing(Exception):
    """This peer cannot be measured; why."""


def run_peer(peer, scenario, seconds, port):
    """The figure and the peer's version."""
    driver = f"{DIRECTORY}/bin/{peer}"
    if not os.path.exists(driver):
        note = f"{DIRECTORY}/missing/{peer}"
        why = "not installed: bench/peers/install"
        if os.path.exists(note):
            with open(note, encoding="utf-8") as reason:
                why = "cannot be installed: " + reason.read().strip()
        raise Missing(why)
    try:
        done = subprocess.run([driver, {"A32": "U32"}.get(scenario, scenario), str(seconds), port], capture_output=True, text=True,
                              timeout=60 + 10 * seconds, check=False)
    except subprocess.TimeoutExpired as late:
        raise Missing("does not come to an end") from late
    try:
        found = json.loads(done.stdout.strip().splitlines()[-1])
        return found["value"], found["version"]
    except (IndexError, ValueError, KeyError) as silent:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise Missing("fails: " + (said[-1][:160] if said else f"exit status {done.returncode}")
                      ) from silent


class Peer:
    """What is known of one peer in one scenario."""

    def __init__(self, name, baseline=None):
        self.name, self.baseline = name, baseline
        self.values, self.version, self.missing = [], "", ""

    def measure(self, build, store, scenario, seconds):
        if self.missing:
            return
        try:
            if self.baseline:
                self.values.append(run_baseline(build, store, self.baseline, seconds))
            else:
                value, self.version = run_peer(self.name, scenario, seconds, store.address)
                self.values.append(value)
        except Missing as why:
            self.missing = str(why).replace("|", "/")
        except subprocess.CalledProcessError as why:
            self.missing = f"fails: exit status {why.returncode}"


def peers_in(engine, scenario):
    found = [Peer(name) for name, scenarios in INSTALLED.get(engine, {}).items()
             if scenario in scenarios]
    return found + [Peer(name, baselines[scenario])
                    for name, baselines in NATIVE.get(engine, {}).items() if scenario in baselines]


def rows_of(engine, scenario, ours, peers):
    def shown(value):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    unit = {"cycles_per_s": "cycles/s", "hand_overs_per_s": "hand-overs/s", "p50_us": "µs"}
    field = FIELDS[scenario]
    for peer in peers:
        name = f"{peer.name} {peer.version}".strip()
        if peer.missing or not peer.values:
            yield f"| {engine} | {scenario} | {name} | | | missing: {peer.missing} |"
            continue
        theirs = statistics.median(peer.values)
        ratio = theirs / ours if field == "p50_us" else ours / max(theirs, 1e-9)
        yield (f"| {engine} | {scenario} | {name} | {shown(ours)} {unit[field]} | "
               f"{shown(theirs)} {unit[field]} | {ratio:.2g} |" if ratio < 100 else
               f"| {engine} | {scenario} | {name} | {shown(ours)} {unit[field]} | "
               f"{shown(theirs)} {unit[field]} | {ratio:,.0f} |")


def measure_engine(build, engine, scenarios, seconds, rounds):
    rows = []
    with store_of(engine, build) as store:
        warm_up(build, store, seconds)
        for scenario in scenarios:
            peers, ours = peers_in(engine, scenario), []
            if not peers:
                continue
            for turn in range(rounds):
                print(f"  {engine}, round {turn + 1}: {scenario}, "
                      f"{', '.join(peer.name for peer in peers)}", flush=True)
                ours.append(run_ours(build, store, scenario, seconds)[FIELDS[scenario]])
                for peer in peers:
                    peer.measure(build, store, scenario, seconds)
            rows += rows_of(engine, scenario, statistics.median(ours), peers)
    return rows


def measure(build, engines, scenarios, seconds, rounds):
    """The lines of the section."""
    rows = []
    for engine in engines:
        if engine in INSTALLED or engine in NATIVE:
            rows += measure_engine(build, engine, [each for each in NODE if each in scenarios],
                                   seconds, rounds)
    return ["| store | scenario | peer | ours | theirs | how many times as fast ours is |",
            "|---|---|---|---|---|---|", *rows]

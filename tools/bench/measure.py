"""One engine: ours and the baselines in turn."""

import json
import statistics
import subprocess
import tempfile
import time

from stores import at_the_server, store_of
from targets import AT_THE_SERVER, COUNTED, LIMITS, ONCE, ONLY, RATIOS, SCENARIOS


LOCAL = {"sqlite", "fifo", "flock"}  # baselines that need no server


def run_ours(build, store, scenario, seconds, engine=None, more=()):
    ours = subprocess.Popen([f"{build}/bin/holdfast", "bench", "--url", store.url, "--scenario",
                             scenario, "--seconds", str(seconds), "--json", *more],
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
        address = directory if name.split("-")[0] in LOCAL else store.address
        return float(subprocess.run([f"{build}/bench/bench_baselines", name, str(seconds), address],
                                    check=True, capture_output=True, text=True).stdout)


def warm_up(build, store, seconds):
    """What a server does in its first seconds, above all one in Java, says nothing of the next."""
    run_ours(build, store, "U32", 2 * seconds)


def measure(build, engine, scenarios, seconds, rounds):
    ours, theirs, limits = {}, {}, {}
    scenarios = [each for each in scenarios if each in ONLY.get(engine, SCENARIOS)]
    with store_of(engine, build) as store:
        warm_up(build, store, seconds)
        for turn in range(rounds):
            for scenario in scenarios:
                if turn > 0 and scenario in ONCE:
                    continue
                print(f"  {engine}, round {turn + 1}: {scenario}", flush=True)
                baseline = RATIOS[engine].get(scenario, (None, None))[1]
                if baseline and baseline not in SCENARIOS:
                    theirs.setdefault(scenario, []).append(
                        run_baseline(build, store, baseline, seconds))
                for limit, what in LIMITS.get(engine, {}).get(scenario, []):
                    limits.setdefault(scenario, {}).setdefault(what, []).append(
                        run_baseline(build, store, limit, seconds))
                for field, value in run_ours(build, store, scenario, seconds, engine).items():
                    if field != "scenario":
                        ours.setdefault(scenario, {}).setdefault(field, []).append(value)
    return ours, theirs, limits

"""docs/benchmarks.md: each engine, the peers and the curves are sections of their own, so that one
can be made anew and the others stay."""

import datetime
import os
import platform
import re

NOTHING = "Not measured yet.\n"
HEAD = """# Benchmarks

Made by `./dev bench --write`; do not edit. Ratios within one run on one machine: they say what the library costs, not how fast your machine is. Measure your own store with `holdfast bench`. Each store is on the local disk of the same machine, syncing at every commit where it can. Our callers look for an answer for up to 300 µs before they sleep (`ClientOptions::spin`); baselines and peers wait as they do.
"""
PEERS = """## Peers

Other people's locks in the same scenarios, on the same server, in the same run, by drivers of our own: [bench/peers](../bench/peers/README.md). In C16 a lock of ours passes between the threads of a process without the store (at most 32 times before others get their turn); that is what the large ratios there are made of.
"""
CURVES = """## Growth

What happens when there is more of it; both axes of the charts are logarithmic. With more names than a run has cycles every cycle is about a new name, and no run sees them all.
"""
TAIL = """## Scenarios

| name | what |
|---|---|
| U1, U8, U32, U128 | lock+unlock cycles/s by 1 / 8 / 32 / 128 threads of one process, each rotating over 100 names of its own, which all were used before; nobody contends |
| A32 | the same by 32 callbacks of the asynchronous API |
| C16 | 16 threads of one process, one name, empty critical section: hand-overs/s, and the largest share over the mean |
| Q100 | 100 callbacks of one process, one name; each lets go at once and lines up again: hand-overs/s |
| H4 | 4 processes, one name, 1 ms of work, re-lock at once: gap between one's release and the next one's entry, overtakes |
| P2 | one holder, one sleeping waiter in another process, a hand-over every 700 ms: release-to-entry latency |
| W100, W1000, W1000n | that many waiters of one process on one held lock (n: on as many held locks): processor time and wake-ups |
| W50p | 50 waiting processes together |
| L100k | 100,000 held leases in one process: memory a lease |
"""


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        models = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return (f"{datetime.date.today().isoformat()}, {os.cpu_count()} cores "
            f"({models[0] if models else platform.machine()}), "
            f"Linux {platform.release().split('-')[0]}")


def sections_of(text):
    pattern = re.compile(r"<!-- (\S+): made by [^>]*-->\n(.*?)<!-- end of \1 -->\n", re.DOTALL)
    return {name: body for name, body in pattern.findall(text)}


def render(engines, bodies):
    def section(name, how):
        body = bodies.get(name, NOTHING)
        return f"<!-- {name}: made by ./dev bench {how} -->\n{body}<!-- end of {name} -->\n"

    parts = [HEAD]
    for engine in engines:
        parts.append(f"## {engine}\n\n{section(engine, f'--write {engine}')}")
    parts.append(f"{PEERS}\n{section('peers', '--peers --write')}")
    parts.append(f"{CURVES}\n{section('curves', '--curves --write')}")
    return "\n".join([*parts, TAIL])


def write(path, engines, changed):
    """Puts the changed sections, name: lines, into the page and keeps the others."""
    bodies = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as page:
            bodies = sections_of(page.read())
    bodies.update((name, "\n".join(lines).strip("\n") + "\n") for name, lines in changed.items())
    with open(path, "w", encoding="utf-8") as page:
        page.write(render(engines, bodies))
    print(f"written to {path}: {', '.join(changed)}")

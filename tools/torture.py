#!/usr/bin/env python3
"""Writes the tables of docs/proof.md.

usage: torture.py report FOLDER     from what `holdfast torture --json` said: a folder an engine, a
                                    file a run
       torture.py missing FOLDER    how many grants and faults the runs of one engine lack
       torture.py mutants BUILD     runs the suites on every mutant, with the programs of a build
"""

import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

from store_versions import all_versions

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "proof.md"
# What the long run is about.
ENOUGH_GRANTS = int(os.environ.get("GRANTS", 100_000))
ENOUGH_FAULTS = int(os.environ.get("FAULTS", 1_000))
COLUMNS = ["engine", "date", "verdict", "seconds", "acquires", "granted", "faults",
           "hand-overs between processes", "stale writes refused", "leases lost",
           "release to entry p50 / p99 ms", "faults by kind"]


def replace(section, text):
    """Puts the text between the section's two comments."""
    page = PAGE.read_text()
    pattern = re.compile(rf"(<!-- {section}: [^>]*-->\n).*?(<!-- end of {section} -->)", re.DOTALL)
    if not pattern.search(page):
        sys.exit(f"{PAGE} has no place for {section}")
    PAGE.write_text(pattern.sub(lambda found: found[1] + text + "\n" + found[2], page))


def machine():
    version = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"],
                             capture_output=True, text=True, check=False).stdout.strip()
    return (f"{datetime.date.today().isoformat()}, {os.cpu_count()} cores, "
            f"Linux {platform.release().split('-')[0]}, holdfast {version or 'unknown'}")


def number(value):
    return f"{value:,.0f}"


def runs_of(folder):
    return sorted(Path(folder).glob("*.json"), key=lambda file: file.stat().st_mtime)


def total(folder):
    """All runs of one engine as one; of their percentiles the median."""
    runs = [json.loads(file.read_text()) for file in runs_of(folder)]
    sums = ["seconds", "operations", "granted", "faults_total", "hand_overs",
            "stale_writes_refused", "leases_lost"]
    whole = {key: sum(run[key] for run in runs) for key in sums}
    whole["violated"] = any(run["verdict"] != "passed" for run in runs)
    whole["faults"] = {}
    for run in runs:
        for kind, count in run["faults"].items():
            whole["faults"][kind] = whole["faults"].get(kind, 0) + count
    for key in ("p50", "p99"):
        whole[key] = statistics.median(run["hand_over_ms"][key] for run in runs) if runs else 0
    whole["lack"] = (max(0, ENOUGH_GRANTS - whole["granted"]),
                     max(0, ENOUGH_FAULTS - whole["faults_total"]))
    return whole


def row_of(folder):
    whole = total(folder)
    verdict = "violated" if whole["violated"] else "passed"
    if any(whole["lack"]):
        verdict += ", cut short"
    day = datetime.date.fromtimestamp(runs_of(folder)[-1].stat().st_mtime).isoformat()
    faults = ", ".join(f"{kind} {number(count)}" for kind, count in whole["faults"].items())
    cells = [folder.name, day, verdict,
             *(number(whole[key]) for key in
               ("seconds", "operations", "granted", "faults_total", "hand_overs",
                "stale_writes_refused", "leases_lost")),
             f"{whole['p50']:.2f} / {whole['p99']:.0f}", faults]
    return f"| {' | '.join(cells)} |"


def rows_of(folders):
    """The table as it stands on the page: rows of engines without a report are kept."""
    kept = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == len(COLUMNS) and cells[0] not in ("engine", "---"):
            kept[cells[0]] = line
    kept.update({folder.name: row_of(folder) for folder in folders})
    return [kept[name] for name in sorted(kept)]


def report(reports):
    folders = [folder for folder in sorted(Path(reports).iterdir()) if runs_of(folder)]
    if not folders:
        sys.exit("no engine was tortured")
    lines = [f"Written {machine()}; each row was measured on that or an earlier version. "
             f"{all_versions()}.", "",
             f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", *rows_of(folders), "",
             "Waits and hand-overs include those behind a dead or stopped holder: their p99 is "
             "about the length of a lease. Of several runs the median is shown."]
    replace("torture", "\n".join(lines))
    print(f"written to {PAGE.relative_to(ROOT)}: {', '.join(folder.name for folder in folders)}")


def missing(folder):
    print(*total(folder)["lack"])


def mutants(build):
    """Each program prints `mutant|what|killer` lines for the mutants it killed."""
    lines, survivors = [], []
    for program in ("simulation_tests", "torture_tests"):
        path = Path(build, "tests", program)
        if not path.exists():
            continue
        done = subprocess.run([path, "--gtest_filter=*Mutant*"], capture_output=True, text=True,
                              check=False, env={**os.environ, "HOLDFAST_MUTANT_TABLE": "1"})
        found = [line.split("|", 1)[1] for line in done.stdout.splitlines()
                 if line.startswith("mutant|")]
        survivors += [line.split("|", 1)[1] for line in done.stdout.splitlines()
                      if line.startswith("survivor|")]
        lines += [f"| {' | '.join(line.split('|'))} |" for line in found]
        if done.returncode != 0:
            print(done.stdout[-4000:], file=sys.stderr)
            survivors.append(program)
    if survivors:
        sys.exit("survivors: " + ", ".join(survivors))
    text = [f"{len(lines)} mutants, all killed. {machine()}.", "",
            "| mutant | what is wrong with it | killed by |", "|---|---|---|", *lines]
    replace("mutants", "\n".join(text))
    print(f"written to {PAGE.relative_to(ROOT)}: {len(lines)} mutants")


def main():
    acts = {"report": report, "missing": missing, "mutants": mutants}
    if len(sys.argv) != 3 or sys.argv[1] not in acts:
        sys.exit(__doc__)
    acts[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    main()

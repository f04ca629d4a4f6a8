#!/usr/bin/env python3
"""Writes the tables of docs/proof.md.

usage: torture.py report FOLDER     from what `holdfast torture --json` said, one file an engine
       torture.py mutants BUILD     runs the suites on every mutant, with the programs of a build
"""

import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from store_versions import all_versions

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "proof.md"
ENOUGH_GRANTS, ENOUGH_FAULTS = 100_000, 1_000  # what the long run is about
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


def rows_of(reports):
    """The table as it stands on the page: rows of engines without a report are kept."""
    kept = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == len(COLUMNS) and cells[0] not in ("engine", "---"):
            kept[cells[0]] = line
    for file in reports:
        report = json.loads(file.read_text())
        faults = ", ".join(f"{kind} {number(count)}" for kind, count in report["faults"].items())
        day = datetime.date.fromtimestamp(file.stat().st_mtime).isoformat()
        whole = report["granted"] >= ENOUGH_GRANTS and report["faults_total"] >= ENOUGH_FAULTS
        verdict = report["verdict"] + ("" if whole else ", cut short")
        kept[file.stem] = (
            f"| {file.stem} | {day} | {verdict} | {number(report['seconds'])} "
            f"| {number(report['operations'])} | {number(report['granted'])} "
            f"| {number(report['faults_total'])} | {number(report['hand_overs'])} "
            f"| {number(report['stale_writes_refused'])} | {number(report['leases_lost'])} "
            f"| {report['hand_over_ms']['p50']:.2f} / {report['hand_over_ms']['p99']:.0f} "
            f"| {faults} |")
    return [kept[name] for name in sorted(kept)]


def report(folder):
    reports = sorted(Path(folder).glob("*.json"))
    if not reports:
        sys.exit("no engine was tortured")
    lines = [f"Written {machine()}; each row was measured on that or an earlier version. "
             f"{all_versions()}.", "",
             f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", *rows_of(reports), "",
             "Waits and hand-overs include those behind a dead or stopped holder: their p99 is "
             "about the length of a lease."]
    replace("torture", "\n".join(lines))
    print(f"written to {PAGE.relative_to(ROOT)}: {', '.join(file.stem for file in reports)}")


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
    if len(sys.argv) != 3 or sys.argv[1] not in ("report", "mutants"):
        sys.exit(__doc__)
    {"report": report, "mutants": mutants}[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    main()

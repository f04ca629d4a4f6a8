#!/usr/bin/env python3
"""Adds up what gcc's counters say about src/: a table of folders, and every line of core/ and
client/ that no test reaches.

usage: coverage.py BUILD
"""

import collections
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTED = ("core", "client")


def count(build):
    """source -> line -> how often."""
    hits = collections.defaultdict(lambda: collections.defaultdict(int))
    notes = sorted(Path(build).resolve().rglob("CMakeFiles/holdfast.dir/src/**/*.gcno"))
    for note in notes:
        told = subprocess.run(["gcov", "--json-format", "--stdout", note], capture_output=True,
                              text=True, check=False, cwd=note.parent)
        for line in told.stdout.splitlines():
            for file in json.loads(line)["files"] if line.startswith("{") else []:
                source = (note.parent / file["file"]).resolve()  # absolute ones stay as they are
                if "src" not in source.parts:
                    continue
                name = Path(*source.parts[len(source.parts) - source.parts[::-1].index("src"):])
                for entry in file["lines"]:
                    hits[name][entry["line_number"]] += entry["count"]
    return hits


def ranges(lines):
    """[3, 4, 5, 9] -> "3-5, 9"."""
    runs = []
    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    hits = count(sys.argv[1])
    if not hits:
        sys.exit("no counters; run ./dev coverage")
    folders = collections.defaultdict(lambda: [0, 0])
    for name, lines in hits.items():
        folder = str(name.parent)
        folders[folder][0] += sum(1 for times in lines.values() if times > 0)
        folders[folder][1] += len(lines)
    print("| folder | lines | reached |\n|---|---|---|")
    for folder, (reached, total) in sorted(folders.items()):
        print(f"| {folder} | {total:,} | {100 * reached / total:.1f} % |")
    print("\nNot reached in core/ and client/:")
    for name, lines in sorted(hits.items()):
        missed = sorted(line for line, times in lines.items() if times == 0)
        if missed and name.parts[0] in LISTED:
            print(f"  src/{name}: {ranges(missed)}")


if __name__ == "__main__":
    main()

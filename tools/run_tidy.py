#!/usr/bin/env python3
"""Runs clang-tidy over a build's compile commands, all cores at once.

A file that passed is not looked at again until it, a project header it includes (directly or not),
its compile command, a .clang-tidy or clang-tidy itself changes: build/tidy/ has one empty file for
each content that passed.

--product: only what users run, src/ and apps/; most of the rest is tests.

usage: run_tidy.py BUILD_DIR [--jobs N] [--product]
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PASSED = ROOT / "build/tidy"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
HEADER_FOLDERS = [ROOT / "include", ROOT / "src", ROOT / "tests", ROOT / "apps/holdfast", ROOT]


def includes(path, seen):
    """Adds to seen the file and all project headers that it brings in."""
    if path in seen:
        return
    seen.add(path)
    for header in INCLUDE.findall(path.read_text(errors="replace")):
        for folder in [path.parent, *HEADER_FOLDERS]:
            candidate = folder / header
            if candidate.is_file():
                includes(candidate.resolve(), seen)
                break


def fingerprint(entry, common):
    seen = set()
    includes(Path(entry["file"]), seen)
    digest = hashlib.sha256(common)
    digest.update(entry.get("command", "").encode())
    for path in sorted(seen):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def common_state():
    """What counts for every file: the tool and its configuration."""
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    configurations = sorted(path for path in ROOT.glob("**/.clang-tidy") if "build" not in path.parts)
    return version + b"".join(path.read_bytes() for path in configurations)


def tidy(entry, build, key):
    """Returns clang-tidy's complaints about one file; empty if it passed."""
    started = time.monotonic()
    result = subprocess.run(["clang-tidy", "--quiet", "-p", build, entry["file"]],
                            capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    print(f"{seconds:6.1f} s {os.path.relpath(entry['file'], ROOT)}", file=sys.stderr, flush=True)
    if result.returncode == 0:
        (PASSED / key).touch()
        return ""
    return result.stdout or result.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--product", action="store_true")
    options = parser.parse_args()
    folders = [ROOT / "src", ROOT / "apps"] if options.product else [ROOT]

    PASSED.mkdir(parents=True, exist_ok=True)
    entries = json.loads((options.build / "compile_commands.json").read_text())
    common = common_state()
    work = []
    for entry in entries:
        path = Path(entry["file"])
        wanted = any(path.is_relative_to(folder) for folder in folders)
        if wanted and not path.is_relative_to(options.build.resolve()):
            key = fingerprint(entry, common)
            if not (PASSED / key).exists():
                work.append((entry, options.build, key))

    print(f"clang-tidy: {len(work)} of {len(entries)} files changed", file=sys.stderr)
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for complaints in pool.map(lambda job: tidy(*job), work):
            if complaints:
                failed += 1
                print(complaints, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

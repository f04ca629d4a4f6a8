#!/usr/bin/env python3
"""Compiles each public header alone, and shows that only <holdfast/asio.h> brings in Boost."""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 20  # public headers; a reader should be able to hold them in mind
NEEDS_BOOST = {"asio.h"}
COMPILE = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion",
           "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}"]


def check(header, folder):
    """What is wrong with one header, as text; empty if nothing."""
    # Twice, so that a missing include guard shows.
    source = Path(folder, f"{header.stem}.cc")
    source.write_text(f"#include <holdfast/{header.name}>\n" * 2)
    dependencies = source.with_suffix(".d")
    result = subprocess.run([*COMPILE, "-MD", "-MF", dependencies, source], capture_output=True,
                            text=True, check=False)
    if result.returncode != 0:
        return f"{header.name} does not compile alone:\n{result.stderr}"
    if header.name not in NEEDS_BOOST and "/boost/" in dependencies.read_text():
        return f"{header.name} includes Boost; only {', '.join(NEEDS_BOOST)} may"
    return ""


def main():
    headers = sorted((ROOT / "include/holdfast").rglob("*.h"))
    problems = []
    if len(headers) > MOST:
        problems.append(f"{len(headers)} public headers; {MOST} are enough")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        problems += filter(None, pool.map(lambda header: check(header, folder), headers))
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

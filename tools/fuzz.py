#!/usr/bin/env python3
"""./dev fuzz: libFuzzer on the targets of tests/fuzz, each for a while.

Starts from the kept corpus. An input that breaks something is left in build/fuzz, and the command
fails. --keep adds the inputs that reached something new to the corpus, few and small ones;
commit them.

usage: fuzz.py [--seconds N] [--keep] [TARGET...]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "tests" / "fuzz"
BUILD = ROOT / "build" / "fuzz"
FLAGS = ["-std=c++20", "-O1", "-g1", "-w", "-fno-omit-frame-pointer", "-DHOLDFAST_LIBFUZZER",
         "-DHOLDFAST_VERSION=\"fuzz\"",
         "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all",
         *[f"-I{ROOT / folder}" for folder in ("include", "src", "apps", "apps/holdfast", "tests")]]
MOST_FILES = 50
MOST_KEPT = 4096  # bytes of an input: small ones are enough to reach everything


def targets():
    """name -> sources; those that need everything are left to the tests."""
    found = {}
    for file in sorted(FUZZ.glob("*.cc")):
        head = re.match(r"// sources:((?:[^\n]*\n//)*[^\n]*)\n", file.read_text())
        names = head[1].replace("//", " ").split() if head else ["all"]
        if names != ["all"]:
            found[file.stem] = [file, *[ROOT / name for name in names]]
    return found


def build(name, sources):
    program = BUILD / name
    newest = max(source.stat().st_mtime for source in sources)
    if program.exists() and program.stat().st_mtime > newest:
        return program
    BUILD.mkdir(parents=True, exist_ok=True)
    compiler = shutil.which("clang++") or sys.exit("fuzz: clang++ is missing; ./dev setup installs it")
    subprocess.run([compiler, *FLAGS, *sources, "-o", program, "-lpthread"], check=True)
    return program


def thin_out(corpus):
    """Small inputs reach nearly everything. Those with a name of their own were put there by hand."""
    found = [file for file in corpus.iterdir() if re.fullmatch(r"[0-9a-f]{40}", file.name)]
    for file in sorted(found, key=lambda file: (file.stat().st_size, file.name))[MOST_FILES:]:
        file.unlink()


def fuzz(name, program, seconds, keep):
    corpus = FUZZ / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as fresh:
        done = subprocess.run(
            [program, fresh, corpus, f"-max_total_time={seconds}", f"-max_len={MOST_KEPT}",
             "-print_final_stats=1", "-timeout=10", f"-artifact_prefix={BUILD}/{name}-"],
            capture_output=True, text=True, check=False,
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"})
        runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
        print(f"{name}: {int(runs[1]):,} inputs" if runs else f"{name}: ended early", flush=True)
        if done.returncode != 0:
            print(done.stderr[-3000:], file=sys.stderr)
            return False
        if keep:
            subprocess.run([program, "-merge=1", f"-max_len={MOST_KEPT}", corpus, fresh], check=True,
                           capture_output=True)
            thin_out(corpus)
    return True


def main():
    known = targets()
    parser = argparse.ArgumentParser(prog="./dev fuzz")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    arguments = parser.parse_intermixed_args()
    unknown = [name for name in arguments.targets if name not in known]
    if unknown:
        parser.error(f"no target {unknown[0]}; there are {', '.join(known)}")
    fine = True
    for name, sources in known.items():
        if not arguments.targets or name in arguments.targets:
            fine = fuzz(name, build(name, sources), arguments.seconds, arguments.keep) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())

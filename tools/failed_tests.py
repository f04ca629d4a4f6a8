#!/usr/bin/env python3
"""What the failed tests of the last ctest run said, in short: failed_tests.py BUILD_DIRECTORY.

A run prints thousands of lines, and some places keep only the last of them."""
import pathlib
import re
import sys

LINES_EACH = 14
MOST = 12


def the_point(output):
    """From the first complaint on, without what gtest says around it."""
    lines = [
        line
        for line in output.splitlines()
        if line and not re.match(r"\[[-=]{10}\]|\[ (RUN|  +OK|  PASSED)|Running main|Note: ", line)
    ]
    for i, line in enumerate(lines):
        if re.search(r": Failure$|ERROR: |WARNING: ThreadSanitizer|Traceback|runtime error", line):
            return lines[i : i + LINES_EACH]
    return lines[-LINES_EACH:]


def main():
    logs = pathlib.Path(sys.argv[1]) / "Testing" / "Temporary"
    failed = [line.partition(":")[2] for line in (logs / "LastTestsFailed.log").read_text().split("\n")]
    said = dict(
        re.findall(
            r'^"(.*)" start time: .*\nOutput:\n-+\n((?:.|\n)*?)<end of output>',
            (logs / "LastTest.log").read_text(errors="replace"),
            re.MULTILINE,
        )
    )
    failed = [name for name in failed if name]
    for name in failed[:MOST]:
        print(f"\n== {name}")
        print("\n".join(the_point(said.get(name, "(nothing)"))))
    if len(failed) > MOST:
        print(f"\n== and {len(failed) - MOST} more")


main()

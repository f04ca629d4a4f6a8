#!/usr/bin/env python3
"""Compiles and runs the code of a documentation page. The word after ``` says how:

    ```cpp          with main(): a program, compiled as it stands and run. Without: statements, run
                    with `client`, an open holdfast::Client of an empty memory: store, in scope.
    ```cpp file     declarations, at file scope; the statements that follow on the page see them.
    ```cpp norun    as ```cpp, but compiled only
    ```sh run       a script for `bash -euo pipefail`; `holdfast` is the one just built, HOME and
                    the working folder are fresh and shared by the scripts of the page

All else is text. Statements and declarations of a page are one source file: the standard headers
in PRELUDE and <holdfast/holdfast.h> are included, further #include lines are moved to the top.
Errors name the line of the page.

usage: check_snippets.py --library LIBHOLDFAST --command HOLDFAST PAGE...
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PRELUDE = "".join(f"#include <{header}>\n" for header in (
    "holdfast/holdfast.h", "atomic", "cassert", "chrono", "cstdint", "cstdlib", "iostream", "mutex",
    "optional", "shared_mutex", "stop_token", "string", "thread", "vector"))
FLAGS = ["-std=c++20", "-O0", "-g1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable",
         f"-I{ROOT / 'include'}"]
SECONDS = 60  # for one program; documentation should not be slow


class Block(NamedTuple):
    language: str
    words: list
    line: int  # of its first line on the page
    text: str


def blocks_of(page):
    """The fenced blocks of a page."""
    start, head, found = None, None, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if not line.startswith("```"):
            if head is not None:
                lines.append(line)
        elif head is None:
            head, lines, start = line[3:].split(), [], number + 1
        else:
            if head:
                found.append(Block(head[0], head[1:], start, "\n".join(lines) + "\n"))
            head = None
    if head is not None:
        raise ValueError(f"{page}:{start}: this block has no end")
    return found


def with_lines(page, line, text):
    return f'#line {line} "{page}"\n{text}'


def page_source(page, blocks):
    """One program of all blocks that are not programs themselves."""
    includes, declarations, calls = [], [], []
    for block in blocks:
        lines = block.text.split("\n")
        for index, line in enumerate(lines):
            if line.startswith("#include"):
                includes.append(line)
                lines[index] = ""  # keeps the numbers of the other lines
        text = with_lines(page, block.line, "\n".join(lines))
        if "file" in block.words:
            declarations.append(text)
            continue
        name = f"statements_of_line_{block.line}"
        # Twice braced, so that a block may declare a `client` of its own.
        declarations.append(f"void {name}([[maybe_unused]] holdfast::Client& client) {{ {{\n{text}}} }}\n")
        if "norun" not in block.words:
            calls.append(f'  {{ auto client = holdfast::Client::open("memory:{name}").value(); {name}(client); }}\n')
    return "".join([
        *(line + "\n" for line in includes), PRELUDE, "using namespace std::chrono_literals;\n",
        *declarations, '#line 1 "(call of the statements)"\nint main() {\n', *calls, "}\n"])


def sources(page, blocks):
    """Pairs of source text and whether to run it."""
    blocks = [block for block in blocks if block.language == "cpp"]
    programs = [block for block in blocks if re.search(r"\bint main\(", block.text)]
    rest = [block for block in blocks if block not in programs]
    for block in programs:
        yield with_lines(page, block.line, block.text), "norun" not in block.words
    if rest:
        yield page_source(page, rest), True


def execute(what, command, folder, environment):
    try:
        result = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        print(f"{what}: still running after {SECONDS} s\n{error.stdout or ''}")
        return False
    if result.returncode != 0:
        print(f"{what}: exit status {result.returncode}\n{result.stdout}")
    return result.returncode == 0


def needed_by(library):
    """What the static library needs at link time, by its own pkg-config file."""
    words = subprocess.run(["pkg-config", "--libs", "holdfast"], check=True, text=True,
                           stdout=subprocess.PIPE,
                           env={**os.environ, "PKG_CONFIG_PATH": str(Path(library).parent)}).stdout
    return [word for word in words.split() if word != "-lholdfast"]


def compile_source(what, text, program, library):
    source = program.with_suffix(".cc")
    source.write_text(text)
    result = subprocess.run(
        ["g++", *FLAGS, source, "-o", program, library, *needed_by(library)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        print(f"{what}: does not compile\n{result.stdout}")
    return result.returncode == 0


def check_page(page, options, scratch):
    """True if all is well; prints what is not."""
    home = Path(scratch, "home")
    home.mkdir()
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("HOLDFAST_", "XDG_"))}
    environment |= {"HOME": str(home), "PATH": f"{options.command.parent}:{os.environ['PATH']}"}

    blocks = blocks_of(page)
    well = True
    for index, (text, run) in enumerate(sources(page, blocks)):
        program = Path(scratch, f"snippet{index}")
        compiled = compile_source(page, text, program, options.library)
        well &= compiled and (not run or execute(page, [program], home, environment))
    for block in blocks:
        if block.language == "sh" and "run" in block.words:
            script = ["bash", "-euo", "pipefail", "-c", block.text]
            well &= execute(f"{page}:{block.line}", script, home, environment)
    return well


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--command", type=Path, required=True)
    parser.add_argument("pages", type=Path, nargs="+")
    options = parser.parse_args()
    well = True
    for page in options.pages:
        with tempfile.TemporaryDirectory() as scratch:
            well &= check_page(page, options, scratch)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks that includes point downwards only.

    include/holdfast <- src/base <- core <- engine <- engines/<x> <- client <- apps
    apps/proof, which breaks stores and checks histories, stands on base and the public headers

Each folder may include what its line in LAYERS names, and itself. Engines do not know each other,
except redlock, which is made of redis, and what several share: src/engines/relational (SQL) and
src/engines/tls (redis, etcd). src/engines/all.cc alone names them all. An engine's vendor header appears in <x>_session only.
Clocks are read and threads sleep by means of base; in core not at all.

usage: check_layers.py [ROOT]     (the tree to check; default: the one this file is in)
"""

import re
import subprocess
import sys
from pathlib import Path

# Public headers that carry values and no behaviour: usable by every layer above base.
VALUES = {"holdfast/error.h", "holdfast/inspect.h", "holdfast/job_table.h", "holdfast/options.h",
          "holdfast/own_row.h"}

# layer -> the layers below it that it may include.
LAYERS = {
    "api": set(),
    "base": set(),
    "core": {"values", "base"},
    "engine": {"values", "base", "core"},
    "engines": {"values", "base", "core", "engine"},
    "client": {"values", "api", "base", "core", "engine"},
    "proof": {"values", "api", "base"},
    "apps": {"values", "api", "proof"},
    "examples": {"values", "api"},
}
SIDEWAYS = {("redlock", "redis"), ("mysql", "relational"), ("postgres", "relational"),
            ("redis", "tls"), ("etcd", "tls")}
ALL_ENGINES = "src/engines/all.cc"

# Third-party headers by layer; what is not named here is refused.
VENDORS = {
    "api": ("tl/expected.hpp",),
    "client": ("boost/asio",),
    "apps": ("CLI/", "boost/json"),
    "examples": ("boost/asio", "libpq-fe.h", "mysql.h", "sqlite3.h"),
}
SESSION_VENDORS = {
    "sqlite": ("sqlite3.h",),
    "mysql": ("mysql", "mariadb"),
    "postgres": ("libpq-fe.h",),
    "redis": ("openssl/",),
    "tls": ("openssl/",),
    "zookeeper": ("zookeeper/",),
    "etcd": ("nghttp2/",),
}

# Std headers have no dot; of the rest these belong to the system.
SYSTEM_FOLDERS = ("sys/", "linux/", "netinet/", "arpa/")
SYSTEM_HEADERS = {
    "dirent.h", "errno.h", "fcntl.h", "grp.h", "malloc.h", "netdb.h", "poll.h", "pthread.h", "pwd.h",
    "sched.h", "signal.h", "spawn.h", "stdlib.h", "string.h", "termios.h", "time.h", "unistd.h",
}
# core is pure: no threads, no files, nothing of the system.
IMPURE = {
    "atomic", "condition_variable", "filesystem", "fstream", "future", "iostream", "mutex",
    "semaphore", "shared_mutex", "thread",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CLOCK = re.compile(r"(?<!base::)\b(\w+_clock::now|clock_gettime|gettimeofday|sleep_for|sleep_until|"
                   r"usleep|nanosleep|clock_nanosleep)\s*\(")
# base's own clock and sleep, which engines may use and the pure machines may not.
BASE_CLOCK = re.compile(r"\b(BootClock::now|base::sleep_for|wall_microseconds)\s*\(")


def layer_of(path):
    """The layer of a source file and, for an engine's, the engine; (None, None) if unchecked."""
    parts = path.parts
    if parts[:2] == ("include", "holdfast"):
        return "api", None
    if parts[0] == "src" and len(parts) > 2:
        engine = parts[2] if parts[1] == "engines" and len(parts) > 3 else None
        return parts[1], engine
    if parts[:2] == ("apps", "proof"):
        return "proof", None
    if parts[0] in ("apps", "examples"):
        return parts[0], None
    return (None, None) if parts[0] in ("tests", "bench") else ("", None)


def target_of(header):
    """Like layer_of, for what stands in an #include; (None, None) if it is not ours."""
    if header in VALUES:
        return "values", None
    if header.startswith("holdfast/"):
        return "api", None
    parts = header.split("/")
    if parts[0] in LAYERS and len(parts) > 1:
        return parts[0], parts[1] if parts[0] == "engines" and len(parts) > 2 else None
    return None, None


def is_system(header):
    return "." not in header or header in SYSTEM_HEADERS or header.startswith(SYSTEM_FOLDERS)


def vendor_problem(path, layer, engine, header):
    if layer == "core" and (header in IMPURE or (is_system(header) and "." in header)):
        return "core is pure: no threads, no input or output"
    if is_system(header):
        return None
    if header.startswith(VENDORS.get(layer, ())):
        return None
    if engine and header.startswith(SESSION_VENDORS.get(engine, ("\0",))):
        if path.stem.startswith(tuple(f"{engine}_{part}" for part in ("session", "guard", "claim"))):
            return None
        return f"only {engine}_session (and {engine}_guard, _claim) may include the vendor's header"
    if str(path) == "include/holdfast/asio.h" and header.startswith("boost/asio"):
        return None
    return f"{layer} may not include this; see VENDORS in tools/check_layers.py"


def own_problem(path, layer, engine, target, other):
    if target == layer:
        if layer != "engines" or engine == other or str(path) == ALL_ENGINES:
            return None
        if (engine, other) in SIDEWAYS:
            return None
        return f"the engine {engine} may not know the engine {other}"
    if target == "values" and layer == "api":
        return None
    if target not in LAYERS[layer]:
        return f"{layer} may not include {target}"
    return None


def is_neighbour(root, path, header):
    """Programs include their own files from their folder or from apps/<program>."""
    folders = (path.parent, Path(*path.parts[:2]))
    return path.parts[0] == "apps" and any((root / folder / header).is_file() for folder in folders)


def include_problem(root, path, layer, engine, quote, header):
    if quote == '"' and is_neighbour(root, path, header):
        return None
    target, other = target_of(header)
    if target is not None:
        return own_problem(path, layer, engine, target, other)
    if quote == '"':
        return "write the path from src/, as in \"base/time.h\""
    return vendor_problem(path, layer, engine, header)


def reads_clock(layer, code):
    if layer not in ("core", "engine", "engines"):
        return False
    return bool(CLOCK.search(code) or (layer == "core" and BASE_CLOCK.search(code)))


def check_file(root, path):
    layer, engine = layer_of(path)
    if layer is None:
        return
    if layer not in LAYERS:
        yield f"{path}: this folder belongs to no layer; see tools/check_layers.py"
        return
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            quote, header = found.groups()
            problem = include_problem(root, path, layer, engine, quote, header)
            if problem:
                yield f"{path}:{number}: <{header}>: {problem}"
        elif reads_clock(layer, line.split("//")[0]):
            yield f"{path}:{number}: time is passed in; clocks and sleeps belong to base"


def sources(root):
    """Tracked and new files where there is git, else all (the self-test's trees have none)."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard", "--", "*.h", "*.cc"],
        capture_output=True, text=True, check=False)
    inside = (root / ".git").exists() and listing.returncode == 0
    names = listing.stdout.splitlines() if inside else [
        str(file.relative_to(root)) for file in root.rglob("*") if file.suffix in (".h", ".cc")]
    return [Path(name) for name in sorted(names) if (root / name).is_file()]


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    problems = [problem for path in sources(root) for problem in check_file(root, path)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

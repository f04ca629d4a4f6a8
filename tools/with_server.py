#!/usr/bin/env python3
"""Runs a command beside a private server: with_server.py KIND COMMAND... In the command's words
{port} and the like stand for the server's facts (see server.py). Exit status: the command's; 77 if
the server cannot be started, unless CI is set: there that is a failure."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def read_facts(server):
    facts = {}
    for line in server.stdout:
        if line == "\n":
            return facts
        key, _, value = line.rstrip("\n").partition("=")
        facts[key] = value
    return None


def main():
    kind, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)  # the server runs as another user
        server = subprocess.Popen([f"{HERE}/server.py", kind, f"{directory}/server"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            facts = read_facts(server)
            if facts is None:
                return 1 if "CI" in os.environ else 77
            return subprocess.call([word.format(**facts) for word in command])
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""A private server on loopback, for tests and benchmarks.

  server.py KIND DIR [KEY=VALUE...]            runs it until SIGTERM or the end of our parent
  server.py --shared KIND DIR [KEY=VALUE...]   sees to it that one runs and returns; it ends by
                                               itself when nobody used it for a while

Both print `key=value` lines (port, pid and what the kind adds) and an empty line when the server
answers. KIND is a module of tools/servers; what follows a `-` in it tells several servers of that
kind apart:

  prepare(run)       once, in an empty run.dir
  command(run)       what to start, as a list
  is_ready(run)      does it answer?
  facts(run)         optional: more to print, a dict
  run_as             optional: the user to run as if we are root

DIR keeps the data: started again there, with the same port=, the server comes back as it was.
Users of a shared server hold a shared flock(2) on DIR/users for as long as they need it.
"""
import ctypes
import fcntl
import importlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

IDLE_SECONDS = 20  # a shared server outlives its last user by this
START_SECONDS = 90


RESERVED = []  # for as long as we run


def free_port():
    """Below what the kernel gives to those who ask for any port or connect: nobody gets it by chance
    before the server is there. tests/support/free_port.cc keeps its ports in the same way."""
    while True:
        port = random.randint(20000, 32000)
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            mark.bind(f"\0holdfast-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            mark.close()
            continue
        RESERVED.append(mark)
        return port


class Run:
    """One server: where it lives, and what was asked of it."""

    def __init__(self, kind, directory, options):
        self.kind = importlib.import_module("servers." + kind.partition("-")[0])
        self.dir = os.path.abspath(directory)
        self.data = os.path.join(self.dir, "data")
        self.log = os.path.join(self.dir, "log")
        self.options = options
        self.port = int(options.get("port") or free_port())
        self.process = None

    def user(self):
        name = getattr(self.kind, "run_as", None)
        return pwd.getpwnam(name) if name and os.geteuid() == 0 else None

    free_port = staticmethod(free_port)  # for kinds that need more than one

    def call(self, arguments, **more):
        """Runs a tool of the server to its end, as the server's user."""
        with open(self.log, "ab") as log:
            subprocess.run(arguments, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                           cwd=self.dir, **self._as_user(), **more)

    def quiet(self, arguments):
        """Did it succeed?"""
        return subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def accepts(self, port=None):
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", port or self.port)) == 0

    def start(self):
        os.makedirs(self.dir, exist_ok=True)
        user = self.user()
        if user:
            os.chmod(self.dir, 0o755)
            os.chown(self.dir, user.pw_uid, user.pw_gid)
        if not os.path.exists(self.data):
            os.makedirs(self.data, mode=0o700)
            if user:
                os.chown(self.data, user.pw_uid, user.pw_gid)
            self.kind.prepare(self)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.kind.command(self), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.dir, preexec_fn=_die_with_parent, **self._as_user())
        deadline = time.monotonic() + START_SECONDS
        while not self.kind.is_ready(self):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                with open(self.log, errors="replace") as log:
                    sys.exit(f"{self.kind.__name__} does not start:\n" + log.read()[-4000:])
            time.sleep(0.02)

    def facts(self):
        facts = {"port": self.port, "pid": self.process.pid, "dir": self.dir}
        facts.update(getattr(self.kind, "facts", lambda run: {})(self))
        return "".join(f"{key}={value}\n" for key, value in facts.items()) + "\n"

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        if self.process:
            self.process.wait()

    def _as_user(self):
        user = self.user()
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def run_alone(run):
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        run.start()
        sys.stdout.write(run.facts())
        sys.stdout.flush()
        while os.getppid() == parent and run.process.poll() is None:
            time.sleep(0.2)
    finally:
        run.stop()


def lock_file(directory, name):
    return os.open(os.path.join(directory, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def try_lock(descriptor, how):
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def run_shared(kind, directory, options):
    directory = os.path.abspath(directory)
    os.makedirs(directory, exist_ok=True)
    starting = lock_file(directory, "starting")
    fcntl.flock(starting, fcntl.LOCK_EX)
    alive = lock_file(directory, "alive")
    ready = os.path.join(directory, "ready")
    deadline = time.monotonic() + START_SECONDS
    # Held without facts: a supervisor that is about to end, or somebody who only looks.
    while not (free := try_lock(alive, fcntl.LOCK_EX)) and not os.path.exists(ready):
        if time.monotonic() > deadline:
            sys.exit(f"the supervisor of {kind} neither serves nor ends")
        time.sleep(0.02)
    if free:  # no supervisor: become one, in the background
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(reader)
            os.setsid()
            os.close(starting)
            supervise(Run(kind, os.path.join(directory, "server"), options), ready, writer,
                      lock_file(directory, "users"))
        os.close(writer)
        problem = os.read(reader, 65536).decode(errors="replace")
        if problem != "ready":
            sys.exit(problem or f"the supervisor of {kind} ended")
    with open(ready, encoding="utf-8") as facts:
        sys.stdout.write(facts.read())


def supervise(run, ready, report, users):
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    try:
        shutil.rmtree(run.dir, ignore_errors=True)
        run.start()
        with open(ready + ".new", "w", encoding="utf-8") as facts:
            facts.write(run.facts())
        os.rename(ready + ".new", ready)
        os.write(report, b"ready")
        os.close(report)
        idle_since = time.monotonic()
        while run.process.poll() is None:
            time.sleep(1)
            if not try_lock(users, fcntl.LOCK_EX):
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > IDLE_SECONDS:
                break  # still holding `users`: whoever comes now waits, and starts a new one
            else:
                fcntl.flock(users, fcntl.LOCK_UN)
    except (Exception, SystemExit) as problem:  # pylint: disable=broad-except
        os.write(report, (str(problem) or repr(problem)).encode())
    finally:
        if os.path.exists(ready):
            os.unlink(ready)
        run.stop()
        shutil.rmtree(run.dir, ignore_errors=True)
        os._exit(0)


def main():
    arguments = sys.argv[1:]
    shared = arguments[:1] == ["--shared"]
    if shared:
        arguments = arguments[1:]
    if len(arguments) < 2:
        sys.exit(__doc__)
    kind, directory, *pairs = arguments
    options = dict(pair.split("=", 1) for pair in pairs)
    if shared:
        run_shared(kind, directory, options)
    else:
        run_alone(Run(kind, directory, options))


if __name__ == "__main__":
    main()

"""PostgreSQL. durable=1: syncs at every commit, as a production server does; encoding=LATIN1 and
the like; standby_of=PORT: a hot standby of that one; anything else with a dot or an underscore is a setting of the server
(max_connections=5)."""
import glob
import os
import time

run_as = "postgres"

# Whoever reaches the socket or the port is a superuser without a password: it listens on loopback
# alone.


def tool(name):
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return found[-1] if found else name


def prepare(run):
    if "standby_of" in run.options:
        run.call([tool("pg_basebackup"), f"--pgdata={run.data}", "--host=127.0.0.1",
                  f"--port={run.options['standby_of']}", "--username=postgres", "--no-sync",
                  "--checkpoint=fast", "--write-recovery-conf"])
        return
    run.call([tool("initdb"), f"--pgdata={run.data}", "--username=postgres", "--auth=trust",
              "--no-sync", "--locale=C", f"--encoding={run.options.get('encoding', 'UTF8')}"])


def await_orphans(run):
    """After a SIGKILL of the server its children end by themselves, but not at once, and it does
    not start beside them."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and any(works_in(process, run.data)
                                              for process in glob.glob("/proc/[0-9]*")):
        time.sleep(0.02)


def works_in(process, directory):
    try:
        return os.readlink(f"{process}/cwd") == directory
    except OSError:
        return False


def command(run):
    await_orphans(run)
    settings = {"listen_addresses": "127.0.0.1", "port": run.port,
                "unix_socket_directories": run.dir, "max_connections": 300,
                "shared_buffers": "64MB", "logging_collector": "off", "max_wal_size": "256MB"}
    if "durable" not in run.options:
        settings.update(fsync="off", synchronous_commit="off", full_page_writes="off")
    settings.update((key, value) for key, value in run.options.items()
                    if ("_" in key or "." in key) and key != "standby_of")
    words = [tool("postgres"), "-D", run.data]
    for key, value in settings.items():
        words += ["-c", f"{key}={value}"]
    return words


def is_ready(run):
    return run.quiet([tool("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(run.port)])


def facts(run):
    return {"socket_dir": run.dir}

"""The stores that are measured: private servers on this machine."""

import contextlib
import os
import subprocess
import tempfile

TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Store:
    """A store for the time of a benchmark: url for us, address for the baselines."""

    def __init__(self, url, address):
        self.url, self.address = url, address


# engine: the kind of server and its options; "durable" syncs at every commit, as in production
SERVERS = {"mysql": ("mariadb", []), "postgres": ("postgres", ["durable=1"]),
           "redis": ("redis", []), "zookeeper": ("zookeeper", ["durable=1"]), "etcd": ("etcd", [])}
URLS = {"mysql": "mysql://app@127.0.0.1:{port}/holdfast",
        "postgres": "postgres://postgres@127.0.0.1:{port}/postgres",
        "redis": "redis://127.0.0.1:{port}/0",
        "zookeeper": "zookeeper://127.0.0.1:{port}/bench",
        "etcd": "etcd://127.0.0.1:{port}/bench"}


def read_facts(server):
    facts = {}
    for line in server.stdout:
        if not line.strip():
            break
        key, value = line.strip().split("=", 1)
        facts[key] = value
    return facts


@contextlib.contextmanager
def server_of(kind, options):
    """The port of a private server."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o755)  # the server runs as another user
        server = subprocess.Popen(
            [f"{TOOLS}/server.py", kind, f"{directory}/server", *options],
            stdout=subprocess.PIPE, text=True)
        try:
            yield read_facts(server)["port"]
        finally:
            server.terminate()
            server.wait()


@contextlib.contextmanager
def store_of(engine, build):
    if engine == "sqlite":
        with tempfile.TemporaryDirectory(dir=build) as files:
            yield Store(f"sqlite:{files}/locks.db", files)
        return
    if engine == "redlock":
        with contextlib.ExitStack() as all_of_them:
            ports = [all_of_them.enter_context(server_of("redis", [])) for _ in range(5)]
            nodes = ",".join(f"127.0.0.1:{port}" for port in ports)
            yield Store(f"redlock://{nodes}?first_start=true", ",".join(ports))
        return
    with server_of(*SERVERS[engine]) as port:
        address = (f"host=127.0.0.1 port={port} user=postgres" if engine == "postgres" else port)
        store = Store(URLS[engine].format(port=port), address)
        subprocess.run([f"{build}/bin/holdfast", "init", "--url", store.url], check=True,
                       capture_output=True)  # PostgreSQL needs it
        yield store


def at_the_server(engine, store):
    """Commands so far and connections now, as the server counts them, without our own."""
    def ask(*command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    if engine == "mysql":
        out = ask("mariadb", "-h", "127.0.0.1", "-P", store.address, "-u", "root", "-N", "-e",
                  "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Threads_connected')")
        found = dict(line.split() for line in out.splitlines())
        return int(found["Questions"]), int(found["Threads_connected"]) - 1
    if engine == "postgres":
        out = ask("psql", store.address, "-X", "-t", "-A", "-F", " ", "-c",
                  "SELECT sum(xact_commit + xact_rollback), (SELECT count(*) FROM pg_stat_activity "
                  "WHERE backend_type = 'client backend') FROM pg_stat_database")
        commands, connections = out.split()
        return int(commands), int(connections) - 1
    found = dict(line.split(":", 1) for line in ask("redis-cli", "-p", store.address, "info").split()
                 if ":" in line)
    return int(found["total_commands_processed"]), int(found["connected_clients"]) - 1

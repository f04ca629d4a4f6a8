"""A node of a Galera cluster of MariaDB. join=PORT: of the node whose fact `cluster` that is; else
it founds one. Anything that starts with `--` goes to the server as it is."""
import os

from servers import mariadb

run_as = mariadb.run_as
PROVIDER = "/usr/lib/galera/libgalera_smm.so"


# The cluster's own lines: group, incremental and full transfer of the state.
def ports_of(run):
    path = f"{run.dir}/ports"
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as ports:
            ports.write(" ".join(str(run.free_port()) for _ in range(3)))
    with open(path, encoding="utf-8") as ports:
        return ports.read().split()


def prepare(run):
    mariadb.prepare(run)
    ports_of(run)


def command(run):
    group, increments, state = ports_of(run)
    join = run.options.get("join")
    return [*mariadb.command(run), "--wsrep-on=ON", f"--wsrep-provider={PROVIDER}",
            f"--wsrep-cluster-address=gcomm://{'127.0.0.1:' + join if join else ''}",
            f"--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{group};"
            f"ist.recv_addr=tcp://127.0.0.1:{increments};gcache.size=8M",
            f"--wsrep-node-address=127.0.0.1:{group}", "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=127.0.0.1:{state}", "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2"]


# It answers a ping long before it is part of the cluster.
def is_ready(run):
    return mariadb.is_ready(run) and run.quiet(
        ["mariadb", "--no-defaults", f"--socket={run.dir}/socket", "-uroot", "-e",
         "SELECT 1 FROM mysql.user LIMIT 1"])


def facts(run):
    return {**mariadb.facts(run), "cluster": ports_of(run)[0]}

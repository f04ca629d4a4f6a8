"""MariaDB. Anything that starts with `--` goes to the server as it is (--wsrep-on=1)."""
import os

run_as = "mysql"

# Whoever reaches the socket or the port is root without a password: it listens on loopback alone.
# `app` may do everything in the database `holdfast`, and nothing else.
INIT = """CREATE DATABASE IF NOT EXISTS holdfast;
CREATE USER IF NOT EXISTS app@'%';
GRANT ALL ON holdfast.* TO app@'%';
"""


# A server that starts removes what looks like temporary tables of a dead one: each has a temporary
# directory of its own.


def prepare(run):
    run.call(["mkdir", "-p", f"{run.dir}/tmp"])
    run.call(["mariadb-install-db", "--no-defaults", f"--datadir={run.data}", "--skip-test-db",
              "--auth-root-authentication-method=normal", "--innodb-use-native-aio=0",
              f"--tmpdir={run.dir}/tmp"])
    with open(f"{run.dir}/init.sql", "w", encoding="utf-8") as init:
        init.write(INIT)


def command(run):
    return ["mariadbd", "--no-defaults", f"--datadir={run.data}", f"--port={run.port}",
            "--bind-address=127.0.0.1", f"--socket={run.dir}/socket",
            f"--pid-file={run.dir}/pid",
            f"--init-file={run.dir}/init.sql", f"--tmpdir={run.dir}/tmp",
            "--innodb-buffer-pool-size=64M", "--innodb-use-native-aio=0", "--skip-name-resolve", "--max-connections=500",
            *(f"{key}={value}" for key, value in run.options.items() if key.startswith("--"))]


def is_ready(run):
    return os.path.exists(f"{run.dir}/socket") and run.quiet(
        ["mariadb-admin", "--no-defaults", f"--socket={run.dir}/socket", "-uroot", "ping"])


def facts(run):
    return {"socket": f"{run.dir}/socket"}

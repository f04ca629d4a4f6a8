"""MariaDB; or MySQL, if HOLDFAST_MYSQLD names its server. Anything that starts with `--` goes to the
server as it is (--wsrep-on=1)."""
import os

run_as = "mysql"

# Whoever reaches the socket or the port is root without a password: it listens on loopback alone.
# `app` may do everything in the database `holdfast`, and nothing else.
INIT = """CREATE DATABASE IF NOT EXISTS holdfast;
CREATE USER IF NOT EXISTS app@'%';
GRANT ALL ON holdfast.* TO app@'%';
"""

# MySQL's root comes by the socket alone.
ROOT_BY_TCP = """CREATE USER IF NOT EXISTS root@'127.0.0.1';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
"""


# A server that starts removes what looks like temporary tables of a dead one: each has a temporary
# directory of its own.


def mysqld():
    return os.environ.get("HOLDFAST_MYSQLD")


def asked(run):
    return [f"{key}={value}" for key, value in run.options.items() if key.startswith("--")]


def prepare(run):
    run.call(["mkdir", "-p", f"{run.dir}/tmp"])
    if mysqld():
        # What it must know before it makes its tables.
        run.call([mysqld(), "--no-defaults", f"--datadir={run.data}", "--initialize-insecure",
                  *(each for each in asked(run) if each.startswith("--lower-case-table-names"))])
    else:
        run.call(["mariadb-install-db", "--no-defaults", f"--datadir={run.data}", "--skip-test-db",
                  "--auth-root-authentication-method=normal", "--innodb-use-native-aio=0",
                  f"--tmpdir={run.dir}/tmp"])
    with open(f"{run.dir}/init.sql", "w", encoding="utf-8") as init:
        init.write(INIT + (ROOT_BY_TCP if mysqld() else ""))


def command(run):
    return [mysqld() or "mariadbd", "--no-defaults", f"--datadir={run.data}", f"--port={run.port}",
            "--bind-address=127.0.0.1", f"--socket={run.dir}/socket",
            f"--pid-file={run.dir}/pid",
            f"--init-file={run.dir}/init.sql", f"--tmpdir={run.dir}/tmp",
            "--innodb-buffer-pool-size=64M", "--innodb-use-native-aio=0", "--skip-name-resolve", "--max-connections=500",
            *(["--mysqlx=OFF", "--disable-log-bin", "--secure-file-priv="] if mysqld() else []),
            *asked(run)]


def is_ready(run):
    return os.path.exists(f"{run.dir}/socket") and run.quiet(
        ["mariadb-admin", "--no-defaults", f"--socket={run.dir}/socket", "-uroot", "ping"])


def facts(run):
    return {"socket": f"{run.dir}/socket"}

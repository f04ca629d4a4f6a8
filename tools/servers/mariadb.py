"""MariaDB. durable=1: syncs at every commit, as a production server does; anything that starts
with `--` goes to the server as it is (--wsrep-on=1)."""
import os

run_as = "mysql"

# Whoever reaches the socket or the port is root without a password: it listens on loopback alone.


def prepare(run):
    run.call(["mariadb-install-db", "--no-defaults", f"--datadir={run.data}", "--skip-test-db",
              "--auth-root-authentication-method=normal"])


def command(run):
    sync = "1" if "durable" in run.options else "0"
    return ["mariadbd", "--no-defaults", f"--datadir={run.data}", f"--port={run.port}",
            "--bind-address=127.0.0.1", f"--socket={run.dir}/socket",
            f"--pid-file={run.dir}/pid", f"--innodb-flush-log-at-trx-commit={sync}",
            "--innodb-buffer-pool-size=64M", "--skip-name-resolve", "--max-connections=500",
            *(f"{key}={value}" for key, value in run.options.items() if key.startswith("--"))]


def is_ready(run):
    return os.path.exists(f"{run.dir}/socket") and run.quiet(
        ["mariadb-admin", "--no-defaults", f"--socket={run.dir}/socket", "-uroot", "ping"])


def facts(run):
    return {"socket": f"{run.dir}/socket"}

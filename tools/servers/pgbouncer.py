"""pgbouncer before a PostgreSQL on loopback. upstream=PORT; pool_mode=transaction unless told."""
import os

run_as = "postgres"


def prepare(run):
    pass


def command(run):
    with open(f"{run.dir}/users.txt", "w", encoding="utf-8") as users:
        users.write('"postgres" ""\n')
    with open(f"{run.dir}/pgbouncer.ini", "w", encoding="utf-8") as config:
        config.write(f"""[databases]
* = host=127.0.0.1 port={run.options['upstream']}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {run.port}
unix_socket_dir =
auth_type = trust
auth_file = {run.dir}/users.txt
pool_mode = {run.options.get('pool_mode', 'transaction')}
max_client_conn = 200
default_pool_size = 5
""")
    for file in ("users.txt", "pgbouncer.ini"):
        os.chmod(f"{run.dir}/{file}", 0o644)
    return ["/usr/sbin/pgbouncer", f"{run.dir}/pgbouncer.ini"]


def is_ready(run):
    return run.accepts()

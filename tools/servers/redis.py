"""Redis. Keeps its data in memory alone unless durable=1; anything that starts with `--` goes to
the server as it is (--maxmemory=10mb). tls=1: its port speaks TLS alone, with a certificate for
localhost of its own."""
import os

from servers import certificates


def prepare(run):
    if "tls" in run.options:
        certificates.make(run)


def command(run):
    durable = "durable" in run.options
    words = ["redis-server", "--bind", "127.0.0.1",
             "--unixsocket", f"{run.dir}/socket", "--dir", run.data, "--save", "",
             "--appendonly", "yes" if durable else "no", "--appendfsync", "always",
             "--logfile", "", "--databases", "16", "--enable-debug-command", "yes"]
    if "tls" in run.options:
        words += ["--port", "0", "--tls-port", str(run.port), "--tls-auth-clients", "no",
                  "--tls-ca-cert-file", f"{run.data}/ca.crt",
                  "--tls-cert-file", f"{run.data}/server.crt",
                  "--tls-key-file", f"{run.data}/server.key"]
    else:
        words += ["--port", str(run.port)]
    for key, value in run.options.items():
        if key.startswith("--"):
            words += [key, *value.split(" ")]
    return words


def is_ready(run):
    login = []
    if "--requirepass" in run.options:
        login = ["-a", run.options["--requirepass"], "--no-auth-warning"]
    return os.path.exists(f"{run.dir}/socket") and run.quiet(
        ["redis-cli", "-s", f"{run.dir}/socket", "-e", *login, "ping"])


def facts(run):
    return {"socket": f"{run.dir}/socket", "ca": f"{run.data}/ca.crt"}

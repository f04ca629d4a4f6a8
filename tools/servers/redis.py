"""Redis. Keeps its data in memory alone unless durable=1; anything that starts with `--` goes to
the server as it is (--maxmemory=10mb). tls=1: its port speaks TLS alone, with a certificate for
localhost of its own."""
import os


def prepare(run):
    if "tls" in run.options:
        _make_certificates(run)


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


def _make_certificates(run):
    def openssl(*words):
        run.call(["openssl", *words])

    def path(name):
        return f"{run.data}/{name}"

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=test CA",
            "-keyout", path("ca.key"), "-out", path("ca.crt"))
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
            "-keyout", path("server.key"), "-out", path("server.csr"))
    with open(path("names"), "w", encoding="utf-8") as names:
        names.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", path("server.csr"), "-CA", path("ca.crt"), "-CAkey",
            path("ca.key"), "-CAcreateserial", "-days", "30", "-extfile", path("names"),
            "-out", path("server.crt"))

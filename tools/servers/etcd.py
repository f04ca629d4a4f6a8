"""etcd, one node. Options:

  name=N peers=NAME:CLIENT:PEER,...   one of a cluster: its name, and the ports of all
  listen_peer=PORT                    where it hears its peers, if not at the port they know
  tls=1                               its port speaks TLS alone, with a certificate for localhost and
                                      127.0.0.1; tls=DNS:localhost for other names
  client_cert=1                       and wants certificates from its clients
  --KEY=VALUE                         goes to the server as it is
"""
import ssl
import urllib.request

from servers import certificates


def prepare(run):
    names = run.options.get("tls")
    if names:
        certificates.make(run, *([] if names == "1" else [names]))


def command(run):
    peers = [peer.split(":") for peer in run.options.get("peers", "").split(",") if peer]
    name = run.options.get("name", "solo")
    peer_port = next((peer for each, _, peer in peers if each == name), "0")
    cluster = ",".join(f"{each}=http://127.0.0.1:{peer}" for each, _, peer in peers)
    here = f"{_scheme(run)}://127.0.0.1:{run.port}"
    arguments = ["etcd", "--name", name, "--data-dir", f"{run.data}/etcd", "--listen-client-urls",
                 here, "--advertise-client-urls", here, "--log-level", "error", "--logger", "zap",
                 "--listen-peer-urls",
                 f"http://127.0.0.1:{run.options.get('listen_peer', peer_port)}",
                 "--heartbeat-interval", "50", "--election-timeout", "500"]
    if cluster:
        arguments += ["--initial-advertise-peer-urls", f"http://127.0.0.1:{peer_port}",
                      "--initial-cluster", cluster]
    if "tls" in run.options:
        arguments += ["--cert-file", f"{run.data}/server.crt",
                      "--key-file", f"{run.data}/server.key"]
    if "client_cert" in run.options:
        arguments += ["--client-cert-auth", "--trusted-ca-file", f"{run.data}/ca.crt"]
    return arguments + [f"{key}={value}" for key, value in run.options.items()
                        if key.startswith("--")]


def is_ready(run):
    if run.options.get("peers"):
        return run.accepts()  # a cluster serves when most of it runs
    trust = None
    if "tls" in run.options:
        trust = ssl.create_default_context(cafile=f"{run.data}/ca.crt")
        trust.load_cert_chain(f"{run.data}/client.crt", f"{run.data}/client.key")
        trust.check_hostname = False
    try:
        with urllib.request.urlopen(f"{_scheme(run)}://127.0.0.1:{run.port}/health", timeout=2,
                                    context=trust) as answer:
            return b"true" in answer.read()
    except OSError:
        return False


def facts(run):
    return {name.replace(".", "_"): f"{run.data}/{name}"
            for name in ("ca.crt", "other.crt", "client.crt", "client.key")}


def _scheme(run):
    return "https" if "tls" in run.options else "http"

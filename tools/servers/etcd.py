"""etcd, one node. Options:

  name=N peers=NAME:CLIENT:PEER,...   one of a cluster: its name, and the ports of all
"""
import urllib.request


def prepare(run):
    pass  # etcd makes what it needs


def command(run):
    peers = [peer.split(":") for peer in run.options.get("peers", "").split(",") if peer]
    name = run.options.get("name", "solo")
    peer_port = next((peer for each, _, peer in peers if each == name), "0")
    cluster = ",".join(f"{each}=http://127.0.0.1:{peer}" for each, _, peer in peers)
    here = f"http://127.0.0.1:{run.port}"
    arguments = ["etcd", "--name", name, "--data-dir", f"{run.data}/etcd", "--listen-client-urls",
                 here, "--advertise-client-urls", here, "--log-level", "error", "--logger", "zap",
                 "--listen-peer-urls", f"http://127.0.0.1:{peer_port}",
                 "--heartbeat-interval", "50", "--election-timeout", "500"]
    if cluster:
        arguments += ["--initial-advertise-peer-urls", f"http://127.0.0.1:{peer_port}",
                      "--initial-cluster", cluster]
    return arguments


def is_ready(run):
    if run.options.get("peers"):
        return run.accepts()  # a cluster serves when most of it runs
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/health", timeout=2) as answer:
            return b"true" in answer.read()
    except OSError:
        return False

"""A Redis Sentinel. master=PORT: what it watches, under the name `mymaster`; quorum=N (2)."""


def prepare(run):
    with open(f"{run.data}/sentinel.conf", "w", encoding="utf-8") as config:
        config.write(f"port {run.port}\nbind 127.0.0.1\ndir {run.data}\nlogfile \"\"\n"
                     f"sentinel monitor mymaster 127.0.0.1 {run.options['master']} "
                     f"{run.options.get('quorum', '2')}\n"
                     "sentinel down-after-milliseconds mymaster 1000\n"
                     "sentinel failover-timeout mymaster 5000\n")


def command(run):
    return ["redis-sentinel", f"{run.data}/sentinel.conf"]


def is_ready(run):
    return run.accepts() and run.quiet(["redis-cli", "-p", str(run.port), "-e", "ping"])

"""ZooKeeper, one node: ticks of 200 ms, so that sessions may be as short as 400 ms. Options:

  id=N peers=CLIENT:QUORUM:ELECTION,...   one of an ensemble: its number from 1, and the ports of all
  durable=1                               as in production: syncs, compiles, keeps empty containers
"""
import os
import socket

# Nothing is compiled that will not run for long, and the garbage is small. An election in
# which a message was lost is tried again after ever longer pauses, up to a minute.
JVM = ["-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
       "-XX:-UsePerfData"]
JARS = ["zookeeper", "slf4j-nop"]


def prepare(run):
    lines = [
        # A leader whose follower was heard wrongly (ZOOKEEPER-4685) gives up after initLimit ticks.
        "tickTime=200", "initLimit=25", "syncLimit=50", f"dataDir={run.data}",
        f"clientPort={run.port}", "clientPortAddress=127.0.0.1", "maxClientCnxns=0",
        "minSessionTimeout=400", "maxSessionTimeout=60000", "admin.enableServer=false",
        "4lw.commands.whitelist=*", "preAllocSize=64",
        "extendedTypesEnabled=true",
    ]
    peers = [peer.split(":") for peer in run.options.get("peers", "").split(",") if peer]
    if peers:
        with open(os.path.join(run.data, "myid"), "w", encoding="ascii") as myid:
            myid.write(run.options["id"] + "\n")
        lines += [f"server.{number}=127.0.0.1:{quorum}:{election};127.0.0.1:{client}"
                  for number, (client, quorum, election) in enumerate(peers, 1)]
        lines = [line for line in lines if not line.startswith("clientPort")]
    with open(os.path.join(run.dir, "zoo.cfg"), "w", encoding="ascii") as config:
        config.write("\n".join(lines) + "\n")


def command(run):
    jars = ":".join(f"/usr/share/java/{jar}.jar" for jar in JARS)
    habits = ["-Xmx512m"] if run.options.get("durable") else [
        *JVM, "-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=1000",
        "-Dzookeeper.fastleader.maxNotificationInterval=1000"]
    return ["java", *habits, "-Dzookeeper.jmx.log4j.disable=true", "-cp", jars,
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", os.path.join(run.dir, "zoo.cfg")]


def is_ready(run):
    if run.options.get("peers"):
        return run.accepts()  # an ensemble serves when most of it runs
    try:
        with socket.create_connection(("127.0.0.1", run.port), timeout=2) as talk:
            talk.sendall(b"ruok")
            return talk.recv(16) == b"imok"
    except OSError:
        return False

"""kazoo's Lock. The object is kept, as it makes its node's parent once; a thread has its own."""
import os
import threading
from importlib.metadata import version

from kazoo.client import KazooClient

import scenarios


class Client:
    def __init__(self, port):
        self.kazoo = KazooClient(hosts=f"127.0.0.1:{port}", timeout=30)
        self.kazoo.start()
        self.own = threading.local()

    def lock(self, name):
        locks = self.own.__dict__.setdefault("locks", {})
        lock = locks.get(name) or locks.setdefault(name, self.kazoo.Lock(f"/kazoo/{name}"))
        lock.acquire()
        return lock.release


scenarios.run("kazoo", version("kazoo"), Client)
os._exit(0)  # its threads do not matter any more

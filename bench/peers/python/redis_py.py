"""redis-py's Lock."""
from importlib.metadata import version

import redis

import scenarios


class Client:
    def __init__(self, port):
        self.redis = redis.Redis(port=port)

    def lock(self, name):
        lock = self.redis.lock(name, timeout=30)
        lock.acquire()
        return lock.release


scenarios.run("redis-py", version("redis"), Client)

"""Takes a lock as a Python program does, says "held", and lets go when a file appears.
usage: kazoo_peer.py HOST:PORT lock|read|write PATH FILE"""
import os
import sys
import time

from kazoo.client import KazooClient


def main():
    host, kind, path, go = sys.argv[1:]
    client = KazooClient(hosts=host)
    client.start()
    make = {"lock": client.Lock, "read": client.ReadLock, "write": client.WriteLock}[kind]
    print("asks", flush=True)
    with make(path, "kazoo peer"):
        print("held", flush=True)
        while not os.path.exists(go):
            time.sleep(0.02)
    print("released", flush=True)
    client.stop()


if __name__ == "__main__":
    main()

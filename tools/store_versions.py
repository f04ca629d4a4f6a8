"""The versions of the stores on this machine, as Debian knows them."""

import re
import subprocess

# engine: what it is called, its package
PACKAGES = {"sqlite": ("SQLite", "libsqlite3-0"), "mysql": ("MariaDB", "mariadb-server"),
            "postgres": ("PostgreSQL", "postgresql-15"), "redis": ("Redis", "redis-server"),
            "redlock": ("5 x Redis", "redis-server"),
            "zookeeper": ("ZooKeeper", "zookeeper"), "etcd": ("etcd", "etcd-server")}


def version_of(engine):
    """`Redis 7.0.15`; empty if it is not installed as a package."""
    name, package = PACKAGES[engine]
    asked = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", package],
                           capture_output=True, text=True, check=False)
    version = re.match(r"(?:\d+:)?([\d.]+)", asked.stdout)
    return f"{name} {version[1].rstrip('.')}" if version else ""


def all_versions():
    return ", ".join(filter(None, (version_of(each) for each in PACKAGES if each != "redlock")))

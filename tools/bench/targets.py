"""What is measured, beside what, and what is wanted of it."""

SCENARIOS = ["U1", "U8", "U32", "U128", "A32", "C16", "H4", "P2", "W100", "W1000", "W1000n", "W50p",
             "L100k"]
COUNTED = {"W1000", "W1000n", "L100k"}  # while they run the server's own counts are read
ONCE = {"W100", "W1000", "W1000n", "W50p", "L100k"}  # steady states: one round tells

FIFO = ("hand_overs_per_s", "fifo-C16", "FIFO queue of condition variables, no store",
        lambda r: r >= 0.5, "at least 0.5")
BY_HAND = "INSERT + DELETE by hand, each awaited"
FLOCK = ("p50_us", "flock-P2", "`flock(2)`", lambda r: r <= 3, "at most 3")
FOUR_TIMES = ("cycles_per_s", "U1", "our own U1", lambda r: r >= 4, "at least 4")
# engine: scenario: (our field, baseline, what the baseline is, target on ours/baseline, as shown)
RATIOS = {
    "sqlite": {
        "U1": ("cycles_per_s", "sqlite-U1", "bare SQLite loop, same two write transactions",
               lambda r: r >= 0.5, "at least 0.5"),
        "U32": ("cycles_per_s", "U1", "our own U1", lambda r: r >= 2, "at least 2"),
        "C16": FIFO,
        "P2": FLOCK,
    },
    "mysql": {
        "U1": ("cycles_per_s", "mysql-U1", BY_HAND, lambda r: r >= 1.5, "at least 1.5"),
        "U32": ("cycles_per_s", "mysql-U32", BY_HAND + ", 32 connections", lambda r: r >= 2.5,
                "at least 2.5"),
        "C16": FIFO,
        "P2": ("p50_us", "mysql-P2", "`SELECT ... FOR UPDATE`", lambda r: r <= 2.5, "at most 2.5"),
    },
    "postgres": {
        "U1": ("cycles_per_s", "postgres-U1", BY_HAND, lambda r: r >= 1.5, "at least 1.5"),
        "U32": ("cycles_per_s", "postgres-U32", BY_HAND + ", 32 connections", lambda r: r >= 2,
                "at least 2"),
        "C16": FIFO,
        "P2": ("p50_us", "postgres-P2", "`pg_advisory_lock`", lambda r: r <= 2.5, "at most 2.5"),
    },
    "redis": {
        "U1": ("cycles_per_s", "redis-U1", "half of the raw SETs on one connection",
               lambda r: r >= 1.4, "at least 1.4"),
        "C16": FIFO,
        "P2": FLOCK,
    },
    "redlock": {
        "U1": ("p50_us", "redlock-U1", "a SET at each of the 5 nodes at once, all awaited",
               lambda r: r <= 2, "at most 2"),
    },
    "zookeeper": {
        "U1": ("cycles_per_s", "zookeeper-U1", "create + delete by hand, each awaited",
               lambda r: r >= 0.85, "at least 0.85"),
        "U32": FOUR_TIMES,
        "C16": FIFO,
    },
    "etcd": {
        "U1": ("cycles_per_s", "etcd-U1", "its two transactions by hand, each awaited",
               lambda r: r >= 0.85, "at least 0.85"),
        "U32": FOUR_TIMES,
        "C16": FIFO,
    },
}
ONE_WRITE = "the same queue with one bare UPDATE after every 32 hand-overs"
# engine: scenario: [(baseline, what it is)]: what nobody on that store can go below, shown beside it
LIMITS = {
    "sqlite": {"U32": [("fifo-C16", "a thread woken for every cycle, without any store")],
               "P2": [("sqlite-cold", "one bare SQLite write transaction, as cold")]},
    "mysql": {"C16": [("mysql-C16", ONE_WRITE)],
              "P2": [("mysql-cold", "one bare UPDATE, as cold"),
                     ("mysql-cold-wake", "one bare UPDATE that wakes a connection before its commit,"
                      " which then reads the row, as cold")]},
    "postgres": {"C16": [("postgres-C16", ONE_WRITE)],
                 "P2": [("postgres-cold", "one bare UPDATE, as cold"),
                        ("postgres-notify", "one bare UPDATE with NOTIFY that the disk is not waited "
                                            "for, heard by a listener, as cold")]},
    "redis": {"U1": [("redis-script", "one script a cycle that reads and writes two keys")],
              "P2": [("redis-P2", "one bare SET and PUBLISH, as cold, until a subscriber hears it")]},
    "zookeeper": {"U32": [("zookeeper-U32",
                           "its three requests by hand, 32 threads on one connection")]},
    "etcd": {"U32": [("etcd-U32", "its two transactions by hand, 32 connections")],
             "C16": [("etcd-C16",
                      "the same queue with one bare transaction after every 32 hand-overs")]},
}
# Strategies without what the other scenarios need: these alone.
ONLY = {"redlock": ["U1", "U32"]}
EMBEDDED_FIGURES = {
    "W1000": [("wake_ups_per_s", "wake-ups/s", lambda v: v <= 2, "the backstop poll alone")],
    "W1000n": [("wake_ups_per_s", "wake-ups/s", lambda v: v <= 2, "the backstop poll alone")],
    "L100k": [("bytes_per_lease", "bytes a lease", lambda v: v < 1024, "under 1024")],
}
# engine: most connections, most commands/s while 1,000 wait; commands/s while 100,000 leases are held
AT_THE_SERVER = {"mysql": (4, 10, 50), "postgres": (3, 10, None), "redis": (2, 20, None)}
# scenario: field, unit, target, as shown
FIGURES = {
    "C16": [("largest_share", "x the mean share", lambda v: v <= 2, "at most 2")],
    "H4": [("overtakes", "overtakes", lambda v: v == 0, "none"),
           ("overlaps", "overlaps", lambda v: v == 0, "none")],
    "W100": [("cpu_percent", "% of one core", lambda v: v < 1, "under 1")],
    "W1000": [("cpu_percent", "% of one core", lambda v: v < 1, "under 1")],
    "W1000n": [("cpu_percent", "% of one core", lambda v: v < 1, "under 1")],
    "W50p": [("cpu_percent", "% of one core, all 50", lambda v: v < 1, "under 1")],
    "L100k": [("lost", "leases lost", lambda v: v == 0, "none")],
}

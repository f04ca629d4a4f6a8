"""The scenarios of bench/peers/README.md, for a peer of this language."""
import json
import statistics
import sys
import threading
import time

NAMES = 100
WARM_UP_SECONDS = 0.5
HOLD_SECONDS = 0.7


def run(peer, version, open_client):
    """open_client(port) gives a client; client.lock(name) waits and returns what lets go."""
    scenario, seconds, port = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    if scenario == "P2":
        field, value = "p50_us", wake_up(open_client, port, seconds)
    elif scenario.startswith("C"):
        field, value = "hand_overs_per_s", contend(open_client(port), int(scenario[1:]), seconds)
    else:
        field, value = "cycles_per_s", cycle(open_client(port), int(scenario[1:]), seconds)
    print(json.dumps({"peer": peer, "version": version, "scenario": scenario, "field": field,
                      "value": value}), flush=True)


def cycle(client, threads, seconds):
    def once(thread, count):
        client.lock(f"peer:{thread}:{count % NAMES}")()

    repeat(threads, WARM_UP_SECONDS, once)
    return repeat(threads, seconds, once)


def contend(client, threads, seconds):
    seen = {"holder": -1, "changes": 0}  # guarded by the lock itself

    def once(thread, _):
        unlock = client.lock("peer:contended")
        if seen["holder"] != thread:
            seen["holder"] = thread
            seen["changes"] += 1
        unlock()

    repeat(threads, WARM_UP_SECONDS, once)
    seen["changes"] = 0
    began = time.monotonic()
    repeat(threads, seconds, once)
    return seen["changes"] / (time.monotonic() - began)


def wake_up(open_client, port, seconds):
    holder, waiter = open_client(port), open_client(port)
    gaps = []
    for _ in range(max(3, int(seconds / HOLD_SECONDS))):
        unlock = holder.lock("peer:passed")
        entered = []

        def enter(entered=entered):
            mine = waiter.lock("peer:passed")
            entered.append(time.monotonic())
            mine()

        waiting = threading.Thread(target=enter)
        waiting.start()
        time.sleep(HOLD_SECONDS)
        left = time.monotonic()
        unlock()
        waiting.join()
        gaps.append((entered[0] - left) * 1e6)
    return statistics.median(gaps)


def repeat(threads, seconds, once):
    """Steps a second of all threads."""
    counts, over, troubles = [0] * threads, threading.Event(), []

    def work(thread):
        try:
            while not over.is_set():
                once(thread, counts[thread])
                counts[thread] += 1
        except Exception as trouble:  # pylint: disable=broad-except
            troubles.append(trouble)

    team = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    began = time.monotonic()
    for each in team:
        each.start()
    time.sleep(seconds)
    over.set()
    elapsed = time.monotonic() - began
    for each in team:
        each.join()
    if troubles:
        raise troubles[0]
    return sum(counts) / elapsed

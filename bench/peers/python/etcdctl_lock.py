"""`etcdctl lock`: a process a lock, which runs a command and lets go when that ends."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

NAMES = 100
HOLD_SECONDS = 0.7
ENVIRONMENT = {**os.environ, "ETCDCTL_API": "3"}


def locked(port, name, *command):
    return subprocess.Popen(["etcdctl", f"--endpoints=127.0.0.1:{port}", "lock", name, *command],
                            stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)


def cycle(port, seconds):
    count, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        with locked(port, f"peer:{count % NAMES}", "true") as done:
            done.communicate()
        count += 1
    return count / (time.monotonic() - began)


def wake_up(port, seconds):
    gaps = []
    with tempfile.TemporaryDirectory() as directory:
        door, script = f"{directory}/door", f"{directory}/hold"
        os.mkfifo(door)  # etcdctl does not pass its input on
        with open(script, "w", encoding="ascii") as text:
            text.write(f"echo held\nread line <{door}\n")
        for _ in range(max(3, int(seconds / HOLD_SECONDS))):
            with locked(port, "peer:passed", "sh", script) as holder:
                if "held" not in holder.stdout.readline():
                    sys.exit("etcdctl lock does not run the command")
                with locked(port, "peer:passed", "date", "+%s%N") as waiter:
                    time.sleep(HOLD_SECONDS)
                    with open(door, "w", encoding="ascii") as bell:
                        left = time.time_ns()
                        bell.write("\n")
                    entered = int(waiter.communicate()[0].split()[-1])
            gaps.append((entered - left) / 1e3)
    return statistics.median(gaps)


def main():
    scenario, seconds, port = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    says = subprocess.run(["etcdctl", "version"], capture_output=True, text=True, check=True,
                          env=ENVIRONMENT).stdout
    field, value = (("p50_us", wake_up(port, seconds)) if scenario == "P2" else
                    ("cycles_per_s", cycle(port, seconds)))
    print(json.dumps({"peer": "etcdctl-lock", "version": says.split()[2], "scenario": scenario,
                      "field": field, "value": value}))


if __name__ == "__main__":
    main()

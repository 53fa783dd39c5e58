#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often the same candidates end with the same winner: bench/search_final.py [RUNS] [busy]

Tunes c6 of bench/ops.json RUNS (50) times, each in a history of its own, with the same eight constructed candidates. The
truth is each winner's median over all runs that it won; a run's loss is that of its winner against the fastest of those
that won at least three times. With `busy`, a loop occupies the second core."""
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(job):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "job.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(job, file)
        done = subprocess.run([os.path.join(ROOT, "build/bin/wpkctl"), "tune", path, "--strategy", "construct",
                               "--candidates", "8", "--threads", "1", "--data", os.path.join(directory, "history"),
                               "--json", "-q"], capture_output=True, text=True, check=True)
    kernel = json.loads(done.stdout)["kernels"][0]
    return kernel["schedule"], kernel["time_ns"]["median"]


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 50
    with open(os.path.join(ROOT, "bench/ops.json"), encoding="utf-8") as file:
        ops = json.load(file)["ops"]
    job = {"name": "final", "ops": [op for op in ops if op["name"] == "c6"]}
    load = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if "busy" in sys.argv else None
    times = collections.defaultdict(list)
    winners = []
    try:
        for _ in range(runs):
            winner, time = run(job)
            winners.append(winner)
            times[winner].append(time)
    finally:
        if load is not None:
            load.kill()
    truth = {winner: statistics.median(list_) for winner, list_ in times.items()}
    best = min(time for winner, time in truth.items() if len(times[winner]) >= min(3, runs))
    losses = sorted(max(0, truth[winner] / best - 1) for winner in winners)
    most = collections.Counter(winners).most_common(1)[0][1]
    print("%d runs: %d winners, the same in %.0f %%; loss: median %.1f %%, 99 %% %.1f %%" %
          (runs, len(truth), 100 * most / runs, 100 * statistics.median(losses),
           100 * losses[min(runs - 1, int(0.99 * runs))]))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares times that a worker records under half of a CPU's quota with those that it records without one.

    bench/quota.py [PERCENT]      default 50; as root, where a control group (version 1 or 2) can have a quota

The same job, of candidates drawn from the same seed, runs twice: free, and with all its processes in a group that has
PERCENT of one CPU. Printed is how many candidates have a time in both, in how many it differs by more than 3 %, and
by how much at most; and the same of the times over those of the search's anchor, with which each is timed in turns.
Before, between and after the runs a fixed loop tells how fast the machine is just then.
"""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GROUPS = (("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "%d"), ("/sys/fs/cgroup", "cpu.max", "%d 100000"))
ROWS = (64, 96, 128, 160)


def job():
    return {"name": "quota", "search": {"strategy": "random", "seed": 7}, "budget": {"candidates": 8, "seconds": 240},
            "ops": [{"name": "p%d" % rows, "op": "C[i,j] = sum(k) A[i,k] * B[k,j]", "constants": ["B"],
                     "tensors": {"A": "f32[%d,384]" % rows, "B": "f32[384,512]", "C": "f32[%d,512]" % rows}} for rows in ROWS]}


def make_group(percent):
    """The file that a process of the group writes its number to."""
    for root, file, text in GROUPS:
        path = os.path.join(root, "wpk-bench-quota")
        try:
            os.makedirs(path, exist_ok=True)
            with open(os.path.join(path, file), "w", encoding="ascii") as quota:
                quota.write(text % (percent * 1000))
            return os.path.join(path, "cgroup.procs")
        except OSError:
            continue
    sys.exit("quota.py: no control group can have a quota here")


def print_speed():
    spent = []
    for _ in range(9):
        began = time.perf_counter()
        sum(i * i for i in range(1000000))
        spent.append(1e3 * (time.perf_counter() - began))
    print("a fixed loop: %.1f to %.1f ms" % (min(spent), max(spent)), flush=True)


def times(folder, group):
    file, data = os.path.join(folder, "job.json"), os.path.join(folder, "throttled" if group else "free")
    with open(file, "w", encoding="utf-8") as out:
        json.dump(job(), out)

    def enter():
        if group:
            with open(group, "w", encoding="ascii") as procs:
                procs.write("%d" % os.getpid())

    done = subprocess.run([os.path.join(ROOT, "build/bin/wpkctl"), "tune", file, "-q", "--data", data], preexec_fn=enter,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    print_speed()
    print("%s: exit code %d %s" % (os.path.basename(data), done.returncode, done.stderr.strip()[-300:]), flush=True)
    with sqlite3.connect(os.path.join(data, "history.db")) as base:
        return {(row[0], row[1]): row[2:] for row in base.execute(
            "SELECT p.extents, t.candidate, min(m.median_ns), min(m.anchor_ratio) FROM trial t JOIN problem p ON p.id = t.problem_id JOIN measurement m"
            " ON m.trial_id = t.id WHERE m.censored = 0 AND m.median_ns > 0 AND t.candidate <> '' GROUP BY t.id")}


def main():
    if "--help" in sys.argv:
        print(__doc__, end="")
        return
    group = make_group(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
    print_speed()
    with tempfile.TemporaryDirectory() as folder:
        free, throttled = times(folder, None), times(folder, group)
    os.rmdir(os.path.dirname(group))
    both = [(free[key], throttled[key]) for key in free if key in throttled]
    print("%d candidates have a time in both, %d free, %d throttled" % (len(both), len(free), len(throttled)))
    for i, name in enumerate(("times", "times over the anchor's")):
        off = [100 * abs(b[i] / a[i] - 1) for a, b in both if a[i] > 0 and b[i] > 0]
        print("%s off by more than 3 %%: %d of %d; at most %.1f %%" % (name, sum(x > 3 for x in off), len(off),
                                                                    max(off, default=0)))


if __name__ == "__main__":
    main()

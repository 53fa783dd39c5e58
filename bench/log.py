#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of a log in PostgreSQL, and how long nobody leases when its holder is gone.

    bench/log.py DIR [ROWS]

DIR, which is made, is on a real disk: the histories (of ROWS trials first, 300,000) and two servers of PostgreSQL lie
there, the second a synchronous standby of the first, both with fsync. Prints results/s of bench-fleet and the latency
of bench-open-loop at 3,000 results/s, each without and with the log; then, for a holder that is killed, stopped, or cut
off from PostgreSQL, from its clients and workers, the seconds until the other wpkd gives a lease, five times each.
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests/e2e"))

import lib  # noqa: E402
import postgres  # noqa: E402
import test_log  # noqa: E402

TIMES = 5


def measure(where, program, *args):
    done = subprocess.run([os.path.join(ROOT, "build/bench", program), *args], cwd=where, capture_output=True, text=True,
                          check=False)
    print("-- %s %s" % (program, " ".join(args)))
    print((done.stdout + done.stderr).rstrip(), flush=True)


def measure_load(where, rows):
    main = postgres.Server(synchronous="other", sync=True).start()
    other = postgres.Server("other", of=main, sync=True).start()
    try:
        measure(where, "bench-fleet", "--data", "fleet", "--rows", rows)
        measure(where, "bench-fleet", "--data", "fleet", "--rows", rows, "--log", main.database("fleet"))
        measure(where, "bench-open-loop", "open")
        measure(where, "bench-open-loop", "open-log", main.database("open"))
    finally:
        other.close()
        main.close()


def measure_takeovers():
    box = lib.Box()
    pair = test_log.Pair(box)
    try:
        for kind, name in (("kill", "killed"), ("stop", "stopped"), ("link", "cut off"), ("handover", "handed over")):
            taken = [pair.befall(kind) for _ in range(TIMES)]
            print("%s: %s s until the other one leases" % (name, ", ".join("%.1f" % one for one in taken)), flush=True)
        pair.worker.stop()
    finally:
        pair.close()
        box.close()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print(__doc__, end="")
        sys.exit(0 if "--help" in sys.argv else 2)
    os.makedirs(sys.argv[1], exist_ok=True)
    tempfile.tempdir = os.path.abspath(sys.argv[1])
    measure_load(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "300000")
    tempfile.tempdir = None
    measure_takeovers()

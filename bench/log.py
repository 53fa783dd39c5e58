#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of a log in PostgreSQL, and how long nobody leases when its holder is gone.

    bench/log.py DIR [ROWS]

DIR, which is made, is on a real disk: the histories (of ROWS trials first, 300,000) and two servers of PostgreSQL lie
there, the second a synchronous standby of the first, both with fsync. Prints results/s of bench-fleet and the latency
of bench-open-loop at 3,000 results/s, each without and with the log; then, for a holder that is killed, stopped, cut
off from PostgreSQL (by a relay that passes nothing on; as root also in a network namespace) or told to hand over, the
seconds until the other wpkd gives a lease, five times each.
"""
import os
import subprocess
import sys
import tempfile
import time

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


class Apart(test_log.Site):
    """The wpkd "a" is in a network namespace of its own, with one line to here."""

    NAME, HERE, THERE = "wpk-bench-log", "10.213.7.1", "10.213.7.2"

    def __init__(self, box):
        self.server = postgres.Server()
        with open(os.path.join(self.server.data, "pg_hba.conf"), "a", encoding="utf-8") as file:
            file.write("host all all %s/32 trust\n" % self.THERE)
        self.server.set("listen_addresses = '*'\n")
        self.server.start()
        super().__init__(box, self.server.url)
        self.ip("netns", "add", self.NAME)
        self.ip("link", "add", "wpkbench0", "type", "veth", "peer", "name", "wpkbench1", "netns", self.NAME)
        self.ip("addr", "add", self.HERE + "/30", "dev", "wpkbench0")
        self.ip("link", "set", "wpkbench0", "up")
        self.ip("-n", self.NAME, "addr", "add", self.THERE + "/30", "dev", "wpkbench1")
        self.ip("-n", self.NAME, "link", "set", "wpkbench1", "up")

    @staticmethod
    def ip(*args):
        subprocess.run(["ip", *args], check=True)

    def close(self):
        self.ip("netns", "del", self.NAME)
        self.server.close()

    def start(self, name, *options, url=None):
        if name != "a":
            return super().start(name, *options, url=url)
        process = lib.Process(self.box, ["ip", "netns", "exec", self.NAME, os.path.join(lib.BIN, "wpkd"),
                                         "--data", self.data(name), "--http", "unix:" + self.box.path(name + ".sock"),
                                         "--listen", "ipc://" + self.workers(name), "--log",
                                         self.url.replace("127.0.0.1", self.HERE), *options])
        self.running[name] = process
        return process

    def cut_off(self, worker):
        """The seconds until "b" leases; after it "a" holds the log again."""
        self.start("b", "--standby")
        self.stands_by("b")
        began = time.monotonic()
        self.ip("link", "set", "wpkbench0", "down")
        self.serves("b")
        now = time.monotonic()
        lib.wait_for("a lease", lambda: worker.leased_at > now)
        taken = worker.leased_at - began
        self.ip("link", "set", "wpkbench0", "up")
        self.running["a"].wait(60)
        self.start("a", "--standby")
        self.stands_by("a")
        self.end("b")
        self.serves("a")
        return taken


def measure_apart():
    box = lib.Box()
    site = Apart(box)
    try:
        site.first()
        site.submit("a", 1000000)
        worker = test_log.Worker([site.workers(name) for name in "ab"])
        worker.start()
        taken = [site.cut_off(worker) for _ in range(TIMES)]
        print("cut off in a network namespace: %s s" % ", ".join("%.1f" % one for one in taken), flush=True)
        worker.stop()
        site.end("a")
    finally:
        site.close()
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
    if os.getuid() == 0:
        measure_apart()

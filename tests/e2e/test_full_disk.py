# SPDX-License-Identifier: Apache-2.0
"""The disk of a wpkd at work fills up, and is given room again: it says so, leases nothing, goes on
answering, and then goes on where it was, without a restart, a lost result or one counted twice."""
import ctypes
import errno
import os
import shutil
import sqlite3
import subprocess
import threading
import time

from lib import Service, Skip, check, main, need, small_job, wait_for

CLONE_NEWNS = 0x20000
CANDIDATES = 24
FINALISTS = 2  # of our own, measured once more on fresh inputs
FULL_S = 6  # longer than wpkd and the worker wait between two attempts


class Disk:
    """A file system of so many bytes, seen by this process and its children alone."""

    def __init__(self, path, size):
        self.path = path
        self.filler = os.path.join(path, "filler")
        os.makedirs(path)
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
            raise Skip("no mounts of its own: " + os.strerror(ctypes.get_errno()))
        for command in (["mount", "--make-rprivate", "/"],
                        ["mount", "-t", "tmpfs", "-o", "size=%d" % size, "none", path]):
            if shutil.which("mount") is None or subprocess.run(
                    command, stderr=subprocess.DEVNULL, check=False).returncode != 0:
                raise Skip("mounting is not allowed here")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Not waiting for whoever a failed test leaves at work in it.
        subprocess.run(["umount", "-l", self.path], check=False)

    def fill(self):
        """To the last page."""
        with open(self.filler, "ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError as error:
                    check(error.errno == errno.ENOSPC, "it is full", error)

    def make_room(self):
        os.unlink(self.filler)


class Reader(threading.Thread):
    """Somebody who looks a kernel up all the time, and what it was told that was not one."""

    def __init__(self, service, query):
        super().__init__()
        self.service, self.query = service, query
        self.asked = 0
        self.wrong = []
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(0.02):
            try:
                status, answer, _ = self.service.ask("POST", "/v1/kernels:lookup", self.query)
                right = status == 200 and answer["match"] in ("exact", "vendor") and answer["kernel_id"]
                self.wrong += [] if right else [(status, answer)]
            except (OSError, KeyError) as error:
                self.wrong.append(repr(error))
            self.asked += 1

    def stop(self):
        self.stopping.set()
        self.join()


def job_of(service, identifier):
    return service.ask("GET", "/v1/jobs/" + identifier)[1]


def tried(job):
    counts = job["ops"][0]["candidates"]
    return counts["measured"] + counts["failed"]


def submit(service, **changes):
    status, answer, _ = service.ask("POST", "/v1/jobs", small_job(**changes))
    check(status == 201, "the job is accepted", status, answer)
    return answer["id"]


def query_of_served(service):
    """A kernel that is there before the disk fills: what it is looked up by."""
    identifier = submit(service, budget={"candidates": 2, "seconds": 120})
    wait_for("a kernel to look up", lambda: job_of(service, identifier)["state"] == "done", 120)
    kernel = service.ask("GET", "/v1/kernels")[1]["kernels"][0]
    return {"fingerprint": kernel["fingerprint"], "layouts": kernel["layouts"], "threads": 1}


def recorded(box):
    """Trials that ended, each measured once."""
    with sqlite3.connect(os.path.join(box.data, "history.db"), timeout=10) as db:
        twice = db.execute("SELECT trial_id FROM measurement WHERE kind = 'trial'"
                           " GROUP BY trial_id HAVING COUNT(*) > 1").fetchall()
        check(not twice, "nothing is counted twice", twice)
        return set(db.execute("SELECT id, candidate, outcome FROM trial WHERE outcome != ''"))


def timed(box):
    """How often the worker timed a candidate."""
    with open(box.path("trace"), encoding="utf-8") as file:
        return file.read().count('"name":"measure"')


def check_full(service, reader):
    """Check the state that a wpkd shows when its disk is full."""
    wait_for("it is not ready", lambda: service.ask("GET", "/readyz")[0] == 503, 60)
    status, ready, headers = service.ask("GET", "/readyz")
    reasons = " ".join(ready["reasons"])
    check("full" in reasons or "No space" in reasons, "it says why", ready)
    check(status == 503 and headers.get("retry-after"), "and when to ask again", headers)
    check(service.ask("GET", "/healthz")[0] == 200, "but it lives")
    check(service.metric("wpk_store_degraded") == 1, "the gauge says so")
    check(service.metric("wpk_commits_failed_total") > 0, "and so does the counter")
    asked, leased = reader.asked, service.metric("wpk_leases_total")
    status, problem, headers = service.ask("POST", "/v1/jobs", small_job(name="late"))
    check(status == 507 and headers.get("retry-after"), "nothing is promised", status, problem)
    check("full" in problem["detail"] or "No space" in problem["detail"], "and why not", problem)
    time.sleep(FULL_S)
    check(service.ask("GET", "/readyz")[0] == 503, "it is not ready until there is room")
    check(service.metric("wpk_leases_total") == leased, "nothing is leased")
    check(reader.asked > asked + FULL_S, "lookups go on", asked, reader.asked)


def test_full_under_load(box):
    need("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
    with Disk(box.data, 16 << 20) as disk:
        service = Service(box)
        worker = service.add_worker("--name", "w", "--trace", box.path("trace"))
        reader = Reader(service, query_of_served(service))
        reader.start()
        before = timed(box)
        known = recorded(box)
        identifier = submit(service, search={"strategy": "random", "seed": 7},
                            budget={"candidates": CANDIDATES, "seconds": 86400})
        wait_for("it is under way", lambda: tried(job_of(service, identifier)) >= 5, 60)
        disk.fill()
        check_full(service, reader)
        durable = recorded(box)
        job = job_of(service, identifier)
        check(job["state"] == "running", "the job waits", job)
        check(job["reason"] == "the store cannot be written", "and not for a worker", job)
        waiting = tried(job)
        said = worker.text(worker.err).count(" refused ")
        check(1 <= said <= 2, "the worker says why it waits, now and then", worker.text(worker.err))
        disk.make_room()
        wait_for("it is ready", lambda: service.ask("GET", "/readyz")[0] == 200, 40)
        check(service.metric("wpk_store_degraded") == 0, "the gauge says so")
        wait_for("it goes on", lambda: tried(job_of(service, identifier)) > waiting, 40)
        wait_for("the job ends", lambda: job_of(service, identifier)["state"] != "running", 120)
        job = job_of(service, identifier)
        check(job["state"] == "done" and tried(job) == CANDIDATES, "it ends well", job)
        reader.stop()
        check(not reader.wrong, "every lookup was answered", len(reader.wrong), reader.wrong[:3])
        service.stop()
        end = recorded(box)
        check(durable <= end, "nothing that was recorded is lost", durable - end)
        again = timed(box) - before - len(end - known)
        check(again <= FINALISTS, "what was kept was recorded, not measured again", again,
              worker.text(worker.err)[-3000:])


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""Exports and backups of a wpkd that is hard at work: each is a moment of its history, whole, and the
work does not suffer. An import wants it stopped, and says so."""
import os
import re
import threading
import time

from lib import Service, check, main, need, small_job
from test_db import artifacts, db, rows
from test_worker_fleet import work_by_hand
from wire import DEVICE, Peer, hello

CANDIDATES = 20000  # more than are done while the test lasts
ROUNDS = 3
PAUSE_S = 0.05  # of each worker after four results: each has an artifact, which is to be read and synced again


class Crowd:
    """Workers that build and time nothing, and are some hundred times as fast."""

    def __init__(self, box, count):
        self.stopping = threading.Event()
        self.done = [0] * count
        self.failures = []
        self.threads = [threading.Thread(target=self.work, args=(box, n)) for n in range(count)]
        for thread in self.threads:
            thread.start()

    def work(self, box, number):
        try:
            with Peer(box.path("workers.sock"), seconds=30) as peer:
                peer.greet()
                session = peer.ask(hello(name="w%d" % number, device=dict(
                    DEVICE, core_count=1, instance="h/cpu%d" % number)))[0]["session"]
                while not self.stopping.is_set():
                    self.done[number] += work_by_hand(peer, session)
                    time.sleep(PAUSE_S)
        except Exception as failure:  # whatever it is, the test is told
            self.failures.append(repr(failure))

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        check(not self.failures, "nobody was refused anything", self.failures)


def trials(data):
    """The trials that have ended, with all that belongs to them."""
    return set(rows(data, "SELECT p.fingerprint, t.candidate, t.outcome, t.artifact_sha256, m.median_ns, t.provider"
                          " FROM trial t JOIN problem p ON p.id = t.problem_id"
                          " LEFT JOIN measurement m ON m.trial_id = t.id AND m.kind = 'trial'"
                          " WHERE t.outcome NOT IN ('', 'abandoned')"))


def moments(box, data):
    """Export and back up again and again; the trials of each moment, by an import and by the copy."""
    found = []
    for number in range(ROUNDS):
        file, other, copy = (box.path("%s%d" % (name, number)) for name in ("export", "import", "backup"))
        report = db(box, "export", data, file)
        db(box, "import", other, file)
        found.append(trials(other))
        # Two searches may measure one candidate at the same time: it is one trial with two times.
        count = len({(row[0], row[1], row[5]) for row in found[-1]})
        check(report["trials"] == count, "every trial is in it", report, count)
        check(db(box, "check", other)["found_count"] == 0, "an import is whole")
        # Trials that had their artifact when the moment came still have it.
        named = {row[3] + ".so" for row in found[-1] if row[3]}
        check(named <= set(artifacts(other)), "with the artifacts", named - set(artifacts(other)))
        db(box, "backup", data, copy)
        check(db(box, "check", copy)["found_count"] == 0, "a backup is whole")
        found.append(trials(copy))
        time.sleep(0.2)
    return found


def test_beside_a_wpkd_under_load(box):
    need("wpkd")
    data = os.path.join(box.dir, "data")
    service = Service(box, data)
    for seed in (1, 2):
        status, job, _ = service.ask("POST", "/v1/jobs", small_job(
            search={"strategy": "random", "seed": seed},
            budget={"candidates": CANDIDATES, "seconds": 86400}))
        check(status == 201, "the job is taken", job)
    crowd = Crowd(box, 3)
    began = time.monotonic()
    time.sleep(1)
    found = moments(box, data)
    seconds = time.monotonic() - began
    code, _, err = box.run("wpkctl", "import", box.path("export0"), "--data", data)
    check(code == 3 and "pid %d" % service.wpkd.popen.pid in err and "stop it first" in err,
          "an import says what to do", code, err)
    crowd.stop()
    metrics = service.ask("GET", "/metrics")[1].decode()
    check("\nwpk_commits_failed_total 0\n" in metrics, "no commit failed")
    counted = re.search(r'\nwpk_trials_total\{outcome="ok"\} (\d+)\n', metrics)
    check(counted and int(counted.group(1)) > 0, "trials are counted", metrics)
    check(service.ask("GET", "/readyz")[0] == 200, "it is well")
    service.stop()
    end = trials(data)
    for earlier, later in zip(found, found[1:] + [end]):
        check(earlier <= later, "each moment has all of the one before", len(earlier), len(later))
    check(len(found[0]) < len(found[-1]) <= len(end) <= sum(crowd.done), "it went on meanwhile",
          [len(moment) for moment in found], len(end), crowd.done)
    # Trials that came in after the last moment are not doubled: only they are new.
    db(box, "export", data, box.path("last"))
    report = db(box, "import", box.path("import%d" % (ROUNDS - 1)), box.path("last"))
    # On a busy machine a lease may be given again, and a trial be measured twice: it is one trial.
    known, all_known = ({(row[0], row[1], row[5]) for row in moment} for moment in (found[-2], end))
    check(report["new_trials"] == len(all_known - known), "merged", report, len(end), len(found[-2]))
    print("%d results in %.1f s; exports and backups of %s trials" % (
        sum(crowd.done), seconds, ", ".join(str(len(moment)) for moment in found)))


if __name__ == "__main__":
    main(globals())

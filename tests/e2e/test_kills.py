# SPDX-License-Identifier: Apache-2.0
"""kill -9 of wpkd, worker, builder or runner at random moments of a job, again and again: in the end
the same is recorded as if nothing had happened. WPK_KILLS says how often, WPK_SEED which and when."""
import json
import os
import random
import sqlite3
import time

from lib import (CONVOLUTION, Service, check, descendants, kill, main, need, need_stalled_disk, small_job, stat_of,
                 wait_for)
from wire import Peer, frame, hello, identify, poll, put_artifact, take_items

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
KILLS = int(os.environ.get("WPK_KILLS", 3))
SEED = os.environ.get("WPK_SEED", 1)
TRIED_BETWEEN_MAX = 4
CANDIDATES = 8 + TRIED_BETWEEN_MAX * KILLS
UNASKED = 3  # measurements that are no ask's: two finalists on fresh inputs, and the plain kernel
IN_FLIGHT_MAX = 64  # leases of a worker, for kills at which wpkd cannot be asked
SECONDS = 300 + 60 * KILLS  # ends what hangs


class Fleet:
    """A service, one worker, and whoever has died of them comes back."""

    def __init__(self, box):
        self.box = box
        self.lives = 0
        self.service = Service(box)
        self.worker = None
        self.start_worker()

    def start_worker(self):
        self.lives += 1
        trace = self.box.path("trace%d" % self.lives)
        self.worker = self.service.add_worker("--name", "w", "--trace", trace)

    def job(self, identifier):
        """The job as wpkd tells it; None while it is away."""
        try:
            status, answer, _ = self.service.ask("GET", "/v1/jobs/" + identifier)
        except OSError:
            return None
        check(status == 200, "the job is there", status, answer)
        return answer

    def in_flight(self):
        try:
            workers = self.service.ask("GET", "/v1/workers")[1]["workers"]
            return sum(worker["running"] for worker in workers)
        except OSError:
            return IN_FLIGHT_MAX

    def below(self, name):
        """The program of that name below the worker; None if there is none just now."""
        for pid, (start, found) in descendants(self.worker.popen.pid).items():
            self.worker.seen[pid] = (start, found)
            stat = stat_of(pid)
            if found == name[:15] and stat and stat[0] == self.worker.popen.pid:
                return pid
        return None

    def kill(self, name):
        """False when it is not there to be killed."""
        process = {"wpkd": self.service.wpkd, "wpk-worker": self.worker}.get(name)
        pid = process.popen.pid if process else self.below(name)
        if pid is None:
            return False
        self.worker.note()
        if not kill(pid):
            return False
        if process is None:
            return True
        process.popen.wait()
        if name == "wpk-worker":
            self.start_worker()
        else:
            self.service.wpkd = self.box.start(
                "wpkd", "--data", self.box.data, "--http", self.service.url, "--listen",
                self.service.listen)
            wait_for("wpkd answers", self.service.healthy, 30)
        return True

    def stop(self):
        self.service.workers = [self.worker]
        self.service.stop()


def job_text():
    return small_job(ops=[CONVOLUTION], budget={"candidates": CANDIDATES, "seconds": 86400},
                     search={"strategy": "random", "seed": 11})


def submit(fleet):
    status, answer, _ = fleet.service.ask("POST", "/v1/jobs", job_text())
    check(status == 201, "the job is accepted", status, answer)
    return answer["id"]


def tried(job):
    counts = job["ops"][0]["candidates"]
    return counts["measured"] + counts["failed"]


def recorded(box):
    """{candidate: outcome}; every ask has its result, and every result one time."""
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        check(db.execute("PRAGMA integrity_check").fetchone() == ("ok",), "the database is whole")
        rows = db.execute("SELECT a.number, t.candidate, t.outcome FROM ask a JOIN trial t"
                          " ON t.id = a.trial_id ORDER BY a.number").fetchall()
        twice = db.execute("SELECT trial_id FROM measurement WHERE kind = 'trial'"
                           " GROUP BY trial_id HAVING COUNT(*) > 1").fetchall()
        open_asks = db.execute("SELECT COUNT(*) FROM ask WHERE ended = 0").fetchone()[0]
    check([number for number, _, _ in rows] == list(range(CANDIDATES)), "each ask once", rows)
    check(not twice and not open_asks, "each has one result", twice, open_asks)
    return {candidate: outcome for _, candidate, outcome in rows}


def seen_so_far(box):
    """The outcomes that are durable now: they must be there for ever."""
    with sqlite3.connect(os.path.join(box.data, "history.db"), timeout=10) as db:
        return set(db.execute("SELECT candidate, outcome FROM trial WHERE outcome != ''"))


def executions(box, lives):
    """How often something was timed, by the workers' traces; the last line of one may be cut."""
    count = 0
    for life in range(1, lives + 1):
        if os.path.exists(box.path("trace%d" % life)):
            with open(box.path("trace%d" % life), encoding="utf-8") as file:
                count += file.read().count('"name":"measure"')
    return count


def undisturbed(box):
    data, box.data = box.data, box.path("undisturbed")
    fleet = Fleet(box)
    identifier = submit(fleet)
    wait_for("the undisturbed job", lambda: fleet.job(identifier)["state"] == "done", SECONDS)
    fleet.stop()
    found = recorded(box)
    box.data = data
    return found


def kill_them(box, fleet, identifier):
    """Kill, and see that what was said stays said; returns what was in flight at the kills."""
    draw = random.Random(SEED)
    in_flight = 0
    last = 0
    known = set()
    killed = []
    end = time.monotonic() + SECONDS
    goal = draw.randint(1, TRIED_BETWEEN_MAX)
    spared = 0
    while True:
        job = fleet.job(identifier)
        if job["ops"][0]["phase"] == "waiting":
            time.sleep(0.05)  # for a worker, before its search is looked up
            continue
        check(time.monotonic() < end, "the job goes on", killed, job, fleet.worker.text(fleet.worker.err)[-3000:])
        check(tried(job) >= last, "what was counted stays counted", last, job, killed)
        last = tried(job)
        if job["state"] != "running" and job["state"] != "queued":
            check(job["state"] == "done", "the job ends well", job)
            return in_flight, killed
        if len(killed) < KILLS and last >= goal:
            time.sleep(draw.uniform(0, 0.3))
            durable = seen_so_far(box)
            check(known <= durable, "what was recorded stays recorded", known - durable, killed)
            known = durable
            flying = fleet.in_flight()
            name = draw.choice(PROGRAMS[:2] if last < spared else PROGRAMS)
            if fleet.kill(name):
                killed.append(name)
                in_flight += flying
                goal = last + draw.randint(1, TRIED_BETWEEN_MAX)
                # A candidate that is in two builders or runners when they die is blamed: nobody
                # could tell it from one that kills them. So first, those in this one come through.
                spared = max(spared, last + flying if name in PROGRAMS[2:] else 0)
        time.sleep(0.05)


def artifact_rows(box):
    with sqlite3.connect(os.path.join(box.data, "history.db"), timeout=10) as db:
        return db.execute("SELECT COUNT(*) FROM artifact").fetchone()[0]


def test_between_a_file_and_its_row(box):
    """An artifact's file is durable, and its row is not written before wpkd dies: nobody was told that it
    is there, the next start removes it, and its worker uploads it again."""
    need("wpkd")
    stalled = box.path("stalled")
    box.env.update(LD_PRELOAD=need_stalled_disk(box), WPK_STALLED_STORE=stalled)
    data = os.urandom(100000)
    service = Service(box)
    with Peer(box.path("workers.sock")) as peer:
        peer.greet()
        session = peer.ask(hello())[0]["session"]
        check(service.ask("POST", "/v1/jobs", small_job())[0] == 201, "a job")
        item = take_items(peer, session, 1)[0]
        put = put_artifact(session, item, data)
        path = os.path.join(box.data, "artifacts", put["sha256"][:2], put["sha256"] + ".so")
        with open(stalled, "w", encoding="utf-8"):
            pass
        peer.send(frame(put, data))
        wait_for("its file is there", lambda: os.path.exists(path), 30)
        service.wpkd.popen.kill()
        service.wpkd.popen.wait()
        check(peer.closes_within(10), "it was not acknowledged")
    check(os.path.exists(path) and artifact_rows(box) == 0, "a file without a row")
    os.unlink(stalled)
    service = Service(box)
    check(not os.path.exists(path), "it is swept")
    with Peer(box.path("workers.sock")) as peer:
        peer.greet()
        session = peer.ask(hello())[0]["session"]
        peer.ask(poll(session, want=0, holding=[identify(item)]))
        answer = peer.ask(put_artifact(session, item, data), data)[0]
        check(answer["type"] == "ack", "it is taken now", answer)
    check(os.path.exists(path) and artifact_rows(box) == 1, "with its row")
    service.stop()


def test_kills_change_nothing(box):
    need("wpkctl", *PROGRAMS)
    expected = undisturbed(box)
    fleet = Fleet(box)
    identifier = submit(fleet)
    watch = box.start("wpkctl", "watch", identifier, "--server", fleet.service.url, "--json")
    in_flight, killed = kill_them(box, fleet, identifier)
    check(len(killed) == KILLS, "enough were killed", killed)
    code, out, err = watch.wait(60)
    check(code == 0 and json.loads(out)["kernels"], "wpkctl watch was there all the time", code, err[-2000:])
    fleet.stop()
    found = recorded(box)
    # A candidate that took too long, in either run, is the machine's affair.
    late = {candidate for outcomes in (found, expected) for candidate, outcome in outcomes.items()
            if outcome.endswith("_timeout")}
    differ = {candidate: (outcome, expected.get(candidate)) for candidate, outcome in found.items()
              if outcome != expected.get(candidate) and candidate not in late}
    check(set(found) == set(expected) and not differ, "the same was recorded",
          sorted(differ.values()), differ, killed)
    again = executions(box, fleet.lives) - len(found)
    check(again <= in_flight + UNASKED, "only what was in flight ran again", again, in_flight, killed)
    print("%d kills: %s; %d run again of %d in flight" % (
        len(killed), ", ".join("%d %s" % (killed.count(name), name) for name in PROGRAMS), again,
        in_flight))


if __name__ == "__main__":
    main(globals())

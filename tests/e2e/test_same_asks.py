# SPDX-License-Identifier: Apache-2.0
"""kill -9 of wpkd at any moment, for each strategy: the same candidates are asked for as if nothing had happened.
Those that take a prior begin from one, which each life finds in the history.
Once lives go on from nothing; once the job is cancelled first, which saves the strategy, and submitted again. A
worker by hand answers, so that a candidate takes the same time in every life. WPK_ASK_KILLS says how often (1 for
the strategies auto and rl, unless it is set: then for all of them), WPK_SEED when."""
import hashlib
import json
import os
import random
import sqlite3
import time

from lib import Service, check, main, need, small_job, wait_for
from wire import DEVICE, VERSION, Peer, frame, hello, poll, put_artifact

KILLS = int(os.environ.get("WPK_ASK_KILLS", 1))
CANDIDATES = 40 + KILLS
MESSAGES = 2 * CANDIDATES  # sent in a life without kills, at least
SECONDS = 120
OPERATOR = {"name": "product", "op": "Y[i,j] = sum(k:48) A[i,k] * B[k,j]",
            "tensors": {"A": "f32[35,48]", "B": "f32[48,96]", "Y": "f32[35,96]"}}


with open(os.path.join(os.path.dirname(__file__), "../fuzz/corpus/prior/small"), encoding="utf-8") as prior:
    PRIOR = prior.read()


class Killed(Exception):
    pass


class Life:
    """A service with one worker, in one or more lives; `moments`: the numbers of messages that it dies with."""

    def __init__(self, box, moments, closes, draw):
        self.box, self.moments, self.closes, self.draw = box, sorted(moments), closes, draw
        self.service = Service(box)
        self.sent = self.kills = 0
        self.closed = False
        self.times = {}  # by the artifact's hash

    def say(self, peer, message, tail=b""):
        """Send, and take the answer, unless wpkd is killed meanwhile."""
        self.sent += 1
        if not self.moments or self.sent < self.moments[0]:
            return peer.ask(message, tail)[0]
        self.moments.pop(0)
        peer.send(frame(message, tail))
        time.sleep(self.draw.choice((0, 0, 0.001, 0.003, 0.01, 0.03)))
        self.service.wpkd.popen.kill()
        self.service.wpkd.popen.wait()
        self.kills += 1
        raise Killed

    def time_of(self, candidate):
        """In ns; 0: it cannot be built."""
        number = int.from_bytes(hashlib.sha256(candidate.encode()).digest()[:4], "little")
        return 0 if number % 10 == 0 else 100000 + number % 400000

    def record(self, item, sha256):
        ns = self.time_of(item["candidate"]) or 100000
        self.times[sha256] = ns
        timing = {"median_ns": ns, "min_ns": ns, "mad_ns": 1, "repeat_count": 1, "censored": False, "sample_ns": [ns] * 3}
        anchor = {"anchor": item["anchor"], "anchor_ratio": ns / self.times[item["anchor"]],
                  "anchor_ns": self.times[item["anchor"]]} if "anchor" in item else {"anchor_ns": 0}
        return {**anchor, "outcome": "ok", "timing": timing, "build_ns": 1, "verify_ns": 1, "measure_ns": 1,
                "constants_bytes": 0, "error": {"max": 0, "tolerance": 1, "ratio": 0, "of_rms": 0, "times_direct": 1},
                "schedule": "wpk-schedule 2\n",
                "schedule_sha256": hashlib.sha256(b"wpk-schedule 2\n").hexdigest(), "artifact": {"sha256": sha256}}

    def do(self, peer, session, item):
        result = {name: item[name] for name in ("search", "kind", "index", "attempt", "lease", "stage")}
        if item["kind"] == "final":
            result.update(failure="", times=[
                {"timing": self.record({"candidate": "final %s" % c}, "0" * 64)["timing"]}
                for c in range(len(item["contenders"]))])
        elif item["kind"] == "trial" and self.time_of(item["candidate"]) == 0:
            result["record"] = {key: value for key, value in self.record({"candidate": ""}, "").items() if key not in (
                "timing", "artifact", "anchor", "anchor_ratio", "schedule", "schedule_sha256")}
            result["record"].update(outcome="build_error", log="no", anchor_ns=0)
        else:
            data = b"built from %s" % item["candidate"].encode()
            put = put_artifact(session, item, data)
            if item["stage"] != "run":
                self.say(peer, put, data)
            result["record"] = self.record(item, item.get("artifact", put["sha256"]))
        answer = self.say(peer, {"version": VERSION, "type": "results", "session": session, "results": [result]})
        check(answer["type"] == "ack", "the result is taken", answer, result)

    def live(self, strategy):
        """Until the job has ended, or wpkd was killed."""
        with Peer(self.box.path("workers.sock")) as peer:
            peer.greet()
            session = peer.ask(hello(device=dict(DEVICE, core_count=1)))[0]["session"]
            end = time.monotonic() + SECONDS
            while self.service.ask("GET", "/v1/jobs/" + self.job)[1]["state"] in ("queued", "running"):
                check(time.monotonic() < end, "the job goes on")
                if self.closes and self.sent > MESSAGES // 3 and not self.closed:
                    self.close(strategy)
                answer = self.say(peer, poll(session, want=4, wait_ms=500))
                for item in answer["work"]:
                    self.do(peer, session, item)

    def submit(self, strategy):
        search = {"strategy": strategy, "seed": 5}
        if strategy in ("auto", "rl"):
            search["prior_text"] = PRIOR
        status, job, _ = self.service.ask("POST", "/v1/jobs", small_job(
            ops=[OPERATOR], search=search, budget={"candidates": CANDIDATES, "seconds": 3600}))
        check(status == 201, "the job is taken", job)
        self.job = job["id"]

    def close(self, strategy):
        """While nothing is leased: cancel the job, which saves the strategy, and submit it again."""
        self.closed = True
        check(self.service.ask("POST", "/v1/jobs/%s:cancel" % self.job)[0] == 200, "it is cancelled")
        with sqlite3.connect(os.path.join(self.box.data, "history.db"), timeout=10) as db:
            wait_for("the strategy is saved",
                     lambda: db.execute("SELECT snapshot <> '' FROM search").fetchone()[0], 30)
        self.submit(strategy)

    def run(self, strategy):
        self.submit(strategy)
        while True:
            try:
                self.live(strategy)
                break
            except Killed:
                self.service = Service(self.box)
        ended = self.service.ask("GET", "/v1/jobs/" + self.job)[1]
        self.service.stop()
        with sqlite3.connect(os.path.join(self.box.data, "history.db")) as db:
            asks = db.execute("SELECT t.candidate, t.outcome FROM ask a JOIN trial t ON t.id = a.trial_id"
                              " ORDER BY a.number").fetchall()
        check(ended["state"] == "done" and len(asks) == CANDIDATES, "it is done", ended, len(asks))
        return asks


def test_kills_change_no_ask(box):
    need("wpkd")
    data = box.data
    names = [one["name"] for one in json.loads(box.ctl("strategies", "--json"))["strategies"]]
    for strategy in names if KILLS > 1 else ("auto", "rl"):
        draw = random.Random("%s %s" % (os.environ.get("WPK_SEED", 1), strategy))
        asks = []
        early, late = range(1, MESSAGES), range(MESSAGES // 2, MESSAGES)
        for moments, closes in (([], False), (draw.sample(early, KILLS), False), (draw.sample(late, KILLS), True)):
            box.data = os.path.join(data, strategy + str(len(asks)))
            life = Life(box, moments, closes, draw)
            asks.append(life.run(strategy))
            check(life.kills == len(moments) and life.closed == closes, "it was killed so often", life.kills, moments)
        first = next((i for i in range(CANDIDATES) if not asks[0][i] == asks[1][i] == asks[2][i]), None)
        check(first is None, "%s asks for the same" % strategy, first, *[one[first or 0] for one in asks])
        print("%s: %d kills" % (strategy, 2 * KILLS))
    box.data = data


if __name__ == "__main__":
    main(globals())

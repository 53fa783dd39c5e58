# SPDX-License-Identifier: Apache-2.0
"""A new wpkd over what the version before has left: its database with a job that waits, and its worker,
which goes on speaking as it did."""
import json
import os
import sqlite3
import time

from lib import ROOT, Service, check, main, need, small_job
from wire import Peer, hello, poll

JOB = "j0123456789abcdef"


def write_version_1(box):
    os.makedirs(box.data)
    history = sqlite3.connect(os.path.join(box.data, "history.db"))
    with open(os.path.join(ROOT, "schema/schema_1.sql"), encoding="utf-8") as file:
        history.executescript(file.read())
    source = json.dumps(small_job(budget={"candidates": 4, "seconds": 60}))
    history.execute("INSERT INTO installation VALUES (1, 7, 1)")
    history.execute("INSERT INTO job VALUES (1, ?, 'old', '', 0, ?, 'queued', '', '', 1, 0, 0, 7)",
                    (JOB, source))
    history.execute("INSERT INTO job_op VALUES (1, 0, NULL, NULL, 'waiting', '', 0, 7)")
    history.execute("PRAGMA user_version = 1")
    history.commit()
    history.close()


def failed(work):
    """What a worker of version 1 says of a candidate that does not build."""
    return {"search": work["search"], "kind": work["kind"], "index": work["index"],
            "attempt": work["attempt"],
            "record": {"outcome": "build_error", "log": "no such thing", "reference_ns": 0,
                       "build_ns": 5, "verify_ns": 0, "measure_ns": 0,
                       "error": {"max": 0, "tolerance": 0, "ratio": 0}}}


def work_as_version_1(peer, service, seconds=300):
    """Until the job has ended; how many results were recorded."""
    session = peer.ask(hello(1))[0]["session"]
    recorded = 0
    end = time.monotonic() + seconds
    while service.ask("GET", "/v1/jobs/" + JOB)[1]["state"] in ("queued", "running"):
        check(time.monotonic() < end, "the job ends", service.wpkd.text(service.wpkd.err)[-2000:])
        answer = peer.ask(poll(session, 1, want=4, wait_ms=200))[0]
        check(answer["type"] == "work" and answer["version"] == 1, "work in its words", answer)
        for work in answer["work"]:
            check("lease" not in work and "stage" not in work, "and nothing newer", work)
        if answer["work"]:
            acks = peer.ask({"version": 1, "type": "results", "session": session,
                             "results": [failed(work) for work in answer["work"]]})[0]
            check(acks["type"] == "ack" and acks["version"] == 1, "acknowledged", acks)
            recorded += acks["results"].count("recorded")
    return recorded


def test_database_and_worker_of_the_version_before(box):
    need("wpkd")
    write_version_1(box)
    service = Service(box)
    check("migrating from=1 to=2" in service.wpkd.text(service.wpkd.err), "is said",
          service.wpkd.text(service.wpkd.err))
    check(os.path.exists(os.path.join(box.data, "history.db.version1")), "a copy is left",
          os.listdir(box.data))
    with Peer(box.path("workers.sock")) as peer:
        peer.greet()
        recorded = work_as_version_1(peer, service)
    job = service.ask("GET", "/v1/jobs/" + JOB)[1]
    check(recorded == 4 and job["ops"][0]["candidates"]["failed"] == 4, "each once", recorded, job)
    check(job["state"] == "failed" and "build_error" in job["reason"], "with the reason", job)
    service.stop()
    # And there is no way back: what is newer is refused, and left as it is.
    history = sqlite3.connect(os.path.join(box.data, "history.db"))
    check(history.execute("PRAGMA user_version").fetchone()[0] == 2, "migrated")
    check(history.execute("SELECT count(*) FROM trial WHERE outcome = 'build_error'").fetchone()[0] == 4,
          "recorded")
    history.close()


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""A new wpkd over what the version before has left: its database, with a job that waits."""
import json
import os
import sqlite3
import time

from lib import ROOT, Service, check, main, need, small_job
from wire import Peer, VERSION, hello, poll

JOB = "j0123456789abcdef"


def write_version_2(box):
    os.makedirs(box.data)
    history = sqlite3.connect(os.path.join(box.data, "history.db"))
    with open(os.path.join(ROOT, "schema/schema_2.sql"), encoding="utf-8") as file:
        history.executescript(file.read())
    source = json.dumps(small_job(budget={"candidates": 4, "seconds": 60}))
    history.execute("INSERT INTO installation VALUES (1, 7, 1, 0)")
    history.execute("INSERT INTO job VALUES (1, ?, 'old', '', 0, ?, 'queued', '', '', 1, 0, 0, 7)",
                    (JOB, source))
    history.execute("INSERT INTO job_op VALUES (1, 0, NULL, NULL, 'waiting', '', 0, 7)")
    history.execute("INSERT INTO problem VALUES (1, 'f', 'fixed', 'cpu', 'e=1', 'threads=1;', 'y', '8',"
                    " 'Y[i] = X[i]', 8, 1, 7)")
    history.execute("INSERT INTO search VALUES (1, 1, 'ga', '', '1', 'halide-cpu', '1', 5, 0, 0, NULL, '',"
                    " '', 0, 0, 0, 0, '', 1, 7)")
    history.execute("INSERT INTO kernel VALUES (1, 1, 1, 'halide-cpu', '', 10, 1, 7, 0, 0, '', 'w', '{}',"
                    " '', '', 1, 7)")
    history.execute("PRAGMA user_version = 2")
    history.commit()
    history.close()


def failed(work):
    """What a worker says of a candidate that does not build."""
    return {"search": work["search"], "kind": work["kind"], "index": work["index"],
            "lease": work["lease"], "stage": work["stage"], "attempt": work["attempt"],
            "record": {"outcome": "build_error", "log": "no such thing", "anchor_ns": 0,
                       "build_ns": 5, "verify_ns": 0, "measure_ns": 0, "constants_bytes": 0,
                       "error": {"max": 0, "tolerance": 0, "ratio": 0, "of_rms": 0,
                                 "times_direct": 0}}}


def work_until_the_end(peer, service, seconds=300):
    """Until the job has ended; how many candidates' results were recorded, beside the plain kernel's."""
    session = peer.ask(hello())[0]["session"]
    recorded = 0
    end = time.monotonic() + seconds
    while service.ask("GET", "/v1/jobs/" + JOB)[1]["state"] in ("queued", "running"):
        check(time.monotonic() < end, "the job ends", service.wpkd.text(service.wpkd.err)[-2000:])
        answer = peer.ask(poll(session, want=4, wait_ms=200))[0]
        if answer["work"]:
            acks = peer.ask({"version": VERSION, "type": "results", "session": session,
                             "results": [failed(work) for work in answer["work"]]})[0]
            check(acks["type"] == "ack", "acknowledged", acks)
            recorded += sum(1 for work, ack in zip(answer["work"], acks["results"])
                            if ack == "recorded" and work["kind"] != "plain")
    return recorded


def test_the_database_of_the_version_before(box):
    need("wpkd")
    write_version_2(box)
    service = Service(box)
    check("migrating from=2 to=3" in service.wpkd.text(service.wpkd.err), "is said",
          service.wpkd.text(service.wpkd.err))
    check(os.path.exists(os.path.join(box.data, "history.db.version2")), "a copy is left",
          os.listdir(box.data))
    # Its fingerprint may stand for another function.
    kernel = service.ask("GET", "/v1/kernels/k1")[1]
    check(not kernel["served"] and kernel["revoked"]["reason"] == "made before identity was canonical",
          "its kernel is revoked", kernel)
    check(service.ask("GET", "/v1/kernels")[1]["kernels"] == [], "and not served")
    with Peer(box.path("workers.sock")) as peer:
        peer.greet()
        recorded = work_until_the_end(peer, service)
    job = service.ask("GET", "/v1/jobs/" + JOB)[1]
    check(recorded == 4 and job["ops"][0]["candidates"]["failed"] == 4, "each once", recorded, job)
    check(job["state"] == "failed" and "build_error" in job["reason"], "with the reason", job)
    service.stop()
    # And there is no way back: what is newer is refused, and left as it is.
    history = sqlite3.connect(os.path.join(box.data, "history.db"))
    check(history.execute("PRAGMA user_version").fetchone()[0] == 3, "migrated")
    check(history.execute("SELECT count(*) FROM trial WHERE outcome = 'build_error'"
                          " AND provider != 'plain'").fetchone()[0] == 4,
          "recorded")
    history.close()


if __name__ == "__main__":
    main(globals())

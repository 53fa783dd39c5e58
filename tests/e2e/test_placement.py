# SPDX-License-Identifier: Apache-2.0
"""Which workers a job is given to: by labels, and by what they can do; and what was built by one for
another and gets lost on the way is built again."""
import json
import os

from lib import SMALL_OP, Service, check, main, need, small_job, wait_for

PROGRAMS = ("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
BUDGET = {"candidates": 4, "seconds": 120}


def submit(service, shape=12, labels=None):
    """A job of its own operator: nobody's history answers it."""
    tensors = dict(SMALL_OP["tensors"], X="f32[1,8,%d,12]" % shape, Y="f32[1,8,%d,12]" % shape)
    target = {"kind": "cpu", "threads": 1, "labels": labels or {}}
    body = small_job(ops=[dict(SMALL_OP, tensors=tensors)], target=target, budget=BUDGET)
    status, job, _ = service.ask("POST", "/v1/jobs", body)
    check(status == 201, "the job is taken", status, job)
    return job["id"]


def state_of(service, job):
    return service.ask("GET", "/v1/jobs/" + job)[1]


def wait_done(service, job):
    wait_for("the job is done", lambda: state_of(service, job)["state"] == "done", 120)


def events(process, event, **wanted):
    process.note()
    found = [json.loads(line) for line in process.text(process.err).splitlines(keepends=True)
             if line.endswith("\n")]
    return [e for e in found if e["event"] == event and all(e.get(k) == v for k, v in wanted.items())]


def who_had(service, job):
    trials = service.ask("GET", "/v1/jobs/%s/trials?page_size=100" % job)[1]["trials"]
    works = {trial["work"] for trial in trials}
    return {e["worker"] for e in events(service.wpkd, "leased") if e["work"] in works}


def start(box):
    return Service(box, options=("--log-level", "debug", "--log-format", "json"))


def add(service, name, *options):
    worker = service.add_worker("--name", name, "--data", service.box.dir, *options)
    wait_for("it joins", lambda: events(service.wpkd, "worker_joined", worker=name), 30)
    return worker


def test_labels(box):
    need(*PROGRAMS)
    service = start(box)
    add(service, "plain")
    job = submit(service, labels={"zone": "b", "fan": "new"})
    blocked = state_of(service, job)["ops"][0]["blocked"]
    check(blocked == "no worker has label zone=b" or blocked == "no worker has label fan=new", "said at once",
          blocked)
    shown = box.ctl("status", job, "--server", service.url)
    check("no worker has label" in shown, "to people too", shown)
    add(service, "half", "--label", "zone=b")
    check(state_of(service, job)["ops"][0]["blocked"] == "no worker has label fan=new", "what is still missing",
          state_of(service, job))
    add(service, "apart", "--label", "fan=new", "--label", "zone=c")
    check(state_of(service, job)["ops"][0]["blocked"] == "no worker has all of the job's labels",
          "not of two workers together", state_of(service, job))
    check(not events(service.wpkd, "leased"), "nobody was given any of it", events(service.wpkd, "leased"))
    add(service, "right", "--label", "fan=new", "--label", "zone=b", "--label", "row=1")
    check(state_of(service, job)["ops"][0]["blocked"] == "", "it can be served", state_of(service, job))
    wait_done(service, job)
    check(who_had(service, job) == {"right"}, "by one only", who_had(service, job))
    free = submit(service, shape=14)
    wait_done(service, free)
    check(who_had(service, free), "a job without labels is anybody's", who_had(service, free))
    service.stop()


def artifacts_of(box):
    return [os.path.join(folder, name) for folder, _, files in os.walk(os.path.join(box.data, "artifacts"))
            for name in files]


def set_admin_state(service, worker, verb):
    status, answer, _ = service.ask("POST", "/v1/workers:" + verb, {"name": worker, "reason": "a test"})
    check(status == 200, verb, status, answer)


def test_what_was_built_gets_lost(box):
    """On wpkd's disk, between who built it and who runs it: one file is gone, one is damaged."""
    need(*PROGRAMS)
    service = start(box)
    add(service, "runner", "--run-only")
    job = submit(service)
    wait_for("it is bound to a device", lambda: "no worker builds" in state_of(service, job)["ops"][0]["blocked"])
    set_admin_state(service, "runner", "drain")
    add(service, "builder", "--build-only", "--slots", "1")
    wait_for("all are built", lambda: len(events(service.wpkd, "received", stage="build")) >= BUDGET["candidates"],
             60)
    files = artifacts_of(box)
    check(len(files) >= 2, "artifacts lie there", files)
    os.unlink(files[0])
    with open(files[1], "r+b") as file:
        file.write(b"\0" * 64)
    set_admin_state(service, "runner", "resume")
    wait_done(service, job)
    again = events(service.wpkd, "not_tried", stage="run")
    check(len({e["work"] for e in again}) >= 2, "two could not be had", again)
    for event in again:
        last = events(service.wpkd, "received", work=event["work"])[-1]
        check(last["stage"] == "run" and last["outcome"] == "ok", "built again, and run", last)
    trials = service.ask("GET", "/v1/jobs/%s/trials?page_size=100" % job)[1]["trials"]
    check(not [t for t in trials if t["outcome"] == "abandoned"], "nobody is given up", trials)
    service.stop()


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""Fleets that grow with demand, and workers that leave by themselves."""
import re
import time

from lib import CONVOLUTION, Skip, check, main, need, wait_for
from test_api import Api
from test_worker_fleet import ended_of, state_of, submit, trials_of, wait_done

CLASS = "cpu/some model/avx2"


def demand(service, query=""):
    return service.want(200, "GET", "/v1/demand" + query)


def test_demand_before_any_worker(box):
    """Jobs that no worker has served are wanted, by device and labels."""
    need("wpkd")
    service = Api(box)
    check(demand(service) == {"demand": [], "workers": 0}, "nothing is wanted", demand(service))
    submit(service)
    submit(service, target={"kind": "cpu", "device": CLASS, "threads": 1}, search={"strategy": "random", "seed": 2})
    submit(service, target={"kind": "cpu", "threads": 1, "labels": {"site": "a"}}, search={"strategy": "random", "seed": 3})
    entries = [{"device": "cpu", "labels": {}, "workers": 1}, {"device": CLASS, "labels": {}, "workers": 1},
               {"device": "cpu", "labels": {"site": "a"}, "workers": 1}]
    check(demand(service) == {"demand": entries, "workers": 3}, "each is wanted", demand(service))
    for query, workers in (("device=cpu", 1), ("device=cuda", 0), ("device=cpu/some%20model/avx2", 2), ("device=cp", 0),
                           ("device=cpux", 0)):
        got = demand(service, "?" + query)
        check(got["workers"] == workers, query, got)
    wait_for("the metric follows", lambda: service.metric("wpk_workers_wanted") == 3, 10)
    check(service.metric("wpk_workers_wanted", "cpu") == 2, "with and without labels")
    check(service.metric("wpk_workers_wanted", CLASS) == 1, "of the class, too")
    check(service.metric("wpk_queue_depth") in (None, 0), "no search is open yet")
    service.stop()


def blamed(service, job):
    """Trials that took more than one attempt, and lines of the log that blame one."""
    return [t for t in trials_of(service, job) if t.get("attempts", 1) > 1] + re.findall("^.*(?:blamed|abandoned).*$", service.wpkd.text(service.wpkd.err), re.M)


def test_workers_leave_when_idle(box):
    """A surplus worker leaves after its idle time, the other one after the last work."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    service = Api(box)
    job = submit(service)
    first = service.add_worker("--exit-when-idle", "3", "--name", "first")
    wait_done(service, job)
    ended = time.monotonic()
    check(demand(service)["workers"] == 0, "nothing is wanted any more")
    code, _, err = first.wait(30)
    left_s = time.monotonic() - ended
    check(code == 0 and "reason=idle" in err, "it leaves in peace", code, err[-2000:])
    surplus = service.add_worker("--exit-when-idle", "1", "--name", "surplus")
    code, _, err = surplus.wait(30)
    check(code == 0 and "reason=idle" in err, "it got no work", code, err[-2000:])
    check(not blamed(service, job), "nobody is blamed", blamed(service, job))
    check("worker_lost" not in service.wpkd.text(service.wpkd.err), "it said goodbye")
    print("# from the last work to the exit: %.1f s of 3" % left_s)
    service.stop()


def test_workers_leave_without_wpkd(box):
    """A worker whose wpkd is not there has no work, either."""
    need("wpk-worker", "wpk-builder", "wpk-runner")
    worker = box.start("wpk-worker", "--cpu", "--coordinator", "ipc://" + box.path("none.sock"), "--exit-when-idle", "1")
    code, _, err = worker.wait(30)
    check(code == 0 and "reason=idle" in err, "it leaves", code, err)


def test_workers_leave_in_time(box):
    """Workers that leave in the middle of a job lose no result and blame no candidate."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    service = Api(box)
    job = submit(service, ops=[dict(CONVOLUTION)], budget={"candidates": 400, "seconds": 600})
    ended = set()
    for turn in range(3):
        worker = service.add_worker("--leave-after", "6", "--name", "worker%d" % turn)
        code, _, err = worker.wait(90)
        check(code == 0 and "reason=time" in err, "it leaves in time", code, err[-2000:])
        check(state_of(service, job)["state"] in ("queued", "running"), "the job goes on")
        now = ended_of(service, job)
        check(ended <= now, "no result is lost", ended - now)
        ended = now
        check(service.metric("wpk_leases_held") == 0 or wait_for("its leases went back", lambda: service.metric("wpk_leases_held") == 0, 5), "none is held")
    if not ended:
        raise Skip("this machine is too busy: no candidate was timed in 6 s")
    check(not blamed(service, job), "nobody is blamed", blamed(service, job))
    log = service.wpkd.text(service.wpkd.err)
    check("worker_lost" not in log and log.count("worker_left") == 3, "each said goodbye", log[-2000:])
    service.stop()


if __name__ == "__main__":
    main(globals())

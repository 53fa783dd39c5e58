# SPDX-License-Identifier: Apache-2.0
"""Whatever dies, the job goes on from what was recorded, and nothing is left running."""
import json
import os
import signal

from lib import check, check_tune_json, main, need, small_job, stat_of, wait_for

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
CANDIDATES = 40


def start_tune(box, *more):
    job = box.write("job.json", small_job(budget={"candidates": CANDIDATES, "seconds": 200}))
    return box.start("wpkctl", "tune", job, "--data", box.data, "--json", *more)


def wait_for_progress(tune, tried):
    """Until that many candidates are said to be tried on standard error."""
    def progressed():
        tune.note()
        for line in tune.text(tune.err).splitlines():
            if " tried" in line and int(line.split(" of ")[0].split()[-1]) >= tried:
                return True
        return tune.popen.poll() is not None
    wait_for("progress", progressed, 60)


def kill_during_tune(box, program):
    need(*PROGRAMS)
    tune = start_tune(box)
    wait_for_progress(tune, 1)
    pid = tune.find(program)
    os.kill(pid, signal.SIGKILL)
    code, out, err = tune.wait(200)
    check(code == 0, "the job ends well after kill -9 of " + program, err[-4000:], box.logs())
    kernel = check_tune_json(out)["kernels"][0]
    tried = kernel["candidates"]["measured"] + kernel["candidates"]["failed"]
    check(0 < tried <= CANDIDATES, "nothing is counted twice", kernel)
    check(stat_of(pid) is None, "the killed one is gone")


def test_builder_dies(box):
    kill_during_tune(box, "wpk-builder")


def test_runner_dies(box):
    kill_during_tune(box, "wpk-runner")


def test_worker_dies(box):
    kill_during_tune(box, "wpk-worker")


def test_wpkd_dies(box):
    kill_during_tune(box, "wpkd")


def resume(box):
    """A second run with the same job: it takes what was recorded."""
    code, out, err = start_tune(box).wait(200)
    check(code == 0, "the next run ends well", err[-4000:], box.logs())
    return check_tune_json(out)["kernels"][0]


def test_wpkctl_is_killed(box):
    need(*PROGRAMS)
    tune = start_tune(box)
    wait_for_progress(tune, 5)
    with open(os.path.join(box.data, "private.endpoint"), encoding="utf-8") as file:
        sockets = os.path.dirname(file.readline().strip()[len("unix:"):])
    check(os.path.isdir(sockets), "where the sockets are", sockets)
    tune.popen.kill()
    tune.popen.wait()
    box.expect_nothing_left()
    resume(box)
    check(not os.path.exists(sockets), "what the killed one left is removed", sockets)


def test_interrupt(box):
    need(*PROGRAMS)
    tune = start_tune(box)
    wait_for_progress(tune, 5)
    tune.popen.send_signal(signal.SIGINT)
    code, _, err = tune.wait(30)
    check(code == 130 and "interrupted" in err, "Ctrl-C", code, err)
    box.expect_nothing_left()
    trials = json.loads(box.ctl("jobs", "--data", box.data, "--json"))["jobs"]
    check(trials[0]["state"] == "cancelled", "the job is cancelled", trials)
    measured = trials[0]["ops"][0]["candidates"]
    check(measured["measured"] + measured["failed"] >= 5, "what was measured is kept", measured)
    resume(box)


if __name__ == "__main__":
    main(globals())

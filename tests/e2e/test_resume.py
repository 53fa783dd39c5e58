# SPDX-License-Identifier: Apache-2.0
"""A job goes on from the recorded results after any process dies, and no process is left running."""
import hashlib
import json
import os
import random
import re
import signal
import sqlite3
import tempfile
import time

from lib import (CONVOLUTION, Failure, check, check_tune_json, descendants, kill, main, need, small_job, stat_of,
                 wait_for)

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
CANDIDATES = 6
ENDLESS = 1000  # candidates of a job that is ended before it has tried them
# After five deaths wpkctl gives up; a candidate that was in a builder or runner twice when it died is
# blamed, as nobody can tell it from a kill.
DEATHS_MAX = {"wpkd": 4, "wpk-worker": 4, "wpk-runner": 1, "wpk-builder": 1}


def start_tune(box, candidates=CANDIDATES, **changes):
    job = box.write("job.json", small_job(budget={"candidates": candidates, "seconds": 200}, **changes))
    return box.start("wpkctl", "tune", job, "--data", box.data, "--json")


def wait_for_progress(tune, tried):
    """Until that many candidates are said to be tried on standard error."""
    def progressed():
        tune.note()
        if any(int(number) >= tried for number in re.findall(r"(\d+) of \d+ tried", tune.text(tune.err))):
            return True
        return tune.popen.poll() is not None
    wait_for("progress", progressed, 60)


def is_program(pid, name):
    """A program, not what it forks for a candidate, whose death is that candidate's outcome."""
    stat = stat_of(pid)
    parent = stat and stat_of(stat[0])
    return name in PROGRAMS and parent is not None and parent[2] != name


def trials(box):
    """The candidates that were tried, and their outcomes. No result was recorded twice."""
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        found = db.execute("SELECT candidate, outcome FROM trial"
                           " WHERE candidate != '' AND outcome != '' AND provider != 'plain'").fetchall()
        timed = db.execute("SELECT COUNT(*), COUNT(DISTINCT trial_id) FROM measurement"
                           " WHERE kind = 'trial'").fetchone()
    ok = [candidate for candidate, outcome in found if outcome == "ok"]
    check(timed == (len(ok), len(ok)), "each candidate has one time", timed, found)
    return sorted(found)


UNDISTURBED = []


def undisturbed(box):
    """The trials of a run in which nothing dies; one run serves all tests."""
    if not UNDISTURBED:
        data, box.data = box.data, box.path("undisturbed")
        code, _, err = start_tune(box).wait(200)
        check(code == 0, "the undisturbed job ends well", err[-4000:], box.logs())
        UNDISTURBED.extend(trials(box))
        box.data = data
        check(len(UNDISTURBED) == CANDIDATES, "each candidate once", UNDISTURBED)
    return UNDISTURBED


def strike(box, program):
    """Kill it once a candidate was tried; (the job's process, the pid). A job that has ended before it was
    struck is followed by another one."""
    for number in range(10):
        box.data = box.path("data%d" % number)
        tune = start_tune(box)
        wait_for_progress(tune, 1)
        while tune.note() is None:
            for pid, (_, name) in descendants(tune.popen.pid).items():
                if name == program and is_program(pid, name) and kill(pid):
                    return tune, pid
    raise Failure("no job was struck")


def kill_during_tune(box, program):
    need(*PROGRAMS)
    tune, pid = strike(box, program)
    code, out, err = tune.wait(200)
    check(code == 0, "the job ends well after kill -9 of " + program, err[-4000:], box.logs())
    kernel = check_tune_json(out)["kernels"][0]
    tried = kernel["candidates"]["measured"] + kernel["candidates"]["failed"]
    check(tried == CANDIDATES, "nothing is counted twice, or lost", kernel)
    check(trials(box) == undisturbed(box), "the same was tried", trials(box), undisturbed(box))
    check(stat_of(pid) is None, "the killed one is gone")


def test_builder_dies(box):
    kill_during_tune(box, "wpk-builder")
    logged = ""
    for folder, _, names in os.walk(os.path.join(box.data, "log")):
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                logged += file.read()
    check(" builder_died pid=" in logged, "and it is in the worker's log", logged[-2000:])


def test_runner_dies(box):
    kill_during_tune(box, "wpk-runner")


def test_worker_dies(box):
    kill_during_tune(box, "wpk-worker")


def test_wpkd_dies(box):
    kill_during_tune(box, "wpkd")


def test_wpkd_dies_at_once(box):
    """Killed before it answers for the first time."""
    need(*PROGRAMS)
    tune = start_tune(box)
    struck = set()
    while len(struck) < DEATHS_MAX["wpkd"] and tune.note() is None:
        for pid, (_, name) in descendants(tune.popen.pid).items():
            if name == "wpkd" and pid not in struck:
                if kill(pid):
                    struck.add(pid)
    code, out, err = tune.wait(200)
    check(code == 0, "it is started again", err[-4000:], box.logs())
    check_tune_json(out)
    check(err.count("wpkd ended; it is started again") == len(struck), "and says so", err)


def generators_directories():
    """Directories that a killed code generator would leave in /tmp or $TMPDIR."""
    return {name for folder in ("/tmp", tempfile.gettempdir()) for name in os.listdir(folder) if re.fullmatch("[A-Za-z0-9]{6}", name)}


def test_killed_builds_leave_nothing(box):
    need(*PROGRAMS)
    draw = random.Random(1)
    before = generators_directories()
    tune = start_tune(box, ops=[CONVOLUTION])
    struck = set()
    while len(struck) < 12 and tune.note() is None:
        time.sleep(draw.uniform(0.01, 0.1))
        for pid, (_, name) in descendants(tune.popen.pid).items():
            if name == "wpk-builder" and not is_program(pid, name) and pid not in struck and kill(pid):
                struck.add(pid)
    tune.wait(200)
    check(struck, "builds were killed")
    box.expect_nothing_left()
    left = generators_directories() - before  # or in use, by others
    wait_for("%s are gone" % left, lambda: not left & generators_directories(), 10)


def check_history(box, candidates=CANDIDATES):
    """Each ask was recorded once, and every artifact is whole."""
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        check(db.execute("PRAGMA integrity_check").fetchone() == ("ok",), "the database is whole")
        asked, named = db.execute("SELECT COUNT(*), COUNT(DISTINCT number) FROM ask").fetchone()
        check(asked == named <= candidates, "each ask once", asked, named)
        bad = db.execute("SELECT outcome, log FROM trial"
                         " WHERE outcome NOT IN ('ok', '')").fetchall()
        check(not bad, "nobody is blamed for a kill", bad)
    for folder, _, names in os.walk(os.path.join(box.data, "artifacts")):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                check(hashlib.sha256(file.read()).hexdigest() + ".so" == name, "whole", name)


def test_anything_dies_at_any_moment(box):
    """kill -9 of whatever there is, from the first moment on."""
    need(*PROGRAMS)
    draw = random.Random(os.environ.get("WPK_SEED", 7))
    tune = start_tune(box)
    killed = []
    for _ in range(8):
        time.sleep(draw.uniform(0.05, 0.8))
        if tune.note() is not None:
            break
        there = sorted((pid, name) for pid, (_, name) in descendants(tune.popen.pid).items()
                       if is_program(pid, name) and killed.count(name) < DEATHS_MAX[name])
        if there:
            pid, name = draw.choice(there)
            if kill(pid):
                killed.append(name)
    code, out, err = tune.wait(200)
    check(code == 0, "the job ends well after the deaths of %s" % killed, err[-4000:], box.logs())
    check_tune_json(out)
    box.expect_nothing_left()
    check_history(box)


def resume(box):
    """A second run with the same job: it takes what was recorded."""
    code, out, err = start_tune(box).wait(200)
    check(code == 0, "the next run ends well", err[-4000:], box.logs())
    return check_tune_json(out)["kernels"][0]


def test_wpkctl_is_killed(box):
    need(*PROGRAMS)
    tune = start_tune(box)
    endpoint = os.path.join(box.data, "private.endpoint")
    wait_for("it has a wpkd", lambda: os.path.exists(endpoint))
    with open(endpoint, encoding="utf-8") as file:
        sockets = os.path.dirname(file.readline().strip()[len("unix:"):])
    check(os.path.isdir(sockets), "where the sockets are", sockets)
    wait_for_progress(tune, 2)
    tune.popen.kill()
    tune.popen.wait()
    box.expect_nothing_left()
    resume(box)
    check(not os.path.exists(sockets), "what the killed one left is removed", sockets)


def interrupt(box, number):
    need(*PROGRAMS)
    tune = start_tune(box, ENDLESS)
    wait_for_progress(tune, 5)
    tune.popen.send_signal(number)
    code, out, err = tune.wait(30)
    check(code == 130 and "interrupted" in err, "it says so", code, err)
    box.expect_nothing_left()
    trials = json.loads(box.ctl("jobs", "--data", box.data, "--json"))["jobs"]
    check(trials[0]["state"] == "cancelled", "the job is cancelled", trials)
    measured = trials[0]["ops"][0]["candidates"]
    check(measured["measured"] + measured["failed"] >= 5, "what was measured is kept", measured)
    check_history(box, ENDLESS)


def test_interrupt(box):
    interrupt(box, signal.SIGINT)
    resume(box)


def test_terminate(box):
    interrupt(box, signal.SIGTERM)


def test_interrupt_at_once(box):
    """Before there is a worker, a job, or even a wpkd."""
    need(*PROGRAMS)
    for pause in (0.02, 0.1, 0.3):
        tune = start_tune(box)
        time.sleep(pause)
        tune.note()
        tune.popen.send_signal(signal.SIGINT)
        code, _, err = tune.wait(30)
        # Before the signal is caught it ends as any program does.
        check(code in (130, -signal.SIGINT), "it ends", pause, code, err)
        box.expect_nothing_left()


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""Two wpkctl on one data directory share its wpkd; the second takes over when the first goes."""
import os
import signal

from lib import check, check_tune_json, main, need, small_job, wait_for

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")


def start(box, name, seed, candidates):
    job = box.write(name, small_job(name=name, search={"strategy": "random", "seed": seed},
                                    budget={"candidates": candidates, "seconds": 200}))
    return box.start("wpkctl", "tune", job, "--data", box.data, "--json")


def start_two(box, candidates):
    """The first has so many, the second a few; none is tried before both are there."""
    need(*PROGRAMS)
    first = start(box, "first.json", 1, candidates)
    worker = first.find("wpk-worker")
    os.kill(worker, signal.SIGSTOP)
    second = start(box, "second.json", 2, 4)
    wait_for("the second attaches",
             lambda: "attached" in second.text(second.err) or second.popen.poll() is not None)
    check("attached" in second.text(second.err), "it says so", second.text(second.err), box.logs())
    os.kill(worker, signal.SIGCONT)
    return first, second


def test_both_end_well(box):
    first, second = start_two(box, 8)
    for tune in (first, second):
        code, out, err = tune.wait(250)
        check(code == 0, "both end well", err[-3000:], box.logs())
        check_tune_json(out)


def test_second_takes_over(box):
    first, second = start_two(box, 1000)
    first.note()
    first.popen.send_signal(signal.SIGINT)
    check(first.wait(30)[0] == 130, "the first is interrupted")
    code, out, err = second.wait(250)
    check(code == 0, "the second ends well", err[-3000:], box.logs())
    check_tune_json(out)


if __name__ == "__main__":
    main(globals())

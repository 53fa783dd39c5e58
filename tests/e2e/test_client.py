# SPDX-License-Identifier: Apache-2.0
"""wpkctl against a wpkd that tunes nothing: what it does when things die, and what it prints."""
import csv
import hashlib
import json
import os
import shutil
import signal
import time

import lib
from lib import check, check_tune_json, kill, main, small_job, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))


def arrange(box):
    """wpkctl finds what it starts beside itself: here, the fakes."""
    folder = box.path("bin")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        shutil.copy(os.path.join(lib.BIN, "wpkctl"), folder)
        os.symlink("/dev/null", os.path.join(folder, "libwpk-halide.so"))  # looked for, but not loaded
        for name in ("wpkd", "wpk-worker"):
            shutil.copy(os.path.join(HERE, "fake", name), folder)
    return os.path.join(folder, "wpkctl")


def start(box, *args):
    return lib.Process(box, [arrange(box)] + [str(a) for a in args])


def run(box, *args, want=0):
    code, out, err = start(box, *args).wait(60)
    check(code == want, "%s ended with %s" % (args, code), out, err, box.logs())
    return out, err


def job(box, name, candidates=8):
    return box.write(name + ".json", small_job(name=name, budget={"candidates": candidates, "seconds": 60}))


def test_ours(box):
    out, err = run(box, "tune", job(box, "ours"), "--data", box.data)
    for word in ("1.000 ± 0.003 µs", "1000.0", "1000 %", "direct", "halide-cpu", "3.00x", "10 + 2",
                 "wpkctl get small"):
        check(word in out, "the table shows " + word, out)
    check(" of 8 tried" in err, "progress is shown", err)
    result = run(box, "tune", job(box, "ours"), "--data", box.data, "--json", "--quiet")
    check(result[1] == "", "no progress when quiet", result[1])
    kernel = json.loads(result[0])["kernels"][0]
    check(kernel["artifact"].startswith(box.data), "the path of the artifact", kernel)


def test_vendor(box):
    out, _ = run(box, "tune", job(box, "vendor"), "--data", box.data)
    check("the vendor's: onednn brg" in out and "which is slower" in out, "the vendor wins", out)
    kernel = check_tune_json(run(box, "tune", job(box, "vendor"), "--data", box.data, "--json")[0])
    check(kernel["kernels"][0]["artifact"] is None, "no artifact", kernel)


def test_fails(box):
    out, err = run(box, "tune", job(box, "fails"), "--data", box.data, want=1)
    check("no candidate worked" in err, "the reason", err)
    check("GFLOP/s" not in out, "no table without a kernel", out)
    _, err = run(box, "tune", job(box, "rejected"), "--data", box.data, want=2)
    check("not today" in err, "the problem document's words", err)


def test_wpkd_does_not_start(box):
    os.makedirs(os.path.join(box.data, "history.db"))
    _, err = run(box, "tune", job(box, "ours"), "--data", box.data, want=3)
    check("cannot read" in err and "history.db" in err, "its last words", err)
    _, err = run(box, "tune", job(box, "ours"), "--data", job(box, "file"), want=2)
    os.unlink(os.path.join(box.path("bin"), "wpkd"))
    _, err = run(box, "tune", job(box, "ours"), "--data", box.path("other"), want=3)
    check("wpkd" in err, "the program is missing", err)


def is_fake(pid, name):
    """Is it that program? Not wpkctl on the way to become one, nor one that has just ended."""
    try:
        with open("/proc/%d/cmdline" % pid, encoding="utf-8") as file:
            words = file.read().split("\0")
    except OSError:
        return False
    return len(words) > 1 and os.path.basename(words[1]) == name


def test_processes_die(box):
    """kill -9 of wpkd and of the worker: both are started again, and the job ends."""
    for name in ("wpkd", "wpk-worker"):
        tune = start(box, "tune", job(box, "ours", 14), "--data", box.data)
        wait_for("progress", lambda: tune.note() is None and " tried" in tune.text(tune.err))
        kill(wait_for(name, lambda: next((pid for pid in tune.left() if is_fake(pid, name)), None)))
        code, _, err = tune.wait(60)
        check(code == 0 and name + " ended; it is started again" in err, "restarted", code, err)


def test_wpkd_dies_always(box):
    arrange(box)
    with open(box.path("bin/wpk-worker"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho 'wpk-worker: no such device' >&2\nexit 1\n")
    _, err = run(box, "tune", job(box, "slow"), "--data", box.data, want=1)
    check("no such device" in err, "given up, with the last words", err)


def test_interrupt(box):
    tune = start(box, "tune", job(box, "slow"), "--data", box.data)
    wait_for("progress", lambda: tune.note() is None and " tried" in tune.text(tune.err))
    tune.popen.send_signal(signal.SIGINT)
    code, _, err = tune.wait(30)
    check(code == 130 and "interrupted" in err, "Ctrl-C", code, err)
    jobs = json.loads(run(box, "jobs", "--data", box.data, "--json")[0])["jobs"]
    check(jobs[0]["state"] == "cancelled", "the job is cancelled", jobs)


def test_killed(box):
    tune = start(box, "tune", job(box, "slow"), "--data", box.data)
    wait_for("progress", lambda: tune.note() is None and " tried" in tune.text(tune.err))
    with open(os.path.join(box.data, "private.endpoint"), encoding="utf-8") as file:
        sockets = os.path.dirname(file.readline().strip()[len("unix:"):])
    tune.popen.kill()
    tune.popen.wait()
    box.expect_nothing_left()
    run(box, "tune", job(box, "ours"), "--data", box.data)
    check(not os.path.exists(sockets), "what the killed one left is removed", sockets)


def test_attach_and_take_over(box):
    first = start(box, "tune", job(box, "slow"), "--data", box.data)
    wait_for("progress", lambda: first.note() is None and " tried" in first.text(first.err))
    second = start(box, "tune", job(box, "ours", 24), "--data", box.data)
    wait_for("the second attaches", lambda: "attached" in second.text(second.err))
    time.sleep(0.5)
    second.note()
    check(not [n for n in second.seen.values() if n[1] == "wpkd"], "it starts nothing", second.seen)
    first.popen.send_signal(signal.SIGINT)
    check(first.wait(30)[0] == 130, "the first is interrupted")
    code, out, err = second.wait(60)
    check(code == 0 and "takes its place" in err and "halide-cpu" in out, "taken over", code, out, err)


def test_lists(box):
    run(box, "tune", job(box, "ours"), "--data", box.data)
    run(box, "tune", job(box, "vendor"), "--data", box.data)
    out, _ = run(box, "jobs", "--data", box.data)
    check(out.index("vendor") < out.index("ours"), "newest first, over two pages", out)
    check(out.count(" 8/8 ") == 2, "those that failed were tried", out)
    check(len(json.loads(run(box, "kernels", "--data", box.data, "--json")[0])["kernels"]) == 3, "pages")
    check(len(json.loads(run(box, "kernels", "--max", 1, "--data", box.data, "--json")[0])["kernels"]) == 1,
          "at most one")
    out, _ = run(box, "status", "j%016x" % 1, "--data", box.data)
    check("done" in out and "halide-cpu" in out, "status", out)
    run(box, "status", "j%016x" % 99, "--data", box.data, want=4)
    _, err = run(box, "submit", job(box, "ours"), "--data", box.data, want=3)
    check("no wpkd runs" in err and "wpkctl tune" in err, "what to do", err)
    out, err = run(box, "jobs", "--server", "unix:/nowhere", want=3)
    check(out == "" and "/nowhere: No such file" in err, "nobody there", err)
    check("localhost" not in err, "a socket has no host", err)
    run(box, "jobs", "--server", "ftp://x", want=2)


def test_names_of_kernels(box):
    """A kernel has the names that jobs gave its operator, each once, the newest first."""
    for name in ("old", "new", "old"):
        ours = small_job(name="ours", ops=[dict(lib.SMALL_OP, name=name)])
        run(box, "tune", box.write("job.json", ours), "--data", box.data)
    rows = csv.DictReader(run(box, "kernels", "--data", box.data, "-o", "csv")[0].splitlines())
    names = {row["fingerprint"]: row["operator"] for row in rows}
    check(names == {"ab" * 6: "old, new", "cd" * 6: "-"}, "those of its operator", names)


def test_which_service(box):
    """$WPK_URL names a service for commands without --data, except tune, which has its own."""
    box.env["WPK_URL"] = "unix:/nowhere"
    run(box, "jobs", want=3)
    run(box, "tune", job(box, "ours"), "--data", box.data)
    check("ours" in run(box, "jobs", "--data", box.data)[0], "that of the directory")
    run(box, "tune", job(box, "ours"))
    del box.env["WPK_URL"]
    check("ours" in run(box, "jobs")[0], "that of the user")


def test_get(box):
    run(box, "tune", job(box, "ours"), "--data", box.data)
    out = box.path("got.so")
    run(box, "get", "small", "-o", out, "--data", box.data)
    with open(out, "rb") as file:
        check(file.read() == b"an artifact" * 100, "the bytes")
    run(box, "get", "ab" * 32, "--own", "--schedule", "-o", box.path("s"), "--data", box.data)
    with open(box.path("s"), encoding="utf-8") as file:
        check(file.read() == "#layouts any\n#op output Y f32[1]\nwpk-schedule 2\n", "the schedule")
    run(box, "get", "nothing", "--data", box.data, want=4)
    _, err = run(box, "get", "small", "-o", box.path("no/where"), "--data", box.data, want=2)
    check("no/where" in err, "where it cannot be written", err)
    run(box, "get", "../nothing", "--data", box.data, want=2)
    answer = json.loads(run(box, "get", "small", "-o", out, "--json", "--data", box.data)[0])
    check(answer.pop("kernel").startswith("k"), "which it is")
    check(answer.pop("files") == [out], "every file: the fake service signs nothing", answer)
    check(answer == {"path": out, "fingerprint": "ab" * 32, "device": "cpu/fake/avx2",
                     "sha256": hashlib.sha256(b"an artifact" * 100).hexdigest()}, "as JSON", answer)
    answer = json.loads(run(box, "get", "small", "--own", "--schedule", "-o", box.path("s"), "--json",
                            "--data", box.data)[0])
    with open(box.path("s"), "rb") as file:
        check(answer["sha256"] == hashlib.sha256(file.read()).hexdigest(), "of what is written", answer)
    _, err = run(box, "get", "small", "-o", "-", "--json", "--data", box.data, want=2)
    check("--json" in err, "one output is not for two", err)
    # The newest job found less than what an older one left in history.
    run(box, "tune", job(box, "worse"), "--data", box.data)
    run(box, "get", "small", "-o", out, "--data", box.data)
    with open(out, "rb") as file:
        check(file.read() == b"an artifact" * 100, "what history serves")
    run(box, "tune", job(box, "vendor"), "--data", box.data)
    _, err = run(box, "get", "small", "-o", out, "--data", box.data)
    with open(out, "rb") as file:
        check(file.read() == b"an artifact" * 100, "our own, where the vendor's is faster")


if __name__ == "__main__":
    main(globals())

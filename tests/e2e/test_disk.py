# SPDX-License-Identifier: Apache-2.0
"""A full disk, a directory that cannot be written, a history that cannot be read: said clearly,
nothing half-written, and nothing of it held against a candidate."""
import json
import os
import shutil
import sqlite3
import subprocess

from lib import BIN, Failure, Process, Service, Skip, check, check_tune_json, main, need, small_job

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
CANDIDATES = 4


def need_mounts():
    """File systems of the test's own, seen by its processes alone; they go with them."""
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    if shutil.which("unshare") is None or subprocess.run(
            probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Skip("mounting is not allowed here")


def run_mounted(box, *lines, seconds=120):
    """Shell commands with mounts of their own; (exit code, stdout, stderr)."""
    script = "set -u; ctl=%s/wpkctl; mkdir -p small; %s" % (BIN, "; ".join(lines))
    return Process(box, ["unshare", "-m", "sh", "-c", script]).wait(seconds)


def write_job(box):
    return box.write("job.json", small_job(budget={"candidates": CANDIDATES, "seconds": 120}))


def check_no_failures(text):
    kernel = check_tune_json(text, artifacts=False)["kernels"][0]
    check(kernel["candidates"] == {"measured": CANDIDATES, "failed": 0}, "none is blamed", kernel)
    check(kernel["provider"] != "" and not kernel["from_history"], "measured", kernel)


def test_full_data_directory(box):
    need(*PROGRAMS)
    need_mounts()
    write_job(box)
    # So little that not even the history can begin.
    for size in ("12k", "100k"):
        code, out, err = run_mounted(box, "mount -t tmpfs -o size=%s none small" % size,
                                     "$ctl tune job.json --data small/data --json")
        check(code == 3 or code == 1, "%s are too little" % size, code, err)
        check(out == "" and ("No space left" in err or "is full" in err), "it is said: " + size, err)
        check(len(err.splitlines()) < 3, "without much ado", err)
    # So much that it begins, and ends on the way; with room again, the same directory serves.
    code, out, err = run_mounted(
        box, "mount -t tmpfs -o size=300k none small",
        "$ctl tune job.json --data small/data --json; echo $?", "find small -name '*.tmp.*'",
        "mount -o remount,size=64m small", "$ctl tune job.json --data small/data -q --json")
    first, _, rest = out.partition("\n")
    check(first in ("1", "3") and ("No space left" in err or "is full" in err), "it is said", err)
    check(code == 0 and rest.startswith("{"), "nothing half-written, and it goes on", code, out, err)
    check_no_failures(rest)


def test_full_at_the_start(box):
    """An existing database cannot be opened without a little room; it is no I/O error, and passes."""
    need("wpkd")
    need_mounts()
    start = "${ctl%ctl}d --data small/data --exit-when-idle 1; echo $?"
    code, out, err = run_mounted(box, "mount -t tmpfs -o size=1m none small", start,
                                 "dd if=/dev/zero of=small/fill bs=4k 2>/dev/null", start,
                                 "truncate -s -64k small/fill", start)
    check(code == 0 and out.split() == ["0", "1", "0"], "it may pass, and does with 64 KiB", out, err)
    check("ENOSPC" in err and "disk is full" in err, "the reason", err)


def test_full_temporary_directory(box):
    """A failed write is no outcome of a candidate: the next run tries it again."""
    need(*PROGRAMS)
    need_mounts()
    write_job(box)
    tune = "$ctl tune job.json --data data --json"
    code, out, err = run_mounted(
        box, "mount -t tmpfs -o size=48k none small",
        "export PATH=/usr/bin:/bin XDG_RUNTIME_DIR=$PWD/small",  # without ccache, which leaves files
        tune + "; code=$?", "find small; exit $code")
    check(code == 1 and out == "small\n", "it ends, and leaves nothing", code, out, err)
    check("small/wpk-" in err and ("no room" in err or "no space" in err), "it says why", err)
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        failed = db.execute("SELECT provider, outcome, log FROM trial"
                            " WHERE outcome NOT IN ('ok', '')").fetchall()
    check(not failed, "nobody is blamed", failed)


def test_read_only(box):
    need("wpkd")
    need_mounts()
    write_job(box)
    Service(box).stop()
    code, out, err = run_mounted(
        box, "mount --bind data data", "mount -o remount,ro,bind data",
        "$ctl tune job.json --data data; echo $?", "%s/wpkd --data data; echo $?" % BIN,
        "$ctl tune job.json --data data/new; echo $?")
    check(code == 0 and out.split() == ["5", "1", "5"], "refused", out, err)
    lines = err.splitlines()
    check(len(lines) == 3 and all("data" in l and "Read-only" in l for l in lines), "and why", err)


def test_a_history_is_checked_where_nothing_can_be_written(box):
    """On a read-only disk, and on a full one, where SQLite's log has no room for its index."""
    need("wpkd")
    need_mounts()
    write_job(box)
    Service(box).stop()
    code, out, err = run_mounted(
        box, "mount -t tmpfs -o size=8m none small", "cp -a data small/",
        "head -c 16m /dev/zero >small/filler 2>/dev/null", "$ctl db check --data small/data; echo $?",
        "mount -o remount,ro small", "$ctl db check --data small/data; echo $?")
    ends = [line for line in out.splitlines() if line.isdigit()]
    check(code == 0 and ends == ["0", "0"] and "problems: 0" in out, "it is read", out, err)


def test_a_history_is_read_where_nothing_can_be_written(box):
    """Lists and lookups work on a copy, which is gone afterwards; what changes something is refused."""
    need("wpkd")
    need_mounts()
    write_job(box)
    Service(box).stop()
    code, out, err = run_mounted(
        box, "mount -t tmpfs -o size=8m none small", "cp -a data small/",
        "head -c 16m /dev/zero >small/filler 2>/dev/null", "$ctl kernels --data small/data; echo $?",
        "$ctl jobs --data small/data --json; echo $?", "mount -o remount,ro small",
        "$ctl kernels --data small/data; echo $?", "$ctl jobs --data small/data --json; echo $?",
        "ls -d ${XDG_RUNTIME_DIR:-/tmp}/wpk-view-* 2>/dev/null | wc -l")
    ends = [line for line in out.splitlines() if line.isdigit()]
    check(code == 0 and ends == ["0", "0", "0", "0", "0"] and out.count('"jobs"') == 2, "it is read", out, err)


def spoil(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


DAMAGE = (
    ("no header", "not a database", lambda path: spoil(path, 0, b"garbage")),
    ("half a page", "malformed", lambda path: os.truncate(path, 2000)),
    ("cut short", "malformed", lambda path: os.truncate(path, 5 * 4096)),
    ("a page of garbage", "damaged", lambda path: spoil(path, 5 * 4096, b"\xa5" * 4096)),
    ("of the future", "version 99", lambda path: spoil(path, 60, b"\0\0\0\x63")),
)


def test_unreadable_history(box):
    """wpkd and wpkctl say which file it is and what is wrong with it, and leave it as it is."""
    need("wpkd")
    job = write_job(box)
    Service(box).stop()
    path = os.path.join(box.data, "history.db")
    with open(path, "rb") as file:
        good = file.read()
    check(len(good) > 10 * 4096, "there is something to damage", len(good))
    for name, says, damage in DAMAGE:
        damage(path)
        with open(path, "rb") as file:
            bad = file.read()
        code, _, err = box.run("wpkd", "--data", box.data, "--exit-when-idle", 1)
        # A start that cannot help is not tried again: 3.
        check(code == 3 and path in err and says in err, "wpkd: " + name, code, err)
        code, out, err = box.run("wpkctl", "tune", job, "--data", box.data)
        check(code == 3 and out == "" and path in err and says in err, "wpkctl: " + name, code, err)
        check("started again" not in err, "it is not tried again and again: " + name, err)
        with open(path, "rb") as file:
            check(file.read() == bad, "it is left as it is: " + name)
        with open(path, "wb") as file:
            file.write(good)
    service = Service(box)
    check(service.ask("GET", "/v1/jobs")[1]["jobs"] == [], "nothing was stored")
    service.stop()


def test_damaged_artifact(box):
    """A kernel whose file was lost or cut is not given out; the next run makes it anew."""
    need(*PROGRAMS)
    job = write_job(box)
    tune = ("tune", job, "--data", box.data, "--json", "--pin", "algorithm=direct")
    box.ctl(*tune)
    kernel = json.loads(box.ctl("kernels", "--data", box.data, "--json"))["kernels"][0]
    sha = kernel["own"]["artifact"] if kernel["own"] else kernel["artifact"]
    path = os.path.join(box.data, "artifacts", sha[:2], sha + ".so")
    os.truncate(path, 100)
    code, _, err = box.run("wpkctl", "get", "small", "--own", "-o", box.path("x.so"), "--data", box.data)
    check(code == 0 and kernel["id"] in err and "damaged" in err, "the next best is given out", code, err)
    with open(box.path("x.so"), "rb") as file:
        check(len(file.read()) > 100, "and whole")
    if not box.ctl(*tune):
        raise Failure("the next run has nothing to say")
    box.ctl("get", "small", "--own", "-o", box.path("x.so"), "--data", box.data)


if __name__ == "__main__":
    main(globals())

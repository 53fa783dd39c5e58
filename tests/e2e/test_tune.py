# SPDX-License-Identifier: Apache-2.0
"""wpkctl tune: an operator is tuned, the second run answers from history."""
import json
import os
import sqlite3

from lib import check, check_tune_json, main, need, small_job

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner")


def rows(box, query):
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        return db.execute(query).fetchall()


def trial_count(box):
    """Candidates that were tried; the vendor's implementation is none, nor is the plain kernel."""
    return rows(box, "SELECT COUNT(*) FROM trial WHERE candidate != '' AND provider != 'plain'")[0][0]


def test_tune_and_history(box):
    need(*PROGRAMS)
    job = box.write("job.json", small_job())
    first = check_tune_json(box.ctl("tune", job, "--data", box.data, "--json"))
    kernel = first["kernels"][0]
    check(kernel["name"] == "small" and not kernel["from_history"], "measured now", kernel)
    check(kernel["candidates"]["measured"] + kernel["candidates"]["failed"] <= 4,
          "no more candidates than asked for", kernel)
    ran = trial_count(box)
    check(ran > 0, "trials are stored", ran)
    second = check_tune_json(box.ctl("tune", job, "--data", box.data, "--json"))
    check(second["kernels"][0]["from_history"], "the second run answers from history", second)
    check(second["kernels"][0]["artifact"] == kernel["artifact"], "with the same kernel", second)
    check(trial_count(box) == ran, "nothing was tried", ran, trial_count(box))
    table = box.ctl("tune", job, "--data", box.data)
    for word in ("small", "GFLOP/s", "of peak", "vendor", "class", "of rms", "history", "next:", "wpkctl get"):
        check(word in table, "the table shows " + word, table)


def test_options(box):
    """Options change the search; a pinned gene stays where it was pinned."""
    need(*PROGRAMS, "wpk-builder")
    job = box.write("job.json", small_job())
    result = check_tune_json(box.ctl(
        "tune", job, "--data", box.data, "--json", "--candidates", 6, "--seconds", 60, "--seed",
        "18446744073709551615", "--strategy", "ga", "--layouts", "any", "--threads", 2, "--pin",
        "algorithm=direct"))
    jobs = json.loads(box.ctl("jobs", "--data", box.data, "--json"))["jobs"]
    check(len(jobs) == 1 and jobs[0]["budget"] == {"candidates": 6, "seconds": 60}, "budget", jobs)
    kernels = json.loads(box.ctl("kernels", "--data", box.data, "--json"))["kernels"]
    check(kernels[0]["threads"] == 2 and kernels[0]["layouts"] == "any", "threads, layouts", kernels)
    own = kernels[0]["own"]
    if own:
        check(own["algorithm"] == "direct", "the pinned algorithm", own)
    check(len(result["kernels"]) == 1, "one kernel", result)
    searches = rows(box, "SELECT strategy, seed FROM search")
    check(searches == [("ga", "18446744073709551615")], "strategy, seed", searches)
    tried = trial_count(box)
    # Pins are looked at before anything starts.
    code, _, err = box.run("wpkctl", "tune", job, "--data", box.data, "--pin", "algorithm=magic")
    check(code == 2 and "'algorithm' has no value 'magic'" in err, "a gene's value that does not exist",
          code, err)
    check(trial_count(box) == tried, "nothing is tried", tried, trial_count(box))
    code, _, err = box.run("wpkctl", "tune", job, "--data", box.data, "--strategy", "magic")
    check(code == 2 and "magic" in err, "a strategy that does not exist", code, err)


def test_op_on_the_command_line(box):
    need(*PROGRAMS)
    result = check_tune_json(box.ctl(
        "tune", "--data", box.data, "--json", "--candidates", 6, "--op",
        "C[i,j] = sum(k) A[i,k] * B[k,j]", "--tensor", "A=f32[16,24]", "--tensor", "B=f32[24,32]",
        "--tensor", "C=f32[16,32]", "--constant", "B"))
    check(result["kernels"][0]["name"] == "op", "the operator", result)
    code, _, err = box.run("wpkctl", "tune", "--data", box.data, "--op", "C[i] = A[i] +",
                           "--tensor", "A=f32[4]", "--tensor", "C=f32[4]")
    check(code == 2 and "--op:1:" in err, "a position in the notation", code, err)


def test_broken_data(box):
    """A corrupt database, a directory that is none: a clear error, and nothing changed."""
    need(*PROGRAMS)
    job = box.write("job.json", small_job())
    os.mkdir(box.data)
    garbage = b"this is no database" * 1000
    for name in ("history.db", "wpk.db"):
        with open(os.path.join(box.data, name), "wb") as file:
            file.write(garbage)
    code, _, err = box.run("wpkctl", "tune", job, "--data", box.data, "--candidates", 2)
    check(code == 3 and "history.db" in err, "the corrupt file is named", code, err)
    with open(os.path.join(box.data, "history.db"), "rb") as file:
        check(file.read() == garbage, "the corrupt file is left as it is")
    plain = box.write("file", "x")
    code, _, err = box.run("wpkctl", "tune", job, "--data", plain, "--candidates", 2)
    check(code == 2 and plain in err, "the directory is named", code, err)


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""Workers that do half of the work, and workers in trouble, against a wpkd that does as it is told."""
import os
import shutil
import signal
import subprocess
import time

from lib import BIN, check, main, need, wait_for
from wire import BadLine, FakeWpkd, hello

OP = "input X f32[4096]\noutput Y f32[4096]\nY[i] = X[i] * 2\n"
POLICY = {"threads": 1, "conditions": "warm", "time_ns_min": 1000000, "sample_count": 5, "race_ratio": 0}


def candidates(box, count, isa="avx512"):
    """Candidates that are legal on this machine, were it no better than `isa`."""
    out = box.run("wpk-evaluate", "--op", box.write("op", OP), "--construct", count, "--print", "--isa",
                  isa)[1]
    found = [line[2:] for line in out.splitlines() if line.startswith("# ") and "=" in line]
    check(found, "there are candidates", out[:500])
    return (found * count)[:count]


def item(index, candidate, stage, **more):
    return dict({"search": "1", "kind": "trial", "index": index, "lease": str(100 + index),
                 "stage": stage, "attempt": 1, "op": 0, "policy": POLICY, "provider": "halide-cpu",
                 "candidate": candidate, "incumbent_ns": 0, "keep_artifact": True}, **more)


def add_worker(box, wpkd, *options):
    return box.start("wpk-worker", "--cpu", "--coordinator", wpkd.url, "--data", box.dir, *options)


def end(worker):
    worker.note()
    worker.popen.terminate()
    code, _, err = worker.wait(60)
    check(code == 0, "the worker ends when told to", code, err[-2000:])


def test_built_here_and_run_there(box):
    """One builds for another's device; the other has no builder, and times what was built."""
    need("wpk-worker", "wpk-builder", "wpk-runner")
    genes = candidates(box, 4, "avx2")
    wpkd = FakeWpkd(box.path("workers.sock"))
    runner = start_without_builder(box, wpkd)
    wait_for("the runner joins", lambda: wpkd.hellos)
    check(wpkd.hellos[0]["runs"] and not wpkd.hellos[0]["builds"], "what it is for", wpkd.hellos[0])
    # The lesser of the two: what the builder would build for itself is not legal there.
    target = wpkd.hellos[0]["device"]
    check(target["flags"] == ["sse4_1", "avx", "avx2", "fma", "f16c"], "the runner claims no more than it was told", target)
    builder = add_worker(box, wpkd, "--build-only", "--slots", 1, "--label", "zone=b", "--name", "b")
    wait_for("the builder joins", lambda: len(wpkd.hellos) == 2)
    said = wpkd.hellos[1]
    check(said["builds"] and not said["runs"] and said["slots"] == 1, "what it is for", said)
    check(said["labels"] == {"zone": "b"} and said["name"] == "b", "its labels", said)
    check(all(not provider["vendor"] for provider in said["providers"]), "vendors are run", said)
    wpkd.common = {"ops": [{"text": OP, "layouts": "fixed"}], "targets": [target]}
    wpkd.items["builds"] = [item(i, genes[i], "build", target=0) for i in range(len(genes))]
    wait_for("all are built", lambda: len(wpkd.results) == len(genes), 120)
    check("wpk-runner" not in builder.seen.values(), "it runs nothing", builder.seen)
    built = {}
    for result in wpkd.results:
        record = result["record"]
        check(result["stage"] == "build" and result["lease"] == str(100 + result["index"]),
              "which lease", result)
        check(record["outcome"] == "ok" and "timing" not in record, "built, not timed", record)
        check(record["artifact"]["sha256"] in wpkd.artifacts, "its artifact was uploaded first", record)
        check(record["build_ns"] > 0, "build time", record)
        built[result["index"]] = record
    wpkd.results.clear()

    lost = "0" * 64
    wpkd.items["runs"] = [item(i, genes[i], "run", artifact=built[i]["artifact"]["sha256"],
                                 build_ns=1000 + i) for i in built] + [
        item(9, genes[0], "run", artifact=lost, build_ns=1)]
    wait_for("all are run", lambda: len(wpkd.results) == len(built) + 1, 120)
    for result in wpkd.results:
        record = result["record"]
        check(result["stage"] == "run", "its stage", result)
        if result["index"] == 9:
            check(record["outcome"] == "abandoned" and lost[:12] in record["log"],
                  "what cannot be had is nobody's fault", record)
            continue
        check(record["outcome"] == "ok" and record["timing"]["median_ns"] > 0, "timed", record)
        check(record["artifact"]["sha256"] == built[result["index"]]["artifact"]["sha256"],
              "it says what it timed", record)
        check(record["build_ns"] == 1000 + result["index"], "the build's time is told on", record)
        check(record["schedule_sha256"] == built[result["index"]]["schedule_sha256"],
              "both lower to the same schedule", record)
    check("wpk-builder" not in runner.seen.values(), "it builds nothing", runner.seen)
    end(builder)
    end(runner)
    wpkd.close()


def start_without_builder(box, wpkd):
    """A worker on a machine that has no wpk-builder: copies of the other programs."""
    folder = box.path("bin")
    os.mkdir(folder)
    for name in ("wpk-worker", "wpk-runner"):
        shutil.copy(os.path.join(BIN, name), folder)
    program = os.path.join(folder, "wpk-worker")
    refused = subprocess.run([program, "--cpu", "--coordinator", wpkd.url, "--data", box.dir], env=box.env,
                             stderr=subprocess.PIPE, timeout=30, check=False)
    check(refused.returncode == 1 and b"--run-only" in refused.stderr, "it says what it can do", refused)
    return box.start(program, "--cpu", "--coordinator", wpkd.url, "--data", box.dir, "--run-only",
                     "--name", "r", "--isa-max", "avx2")


def test_what_wpkd_cannot_record_now(box):
    """wpkd says that it cannot record: results are kept, no more work is taken past a number, and
    all of it comes when wpkd can again."""
    need("wpk-worker", "wpk-builder", "wpk-runner")
    genes = candidates(box, 3)
    full = []
    refused = []

    def trouble(message):
        if full and message["type"] != "hello":
            refused.append((time.monotonic(), message["type"]))
            return {"type": "error", "code": "ENOSPC", "text": "the disk is full", "retry_ms": 700}
        return None

    wpkd = FakeWpkd(box.path("workers.sock"), trouble)
    wpkd.common = {"ops": [{"text": OP, "layouts": "fixed"}], "targets": []}
    wpkd.items["builds"] = [item(i, genes[i], "whole") for i in range(len(genes))]
    worker = add_worker(box, wpkd)
    wait_for("work was given", lambda: not wpkd.items["builds"])
    full.append(True)
    wait_for("it was refused", lambda: len(refused) >= 4, 60)
    times = [at for at, _ in refused]
    check(all(b - a > 0.5 for a, b in zip(times[2:], times[4:])), "it asks when it was told to", refused)
    full.clear()
    wait_for("all came in the end", lambda: {r["index"] for r in wpkd.results} == {0, 1, 2}, 60)
    check(all(r["record"]["outcome"] == "ok" for r in wpkd.results), "with their times", wpkd.results)
    end(worker)
    wpkd.close()


def test_in_quarantine(box):
    """Results that are refused for good are let go: they are not sent again."""
    need("wpk-worker", "wpk-builder", "wpk-runner")
    genes = candidates(box, 1)
    refused = []

    def trouble(message):
        if message["type"] == "results":
            refused.append(message)
            return {"type": "error", "code": "EACCES", "text": "quarantined", "retry_ms": 0}
        return None

    wpkd = FakeWpkd(box.path("workers.sock"), trouble)
    wpkd.common = {"ops": [{"text": OP, "layouts": "fixed"}], "targets": []}
    wpkd.items["builds"] = [item(0, genes[0], "whole")]
    worker = add_worker(box, wpkd)
    wait_for("its result was refused", lambda: refused, 60)
    wait_for("it holds nothing more", lambda: wpkd.polls and not wpkd.polls[-1]["holding"], 15)
    check(len(refused) == 1, "it was sent once", len(refused))
    end(worker)
    wpkd.close()


def test_uploads_that_are_refused(box):
    """An artifact that wpkd has no room for is held no longer, and its result is not sent; one that arrived damaged
    counts as not tried. Neither keeps the worker from anything else."""
    need("wpk-worker", "wpk-builder", "wpk-runner")
    genes = candidates(box, 3)
    answers = {0: ("ENOSPC", "no room"), 1: ("ECORRUPT", "damaged")}

    def trouble(message):
        if message["type"] == "put_artifact" and message["index"] in answers:
            code, text = answers[message["index"]]
            return {"type": "error", "code": code, "text": text, "retry_ms": 0}
        return None

    wpkd = FakeWpkd(box.path("workers.sock"), trouble)
    wpkd.common = {"ops": [{"text": OP, "layouts": "fixed"}], "targets": []}
    wpkd.items["builds"] = [item(i, genes[i], "whole") for i in range(len(genes))]
    worker = add_worker(box, wpkd)
    wait_for("the others came", lambda: {r["index"] for r in wpkd.results} == {1, 2}, 60)
    outcomes = {r["index"]: r["record"]["outcome"] for r in wpkd.results}
    check(outcomes == {1: "abandoned", 2: "ok"}, "no outcome of the candidates", outcomes)
    wait_for("nothing is named any more", lambda: wpkd.polls and not wpkd.polls[-1]["holding"], 30)
    log = worker.text(worker.err)
    check("artifact_refused work=1/trial/0" in log and "error=ENOSPC" in log, "it says so", log)
    check("artifact_not_sent work=1/trial/1" in log, "and that", log)
    end(worker)
    check(len(wpkd.results) == 2, "no result of what was refused", wpkd.results)
    wpkd.close()


def test_a_bad_line(box):
    """60 KB a second, and it breaks in the middle of artifacts and results: all of them arrive, and
    nothing is done twice."""
    need("wpk-worker", "wpk-builder", "wpk-runner")
    genes = candidates(box, 3)
    wpkd = FakeWpkd(box.path("far.sock"))
    line = BadLine(box.path("near.sock"), box.path("far.sock"), 60000, (5000, 12000, 20000))
    wpkd.common = {"ops": [{"text": OP, "layouts": "fixed"}], "targets": []}
    wpkd.items["builds"] = [item(i, genes[i], "whole") for i in range(len(genes))]
    worker = box.start("wpk-worker", "--cpu", "--coordinator", "ipc://" + box.path("near.sock"), "--data",
                       box.dir)
    wait_for("all arrive", lambda: {r["index"] for r in wpkd.results} == {0, 1, 2}, 90)
    check(not line.breaks, "the line broke three times", line.breaks)
    for result in wpkd.results:
        check(result["record"]["artifact"]["sha256"] in wpkd.artifacts, "with its artifact", result)
    check(len(wpkd.hellos) == 1, "the session survives", len(wpkd.hellos))
    end(worker)
    line.close()
    wpkd.close()


def test_refused_for_good(box):
    """A token that is none, or a protocol of the future: one clear line and an exit code that no
    service manager starts again on."""
    need("wpk-worker", "wpk-builder", "wpk-runner")
    for code, text in (("EACCES", "the token has expired"), ("EMISMATCH", "only 7 to 9 are spoken")):
        wpkd = FakeWpkd(box.path("workers.sock"), lambda message: {
            "type": "error", "code": code, "text": text, "retry_ms": 0})
        token = box.write("token", "wpk_very_secret\n")
        worker = add_worker(box, wpkd, "--token-file", token)
        status, out, err = worker.wait(30)
        check(status == 3 and text in err, "it says why", status, err)
        check("wpk_very_secret" not in out + err, "and keeps the secret", err)
        wpkd.close()
    check(hello()["token"] == "", "no token where none was given")


def test_told_to_end(box):
    """The candidate being timed is finished and recorded, and the rest given back unblamed."""
    need("wpk-worker", "wpk-builder", "wpk-runner")
    genes = candidates(box, 6)
    wpkd = FakeWpkd(box.path("workers.sock"))
    wpkd.common = {"ops": [{"text": OP, "layouts": "fixed"}], "targets": []}
    slow = dict(POLICY, time_ns_min=1500000000, sample_count=10)
    wpkd.items["builds"] = [dict(item(i, genes[i], "whole"), policy=dict(slow, sample_count=10 + i))
                             for i in range(len(genes))]
    worker = add_worker(box, wpkd)
    wait_for("something was timed", lambda: wpkd.results, 60)
    time.sleep(0.5)  # and now the next one is
    before = len(wpkd.results)
    worker.note()
    worker.popen.send_signal(signal.SIGTERM)
    code, _, err = worker.wait(60)
    check(code == 0 and "draining" in err, "it ended by itself", code, err)
    done = {result["index"] for result in wpkd.results}
    back = {lease["index"] for message in wpkd.given_back for lease in message["leases"]}
    check(len(done) > before, "what was being timed was finished", done, before)
    check(back and not back & done and back | done == set(range(len(genes))), "the rest is given back",
          done, back)
    wpkd.close()


def test_nothing_is_left_lying(box):
    """The directory for temporary files holds no more after many items than after a few, and the
    candidate that is being timed is named."""
    need("wpk-worker", "wpk-builder", "wpk-runner")
    genes = candidates(box, 8)
    wpkd = FakeWpkd(box.path("workers.sock"))
    wpkd.common = {"ops": [{"text": OP, "layouts": "fixed"}], "targets": []}
    wpkd.items["builds"] = [item(i, genes[i % 8], "whole") for i in range(8)]
    worker = add_worker(box, wpkd)
    wait_for("the first are done", lambda: len(wpkd.results) == 8, 120)
    wait_for("nothing is held", lambda: wpkd.polls[-1]["holding"] == [], 30)
    wait_for("no build's files are left", lambda: not [
        name for folder, names, files in os.walk(box.dir) for name in names + files
        if os.path.basename(folder) == "build"], 10)
    end(worker)
    left = [name for folder, _, files in os.walk(box.dir) for name in files if name.endswith(".so")]
    check(not left, "nothing is left at all", left)
    wpkd.close()


if __name__ == "__main__":
    main(globals())

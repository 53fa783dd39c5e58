# SPDX-License-Identifier: Apache-2.0
"""Commands that a person gives to a service: lists, admin states, lookups, tokens, signed kernels."""
import ctypes
import hashlib
import json
import math
import os
import re
import stat
import struct
import time

from lib import BIN, SCALABLE, Kept, Service, Skip, check, main, need, small_job, wait_for
from port import free_port

def tune(box):
    need("wpk-builder")
    job = small_job(search={"strategy": "random", "seed": 1, "pin": SCALABLE})
    box.ctl("tune", box.write("job.json", job), "--data", box.data, "--quiet")


TUNED = Kept(tune)


def tuned(box):
    """A history with a kernel in it, at box.data."""
    TUNED.place(box)
    return Service(box)


def ctl(box, service, *words, want=0):
    """A command against the service: its JSON."""
    out = box.ctl(*words, "--server", service.url, "--json", want=want)
    return json.loads(out) if want == 0 else out


def refused(box, service, *words, code):
    status, _, err = box.run("wpkctl", *words, "--server", service.url)
    check(status == code, "%s ended with %s" % (words, status), err)
    return err


def test_kernels_are_pinned_revoked_and_filtered(box):
    service = tuned(box)
    kernels = ctl(box, service, "kernels")["kernels"]
    check(len(kernels) == 1, "one is served", kernels)
    one = kernels[0]
    for name in ("fingerprint", "device", "layouts", "provider", "environment"):
        check(ctl(box, service, "kernels", "--" + name, one[name])["kernels"] == kernels, name)
    check(not ctl(box, service, "kernels", "--provider", "nobody")["kernels"], "nobody's")
    check(not ctl(box, service, "kernels", "--threads", "7")["kernels"], "for 7 threads")
    refused(box, service, "kernels", "--threads", "many", code=2)
    check(ctl(box, service, "kernels", "pin", one["id"], "--reason", "a talk")["pinned"], "pinned")
    check(not ctl(box, service, "kernels", "unpin", one["id"])["pinned"], "unpinned")
    check("none before" in refused(box, service, "kernels", "rollback", one["id"], code=1), "first")
    gone = ctl(box, service, "kernels", "revoke", one["id"], "--reason", "wrong")
    check(gone["revoked"]["reason"] == "wrong" and not gone["served"], "revoked", gone)
    past = box.ctl("kernels", "history", one["id"], "-o", "csv", "--server", service.url).splitlines()
    states = {row.split(",")[0]: row for row in past}
    check(",revoked," in states[one["id"]] and ",served," in states[gone["serves"]], "history says which is served", past)
    left = [k["id"] for k in ctl(box, service, "kernels")["kernels"]]
    check(left == [gone["serves"]] and gone["serves"] != one["id"], "the next one is served", left, gone)
    refused(box, service, "kernels", "pin", "k99999", code=4)
    refused(box, service, "kernels", "pin", "../jobs", code=2)
    refused(box, service, "kernels", "eat", one["id"], code=2)
    refused(box, service, "kernels", "pin", code=2)
    audit = ctl(box, service, "audit", "--action", "kernel.revoke")["entries"]
    check(len(audit) == 1 and audit[0]["subject"] == one["id"]
          and audit[0]["detail"] == "wrong; serves: standard %(serves)s (%(serves_provider)s)" % gone, "who did it is known", audit)
    check("kernel.pin" in box.ctl("audit", "--server", service.url), "as a table")
    service.stop()


def test_progress_ends_with_the_numbers_of_the_result(box):
    """From the final on, a job shows the times that its kernel is recorded with."""
    service = tuned(box)
    shown = ctl(box, service, "jobs")["jobs"][0]["ops"][0]
    kernel = ctl(box, service, "kernels")["kernels"][0]
    check(shown["best"]["time_ns"] == kernel["own"]["time_ns"], "our best", shown, kernel["own"])
    check(shown["best"]["candidate"] == kernel["own"]["candidate"], "the same one", shown, kernel["own"])
    if kernel["baseline"]:
        check(shown["baseline"]["time_ns"] == kernel["baseline"]["time_ns"], "the vendor's", shown, kernel)
    service.stop()


def test_misses(box):
    """Lookups in vain are counted until there is a kernel; a restart of wpkd forgets nothing."""
    service = tuned(box)
    known, device = small_job()["ops"][0], ctl(box, service, "kernels")["kernels"][0]["device"]
    op = {"op": "C[i,j] = sum(k) A[i,k]*B[k,j]", "tensors": {"A": "f32[5,7]", "B": "f32[7,3]", "C": "f32[5,3]"},
          "device": device}
    rare = {"op": "Y[i] = X[i] + 1", "tensors": {"X": "f32[9]", "Y": "f32[9]"}, "device": device}
    for lookups in ([dict(op, calls=10, time_ns=4000000), rare], [op], [dict(known, device=device)],
                    [{"fingerprint": "0" * 64, "device": device}]):
        status, answer, _ = service.ask("POST", "/v1/kernels:lookup", json.dumps({"lookups": lookups}).encode())
        check(status == 200 and len(answer["matches"]) == len(lookups), "looked up", answer)
    first = wait_for("they are counted", lambda: ctl(box, service, "misses")["misses"], 10)
    check([(m["lookups"], m["calls"], m["time_ns"]) for m in first] == [(2, 10, 4000000), (1, 0, 0)]
          and first[0]["op"]["op"] == op["op"] and first[0]["lost_ns"] > 0, "those that cost most first", first)
    check(ctl(box, service, "misses", "--max", "1")["misses"] == first[:1], "one of them")
    table = box.ctl("misses", "--server", service.url).splitlines()
    check(len(table) == 3 and "C[i,j] = sum(k)" in table[1], "as a table", table)
    service.stop()
    service = Service(box)
    check(ctl(box, service, "misses")["misses"] == first, "kept over a restart")
    status, _, _ = service.ask("POST", "/v1/kernels:lookup", b'{"lookups":[{"fingerprint":"%s","calls":-1}]}' % (b"0" * 64))
    check(status == 422, "no calls below 0", status)
    job = box.ctl("misses", "--submit", "--server", service.url).strip()
    ops = ctl(box, service, "status", job)["ops"]
    check([o["name"] for o in ops] == ["miss1", "miss2"], "a job of both", ops)
    service.stop()


def test_lookup(box):
    service = tuned(box)
    job = box.write("job.json", small_job())
    match = ctl(box, service, "lookup", job)["matches"]
    check([m["match"] for m in match] in (["exact"], ["vendor"]), "known", match)
    by_hash = ctl(box, service, "lookup", match[0]["fingerprint"])["matches"]
    check(by_hash[0]["kernel_id"] == match[0]["kernel_id"], "by its fingerprint", by_hash)
    text = box.ctl("lookup", job, "--server", service.url)
    check("  time " in text and match[0]["kernel_id"] in text and "measured" in text, "in words", text)
    short = ctl(box, service, "lookup", match[0]["fingerprint"][:12])["matches"]
    check(short == by_hash, "by its first digits", short)
    check("no kernel" in refused(box, service, "lookup", "0" * 8, code=4), "nobody's digits")
    check(len(json.dumps(match)) < 6000 and "schedule" not in match[0], "the schedule is not repeated", match)
    other = small_job(ops=[{"name": "other", "op": {"type": "matmul", "a": [5, 7], "b": [7, 3]}}])
    unknown = box.write("other.json", other)
    status, out, _ = box.run("wpkctl", "lookup", unknown, "--server", service.url, "--json")
    check(status == 4 and json.loads(out)["matches"][0]["match"] == "none", "unknown", status, out)
    out = box.ctl("lookup", unknown, "--tune", "--json", "--server", service.url)
    made = json.loads(out)["matches"][0]["job_id"]
    jobs = {j["id"]: j for j in ctl(box, service, "jobs")["jobs"]}
    check(made in jobs and jobs[made]["ops"][0]["name"] == "other", "a job for it, of that name", out)
    check(made in box.run("wpkctl", "lookup", unknown, "--tune", "--server", service.url)[1], "the same again")
    refused(box, service, "lookup", "/nowhere.json", code=2)
    service.stop()


def test_digits_stand_for_an_operator(box):
    """Wherever a fingerprint is taken, its first eight digits are, in whatever layouts there is a kernel."""
    need("wpk-builder")
    box.ctl("tune", box.write("job.json", small_job()), "--layouts", "any", "--candidates", "2", "--data", box.data,
            "--quiet")
    service = Service(box)
    kernel = ctl(box, service, "kernels")["kernels"][0]
    check(kernel["layouts"] == "any", "not the default layouts", kernel)
    digits = kernel["fingerprint"][:8]
    check(ctl(box, service, "kernels", "--fingerprint", digits)["kernels"] == [kernel], "kernels")
    found = ctl(box, service, "lookup", digits)["matches"]
    check([match["kernel_id"] for match in found] == [kernel["id"]], "lookup", found)
    path = box.path("x.so")
    check(ctl(box, service, "get", digits, "-o", path)["kernel"] == kernel["id"], "get")
    check(ctl(box, service, "genes", digits)["ops"][0]["genes"], "genes")
    check("t0" in refused(box, service, "run", digits, code=2), "run, whose tensors have canonical names")
    refused(box, service, "lookup", digits[:7], code=2)
    service.stop()


def test_classes_of_accuracy_are_asked_for(box):
    """Lists, lookups and get take the class and the conditions; what fits a class is its answer."""
    service = tuned(box)
    one = ctl(box, service, "kernels")["kernels"][0]
    listed = ctl(box, service, "kernels", "--accuracy", "standard", "--conditions", "warm")["kernels"]
    check(listed == [one], "of its class and conditions", listed)
    for words in (("--accuracy", "fast"), ("--conditions", "cold")):
        check(not ctl(box, service, "kernels", *words)["kernels"], "of none else", words)
    job = box.write("job.json", small_job())
    for what in (job, one["fingerprint"][:12]):
        for words in (("--accuracy", "fast"), ("--accuracy=times_direct=16", "--conditions=warm")):
            match = ctl(box, service, "lookup", what, *words)["matches"]
            check(len(match) == 1 and match[0]["kernel_id"] == one["id"], "what fits is known", words, match)
        for words in (("--accuracy", "times_direct=1e-9"), ("--conditions", "cold")):
            status, out, _ = box.run("wpkctl", "lookup", what, *words, "--server", service.url, "--json")
            check("exact" not in out and "vendor" not in out, "nothing else is", words, status, out)
    text = box.ctl("lookup", job, "--server", service.url)
    check("standard, warm, error " in text and "x direct" in text, "the class and the error are named", text)
    get = ("get", "small", "--own", "-o", box.path("small.so"))
    box.ctl(*get, "--accuracy", "fast", "--server", service.url)
    err = refused(box, service, *get, "--conditions", "cold", code=4)
    check("wpkctl kernels" in err and "wpkctl tune" in err, "what to do", err)
    for command in (("kernels",), ("lookup", job), ("lookup", one["fingerprint"]), get):
        check("did you mean 'fast'?" in refused(box, service, *command, "--accuracy", "fas", code=2), command)
        check("cold-constants" in refused(box, service, *command, "--conditions", "cool", code=2), command)
    service.stop()


def test_a_near_shape_becomes_a_kernel(box):
    service = tuned(box)
    served = ctl(box, service, "kernels")["kernels"][0]
    if not served["candidate"]:
        ctl(box, service, "kernels", "revoke", served["id"])  # the vendor's, which takes any shape
    near = dict(small_job()["ops"][0], name="near")
    near["tensors"] = {name: kind.replace("12,12", "36,12") for name, kind in near["tensors"].items()}
    job = box.write("near.json", small_job(ops=[near]))
    match = ctl(box, service, "lookup", job)["matches"][0]
    check(match["match"] == "nearest_shape" and match["candidate"], "ours is near", match)
    text = box.ctl("lookup", job, "--server", service.url)
    check("scaled" in text and "there" in text, "what was measured and what is expected", text)
    box.ctl("lookup", job, "--schedule", "--server", service.url)
    record = json.loads(box.ctl("build", box.path("near.schedule"), "--json"))
    check(record["outcome"] == "ok", "wpkctl build takes it", record)
    service.stop()


def write_npy(path, values, kind):
    """values: nested as NumPy nests them, here only flat with their shape."""
    shape, flat = values
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        kind, "".join("%d, " % extent for extent in shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%df" % len(flat), *flat))
    return path


def test_run_on_numpy_files(box):
    service = tuned(box)
    shapes = {name: [int(n) for n in kind[4:-1].split(",")]
              for name, kind in small_job()["ops"][0]["tensors"].items()}
    files = {}
    for tensor in ("X", "W", "B"):
        count = math.prod(shapes[tensor])
        files[tensor] = write_npy(box.path(tensor + ".npy"),
                                  (shapes[tensor], [((7 * i) % 17 - 8) / 8 for i in range(count)]), "<f4")
    given = [word for tensor, path in files.items() for word in ("--input", "%s=%s" % (tensor, path))]
    job = box.write("job.json", small_job())
    out = ctl(box, service, "run", job, *given, "--output", "Y=" + box.path("Y.npy"), "--check")
    check(out["check"]["passed"] and out["check"]["of_rms"] < 1e-5, "it is right", out)
    check(out["entry"]["index"] == 0 and out["entry"]["kind"] in ("kernel", "vendor"), "what ran", out)
    with open(box.path("Y.npy"), "rb") as file:
        check(len(file.read()) % 64 == 4 * math.prod(shapes["Y"]) % 64, "the output is written")
    words = box.ctl("run", job, "--op", "small", *given, "--check", "--server", service.url)
    check("passed" in words and "entry   0 of the choice" in words, "in words", words)
    path = box.path("ran.so")
    ctl(box, service, "get", "small", "-o", path)
    os.unlink(path)
    out = json.loads(box.ctl("run", path + ".choice", *given, "--check", "--json"))
    check(out["check"]["passed"], "the choice itself", out)
    with open(path + ".choice", encoding="utf-8") as file:
        choice = json.load(file)
    check(out["check"]["accuracy"] == choice["accuracy"] == "standard", "held to its own class", out)
    kinds = [entry["kind"] for entry in choice["chain"]]
    check(kinds[out["entry"]["index"]] == out["entry"]["kind"] != "kernel", "its next entry", kinds, out)
    drawn = [json.loads(box.ctl("run", path + ".choice", *words, "--random", "--check", "--json"))["check"]
             for words in ([], [], given[:2])]
    check(all(one["passed"] and one["of_rms"] > 0 for one in drawn), "what is drawn runs", drawn)
    check(drawn[0] == drawn[1] != drawn[2], "the same is drawn again, beside a file less", drawn)
    err = refused(box, service, "run", job, *given[2:], code=2)
    check("X" in err and "--input X=" in err and "--random" in err, "what is missing", err)
    wrong = write_npy(box.path("wrong.npy"), ([1, 12, 12, 8], [0.0] * 1152), "<f4")
    err = refused(box, service, "run", job, "--input", "X=" + wrong, *given[2:], code=2)
    check("(1, 8, 12, 12)" in err and "(1, 12, 12, 8)" in err, "both shapes are named", err)
    refused(box, service, "run", job, "--op", "smal", *given, code=2)
    refused(box, service, "run", "nothing", *given, code=4)
    service.stop()


def test_outputs_into_a_device(box):
    """A device node of the test's own, which no command may replace by a file."""
    node, full = box.path("null"), box.path("full")
    try:
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.mknod(full, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        open(node, "wb").close()
    except OSError as why:
        raise Skip("device nodes are not permitted: %s" % why) from why
    service = tuned(box)
    job = box.write("job.json", small_job())
    for words in (("get", "small", "-o", node), ("get", "small", "--own", "--schedule", "-o", node),
                  ("run", job, "--random", "--output", "Y=" + node), ("export", node)):
        status, _, err = box.run("wpkctl", *words, "--server", service.url) if words[0] != "export" else \
            box.run("wpkctl", *words, "--data", box.data)
        check(status == 0, "%s into a device" % words[0], err)
    err = refused(box, service, "run", job, "--random", "--output", "Y=" + full, code=1)
    check("No space left" in err or "disk full" in err or full in err, "a full device", err)
    check(all(stat.S_ISCHR(os.stat(path).st_mode) for path in (node, full)), "both are devices still")
    beside = [name for name in os.listdir(os.path.dirname(node)) if name.startswith(("null.", "full."))]
    check(beside == [], "nothing is written beside a device", beside)
    service.stop()


def test_what_is_lost_is_named(box):
    """An object that is damaged, then gone, and at last the signing key: the next best is served."""
    service = tuned(box)
    kernel = ctl(box, service, "kernels")["kernels"][0]
    sha256 = (kernel["own"] or kernel)["artifact"]
    path = os.path.join(box.data, "artifacts", sha256[:2], sha256 + ".so")
    for lose in (lambda: open(path, "wb").close(), lambda: os.unlink(path)):
        lose()
        status, _, err = box.run("wpkctl", "get", "small", "-o", box.path("small.so"), "--server", service.url)
        check(status == 0 and kernel["id"] in err and "missing or damaged" in err and "tune" in err, "named", err)
        with open(box.path("small.so.choice"), encoding="utf-8") as file:
            chain = [entry["kind"] for entry in json.load(file)["chain"]]
        check(chain and "kernel" not in chain, "the next best", chain)
    service.stop()
    os.unlink(os.path.join(box.data, "signing.key"))
    service = Service(box)
    check(ctl(box, service, "kernels")["kernels"] == [], "none is served")
    refused(box, service, "get", "small", "-o", box.path("small.so"), code=4)
    log = service.wpkd.text(service.wpkd.err)
    check("signing_key_lost" in log and kernel["id"] in log, "the log names it", log)
    service.stop()


def test_check_fails_with_the_kernel(box):
    """A well-sealed kernel whose manifest has another operator: min(…, 0) where it computes max(…, 0)."""
    service = tuned(box)
    path = box.path("small.so")
    ctl(box, service, "get", "small", "--own", "-o", path)
    shapes = {name: [int(n) for n in kind[4:-1].split(",")]
              for name, kind in small_job()["ops"][0]["tensors"].items()}
    names = {theirs: mine for mine, theirs in
             sum(json.load(open(path + ".choice", encoding="utf-8"))["binding"].values(), [])}

    def given(values, canonical=False):
        words = []
        for tensor in ("X", "W", "B"):
            count = math.prod(shapes[tensor])
            file = write_npy(box.path(tensor + ".npy"),
                             (shapes[tensor], [values(tensor, i) for i in range(count)]), "<f4")
            name = next(theirs for theirs, mine in names.items() if mine == tensor) if canonical else tensor
            words += ["--input", "%s=%s" % (name, file)]
        return words

    waves = given(lambda _, i: math.sin(i))
    check("passed" in box.ctl("run", path + ".choice", *waves, "--check"), "it is right")
    code, out, err = box.run("wpkctl", "run", path + ".choice", *waves, "--check", "--accuracy", "times_direct=1e-9")
    check(code == 1 and "FAILED" in out and "times_direct=1e-09" in out, "not in the class that is asked for", out, err)
    with open(path, "rb") as file:
        sealed = file.read()[:-40]
    wrong = sealed.replace(b"max(", b"min(")
    check(wrong != sealed, "the manifest has the operator")
    wrong = box.write("wrong.so", wrong + b"WPKSEAL1" + hashlib.sha256(wrong).digest())
    # A bias far below zero: the kernel gives zeros, and the reference does not.
    words = given(lambda tensor, i: -1e4 if tensor == "B" else math.sin(i), canonical=True)
    code, out, err = box.run("wpkctl", "run", wrong, *words, "--check", "--json")
    result = json.loads(out)["check"]
    check(code == 1 and not result["passed"] and abs(result["of_rms"] - 1) < 1e-6, "zeros are wrong", code, out, err)
    refused(box, service, "run", wrong, *words, "--conditions", "cold", code=2)
    service.stop()


def test_what_shells_complete(box):
    service = tuned(box)
    kernel = ctl(box, service, "kernels")["kernels"][0]
    where = ("--server", service.url)
    check(box.ctl("complete", "kernels", *where).split() == [kernel["id"]], "kernels")
    check(box.ctl("complete", "names", *where).split() == ["small", kernel["fingerprint"][:12]], "names")
    job = ctl(box, service, "jobs")["jobs"][0]["id"]
    check(box.ctl("complete", "jobs", *where).split() == [job], "jobs")
    rows = ctl(box, service, "trials", job)["trials"]
    check(len(rows) >= 4 and all(row["outcome"] for row in rows), "what it tried", rows[:2])
    plain = [row for row in rows if row["provider"] == "plain"]
    check(plain and plain[0]["candidate"] == "algorithm=direct" and "/plain/1" in plain[0]["work"],
          "the plain kernel is a trial", plain)
    check(re.search(r"^ *plain +\S+ +plain +ok ", box.ctl("trials", job, *where), re.MULTILINE), "in the table too")
    check(all(row["unseen"] == "" and row["constants_bytes"] > 0 for row in rows if row["outcome"] == "ok"
              and row["index"] >= 0), "with what it was verified by", rows[:2])
    check("x direct" in box.ctl("trials", job, *where), "the error as classes are by")
    check("outcome" in box.ctl("trials", job, "--failed", *where), "as a table")
    service.stop()
    code, out, err = box.run("wpkctl", "complete", "jobs", "--data", box.path("nothing"))
    check((code, out, err) == (3, "", "") and not os.path.exists(box.path("nothing")), "starts nothing", code, err)


def test_an_operator_is_submitted(box):
    """submit takes the same options of a job as tune."""
    service = Service(box)
    words = ["--op", "Y[i] = relu(X[i])", "--tensor", "X=f32[64]", "--tensor", "Y=f32[64]", "--candidates", "3"]
    job = ctl(box, service, "submit", *words)
    check(job["ops"][0]["name"] == "op" and job["ops"][0]["candidates"]["wanted"] == 3, "with its budget", job)
    err = refused(box, service, "submit", box.write("job.json", small_job()), *words, code=2)
    check("one of the two" in err, "a file and --op", err)
    err = refused(box, service, "submit", code=2)
    check("one of the two" in err, "neither", err)
    box.ctl("jobs", "cancel", job["id"], "--server", service.url)
    code, _, err = box.run("wpkctl", "watch", job["id"], "--server", service.url)
    check(code == 1 and "submit it again" in err, "what to do with a cancelled one", code, err)
    service.stop()


def test_jobs_are_held(box):
    service = Service(box)
    job = box.ctl("submit", box.write("job.json", small_job()), "--server", service.url).strip()
    check(ctl(box, service, "jobs", "pause", job)["state"] == "paused", "paused")
    check(len(ctl(box, service, "jobs", "--state", "paused")["jobs"]) == 1, "listed so")
    check(ctl(box, service, "jobs", "resume", job)["state"] in ("queued", "running"), "resumed")
    check(ctl(box, service, "jobs", "cancel", job)["state"] == "cancelled", "cancelled")
    refused(box, service, "jobs", "pause", "j0123456789abcdef", code=4)
    refused(box, service, "jobs", "pause", "x", code=2)
    refused(box, service, "jobs", "pause", code=2)
    service.stop()


def test_admin_states(box):
    need("wpk-builder")
    service = Service(box)
    service.add_worker("--name", "one")
    wait_for("it is there", lambda: ctl(box, service, "workers")["workers"], 30)
    answer = ctl(box, service, "workers", "drain", "one", "--reason", "a new fan")
    check(answer["order"] == "drain" and answer["reason"] == "a new fan", "drained", answer)
    service.wpkd.popen.kill()
    service.wpkd.wait(10)
    workers, service = service.workers, Service(box)
    service.workers = workers
    back = wait_for("it is there again", lambda: ctl(box, service, "workers")["workers"], 30)[0]
    check((back["state"], back["reason"]) == ("draining", "a new fan"), "and still drained", back)
    check(box.ctl("complete", "workers", "--server", service.url).split() == ["one"], "what shells complete")
    job = box.ctl("submit", box.write("job.json", small_job()), "--server", service.url).strip()
    time.sleep(2)
    check(ctl(box, service, "status", job)["state"] == "queued", "it gets nothing")
    check(ctl(box, service, "workers", "resume", "one")["order"] == "none", "resumed")
    box.ctl("watch", job, "--server", service.url, "--quiet")
    check(ctl(box, service, "workers", "quarantine", "one")["order"] == "quarantine", "quarantined")
    refused(box, service, "workers", "dance", "one", code=2)
    service.stop()


def test_tokens(box):
    service = Service(box)
    secret = box.ctl("token", "create", "--owner", "ann", "--role", "read", "--days", "2", "--note",
                     "for a test", "--server", service.url).strip()
    tokens = ctl(box, service, "token", "list")["tokens"]
    check(len(tokens) == 1 and tokens[0]["owner"] == "ann" and tokens[0]["roles"] == ["read"] and
          tokens[0]["note"] == "for a test" and tokens[0]["expires"], "listed", tokens)
    check(secret not in json.dumps(tokens), "without its secret")
    refused(box, service, "token", "create", "--owner", "ann", code=2)
    refused(box, service, "token", "create", "--owner", "ann", "--role", "king", code=2)
    refused(box, service, "token", "revoke", "x", code=2)
    refused(box, service, "token", "revoke", "0123456789abcdef", code=4)
    check(ctl(box, service, "token", "revoke", tokens[0]["id"])["revoked"], "revoked")
    service.stop()


def test_a_token_opens_what_it_is_for(box):
    port = free_port()
    config = box.write("wpkd.json", {
        "http": {"listen": [{"address": "unix:" + box.path("http.sock")},
                            {"address": "127.0.0.1:%d" % port}]},
        "workers": {"listen": [{"address": "ipc://" + box.path("workers.sock")}]}})
    wpkd = box.start("wpkd", "--config", config, "--data", box.data)
    local, remote = "unix:" + box.path("http.sock"), "http://127.0.0.1:%d" % port
    wait_for("it answers", lambda: box.run("wpkctl", "workers", "--server", local)[0] == 0, 30)
    check(box.run("wpkctl", "kernels", "--server", remote)[0] == 5, "not without one")
    token = box.write("token", box.ctl("token", "create", "--owner", "ann", "--role", "read",
                                       "--server", local))
    box.ctl("kernels", "--server", remote, "--token-file", token)
    box.env["WPK_TOKEN_FILE"] = token
    box.ctl("kernels", "--server", remote)
    del box.env["WPK_TOKEN_FILE"]
    os.makedirs(box.path(".config/woodpecker"))
    box.write(".config/woodpecker/wpkctl.json", {"server": remote, "token_file": token})
    box.ctl("kernels")
    code, _, err = box.run("wpkctl", "submit", box.write("job.json", small_job()))
    check(code == 5 and "submit" in err, "reading is not submitting", code, err)
    identifier = json.loads(box.ctl("token", "list", "--server", local, "--json"))["tokens"][0]["id"]
    box.ctl("token", "revoke", identifier, "--server", local)
    check(box.run("wpkctl", "kernels")[0] == 5, "revoked")
    box.write("token", "nonsense\n")
    check(box.run("wpkctl", "kernels")[0] == 5, "unknown")
    wpkd.popen.terminate()
    wpkd.wait(30)


def test_get_says_whose_kernel_it_is(box):
    """A name is that of the newest job's operator, never of another one that is called so."""
    service = tuned(box)
    get = ("get", "small", "--own", "-o", box.path("small.so"), "--server", service.url)
    first = ctl(box, service, "jobs")["jobs"][0]["id"]
    code, _, err = box.run("wpkctl", *get)
    check(code == 0 and "newest" not in err and "kernel k" in err, "the newest job's", code, err)
    same = small_job(search={"strategy": "random", "seed": 2}, budget={"candidates": 50})
    second = box.ctl("submit", box.write("same.json", same), "--server", service.url).strip()
    code, _, err = box.run("wpkctl", *get)
    check(code == 0 and os.path.isfile(box.path("small.so")), "the same operator's", code, err)
    check("job %s, the newest with small, is queued: this is of job %s" % (second, first) in err,
          "and it is said", err)
    os.unlink(box.path("small.so"))
    other = small_job(ops=[{"name": "small", "op": {"type": "matmul", "a": [5, 7], "b": [7, 3]}}])
    third = box.ctl("submit", box.write("other.json", other), "--server", service.url).strip()
    code, out, err = box.run("wpkctl", *get)
    check(code == 4 and out == "" and not os.path.exists(box.path("small.so")), "no other one's", code, err)
    check("job %s" % third in err and "by fingerprint" in err, "and it is said", err)
    box.ctl("jobs", "cancel", third, "--server", service.url)
    check("cancelled" in refused(box, service, *get[:-2], code=4), "nor once it was cancelled")
    check("'nobody'" in refused(box, service, "get", "nobody", code=4), "a name that there is not")
    service.stop()


class OpenOptions(ctypes.Structure):
    _fields_ = [("device_class", ctypes.c_char_p), ("public_key", ctypes.c_char_p), ("any_model", ctypes.c_bool)]


LIBWPK = os.path.join(os.path.dirname(BIN), "runtime", "libwpk.so")


def load(path, key):
    """As a program that pins the key: 0, or the error's number."""
    lib = ctypes.CDLL(LIBWPK)
    kernel = ctypes.c_void_p()
    options = OpenOptions(None, key, False)
    err = lib.wpk_kernel_open(path.encode(), ctypes.byref(options), ctypes.byref(kernel), None)
    if err == 0:
        lib.wpk_kernel_close(kernel)
    return err


def test_a_signed_kernel_from_wpkd_to_libwpk(box):
    service = tuned(box)
    path = box.path("small.so")
    files = ctl(box, service, "get", "small", "--own", "-o", path)["files"]
    plain = box.path("small.plain.so")
    check(files == [path, path + ".manifest", path + ".sig", plain, path + ".choice", path + ".choice.sig"], "it names every file that it writes", files)
    check(all(os.path.isfile(file) for file in files), "which are there", files)
    key = box.ctl("get", "--public-key", "--server", service.url).strip()
    check(len(key) == 64, "a public key", key)
    for suffix in (".manifest", ".sig"):
        check(os.path.isfile(path + suffix), "beside it lies " + suffix)
    with open(path + ".manifest", encoding="utf-8") as file:
        manifest = json.load(file)
    check(manifest["constants_bytes"] >= 4 * 8 * 8, "the bytes of its prepared constants", manifest)
    refused(box, service, "get", "small", "--public-key", code=2)
    with open(LIBWPK, "rb") as file:
        if b"__asan_init" in file.read():
            service.stop()
            raise Skip("a sanitizer's library does not load into Python; trust_test.c is for it")
    check(load(path, key.encode()) == 0, "it is loaded")
    check(load(path, b"0" * 64) != 0, "not by whoever trusts another key")
    with open(path + ".manifest", "r+b") as file:
        content = file.read()
        at = content.index(b'"median":') + 9
        file.seek(at)
        file.write(b"2" if content[at:at + 1] == b"1" else b"1")
    check(load(path, key.encode()) != 0, "not once it was changed")
    box.ctl("get", "small", "--own", "-o", path, "--server", service.url)
    check(load(path, key.encode()) == 0, "got again")
    service.stop()


def test_watch_survives_a_restart(box):
    need("wpk-builder")
    service = Service(box)
    service.add_worker()
    job = box.ctl("submit", box.write("job.json", small_job()), "--server", service.url).strip()
    watch = box.start("wpkctl", "watch", job, "--server", service.url, "--json")
    wait_for("it is under way", lambda: ctl(box, service, "status", job)["state"] == "running", 60)
    service.wpkd.popen.kill()
    service.wpkd.wait(30)
    time.sleep(2)
    check(watch.popen.poll() is None, "it waits")
    again = Service(box)
    code, out, err = watch.wait(120)
    check(code == 0 and json.loads(out)["kernels"], "and sees the end", code, out, err)
    check("wpkd cannot be reached" in err and "wpkd answers again" in err, "the outage is told", err)
    again.workers = service.workers
    again.stop()
    check(box.run("wpkctl", "watch", job, "--server", service.url)[0] == 3, "where none was, none is waited for")


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""The choice that `wpkctl get` writes always runs: it is signed by wpkd, in the asker's names; libwpk takes its best
entry that works, and says why it passed others over."""
import ctypes
import hashlib
import json
import os
import subprocess

from lib import BIN, Kept, Service, Skip, check, check_tune_json, main, need, small_job

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
RUN_KERNEL = os.environ.get("WPK_RUN_KERNEL", "")
LIBWPK = os.path.join(BIN, "../runtime/libwpk.so")


FOUND = []  # what the tuning said


def tune(box):
    need(*PROGRAMS)
    job = box.write("job.json", small_job(budget={"candidates": 4, "seconds": 120}))
    FOUND.append(check_tune_json(box.ctl("tune", job, "--data", box.data, "--json", "--pin",
                                         "algorithm=direct"))["kernels"][0])


TUNED = Kept(tune)


def get(box, name="small", file="x.so"):
    """(the choice, its path, what get said)"""
    path = box.path(file)
    code, _, err = box.run("wpkctl", "get", name, "-o", path, "--data", box.data)
    check(code == 0, "get leaves something that runs", err, box.logs())
    with open(path + ".choice", encoding="utf-8") as text:
        return json.load(text), path, err


def run_kernel(box, path):
    done = subprocess.run([RUN_KERNEL, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env=box.env, timeout=120, check=False)
    return done.returncode, done.stdout


def kinds(choice):
    return [entry["kind"] for entry in choice["chain"]]


def test_choice(box):
    if not os.path.exists(RUN_KERNEL):
        raise Skip("examples/run_kernel is not built")
    TUNED.place(box)
    kernel = FOUND[0]
    choice, path, err = get(box)
    for file in ("x.so", "x.so.manifest", "x.so.sig", "x.plain.so", "x.so.choice", "x.so.choice.sig"):
        check(os.path.isfile(box.path(file)) and box.path(file) + ":" in err, "get writes and names " + file, err)
    check(choice["fingerprint"] == kernel["fingerprint"], "of the operator", choice)
    check(choice["binding"] == kernel["binding"], "in the asker's names", choice["binding"], kernel["binding"])
    for name in ("X", "W", "B", "Y"):
        check(" %s f32[" % name in choice["operator"], "the operator has " + name, choice["operator"])
    check("kernel" in kinds(choice), "our own is there", choice["chain"])
    check(choice["chain"][-1] == {"kind": "plain", "file": "x.plain.so", "sha256": sha256(box.path("x.plain.so"))},
          "the plain kernel is the last", choice["chain"])
    check(("vendor" in kinds(choice)) == bool(kernel["baseline"]), "the vendor's recipe is there", choice["chain"], kernel["baseline"])
    check(choice["self_test"]["outputs"][0]["points"], "it tests itself", choice["self_test"])
    vendor_wins = kernel["provider"] != "halide-cpu"
    check((kinds(choice)[0] == "vendor") <= vendor_wins, "the best comes first", kinds(choice), kernel["provider"])
    if vendor_wins:
        check(kernel["provider"] in err, "who is fastest", err)

    code, out = run_kernel(box, path + ".choice")
    check(code == 0, "it runs", out)
    check("entry 0 of the choice" in out and "Y: sum" in out, "the first entry, in the asker's names", out)

    by_fingerprint, _, _ = get(box, kernel["fingerprint"], "y.so")
    check(all(a == b for pairs in by_fingerprint["binding"].values() for a, b in pairs),
          "a bare fingerprint has canonical names", by_fingerprint["binding"])

    # A damaged object: what is left is taken, and the reason is told.
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 1)
    code, out = run_kernel(box, path + ".choice")
    check(code == 0 and ("x.so" in out or "vendor" in out), "the next one runs", out)
    os.unlink(path)
    os.unlink(box.path("x.plain.so"))
    code, out = run_kernel(box, path + ".choice")
    check((code == 0) == ("vendor" in kinds(choice)), "the vendor's is left, or nothing", kinds(choice), out)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Options(ctypes.Structure):
    _fields_ = [("device_class", ctypes.c_char_p), ("public_key", ctypes.c_char_p),
                ("any_model", ctypes.c_bool), ("library_dir", ctypes.c_char_p),
                ("self_test", ctypes.c_bool)]


class Taken(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("kind", ctypes.c_char_p), ("reason", ctypes.c_char_p)]


def libwpk():
    with open(LIBWPK, "rb") as file:
        if b"__asan_init" in file.read():
            raise Skip("a sanitizer's library does not load into Python")
    lib = ctypes.CDLL(LIBWPK)
    lib.wpk_kernel_choice.restype = Taken
    return lib


def open_choice(path, **options):
    """(what wpk_open says, as a number; the kind of the entry that it took, why no other)"""
    lib = libwpk()
    kernel = ctypes.c_void_p()
    diag = ctypes.create_string_buffer(4096)
    err = lib.wpk_open(path.encode(), ctypes.byref(Options(**options)), ctypes.byref(kernel), diag)
    if err != 0:
        return err, "", ""
    taken = lib.wpk_kernel_choice(kernel)
    kind, reason = taken.kind.decode(), taken.reason.decode()
    lib.wpk_kernel_close(kernel)
    return err, kind, reason


def test_a_broken_choice(box):
    """File, line, column and field of what is wrong are named."""
    TUNED.place(box)
    with open(get(box)[1] + ".choice", encoding="utf-8") as file:
        whole = file.read()
    for text, says in ((whole[:200], "1:201: "), (whole.replace('"threads":1', '\n"threads":"one"'), "2:11: threads: "),
                       (whole.replace('"version":4', '"version":1'), "1:12: version: "), ("", "1:1: "),
                       (whole.replace('"layouts":', '\n\n"layout":'), "3:1: layout: ")):
        path = box.write("broken.so.choice", text)
        code, out, err = box.run("wpkctl", "run", path, "--random")
        check(code != 0 and out == "" and path + ":" + says in err, says, code, err)


def test_a_lost_plain_kernel(box):
    """The absence of the plain kernel, and the reason, stand in the choice, and get says them."""
    TUNED.place(box)
    choice, _, err = get(box)
    check(choice["plain_missing"] == "" and "no plain kernel" not in err, "there is one", choice, err)
    lost = choice["chain"][-1]["sha256"]
    os.unlink(os.path.join(box.data, "artifacts", lost[:2], lost + ".so"))
    choice, _, err = get(box)
    check("plain" not in kinds(choice) and "missing or damaged" in choice["plain_missing"], "the choice says so", choice)
    check("no plain kernel" in err and choice["plain_missing"] in err, "get says so", err)


def test_revoked_down_to_the_plain_kernel(box):
    """Ours, then the vendor's, then the plain kernel: get leaves something that runs, to the end."""
    TUNED.place(box)
    nowhere = box.path("nowhere").encode() # there is no vendor's library
    for step in range(8):
        served = json.loads(box.ctl("kernels", "--data", box.data, "--json"))["kernels"]
        check(len(served) == 1, "one is served", served)
        choice, path, err = get(box, file="s%d.so" % step)
        check(kinds(choice)[-1] == "plain", "the plain kernel is the last", choice["chain"])
        check(os.path.isfile(path) and os.path.isfile(path[:-3] + ".plain.so"), "both objects", err)
        vendor = served[0]["artifact"] is None
        check((kinds(choice)[0] == "vendor") == vendor, "the served one is the first", choice["chain"])
        check(("the fastest is " + served[0]["provider"] in err) == vendor, "who is fastest", err)
        os.unlink(path)
        check(open_choice(path + ".choice", library_dir=nowhere, self_test=True)[:2] == (0, "plain"),
              "alone it runs")
        if served[0]["provider"] == "plain":
            break
        text = box.ctl("kernels", "revoke", served[0]["id"], "--data", box.data)
        check("revoked; now served: k" in text and "  by " in text and "  -" not in text, "the reply names the next", text)
    check(served[0]["provider"] == "plain" and kinds(choice) == ["plain"], "all else is gone", served, choice)
    audit = json.loads(box.ctl("audit", "--action", "kernel.revoke", "--data", box.data, "--json"))["entries"]
    check(audit[0]["detail"].endswith("serves: standard %s (plain)" % served[0]["id"]), "the log names it", audit)
    text = box.ctl("kernels", "revoke", served[0]["id"], "--data", box.data)
    check("revoked; nothing is served: " in text and "tune it again" in text and "  -" not in text, "nothing is left", text)
    code, _, err = box.run("wpkctl", "get", "small", "-o", box.path("none.so"), "--data", box.data)
    check(code == 4 and "revoked" in err, "and that is said", err)


def test_one_plain_kernel_for_all(box):
    """Classes and conditions share what was built once."""
    need(*PROGRAMS)
    shared = set()
    for changes in ({}, {"accuracy": "strict"}, {"conditions": "cold"}):
        job = small_job()
        job["ops"][0].update(changes)
        box.ctl("tune", box.write("job.json", job), "--data", box.data, "--json", "--pin", "algorithm=direct",
                "--candidates", "2")
        choice, _, _ = get(box)
        shared.add(choice["chain"][-1]["sha256"])
    check(len(shared) == 1, "one plain kernel", shared)


def test_class_that_is_asked_for(box):
    """A search of another class found the kernel: the choice says the class of the question."""
    need(*PROGRAMS)
    job = small_job()
    job["ops"][0]["accuracy"] = "fast"
    box.ctl("tune", box.write("job.json", job), "--data", box.data, "--json", "--pin", "algorithm=direct",
            "--candidates", "2")
    by_name = get(box)[0]
    service = Service(box)
    listed = service.ask("GET", "/v1/kernels")[1]["kernels"][0]
    kernel = listed["id"]
    said = {}
    for asked in ("fast", "standard"):
        match = service.ask("POST", "/v1/kernels:lookup",
                            {"fingerprint": listed["fingerprint"], "accuracy": asked})[1]
        check(match["match"] in ("exact", "vendor") and match["kernel_id"] == kernel and match["accuracy"] == "fast",
              "the lookup finds what fits", asked, match)
        status, answer, _ = service.ask("POST", "/v1/kernels/%s:choice" % kernel, {"file": "x.so", "accuracy": asked})
        check(status == 200, "there is a choice", answer)
        choice = json.loads(answer["choice"])
        check(choice["accuracy"] == asked, "the class of the question", asked, choice["accuracy"])
        said[asked] = kinds(choice)
    status, answer, _ = service.ask("POST", "/v1/kernels/%s:choice" % kernel,
                                    {"file": "x.so", "accuracy": {"times_direct": 1e-6}})
    check(status == 422 and "in the class" in answer["detail"], "none is in such a class", status, answer)
    service.stop()
    check(by_name["accuracy"] == "fast", "the job's class", by_name["accuracy"])
    check(said["fast"] == said["standard"] == kinds(by_name), "direct evaluation is in both", said)
    path = box.path("standard.so")
    box.ctl("get", "small", "-o", path, "--data", box.data, "--accuracy", "standard")
    with open(path + ".choice", encoding="utf-8") as text:
        check(json.load(text)["accuracy"] == "standard", "get asks for its class")


def test_what_a_job_found(box):
    """A job with another pin finds another kernel than the one that is served: --job gets it."""
    need(*PROGRAMS)
    jobs = []
    for pin in ("algorithm=collapsed", "algorithm=direct"):
        code, out, err = box.run("wpkctl", "tune", box.write("job.json", small_job()), "--data", box.data, "--pin", pin,
                                 "--candidates", "1")
        check(code == 0, "it is tuned", out, err)
        jobs.append(json.loads(box.ctl("jobs", "--data", box.data, "--json"))["jobs"][0]["id"])
    found = {}
    for job in jobs:
        box.ctl("get", "small", "--own", "--schedule", "--job", job, "-o", box.path(job), "--data", box.data)
        with open(box.path(job), encoding="utf-8") as file:
            found[job] = file.read()
    check(found[jobs[0]] != found[jobs[1]], "each job's own", found)
    hint = [line for line in out.splitlines() if " get small" in line]
    check("--job %s " % jobs[1] in hint[0], "tune's next step is of what it found", out)
    code, out, err = box.run("wpkctl", "tune", box.write("job.json", small_job()), "--data", box.data, "--candidates", "1")
    check(code == 0 and "--job" not in out, "what is served is the next step without pins", out, err)
    code, _, err = box.run("wpkctl", "get", "smal", "--job", jobs[0], "--data", box.data)
    check(code == 4 and "no kernel of an operator 'smal'" in err, "no such operator", err)


def test_signature(box):
    TUNED.place(box)
    _, path, _ = get(box)
    key = box.ctl("get", "--public-key", "--data", box.data).strip().encode()
    check(open_choice(path + ".choice", public_key=key)[0] == 0, "it is opened by its key")
    check(open_choice(path + ".choice", public_key=b"0" * 64)[0] != 0, "by no other")
    with open(path + ".choice", "r+b") as file:
        content = file.read()
        file.seek(content.index(b'"threads":1') + 10)
        file.write(b"2")
    check(open_choice(path + ".choice", public_key=key)[0] != 0, "nor once it was changed")


if __name__ == "__main__":
    main(globals())

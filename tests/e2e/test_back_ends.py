# SPDX-License-Identifier: Apache-2.0
"""Two back ends compete in one search, each under a name of its own; a machine without a compiler
offers one, and says why."""
import json
import os
import shutil
import sqlite3
import subprocess

import gpu
from lib import BIN, Service, Skip, check, check_tune_json, main, need, small_job

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
RUN_KERNEL = os.environ.get("WPK_RUN_KERNEL", "")
OP = {"name": "odd", "op": "Y[i] = sqrt(abs(X[i])) / (1 + X[i] * X[i])",
      "tensors": {"X": "f32[256]", "Y": "f32[256]"}}


def job_of(by, candidates):
    search = {"strategy": "ga", "seed": 1}
    if by:
        search["pin"] = {"by": by}
    return small_job(ops=[OP], search=search, budget={"candidates": candidates, "seconds": 120})


def tune(box, by, candidates):
    job = box.write("job.json", job_of(by, candidates))
    return check_tune_json(box.ctl("tune", job, "--data", box.data, "--json"))["kernels"][0]


def trials(box):
    """{(provider, candidate): (outcome, shared object)} of what is no plain kernel."""
    with sqlite3.connect(os.path.join(box.data, "history.db")) as history:
        rows = history.execute("SELECT provider, candidate, outcome, artifact_sha256 FROM trial"
                               " WHERE provider <> 'plain' AND candidate <> ''").fetchall()
    return {row[:2]: row[2:] for row in rows}


def compiler():
    for name, option in (("gcc", "-dumpfullversion"), ("clang", "-dumpversion")):
        if shutil.which(name):
            return name + "-" + subprocess.check_output([name, option], text=True).strip()
    raise Skip("no compiler here")


def test_both_compete(box):
    need(*PROGRAMS)
    provider = "c/" + compiler()
    kernel = tune(box, "c", 2)
    check(kernel["provider"] == provider, "what c has built is served under its name", kernel)
    check({name for name, _ in trials(box)} == {provider}, "nothing else was tried", trials(box))
    path = box.path("x.so")
    box.ctl("get", "odd", "-o", path, "--data", box.data)
    with open(path, "rb") as file:
        built = file.read()
    check(b'"codegen":"%s"' % provider[2:].encode() in built.replace(b" ", b"") and b"\\nby c\\n" in built,
          "the kernel says what compiled it")
    with open(path + ".manifest", encoding="utf-8") as file:
        check(json.load(file)["provider"] == provider, "and so does what wpkd signed")
    box.ctl("get", "odd", "--halide", "-o", box.path("x.cc"), "--data", box.data)
    with open(box.path("x.cc"), encoding="utf-8") as file:
        first = file.readline()
    check(first.startswith("// Halide's") and "'c' compiled" in first, "Halide's text says so", first)
    if os.path.exists(RUN_KERNEL):
        done = subprocess.run([RUN_KERNEL, path + ".choice"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=box.env, timeout=120, check=False)
        check(done.returncode == 0 and "entry 0 of the choice" in done.stdout, "it runs", done.stdout)

    tune(box, "halide-cpu+c", 4)
    tried = trials(box)
    for name, candidate in tried:
        check(name == (provider if candidate.endswith(" by=c") else "halide-cpu"), "whose trial it is",
              name, candidate)
    check(all(outcome == "ok" for outcome, _ in tried.values()), "all work", tried)
    pairs = [(tried["halide-cpu", candidate][1], found[1]) for candidate, found in
             [(key[1][:-len(" by=c")], found) for key, found in tried.items() if key[0] == provider]
             if ("halide-cpu", candidate) in tried]
    check(pairs and all(a != b for a, b in pairs), "the same nest is built by each", tried)

    # Without a pin: as before there were two, from the same history.
    check(tune(box, "", 3)["provider"] in (provider, "halide-cpu"), "the faster of both stays")
    later = trials(box)
    check({key for key in later if key[0] == provider} == {key for key in tried if key[0] == provider},
          "no more by c", later)
    check(len(later) < len(tried) + 3, "what halide-cpu has built is known", later)


def test_a_softmax_is_for_both(box):
    """c keeps the exponentials in the output: a search has both back ends without a pin."""
    need(*PROGRAMS)
    provider = "c/" + compiler()
    softmax = {"name": "soft", "op": {"type": "softmax", "shape": [4, 4096], "axis": -1, "dtype": "f32"}}
    job = box.write("job.json", small_job(ops=[softmax], search={"strategy": "ga", "seed": 1},
                                          budget={"candidates": 6, "seconds": 120}))
    check_tune_json(box.ctl("tune", job, "--data", box.data, "--json"))
    tried = trials(box)
    check({name for name, _ in tried} == {provider, "halide-cpu"}, "both are tried", tried)
    check(all(outcome == "ok" for outcome, _ in tried.values()), "all work", tried)
    with sqlite3.connect(os.path.join(box.data, "history.db")) as history:
        shared = [row[0] for row in history.execute(
            "SELECT candidate FROM trial WHERE candidate LIKE '%t2.at=t4.block%by=c'")]
    check(shared, "some keep them there", tried)


def test_a_machine_without_a_compiler(box):
    need(*PROGRAMS)
    os.mkdir(box.path("tools"))
    os.symlink(shutil.which("ld"), box.path("tools/ld"))
    box.env["PATH"] = box.path("tools")
    why = "no gcc or clang in PATH"
    service = Service(box)
    worker = service.add_worker()
    both = box.ctl("submit", box.write("job.json", job_of("halide-cpu+c", 2)), "--server", service.url).strip()
    alone = box.ctl("submit", box.write("job.json", job_of("c", 2)), "--server", service.url).strip()
    box.ctl("watch", both, "--server", service.url, "-q")
    found = service.ask("GET", "/v1/workers")[1]["workers"][0]
    check(found["providers"][0] == "halide-cpu" and not [p for p in found["providers"] if p[:1] == "c"],
          "what it offers", found)
    check(found["missing"] == ["c: " + why], "why not more", found)
    check("c: " + why in box.ctl("workers", "--server", service.url, "-o", "wide"), "wpkctl says so")
    check(why in worker.text(worker.err), "and the worker's log", worker.text(worker.err)[-2000:])
    check({name for name, _ in trials(box)} == {"halide-cpu"}, "the search is of what there is", trials(box))
    waits = service.ask("GET", "/v1/jobs/" + alone)[1]["ops"][0]
    check(waits["blocked"] == "no worker offers the back end c", "who takes no other waits", waits)
    status, answer, _ = service.ask("POST", "/v1/jobs", job_of("halide-cpu+d", 2))
    check(status == 422 and "no list of back ends" in answer["detail"], "another name", status, answer)
    service.stop()

    # By hand: the candidate is not tried, and the machine is not blamed.
    op = box.write("op", "input X f32[64]\noutput Y f32[64]\nY[i] = X[i] * 2\n")
    _, out, err = box.run("wpk-evaluate", "--op", op, "--provider", "c", "--construct", 1)
    record = json.loads(out.splitlines()[0])["record"]
    check(record["outcome"] == "unsupported" and why in record["log"], "what it needs is said", record, err)


def test_a_machine_without_halide(box):
    """wpk-builder loads Halide when a back end asks for it: the others need none."""
    need(*PROGRAMS, "wpkctl")
    os.mkdir(box.path("bin"))
    for program in PROGRAMS + ("wpkctl",):
        shutil.copy(os.path.join(BIN, program), box.path("bin"))

    def tune_alone(by, *options):
        job = job_of(by, 2) if not options else gpu.job_of([gpu.PRODUCT], 2) | {"search": {"pin": {"by": by}}}
        return box.run(box.path("bin/wpkctl"), "tune", box.write("job.json", job), "--data", box.data, "--json", *options)

    for by, options in (("halide-cpu", ()), ("halide-cuda", gpu.EMULATED)):
        code, _, err = tune_alone(by, *options)
        check(code == 2 and by + ": no Halide: there is no libwpk-halide.so in " in err, "its lack is said at once", code, err)
    code, out, err = tune_alone("c")
    check(code == 0 and check_tune_json(out)["kernels"][0]["provider"] == "c/" + compiler(), "c compiles", err)
    gpu.need_compiler(box)
    code, out, err = tune_alone("cuda", *gpu.EMULATED)
    check(code == 0 and check_tune_json(out)["kernels"][0]["provider"] == "cuda", "cuda compiles", out, err)


if __name__ == "__main__":
    main(globals())

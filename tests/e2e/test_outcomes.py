# SPDX-License-Identifier: Apache-2.0
"""Failures of candidates are recorded and bounded; if none of ours works the vendor's is the answer; if
nothing works the reason is said. (Each way to fail: worker/engine/engine_test.c.)"""
import json
import os
import re
import shutil
import sqlite3
import subprocess

from lib import BIN, Process, Service, Skip, check, check_tune_json, main, need, small_job

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
LOG_MAX = 1024  # schema/record.h
# An operator that no vendor has.
ODD_OP = {"name": "odd", "op": "Y[i] = sqrt(abs(X[i])) / (1 + exp(X[i] * X[i]))",
          "tensors": {"X": "f32[64]", "Y": "f32[64]"}}


def break_linker(box, script):
    """No candidate is linked any more; what is said of it is up to the test."""
    os.mkdir(box.path("tools"))
    path = box.write("tools/ld", "#!/bin/sh\n%s\nexit 1\n" % script)
    os.chmod(path, 0o755)
    box.env["PATH"] = box.path("tools") + ":" + box.env["PATH"]


def write_job(box, **changes):
    return box.write("job.json", small_job(budget={"candidates": 4, "seconds": 120}, **changes))


def trials(box):
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        return db.execute("SELECT provider, outcome, log FROM trial WHERE outcome != ''").fetchall()


def test_none_of_ours_works(box):
    need(*PROGRAMS)
    # More than anybody wants to read, and not even text.
    break_linker(box, r"printf '\0\377' >&2; head -c 300000 /dev/urandom >&2")
    job = write_job(box)
    code, out, err = box.run("wpkctl", "tune", job, "--data", box.data, "--json")
    check(code == 1 and "no implementation works: 4 of 4" in err, "the job has failed", code, err)
    kernel = check_tune_json(out)["kernels"][0]
    vendors = [provider for provider, outcome, _ in trials(box) if outcome == "ok"]
    if not vendors:
        raise Skip("there is no vendor here")
    check(kernel["provider"] == vendors[0] and kernel["artifact"] is None, "the vendor's", kernel)
    check(kernel["candidates"] == {"measured": 0, "failed": 4} and kernel["speedup"] == 1, "why", kernel)
    failed = [log for provider, outcome, log in trials(box) if provider not in vendors + ["plain"]]
    check(len(failed) == 4, "each is recorded", trials(box))
    listed = box.ctl("jobs", "--data", box.data)
    check(re.search(r"\s4/4\s", listed), "all count as tried", listed)
    check(all(100 < len(log.encode()) < LOG_MAX for log in failed), "with a bounded log", failed)
    code, table, err = box.run("wpkctl", "tune", job, "--data", box.data)
    check(code == 1 and "no implementation works" in err, "and fails again from history", code, err)
    check("the vendor's: " + vendors[0] in table and "none worked" in table, "it is said", table)


def test_nothing_works(box):
    need(*PROGRAMS)
    break_linker(box, r"printf 'ld: \033[31mno way\033[0m\n' >&2")
    job = write_job(box, ops=[ODD_OP])
    code, out, err = box.run("wpkctl", "tune", job, "--data", box.data)
    check(code == 1 and "no implementation works" in err and "build_error" in err, "failed", code, err)
    check("no way" in err and "\033" not in err, "with the last one's words, made harmless", err)
    check("next:" not in out, "nothing is proposed", out)


def test_nothing_to_compare_with(box):
    """Of an operator without finite results nothing is run: the runner says so of each candidate."""
    need(*PROGRAMS)
    op = {"name": "infinite", "op": "Y[i] = log(X[i] * X[i] * 0 - 1)", "tensors": {"X": "f32[8]", "Y": "f32[8]"}}
    service = Service(box)
    worker = service.add_worker()
    identifier = box.ctl("submit", write_job(box, ops=[op]), "--server", service.url).strip()
    code, _, err = box.run("wpkctl", "watch", identifier, "--server", service.url, "-q")
    service.stop()
    recorded = trials(box)
    check({outcome for _, outcome, _ in recorded} == {"unsupported"}, "outcomes", recorded, code, err)
    compared = [log for _, _, log in recorded if log.startswith("no answers to compare with")]
    refused = re.findall(r"run_refused work=\S+ outcome=unsupported reason=\"no answers to compare with",
                         worker.text(worker.err))
    # A candidate with the schedule of another is answered from memory.
    check(0 < len(refused) <= len(compared), "and the log", refused, recorded)


def test_the_plain_kernel_alone_works(box):
    """Candidates built for this machine cannot be linked, and no vendor has the operator."""
    need(*PROGRAMS)
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if "avx2" not in file.read():
            raise Skip("the plain kernel is built as all others here")
    linker, objdump = shutil.which("ld"), shutil.which("objdump")
    if not objdump:
        raise Skip("no objdump here")
    break_linker(box, """for file; do case $file in
*.o) %s -d "$file" | grep -q '%%[yz]mm' && { echo 'no wide vectors' >&2; exit 1; } ;;
esac; done
exec %s "$@\"""" % (objdump, linker))
    job = write_job(box, ops=[ODD_OP])
    code, out, err = box.run("wpkctl", "tune", job, "--data", box.data, "--json")
    found = check_tune_json(out)["kernels"]
    check(len(found) == 1, "something is served", code, err)
    kernel = found[0]
    check(kernel["provider"] == "plain", "it is served", code, kernel, err)
    check(kernel["candidates"] == {"measured": 0, "failed": 4}, "all others failed", kernel)
    code, table, err = box.run("wpkctl", "tune", job, "--data", box.data)
    check("plain" in table, "it is said", code, table, err)
    box.ctl("get", "odd", "-o", box.path("odd.so"), "--data", box.data)
    with open(box.path("odd.so.choice"), encoding="utf-8") as file:
        check([entry["kind"] for entry in json.load(file)["chain"]] == ["plain"], "the choice has it")


def test_a_builder_that_does_not_start(box):
    """An installation that is broken is said to be, and no candidate is blamed."""
    need(*PROGRAMS)
    folder = box.path("bin")
    os.mkdir(folder)
    for name in ("wpkctl", "wpkd", "wpk-worker", "wpk-runner"):
        shutil.copy(os.path.join(BIN, name), folder)
    os.symlink("/bin/false", os.path.join(folder, "wpk-builder"))
    os.symlink("/dev/null", os.path.join(folder, "libwpk-halide.so"))
    code, _, err = Process(box, [os.path.join(folder, "wpkctl"), "tune", write_job(box), "--data",
                                 box.data]).wait(60)
    check(code == 1 and "wpk-worker ended: wpk-builder does not start" in err, "it is said", code, err)
    check(not [t for t in trials(box) if t[1] != "ok"], "nobody is blamed", trials(box))


def test_a_machine_without_a_linker(box):
    """Failures of the machine are not recorded as outcomes of a candidate."""
    need(*PROGRAMS)
    os.mkdir(box.path("empty"))
    box.env["PATH"] = box.path("empty")
    code, _, err = box.run("wpkctl", "tune", write_job(box), "--data", box.data)
    check(code == 1 and "wpk-worker ended: wpk-builder" in err and "no linker" in err, "it is said",
          code, err)
    check(not [t for t in trials(box) if t[1] != "ok"], "nobody is blamed", trials(box))


def registers(path):
    """The vector registers that a shared object uses: x, y, z."""
    done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True)
    return set(re.findall(r"%([xyz])mm", done.stdout))


def test_older_machines(box):
    """A worker that claims fewer instructions than its machine has gets spaces and code for those alone."""
    need(*PROGRAMS, "wpk-evaluate")
    service = Service(box)
    service.add_worker("--isa-max", "sse41")
    identifier = box.ctl("submit", write_job(box), "--server", service.url).strip()
    box.ctl("watch", identifier, "--server", service.url, "-q")
    kernel = service.ask("GET", "/v1/jobs/" + identifier)[1]["kernels"][0]
    check("/sse41" in kernel["device"], "the device", kernel["device"])
    check(kernel["own"] and kernel["own"]["artifact"], "ours works", kernel)
    content = service.ask("GET", "/v1/artifacts/" + kernel["own"]["artifact"])[1]
    found = registers(box.write("sse41.so", content))
    check(found == {"x"}, "registers of SSE", found)
    service.stop()
    box.write("op.txt", "input X f32[16,48]\nconstant W f32[48,32]\noutput Y f32[16,32]\n"
                        "Y[i,j] = sum(k:48) X[i,k] * W[k,j]\n")
    out = box.run("wpk-evaluate", "--op", box.path("op.txt"), "--isa", "avx2", "--construct", 2,
                  "--quiet", "--time-ms", 1, "--keep", "--work", box.path("work"))[1]
    records = [json.loads(line)["record"] for line in out.splitlines()]
    check([r["outcome"] for r in records] == ["ok", "ok"], "verified", records)
    for record in records:
        found = registers(record["artifact"]["path"])
        check("y" in found and "z" not in found, "registers of AVX2", found)


if __name__ == "__main__":
    main(globals())

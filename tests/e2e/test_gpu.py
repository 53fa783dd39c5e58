# SPDX-License-Identifier: Apache-2.0
"""A GPU that is emulated: kernels are built by NVRTC, verified on the emulator, ranked by its model, recorded, served
and run, and everything says that nothing was timed."""
import json
import os
import re
import signal
import sqlite3
import subprocess

from lib import Service, Skip, check, check_tune_json, descendants, main, need, small_job, wait_for

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
EXAMPLE = os.environ.get("WPK_RUN_KERNEL", "") + "_cuda"
EMULATED = ("--gpu", "emulated")
CLASS = "cuda/emulated/sm_90/132"
PRODUCT = {"name": "mm", "op": "Y[i,j] = relu((sum(k) A[i,k] * B[k,j]) + C[j])",
           "tensors": {"A": "f32[33,40]", "B": "f32[40,24]", "C": "f32[24]", "Y": "f32[33,24]"},
           "constants": ["B", "C"]}
SOFTMAX = {"name": "soft", "op": "S[i,j] = exp(X[i,j]-M[i])/D[i] where M[i]=max(k) X[i,k]; D[i]=sum(k) exp(X[i,k]-M[i])",
           "tensors": {"X": "f32[9,128]", "S": "f32[9,128]"}}


def need_compiler(box):
    need(*PROGRAMS)
    code, said, _ = box.run("wpk-worker", *EMULATED, "--check")
    if code != 0:
        raise Skip(said.split("\n")[0])
    check(CLASS in said and "not timed" in said, "--check names the device", said)


def job_of(ops, candidates=6):
    return small_job(ops=ops, target={"kind": "cuda"}, budget={"candidates": candidates, "seconds": 120})


def test_tune_get_and_run(box):
    need_compiler(box)
    job = box.write("job.json", job_of([PRODUCT, SOFTMAX]))
    tuned = check_tune_json(box.ctl("tune", job, *EMULATED, "--data", box.data, "--json"))["kernels"]
    check([k["provider"] for k in tuned] == ["cuda", "cuda"], "our back end built both", tuned)
    check(not any(k["timed"] for k in tuned), "and says that nothing was timed", tuned)
    check("not timed" in box.ctl("kernels", "--data", box.data), "as the list of kernels does")
    check("Nothing was timed" in box.ctl("why", "mm", "--data", box.data), "and why")
    for name in ("mm", "soft"):
        path = box.path(name + ".so")
        box.ctl("get", name, "--data", box.data, "-o", path)
        with open(path + ".choice", encoding="utf-8") as file:
            chain = json.load(file)["chain"]
        check([entry["kind"] for entry in chain] == ["kernel", "plain"], "a plain kernel stands behind it", chain)
        said = box.ctl("run", path + ".choice", "--random", "--check")
        check("passed" in said, "the kernel runs", said)
        if os.path.exists(EXAMPLE):
            said = subprocess.run([EXAMPLE, path + ".choice", "libwpk-cuda-emulated.so"], capture_output=True, text=True,
                                  check=False)
            check(said.returncode == 0 and "the same bits" in said.stdout, "and is launched", said.stdout, said.stderr)
    box.ctl("get", "mm", "--data", box.data, "--cuda", "-o", box.path("mm.cu"))
    with open(box.path("mm.cu"), encoding="utf-8") as file:
        check("__global__" in file.read(), "it is CUDA C")
    check(".target sm_90" in box.ctl("get", "mm", "--data", box.data, "--ptx", "-o", "-"), "and PTX")
    again = check_tune_json(box.ctl("tune", job, *EMULATED, "--data", box.data, "--json"))["kernels"]
    check(all(k["from_history"] for k in again), "history answers the second time", again)


def lookup(service, device):
    body = {"device": device, "op": PRODUCT["op"], "tensors": PRODUCT["tensors"], "constants": PRODUCT["constants"]}
    status, answer, _ = service.ask("POST", "/v1/kernels:lookup", body)
    check(status == 200, "a lookup is answered", status, answer)
    return answer


def state_of(service, identifier):
    return service.ask("GET", "/v1/jobs/" + identifier)[1]


def test_service(box):
    """A job for GPUs waits where CPUs work alone; what an emulated GPU found is no other's."""
    need_compiler(box)
    service = Service(box)
    service.add_worker("--name", "c")
    status, answer, _ = service.ask("POST", "/v1/jobs", job_of([PRODUCT]))
    check(status in (200, 201, 202), "the job is taken", status, answer)
    job = answer["id"]
    wait_for("it says why it waits", lambda: state_of(service, job)["ops"][0]["blocked"] == "no worker with kind cuda")
    service.add_worker("--name", "g", device=EMULATED)
    wait_for("it is done", lambda: state_of(service, job)["state"] == "done", 120)
    found = lookup(service, CLASS)
    check(found["match"] == "exact" and found["timed"] is False, "the emulated GPU has it", found)
    for other in ("cuda/NVIDIA H100/sm_90/132", "cuda/emulated/sm_80/132", "cpu/some/avx2"):
        check(lookup(service, other)["match"] == "none", "and no other device", other, lookup(service, other))
    workers = {w["name"]: w for w in service.ask("GET", "/v1/workers")[1]["workers"]}
    check(workers["g"]["device"] == CLASS, "the worker's device is shown", workers["g"])
    service.stop()


def test_builders_and_runners(box):
    """One machine compiles and has no GPU, the other has one and no compiler."""
    need_compiler(box)
    service = Service(box)
    service.add_worker("--name", "b", "--build-only", device=("--arch", "sm_90"))
    service.add_worker("--name", "r", "--run-only", device=EMULATED)
    job = service.ask("POST", "/v1/jobs", job_of([PRODUCT], 4))[1]["id"]
    wait_for("it is done", lambda: state_of(service, job)["state"] in ("done", "failed"), 120)
    check(state_of(service, job)["state"] == "done", "both together do it", state_of(service, job))
    service.stop()


def recorded(box):
    with sqlite3.connect(os.path.join(box.data, "history.db")) as history:
        return sorted(history.execute("SELECT candidate, outcome FROM trial WHERE provider = 'cuda'").fetchall())


def test_kills(box):
    """kill -9 of each process once: the same trials are recorded as without."""
    need_compiler(box)
    box.ctl("tune", box.write("job.json", job_of([SOFTMAX], 8)), *EMULATED, "--data", box.data, "-q")
    wanted = recorded(box)
    box.data = box.path("killed")
    os.mkdir(box.data)
    service = Service(box)
    worker = service.add_worker("--name", "g", device=EMULATED)
    job = service.ask("POST", "/v1/jobs", job_of([SOFTMAX], 8))[1]["id"]
    for number, name in enumerate(("wpk-runner", "wpk-builder", "wpk-worker", "wpkd")):
        wait_for("some trials are there", lambda n=number: state_of(service, job)["ops"][0]["candidates"]["measured"] > n, 60)
        if name == "wpkd":
            os.kill(service.wpkd.popen.pid, signal.SIGKILL)
            service.wpkd.popen.wait()
            service = Service(box)
            break
        pids = [pid for pid, (_, found) in descendants(worker.popen.pid).items() if found == name]
        for pid in pids[:1] if name != "wpk-worker" else [worker.popen.pid]:
            os.kill(pid, signal.SIGKILL)
        if name == "wpk-worker":
            worker.popen.wait()
            worker = service.add_worker("--name", "g", device=EMULATED)
    wait_for("it is done", lambda: state_of(service, job)["state"] == "done", 120)
    check(recorded(box) == wanted, "the same trials are recorded", recorded(box), wanted)
    service.stop()


def test_bad_inputs(box):
    need(*PROGRAMS)
    job = box.write("job.json", dict(job_of([PRODUCT]), target={"kind": "cuda", "threads": 2}))
    code, _, said = box.run("wpkctl", "tune", job, *EMULATED, "--data", box.data)
    check(code == 2 and "job.json:" in said and "threads" in said, "a GPU's kernel has one thread", said)
    for options, words in ((("--gpu", "7 8", "--check"), "not a value"),
                           (("--cpu", *EMULATED, "--coordinator", "ipc:///x"), "two workers"),
                           (("--arch", "sm_90", "--coordinator", "ipc:///x"), "--build-only"),
                           (("--cpu", "--check"), "--check is about a GPU")):
        code, _, said = box.run("wpk-worker", *options)
        check(code == 2 and words in said, "refused with words", options, said)
    if not os.path.exists("/dev/nvidia0"):
        code, said, _ = box.run("wpk-worker", "--gpu", "0", "--check")
        check(code == 1 and re.search("device +none: .*--gpu emulated", said), "there is none, and what to do", said)


if __name__ == "__main__":
    main(globals())

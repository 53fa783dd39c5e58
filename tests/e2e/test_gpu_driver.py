# SPDX-License-Identifier: Apache-2.0
"""A GPU's driver that fails on order, is lost, taken or throttled, and vendors' libraries beside it."""
import json
import os
import re
import sqlite3
import subprocess

from gpu import (CLASS, DRIVER_CALLS, EMULATED, EXAMPLE, PRODUCT, SOFTMAX, job_of, lookup, need_compiler, need_vendors, order,
                 recorded, state_of)
from lib import BIN, CONVOLUTION, Service, Skip, check, check_tune_json, main, wait_for


def write_product(box):
    """The file of a product for wpk-evaluate, which tries candidates alone."""
    need_compiler(box)
    if not os.path.exists(os.path.join(BIN, "wpk-evaluate")):
        raise Skip("wpk-evaluate is not built")
    return box.write("mm.txt", "input A f32[33,40]\nconstant B f32[40,24]\noutput Y f32[33,24]\n"
                               "Y[i,j] = sum.f32(k:40) A[i,k] * B[k,j]\n")


# order: (outcome of one candidate, words of its log)
FAILURES = {
    "cuModuleLoadData:3=218": ("unsupported", "loading the kernel: INVALID_PTX"),
    "cuMemAlloc_v2:9=2": ("out_of_memory", "OUT_OF_MEMORY"),
    "cuMemcpyHtoDAsync_v2:9=1": ("run_crash", "copying"),
    "cuLaunchKernel:9=719": ("run_crash", "LAUNCH_FAILED (CUDA error 719)"),
    "cuGraphLaunch:3=719": ("run_crash", "launching the kernel: LAUNCH_FAILED (CUDA error 719)"),
    "cuGraphInstantiateWithFlags:2=2": ("out_of_memory", "a graph of launches: OUT_OF_MEMORY"),
    "cuLaunchKernel:9=701": ("unsupported", "LAUNCH_OUT_OF_RESOURCES"),
    "cuLaunchKernel:9=lost": ("run_crash", "UNKNOWN (CUDA error 999)"),
    "cuStreamSynchronize:9=700": ("run_crash", "ILLEGAL_ADDRESS"),
    "cuStreamSynchronize:9=lost": ("run_crash", "UNKNOWN (CUDA error 999)"),
    "cuDevicePrimaryCtxRetain:3=46": ("run_crash", "(CUDA error 46): another process has the GPU for itself"),
}


def evaluate_on_order(box, op, orders):
    """(exit code, records, standard error) of three candidates."""
    order(box, orders)
    code, out, err = box.run("wpk-evaluate", "--op", op, *EMULATED, "--construct", "3")
    return code, [json.loads(line)["record"] for line in out.splitlines()], err


def test_failures_on_order(box):
    """A call of the driver fails: one candidate has the outcome, and the others are as without."""
    op = write_product(box)
    for orders, (outcome, words) in FAILURES.items():
        code, records, err = evaluate_on_order(box, op, orders)
        for later in (4, 5, 6):
            # It is a candidate's call, or, as it happens, that of a runner's next child, which opens again what it could not.
            if code == 0 and "CtxRetain" in orders:
                code, records, err = evaluate_on_order(box, op, orders.replace(":3=", ":%d=" % later))
        check(code == 1 and len(records) == 3, "all candidates have records", orders, code, err)
        failed = [r for r in records if r["outcome"] != "ok"]
        check(len(failed) == 1 and failed[0]["outcome"] == outcome, "one has failed", orders, failed)
        check(words in failed[0].get("log", ""), "and says why", orders, failed)


def test_a_gpu_that_is_taken(box):
    """A worker has several processes on its GPU: other compute modes than the default are refused, with the remedy."""
    need_compiler(box)
    for mode, name in (("3", "exclusive-process"), ("2", "prohibited")):
        box.env["WPK_EMULATED_COMPUTE_MODE"] = mode
        code, said, _ = box.run("wpk-worker", *EMULATED, "--check")
        check(code == 1 and f"compute mode is {name}: " in said and "--compute-mode=DEFAULT" in said, "--check", said)
        code, _, said = box.run("wpk-worker", *EMULATED, "--coordinator", "ipc:///tmp/nowhere")
        check(code == 1 and f"compute mode is {name}: " in said, "a worker does not start", code, said)
    del box.env["WPK_EMULATED_COMPUTE_MODE"]
    code, said, _ = box.run("wpk-worker", *EMULATED, "--check")
    check(code == 0 and "compute mode" not in said, "by default it does", said)


def test_throttled_samples(box):
    """Samples of a GPU that is too hot are taken again; where it stays hot, they count, and the log says so."""
    op = write_product(box)
    for reasons, log in (("1-2=64", ""), ("1-99=64", "the GPU was throttled in "), ("1-99=5", "")):
        box.env["WPK_EMULATED_THROTTLED"] = reasons
        code, out, err = box.run("wpk-evaluate", "--op", op, *EMULATED, "--construct", "1")
        record = json.loads(out.splitlines()[0])["record"]
        check(code == 0 and record["outcome"] == "ok", "it is timed", reasons, code, err)
        said = record.get("log", "")  # it may say that the machine was busy, too
        check(log in said if log else "throttled" not in said, "the log says so", reasons, record)
    code, said, _ = box.run("wpk-worker", *EMULATED, "--check")
    check(code == 0 and re.search("clocks +not throttled, 40 C, power limit 700 W", said), "idle at a limit is not hot", said)
    box.env["WPK_EMULATED_THROTTLED"] = "1-1=96"
    _, said, _ = box.run("wpk-worker", *EMULATED, "--check")
    check(re.search("throttled: SwThermalSlowdown HwThermalSlowdown,", said), "and why", said)
    order(box, "nvmlInit_v2:1=9", shared=False)
    code, said, _ = box.run("wpk-worker", *EMULATED, "--check")
    check(code == 0 and "not known, so samples of a throttled GPU count" in said, "or that it is not known", said)


# operator: (inputs, output, expression), and whether cuBLASLt computes it in one call
PRODUCTS = (
    (("A f32[33,40]", "B f32[40,24]"), "Y f32[33,24]", "Y[i,j] = sum.f32(k:40) A[i,k] * B[k,j]", True),
    (("A f32[40,33]", "B f32[40,24]"), "Y f32[33,24]", "Y[i,j] = sum.f32(k:40) A[k,i] * B[k,j]", True),
    (("A f32[40,33]", "B f32[24,40]"), "Y f32[24,33]", "Y[j,i] = sum.f32(k:40) A[k,i] * B[j,k]", True),
    (("A f32[3,33,40]", "B f32[3,40,24]"), "Y f32[3,33,24]", "Y[b,i,j] = sum.f32(k:40) A[b,i,k] * B[b,k,j]", True),
    (("A f32[9,2,3,8]", "B f32[2,3,8,7]"), "Y f32[2,3,9,7]", "Y[b,c,i,j] = sum.f32(k:8) A[i,b,c,k] * B[b,c,k,j]", True),
    (("A f32[3,9,2,8]", "B f32[2,3,8,7]"), "Y f32[2,3,9,7]", "Y[b,c,i,j] = sum.f32(k:8) A[c,i,b,k] * B[b,c,k,j]", False),
    (("A f32[33,40]", "B f32[40]"), "Y f32[33]", "Y[i] = sum.f32(k:40) A[i,k] * B[k]", True),
    (("A f32[33,40]", "B f32[40,24]", "C f32[24]"), "Y f32[33,24]",
     "Y[i,j] = max((sum.f32(k:40) A[i,k] * B[k,j]) + C[j], 0)", True),
    (("A f32[33,40]", "B f32[40,24]", "C f32[33]"), "Y f32[33,24]",
     "Y[i,j] = (sum.f32(k:40) A[i,k] * B[k,j]) + C[i]", False),
    (("A f32[33,40]", "B f32[40,24]"), "Y f32[33,24]", "Y[i,j] = tanh(sum.f32(k:40) A[i,k] * B[k,j])", False),
)


CONVOLUTIONS = (
    (("X f32[2,6,9,8]", "W f32[10,6,3,3]", "B f32[10]"), "Y f32[2,10,9,8]",
     "Y[n,k,p,q] = max((sum.f32(c:6,r:3,s:3) X[n,c,p+r-1,q+s-1] * W[k,c,r,s]) + B[k], 0)", "3 of 6"),
    (("X f32[2,6,9,8]", "W f32[10,6,3,3]"), "Y f32[2,10,4,3]",
     "Y[n,k,p,q] = sum.f32(c:6,r:3,s:3) X[n,c,2*p+r,2*q+2*s-1] * W[k,c,r,s]", "3 of 3"),
    (("X f32[2,9,8,6]", "W f32[10,3,3,6]"), "Y f32[2,9,8,10]",
     "Y[n,p,q,k] = sum.f32(c:6,r:3,s:3) X[n,p+r-1,q+s-1,c] * W[k,r,s,c]", "3 of 3"),
    (("X f32[2,6,30]", "W f32[10,6,5]", "B f32[10]"), "Y f32[2,10,30]",
     "Y[n,k,q] = (sum.f32(c:6,s:5) X[n,c,q+s-2] * W[k,c,s]) + B[k]", "3 of 6"),
    (("X f32[2,6,9,8]", "W f32[6,3,3]"), "Y f32[2,6,9,8]",
     "Y[n,k,p,q] = max(sum.f32(r:3,s:3) X[n,k,p+r-1,q+s-1] * W[k,r,s], 0)", "3 of 6"),
    (("X f32[2,6,9,8]", "W f32[10,6,3,3]"), "Y f32[2,10,9,8]",
     "Y[n,k,p,q] = tanh(sum.f32(c:6,r:3,s:3) X[n,c,p+r-1,q+s-1] * W[k,c,r,s])", None),
)


def vendor_record(box, vendor, op, **env):
    inputs, output, expression = op
    text = "".join("input %s\n" % name for name in inputs) + "output %s\n%s\n" % (output, expression)
    box.env.update(env)
    code, out, err = box.run("wpk-evaluate", "--op", box.write("op.txt", text), *EMULATED, "--provider", vendor)
    for name in env:
        del box.env[name]
    check(out, "there is a record", expression, code, err)
    return json.loads(out.splitlines()[0])["record"]


def test_cudnn(box):
    """cuDNN's convolutions compete by the fastest of their plans, with bias and relu in one graph or apart; engines that
    compute in TF32 are left out, or found out."""
    need_compiler(box)
    box.env["LD_LIBRARY_PATH"] = need_vendors()
    for *op, algorithm in CONVOLUTIONS:
        record = vendor_record(box, "cudnn", op)
        check(record["outcome"] == ("ok" if algorithm else "unsupported"), "it is right, or refused", op, record)
        check(algorithm is None or record["detail"] == "algorithm %s, cudnn 9.19.0" % algorithm, "the fastest", record)
    record = vendor_record(box, "cudnn", CONVOLUTIONS[0][:3], WPK_FAKE_CUDNN="apart")
    check(record["outcome"] == "ok" and "algorithm 3 of 3" in record["detail"], "in two plans", record)
    record = vendor_record(box, "cudnn", CONVOLUTIONS[0][:3], WPK_FAKE_CUDNN="knobs")
    check(record["outcome"] == "ok" and "algorithm 5 of " in record["detail"], "an engine with a knob", record)
    record = vendor_record(box, "cudnn", CONVOLUTIONS[0][:3], WPK_FAKE_CUDNN="liar")
    check(record["outcome"] == "wrong_result", "f32 means f32", record)
    job = box.write("job.json", job_of([CONVOLUTION], 2))
    tuned = check_tune_json(box.ctl("tune", job, *EMULATED, "--data", box.data, "--json"))["kernels"]
    check(tuned[0]["baseline"]["provider"] == "cudnn", "it competes", tuned)
    path = box.path("small.so")
    box.ctl("get", "small", "--data", box.data, "-o", path)
    os.remove(path)
    said = box.ctl("run", path + ".choice", "--random", "--check")
    check("of the choice: vendor" in said and "passed" in said, "a choice runs it", said)


def test_cublaslt(box):
    """NVIDIA's products compete where their library is, by the fastest of its algorithms that run; results in TF32 are
    wrong; a choice names them."""
    need_compiler(box)
    fake = need_vendors()
    job = box.write("job.json", job_of([PRODUCT, SOFTMAX], 2))
    _, said, _ = box.run("wpk-worker", *EMULATED, "--check")
    check("cublaslt    none: " in said and "cudnn       none: " in said, "without them, --check says why", said)
    box.env["LD_LIBRARY_PATH"] = fake
    _, said, _ = box.run("wpk-worker", *EMULATED, "--check")
    check("cublaslt    12.9.1" in said and "cudnn       9.19.0" in said, "--check names them", said)
    for *op, is_product in PRODUCTS:
        record = vendor_record(box, "cublaslt", op)
        check(record["outcome"] == ("ok" if is_product else "unsupported"), "it is right, or refused", op, record)
        check(not is_product or record["detail"].startswith("algorithm 3 of 3, "), "the fastest that runs", record)
    for mode, outcome in (("tf32", "wrong_result"), ("none", "unsupported")):
        record = vendor_record(box, "cublaslt", PRODUCTS[0][:3], WPK_FAKE_CUBLASLT=mode)
        check(record["outcome"] == outcome, "f32 means f32", mode, record)
    record = vendor_record(box, "cublaslt", PRODUCTS[0][:3], WPK_FAKE_CUBLASLT="tiles")
    check(record["outcome"] == "ok" and "algorithm 2 of 2" in record["detail"], "one that the heuristic lacks", record)
    for mode in ("uncaptured", "fast"):
        record = vendor_record(box, "cublaslt", PRODUCTS[0][:3], WPK_FAKE_CUBLASLT=mode)
        check(record["outcome"] == "ok" and "algorithm 1 of 3" in record["detail"], "the next one is taken", mode, record)
    tuned = check_tune_json(box.ctl("tune", job, *EMULATED, "--data", box.data, "--json"))["kernels"]
    check([k["baseline"] and k["baseline"]["provider"] for k in tuned] == ["cublaslt", None], "it competes", tuned)
    path = box.path("mm.so")
    box.ctl("get", "mm", "--data", box.data, "-o", path)
    with open(path + ".choice", encoding="utf-8") as file:
        chain = json.load(file)["chain"]
    check([entry.get("provider") for entry in chain] == [None, "cublaslt", None], "the choice names it", chain)
    os.remove(path)
    said = box.ctl("run", path + ".choice", "--random", "--check")
    check("entry   1 of the choice: vendor" in said and "passed" in said, "and runs it", said)
    if os.path.exists(EXAMPLE):
        said = subprocess.run([EXAMPLE, path + ".choice", "libwpk-cuda-emulated.so"], capture_output=True, text=True,
                              env={**os.environ, "LD_LIBRARY_PATH": fake}, check=False)
        check(said.returncode == 0 and "the same bits" in said.stdout, "and launches it", said.stdout, said.stderr)
    del box.env["LD_LIBRARY_PATH"]
    check("entry   2 of the choice: plain" in box.ctl("run", path + ".choice", "--random", "--check"), "without it, the next")


def test_one_process_keeps_the_device(box):
    """Candidates share a process, and a spare is ready: a fault costs its own candidate, and one more process."""
    op = write_product(box)
    for failure, failed, processes in (("", 0, 3), (";cuLaunchKernel:40=719", 1, 5)):
        order(box, "cuInit:99=719;cuModuleLoadData:999=719" + failure)
        _, out, err = box.run("wpk-evaluate", "--op", op, *EMULATED, "--construct", "8")
        outcomes = [json.loads(line)["record"]["outcome"] for line in out.splitlines()]
        check(len(outcomes) == 8 and outcomes.count("ok") == 8 - failed, "the others are well", outcomes, err)
        used = os.path.getsize(box.env["WPK_EMULATED_ORDERS_COUNT"] + ".0")
        loads = os.path.getsize(box.env["WPK_EMULATED_ORDERS_COUNT"] + ".1")
        check(loads <= 2 * (8 + failed), "a module is loaded once, not for each set of inputs", loads)
        check(used <= processes, "the program, a child, a spare; then another one, and who asks for the GPU", used)


def test_a_worker_survives_failures(box):
    """Launches fail, hang and lose the device: outcomes of their candidates, and the job is done with the others."""
    need_compiler(box)
    service = Service(box)
    order(box, "cuLaunchKernel:30=719;cuStreamSynchronize:60=hang;cuMemcpyHtoDAsync_v2:150=lost")
    worker = service.add_worker("--name", "g", "--run-timeout", "4", device=EMULATED)
    job = service.ask("POST", "/v1/jobs", job_of([PRODUCT], 12))[1]["id"]
    wait_for("it is done", lambda: state_of(service, job)["state"] in ("done", "failed"), 120)
    check(state_of(service, job)["state"] == "done", "the job is done", state_of(service, job))
    with sqlite3.connect(os.path.join(box.data, "history.db")) as history:
        # NVRTC of CUDA 13 builds no plain kernel where the first one's launch is what fails.
        outcomes = [row[0] for row in history.execute("SELECT outcome FROM trial WHERE outcome != '' AND NOT (provider ="
                                                      " 'plain' AND log LIKE '%knows no architecture%')")]
    failed = sorted(outcome for outcome in outcomes if outcome != "ok")
    check(failed == ["run_crash", "run_crash", "run_timeout"], "three have failed", outcomes, worker.text(worker.err))
    check(worker.popen.poll() is None, "the worker is the same")
    check(lookup(service, CLASS)["match"] == "exact", "and the best is served")
    service.stop()


def test_a_gpu_that_is_gone(box):
    """The device is gone for good: nothing is recorded for it, the leases go back, the service says why, and another
    worker does the job."""
    need_compiler(box)
    service = Service(box)
    order(box, "cuLaunchKernel:30=gone")
    worker = service.add_worker("--name", "g", device=EMULATED)
    job = service.ask("POST", "/v1/jobs", job_of([PRODUCT], 12))[1]["id"]
    wait_for("the worker ends", lambda: worker.popen.poll() is not None, 120)
    check(worker.popen.returncode != 0 and "the GPU is gone" in worker.text(worker.err), "it says why",
          worker.popen.returncode, worker.text(worker.err))
    outcomes = {outcome for _, outcome in recorded(box)}
    check(outcomes <= {"", "ok"}, "no candidate is blamed", outcomes)
    listed = {w["name"]: w for w in service.ask("GET", "/v1/workers")[1]["workers"]}
    check("the GPU is gone" in listed["g"]["reason"] and listed["g"]["running"] == 0, "the service says so", listed)
    check(b"wpk_workers_failed_total 1" in service.ask("GET", "/metrics")[1], "and counts it")
    code, _, said = box.run("wpk-worker", *EMULATED, "--coordinator", service.listen)
    check(code != 0 and "no GPU" in said, "a new worker does not start", code, said)
    order(box, "", shared=False)
    service.add_worker("--name", "h", device=EMULATED)
    wait_for("it is done", lambda: state_of(service, job)["state"] == "done", 120)
    service.stop()


def test_a_throttled_gpu(box):
    """The GPU stays hot: samples count after ten tries, and the service says in how many of them it was throttled, until
    a result comes without."""
    need_compiler(box)
    service = Service(box)
    for reasons, throttled in (("1-99999=64", True), ("", False)):
        box.env["WPK_EMULATED_THROTTLED"] = reasons
        worker = service.add_worker("--name", "g", device=EMULATED)
        op = dict(PRODUCT, op=PRODUCT["op"] if throttled else PRODUCT["op"].replace("relu", "tanh"))
        job = service.ask("POST", "/v1/jobs", job_of([op], 1))[1]["id"]
        wait_for("it is done", lambda job=job: state_of(service, job)["state"] == "done", 120)
        listed = {w["name"]: w for w in service.ask("GET", "/v1/workers")[1]["workers"]}
        check(listed["g"]["throttled"] == throttled, "the worker is listed as throttled, or not", listed)
        check(("its GPU is throttled: its clocks were lowered in " in listed["g"]["reason"]) == throttled, "with a reason", listed)
        check(("is throttled" in box.ctl("workers", "-o", "wide", "--server", service.url)) == throttled, "wpkctl shows it")
        gauge = f"\nwpk_workers_throttled {int(throttled)}\n".encode()
        wait_for("the gauge shows it", lambda gauge=gauge: gauge in service.ask("GET", "/metrics")[1])
        counted = re.search(rb"\nwpk_samples_throttled_total (\d+)\n", service.ask("GET", "/metrics")[1])
        check(int(counted[1]) > 0, "and samples are counted", counted)
        worker.popen.terminate()
        worker.wait(30)
    service.stop()


SWEEP_MAX = 40


def test_libwpk_fails_clearly(box):
    """Each call of the driver fails once, and loses the device once: libwpk returns an error with words, or takes the
    plain kernel, and crashes nowhere."""
    need_compiler(box)
    box.ctl("tune", box.write("job.json", job_of([PRODUCT], 3)), *EMULATED, "--data", box.data, "-q")
    path = box.path("mm.so")
    box.ctl("get", "mm", "--data", box.data, "-o", path)
    reached = set()
    for call in DRIVER_CALLS:
        for number in range(1, SWEEP_MAX):
            order(box, "%s:%d=%s" % (call, number, "lost" if number % 2 else "719"))
            code, out, err = box.run("wpkctl", "run", path, "--random", "--check")
            check(code in (0, 1, 3), "it ends by itself", call, number, code, out, err)
            check(code == 0 or re.search(r"CUDA error (719|999)|no GPU", err), "and says why", call, number, err)
            count = box.env["WPK_EMULATED_ORDERS_COUNT"] + ".0"
            if not os.path.exists(count) or os.path.getsize(count) < number:
                break
            reached.add(call)
    check(reached >= {"cuInit", "cuModuleLoadData", "cuMemAlloc_v2", "cuLaunchKernel"}, "calls were reached", reached)


if __name__ == "__main__":
    main(globals())

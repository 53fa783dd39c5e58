# SPDX-License-Identifier: Apache-2.0
"""A GPU that is emulated: kernels are built by NVRTC, verified on the emulator, ranked by its model, recorded, served
and run, and everything says that nothing was timed."""
import json
import os
import re
import sqlite3
import subprocess
import tempfile

from lib import BIN, CONVOLUTION, Service, Skip, check, check_tune_json, descendants, kill, main, need, small_job, wait_for

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
DRIVER_CALLS = ("cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
                "cuDeviceGetUuid_v2", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxPushCurrent_v2",
                "cuCtxPopCurrent_v2", "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuMemAlloc_v2",
                "cuMemFree_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernel", "cuStreamCreate",
                "cuStreamDestroy_v2", "cuStreamSynchronize", "cuEventCreate", "cuEventDestroy_v2")
EXAMPLE = os.environ.get("WPK_RUN_KERNEL", "") + "_cuda"
EMULATED = ("--gpu", "emulated")
CLASS = "cuda/emulated/sm_90/132"
NAMED_CLASS = "cuda/Test GPU/sm_90/132"
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


def check_ptx(box, name, path):
    """The PTX that `get` prints is what the shared object has."""
    ptx = box.ctl("get", name, "--data", box.data, "--ptx", "-o", "-")
    with open(path, "rb") as file:
        whole = ".target sm_" in ptx and re.search(r"\}\s*$", ptx)
        check(whole and ptx.encode() in file.read(), "PTX of the object", ptx[:500], ptx[-100:])


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
        with open(box.path(chain[1]["file"]), "rb") as file:
            check(b".version 4.0\n.target sm_50" in file.read(), "whose PTX all drivers read")
        said = box.ctl("run", path + ".choice", "--random", "--check")
        check("passed" in said, "the kernel runs", said)
        if os.path.exists(EXAMPLE):
            said = subprocess.run([EXAMPLE, path + ".choice", "libwpk-cuda-emulated.so"], capture_output=True, text=True,
                                  check=False)
            check(said.returncode == 0 and "the same bits" in said.stdout, "and is launched", said.stdout, said.stderr)
    box.ctl("get", "mm", "--data", box.data, "--cuda", "-o", box.path("mm.cu"))
    with open(box.path("mm.cu"), encoding="utf-8") as file:
        check("__global__" in file.read(), "it is CUDA C")
    check_ptx(box, "mm", box.path("mm.so"))
    again = check_tune_json(box.ctl("tune", job, *EMULATED, "--data", box.data, "--json"))["kernels"]
    check(all(k["from_history"] for k in again), "history answers the second time", again)


def test_a_toolkit_of_its_own(box):
    """NVRTC and ptxas are looked for where the option says, or the environment, and nowhere else."""
    need_compiler(box)
    installed = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.deps/nvrtc")
    if not os.path.exists(os.path.join(installed, "bin/ptxas")):
        raise Skip("make setup-gpu has not been run")
    toolkit = os.path.realpath(installed)
    code, said, _ = box.run("wpk-worker", *EMULATED, "--cuda-dir", toolkit, "--check")
    check(code == 0 and "nvrtc-12.9" in said, "it is there", said)
    code, said, _ = box.run("wpk-worker", *EMULATED, "--cuda-dir", box.dir, "--check")
    check(code != 0 and "no libnvrtc.so.12 in " + box.dir in said and "no ptxas" in said, "it is not there", said)
    job = box.write("job.json", job_of([PRODUCT], 1))
    box.env["WPK_CUDA_DIR"] = toolkit
    tuned = check_tune_json(box.ctl("tune", job, *EMULATED, "--data", box.data, "--json"))["kernels"][0]
    check(tuned["provider"] == "cuda", "wpkctl's worker and builder find it", tuned)


def test_a_gpu_by_its_number(box):
    """For wpk the emulated driver under NVIDIA's name is a GPU: its kernels count as timed and answer exactly. Kernels
    that the driver compiles from PTX have to pass the self-test of the choice."""
    need_compiler(box)
    box.env["LD_LIBRARY_PATH"] = os.environ.get("WPK_NAMED_DRIVER_DIR", "") + ":" + need_vendors()
    code, said, _ = box.run("wpk-worker", "--gpu", "0", "--check")
    check(code == 0 and NAMED_CLASS in said and "not timed" not in said, "it is there", said)
    job = box.write("job.json", job_of([PRODUCT], 2))
    tuned = check_tune_json(box.ctl("tune", job, "--gpu", "0", "--data", box.data, "--json"))["kernels"][0]
    check(tuned["provider"] == "cuda" and tuned["timed"], "a kernel is timed", tuned)
    said = box.ctl("lookup", job, "--data", box.data)
    check("mm: exact" in said and NAMED_CLASS in said, "which answers exactly", said)
    with sqlite3.connect(os.path.join(box.data, "history.db")) as history:
        uses = history.execute("SELECT registers, local_bytes, shared_bytes FROM trial WHERE provider = 'cuda'").fetchall()
    check(all(8 <= use[0] <= 255 and use[1] == 0 and use[2] > 0 for use in uses), "records say what launches need", uses)
    choice = box.path("mm.so.choice")
    box.ctl("get", "mm", "--data", box.data, "-o", box.path("mm.so"))
    for orders, loads in (("cuModuleLoadData:99=209", 1), ("cuModuleLoadData:1=209", 3), ("cuModuleLoadData:1=200", 3)):
        order(box, orders)
        said = box.ctl("run", choice, "--random", "--check")
        check("entry   0 of the choice: kernel" in said and "passed" in said, "it runs", orders, said)
        loaded = os.path.getsize(box.env["WPK_EMULATED_ORDERS_COUNT"] + ".0")
        check(loaded == loads, "a cubin; or PTX, which is tested, and then the next", orders, loaded)
    with open(choice, encoding="utf-8") as file:
        text = json.load(file)
    for spoil, why in ((lambda output: output.update(points=[], values=[]), "the choice has no self-test for it"),
                       (lambda output: output.update(values=[v + 1 for v in output["values"]]), "self-test: ")):
        changed = json.loads(json.dumps(text))
        changed["chain"] = changed["chain"][1:]
        for output in changed["self_test"]["outputs"]:
            spoil(output)
        code, out, err = box.run("wpkctl", "run", box.write("changed.so.choice", json.dumps(changed)), "--random")
        check(code != 0 and why in out + err, "no PTX runs that was not tested", out, err)


def test_schedules_by_hand(box):
    """The schedules of examples/gpu are right, but for the two large ones, which take seconds and are not built here."""
    need_compiler(box)
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/gpu")
    for name, registers in (("product", 128), ("softmax", 40), ("depthwise", 128)):
        record = json.loads(box.ctl("build", os.path.join(folder, name + ".schedule"), *EMULATED, "--json", "-o", box.path("k.so")))
        check(record["outcome"] == "ok" and record["launch"]["registers"] <= registers, "it is right", name, record)
        check(record["launch"]["local_bytes"] == 0, "and nothing is spilled", name, record)


PADDED = """#layouts any
#op input X f32[8,64]
#op intermediate S f32[8,64]
#op output Y f32[8,64]
#op S[i,j] = X[i,j]
#op Y[i,j] = S[i,63-j] * 2
wpk-schedule 2
target cuda-sm_90 threads 1
by %s
layout X f32[8,64] 0,1 pad 0:0,3:1
layout Y f32[8,64] 0,1 pad 2:0,0:1
program
input X f32[8,64] pad 0:0,3:1
intermediate S f32[8,64] pad 1:0,2:0
output Y f32[8,64] pad 2:0,0:1
S[i,j] = X[i,j]
Y[i,j] = S[i,63-j] * 2
end
stage Y root
block.x i
thread.x j
stage S root
block.x i
thread.x j
"""


def test_padding(box):
    """Launches take pointers behind the padding of arguments and of scratch."""
    need_compiler(box)
    for by in ("cuda", "halide-cuda"):
        record = json.loads(box.ctl("build", box.write("padded.schedule", PADDED % by), *EMULATED, "--json", "-o", box.path("k.so")))
        check(record["outcome"] == "ok", "it is right", by, record)
        with open(box.path("k.so"), "rb") as file:
            plan = file.read().split(b'{"version":5,"architecture"')[1].split(b"\n")[0].decode()
        check('{"tensor":0,"offset":12}' in plan and '{"tensor":1,"offset":520}' in plan, "offsets are in the plan", by, plan)


def test_by_halide(box):
    """Halide replays the nest that CUDA C was printed of, and prints it as its own program."""
    need_compiler(box)
    job = box.write("job.json", job_of([PRODUCT], 1))
    pinned = ("--pin", "Y.depth=1", "--pin", "Y.parts.k=1")
    box.ctl("tune", job, *EMULATED, "--data", box.data, *pinned)
    text = box.ctl("get", "mm", "--own", "--data", box.data, "--schedule", "-o", "-")
    check(text.count("by cuda\n") == 1 and "scope shared" in text, "a kernel by CUDA C", text)
    path, built = box.write("halide.schedule", text.replace("by cuda\n", "by halide-cuda\n")), box.path("halide.so")
    record = json.loads(box.ctl("build", path, *EMULATED, "--json", "-o", built))
    check(record["outcome"] == "ok", "is built by Halide, and verified", record)
    with open(built, "rb") as file:
        image = file.read()
    check(b'"added_bytes":' in image and b".maxntid" in image, "its launches are data")
    check("passed" in box.ctl("run", built, "--random", "--check"), "and it runs")
    code = box.ctl("get", "mm", "--own", "--data", box.data, "--halide", "-o", "-")
    check(".gpu_threads(" in code and "cuda_capability_86" in code, "it is a program of Halide's", code[-3000:])
    ahead = re.sub(r"(  scope shared\n(  padded \d+\n)?)", r"\1  depth 2\n", text).replace("by cuda\n", "by halide-cuda\n")
    ahead = box.write("ahead.schedule", ahead)
    code, out, err = box.run("wpkctl", "build", ahead, *EMULATED)
    check(code != 0 and "leave depth out" in out + err, "what Halide lacks is refused", out, err)


def test_a_search_by_halide(box):
    """A job that pins the back end is searched with it, and no worker's search has it otherwise."""
    need_compiler(box)
    job = box.write("job.json", job_of([PRODUCT], 3))
    tune = ("tune", job, *EMULATED, "--data", box.data, "--json")
    found = check_tune_json(box.ctl(*tune, "--pin", "by=halide-cuda"))["kernels"][0]
    check(found["provider"] == "halide-cuda" and "\nby halide-cuda\n" in found["schedule"], "it builds the kernel", found)
    check(found["candidates"] == {"measured": 3, "failed": 0}, "all candidates are right", found)
    path = box.path("mm.so")
    box.ctl("get", "mm", "--data", box.data, "-o", path)
    with open(path + ".choice", encoding="utf-8") as file:
        chain = json.load(file)["chain"]
    with open(path + ".manifest", encoding="utf-8") as file:
        check(json.load(file)["provider"] == "halide-cuda", "and so says what wpkd signed", chain)
    check("passed" in box.ctl("run", path + ".choice", "--random", "--check"), "the kernel runs")
    code = box.ctl("get", "mm", "--data", box.data, "--cuda", "-o", "-")
    check_ptx(box, "mm", path)
    check("'halide-cuda' compiled" in code.split("\n")[0] and "__global__" in code, "CUDA C says so", code[:200])
    check_tune_json(box.ctl(*tune))
    code, out, err = box.run("wpkctl", *tune, "--pin", "by=halide-cuda", "--pin", "Y.depth=2")
    check(code != 0 and "no legal candidate" in out + err, "what Halide lacks is no candidate", out, err)
    with sqlite3.connect(os.path.join(box.data, "history.db")) as history:
        tried = dict(history.execute("SELECT provider, COUNT(*) FROM trial WHERE candidate <> '' AND provider <> 'plain'"
                                     " GROUP BY provider"))
    check(tried == {"halide-cuda": 3, "cuda": 3}, "each trial is its back end's", tried)


def test_winograd(box):
    """Winograd's matrices are literals of the program: constants in the kernel. The constants are prepared in f64."""
    need_compiler(box)
    job = box.write("job.json", job_of([CONVOLUTION], 3))
    pinned = ("--pin", "algorithm=winograd(4)", "--pin", "Y_acc_m.at=root", "--pin", "Y_acc_v.at=root")
    tuned = check_tune_json(box.ctl("tune", job, *EMULATED, "--data", box.data, "--json", *pinned))["kernels"][0]
    check(tuned["candidates"] == {"measured": 3, "failed": 0}, "all candidates are right", tuned)
    path = box.path("small.so")
    box.ctl("get", "small", "--data", box.data, "-o", path)
    check("passed" in box.ctl("run", path, "--random", "--check"), "the kernel runs")
    code = box.ctl("get", "small", "--data", box.data, "--cuda", "-o", "-")
    check(code.count("__global__") == 3, "there are three launches: to the points, products, and back", code[:3000])


def test_parts(box):
    """Blocks that share a tile's terms: the last one adds the parts up, and the next call begins with tickets of 0."""
    need_compiler(box)
    product = dict(PRODUCT, tensors={"A": "f32[33,64]", "B": "f32[64,24]", "C": "f32[24]", "Y": "f32[33,24]"})
    job = box.write("job.json", job_of([product], 3))
    pinned = ("--pin", "Y.parts.k=4")
    tuned = check_tune_json(box.ctl("tune", job, *EMULATED, "--data", box.data, "--json", *pinned))["kernels"][0]
    check(tuned["candidates"] == {"measured": 3, "failed": 0}, "all candidates are right", tuned)
    path = box.path("mm.so")
    box.ctl("get", "mm", "--data", box.data, "-o", path)
    check("passed" in box.ctl("run", path, "--random", "--check"), "the kernel runs")
    code = box.ctl("get", "mm", "--data", box.data, "--cuda", "-o", "-")
    check(code.count("__global__") == 1 and "atomicInc" in code, "it is one launch", code[:3000])


def test_layouts(box):
    """With free layouts the channels of a convolution's tensors may be last."""
    need_compiler(box)
    job = box.write("job.json", job_of([dict(CONVOLUTION, layouts="any")], 3))
    pinned = ("--pin", "layout=last1")
    tuned = check_tune_json(box.ctl("tune", job, *EMULATED, "--data", box.data, "--json", *pinned))["kernels"][0]
    check(tuned["candidates"] == {"measured": 3, "failed": 0}, "all candidates are right", tuned)
    path = box.path("small.so")
    box.ctl("get", "small", "--data", box.data, "-o", path)
    check("passed" in box.ctl("run", path, "--random", "--check"), "the kernel runs")
    said = box.ctl("get", "small", "--own", "--data", box.data, "--schedule", "-o", "-")
    cold = check_tune_json(box.ctl("tune", job, *EMULATED, "--data", box.data, "--json", "--conditions", "cold"))
    check(cold["kernels"][0]["candidates"] == {"measured": 3, "failed": 0}, "and all run cold", cold)
    check(not cold["kernels"][0]["timed"], "which is not timed, either", cold)
    check(re.search(r"^layout t0 .* 0,2,3,1", said, re.MULTILINE), "its input has the channels last", said[:2000])


def lookup(service, device, **more):
    body = {**more, "device": device, "op": PRODUCT["op"], "tensors": PRODUCT["tensors"], "constants": PRODUCT["constants"]}
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
    path = box.write("job.json", job_of([PRODUCT]))
    look = ("check", "--no-faults", path, "--server", service.url)
    check("no worker of kind cuda is ready: the job would wait" in box.ctl(*look), "check says it before")
    wait_for("it says why it waits", lambda: state_of(service, job)["ops"][0]["blocked"] == "no worker with kind cuda")
    service.add_worker("--name", "g", device=EMULATED)
    wait_for("it is done", lambda: state_of(service, job)["state"] == "done", 120)
    found = lookup(service, CLASS)
    check(found["match"] == "exact" and found["timed"] is False, "the emulated GPU has it", found)
    check("ready" in box.ctl(*look).split("\n")[0] and "wait" not in box.ctl(*look), "and check finds the worker")
    environment = found["environment"].replace("driver=12", "driver=13")
    check(environment != found["environment"], "the driver is part of the environment", found)
    newer = lookup(service, CLASS, environment=environment)
    check(newer["match"] != "exact", "with another driver nothing is exact", newer)
    for other in ("cuda/NVIDIA H100/sm_90/132", "cuda/emulated/sm_80/132", "cpu/some/avx2"):
        check(lookup(service, other)["match"] == "none", "and no other device", other, lookup(service, other))
    workers = {w["name"]: w for w in service.ask("GET", "/v1/workers")[1]["workers"]}
    check(workers["g"]["device"] == CLASS, "the worker's device is shown", workers["g"])
    check(workers["g"]["driver"] == "12.9" and "driver" not in workers["c"], "and its driver", workers)
    said = box.ctl("workers", "--server", service.url, "-o", "wide")
    check("%s, 8192 MiB, driver 12.9" % CLASS in said, "wpkctl shows both, and its memory", said)
    service.stop()


def test_builders_and_runners(box):
    """One machine compiles and has no GPU, the other has one and no compiler."""
    need_compiler(box)
    service = Service(box)
    service.add_worker("--name", "b", "--build-only", device=("--arch", "sm_90"))
    other = service.add_worker("--name", "o", "--run-only", "--compiler", "nvrtc-1.2", device=EMULATED)
    wait_for("it joins", lambda: ";nvrtc=1.2;driver=" in service.wpkd.text(service.wpkd.err), 5)
    other.popen.terminate()
    other.wait(30)
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
            kill(service.wpkd.popen.pid)
            service.wpkd.popen.wait()
            service = Service(box)
            break
        pids = [pid for pid, (_, found) in descendants(worker.popen.pid).items() if found == name]
        for pid in pids[:1] if name != "wpk-worker" else [worker.popen.pid]:
            kill(pid)
        if name == "wpk-worker":
            worker.popen.wait()
            worker = service.add_worker("--name", "g", device=EMULATED)
    wait_for("it is done", lambda: state_of(service, job)["state"] == "done", 120)
    check(recorded(box) == wanted, "the same trials are recorded", recorded(box), wanted)
    service.stop()


def order(box, orders, shared=True):
    """Make the emulated driver fail; `shared`: all processes of the box count calls together."""
    box.env["WPK_EMULATED_ORDERS"] = orders
    box.env.pop("WPK_EMULATED_ORDERS_COUNT", None)
    if shared:
        box.env["WPK_EMULATED_ORDERS_COUNT"] = os.path.join(tempfile.mkdtemp(dir=box.dir), "count")


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


def test_failures_on_order(box):
    """A call of the driver fails: one candidate has the outcome, and the others are as without."""
    need_compiler(box)
    if not os.path.exists(os.path.join(BIN, "wpk-evaluate")):
        raise Skip("wpk-evaluate is not built")
    op = box.write("mm.txt", "input A f32[33,40]\nconstant B f32[40,24]\noutput Y f32[33,24]\n"
                             "Y[i,j] = sum.f32(k:40) A[i,k] * B[k,j]\n")
    for orders, (outcome, words) in FAILURES.items():
        order(box, orders)
        code, out, err = box.run("wpk-evaluate", "--op", op, *EMULATED, "--construct", "3")
        records = [json.loads(line)["record"] for line in out.splitlines()]
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
    need_compiler(box)
    if not os.path.exists(os.path.join(BIN, "wpk-evaluate")):
        raise Skip("wpk-evaluate is not built")
    op = box.write("mm.txt", "input A f32[33,40]\nconstant B f32[40,24]\noutput Y f32[33,24]\n"
                             "Y[i,j] = sum.f32(k:40) A[i,k] * B[k,j]\n")
    for reasons, log in (("1-2=64", ""), ("1-99=64", "the GPU was throttled in "), ("1-99=5", "")):
        box.env["WPK_EMULATED_THROTTLED"] = reasons
        code, out, err = box.run("wpk-evaluate", "--op", op, *EMULATED, "--construct", "1")
        record = json.loads(out.splitlines()[0])["record"]
        check(code == 0 and record["outcome"] == "ok", "it is timed", reasons, code, err)
        check(log in record.get("log", "") if log else not record.get("log"), "the log says so", reasons, record)
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


def need_vendors():
    """The folder of the libraries that stand for vendors'."""
    fake = os.environ.get("WPK_FAKE_VENDOR_DIR", "")
    if not os.path.exists(os.path.join(fake, "libcublasLt.so.12")) or not os.path.exists(os.path.join(BIN, "wpk-evaluate")):
        raise Skip("the libraries that stand for vendors' are not built")
    return fake


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
    need_compiler(box)
    if not os.path.exists(os.path.join(BIN, "wpk-evaluate")):
        raise Skip("wpk-evaluate is not built")
    op = box.write("mm.txt", "input A f32[33,40]\nconstant B f32[40,24]\noutput Y f32[33,24]\n"
                             "Y[i,j] = sum.f32(k:40) A[i,k] * B[k,j]\n")
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
        outcomes = [row[0] for row in history.execute("SELECT outcome FROM trial WHERE outcome != ''")]
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


def test_bad_inputs(box):
    need(*PROGRAMS)
    job = box.write("job.json", dict(job_of([PRODUCT]), target={"kind": "cuda", "threads": 2}))
    code, _, said = box.run("wpkctl", "tune", job, *EMULATED, "--data", box.data)
    check(code == 2 and "job.json:" in said and "threads" in said, "a GPU's kernel has one thread", said)
    for options, words in ((("--gpu", "7 8", "--check"), "not a value"),
                           (("--cpu", *EMULATED, "--coordinator", "ipc:///x"), "two workers"),
                           (("--arch", "sm_90", "--coordinator", "ipc:///x"), "--build-only"),
                           (("--cpu", "--check"), "--check is about a GPU"),
                           ((*EMULATED, "--cuda-dir", "there", "--check"), "not a value")):
        code, _, said = box.run("wpk-worker", *options)
        check(code == 2 and words in said, "refused with words", options, said)
    if not os.path.exists("/dev/nvidia0"):
        code, said, _ = box.run("wpk-worker", "--gpu", "0", "--check")
        check(code == 1 and re.search("device +none: .*--gpu emulated", said), "there is none, and what to do", said)
        check(re.search("(?s)^compiler .*\nptxas .*\ncudnn .*\ndevice ", said), "the rest is listed all the same", said)


def test_a_builder_is_checked(box):
    need_compiler(box)
    builder = ("wpk-worker", "--build-only", "--check", "--arch")
    code, said, _ = box.run(*builder, "sm_90")
    check(code == 0 and re.search(r"(?s)^compiler +nvrtc-.*\nhalide-cuda .*\nptxas .*\nbuilds for +sm_90\n$", said), "it builds", said)
    for architecture, words in (("sm_9", "is no architecture"), ("sm_51", "does not know sm_51")):
        code, said, _ = box.run(*builder, architecture)
        check(code == 1 and re.search("builds for +none: .*" + words, said), "for an architecture of NVRTC's", said)


if __name__ == "__main__":
    main(globals())

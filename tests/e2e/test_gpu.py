# SPDX-License-Identifier: Apache-2.0
"""A GPU that is emulated: kernels are built by NVRTC, verified on the emulator, ranked by its model, recorded, served
and run, and everything says that nothing was timed."""
import json
import os
import re
import sqlite3
import subprocess

from gpu import (CLASS, EMULATED, EXAMPLE, NAMED_CLASS, PRODUCT, PROGRAMS, SOFTMAX, check_ptx, job_of, lookup, need_compiler,
                 need_vendors, order, recorded, state_of)
from lib import CONVOLUTION, Service, Skip, check, check_tune_json, descendants, kill, main, need, wait_for


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
    check(re.search(r"(?m)^rates +H100$", said), "the GPU whose rates ranks assume", said)
    code, said, _ = box.run("wpk-worker", *EMULATED, "--cuda-dir", box.dir, "--check")
    check(code != 0 and "no libnvrtc.so.12 or .13 in " + box.dir in said and "no ptxas" in said, "it is not there", said)
    os.makedirs(box.path("newer/lib"))
    os.symlink(toolkit + "/lib/libnvrtc.so.12", box.path("newer/lib/libnvrtc.so.13"))
    code, said, _ = box.run("wpk-worker", *EMULATED, "--cuda-dir", box.path("newer"), "--check")
    check("nvrtc-12.9" in said, "version 13 is opened, too", said)
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
        uses = history.execute("SELECT json_extract(launch, '$.registers'), json_extract(launch, '$.local_bytes'), json_extract(launch, '$.shared_bytes')"
                               " FROM trial WHERE provider = 'cuda'").fetchall()
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
    for name, registers in (("product", 128), ("softmax", 48), ("depthwise", 128)):
        record = json.loads(box.ctl("build", os.path.join(folder, name + ".schedule"), *EMULATED, "--json", "-o", box.path("k.so")))
        check(record["outcome"] == "ok" and record["launch"]["registers"] <= registers, "it is right", name, record["launch"], registers)
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
    environment = found["environment"].replace("driver=13", "driver=14")
    check(environment != found["environment"], "the driver is part of the environment", found)
    newer = lookup(service, CLASS, environment=environment)
    check(newer["match"] != "exact", "with another driver nothing is exact", newer)
    for other in ("cuda/NVIDIA H100/sm_90/132", "cuda/emulated/sm_80/132", "cpu/some/avx2"):
        check(lookup(service, other)["match"] == "none", "and no other device", other, lookup(service, other))
    workers = {w["name"]: w for w in service.ask("GET", "/v1/workers")[1]["workers"]}
    check(workers["g"]["device"] == CLASS, "the worker's device is shown", workers["g"])
    check(workers["g"]["driver"] == "13.0" and "driver" not in workers["c"], "and its driver", workers)
    said = box.ctl("workers", "--server", service.url, "-o", "wide")
    check("%s, 8192 MiB, driver 13.0" % CLASS in said, "wpkctl shows both, and its memory", said)
    service.stop()


def test_builders_and_runners(box):
    """One machine compiles and has no GPU, the other has one and no compiler."""
    compiler = need_compiler(box)
    service = Service(box)
    service.add_worker("--name", "b", "--build-only", device=("--arch", "sm_90"))
    other = service.add_worker("--name", "o", "--run-only", "--compiler", "nvrtc-1.2", device=EMULATED)
    wait_for("it joins", lambda: ";nvrtc=1.2;driver=" in service.wpkd.text(service.wpkd.err), 5)
    other.popen.terminate()
    other.wait(30)
    service.add_worker("--name", "r", "--run-only", "--compiler", compiler, device=EMULATED)
    job = service.ask("POST", "/v1/jobs", job_of([PRODUCT], 4))[1]["id"]
    wait_for("it is done", lambda: state_of(service, job)["state"] in ("done", "failed"), 120)
    check(state_of(service, job)["state"] == "done", "both together do it", state_of(service, job))
    service.stop()


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


def test_bad_inputs(box):
    need(*PROGRAMS)
    job = box.write("job.json", dict(job_of([PRODUCT]), target={"kind": "cuda", "threads": 2}))
    code, _, said = box.run("wpkctl", "tune", job, *EMULATED, "--data", box.data)
    check(code == 2 and "job.json:" in said and "threads" in said, "a GPU's kernel has one thread", said)
    for options, words in ((("--gpu", "7 8", "--check"), "is no value"),
                           (("--cpu", *EMULATED, "--coordinator", "ipc:///x"), "two workers"),
                           (("--arch", "sm_90", "--coordinator", "ipc:///x"), "--build-only"),
                           (("--cpu", "--check"), "--check is about a GPU"),
                           ((*EMULATED, "--cuda-dir", "there", "--check"), "absolute path")):
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

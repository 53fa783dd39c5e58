# SPDX-License-Identifier: Apache-2.0
"""A model from its file to verified outputs: wpkctl tune, the plan, and libwpk that runs it."""
import contextlib
import hashlib
import html
import http.client
import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import time
import xml.etree.ElementTree

from lib import BIN, ROOT, Kept, Service, Skip, check, descendants, kill, main, small_job, wait_for
from test_model import PYTHON, compare, edit, make_model, read_npy, refused

RUN_MODEL = os.environ.get("WPK_RUN_MODEL", "")
TOLERANCE = 1e-5  # of the largest output


def tune_tiny(box):
    folder = make_model(box, "tiny")
    path, plan = os.path.join(folder, "tiny.onnx"), os.path.join(folder, "tiny.wpk")
    status, out, err = box.run("wpkctl", "tune", path, "-o", plan, "--candidates", "1", "--seconds", "60",
                               "-q", "--data", box.path("history"), seconds=280)
    check(status == 0 and os.path.exists(plan), "the model is tuned", out, err)


KEPT = Kept(tune_tiny, "tiny", "history")


def tuned(box):
    """The folder of a model with its plan; box.path("history") has the search."""
    KEPT.place(box)
    return box.path("tiny"), box.path("tiny/tiny.wpk")


def test_plan_computes_the_model(box):
    folder, plan = tuned(box)
    x, y, out = (os.path.join(folder, n + ".npy") for n in ("x", "y", "out"))
    status, said, err = box.run("wpkctl", "run", plan, "--input", "x=" + x, "--output", "y=" + out)
    check(status == 0, "the plan runs", said, err)
    check(compare(out, y) <= TOLERANCE, "it computes what ONNX Runtime does", compare(out, y))
    # Other inputs, beside the interpreter.
    wanted = os.path.join(folder, "wanted.npy")
    onnx = os.path.join(folder, "tiny.onnx")
    for words in (("run", plan, "--random", "--output", "y=" + out),
                  ("run", onnx, "--interpret", "--random", "--output", "y=" + wanted)):
        status, said, err = box.run("wpkctl", *words)
        check(status == 0, "%s" % (words,), said, err)
    check(compare(out, wanted) <= TOLERANCE, "it computes what the interpreter does")
    check("input x has no file" in refused(box, "run", plan), "a missing input")
    check("--interpret takes" in refused(box, "run", plan, "--interpret"), "what is interpreted")
    if RUN_MODEL:
        told = subprocess.run([RUN_MODEL, plan], capture_output=True, text=True, check=False)
        check(told.returncode == 0 and "y f32[3,2]" in told.stdout, "the example", told.stdout, told.stderr)

    # A damaged plan is refused, with the file's name.
    with open(plan, "rb") as file:
        whole = file.read()
    for at in (3, 9, 20, 40, 100, len(whole) // 2, len(whole) - 4000):
        bad = os.path.join(folder, "bad.wpk")
        with open(bad, "wb") as file:
            file.write(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1:])
        status, said, err = box.run("wpkctl", "run", bad, "--random")
        check(status == 1 and "bad.wpk: " in err, "byte %d is changed" % at, status, err)
        with open(bad, "wb") as file:
            file.write(whole[:at])
        status, said, err = box.run("wpkctl", "run", bad, "--random")
        check(status == 1 and "bad.wpk: " in err, "cut at %d" % at, status, err)


LIBRARY = os.path.join(os.path.dirname(BIN), "runtime", "libwpk.so")


def check_python(box, **env):
    with open(LIBRARY, "rb") as library:
        if b"__asan_init" in library.read():
            raise Skip("Python itself has no ASan")
    folder, plan = tuned(box)
    told = subprocess.run([PYTHON, os.path.join(ROOT, "tests/python_package.py"), plan, os.path.join(folder, "x.npy"),
                           os.path.join(folder, "y.npy")], capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, **env, "PYTHONDONTWRITEBYTECODE": "1"})
    check(told.returncode == 0 and "passed" in told.stdout, "the package", told.stdout, told.stderr[-1500:])


def test_python(box):
    """The Python package runs the plan: right outputs, errors with names, threads, a fork."""
    check_python(box, WOODPECKER_LIBRARY=LIBRARY)


def test_python_tunes(box):
    """wpk.compile, wpk.op and wpk.Client: tuned from Python, stopped by Ctrl-C, beside a service."""
    with open(LIBRARY, "rb") as library:
        if b"__asan_init" in library.read():
            raise Skip("Python itself has no ASan")
    folder = make_model(box, "tiny")
    service = Service(box)
    service.add_worker()
    told = subprocess.run([PYTHON, os.path.join(ROOT, "tests/python_tune.py"), os.path.join(folder, "tiny.onnx"),
                           os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy"), service.url,
                           box.write("job.json", small_job()), folder], capture_output=True, text=True, check=False,
                          timeout=280, env={**os.environ, "WOODPECKER_LIBRARY": LIBRARY, "WPK_BIN": BIN,
                                            "PYTHONDONTWRITEBYTECODE": "1"})
    check(told.returncode == 0 and "passed" in told.stdout, "Python tunes", told.stdout, told.stderr[-1500:])


NOTEBOOK = """
import sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(book, timeout=240, resources={"metadata": {"path": sys.argv[2]}}).execute()
shown = [kind for cell in book.cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
assert "text/html" in shown, shown
print("passed")
"""


def test_notebook(box):
    """examples/tune.ipynb runs as it is, and shows the plan."""
    with open(LIBRARY, "rb") as library:
        if b"__asan_init" in library.read():
            raise Skip("Python itself has no ASan")
    told = subprocess.run([PYTHON, "-c", NOTEBOOK, os.path.join(ROOT, "examples/tune.ipynb"), box.dir],
                          capture_output=True, text=True, check=False, timeout=280,
                          env={**box.env, "PYTHONPATH": os.path.join(ROOT, "python"), "WOODPECKER_LIBRARY": LIBRARY,
                               "WPK_BIN": BIN, "PYTHONDONTWRITEBYTECODE": "1"})
    check(told.returncode == 0 and "passed" in told.stdout, "the notebook", told.stdout, told.stderr[-3000:])


def test_wheel(box):
    """The wheel is the same, byte for byte, when it is packed twice, and does all that without a library beside."""
    if not os.path.exists(os.path.join(ROOT, ".deps/wheel-venv/stamp")):
        raise Skip("needs `deploy/setup.sh wheel`")
    packed = []
    for folder in (box.path("a"), box.path("b")):
        told = subprocess.run([os.path.join(ROOT, "python/make_wheel.sh"), os.path.dirname(BIN), folder,
                               "woodpecker"],
                              capture_output=True, text=True, check=False, timeout=120)
        wheels = [path for path in told.stdout.split() if "onnxruntime" not in path]
        check(told.returncode == 0 and len(wheels) == 1 and "manylinux_2_28" in wheels[0], "a wheel", told.stdout, told.stderr)
        with open(wheels[0], "rb") as wheel:
            packed.append(wheel.read())
    check(packed[0] == packed[1] and len(packed[0]) < 2e6, "the same wheel, below 2 MB", len(packed[0]))
    site = box.path("site")
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps",
                    "--target", site, wheels[0]], check=True, timeout=120)
    check_python(box, PYTHONPATH=site)


def test_quantized(box):
    """A model of both kinds of quantization: its plan computes ONNX Runtime's numbers but for a step of a
    quantized value."""
    folder = make_model(box, "quantized")
    path, plan = os.path.join(folder, "quantized.onnx"), os.path.join(folder, "quantized.wpk")
    x, y, out = (os.path.join(folder, n + ".npy") for n in ("x", "y", "out"))
    status, said, err = box.run("wpkctl", "check", path, "--no-roofline")
    check(status == 0 and "QuantizeLinear" in said, "it is read", said, err)
    status, said, err = box.run("wpkctl", "tune", path, "-o", plan, "--candidates", "1", "--verify", "-q",
                                "--data", box.path("history"), seconds=280)
    check(status == 0 and "verified: output y" in err, "it is tuned, and verified", said, err)
    status, said, err = box.run("wpkctl", "run", plan, "--input", "x=" + x, "--output", "y=" + out)
    check(status == 0 and compare(out, y) <= 1e-2, "it computes what ONNX Runtime does", said, err, compare(out, y))
    status, said, err = box.run("wpkctl", "bench", plan, "--onnx", path, "--python", PYTHON, "--json")
    check(status in (0, 1) and "onnxruntime" in said, "beside ONNX Runtime", said, err)


def rewritten(plan, change):
    """A copy of the plan whose first set of shapes was changed, with a right checksum."""
    with open(plan, "rb") as file:
        whole = file.read()
    size, = struct.unpack_from("<Q", whole, 16)
    manifest = json.loads(whole[64:64 + size])
    change(manifest["shapes"][0])
    text = json.dumps(manifest, separators=(",", ":")).encode()
    text += b" " * (-(64 + len(text)) % 64)
    data = whole[64 + size + (-(64 + size) % 64):]
    path = plan + ".changed.wpk"
    with open(path, "wb") as file:
        file.write(whole[:16] + struct.pack("<QQ", len(text), struct.unpack_from("<Q", whole, 24)[0]) +
                   hashlib.sha256(text).digest() + text + data)
    return path


def steps_in_place(plan):
    """The steps whose output lies where an input was."""
    found = []

    def look(shape):
        for step in shape["steps"]:
            values = [shape["values"][a["value"]] for a in step["arguments"]]
            offsets = [v["offset"] for v in values if v["place"] == 0]
            if len(set(offsets)) < len(offsets):
                found.append(step["node"])

    rewritten(plan, look)
    return found


def test_steps_are_checked(box):
    """Each step on the data that flows through it; a value that another one overwrites is seen."""
    plan = tuned(box)[1]
    status, out, err = box.run("wpkctl", "run", plan, "--random", "--check")
    check(status == 0 and "checked: " in err, "the plan is right", out, err)

    status, out, err = box.run("wpkctl", "run", rewritten(plan, lambda shape: None), "--random", "--check")
    check(status == 0 and "checked: " in err, "so is a copy", out, err)

    def overlap(shape):
        for value in shape["values"]:
            value["offset"] = value["offset"] if value["place"] else 0

    err = refused(box, "run", rewritten(plan, overlap), "--random", status=1)
    check("where an input is" in err, "all values in one place", err)


def overwrite_a_value(shape):
    """Put a value where another one waits for a later step."""
    touched = {}
    for number, step in enumerate(shape["steps"]):
        for argument in step["arguments"]:
            if shape["values"][argument["value"]]["place"] == 0:
                touched.setdefault(argument["value"], []).append(number)
    for waiting, steps in touched.items():
        for other, between in touched.items():
            if steps[0] < between[0] < steps[-1] and between[0] not in steps:
                shape["values"][other]["offset"] = shape["values"][waiting]["offset"]
                shape["arena_size"] *= 2
                return
    check(False, "a value that waits", touched)


def test_profile(box):
    folder, plan = tuned(box)
    trace = os.path.join(folder, "trace.json")
    status, out, err = box.run("wpkctl", "profile", plan, "-o", trace)
    check(status == 0 and "ms a run" in out, "the table", out, err)
    status, out, err = box.run("wpkctl", "profile", plan, "--json")
    said = json.loads(out)
    check(status == 0 and all(step["time_ns"] > 0 for step in said["steps"]), "every step has a time", said)
    check(any(" + " in step["nodes"] for step in said["steps"]), "a step of several nodes", said)
    whole = said["run_ns"] / said["sum_ns"]
    check(0.3 < whole < 3, "the steps are the run", said)
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    check([e["name"] for e in events] == [step["nodes"] for step in said["steps"]], "the trace", events)
    status, out, err = box.run("wpkctl", "profile", older(plan))
    check(status == 1 and "a plan of version 1" in err, "an older plan", status, err)


def test_bench(box):
    folder, plan = tuned(box)
    onnx = os.path.join(folder, "tiny.onnx")
    status, out, err = box.run("wpkctl", "bench", plan, "--onnx", onnx, "--against", "mnn,onnxruntime", "--python", PYTHON,
                               "--json")
    check(status == 0, "beside ONNX Runtime", out, err)
    said = json.loads(out)
    ours, mnn, theirs = said["engines"]
    check(ours["median_ns"] > 0 and theirs["ratio"] > 0, "both are timed", said)
    check(theirs["difference"] <= TOLERANCE, "they agree", said)
    check("--python" in mnn["why"], "one that is not installed", out, err)
    status, out, err = box.run("wpkctl", "bench", plan)
    check(status == 0 and "rounds" in out, "alone", out, err)
    check("needs --onnx" in refused(box, "bench", plan, "--against", "openvino"), "without the model")
    check("is none of" in refused(box, "bench", plan, "--onnx", onnx, "--against", "x"), "another engine")
    status, out, err = box.run("wpkctl", "bench", plan, "--onnx", plan, "--python", PYTHON)
    check(status == 1 and "onnxruntime: " in out and "no other engine" in err, "no model", status, out, err)
    status, out, err = box.run("wpkctl", "bench", plan, "--onnx", onnx, "--python", "/nonexistent")
    check(status == 1 and "--python names another" in out, "no Python", status, out, err)


def test_prove(box):
    """A plan beside itself is a wash; a model stands for what history has of it; the outputs are compared."""
    folder, plan = tuned(box)
    onnx, data = os.path.join(folder, "tiny.onnx"), box.path("history")
    status, out, err = box.run("wpkctl", "prove", plan, plan, "--json")
    said = json.loads(out)
    check(status == (0 if said["faster"] else 1) and said["difference"] == 0 and 0.3 < said["ratio"] < 3
          and said["rounds"] == 21, "beside itself", status, out, err)
    check("No such file" in refused(box, "prove", plan, box.path("none.wpk")), "no such plan")

    def trials():
        jobs = json.loads(box.ctl("jobs", "--data", data, "--json"))["jobs"]
        told = [json.loads(box.ctl("trials", job["id"], "--data", data, "--json"))["trials"] for job in jobs]
        return {(one["op"], one["provider"], one.get("candidate")) for of_job in told for one in of_job}

    before = trials()
    status, out, err = box.run("wpkctl", "prove", plan, onnx, "--data", data, seconds=120)
    ratio = re.search(r": ([0-9.]+) ± [0-9.]+ times as fast", out)
    check(status in (0, 1) and "differ by 0.0e+00" in out and ratio and 0.3 < float(ratio.group(1)) < 3,
          "beside its model, in words", status, out, err)
    check(before and trials() == before, "nothing is searched for", before)
    check("BEFORE.wpk AFTER.wpk|MODEL.onnx" in refused(box, "prove", onnx), "what to give")
    check("no plan of %s: wpkctl: " % box.path("none.onnx") in refused(box, "prove", plan, box.path("none.onnx")), "no model")


def test_pin(box):
    """A lock file has each operator's kernel, signed; a tuning takes them as they are, or says why not."""
    folder, plan = tuned(box)
    onnx, history, lock = os.path.join(folder, "tiny.onnx"), box.path("history"), box.path("kernels.lock")
    check("-o FILE" in refused(box, "pin", onnx, "--data", history), "no file")
    status, out, err = box.run("wpkctl", "pin", onnx, "-o", lock, "--data", history)
    entries = json.load(open(lock, encoding="utf-8"))["entries"]
    check(status == 0 and entries and "%d operators" % len(entries) in err, "written", status, out, err)
    status, out, err = box.run("wpkctl", "pin", "--check", lock, "--data", history)
    check(status == 0 and out.count(" yes") == len(entries), "all apply", status, out, err)
    again = box.path("again.wpk")
    status, out, err = box.run("wpkctl", "tune", onnx, "-o", again, "--lock", lock, "--data", history,
                               "--candidates", "50")
    check(status == 0 and "%d of %d operators have" % (len(entries), len(entries)) in err, "as pinned", out, err)
    check(open(again, "rb").read() == open(plan, "rb").read(), "the same plan, whatever the budget")

    # Other devices, other histories, and what was changed.
    changed = box.path("changed.lock")
    for index, (member, value, says) in enumerate((
            ("device", "cpu/other/avx2", "it is of cpu/other/avx2"), ("kernel", "k99999", "no such kernel"),
            ("kernel", entries[-1]["kernel"], "another one here"))):
        copies = [dict(entry, **{member: value}) if i == 0 else entry for i, entry in enumerate(entries)]
        json.dump({"version": 1, "entries": copies}, open(changed, "w", encoding="utf-8"))
        status, out, err = box.run("wpkctl", "tune", onnx, "-o", again, "--lock", changed, "--data", history,
                                   "--candidates", "1", seconds=280)
        check(status == 0 and says in err and "it is searched" in err, "entry %d is searched" % index, err)
    copies = [dict(entries[0], choice=entries[0]["choice"].replace('"threads":1', '"threads":2'))] + entries[1:]
    json.dump({"version": 1, "entries": copies}, open(changed, "w", encoding="utf-8"))
    status, out, err = box.run("wpkctl", "pin", "--check", changed, "--data", history)
    check(status == 1 and "not signed" in out and "1 of %d" % len(entries) in err, "a forged one", status, out, err)
    shutil.rmtree(os.path.join(history, "artifacts"))
    status, out, err = box.run("wpkctl", "pin", "--check", lock, "--data", history)
    check(status == 1 and "is missing" in out, "lost objects", status, out, err)
    status, out, err = box.run("wpkctl", "pin", onnx, "-o", lock, "--data", history, "--threads", "2")
    check(status == 4 and "have no kernel" in err, "what was never tuned", status, out, err)
    check("a model" in refused(box, "tune", os.path.join(ROOT, "examples", "demo.json"), "--lock", lock), "a job")


def test_show(box):
    folder, plan = tuned(box)
    drawing = os.path.join(folder, "plan.svg")
    status, out, err = box.run("wpkctl", "show", plan, "-o", drawing)
    check(status == 0, "drawn", out, err)
    texts = [e.text for e in xml.etree.ElementTree.parse(drawing).iter("{http://www.w3.org/2000/svg}text")]
    check("x" in texts and "y" in texts, "the ends", texts)
    check(any(" + " in text for text in texts), "a step of several nodes", texts)
    check("its output is its input's memory" in texts, "what is no step", texts)
    page = os.path.join(folder, "plan.html")
    status, out, err = box.run("wpkctl", "report", plan, "-o", page)
    check(status == 0, "a report", out, err)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    check("default-src 'none'" in text and not re.search(r"\b(src|href)=|<script", text), "it needs nothing else")
    steps = re.findall(r'<tr><td class="n">(\d+)</td><td class="n">[0-9.]+</td>', text)
    check(steps == [str(n) for n in range(len(steps))] and len(steps) == len(told_steps(box, plan)), "times", steps)
    check("its output is its input&#39;s memory" in text and "medians of" in text, "what is no step", text[-3000:])
    for model, title in ((plan.replace(".wpk", ".onnx"), "The model&#39;s own graph"), (os.path.join(make_model(box, "recurrent"), "recurrent.onnx"), "The graph of another model")):
        status, out, err = box.run("wpkctl", "report", plan, "--onnx", model, "-o", page)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        check(status == 0 and title in text and ("step 0</text>" in text) == ("own" in title), "a model's graph", err, text)
    check("not an ONNX model" in refused(box, "report", plan, "--onnx", drawing, "-o", page), "no model")
    hostile = os.path.join(folder, "hostile.html")
    status, out, err = box.run("wpkctl", "report", rewritten(plan, name_hostile), "-o", hostile)
    with open(hostile, encoding="utf-8") as file:
        text = file.read()
    check(status == 0 and "&lt;script&gt;alert(1)" in text and "<script" not in text and "\u202e" not in text,
          "hostile names are text", status, err, text[-3000:])
    check("absent" in refused(box, "report", "absent", "-o", page), "no plan")
    dashboard = box.start("wpkctl", "dashboard", "--plan", plan, "--data", box.path("history"))
    url = wait_for("its URL", lambda: re.search(r"http://127.0.0.1:(\d+)(/ui/\?ticket=\w+)",
                                                dashboard.text(dashboard.out)), 60)
    shown = http.client.HTTPConnection("127.0.0.1", int(url.group(1)))
    shown.request("GET", url.group(2))
    answer = shown.getresponse()
    cookie = {"Cookie": answer.getheader("set-cookie").split(";")[0]}
    shown.close()
    shown.request("GET", "/ui/plan", headers=cookie)
    answer = shown.getresponse()
    check(answer.status == 200 and "sandbox" in answer.getheader("content-security-policy") and
          b"medians of" in answer.read(), "a plan among the pages", answer.status)
    check("/ui/plan" in dashboard.text(dashboard.err), "where it is")
    shown.close()
    dashboard.popen.terminate()
    check(dashboard.wait(30)[0] == 0, "it ends when told to")
    status, out, err = box.run("wpkctl", "report", drawing, "-o", page)
    check(status == 1 and "plan.svg: " in err, "not a plan", status, err)
    check("-o says" in refused(box, "show", plan), "no file")
    check("absent.wpk" in refused(box, "show", "absent.wpk", "-o", drawing), "no plan")
    status, out, err = box.run("wpkctl", "show", older(plan), "-o", drawing)
    check(status == 1 and "a plan of version 1" in err, "an older plan", status, err)


def name_hostile(shape):
    for step in shape["steps"]:
        step["node"] = "<script>alert(1)</script>\u202e"
    for note in shape["notes"]:
        note["node"] = note["why"] = "</text></svg><script>alert(2)</script>"


def told_steps(box, plan):
    return json.loads(box.run("wpkctl", "profile", plan, "--json")[1])["steps"]


def older(plan):
    """A copy of the plan that says version 1."""
    with open(plan, "rb") as file:
        whole = bytearray(file.read())
    whole[8] = 1
    with open(plan + ".old.wpk", "wb") as file:
        file.write(whole)
    return plan + ".old.wpk"


def tune_with_gcc(box, folder, script, name):
    """Tune the model tiny where gcc is this script; the nodes of each step of the plan, and what tune said."""
    path, plan, tools = os.path.join(folder, "tiny.onnx"), os.path.join(folder, name + ".wpk"), box.path(name)
    os.makedirs(tools)
    with open(os.path.join(tools, "gcc"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n[ \"$1\" = -dumpfullversion ] && echo 12.2.0 && exit 0\n" + script)
    os.chmod(os.path.join(tools, "gcc"), 0o755)
    before = box.env["PATH"]
    box.env["PATH"] = tools + ":" + before
    status, said, err = box.run("wpkctl", "tune", path, "-o", plan, "--candidates", "1", "--seconds", "60",
                                "--pin", "by=c", "--verify", "--data", box.path("history-" + name), seconds=280)
    box.env["PATH"] = before
    check(status == 0 and "verified: output y" in err, "the plan is right", said, err)
    check("no candidate works for 2 groups of nodes; smaller ones are tried" in err, "regions are cut", err)
    return [step["nodes"] for step in json.loads(box.run("wpkctl", "profile", plan, "--json")[1])["steps"]], err


def test_no_candidate_works(box):
    """Where every candidate of a region fails, smaller ones are tuned, then single nodes; plain kernels are left."""
    folder = make_model(box, "tiny")
    nodes, err = tune_with_gcc(box, folder, "exit 1\n", "nothing")
    check("relu3" in nodes and "add5" in nodes, "steps of single nodes", nodes)
    check(not any(" + " in step for step in nodes), "and no others", nodes)
    # A compiler that can do small kernels alone: the sum and the mean stay one, the convolutions do not.
    small = "for a; do case $a in *main.o.c) [ $(wc -c < $a) -gt 7000 ] && exit 1;; esac; done\nexec %s \"$@\"\n"
    nodes, err = tune_with_gcc(box, folder, small % shutil.which("gcc"), "small")
    check("add5 + globalaveragepool6" in nodes and "conv4" in nodes, "a smaller region", nodes, err)


def test_several_shapes(box):
    """One file with a plan for each set of shapes; the inputs' files say which one runs."""
    folder = make_model(box, "tiny")
    path = edit(folder, "tiny", "free", "m.graph.input[0].type.tensor_type.shape.dim[0].dim_param = 'n'\n"
                "m.graph.output[0].type.tensor_type.shape.dim[0].dim_param = 'rows'\n"
                "w = [t for t in m.graph.initializer if t.name == n['reshape9'].input[1]][0]\n"
                "w.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(w) * 0 + (-1, 2), w.name))")
    plan, drawing, shapes = os.path.join(folder, "free.wpk"), os.path.join(folder, "plan.svg"), []
    x, two, y, out = (os.path.join(folder, n + ".npy") for n in ("x", "two", "y", "out"))
    for batch in (1, 2):
        shapes += ["--shape", "x=%d,%s" % (batch, ",".join(str(d) for d in read_npy(x)[0][1:]))]
    status, said, err = box.run("wpkctl", "tune", path, "-o", plan, "--candidates", "1", "--seconds", "60", "-q",
                                "--data", box.path("history"), "--verify", *shapes, seconds=280)
    check(status == 0 and err.count("verified: output y") == 2, "both are tuned and verified", said, err)
    subprocess.run([PYTHON, "-c", "import numpy, sys; x = numpy.load(sys.argv[1]); numpy.save(sys.argv[2], "
                    "numpy.concatenate([x, x]))", x, two], check=True)
    for file, batch in ((x, 1), (two, 2)):
        status, said, err = box.run("wpkctl", "run", plan, "--input", "x=" + file, "--output", "y=" + out)
        check(status == 0, "a batch of %d" % batch, said, err)
        (extents, found), (_, wanted) = read_npy(out), read_npy(y)
        check(extents == [3 * batch, 2], "its rows", extents)
        check(max(abs(a - b) for a, b in zip(found, wanted * batch)) <= TOLERANCE * max(map(abs, wanted)),
              "what it computes", found, wanted)
    for words in (("run", plan, "--random", *shapes[2:]), ("profile", plan, *shapes[2:]),
                  ("show", plan, "-o", drawing, *shapes[2:])):
        status, said, err = box.run("wpkctl", *words)
        check(status == 0, "%s" % (words,), said, err)
    err = refused(box, "run", plan, "--random", "--shape", "x=9," + shapes[1].split(",", 1)[1])
    check("was not tuned for these shapes, but for x=1," in err and "; x=2," in err, "another batch", err)
    check("no input of 'z=1'" in refused(box, "run", plan, "--random", "--shape", "z=1"), "another input")
    check("only tune takes more" in refused(box, "check", path, *shapes), "check takes one")


def genes_of(candidate):
    return dict(word.split("=", 1) for word in candidate.split() if "=" in word)


def test_shapes_share_packing(box):
    """A search of another shape keeps to the weights' packing of the first one's kernel, and to nothing else of it."""
    job = {"name": "rows", "search": {"pin": {"packing": "shared"}, "strategy": "random"},
           "budget": {"candidates": 6, "seconds": 60}}
    for rows in (48, 20):
        job["ops"] = [{"name": "p%d" % rows, "op": "C[i,j] = sum(k) A[i,k] * B[k,j]", "constants": ["B"],
                       "tensors": {"A": "f32[%d,96]" % rows, "B": "f32[96,144]", "C": "f32[%d,144]" % rows}}]
        file = box.path("job.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(job, out)
        status, said, err = box.run("wpkctl", "tune", file, "-q", "--data", box.path("history"))
        check(status == 0, "%d rows" % rows, said, err)
    with contextlib.closing(sqlite3.connect(os.path.join(box.path("history"), "history.db"))) as db:
        searches = dict(db.execute("SELECT id, packing FROM search ORDER BY id"))
        tried = [genes_of(text) for text, in db.execute(
            "SELECT t.candidate FROM ask a JOIN trial t ON t.id = a.trial_id WHERE a.search_id = ?", (max(searches),))]
    check(searches[min(searches)] == "" and searches[max(searches)] != "", "the second has the first's", searches)
    first = genes_of(searches[max(searches)])
    axis = [name for name in first if name.endswith(".vec")][0][:-4] + ".tile.a1"
    check(tried and {t[axis] for t in tried} == {first[axis]}, "tiles of the weights' columns", first, tried)
    check(len({str(t) for t in tried}) > 1, "candidates differ", tried)


def place_of(history):
    """Of the model `places`: strategy and candidates of the convolution whose output has a border, and all
    candidates of the other one."""
    with contextlib.closing(sqlite3.connect(os.path.join(history, "history.db"))) as db:
        rows = db.execute(
            "SELECT s.strategy, t.candidate, p.op LIKE '%output t4%pad%' FROM problem p JOIN search s ON s.problem_id = p.id"
            " JOIN ask a ON a.search_id = s.id JOIN trial t ON t.id = a.trial_id WHERE p.extents ="
            " '1,12,12,16,16,1,12,12,16'").fetchall()
    return ({r[0] for r in rows if r[2]}, {r[1] for r in rows if r[2]}, {r[1] for r in rows if not r[2]})


def test_interrupted(box):
    """Ctrl-C leaves a plan: what was found until then, and one candidate where there was nothing."""
    folder = make_model(box, "places")
    path, plan = os.path.join(folder, "places.onnx"), os.path.join(folder, "places.wpk")
    tune = box.start("wpkctl", "tune", path, "-o", plan, "--candidates", "1000", "--seconds", "600",
                     "--data", box.path("history"))
    wait_for("progress", lambda: tune.note() is None and " tried" in tune.text(tune.err))
    tune.popen.send_signal(signal.SIGINT)
    code, out, err = tune.wait(60)
    check(code == 130 and "interrupted" in err and os.path.exists(plan), "a plan", code, out, err)
    strategies, candidates, known = place_of(box.path("history"))
    check(strategies == {"nearest"} and len(candidates) == 1 and candidates <= known,
          "the one with a border takes the schedule of the other", strategies, candidates, known)
    x, y, out = (os.path.join(folder, n + ".npy") for n in ("x", "y", "out"))
    status, said, err = box.run("wpkctl", "run", plan, "--input", "x=" + x, "--output", "y=" + out)
    check(status == 0 and compare(out, y) <= TOLERANCE, "it computes the model", said, err)


def test_time_is_over(box):
    """--seconds is the time of a whole model: then it ends as after Ctrl-C, but as it should."""
    folder = make_model(box, "pair")
    path, plan = os.path.join(folder, "pair.onnx"), os.path.join(folder, "pair.wpk")
    status, said, err = box.run("wpkctl", "tune", path, "-o", plan, "--candidates", "1000", "--seconds", "1",
                                "--data", box.path("history"), seconds=280)
    check(status == 0 and "the time is over; a plan needs a kernel of every operator" in err and os.path.exists(plan), "a plan", said, err)


def test_integers_are_exact(box):
    """Every operator on integers, and casts: the interpreter and kernels, beside ONNX Runtime."""
    if not os.path.exists(PYTHON):
        raise Skip("no onnx: deploy/setup.sh test")
    script = os.path.join(ROOT, "tests/integers.py")
    for name in ("i4", "i8"):
        folder = box.path("integers-" + name)
        os.makedirs(folder)
        path, plan = os.path.join(folder, "integers.onnx"), os.path.join(folder, "integers.wpk")
        made = subprocess.run([PYTHON, script, "write", name, folder], capture_output=True, text=True, check=False)
        check(made.returncode == 0, "integers.py writes a model", made.stderr[-1500:])
        words = []
        for file in sorted(os.listdir(folder)):
            tensor, _, rest = file.partition(".")
            if rest == "npy":
                words += ["--input", "%s=%s/%s" % (tensor, folder, file)]
            elif rest == "want.npy":
                words += ["--output", "%s=%s/%s.got.npy" % (tensor, folder, tensor)]
        runs = [(path, "--interpret")]
        if name == "i8":  # tests/edge_programs.c has kernels of i32
            status, out, err = box.run("wpkctl", "tune", path, "-o", plan, "--candidates", "1", "--threads", "1",
                                       "-q", "--data", box.path("history"), seconds=280)
            check(status == 0, "it is tuned", out, err)
            runs += [(plan, "--check"), (plan, "--verify", path)]
        for run in runs:
            status, out, err = box.run("wpkctl", "run", *run, *words, seconds=60)
            check(status == 0, "%s" % (run,), out, err)
            told = subprocess.run([PYTHON, script, "compare", folder], capture_output=True, text=True, check=False)
            check(told.returncode == 0 and not told.stdout, "%s computes what ONNX Runtime does" % (run,),
                  told.stdout, told.stderr[-1500:])


def test_kills(box):
    """kill -9 of every program of a tune, one after the other; of wpkctl itself in the end. Results found before a kill
    are kept, and the plan is right."""
    folder = make_model(box, "places")
    path, plan = os.path.join(folder, "places.onnx"), os.path.join(folder, "places.wpk")
    words = ("wpkctl", "tune", path, "-o", plan, "--candidates", "3", "--data", box.path("killed"))
    tune = box.start(*words)
    for name in ("wpk-builder", "wpk-runner", "wpk-worker", "wpkd"):
        def below():
            check(tune.note() is None, "%s is killed while it runs" % name, tune.text(tune.err))
            return [pid for pid, (_, found) in descendants(tune.popen.pid).items() if found == name[:15]]
        victim = wait_for(name, below)[0]
        check(kill(victim), name)
        time.sleep(0.5)
    kill(tune.popen.pid)
    tune.popen.wait()
    status, said, err = box.run(*words, "-q", seconds=280)
    check(status == 0, "again", said, err)
    strategies, candidates, known = place_of(box.path("killed"))
    check(strategies == {"nearest"} and len(candidates) == 1 and len(known) == 3 and candidates <= known,
          "one search for both places", strategies, candidates, known)
    x, y, out = (os.path.join(folder, n + ".npy") for n in ("x", "y", "out"))
    status, said, err = box.run("wpkctl", "run", plan, "--input", "x=" + x, "--output", "y=" + out)
    check(status == 0 and compare(out, y) <= TOLERANCE, "it computes the model", said, err)


def test_tune_by_a_service(box):
    """The model stays here; the service tunes its operators."""
    service = Service(box)
    service.add_worker()
    folder = make_model(box, "lookup")
    path, plan = os.path.join(folder, "lookup.onnx"), os.path.join(folder, "lookup.wpk")
    status, said, err = box.run("wpkctl", "tune", path, "-o", plan, "--candidates", "1", "-q", "--server", service.url,
                                "--verify", seconds=280)
    check(status == 0 and "verified: output y" in err, "the plan is that of the model", said, err)
    service.stop()


def test_two_threads(box):
    """Of a plan for two threads, steps that are soon done have one thread where that is faster."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("one core")
    folder = make_model(box, "tiny")
    path, plan = os.path.join(folder, "tiny.onnx"), os.path.join(folder, "tiny.wpk")
    status, said, err = box.run("wpkctl", "tune", path, "-o", plan, "--threads", "2", "--candidates", "1", "-q",
                                "--verify", "--data", box.path("history"), seconds=280)
    check(status == 0 and "verified: output y" in err, "the plan is that of the model", said, err)
    with contextlib.closing(sqlite3.connect(box.path("history/history.db"))) as history:
        threads = dict(history.execute("SELECT substr(policy, 1, 10), count(*) FROM problem GROUP BY 1"))
    check(threads == {"threads=1;": 4, "threads=2;": 4}, "both forms are tuned", threads)


def test_data_decides_a_shape(box):
    """How many elements are not 0 is told by --shape, and compared in each run."""
    folder = make_model(box, "where")
    x, y, out, path, plan = (os.path.join(folder, n) for n in
                             ("x.npy", "y.npy", "out.npy", "where.onnx", "where.wpk"))
    err = refused(box, "check", path)
    check("(NonZero): data decides how many elements are not 0" in err, "it has to be told", err)
    name = re.search(r"--shape (\S+)=3,COUNT", err).group(1)
    tune = ("tune", path, "-o", plan, "--candidates", "1", "-q", "--data", box.path("history"), "--verify", "--shape")
    status, said, err = box.run("wpkctl", *tune, name + "=3,12", seconds=280)
    check(status == 0 and "verified: output y" in err, "the plan is that of the model", said, err)
    status, said, err = box.run("wpkctl", "run", plan, "--input", "x=" + x, "--output", "y=" + out, "--verify", path,
                                "--shape", name + "=3,12")
    check(status == 0 and compare(out, y) == 0, "it computes what ONNX Runtime does", said, err)
    for count in ("11", "13"):
        err = refused(box, *tune, name + "=3," + count, status=2)
        check("12 elements are not 0; the plan was made for " + count in err, "another number", err)
    check("12 elements are not 0, and --shape says 11" in refused(
        box, "run", path, "--interpret", "--random", "--shape", name + "=3,11"), "likewise interpreted")
    check("its output is 3,COUNT" in refused(box, "check", path, "--shape", name + "=2,12"), "its rank")


def test_plans_of_other_models(box):
    for name in ("attention", "recurrent", "depthwise", "masked", "odd", "branches"):
        folder = make_model(box, name)
        x, y, out, path, plan = (os.path.join(folder, n) for n in
                                 ("x.npy", "y.npy", "out.npy", name + ".onnx", name + ".wpk"))
        status, said, err = box.run("wpkctl", "tune", path, "-o", plan, "--candidates", "1", "--seconds", "60",
                                    "-q", "--data", box.path("history"), seconds=280)
        check(status == 0, "the model is tuned", said, err)
        status, said, err = box.run("wpkctl", "run", plan, "--input", "x=" + x, "--output", "y=" + out,
                                    "--verify", path)
        check(status == 0 and compare(out, y) <= TOLERANCE, "it computes what ONNX Runtime does", err)
        check("verified: output y" in err, "and what the model says", err)
        if name == "recurrent":
            told = json.loads(box.run("wpkctl", "check", path, "--json")[1])
            check(told["calls"] > told["steps"], "steps of loops are called several times", told)
            steps = json.loads(box.run("wpkctl", "profile", plan, "--json")[1])["steps"]
            check(sum(step["calls"] for step in steps) == told["calls"] and len(steps) == told["steps"],
                  "in the plan, too", told, steps)
            check(any(step["calls"] == 5 and step["time_ns"] > 0 for step in steps), "a loop of five steps", steps)
            drawing = os.path.join(folder, "plan.svg")
            check(box.run("wpkctl", "show", plan, "-o", drawing)[0] == 0, "drawn")
            with open(drawing, encoding="utf-8") as file:
                check("5 × Gemm" in file.read(), "the drawing says how often")
        if name == "attention":
            check(steps_in_place(plan), "a sum takes the memory of what it is added to")
            err = refused(box, "run", rewritten(plan, overwrite_a_value), "--random", "--check", status=1)
            check("it was overwritten" in err, "a value that another one overwrites", err)
    err = refused(box, "run", plan, "--random", "--verify", os.path.join(box.path(""), "none.onnx"))
    check("none.onnx" in err, "a model that is not there", err)
    # Three convolutions and three products are one each; nothing is only moved.
    told = json.loads(box.run("wpkctl", "check", path, "--json")[1])
    check(told["steps"] == 10, "the steps", told["regions"])
    check(0 < told["roofline_ns"] <= told["expected_ns"], "what it may take", told)
    known = box.run("wpkctl", "check", path, "--data", box.path("history"))[1]
    check("(steps: measured 10)" in known, "history knows all of it", known)
    drawing = os.path.join(folder, "plan.svg")
    check(box.run("wpkctl", "show", plan, "-o", drawing)[0] == 0, "drawn")
    with open(drawing, encoding="utf-8") as file:
        drawn = html.unescape(file.read())
    for text in ("its inputs are parts of its output", "its output is its input's memory", "computed as one: "):
        check(text in drawn, text, drawn)


def test_refused_before_anything_starts(box):
    folder = make_model(box, "tiny")
    path = os.path.join(folder, "tiny.onnx")
    check("-o FILE.wpk" in refused(box, "tune", path), "where the plan goes")
    check("--layouts" in refused(box, "tune", path, "-o", "p.wpk", "--layouts", "any"), "row-major")
    check("leave --gpu out" in refused(box, "tune", path, "-o", "p.wpk", "--gpu", "emulated"), "a GPU")
    check("absent.onnx" in refused(box, "tune", os.path.join(folder, "absent.onnx"), "-o", "p.wpk"),
          "a missing model")
    check("absent.wpk" in refused(box, "run", os.path.join(folder, "absent.wpk")), "a missing plan")
    check(not os.path.exists(box.path("history")), "nothing was started")


if __name__ == "__main__":
    main(globals())

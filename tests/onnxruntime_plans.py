# SPDX-License-Identifier: Apache-2.0
"""Plans in sessions of the provider of ONNX Runtime:

    onnxruntime_plans.py FOLDER

FOLDER is for files. WOODPECKER_ONNXRUNTIME_LIBRARY names the library, WPK_BIN the folder of wpkctl. With WPK_URL the
service there is told what has no plan, and nothing else is done. Ends with 0 if everything is as it should be.
"""
import glob
import os
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
import onnxruntime_ep_woodpecker as ep  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnxruntime_ep_woodpecker import _plans  # noqa: E402

FOLDER = sys.argv[1]
WORDS = ["--candidates", "1", "--data", os.path.join(FOLDER, "history")]
WAIT_S = 200
RNG = np.random.default_rng(46)


def many(at, to, op="Tanh"):
    """Many small nodes, which one kernel computes: a plan is faster for sure."""
    nodes = []
    for i in range(12):
        nodes.append(helper.make_node("Mul", [at, "f"], ["m%d" % i]))
        nodes.append(helper.make_node(op if i % 2 else "Relu", ["m%d" % i], [to if i == 11 else "t%d" % i]))
        at = "t%d" % i
    return nodes


def model(factor, extent="n", op="Tanh"):
    graph = helper.make_graph(many("x", "y", op), "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [extent, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [extent, 64])],
                              [numpy_helper.from_array(np.float32(factor), "f")])
    return serialize(graph)


def shaped():
    """A model whose result has a shape that is computed from the elements of `s`; those of `i` are data."""
    nodes = [helper.make_node("Abs", ["s"], ["a"]), helper.make_node("Concat", ["a", "rest"], ["shape"], axis=0),
             helper.make_node("Gather", ["x", "i"], ["g"]), helper.make_node("Reshape", ["g", "shape"], ["r"])]
    graph = helper.make_graph(nodes + many("r", "y"), "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64]),
                               helper.make_tensor_value_info("s", TensorProto.INT64, [1]),
                               helper.make_tensor_value_info("i", TensorProto.INT64, [4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None])],
                              [numpy_helper.from_array(np.float32(1.25), "f"),
                               numpy_helper.from_array(np.array([-1]), "rest")])
    return serialize(graph)


def serialize(graph):
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    onnx.checker.check_model(made)
    return made.SerializeToString()


def session(made, threads=1, **more):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # who runs, works
    return ort.InferenceSession(made, options, **more)


def said(where, call, count=1):
    """Call a session until it has tried so many plans: the text that says what came of one."""
    end = time.monotonic() + WAIT_S
    while len(glob.glob(where + "/*.said")) < count and time.monotonic() < end:
        assert not glob.glob(where + "/*.failed"), open(glob.glob(where + "/*.failed")[0], encoding="utf-8").read()
        call()
        time.sleep(0.02)
    found = glob.glob(where + "/*.said")
    assert len(found) >= count, "tried so few plans: %d" % len(found)
    with open(found[0], encoding="utf-8") as file:
        return file.read()


def wait_for_plans(where, count):
    end = time.monotonic() + WAIT_S
    while len(glob.glob(where + "/*[!t].wpk")) < count:
        assert time.monotonic() < end, os.listdir(where)
        time.sleep(0.02)


def wanted(where, count):
    """Wait for so many files of shapes without a plan; a thread of the session writes them."""
    end = time.monotonic() + WAIT_S
    while len(found := glob.glob(where + "/*.want")) < count:
        assert time.monotonic() < end, found
        time.sleep(0.02)
    return found


def check(ours, plain, x, **more):
    found, wanted = ours.run(None, {"x": x, **more})[0], plain.run(None, {"x": x, **more})[0]
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    assert np.allclose(found, wanted, atol=1e-5), np.abs(found - wanted).max()


def together(calls):
    """Make each call 50 times, in a thread of its own."""
    done = []
    threads = [threading.Thread(target=lambda call=call: done.append([call() for _ in range(50)])) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == len(threads), "a thread has failed"


def tasks():
    """The threads of this process, with the ticks that each has run."""
    found = {}
    for path in glob.glob("/proc/self/task/*/stat"):
        with open(path, encoding="utf-8") as file:
            words = file.read().rpartition(")")[2].split()
            found[int(path.split("/")[4])] = int(words[11]) + int(words[12])
    return found


def misses():
    """A service is told what a session was called with, how often and for how long; without one nobody is asked."""
    where = os.path.join(FOLDER, "misses")
    _plans.TELL_S = 0.1
    for url, count in (("", 0), (os.environ["WPK_URL"], 2)):
        os.environ["WPK_URL"] = url
        assert ep.install(plans=where)
        ours = session(model(1.25))
        for rows in (5, 7):
            for _ in range(4 * rows):
                ours.run(None, {"x": np.zeros((rows, 64), np.float32)})
        wanted(where, 2)
        end = time.monotonic() + (WAIT_S if count else 2.5)
        while time.monotonic() < end and (not count or len(glob.glob(where + "/*.told")) < count):
            time.sleep(0.1)
        assert len(glob.glob(where + "/*.told")) == count, os.listdir(where)
        for _ in range(3):
            ours.run(None, {"x": np.zeros((7, 64), np.float32)})
        del ours  # what was called since is in a file, which is told in its turn
        while time.monotonic() < end and count and glob.glob(where + "/*.calls"):
            time.sleep(0.1)
        assert not glob.glob(where + "/*.calls"), os.listdir(where)
        ours = session(model(1.25))
        ours.run(None, {"x": np.zeros((5, 64), np.float32)})  # at the end of the process
        ep.uninstall()


def main():
    x, made = np.linspace(-2, 2, 320, dtype=np.float32).reshape(5, 64), model(1.25)
    plain, other = session(made), session(model(0.5))

    # In the background: the first calls run on the twin, later ones on the plan.
    where = os.path.join(FOLDER, "plans")
    assert ep.install(tune="background", plans=where, words=WORDS)
    ours = session(made)
    assert said(where, lambda: check(ours, plain, x)).startswith("serves"), said(where, None)
    check(ours, plain, x)
    check(ours, plain, x[:3])  # other shapes are noted
    together([lambda: check(ours, plain, x)] * 4)
    check(ours, plain, np.full_like(x, np.nan)[:0])
    plan, = glob.glob(where + "/*.wpk")
    ep.uninstall()

    # A plan that is there serves another session; shapes that none is for are listed.
    quiet = os.path.join(FOLDER, "quiet")
    os.mkdir(quiet)
    shutil.copy(plan, quiet)
    assert ep.install(plans=quiet)
    ours = session(made)
    assert said(quiet, lambda: check(ours, plain, x)).startswith("serves")
    check(ours, plain, x[:2])
    wanted(quiet, 2)
    told = subprocess.run([sys.executable, "-m", "onnxruntime_ep_woodpecker", "misses"], capture_output=True, text=True,
                          check=True, env={**os.environ, "WOODPECKER_PLANS": quiet, "PYTHONPATH": sys.path[0]})
    assert "x=2,64" in told.stdout and "x=5,64" not in told.stdout, told.stdout
    ep.uninstall()

    # One of another model, and one that is damaged, serve nothing.
    for name, change in (("other", None), ("damaged", b"\0" * 100)):
        folder = os.path.join(FOLDER, name)
        ep.install(plans=folder)
        ours = session(model(0.5))
        check(ours, other, x)
        target = wanted(folder, 1)[0][:-len(".want")] + ".wpk"
        with open(plan, "rb") as file:
            data = file.read()
        with open(target + ".part", "wb") as file:
            file.write(data if change is None else data[:200] + change + data[300:])
        os.rename(target + ".part", target)
        assert said(folder, lambda: check(ours, other, x)).startswith("refused"), said(folder, None)
        check(ours, other, x)
        ep.uninstall()

    # A session that waits for its plan.
    now = os.path.join(FOLDER, "now")
    assert ep.install(tune="now", plans=now, words=WORDS)
    ours = session(model(1.25, 5))
    assert said(now, lambda: check(ours, plain, x)).startswith("serves")
    check(ours, plain, x)
    ep.uninstall()

    # Loops of a plan run on the session's threads, not on the twin's; the provider adds the one that watches for plans.
    pool, large = os.path.join(FOLDER, "pool"), np.linspace(-2, 2, 1280000, dtype=np.float32).reshape(20000, 64)
    alone = session(model(0.9, op="Sqrt"))
    assert ep.install(tune="background", plans=pool, words=WORDS)
    ours = session(model(0.9, op="Sqrt"), 2)
    started = set(tasks())
    check(ours, alone, large)
    wait_for_plans(pool, 1)
    assert said(pool, lambda: check(ours, alone, large)).startswith("serves"), said(pool, None)
    assert "threads 2" in open(wanted(pool, 1)[0], encoding="utf-8").read().splitlines()
    before, end = tasks(), time.monotonic() + 2
    while time.monotonic() < end:
        ours.run(None, {"x": large})
    worked = {task: ticks - before.get(task, 0) for task, ticks in tasks().items() if task != os.getpid()}
    first = max(worked, key=worked.get)
    assert first in started and worked[first] > 5, (first, worked, started)
    assert len(set(worked) - started) == 1, ("threads of the provider", worked, started)
    check(ours, alone, large)
    ep.uninstall()

    # A plan that is opened while another one is tried has its turn afterwards, without further calls.
    turn = os.path.join(FOLDER, "turn")
    assert ep.install(tune="background", plans=turn, words=WORDS)
    ours = session(made)
    check(ours, plain, large)
    check(ours, plain, x)
    wait_for_plans(turn, 2)
    time.sleep(2)  # both are open
    check(ours, plain, large)
    check(ours, plain, x)
    said(turn, lambda: None, 2)
    ep.uninstall()

    # A plan that has to go for another one is opened and tried again once it is called; the file is then written again.
    room = os.path.join(FOLDER, "room")
    assert ep.install(tune="background", plans=room, words=WORDS)
    for limit, again in (("0", 1), ("1024", 0)):
        ours = session(made, providers=[(ep.get_ep_name(), {"plans_mb": limit})])
        found = []
        for rows in (5, 3):
            said(room, lambda rows=rows: check(ours, plain, x[:rows]), len(found) + 1)
            found += set(glob.glob(room + "/*.said")) - set(found)
        os.remove(found[0])
        for _ in range(100 if again == 0 else 0):
            check(ours, plain, x)
            time.sleep(0.01)
        assert len(glob.glob(room + "/*.said")) == 1, "both plans fit"
        if again:
            assert said(room, lambda: check(ours, plain, x), 2).startswith("serves")
        together([lambda rows=rows: check(ours, plain, x[:rows]) for rows in (5, 3, 5, 3)])
        del ours
        for path in glob.glob(room + "/*.said"):
            os.remove(path)
    ep.uninstall()

    # Elements that decide on a shape are part of the key, others are not; what a plan for them serves is right for all.
    values = os.path.join(FOLDER, "values")
    alone = session(shaped())
    assert ep.install(tune="background", plans=values, words=WORDS)
    ours = session(shaped())
    for extent in (8, -8, 16):
        s = np.array([extent])
        said(values, lambda s=s: check(ours, alone, x, s=s, i=RNG.integers(0, 5, 4)), {8: 1, -8: 2, 16: 3}[extent])
        for _ in range(5):
            check(ours, alone, x, s=s, i=RNG.integers(0, 5, 4))
    texts = [open(path, encoding="utf-8").read() for path in glob.glob(values + "/*.said")]
    assert all(text.startswith("serves") for text in texts), texts
    assert len(wanted(values, 3)) == 3 and open(wanted(values, 3)[0], encoding="utf-8").read().count(":") == 2
    ep.uninstall()

    # A process ends while a thread makes plans.
    program = ("import sys, threading, time\nfrom onnxruntime_ep_woodpecker import _plans\n"
               "def work():\n    while True:\n        _plans._free_inputs(sys.argv[1])\n"
               "threading.Thread(target=work, daemon=True).start()\ntime.sleep(1)\n")
    told = subprocess.run([sys.executable, "-c", program, glob.glob(values + "/*.onnx")[0]], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": sys.path[0]})
    assert told.returncode == 0, told

    # A folder that cannot be used: sessions run without plans.
    assert ep.install(plans="/proc/none")
    check(session(made), plain, x)
    ep.uninstall()
    print("passed")


if "WPK_URL" in os.environ:
    misses()
else:
    main()

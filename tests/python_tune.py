# SPDX-License-Identifier: Apache-2.0
"""Tunes a model and an operator from Python, and uses a service:

    python_tune.py MODEL.onnx X.npy Y.npy URL JOB.json FOLDER

WPK_BIN is the folder of wpkctl, WOODPECKER_LIBRARY libwpk. Ends with 0 if everything is as it should be.
"""
import logging
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import numpy as np  # noqa: E402
import woodpecker as wpk  # noqa: E402

TOLERANCE = 1e-5


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), (words, str(error))
        return error
    raise AssertionError("%s is not raised" % kind.__name__)


def near(found, wanted):
    return np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max()


def test_op(data):
    random = np.random.default_rng(0)
    a, b = random.standard_normal((9, 32)).astype("f4"), random.standard_normal((32, 24)).astype("f4")
    multiply = wpk.op("C[i,j] = relu(sum(k) A[i,k]*B[k,j])", A="f32[9,32]", B="f32[32,24]", constants="B")
    raises(wpk.InvalidInput, lambda: multiply(a, b), "tune() comes first")
    assert multiply.tune(candidates=1, data=data, progress=False) is multiply
    for factor in (1, 2):  # other weights are packed again
        assert near(multiply(a, b * factor), np.maximum(a @ (b * factor), 0))
    raises(wpk.InvalidInput, lambda: multiply(a), "A, B")
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append((record.levelname, record.getMessage()))
    logging.getLogger("woodpecker").addHandler(handler)
    logging.getLogger("woodpecker").setLevel(logging.DEBUG)
    multiply.why()
    logging.getLogger("woodpecker").removeHandler(handler)
    assert said and said[0][0] == "INFO" and said[0][1].startswith("wpkctl why "), said
    raises(wpk.InvalidInput, lambda: wpk.op("C[i] = A[i+1]", A="f32[4]"), "C=")
    raises(wpk.InvalidInput, lambda: wpk.op("C[i] = A[i]", A="f32[4"), "A", "f32[4")
    raises(wpk.InvalidInput, lambda: wpk.op("C[i] = A[i] +", A="f32[4]").tune(candidates=1, data=data), "op:1:")


def test_bfloat16(data):
    """An operator and a plan on arrays of bf16: ml_dtypes' are taken as they are, outputs are bf16 by DLPack."""
    import ml_dtypes
    from onnx import TensorProto, helper

    x, y = (np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16) * factor for factor in (1, 3))
    double = wpk.op("C[i,j] = A[i,j] + A[i,j] + B[i,j]", A="bf16[3,4]", B="bf16[3,4]", C="bf16[3,4]")
    double.tune(candidates=1, data=data, progress=False)
    assert (double(x, y).view(ml_dtypes.bfloat16) == 5 * x).all()

    ends = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, [3, 4]) for name in "xyz"]
    nodes = [helper.make_node("Add", ["x", "y"], ["s"]), helper.make_node("Mul", ["s", "y"], ["z"])]
    model = helper.make_model(helper.make_graph(nodes, "add", ends[:2], ends[2:]),
                              opset_imports=[helper.make_opsetid("", 22)])
    plan = wpk.compile(model, seconds=0, data=data, progress=False)
    z = np.empty_like(x)
    assert plan.run({"x": x, "y": y}, out={"z": z})["z"] is z and (z == (x + y) * y).all()
    found = plan.run({"x": x.view("u2"), "y": y})["z"]
    assert (found == z.view("u2")).all() and hasattr(type(found), "__dlpack__") and type(found) is not np.ndarray
    raises(wpk.InvalidInput, lambda: plan.run({"x": x.astype("f4"), "y": y}, copy=True), "x is bfloat16[3, 4], and float32")


def test_compile(model, x, y, data, folder):
    plan = wpk.compile(model, seconds=0, data=data, progress=False)
    assert near(plan.run({"x": x})["y"], y)
    steps = plan.profile()
    assert steps and all(step["time_ns"] > 0 for step in steps)
    assert "<svg" in plan._repr_html_() and "<table" in plan._repr_html_()
    told = plan.report()["engines"]
    assert told[0]["name"] == "wpk" and (told[1].get("ratio", 0) > 0 or told[1]["why"]), told
    search = plan.tune(seconds=1)
    raises(wpk.InvalidInput, lambda: plan.tune(), "being tuned")
    while search.is_alive():
        assert near(plan.run({"x": x})["y"], y)
    assert near(plan.run({"x": x})["y"], y)
    saved = os.path.join(folder, "saved.wpk")
    plan.save(saved)
    plan.close()
    assert near(wpk.load(saved).run({"x": x})["y"], y)
    raises(wpk.InvalidInput, lambda: wpk.load(saved).tune(), "a file alone")
    raises(wpk.WoodpeckerError, lambda: wpk.compile(os.path.join(folder, "none.onnx"), data=data), "none.onnx")


def test_interrupt(model, x, y, data):
    """Ctrl-C ends the search, and the plan of what was found is there."""
    threading.Timer(2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    plan = wpk.compile(model, seconds=3000, candidates=100000, data=data, progress=False)
    assert near(plan.run({"x": x})["y"], y)


def test_client(url, job):
    tuner = wpk.Client("unix:/nowhere/at/all," + url)  # the first one does not answer
    made = tuner.submit(job)
    events = list(made.watch(0.2))
    assert made.state == "done" and events[-1]["state"] == "done" and made["ops"], events[-1]
    assert tuner.job(made.id).id == made.id and made.id in [other.id for other in tuner.jobs()]
    assert made.trials() and tuner.workers() and tuner.kernels()
    assert tuner.lookup(tuner.kernels()[0]["fingerprint"])["match"] == "exact"
    op = wpk.op("C[i,j] = A[i,j] + 7", A="f32[3,5]")
    assert tuner.lookup(op)["match"] != "exact"
    error = raises(wpk.ServiceError, lambda: tuner.submit({"ops": 3}), "ops")
    assert error.status in (400, 422) and error.field, (error.status, error.field)
    raises(wpk.WoodpeckerError, lambda: wpk.Client("unix:/nowhere/at/all").jobs(), "/nowhere")
    raises(wpk.InvalidInput, lambda: wpk.Client("tuner"), "unix:")
    raises(wpk.InvalidInput, lambda: wpk.Client(url + ",tuner"), "unix:")
    raises(wpk.InvalidInput, lambda: wpk.Client("http://tuner.example:1", token="secret"), "https")
    raises(wpk.InvalidInput, lambda: wpk.Client("https://a.example,http://b.example:1", token="secret"), "https")


def main():
    model, x, y, url, job, folder = sys.argv[1:]
    x, y, data = np.load(x), np.load(y), os.path.join(folder, "python-history")
    test_op(data)
    test_bfloat16(data)
    test_compile(model, x, y, data, folder)
    test_interrupt(model, x, y, data)
    test_client(url, job)
    print("passed")


main()

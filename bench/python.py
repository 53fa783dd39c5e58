# SPDX-License-Identifier: Apache-2.0
"""Times what Python adds, on small plans that it tunes: python.py [--seconds S]. Needs numpy, onnx and onnxruntime.

A row says what one run by woodpecker costs beside ONNX Runtime's run of a graph that does nothing, in turns; what a further
input costs; what `import woodpecker` adds to numpy; how much memory a plan costs eight processes that were forked behind
load(), beside one.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import tvm_ffi
import onnx
import onnxruntime as ort
import woodpecker as wpk
from onnx import TensorProto, helper, numpy_helper

try:
    import torch
except ImportError:
    torch = None

CALLS = 2000  # of a round
WEIGHTS = 2048  # rows and columns: 16 MB, which processes share


def save(path, nodes, inputs, output, constants=()):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs],
                              [helper.make_tensor_value_info(*output)], list(constants))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def sum_of(count, folder):
    """A plan that adds so many small inputs, and arrays for it."""
    names = ["x%d" % i for i in range(count)]
    path = save(os.path.join(folder, "sum%d.onnx" % count), [helper.make_node("Sum", names, ["y"])],
                [(n, (16,)) for n in names], ("y", TensorProto.FLOAT, (16,)))
    plan = wpk.compile(path, candidates=1, data=os.path.join(folder, "history"), progress=False)
    return plan, {n: np.ones(16, "f4") for n in names}


def round_of(call):
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def turns(calls, seconds):
    """The medians of each call's time in us, and of the quotients of the first two, in turns."""
    times, end = [[] for _ in calls], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for i, call in enumerate(calls):
            times[i].append(round_of(call))
    return [statistics.median(t) for t in times], statistics.median(a / b for a, b in zip(times[0], times[1]))


def import_ms():
    code = "import numpy, time; t = time.perf_counter(); import woodpecker; print((time.perf_counter() - t) * 1e3)"
    return statistics.median(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
                             for _ in range(9))


def own_memory():
    """The memory of this process in MB, of what it shares its part."""
    with open("/proc/self/smaps_rollup", encoding="utf-8") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1e3


def grown_by(plan_path, processes):
    """How much memory loading and running a plan adds, in MB: to one process, or to so many that are forked behind load(),
    beyond what Python itself has more of when as many are forked that have no plan."""
    return memory_of(plan_path, processes) - memory_of(None, processes)


def memory_of(plan_path, processes):
    reads, writes = os.pipe()
    if os.fork() == 0:
        x, before = {"x": np.ones((1, WEIGHTS), "f4")}, own_memory()
        plan = wpk.load(plan_path) if plan_path else None
        run = plan.run if plan_path else len
        run(x)
        children = []
        for _ in range(processes - 1):
            child = os.fork()
            if child == 0:
                run(x)
                time.sleep(0.5)
                os.write(writes, b"%f\n" % own_memory())
                time.sleep(0.5)
                os._exit(0)
            children.append(child)
        time.sleep(0.5 if children else 0)
        os.write(writes, b"%f\n" % own_memory())
        for child in children:
            os.waitpid(child, 0)
        os.write(writes, b"%f\n" % -before)
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as file:
        values = [float(line) for line in file]
    os.wait()
    return sum(values)


def by_tvm(folder, seconds):
    """The medians of a kernel's call by TVM's ABI, with tensors of tvm_ffi, of NumPy and, where it is installed, of torch,
    in us."""
    path, x, y = os.path.join(folder, "add_ffi.so"), np.ones(16, "f4"), np.zeros(16, "f4")
    history = ["--data", os.path.join(folder, "history")]
    wpkctl = os.path.join(os.environ["WPK_BIN"], "wpkctl")
    told = subprocess.run([wpkctl, "tune", "--op", "Y[i] = X[i] + 1", "--tensor", "X=f32[16]", "--tensor", "Y=f32[16]",
                           "--json", "--candidates", "1", *history], check=True, capture_output=True, text=True).stdout
    name = json.loads(told)["kernels"][0]["fingerprint"]
    subprocess.run([wpkctl, "get", name, "--own", "--tvm-ffi", "-o", path, *history], check=True, capture_output=True)
    add = getattr(tvm_ffi.load_module(path), name)
    kept = tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y)
    calls = [lambda: add(*kept), lambda: add(x, y)]
    if torch is not None:
        from_torch = torch.from_numpy(x), torch.from_numpy(y)
        calls.append(lambda: add(*from_torch))
    return turns(calls, seconds)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        empty = ort.InferenceSession(save(os.path.join(folder, "empty.onnx"), [helper.make_node("Identity", ["x"], ["y"])],
                                          [("x", (16,))], ("y", TensorProto.FLOAT, (16,))), providers=["CPUExecutionProvider"])
        one = {"x": np.ones(16, "f4")}
        first, arrays = sum_of(1, folder)
        many, all_arrays = sum_of(9, folder)
        (ours, theirs, nine), ratio = turns(
            [lambda: first.run(arrays), lambda: empty.run(None, one), lambda: many.run(all_arrays)], options.seconds)
        print("one input, one output     %6.2f us; ONNX Runtime's empty graph %.2f us; ours / its %.2f" % (ours, theirs, ratio))
        print("each further input        %6.2f us" % ((nine - ours) / 8))
        texts = "by TVM's ABI              %6.2f us", "with NumPy's arrays %.2f us", "torch's tensors %.2f us"
        print("; ".join(text % us for text, us in zip(texts, by_tvm(folder, options.seconds))))
        print("import woodpecker         %6.1f ms behind numpy" % import_ms())
        weights = numpy_helper.from_array(np.ones((WEIGHTS, WEIGHTS), "f4"), "w")
        path = save(os.path.join(folder, "large.onnx"), [helper.make_node("MatMul", ["x", "w"], ["y"])],
                    [("x", (1, WEIGHTS))], ("y", TensorProto.FLOAT, (1, WEIGHTS)), [weights])
        saved = os.path.join(folder, "large.wpk")
        wpk.compile(path, candidates=1, data=os.path.join(folder, "history"), progress=False).save(saved)
        alone, eight = grown_by(saved, 1), grown_by(saved, 8)
        print("eight processes, forked   %6.1f MB; one %.1f MB" % (eight, alone))


if __name__ == "__main__":
    main()

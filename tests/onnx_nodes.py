# SPDX-License-Identifier: Apache-2.0
"""Runs the node tests of the package onnx through `wpkctl run --interpret`:

    onnx_nodes.py WPKCTL [--tune] [--every N] [--list] [NAME...]

Needs the packages onnx and numpy. Counted apart and not run: twins whose node is expanded into the
function that defines it, and cases with other types than Woodpecker's. A case passes
if all its outputs agree within the case's own tolerances. Ends with 1 if an output is wrong, or if
wpkctl ends otherwise than with 0 or a refusal. `--every N` runs each N-th case, `--list` prints
each refusal, NAME selects the cases whose names contain it. With `--tune` each case that passes is
tuned with one candidate, and its plan run: what is right interpreted has to be right tuned.
"""
import argparse
import collections
import concurrent.futures
import os
import queue
import re
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
from onnx import TensorProto, numpy_helper

warnings.filterwarnings("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402 (warns at import)

TYPES = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16,
         TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.INT32,
         TensorProto.INT64, TensorProto.BOOL}
REFUSED = 2  # exit code

# Inputs that decide on shapes or on the equation's structure: they are given as constants (--bind).
BOUND = {
    "AffineGrid": [1], "BlackmanWindow": [0], "CenterCropPad": [1], "Clip": [1, 2],
    "Col2Im": [1, 2], "Compress": [1], "ConstantOfShape": [0], "CumProd": [1], "CumSum": [1],
    "DFT": [1, 2], "Dropout": [1, 2], "Expand": [1],
    "HammingWindow": [0], "HannWindow": [0], "Loop": [0, 1], "MaxUnpool": [2],
    "OneHot": [1], "Pad": [1, 2, 3], "Range": [0, 1, 2],
    "ReduceL1": [1], "ReduceL2": [1], "ReduceLogSum": [1], "ReduceLogSumExp": [1],
    "ReduceMax": [1], "ReduceMean": [1], "ReduceMin": [1], "ReduceProd": [1], "ReduceSum": [1],
    "ReduceSumSquare": [1], "Reshape": [1], "Resize": [1, 2, 3], "Slice": [1, 2, 3, 4],
    "Split": [1], "STFT": [1, 3], "Squeeze": [1], "Tile": [1], "TopK": [1], "Trilu": [1],
    "Unsqueeze": [1], "Upsample": [1],
}


# A sum that is 0: what is expected is numpy's rounding error, 2e-7 of terms up to 90.
ATOL = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}


# Interpreted in f64, a quotient is a tie, which is none in f32: a step more or less.
STEPS = {"test_dynamicquantizelinear": 1}


def is_ours(case):
    values = list(case.model.graph.input) + list(case.model.graph.output)
    return all(v.type.HasField("tensor_type") and v.type.tensor_type.elem_type in TYPES
               for v in values)


def array_of(data):
    return numpy_helper.to_array(data) if isinstance(data, TensorProto) else np.asarray(data)


def stored(array):
    """As a file has it: NumPy has no bf16."""
    return array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array


def bound_names(model):
    names = set()
    for node in model.graph.node:
        names |= {node.input[i] for i in BOUND.get(node.op_type, ()) if i < len(node.input)}
    return names


def agree(case, found, expected):
    if expected.dtype == ml_dtypes.bfloat16 and found.dtype == np.uint16:
        found = found.view(expected.dtype)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return "%s%s is not %s%s" % (found.dtype, found.shape, expected.dtype, expected.shape)
    if expected.dtype.kind in "iub":
        apart = np.abs(found.astype("f8") - expected.astype("f8"))
        if np.array_equal(found, expected) or (apart <= STEPS.get(case.name, 0)).all():
            return ""
        return "%s is not %s" % (found, expected)
    with np.errstate(all="ignore"):
        atol = ATOL.get(case.name, case.atol)
        rtol = max(case.rtol, 2.0**-6 if expected.dtype == ml_dtypes.bfloat16 else 0)  # NumPy rounds each step
        if np.allclose(found.astype("f8"), expected.astype("f8"), rtol=rtol, atol=atol, equal_nan=True):
            return ""
    return "%s is not %s" % (found.ravel()[:6], expected.ravel()[:6])


class Files:
    """The model of a case and its inputs in a folder, and the options that name them."""

    def __init__(self, case, folder):
        self.case, self.folder = case, folder
        self.model, self.plan = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.wpk")
        self.fixing, self.inputs, self.outputs = [], [], []
        graph, bound = case.model.graph, bound_names(case.model)
        inputs, self.expected = case.data_sets[0]
        with open(self.model, "wb") as file:
            file.write(case.model.SerializeToString())
        for i, (value, array) in enumerate(zip(graph.input, map(array_of, inputs))):
            path = os.path.join(folder, "in%d.npy" % i)
            np.save(path, stored(np.ascontiguousarray(array).reshape(np.shape(array))))
            extents = value.type.tensor_type.shape.dim
            if value.name in bound:
                self.fixing += ["--bind", value.name + "=" + path]
                continue
            self.inputs += ["--input", value.name + "=" + path]
            if any(not d.HasField("dim_value") for d in extents):
                self.fixing += ["--shape", value.name + "=" + ",".join(map(str, np.shape(array)))]
        self.paths = [os.path.join(folder, "out%d.npy" % i) for i in range(len(self.expected))]
        for value, path in zip(graph.output, self.paths):
            self.outputs += ["--output", value.name + "=" + path]

    def call(self, *command, limit=60):
        """(what became of it, why); None: it ended with 0"""
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            return "crashed", "no end within %d s" % limit
        if done.returncode == REFUSED and done.stderr:
            return "refused", re.sub(r"\S*/model\.onnx: ", "", done.stderr.splitlines()[0])
        if done.returncode != 0:
            return "crashed", "exit code %d: %s" % (done.returncode, done.stderr[-300:])
        return None

    def compare(self):
        """(what became of the case, why)"""
        for value, path, expected in zip(self.case.model.graph.output, self.paths, self.expected):
            why = agree(self.case, np.load(path), array_of(expected))
            if why:
                return "wrong", "%s: %s" % (value.name, why)
        return "passed", ""


def run(wpkctl, files):
    """(what became of the case, why)"""
    return files.call(wpkctl, "run", files.model, "--interpret", *files.fixing, *files.inputs,
                      *files.outputs) or files.compare()


def tune(wpkctl, files, history):
    """The same of its plan."""
    return files.call(wpkctl, "tune", files.model, "-o", files.plan, "--candidates", "1",
                      "--threads", "1", "-q", "--data", history, *files.fixing, limit=300) or \
        files.call(wpkctl, "run", files.plan, *files.inputs, *files.outputs) or files.compare()


def run_case(options, case, histories):
    """(case, what became of it, why, what became of its plan, why)"""
    with tempfile.TemporaryDirectory() as folder:
        files = Files(case, folder)
        interpreted = run(options.wpkctl, files)
        tuned = None, ""
        if options.tune and interpreted[0] == "passed":
            history = histories.get()
            tuned = tune(options.wpkctl, files, history)
            histories.put(history)
        return case, *interpreted, *tuned


def tell(case, kind, why, plan, why_plan, with_refusals):
    if kind in ("wrong", "crashed") or (with_refusals and kind == "refused"):
        print("%s %s (%s): %s" % (kind, case.name, operator(case), why), flush=True)
    if plan not in (None, "passed"):
        print("tuned: %s %s (%s): %s" % (plan, case.name, operator(case), why_plan), flush=True)


def operator(case):
    return case.model.graph.node[-1].op_type


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wpkctl")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--tune", action="store_true")
    options = parser.parse_intermixed_args()
    cases = collect_testcases(None)
    twins = [c for c in cases if "_expanded" in c.name]
    others = [c for c in cases if "_expanded" not in c.name and not is_ours(c)]
    skipped = {id(c) for c in twins + others}
    ours = [c for c in cases if id(c) not in skipped]
    chosen = [c for c in ours if not options.names or any(n in c.name for n in options.names)]
    chosen = chosen[::options.every]
    histories, results = queue.Queue(), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, \
            tempfile.TemporaryDirectory() as root:
        for i in range(os.cpu_count()):
            histories.put(os.path.join(root, str(i)))
        for result in pool.map(lambda case: run_case(options, case, histories), chosen):
            results.append(result)
            tell(*result, options.list)
    counts = collections.Counter(kind for _, kind, *_ in results)
    tuned = collections.Counter(kind for *_, kind, _ in results)
    refused = collections.Counter(operator(c) for c, kind, *_ in results if kind == "refused")
    print("refused: " + ", ".join("%s %d" % pair for pair in refused.most_common()))
    print("%d cases: %d passed, %d refused by name, %d wrong, %d crashed; not run: %d expanded "
          "twins, %d of other types" % (
              len(chosen), counts["passed"], counts["refused"], counts["wrong"],
              counts["crashed"], len(twins), len(others)))
    if options.tune:
        print("%d tuned: %d passed, %d refused, %d wrong, %d crashed" % (
            counts["passed"], tuned["passed"], tuned["refused"], tuned["wrong"], tuned["crashed"]))
    failed = counts["wrong"] + counts["crashed"] + \
        (counts["passed"] - tuned["passed"] if options.tune else 0)
    sys.exit(1 if failed or not counts["passed"] else 0)


if __name__ == "__main__":
    main()

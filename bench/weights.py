#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One row by weights that come from memory: how fast they are read, of `make bench-weights`.

    bench/weights.py [KIND...]          default: f32 bf16 i8 i4 i4-integers

A model is a chain of products of one row with 4,096 x 4,096 weights, so many that all of them take 320 MB: each run reads
them from memory. bf16 and i8 are `--weights`; i4 is MatMulNBits at accuracy level 0, i4-integers at level 4. Printed is the
rate at which a plan reads its weights and their scales, and its share of the rate at which a core reads 320 MB in one
stream or in four, whichever is faster (bench/read_rate.c), measured before and after. Read from the environment: CANDIDATES
(12) an operator, and DATA (bench/data/weights), the folder of models, plans and history.
"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, BLOCK, BYTES = 4096, 32, 320 << 20
KINDS = {"f32": 4, "bf16": 2, "i8": 1, "i4": 0.5 + 4 / BLOCK, "i4-integers": 0.5 + 4 / BLOCK}  # bytes a weight


def write_model(kind, path):
    rng = np.random.default_rng(1)
    nodes, constants, x = [], [], "x"
    for i in range(round(BYTES / (WIDTH * WIDTH * KINDS[kind]))):
        y = "y" if i == round(BYTES / (WIDTH * WIDTH * KINDS[kind])) - 1 else "h%d" % i
        if kind.startswith("i4"):
            packed = rng.integers(0, 256, (WIDTH, WIDTH // BLOCK, BLOCK // 2), np.uint8)
            scale = (rng.random(WIDTH * WIDTH // BLOCK, np.float32) + 0.5) / np.float32(5 * WIDTH ** 0.5)
            constants += [numpy_helper.from_array(packed, "w%d" % i), numpy_helper.from_array(scale, "s%d" % i)]
            nodes.append(helper.make_node("MatMulNBits", [x, "w%d" % i, "s%d" % i], [y], domain="com.microsoft", K=WIDTH,
                                          N=WIDTH, bits=4, block_size=BLOCK,
                                          accuracy_level=4 if kind.endswith("integers") else 0))
        else:
            w = rng.standard_normal((WIDTH, WIDTH), np.float32) / np.float32(WIDTH ** 0.5)
            constants.append(numpy_helper.from_array(w, "w%d" % i))
            nodes.append(helper.make_node("MatMul", [x, "w%d" % i], [y]))
        x = y
    row = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, WIDTH]) for name in "xy"]
    graph = helper.make_graph(nodes, "weights", row[:1], row[1:], constants)
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=9), path)


def read_rate():
    program = str(ROOT / "build/bench/bench-read-rate")
    return float(subprocess.run([program, str(BYTES)], check=True, capture_output=True, text=True).stdout)


def main():
    data = pathlib.Path(os.environ.get("DATA", ROOT / "bench/data/weights"))
    wpkctl = str(ROOT / "build/bin/wpkctl")
    data.mkdir(parents=True, exist_ok=True)
    print("%-12s %10s %8s %8s" % ("weights", "ms", "GB/s", "share"))
    for kind in sys.argv[1:] or KINDS:
        path, plan = data / (kind + ".onnx"), data / (kind + ".wpk")
        if not path.exists():
            write_model(kind, path)
        weights = [] if kind == "f32" or kind.startswith("i4") else ["--weights", kind]
        subprocess.run([wpkctl, "tune", path, "-o", plan, "--candidates", os.environ.get("CANDIDATES", "12"), *weights,
                        "--conditions", "cold-constants", "--data", data / "history", "-q", "--json"], check=True,
                       stdout=subprocess.DEVNULL)
        rates = [read_rate()]
        told = subprocess.run([wpkctl, "profile", plan, "--json"], check=True, capture_output=True, text=True)
        rates.append(read_rate())
        ms = json.loads(told.stdout)["run_ns"] / 1e6
        rate = BYTES / ms / 1e6
        print("%-12s %10.3f %8.2f %7.0f %%" % (kind, ms, rate, 100 * rate / max(rates)), flush=True)


if __name__ == "__main__":
    main()

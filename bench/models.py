#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write what is derived from the bench's operators.

    models.py ops.json DIRECTORY

One ONNX model an operator, read by ONNX Runtime and OpenVINO alike: input X (and X1, X2, X3), output Y,
constants inside, with the numbers that bench/op.c makes. And the job files that `make bench-tune` tunes:
any-1.json, fixed-2.json and so on, named by layouts and threads.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INPUT_NAMES = ["X", "X1", "X2", "X3"]
OPSET = 17  # the first with LayerNormalization


def numbers(operand, shape):
    """The values of bench_op_fill(): keep the two alike; the check of results tells if not."""
    index = np.arange(np.prod(shape), dtype=np.uint32)
    bits = index * np.uint32(0x9E3779B1) + np.uint32((operand + 1) * 0x85EBCA77 & 0xFFFFFFFF)
    bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
    bits ^= bits >> np.uint32(12)
    values = (bits >> np.uint32(16)).astype(np.float32) / np.float32(65536) - np.float32(0.5)
    return values.reshape(shape)


def conv(op):
    channels = op["input"][1]
    depthwise = op["type"] == "depthwise_conv2d"
    groups = channels if depthwise else op.get("groups", 1)
    filters = channels if depthwise else op["filters"]
    kernel, stride = op["kernel"], op.get("stride", [1, 1])
    padding = op.get("padding", [0, 0, 0, 0])
    constants = {"W": numbers(1, [filters, channels // groups] + kernel)}
    inputs = ["X", "W"]
    if op.get("bias"):
        constants["B"] = numbers(2, [filters])
        inputs.append("B")
    relu = op.get("activation") == "relu"
    nodes = [helper.make_node("Conv", inputs, ["C" if relu else "Y"], kernel_shape=kernel,
                              strides=stride, pads=padding, group=groups)]
    if relu:
        nodes.append(helper.make_node("Relu", ["C"], ["Y"]))
    out = [(op["input"][2 + i] + padding[i] + padding[2 + i] - kernel[i]) // stride[i] + 1
           for i in range(2)]
    return nodes, constants, op["input"], [1, filters] + out


def matmul(op):
    nodes = [helper.make_node("MatMul", ["X", "W"], ["Y"])]
    return nodes, {"W": numbers(1, op["b"])}, op["a"], [op["a"][0], op["b"][1]]


def softmax(op):
    return [helper.make_node("Softmax", ["X"], ["Y"], axis=-1)], {}, op["shape"], op["shape"]


def layernorm(op):
    columns = op["shape"][-1:]
    nodes = [helper.make_node("LayerNormalization", ["X", "W", "B"], ["Y"], axis=-1,
                              epsilon=op["eps"])]
    return nodes, {"W": numbers(1, columns), "B": numbers(2, columns)}, op["shape"], op["shape"]


def attention(op):
    heads, rows, columns = op["shape"]
    scale = np.array(1 / np.sqrt(columns), np.float32)
    nodes = [helper.make_node("Transpose", ["X1"], ["T"], perm=[0, 2, 1]),
             helper.make_node("MatMul", ["X", "T"], ["P"]),
             helper.make_node("Mul", ["P", "scale"], ["S"]),
             helper.make_node("Add", ["S", "X2"], ["A"]),
             helper.make_node("Softmax", ["A"], ["E"], axis=-1),
             helper.make_node("MatMul", ["E", "X3"], ["Y"])]
    return nodes, {"scale": scale}, [op["shape"], op["shape"], [rows, rows], op["shape"]], op["shape"]


def relu(op):
    return [helper.make_node("Relu", ["X"], ["Y"])], {}, op["shape"], op["shape"]


MAKERS = {"conv2d": conv, "depthwise_conv2d": conv, "matmul": matmul, "softmax": softmax,
          "layernorm": layernorm, "attention": attention, "relu": relu}

# bench/ops.c adds the same: next to no work, so its time is the cost of a call.
EMPTY_CALL = {"name": "empty-call", "op": {"type": "relu", "shape": [16]}}


def write_model(entry, directory):
    nodes, constants, x, y = MAKERS[entry["op"]["type"]](entry["op"])
    inputs = zip(INPUT_NAMES, x if isinstance(x[0], list) else [x])
    graph = helper.make_graph(
        nodes, entry["name"],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, y)],
        [numpy_helper.from_array(values, name) for name, values in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    onnx.save(model, directory / (entry["name"] + ".onnx"))


def write_job(ops, layouts, threads, directory):
    job = {"name": "bench-%s-%d" % (layouts, threads),
           "ops": [dict(entry, layouts=layouts) for entry in ops],
           "target": {"kind": "cpu", "threads": threads}}
    with open(directory / ("%s-%d.json" % (layouts, threads)), "w", encoding="utf-8") as file:
        json.dump(job, file, indent=1)


def main():
    directory = pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    with open(sys.argv[1], encoding="utf-8") as file:
        ops = json.load(file)["ops"]
    for entry in ops + [EMPTY_CALL]:
        write_model(entry, directory)
    for layouts in ("any", "fixed"):
        for threads in (1, 2):
            write_job(ops, layouts, threads, directory)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The operators that are timed on a GPU: c1 ... c12 of bench/ops.json at batch 1 and 16, products, those of DeepBench's inference on
devices, softmax, layernorm, a depthwise convolution. `small` ones have the same kinds of kernels, and take an emulated GPU a moment."""
import json


def shrink(op):
    op = dict(op)
    if op["type"] in ("conv2d", "depthwise_conv2d"):
        batch, channels, height, width = op["input"]
        op["input"] = [min(batch, 2), min(channels, 16), min(height, 14), min(width, 14)]
        if "filters" in op:
            op["filters"] = min(op["filters"], 16)
    elif op["type"] == "matmul":
        op["a"], op["b"] = [min(n, 64) for n in op["a"]], [min(n, 64) for n in op["b"]]
    else:
        op["shape"] = [min(op["shape"][0], 16), min(op["shape"][1], 128)]
    return op


# m, n, k of inference_device_set in DeepBench's code/kernels/gemm_problems.h
DEEPBENCH = ((5124, 700, 2048), (35, 700, 2048), (3072, 1, 1024), (64, 1, 1216), (3072, 1500, 1024), (128, 1500, 1280),
             (3072, 1500, 128), (128, 1, 1024), (3072, 1, 128), (176, 1500, 1408), (4224, 1500, 176), (128, 1, 1408),
             (4224, 1, 128))


def matmul(m, k, n):
    return {"type": "matmul", "a": [m, k], "b": [k, n], "dtype": "f32"}


def read(path, small):
    """[(name, op)], the most wanted first."""
    with open(path, encoding="utf-8") as file:
        bench = json.load(file)["ops"]
    convolutions = [(o["name"], o["op"]) for o in bench if o["name"][0] == "c" and o["name"][1:].isdigit()]
    found = list(convolutions)
    found += [("gemm-4096", matmul(4096, 4096, 4096)), ("gemm-1024", matmul(1024, 1024, 1024)),
              ("gemm-bert-expand", matmul(128, 768, 3072)),
              ("softmax-256MB", {"type": "softmax", "shape": [32768, 2048], "axis": -1, "dtype": "f32"}),
              ("layernorm-256MB", {"type": "layernorm", "shape": [65536, 1024], "axis": -1, "eps": 1e-5, "scale": True,
                                   "bias": True, "dtype": "f32"}),
              ("depthwise", {"type": "depthwise_conv2d", "input": [16, 128, 56, 56], "kernel": [3, 3], "stride": [1, 1],
                             "padding": [1, 1, 1, 1], "dilation": [1, 1], "bias": True, "activation": "relu",
                             "dtype": "f32"})]
    found += [("deepbench-%dx%dx%d" % (m, n, k), matmul(m, k, n)) for m, n, k in DEEPBENCH]
    found += [(name + "-b16", dict(op, input=[16] + op["input"][1:])) for name, op in convolutions]
    return [(name, shrink(op)) for name, op in found] if small else found

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a model's plan beside ONNX Runtime, in turns, on one CPU and with one thread each.

    bench/model.py MODEL.wpk MODEL.onnx

Prints the largest difference of the outputs as a part of the largest output, and the median time of
each with its median absolute deviation; the ratio is the median of those within a round. Inputs are
normally distributed, f32. Needs the packages numpy and onnxruntime.
"""
import ctypes
import os
import statistics
import sys
import time

import numpy as np
import onnxruntime

ROUNDS = 21
ROUND_S = 0.1
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
lib = ctypes.CDLL(os.path.join(ROOT, "build/runtime/libwpk.so"))
lib.wpk_err_text.restype = ctypes.c_char_p
lib.wpk_model_step_count.restype = ctypes.c_size_t


class Data(ctypes.Structure):
    """struct wpk_tensor_data"""
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Diag(ctypes.Structure):
    """struct wpk_diag"""
    _fields_ = [("text", ctypes.c_char * 512), ("file", ctypes.c_char * 128),
                ("field", ctypes.c_char * 128), ("line", ctypes.c_int), ("column", ctypes.c_int)]


class ContextOptions(ctypes.Structure):
    """struct wpk_context_options"""
    _fields_ = [("threads", ctypes.c_int), ("cpus", ctypes.POINTER(ctypes.c_int))]


def must(err, diag=None):
    if err != 0:
        detail = diag.text.decode() if diag is not None else ""
        raise RuntimeError("%s %s" % (lib.wpk_err_text(err).decode(), detail))


def aligned(shape):
    """An array of f32 whose memory begins at a multiple of 64 bytes."""
    size = int(np.prod(shape, dtype=np.int64)) * 4
    memory = np.zeros(size + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin:begin + size].view(np.float32).reshape(shape)


def data_of(arrays):
    return (Data * len(arrays))(*[Data(name.encode(), a.ctypes.data, a.nbytes)
                                  for name, a in arrays.items()])


class Plan:
    def __init__(self, path, inputs, outputs):
        self.model, self.context, diag = ctypes.c_void_p(), ctypes.c_void_p(), Diag()
        must(lib.wpk_model_open(path.encode(), None, ctypes.byref(self.model), ctypes.byref(diag)), diag)
        options = ContextOptions(1, None)
        must(lib.wpk_model_context_new(self.model, ctypes.byref(options), ctypes.byref(self.context)))
        self.outputs = outputs
        self.arguments = [data_of(inputs), ctypes.c_size_t(len(inputs)), data_of(outputs),
                          ctypes.c_size_t(len(outputs))]

    def run(self):
        must(lib.wpk_model_run(self.context, *self.arguments))
        return list(self.outputs.values())


class OnnxRuntime:
    def __init__(self, path, inputs):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = inputs

    def run(self):
        return self.session.run(None, self.inputs)


def time_of(runner):
    """Median seconds of a run, after one that is not counted."""
    runner.run()
    samples, end = [], time.perf_counter() + ROUND_S
    while not samples or time.perf_counter() < end:
        began = time.perf_counter()
        runner.run()
        samples.append(time.perf_counter() - began)
    return statistics.median(samples)


def spread(values):
    middle = statistics.median(values)
    return middle, statistics.median([abs(v - middle) for v in values])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rng = np.random.default_rng(3)
    peer = OnnxRuntime(sys.argv[2], {})
    for value in peer.session.get_inputs():
        peer.inputs[value.name] = aligned(value.shape)
        peer.inputs[value.name][...] = rng.standard_normal(value.shape)
    reference = peer.run()
    names = [value.name for value in peer.session.get_outputs()]
    ours = Plan(sys.argv[1], peer.inputs, {n: aligned(r.shape) for n, r in zip(names, reference)})
    error = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(ours.run(), reference))
    times = {"wpk": [], "onnxruntime": []}
    for i in range(ROUNDS):
        for name, runner in (("wpk", ours), ("onnxruntime", peer))[::1 if i % 2 else -1]:
            times[name].append(time_of(runner))
    print("difference   %.1e of the largest output" % error)
    for name, values in times.items():
        print("%-12s %.3f ± %.3f ms" % (name, *(1e3 * v for v in spread(values))))
    ratios = [b / a for a, b in zip(times["wpk"], times["onnxruntime"])]
    print("ratio        %.2f ± %.2f (above 1: ours is faster), %d steps, %d rounds, onnxruntime %s" % (
        *spread(ratios), lib.wpk_model_step_count(ours.model), ROUNDS, onnxruntime.__version__))


if __name__ == "__main__":
    main()

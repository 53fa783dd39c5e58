#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times what several tuning runs of the same operators found, in turns, on one CPU.

    bench/turns.py TUNED.json TUNED.json...      what `wpkctl tune --json` printed

One line for each operator: the median time of each run's kernel in microseconds, and the slowest
divided by the fastest; then the same of the sums.
"""
import ctypes
import json
import os
import statistics
import sys
import time

import numpy as np

ROUNDS = 21
ROUND_S = 0.03
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TYPE_AT = ctypes.sizeof(ctypes.c_char_p)  # in struct wpk_argument

lib = ctypes.CDLL(os.path.join(ROOT, "build/runtime/libwpk.so"))
lib.wpk_tensor_type_bytes.restype = ctypes.c_size_t
lib.wpk_tensor_type_elements.restype = ctypes.c_int64
for role in ("input", "output", "constant"):
    getattr(lib, "wpk_kernel_%s_count" % role).restype = ctypes.c_size_t
    getattr(lib, "wpk_kernel_" + role).restype = ctypes.c_void_p
lib.wpk_err_text.restype = ctypes.c_char_p


def ours(kernel):
    """The file of our best, which stands beside a vendor's that is served."""
    return kernel["artifact"] or kernel["own"]["artifact"]


class Data(ctypes.Structure):
    """struct wpk_tensor_data"""
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class ContextOptions(ctypes.Structure):
    """struct wpk_context_options"""
    _fields_ = [("threads", ctypes.c_int), ("cpus", ctypes.POINTER(ctypes.c_int))]


def must(err):
    if err != 0:
        raise RuntimeError(lib.wpk_err_text(err).decode())


class Kernel:
    """One artifact, prepared, with memory for its arguments."""

    def __init__(self, path):
        self.handle, self.context, self.memory = ctypes.c_void_p(), ctypes.c_void_p(), []
        must(lib.wpk_kernel_open(path.encode(), None, ctypes.byref(self.handle), None))
        constants = self.tensors("constant", lambda type_at: 4 * lib.wpk_tensor_type_elements(type_at))
        must(lib.wpk_kernel_prepare(self.handle, constants, ctypes.c_size_t(len(constants)), None))
        must(lib.wpk_context_new(ctypes.byref(ContextOptions(1, None)), ctypes.byref(self.context)))
        self.inputs = self.tensors("input", lib.wpk_tensor_type_bytes)
        self.outputs = self.tensors("output", lib.wpk_tensor_type_bytes)
        self.medians = []

    def tensors(self, role, size_of):
        count = getattr(lib, "wpk_kernel_%s_count" % role)(self.handle)
        array = (Data * count)()
        for i in range(count):
            argument = getattr(lib, "wpk_kernel_" + role)(self.handle, ctypes.c_size_t(i))
            size = size_of(ctypes.c_void_p(argument + TYPE_AT))
            values = np.random.default_rng(i).uniform(-1, 1, size // 4 + 16).astype(np.float32)
            self.memory.append(values)
            at = values.ctypes.data + -values.ctypes.data % 64
            array[i] = Data(ctypes.cast(argument, ctypes.POINTER(ctypes.c_char_p))[0], at, size)
        return array

    def run(self):
        must(lib.wpk_kernel_run(self.handle, self.context, self.inputs, ctypes.c_size_t(len(self.inputs)),
                                self.outputs, ctypes.c_size_t(len(self.outputs))))

    def round(self):
        samples, until = [], time.perf_counter() + ROUND_S
        self.run()
        while time.perf_counter() < until:
            began = time.perf_counter()
            self.run()
            samples.append(time.perf_counter() - began)
        self.medians.append(statistics.median(samples) * 1e6)

    def us(self):
        return statistics.median(self.medians)


def main():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    runs = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            runs.append({kernel["name"]: kernel for kernel in json.load(file)["kernels"]})
    sums = [0.0] * len(runs)
    for name in runs[0]:
        kernels = [Kernel(ours(run[name])) for run in runs]
        for turn in range(ROUNDS):
            for i in range(len(kernels)):
                kernels[(i + turn) % len(kernels)].round()
        times = [kernel.us() for kernel in kernels]
        sums = [a + b for a, b in zip(sums, times)]
        print("%-8s %s  %.3f" % (name, " ".join("%9.1f" % t for t in times), max(times) / min(times)), flush=True)
    print("%-8s %s  %.3f" % ("sum", " ".join("%9.1f" % t for t in sums), max(sums) / min(sums)))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long ONNX Runtime takes to open a model and run it once on zeros, with one thread, and its memory.

    bench/open_onnx.py MODEL.onnx...
"""
import resource
import sys
import time

import numpy as np
import onnxruntime


def memory_kb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


for name in sys.argv[1:]:
    before, began = memory_kb(), time.monotonic()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(name, options, providers=["CPUExecutionProvider"])
    feeds = {i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape],
                              np.int64 if "int64" in i.type else np.float32) for i in session.get_inputs()}
    session.run(None, feeds)
    print("%-40s %8.1f ms  %6.1f MB" % (name, (time.monotonic() - began) * 1e3, (memory_kb() - before) / 1024))

# SPDX-License-Identifier: Apache-2.0
"""Times the provider of ONNX Runtime beside ONNX Runtime alone, in turns in one process:

    PYTHONPATH=python WOODPECKER_ONNXRUNTIME_LIBRARY=build/runtime/onnxruntime/libwpk-onnxruntime.so \\
        .deps/test-venv/bin/python3 bench/onnxruntime_provider.py [--threads N] [--seconds S] [--entry K=V] [MODEL...]

MODEL is a name of a model made here (none: all) or a file. The ratio is that of the medians of pairs' quotients, plain
over provider; memory is what each kind of session adds to a process of its own, after ten runs.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
import onnxruntime_ep_woodpecker as ep
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(0)


class Maker:
    """A model in the making."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, array):
        name = "c%d" % len(self.constants)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape):
        return self.constant((RNG.standard_normal(shape) * 0.05).astype(np.float32))

    def node(self, kind, *inputs, **attributes):
        name = "v%d" % len(self.nodes)
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def finish(self, inputs, output):
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        return model


def dense(m, x, rows, columns):
    return m.node("Add", m.node("MatMul", x, m.weight(rows, columns)), m.weight(columns))


def norm(m, x, width):
    return m.node("LayerNormalization", x, m.weight(width), m.weight(width), axis=-1)


def minilm(layers=6, width=384, heads=12):
    """An encoder with the shape of MiniLM-L6, with free batch and length."""
    m = Maker()
    ints = [m.constant(np.array(v, dtype=np.int64)) for v in ([0, 0, heads, width // heads], [0, 0, width])]
    x = m.node("Gather", m.weight(30522, width), "ids")
    x = norm(m, x, width)
    for _ in range(layers):
        q, k, v = (m.node("Transpose", m.node("Reshape", dense(m, x, width, width), ints[0]), perm=[0, 2, 1, 3])
                   for _ in range(3))
        s = m.node("MatMul", q, m.node("Transpose", k, perm=[0, 1, 3, 2]))
        s = m.node("Softmax", m.node("Mul", s, m.constant(np.float32((width // heads) ** -0.5))), axis=-1)
        a = m.node("Reshape", m.node("Transpose", m.node("MatMul", s, v), perm=[0, 2, 1, 3]), ints[1])
        x = norm(m, m.node("Add", x, dense(m, a, width, width)), width)
        h = dense(m, x, width, 4 * width)
        half = m.node("Mul", h, m.constant(np.float32(0.5)))
        erf = m.node("Erf", m.node("Mul", h, m.constant(np.float32(0.5 ** 0.5))))
        h = m.node("Mul", half, m.node("Add", erf, m.constant(np.float32(1))))
        x = norm(m, m.node("Add", x, dense(m, h, 4 * width, width)), width)
    return m.finish([("ids", TensorProto.INT64, ["batch", "length"])], x), {"ids": RNG.integers(0, 30522, (1, 64))}


def resnet(width=64, blocks=(2, 2, 2, 2)):
    """Convolutions with the shape of ResNet-18, with a free batch."""
    m = Maker()

    def conv(x, inputs, outputs, size, stride):
        return m.node("Conv", x, m.weight(outputs, inputs, size, size), m.weight(outputs), strides=[stride] * 2,
                      pads=[size // 2] * 4)

    x = m.node("MaxPool", m.node("Relu", conv("x", 3, width, 7, 2)), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = width
    for stage, count in enumerate(blocks):
        outputs = width << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = conv(m.node("Relu", conv(x, inputs, outputs, 3, stride)), outputs, outputs, 3, 1)
            x = m.node("Relu", m.node("Add", y, conv(x, inputs, outputs, 1, stride) if inputs != outputs else x))
            inputs = outputs
    x = m.node("Gemm", m.node("Flatten", m.node("GlobalAveragePool", x)), m.weight(inputs, 1000), m.weight(1000))
    return m.finish([("x", TensorProto.FLOAT, ["n", 3, 224, 224])], x), {"x": RNG.random((1, 3, 224, 224), np.float32)}


def tiny():
    """One addition: the time of a call."""
    m = Maker()
    return m.finish([("x", TensorProto.FLOAT, ["n"])], m.node("Add", "x", m.weight(1))), {"x": np.zeros(16, np.float32)}


MODELS = {"tiny": tiny, "minilm": minilm, "resnet": resnet}


def load(name, folder):
    """(path, inputs)"""
    if name in MODELS:
        model, feed = MODELS[name]()
        path = os.path.join(folder, name + ".onnx")
        onnx.save(model, path)
        return path, feed
    feed = {}
    for i in ort.InferenceSession(name, providers=["CPUExecutionProvider"]).get_inputs():
        shape = [n if isinstance(n, int) else 1 for n in i.shape]
        feed[i.name] = np.ones(shape, np.int64) if "int64" in i.type else RNG.random(shape, np.float32)
    return name, feed


def make_session(path, ours, args):
    options = ort.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.log_severity_level = 3
    for entry in args.entry:
        options.add_session_config_entry(*entry.split("=", 1))
    providers = [(ep.get_ep_name(), {"intra_op_num_threads": str(args.threads)})] if ours else []
    return ort.InferenceSession(path, options, providers=providers + ["CPUExecutionProvider"])


def memory_of():
    with open("/proc/self/status", encoding="utf-8") as status:
        return {line.split(":")[0]: int(line.split()[1]) / 1024 for line in status
                if line.startswith(("VmRSS", "VmHWM"))}


def print_memory(path, args):
    """MiB that a session adds, and the most that it added while it was made."""
    feed = np.load(path + ".npz")
    before = memory_of()["VmRSS"]
    session = make_session(path, args.memory == "provider", args)
    for _ in range(10):
        session.run(None, dict(feed))
    after = memory_of()
    print("%.1f %.1f" % (after["VmRSS"] - before, after["VmHWM"] - before))


def measure(name, folder, args):
    path, feed = load(name, folder)
    np.savez(path + ".npz", **feed)
    sessions = [make_session(path, ours, args) for ours in (False, True)]
    outputs = [session.run(None, feed) for session in sessions]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(*outputs)), "other bits"
    pairs = []
    until = time.perf_counter() + args.seconds
    while time.perf_counter() < until:
        took = [0.0, 0.0]
        for k in (0, 1) if len(pairs) % 2 else (1, 0):
            began = time.perf_counter()
            sessions[k].run(None, feed)
            took[k] = time.perf_counter() - began
        pairs.append(took)
    del sessions
    plain, ours = (statistics.median(pair[k] for pair in pairs) for k in (0, 1))
    ratio = statistics.median(pair[0] / pair[1] for pair in pairs)
    print("%-8s %6d pairs  plain %9.1f us  provider %9.1f us  plain / provider %.3f"
          % (os.path.basename(name), len(pairs), plain * 1e6, ours * 1e6, ratio))
    for kind in ("plain", "provider"):
        told = subprocess.run([sys.executable, __file__, "--threads", str(args.threads), "--memory", kind, path]
                              + ["--entry=" + entry for entry in args.entry],
                              capture_output=True, text=True, check=True).stdout.split()
        print("         %-8s %s MiB, at most %s" % (kind, *told), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--entry", action="append", default=[])
    parser.add_argument("--memory", choices=("plain", "provider"))
    parser.add_argument("models", nargs="*")
    args = parser.parse_intermixed_args()
    ort.register_execution_provider_library("woodpecker", ep.get_library_path())
    if args.memory:
        return print_memory(args.models[0], args)
    with tempfile.TemporaryDirectory() as folder:
        for name in args.models or MODELS:
            measure(name, folder, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())

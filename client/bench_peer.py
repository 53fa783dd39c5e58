# SPDX-License-Identifier: Apache-2.0
"""One peer of `wpkctl bench`: runs a model in another engine and times it when it is asked.

    python3 -c TEXT PEER MODEL.onnx FOLDER THREADS ROUND_S

Reads FOLDER/in0.npy, in1.npy, ... in the order of the model's inputs, runs the model once, writes
FOLDER/out0.npy, ... and prints "ready VERSION". Then it answers each line "time" with the median
nanoseconds of a run, over ROUND_S seconds. It ends when its input does.
"""
import os
import statistics
import sys
import time


class OnnxRuntime:
    def __init__(self, path, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [value.name for value in self.session.get_inputs()]
        self.version = onnxruntime.__version__

    def run(self, inputs):
        return self.session.run(None, dict(zip(self.names, inputs)))


class OpenVino:
    def __init__(self, path, threads):
        import openvino
        core = openvino.Core()
        model = core.read_model(path)
        self.model = core.compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32"})
        self.request = self.model.create_infer_request()
        self.version = openvino.__version__.split("-")[0]

    def run(self, inputs):
        found = self.request.infer(dict(enumerate(inputs)), share_inputs=True, share_outputs=True)
        return [found[i] for i in range(len(self.model.outputs))]


PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}


def median_ns(peer, inputs, seconds):
    peer.run(inputs)
    samples, end = [], time.perf_counter_ns() + seconds * 1e9
    while not samples or time.perf_counter_ns() < end:
        began = time.perf_counter_ns()
        peer.run(inputs)
        samples.append(time.perf_counter_ns() - began)
    return int(statistics.median(samples))


def main():
    import numpy as np
    name, path, folder, threads, seconds = sys.argv[1:]
    peer = PEERS[name](path, int(threads))
    inputs = []
    while os.path.exists(os.path.join(folder, "in%d.npy" % len(inputs))):
        inputs.append(np.load(os.path.join(folder, "in%d.npy" % len(inputs))))
    for i, output in enumerate(peer.run(inputs)):
        np.save(os.path.join(folder, "out%d.npy" % i), output)
    print("ready", peer.version, flush=True)
    for _ in sys.stdin:
        print(median_ns(peer, inputs, float(seconds)), flush=True)


try:
    main()
except ImportError as error:
    print("failed the Python package %s is not installed" % error.name, flush=True)
except Exception as error:  # what an engine raises differs by engine
    print("failed", " ".join(str(error).split())[:400], flush=True)

# SPDX-License-Identifier: Apache-2.0
"""One peer of `wpkctl bench`: runs a model in another engine and times it when it is asked.

    python3 -c TEXT PEER MODEL.onnx FOLDER THREADS ROUND_S

Reads FOLDER/in0.npy, in1.npy, ... in the order of the model's inputs, runs the model once, writes
FOLDER/out0.npy, ... and prints "ready VERSION". Then it answers each line "time" with the median
nanoseconds of a run, over ROUND_S seconds. It ends when its input does.
PEER may end with "-noamx": the process is not allowed AMX then, so that an engine takes the instructions that other CPUs
have.
"""
import ctypes
import os
import shutil
import statistics
import struct
import subprocess
import sys
import time

FOLDER = sys.argv[3]
ANSWERS = os.fdopen(os.dup(1), "w")  # engines print what they like to standard output
os.dup2(2, 1)


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
    def __init__(self, path, threads, **precision):
        import openvino
        core = openvino.Core()
        model = core.read_model(path)
        self.model = core.compile_model(model, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", **precision})
        self.request = self.model.create_infer_request()
        self.version = openvino.__version__.split("-")[0]

    def run(self, inputs):
        found = self.request.infer(dict(enumerate(inputs)), share_inputs=True, share_outputs=True)
        return [found[i] for i in range(len(self.model.outputs))]


class OpenVinoF32(OpenVino):
    """As installed, it computes in bf16 where the CPU has that."""

    def __init__(self, path, threads):
        super().__init__(path, threads, INFERENCE_PRECISION_HINT="f32")


def convert(program, *words):
    """Run a converter that a wheel brings, beside this Python, in the folder."""
    path = os.path.join(os.path.dirname(sys.executable), program)
    if not os.path.exists(path):
        raise ImportError(name=program)
    done = subprocess.run([path, *words], capture_output=True, text=True, check=False, cwd=FOLDER)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (program, (done.stdout + done.stderr)[-300:]))


class Mnn:
    def __init__(self, path, threads):
        import MNN
        import MNN.expr
        import MNN.nn
        import onnx
        graph = onnx.load(path, load_external_data=False).graph
        constants = {tensor.name for tensor in graph.initializer}
        target = os.path.join(FOLDER, "model.mnn")
        convert("mnnconvert", "-f", "ONNX", "--modelFile", path, "--MNNModel", target, "--bizCode", "MNN")
        manager = MNN.nn.create_runtime_manager(({"backend": 0, "numThread": threads, "precision": "high"},))
        self.net = MNN.nn.load_module_from_file(
            target, [v.name for v in graph.input if v.name not in constants], [v.name for v in graph.output],
            runtime_manager=manager)
        self.expr = MNN.expr
        self.version = MNN.version()

    def run(self, inputs):
        expr, values = self.expr, []
        for x in inputs:
            kind = expr.float if x.dtype.kind == "f" else expr.int
            x = x if x.dtype.kind == "f" else x.astype("int32")
            values.append(expr.const(x, list(x.shape), expr.NCHW, kind))
        return [value.read() for value in self.net.onForward(values)]


class Ncnn:
    """One image; its batch of one is no dimension of ncnn's."""

    def __init__(self, path, threads):
        import ncnn
        import numpy as np
        copy = os.path.join(FOLDER, "model.onnx")
        shutil.copy(path, copy)
        shape = np.load(os.path.join(FOLDER, "in0.npy")).shape
        convert("pnnx", copy, "inputshape=[%s]" % ",".join(map(str, shape)), "fp16=0")
        self.net = ncnn.Net()
        self.net.opt.num_threads = threads
        self.net.opt.use_vulkan_compute = False
        for name in ("packed", "storage", "arithmetic"):
            setattr(self.net.opt, "use_fp16_" + name, False)
            if hasattr(self.net.opt, "use_bf16_" + name):
                setattr(self.net.opt, "use_bf16_" + name, False)
        stem = os.path.join(FOLDER, "model.ncnn")
        if self.net.load_param(stem + ".param") != 0 or self.net.load_model(stem + ".bin") != 0:
            raise RuntimeError("ncnn cannot load the converted model")
        self.ncnn, self.numpy, self.version = ncnn, np, ncnn.__version__

    def run(self, inputs):
        extractor = self.net.create_extractor()
        for i, x in enumerate(inputs):
            extractor.input("in%d" % i, self.ncnn.Mat(x[0]))
        code, found = extractor.extract("out0")
        if code != 0:
            raise RuntimeError("ncnn ends with %d" % code)
        return [self.numpy.array(found)[None]]


class LiteRt:
    """The converter puts the channels of images last."""

    def __init__(self, path, threads):
        import ai_edge_litert
        import numpy as np
        from ai_edge_litert.interpreter import Interpreter
        # The converter looks for this file, which quantizing wants, and would fetch it.
        np.save(os.path.join(FOLDER, "calibration_image_sample_data_20x128x128x3_float32.npy"),
                np.zeros((20, 128, 128, 3), "f4"))
        convert("onnx2tf", "-n", "-i", os.path.abspath(path), "-o", FOLDER)
        stem = os.path.splitext(os.path.basename(path))[0]
        self.net = Interpreter(os.path.join(FOLDER, stem + "_float32.tflite"), num_threads=threads)
        self.net.allocate_tensors()
        self.version = ai_edge_litert.__version__

    def run(self, inputs):
        for wanted, x in zip(self.net.get_input_details(), inputs):
            last = x.ndim == 4 and x.shape != tuple(wanted["shape"])
            self.net.set_tensor(wanted["index"], x.transpose(0, 2, 3, 1) if last else x)
        self.net.invoke()
        found = [self.net.get_tensor(output["index"]) for output in self.net.get_output_details()]
        return [y.transpose(0, 3, 1, 2) if y.ndim == 4 else y for y in found]


PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVinoF32, "openvino-installed": OpenVino, "mnn": Mnn, "ncnn": Ncnn,
         "litert": LiteRt}


def deny_amx():
    """A seccomp filter under which arch_prctl(ARCH_REQ_XCOMP_PERM) fails, which asks Linux for AMX's registers."""
    rows = ((0x20, 0, 0, 0), (0x15, 0, 3, 158), (0x20, 0, 0, 16), (0x15, 0, 1, 0x1023),  # load the call, then its argument
            (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000))  # fail with EPERM, or allow
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(text)))
    libc = ctypes.CDLL(None)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
        raise RuntimeError("AMX cannot be denied")


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
    if name.endswith("-noamx"):
        deny_amx()
    peer = PEERS[name.removesuffix("-noamx")](path, int(threads))
    inputs = []
    while os.path.exists(os.path.join(folder, "in%d.npy" % len(inputs))):
        inputs.append(np.load(os.path.join(folder, "in%d.npy" % len(inputs))))
    for i, output in enumerate(peer.run(inputs)):
        np.save(os.path.join(folder, "out%d.npy" % i), output)
    print("ready", peer.version, file=ANSWERS, flush=True)
    for _ in sys.stdin:
        print(median_ns(peer, inputs, float(seconds)), file=ANSWERS, flush=True)


try:
    main()
except ImportError as error:
    print("failed %s has no package %s; --python names a Python that has it"
          % (sys.executable, error.name), file=ANSWERS, flush=True)
except Exception as error:  # what an engine raises differs by engine
    print("failed", " ".join(str(error).split())[:400], file=ANSWERS, flush=True)

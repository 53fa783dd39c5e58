# SPDX-License-Identifier: Apache-2.0
"""ncnn as a peer: a net of one layer, in f32.

Layouts `any`: input and output lie in ncnn's packed form, 16 channels or rows side by side, as
they do between the layers of a net; `fixed`: one channel after the other. What is faster than the
other is taken for `any`, since some layers do not like packed tensors.
"""

import importlib.util
import pathlib
import sysconfig
import tempfile
import time

import numpy as np

import peer_python


def load_module():
    """The extension alone: the package around it wants modules that only fetch models."""
    folder = pathlib.Path(sysconfig.get_path("platlib"), "ncnn")
    path = next(folder.glob("ncnn.*.so"))
    spec = importlib.util.spec_from_file_location("ncnn", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ncnn = load_module()

PACK = 16  # floats of an AVX-512 register; ncnn falls back where a CPU has fewer
TRIES = 5


def describe_conv(node, constants, _shape):
    weights = constants[0]
    pads = node.attributes.get("pads", [0, 0, 0, 0])
    strides = node.attributes.get("strides", [1, 1])
    group = node.attributes.get("group", 1)
    parameters = {0: weights.shape[0], 1: weights.shape[3], 11: weights.shape[2], 3: strides[1],
                  13: strides[0], 4: pads[1], 14: pads[0], 15: pads[3], 16: pads[2],
                  5: len(constants) - 1, 6: weights.size, 9: int(node.relu)}
    if group > 1:
        parameters[7] = group
    return ("Convolution" if group == 1 else "ConvolutionDepthWise"), parameters, \
        b"\0\0\0\0" + b"".join(c.tobytes() for c in constants)


def describe_matmul(_node, constants, shape):
    weights = constants[0]
    # B [N, K] is constant, and there is no C.
    return "Gemm", {3: 1, 4: 0, 5: 1, 6: 1, 7: 0, 8: shape[1], 9: weights.shape[0], 10: -1}, \
        b"\0\0\0\0" + np.ascontiguousarray(weights.T).tobytes()


def describe_softmax(_node, _constants, shape):
    return "Softmax", {0: len(shape) - 1, 1: 1}, b""


def describe_layernorm(node, constants, shape):
    return "LayerNorm", {0: shape[-1], 1: node.attributes["epsilon"], 2: 1}, \
        b"".join(c.tobytes() for c in constants)


def describe_relu(_node, _constants, _shape):
    return "ReLU", {}, b""


LAYERS = {"Conv": describe_conv, "MatMul": describe_matmul, "Softmax": describe_softmax,
          "LayerNormalization": describe_layernorm, "Relu": describe_relu}


def make_net(node, constants, shape, threads):
    layer, parameters, weights = LAYERS[node.op](node, constants, shape)
    net = ncnn.Net()
    option = net.opt
    option.num_threads = threads
    for name in dir(option):
        if name.startswith(("use_fp16", "use_bf16", "use_int8", "use_vulkan")):
            setattr(option, name, False)
    text = "7767517\n2 2\nInput X 0 1 X\n%s Y 1 1 X Y %s\n" % (
        layer, " ".join("%d=%s" % item for item in parameters.items()))
    if net.load_param_mem(text) != 0:
        raise RuntimeError("ncnn does not take " + text)
    with tempfile.NamedTemporaryFile() as file:
        file.write(weights)
        file.flush()
        if net.load_model(file.name) != 0:
            raise RuntimeError("ncnn does not take the weights of " + text)
    return net


def packed(mat, pack):
    out = ncnn.Mat()
    ncnn.convert_packing(mat, out, pack)
    return out


class Peer:
    def __init__(self, _path, node, constants, x, shape, fixed, threads):
        if node.op not in LAYERS:
            raise peer_python.Unsupported("ncnn has no " + node.op)
        self.net = make_net(node, constants, shape, threads)
        self.shape = shape
        values = x[0] if x.ndim == 4 else x
        self.outermost = values.shape[0]
        self.x = ncnn.Mat(values).clone()  # a Mat of borrowed memory crashes layers in place
        self.y = None
        self.keep_packing = 0
        self.choice = "plain"
        if not fixed:
            self.prefer_packed()

    def prefer_packed(self):
        plain = self.x
        plain_ns = self.fastest()
        pack = next(p for p in (PACK, 8, 4, 1) if self.outermost % p == 0)
        self.x, self.keep_packing = packed(plain, pack), 1
        self.choice = "packed"
        if self.fastest() > plain_ns:
            self.x, self.keep_packing, self.choice = plain, 0, "plain"

    def fastest(self):
        times = []
        for _ in range(TRIES):
            start = time.monotonic_ns()
            self.run()
            times.append(time.monotonic_ns() - start)
        return min(times[1:])

    def run(self):
        extractor = self.net.create_extractor()
        extractor.input("X", self.x)
        self.y = extractor.extract("Y", self.keep_packing)[1]

    def output(self):
        return np.array(packed(self.y, 1)).reshape(self.shape)

    def touch(self):
        self.x.clone()
        self.y.clone()


if __name__ == "__main__":
    peer_python.serve("ncnn " + ncnn.__version__, Peer)

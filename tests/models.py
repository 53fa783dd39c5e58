# SPDX-License-Identifier: Apache-2.0
"""Writes ONNX models for tests, with seeded random weights:

    models.py NAME DIRECTORY [SIDE]

writes NAME.onnx, the input x.npy, and y.npy: what ONNX Runtime computes, without its own graph
optimizations. Needs the packages onnx and onnxruntime.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Model:
    """A graph as it grows; each method adds a node and returns its output's name."""

    def __init__(self, seed=1, opset=17):
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.nodes, self.weights, self.count = [], [], 0

    def add(self, op, *inputs, **attributes):
        return self.add_parts(op, 1, *inputs, **attributes)[0]

    def add_parts(self, op, count, *inputs, **attributes):
        """A node with several outputs, whose names are returned."""
        self.count += 1
        outputs = [f"v{self.count}" + (f"_{i}" if i > 0 else "") for i in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs,
                                           name=f"{op.lower()}{self.count}", **attributes))
        return outputs

    def constant(self, array, name=None):
        name = name or f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape, scale=1.0):
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def uniform(self, low, high, *shape):
        return self.constant(self.rng.uniform(low, high, shape).astype(np.float32))

    def conv(self, x, channels, filters, kernel, stride=1, pad=0, group=1, bias=False, **more):
        fan_in = channels // group * kernel * kernel
        inputs = [x, self.normal(filters, channels // group, kernel, kernel,
                                 scale=(2 / fan_in) ** 0.5)]
        if bias:
            inputs.append(self.normal(filters, scale=0.1))
        return self.add("Conv", *inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2,
                        pads=[pad] * 4, group=group, **more)

    def batch_norm(self, x, channels):
        return self.add("BatchNormalization", x, self.uniform(0.5, 1.5, channels),
                        self.normal(channels, scale=0.1), self.normal(channels, scale=0.1),
                        self.uniform(0.5, 1.5, channels), epsilon=1e-5)

    def finish(self, inputs, output, functions=()):
        self.nodes[-1].output[0] = "y"
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "test", [value(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
            [value("y", TensorProto.FLOAT, output)], self.weights)
        opsets = [helper.make_opsetid(domain, version) for domain, version in (("", self.opset), ("local", 1))]
        model = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=8)
        onnx.checker.check_model(model)
        return model


def tiny(side):
    """Few operators, for tests that tune."""
    m = Model()
    x = m.add("Relu", m.batch_norm(m.conv("x", 3, 4, 3, pad=1), 4))
    x = m.add("Add", x, m.conv(x, 4, 4, 1, bias=True))
    x = m.add("Flatten", m.add("GlobalAveragePool", x))
    x = m.add("Gemm", x, m.normal(6, 4), m.normal(6), transB=1)
    m.add("Reshape", x, m.constant(np.array([3, 2], np.int64)))
    return m.finish({"x": [1, 3, side, side]}, [3, 2])


def quantized(side):
    """A convolution between QuantizeLinear and DequantizeLinear, as exporters write it, and a product
    whose input is quantized as it comes, as ONNX Runtime's quantize_dynamic does."""
    m = Model()

    def scale(value):
        return m.constant(np.float32(value))

    def coded(x, step, zero):
        """Quantize and dequantize."""
        ends = [scale(step), m.constant(np.uint8(zero))]
        return m.add("DequantizeLinear", m.add("QuantizeLinear", x, *ends), *ends)

    def whole(*shape):
        return m.constant(m.rng.integers(-127, 128, shape).astype(np.int8))

    weights = m.add("DequantizeLinear", whole(8, 3, 3, 3), m.uniform(0.001, 0.01, 8),
                    m.constant(np.zeros(8, np.int8)), axis=0)
    x = m.add("Conv", coded("x", 0.03, 121), weights, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    x = coded(m.add("Relu", x), 0.02, 0)
    x = m.add("Flatten", m.add("GlobalAveragePool", x))
    q, step, zero = m.add_parts("DynamicQuantizeLinear", 3, x)
    x = m.add("Cast", m.add("MatMulInteger", q, whole(8, 6), zero), to=TensorProto.FLOAT)
    m.add("Mul", x, m.add("Mul", step, scale(0.004)))
    return m.finish({"x": [1, 3, side, side]}, [1, 6])


def places(side):
    """Two pointwise convolutions of one shape: a window reads the first one's output beyond its ends."""
    m = Model()
    x = m.add("Relu", m.conv("x", 3, 16, 3, pad=1, bias=True))
    x = m.add("Relu", m.conv(x, 16, 16, 1, bias=True))
    x = m.add("Relu", m.conv(x, 16, 16, 3, pad=1, group=16, bias=True))
    x = m.add("Relu", m.conv(x, 16, 16, 1, bias=True))
    x = m.add("Flatten", m.add("GlobalAveragePool", x))
    m.add("Gemm", x, m.normal(6, 16), m.normal(6), transB=1)
    return m.finish({"x": [1, 3, side, side]}, [1, 6])


def pair(side):
    """Two steps that reduce, and more bytes between them than a first cache has."""
    m = Model()
    x = m.add("Relu", m.conv("x", 3, 16, 1, bias=True))
    m.conv(x, 16, 4, 3, stride=2)
    return m.finish({"x": [1, 3, side, side]}, [1, 4, (side - 1) // 2, (side - 1) // 2])


def small(side):
    """Convolutions of several kinds, pools, a residual, and a classifier."""
    m = Model()
    x = m.add("Relu", m.batch_norm(m.conv("x", 3, 8, 3, stride=2, pad=1), 8))
    x = m.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = m.add("Clip", m.conv(x, 8, 8, 3, pad=1, group=8, bias=True), m.constant(np.float32(0)),
              m.constant(np.float32(6)))
    y = m.conv(y, 8, 8, 1, bias=True)
    x = m.add("Add", x, y)
    x = m.add("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])
    x = m.add("LeakyRelu", m.conv(x, 8, 12, 3, group=2, dilations=[2, 2]), alpha=0.1)
    x = m.add("Flatten", m.add("GlobalAveragePool", x))
    x = m.add("Gemm", x, m.normal(10, 12), m.normal(10), transB=1)
    m.add("Softmax", x, axis=1)
    return m.finish({"x": [1, 3, side, side]}, [1, 10])


def resnet18(side):
    """ResNet-18 as torchvision has it, with batch norm apart; He weights."""
    m = Model()
    x = m.add("Relu", m.batch_norm(m.conv("x", 3, 64, 7, stride=2, pad=3), 64))
    x = m.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for filters in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if filters != 64 and block == 0 else 1
            y = m.add("Relu", m.batch_norm(m.conv(x, channels, filters, 3, stride, 1), filters))
            y = m.batch_norm(m.conv(y, filters, filters, 3, 1, 1), filters)
            if stride != 1:
                x = m.batch_norm(m.conv(x, channels, filters, 1, stride), filters)
            # Half of each branch keeps the activations of eight blocks near 1.
            x = m.add("Relu", m.add("Mul", m.add("Add", y, x), m.constant(np.float32(0.7))))
            channels = filters
    x = m.add("Flatten", m.add("GlobalAveragePool", x), axis=1)
    m.add("Gemm", x, m.normal(1000, 512, scale=0.05), m.normal(1000, scale=0.05), transB=1)
    return m.finish({"x": [1, 3, side, side]}, [1, 1000])


def attention(side):
    """A transformer's block as exporters write it: shapes computed in nodes, GELU by Erf."""
    m = Model()
    width, heads = 24, 3
    integers = lambda *numbers: m.constant(np.array(numbers, np.int64))
    batch = m.add("Unsqueeze", m.add("Gather", m.add("Shape", "x"), m.constant(np.int64(0)),
                                     axis=0), integers(0))
    heads_shape = m.add("Concat", batch, integers(-1), integers(heads), integers(width // heads),
                        axis=0)

    def project(x):
        x = m.add("Add", m.add("MatMul", x, m.normal(width, width, scale=0.3)), m.normal(width))
        return m.add("Transpose", m.add("Reshape", x, heads_shape), perm=[0, 2, 1, 3])

    q, k, v = project("x"), project("x"), project("x")
    scores = m.add("MatMul", q, m.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = m.add("Div", scores, m.constant(np.float32(8 ** 0.5)))
    x = m.add("MatMul", m.add("Softmax", scores, axis=-1), v)
    x = m.add("Reshape", m.add("Transpose", x, perm=[0, 2, 1, 3]), integers(0, 0, width))
    x = m.add("Add", x, "x")
    mean = m.add("ReduceMean", x, axes=[-1])
    x = m.add("Sub", x, mean)
    variance = m.add("ReduceMean", m.add("Pow", x, m.constant(np.float32(2))), axes=[-1])
    x = m.add("Div", x, m.add("Sqrt", m.add("Add", variance, m.constant(np.float32(1e-6)))))
    x = m.add("Mul", x, m.normal(width))
    gate = m.add("Erf", m.add("Div", x, m.constant(np.float32(2 ** 0.5))))
    x = m.add("Mul", m.add("Mul", x, m.add("Add", gate, m.constant(np.float32(1)))),
              m.constant(np.float32(0.5)))
    x = m.add("LayerNormalization", x, m.normal(width), m.normal(width), axis=-1)
    x = m.add("Concat", x, m.add("Slice", x, integers(0), integers(1 << 62), integers(2),
                                 integers(2)), axis=2)
    x = m.add("Squeeze", m.add("ReduceMean", x, axes=[1], keepdims=1), integers(1))
    m.add("Sigmoid", m.add("Sub", x, m.add("ReduceMax", x, axes=[1], keepdims=1)))
    return m.finish({"x": [2, side, width]}, [2, width + width // 2])


def decoder(side):
    """A model that upsamples, pads and chooses."""
    m = Model()
    integers = lambda *numbers: m.constant(np.array(numbers, np.int64))
    floats = lambda *numbers: m.constant(np.array(numbers, np.float32))
    x = m.add("ConvTranspose", "x", m.normal(4, 3, 3, 3), m.normal(6), group=2, strides=[2, 2],
              pads=[1, 0, 1, 1], output_padding=[1, 0])
    x = m.add("ConvTranspose", x, m.normal(6, 4, 2, 2), strides=[2, 2])
    x = m.add("Resize", x, "", floats(1, 1, 2, 3), mode="nearest", nearest_mode="floor",
              coordinate_transformation_mode="asymmetric")
    x = m.add("Resize", x, "", floats(1, 1, 2, 2), mode="nearest")
    x = m.add("Pad", x, integers(0, 0, 1, -1, 0, 0, 0, 2), m.constant(np.float32(-1)))
    positive = m.add("Greater", x, m.constant(np.float32(0)))
    x = m.add("Where", positive, x, m.add("Sum", x, m.normal(4, 1, 1), m.constant(np.float32(1))))
    x = m.add("Max", x, m.normal(1), m.add("Elu", x))
    x = m.add("Min", x, m.add("HardSwish", x), m.add("Softplus", x))
    x = m.add("Expand", m.add("ReduceMax", x, axes=[2, 3], keepdims=1), integers(2, 1, 3, 1))
    filled = m.add("ConstantOfShape", integers(3, 2),
                   value=numpy_helper.from_array(np.array([0.5], np.float32)))
    m.add("Add", x, filled)
    return m.finish({"x": [1, 4, side, side]}, [2, 4, 3, 2])


def parts(side):
    """Nodes with several outputs, indices that are data, and a bilinear Resize."""
    m = Model(opset=18)
    integers = lambda *numbers: m.constant(np.array(numbers, np.int64))
    a, b, c = m.add_parts("Split", 3, "x", integers(2, 1, 3), axis=1)
    d, e = m.add_parts("Split", 2, m.add("Concat", a, m.add("Mul", b, m.add("Sigmoid", b)), axis=1),
                       axis=2, num_outputs=2)
    x = m.add("Concat", d, m.add("Relu", e), axis=2)
    best = m.add("ArgMax", x, axis=1, keepdims=0)
    x = m.add("Add", x, m.add("GatherElements", c, m.add("Unsqueeze", best, integers(1)), axis=1))
    x = m.add("Resize", x, "", "", integers(1, 3, 2 * side - 1, side), mode="linear")
    x, mean = m.add_parts("LayerNormalization", 2, x, m.normal(side), axis=-1)
    m.add("Sub", m.add("Mish", x), mean)
    return m.finish({"x": [1, 6, side, side]}, [1, 3, 2 * side - 1, side])


def branches(side):
    """Nodes that are merged: convolutions and products of one value; values that are parts of others."""
    m = Model(opset=18)
    integers = lambda *numbers: m.constant(np.array(numbers, np.int64))
    x = m.add("Relu", "x")
    paths = []
    for filters, kernel in ((5, 3), (3, 1), (4, 5)):
        y = m.add("Relu", m.conv(x, 6, filters, 1, bias=True))
        paths.append(m.add("Relu", m.conv(y, filters, 4, kernel, pad=kernel // 2)))
    x = m.add("Concat", *paths, axis=1)
    tail = m.add("Slice", x, integers(7), integers(12), integers(1))
    tail = m.conv(tail, 5, 12, 3, pad=1)
    x = m.add("Transpose", m.add("Reshape", m.add("Add", x, tail), integers(1, 12, -1)), perm=[0, 2, 1])
    q, k, v = (m.add("Add", m.add("MatMul", x, m.normal(12, 12, scale=0.3)), m.normal(12)) for _ in range(3))
    q, k, v = (m.add("Transpose", m.add("Reshape", t, integers(0, 0, 3, 4)), perm=perm)
               for t, perm in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3])))
    x = m.add("MatMul", m.add("Softmax", m.add("MatMul", q, k), axis=-1), v)
    m.add("Reshape", m.add("Sigmoid", x), integers(3, -1))
    return m.finish({"x": [1, 6, side, side]}, [3, 4 * side * side])


def recurrent(side):
    """Sequences: an LSTM in both directions, then a GRU as PyTorch writes it."""
    m = Model()
    y, h, c = m.add_parts("LSTM", 3, "x", m.normal(2, 16, 6, scale=0.4), m.normal(2, 16, 4, scale=0.4),
                          m.normal(2, 32, scale=0.1), hidden_size=4, direction="bidirectional")
    y = m.add("Reshape", m.add("Transpose", y, perm=[0, 2, 1, 3]), m.constant(np.array([0, 0, 8], np.int64)))
    y, last = m.add_parts("GRU", 2, y, m.normal(1, 15, 8, scale=0.4), m.normal(1, 15, 5, scale=0.4),
                          m.normal(1, 30, scale=0.1), hidden_size=5, linear_before_reset=1)
    y = m.add("Add", m.add("Squeeze", y, m.constant(np.array([1], np.int64))), m.add("Squeeze", last))
    states = m.add("ReduceSum", m.add("Mul", h, c), m.constant(np.array([0, 2], np.int64)), keepdims=1)
    m.add("Mul", y, m.add("Squeeze", states, m.constant(np.array([0], np.int64))))
    return m.finish({"x": [side, 2, 6]}, [side, 2, 5])


def lookup(side):
    """Rows of a table, at indices that are data; the largest elements."""
    m = Model()
    integers = lambda *numbers: m.constant(np.array(numbers, np.int64))
    values, where = m.add_parts("TopK", 2, "x", integers(3), axis=-1)
    rows = m.add("Gather", m.normal(side, 8), m.add("Sub", where, integers(side)), axis=0)
    first = m.add("Gather", rows, m.constant(np.int64(0)), axis=1)
    least, _ = m.add_parts("TopK", 2, m.add("Mul", rows, m.add("Unsqueeze", values, integers(2))), integers(2),
                         axis=0, largest=0)
    chosen = m.add("Squeeze", m.add("NonZero", integers(0, 7, 0, 1)), integers(0))
    m.add("Add", least, m.add("Unsqueeze", m.add("Gather", first, chosen, axis=0), integers(1)))
    return m.finish({"x": [4, side]}, [2, 3, 8])


def where(side):
    """Indices of elements that are not 0: as many as were chosen, at places that data decides."""
    m = Model()
    _, at = m.add_parts("TopK", 2, "x", m.constant(np.array([3], np.int64)), axis=-1)
    mask = m.add("Equal", m.add("Unsqueeze", at, m.constant(np.array([2], np.int64))),
                 m.constant(np.arange(side)))
    columns = m.add("Gather", m.add("NonZero", mask), m.constant(np.int64(2)), axis=0)
    m.add("Relu", m.add("Gather", m.normal(side, 6), columns, axis=0))
    return m.finish({"x": [4, side]}, [12, 6])


def masked(side):
    """Softmax behind masks: of the least finite number, which masks some rows whole, and of -inf, which masks none."""
    m = Model()
    least, lowest = np.zeros((side, side), np.float32), np.zeros((side, side), np.float32)
    least[np.triu_indices(side, 1)] = np.finfo(np.float32).min
    least[side // 2:side // 2 + 2] = np.finfo(np.float32).min
    lowest[np.tril_indices(side, -2)] = -np.inf
    rows = m.add("Softmax", m.add("Add", m.add("Div", "x", m.constant(np.float32(8 ** 0.5))), m.constant(least)), axis=-1)
    others = m.add("Softmax", m.add("Add", "x", m.constant(lowest)), axis=-1)
    m.add("MatMul", rows, others)
    return m.finish({"x": [2, side, side]}, [2, side, side])


def odd(side):
    """Images of odd height and width: a convolution with a stride, a pooling, a product."""
    m = Model()
    x = m.add("Relu", m.conv("x", 3, 7, 3, pad=1, stride=2, bias=True))
    x = m.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    m.add("Relu", m.conv(x, 7, 5, 1, bias=True))
    return m.finish({"x": [1, 3, side, side + 66]}, [1, 5, (side + 3) // 4, (side + 69) // 4])


def functions(side):
    """Functions of the file's own that call each other, with and without an attribute."""
    m = Model()
    node, opset = helper.make_node, [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    leaky = node("LeakyRelu", ["a"], ["t"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope",
                                               type=onnx.AttributeProto.FLOAT))
    scale = helper.make_function("local", "Scale", ["a", "b"], ["o"], [
        leaky, node("Constant", [], ["two"], value=numpy_helper.from_array(np.float32(2))),
        node("Mul", ["t", "two"], ["u"]), node("Add", ["u", "b"], ["o"])], opset, ["slope"])
    twice = helper.make_function("local", "Twice", ["a"], ["o"], [
        node("Scale", ["a", "a"], ["t"], domain="local", name="one", slope=0.5),
        node("Scale", ["t", "a"], ["o"], domain="local", name="two")], opset)
    x = m.add("Twice", "x", domain="local")
    m.add("Twice", x, domain="local")
    return m.finish({"x": [2, side]}, [2, side], [scale, twice])


def depthwise(side):
    """Windows with little work: their values have borders, in memory that others had before. Channels that
    lie between each other's in memory."""
    m = Model()
    x = m.add("Relu", m.conv("x", 3, 16, 3, pad=1, bias=True))
    x = m.add("Concat", *(m.add("Relu", m.conv(x, 16, 8, kernel, pad=kernel // 2)) for kernel in (1, 3)), axis=1)
    for kernel, stride in ((3, 1), (5, 2), (3, 2)):
        x = m.add("HardSwish", m.conv(x, 16, 16, kernel, stride, kernel // 2, group=16, bias=True))
        x = m.add("Relu", m.conv(x, 16, 16, 1, bias=True))
    m.add("GlobalAveragePool", m.add("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4))
    return m.finish({"x": [1, 3, side, side]}, [1, 16, 1, 1])


def choices(side):
    """Ifs: one that shapes decide, whose other branch would not fit, in one that the data decides."""
    m = Model()
    node, value = helper.make_node, helper.make_tensor_value_info

    def branch(name, nodes, output, *constants):
        return helper.make_graph(nodes, name, [], [value(output, TensorProto.FLOAT, None)],
                                 [numpy_helper.from_array(a, n) for n, a in constants])

    one = ("c", np.array([0], np.int64))
    last = m.add("Gather", m.add("Shape", "x"), m.constant(np.int64(0)))
    is_one = m.add("Equal", last, m.constant(np.int64(1)))
    row = branch("row", [node("Reshape", ["x", "c"], ["o"])], "o", ("c", np.array([side], np.int64)))
    summed = branch("summed", [node("ReduceSum", ["x", "c"], ["t"], keepdims=0),
                               node("Abs", ["t"], ["o"])], "o", one)
    inner = node("If", [is_one], ["i"], name="inner", then_branch=row, else_branch=summed)
    positive = m.add("Greater", m.add("ReduceMax", "x", keepdims=0), m.constant(np.float32(0)))
    scaled = branch("scaled", [inner, node("Mul", ["i", "c"], ["o"])], "o", ("c", np.float32([3])))
    zero = branch("zero", [node("Sub", ["row", "row"], ["o"])], "o")
    m.nodes.append(node("ReduceMean", ["x"], ["row"], axes=[0], keepdims=0))
    m.add("If", positive, then_branch=scaled, else_branch=zero)
    return m.finish({"x": [4, side]}, [side])


MODELS = {"depthwise": (depthwise, 21), "choices": (choices, 6), "functions": (functions, 7), "lookup": (lookup, 5000), "where": (where, 300), "masked": (masked, 13), "odd": (odd, 161), "branches": (branches, 5), "decoder": (decoder, 5), "parts": (parts, 6), "pair": (pair, 41), "places": (places, 12), "quantized": (quantized, 9), "recurrent": (recurrent, 5), "tiny": (tiny, 11), "small": (small, 33), "resnet18": (resnet18, 224), "attention": (attention, 7)}


def main():
    name, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    build, side = MODELS[name]
    model = build(int(sys.argv[3]) if len(sys.argv) > 3 else side)
    path = directory / (name + ".onnx")
    onnx.save(model, path)
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    shape = session.get_inputs()[0].shape
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    np.save(directory / "x.npy", x)
    np.save(directory / "y.npy", session.run(None, {"x": x})[0])


if __name__ == "__main__":
    main()

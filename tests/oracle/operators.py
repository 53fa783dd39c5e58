# SPDX-License-Identifier: Apache-2.0
"""Draws single operators, and compares what wpkctl computes with ONNX Runtime:

    operators.py WPKCTL [--count N] [--seed FIRST] [--tune] [--part N] [--list] [NAME...]

For each operator N draws of attributes, shapes (1, primes, no elements, rank 0 to 6), types and special
values are interpreted, and with --tune run as a tuned plan with one candidate, alone or behind a Relu.
A draw that `wpkctl check` refuses is counted with its reason (--list prints them); one that ONNX Runtime
refuses is no draw. NAME selects operators; every second one begins at the next seed, so that few draws,
too, are of both kinds. --part N takes each N-th operator, other ones each day. Ends with 1 if an output differs, unless DEVIATIONS has a
reason why both may be right there (docs/models.md).
"""
import argparse
import collections
import os
import sys
import time
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from peer import Fault, Refused, each, reference

warnings.filterwarnings("ignore")
CODES = {"f4": TensorProto.FLOAT, "f8": TensorProto.DOUBLE, "f2": TensorProto.FLOAT16, "i4": TensorProto.INT32, "i8": TensorProto.INT64,
         "b1": TensorProto.BOOL, "u1": TensorProto.UINT8, "i1": TensorProto.INT8, "i2": TensorProto.INT16}
MICROSOFT = "com.microsoft"
ALL = ("f4", "f4", "f8", "f2", "i4", "i8")
REALS = ("f4", "f4", "f4", "f8", "f2")
DIMS = (1, 2, 3, 4, 5, 7, 8, 11, 13, 17)
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, -3.4e38, 0.5, 1.5, -2.5, 1.0)
ELEMENTS_MAX = 3000
OPSET = 18



def has_nan(d):
    return any(i is not None and i[0].dtype.kind == "f" and bool(np.isnan(i[0]).any()) for i in d.inputs)


def overflows(d):
    """Numbers of which two have a sum beyond f32."""
    return any(bool((np.abs(i[0]) > 1e38).any()) for i in d.inputs)


def of_integers(d):
    return d.inputs[0][0].dtype.kind == "i"


def pads_negatively(d):
    """A stride longer than the window, and SAME: ONNX Runtime begins behind the input's first element."""
    strides, kernel = d.attributes.get("strides"), d.attributes["kernel_shape"]
    return strides is not None and d.attributes.get("auto_pad", "").startswith("SAME") and \
        any(s > k for s, k in zip(strides, kernel))


def pads_otherwise(d):
    """ONNX Runtime's average of dilated windows with SAME has other extents than the input's divided by the strides."""
    return pads_negatively(d) or (d.attributes.get("auto_pad", "").startswith("SAME") and "dilations" in d.attributes)


def divides_far(d):
    """A quotient of which not every unit is a number of the type."""
    a, b = (np.asarray(i[0]) for i in d.inputs)
    if of_integers(d):
        return a.dtype == np.int64 and bool(d.attributes.get("fmod"))  # ONNX Runtime: in f64
    with np.errstate(all="ignore"):
        return bool((np.abs(a.astype("f8") / b) > 2.0 ** (22 if a.dtype == np.float32 else 51)).any())


def decodes_capped(d):
    """One query with a cache: ONNX Runtime drops the softcap, onnx.reference does not."""
    rows = d.inputs[0][0].shape[-2]
    return rows == 1 and d.outputs == 3 and d.attributes.get("softcap", 0) != 0


def has_flat_row(d):
    """A row without a variance, perhaps behind a Relu: ONNX Runtime leaves out the specification's 1e-9."""
    x, axes = d.inputs[0][0], tuple(d.attributes.get("axes", (0, 2, 3)))
    return any(bool((np.ptp(y, axis=axes) == 0).any()) for y in (x, np.maximum(x, 0)) if y.size)


NAN = "a NaN among the terms of a maximum: any of them, or NaN"
ROUNDED = "ONNX Runtime sums integers in a float, or truncates each step"
RANGE = "a float beyond the integer type's range: ONNX leaves it open"

# operator: (may the outputs of this draw differ, why)
DEVIATIONS = {
    "AveragePool": (pads_otherwise, "ONNX Runtime pads by a negative number, or not enough for a dilated window"),
    "ArgMax": (has_nan, NAN), "ArgMin": (has_nan, NAN), "ReduceMax": (has_nan, NAN), "ReduceMin": (has_nan, NAN),
    "Attention": (decodes_capped, "ONNX Runtime drops the softcap of one query with a cache"),
    "Cast": (lambda d: d.inputs[0][0].dtype.kind == "f", RANGE),
    "CastLike": (lambda d: d.inputs[0][0].dtype.kind == "f", RANGE),
    "LpPool": (pads_negatively, "ONNX Runtime pads by a negative number"),
    "MaxPool": (lambda d: has_nan(d) or pads_otherwise(d), NAN),
    "Mean": (overflows, "the sum is beyond f32, the mean is not: it is infinite in ONNX Runtime"),
    "MeanVarianceNormalization": (has_flat_row, "0 / 1e-9 is 0, and NaN in ONNX Runtime"),
    "Mod": (divides_far, "the quotient is beyond the type's whole numbers; i64 with fmod: ONNX Runtime takes f64"),
    "Pow": (of_integers, RANGE),
    "ReduceL1": (of_integers, ROUNDED), "ReduceL2": (of_integers, ROUNDED), "ReduceLogSum": (of_integers, ROUNDED),
    "ReduceLogSumExp": (of_integers, ROUNDED), "ReduceMean": (of_integers, ROUNDED),
    "ReduceProd": (of_integers, ROUNDED), "ReduceSum": (of_integers, ROUNDED),
    "ReduceSumSquare": (of_integers, ROUNDED),
}


# Their functions have a range of 1 and errors of 1e-7, which are large where an output is a product of small ones.
OF_RANGE_1 = {"Gelu", "GRU", "LSTM", "RNN"}


class Draw:
    """One node with its inputs: (array, is it a constant), or None for one that is left out."""

    def __init__(self, op, seed):
        self.op, self.seed = op, seed
        self.rng = np.random.default_rng([seed, *op.encode()])
        self.inputs, self.attributes, self.outputs, self.opset, self.exact = [], {}, 1, OPSET, False
        self.specials, self.domain = 0.0, ""
        self.least = 1e-2 if op in OF_RANGE_1 else 0.0

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def size(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def shape(self, low=0, high=6, empty=0.02):
        rank = self.size(low, min(high, low + 3) if self.chance(0.8) else high)
        shape = []
        for _ in range(rank):
            room = ELEMENTS_MAX // max(1, int(np.prod(shape)))
            shape.append(self.pick([d for d in DIMS if d <= max(1, room)]))
        if shape and self.chance(empty):
            shape[self.size(0, rank - 1)] = 0
        return tuple(shape)

    def array(self, shape, kind="f4", low=-3.0, high=3.0):
        shape = tuple(shape)
        if kind == "b1":
            return np.asarray(self.rng.random(shape) < 0.5)
        if kind[0] == "i":
            large = self.specials > 0 and self.chance(0.2)
            most = np.iinfo(kind).max if large else 100
            return np.asarray(self.rng.integers(max(-most, -most if low < 0 else 0), most, shape), kind)
        data = np.asarray(self.rng.uniform(low, high, shape), kind)
        if self.specials and data.size:
            data = np.where(self.rng.random(shape) < self.specials, self.rng.choice(SPECIAL, shape).astype(kind), data)
        return np.asarray(data, kind)

    def part(self, shape):
        """A shape that broadcasts to this one."""
        small = [1 if self.chance(0.3) else n for n in shape]
        return tuple(small[self.size(0, len(small)):] if self.chance(0.4) else small)

    def add(self, array, constant=False):
        self.inputs.append(None if array is None else (np.asarray(array), constant))

    def ints(self, *values):
        self.add(np.array(values, "i8"), True)

    def set(self, **attributes):
        self.attributes.update({k: v for k, v in attributes.items() if v is not None})

    def axis(self, rank):
        return int(self.rng.integers(-rank, rank))

    def model(self, relu=False):
        names, graph_inputs, constants, nodes = [], [], [], []
        for i, one in enumerate(self.inputs):
            name = "" if one is None else "x%d" % i
            names.append(name)
            if one is None:
                continue
            if one[1]:
                constants.append(numpy_helper.from_array(one[0], name))
            else:
                graph_inputs.append(helper.make_tensor_value_info(name, CODES[one[0].dtype.str[1:]], one[0].shape))
        if relu:
            nodes.append(helper.make_node("Relu", ["x0"], ["r"]))
            names[0] = "r"
        while names and names[-1] == "":
            names.pop()
        outs = ["y%d" % i for i in range(self.outputs)]
        nodes.append(helper.make_node(self.op, names, outs, name="node", domain=self.domain, **self.attributes))
        graph = helper.make_graph(nodes, "drawn", graph_inputs, [helper.make_empty_tensor_value_info(o) for o in outs],
                                  constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        return onnx.shape_inference.infer_shapes(model)

    def feeds(self):
        return {"x%d" % i: one[0] for i, one in enumerate(self.inputs) if one is not None and not one[1]}


# ---- how the inputs and attributes of each operator are drawn

TABLE = {}


def draws(*names):
    def take(function):
        for name in names:
            TABLE[name] = function
        return function
    return take


FLOATS = {"Elu": ["alpha"], "LeakyRelu": ["alpha"], "Celu": ["alpha"], "HardSigmoid": ["alpha", "beta"],
          "Selu": ["alpha", "gamma"], "ThresholdedRelu": ["alpha"], "Shrink": ["bias", "lambd"], "Swish": ["alpha"]}
DOMAINS = {"Log": (0, 9), "Sqrt": (0, 9), "Acosh": (1, 9), "Atanh": (-0.99, 0.99), "Asin": (-1, 1), "Acos": (-1, 1),
           "Exp": (-100, 100), "Cosh": (-20, 20), "Sinh": (-20, 20), "Tan": (-1.5, 1.5)}


@draws("Abs", "Neg", "Sign", "Relu", "Identity")
def pointwise_all(d):
    d.specials = 0.1
    d.add(d.array(d.shape(), d.pick(ALL)))


@draws("Acosh", "Asinh", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
       "HardSwish", "LeakyRelu", "Log", "Mish", "Reciprocal", "Round", "Selu", "Shrink", "Sigmoid", "Sin", "Sinh",
       "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Asin", "Acos", "Atan")
def pointwise(d):
    d.specials = 0.1 if d.chance(0.5) else 0
    d.opset = 24 if d.op == "Swish" else 20 if d.op == "Gelu" else OPSET
    d.add(d.array(d.shape(), d.pick(REALS), *DOMAINS.get(d.op, (-4, 4))))
    for name in FLOATS.get(d.op, []):
        d.set(**{name: float(d.rng.uniform(0.1, 2))} if d.chance(0.6) else {})
    if d.op == "Gelu":
        d.set(approximate=d.pick([None, "none", "tanh"]))


@draws("Not")
def logical_not(d):
    d.add(d.array(d.shape(), "b1"))


@draws("IsInf", "IsNaN")
def predicate(d):
    d.specials, d.opset = 0.4, 20
    d.add(d.array(d.shape(), d.pick(REALS)))
    if d.op == "IsInf" and d.chance(0.5):
        d.set(detect_negative=d.size(0, 1), detect_positive=d.size(0, 1))


@draws("Add", "Sub", "Mul", "Div", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "PRelu", "Pow", "Mod",
       "Max", "Min", "Sum", "Mean", "And", "Or", "Xor", "BitShift")
def binary(d):
    kind = "b1" if d.op in ("And", "Or", "Xor") else d.pick(REALS if d.op in ("PRelu", "Sum", "Mean") else ALL)
    d.specials = 0 if d.op in ("Pow", "PRelu", "Mod") and d.chance(0.6) else 0.08
    shape = d.shape()
    count = d.size(1, 5) if d.op in ("Max", "Min", "Sum", "Mean") else 2
    shapes = [d.part(shape) for _ in range(count)]
    shapes[0] = shape if d.op == "PRelu" else shapes[0]
    for i, part in enumerate(shapes):
        low = 0.1 if d.op == "Pow" and i == 0 and d.chance(0.7) else -3.0
        array = d.array(part, kind, low)
        if kind[0] == "i" and d.op in ("Div", "Mod", "Pow") and i == 1:
            array = np.asarray(d.rng.integers(1, 6, part), kind) * (1 if d.op == "Pow" or d.chance(0.5) else -1)
        d.add(array.astype(kind), i > 0 and d.chance(0.3))
    if d.op == "Mod":
        d.set(fmod=1 if kind[0] == "f" else d.pick([None, 0, 1]))
    if d.op == "Pow" and kind[0] == "f" and d.chance(0.4):
        d.inputs[1] = (np.asarray(d.pick([2.0, 0.5, 3.0, -1.0, 0.0]), kind), True)


@draws("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")
def bits(d):
    kind, shape = d.pick(("i4", "i8")), d.shape()
    d.specials = 0.5  # large numbers
    for _ in range(1 if d.op == "BitwiseNot" else 2):
        d.add(d.array(d.part(shape), kind), bool(d.inputs) and d.chance(0.3))


@draws("Where")
def where(d):
    shape = d.shape()
    kind = d.pick(ALL + ("b1",))
    d.specials = 0.1
    d.add(d.array(d.part(shape), "b1"))
    d.add(d.array(d.part(shape), kind))
    d.add(d.array(d.part(shape), kind), d.chance(0.3))


@draws("Clip")
def clip(d):
    kind = d.pick(ALL)
    d.specials = 0.1
    d.add(d.array(d.shape(), kind))
    d.specials = 0
    for sign in (-1, 1):
        d.add(np.asarray(sign * d.size(0, 3), kind) if d.chance(0.7) else None, d.chance(0.6))


@draws("Cast")
def cast(d):
    kind, to = d.pick(tuple(CODES)), d.pick(tuple(CODES))
    d.specials = 0.1 if kind[0] != "f" or to[0] == "f" else 0
    d.add(d.array(d.shape(), kind, -300, 300))
    if kind[0] == "f" and d.chance(0.5):
        d.inputs[0] = (np.asarray(np.round(d.inputs[0][0] * 2) / 2, kind), False)
    d.set(to=CODES[to])


@draws("CastLike")
def cast_like(d):
    d.add(d.array(d.shape(), d.pick(tuple(CODES)), -300, 300))
    d.add(d.array((1,), d.pick(tuple(CODES))))


@draws("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
       "ReduceLogSumExp", "ReduceSumSquare")
def reduce(d):
    shape = d.shape(0, 5, 0.01)
    d.opset = d.pick([13, 18])
    kind = d.pick(ALL)
    d.specials = 0.05 if d.op in ("ReduceMax", "ReduceMin") else 0
    low = 0.1 if d.op == "ReduceLogSum" else -2.0
    d.add(d.array(shape, kind, low, 2.0) if kind[0] == "f" else d.array(shape, kind) % 7)
    d.set(keepdims=d.pick([None, 0, 1]))
    if shape and d.chance(0.8):
        axes = [int(a) for a in d.rng.choice(len(shape), d.size(1, len(shape)), replace=False)]
        axes = [a - len(shape) if d.chance(0.3) else a for a in axes]
        if d.opset == 18 or d.op == "ReduceSum":
            d.ints(*axes)
        else:
            d.set(axes=axes)
    elif d.opset == 18 and d.chance(0.3):
        d.ints()
        d.set(noop_with_empty_axes=d.pick([None, 0, 1]))


@draws("ArgMax", "ArgMin")
def extreme(d):
    shape = d.shape(1, 5, 0)
    d.add(d.array(shape, d.pick(ALL)))
    if d.inputs[0][0].dtype.kind == "f" and d.chance(0.5):
        d.inputs[0] = (np.round(d.inputs[0][0]), False)  # equal elements
    d.set(axis=d.pick([None, d.axis(len(shape))]), keepdims=d.pick([None, 0, 1]),
          select_last_index=d.pick([None, 0, 1]))


@draws("Softmax", "LogSoftmax", "Hardmax")
def rows(d):
    shape = d.shape(1, 5, 0)
    d.opset = d.pick([11, 13])
    d.add(d.array(shape, d.pick(REALS), -8, 8))
    d.set(axis=d.pick([None, d.axis(len(shape))]))


@draws("LayerNormalization", "RMSNormalization")
def layer_norm(d):
    shape = d.shape(1, 4, 0)
    axis = d.axis(len(shape))
    d.opset = 23 if d.op[0] == "R" else 17
    d.add(d.array(shape))
    d.add(d.array(shape[axis:]), d.chance(0.5))
    if d.op[0] == "L" and d.chance(0.6):
        d.add(d.array(shape[axis:]), d.chance(0.5))
    d.set(axis=axis, epsilon=d.pick([None, 1e-3]))
    d.outputs = d.size(1, 3) if d.op[0] == "L" and d.chance(0.3) else 1


def maps(d, low=1, high=3, most=9):
    """[batch, channels, spatial...]"""
    rank = d.size(low, high)
    return (d.size(1, 3), d.size(1, 6)) + tuple(d.size(3, most if rank < 3 else 5) for _ in range(rank))


@draws("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN", "MeanVarianceNormalization",
       "LpNormalization")
def channel_norm(d):
    shape = d.shape(2, 5, 0) if d.op == "BatchNormalization" else maps(d)
    channels = shape[1]
    if d.op == "MeanVarianceNormalization":
        shape = maps(d, 2, 2)
        d.set(axes=d.pick([None, [0, 2, 3], [1, 2], [-1]]))
    if d.op == "LpNormalization":
        d.set(axis=d.pick([None, d.axis(len(shape))]), p=d.pick([None, 1, 2]))
    if d.op == "LRN":
        d.set(size=d.pick([1, 3, 4, 5]), alpha=d.pick([None, 0.01]), beta=d.pick([None, 0.5]), bias=d.pick([None, 2.0]))
    d.add(d.array(shape))
    parameters = {"BatchNormalization": 4, "InstanceNormalization": 2, "GroupNormalization": 2}.get(d.op, 0)
    for i in range(parameters):
        d.add(d.array((channels,), low=0.2 if i == 3 else -2, high=2.0), d.chance(0.6))
    if d.op == "GroupNormalization":
        d.opset = 21
        d.set(num_groups=d.pick([g for g in range(1, channels + 1) if channels % g == 0]))
    if parameters:
        d.set(epsilon=d.pick([None, 1e-2]))
    if d.op == "BatchNormalization" and d.chance(0.3):
        d.set(training_mode=1, momentum=d.pick([None, 0.25]))
        d.outputs = d.size(1, 3)


def window(d, spatial, kernel, dilated=True):
    rank = len(spatial)
    dilations = [d.size(1, 2) for _ in range(rank)] if dilated and d.chance(0.3) else None
    d.set(strides=[d.size(1, 3) for _ in range(rank)] if d.chance(0.6) else None, dilations=dilations)
    if d.chance(0.25):
        d.set(auto_pad=d.pick(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
    if d.attributes.get("auto_pad", "NOTSET") == "NOTSET" and d.chance(0.7):
        d.set(pads=[d.size(0, max(0, k - 1)) for k in kernel * 2])


@draws("Conv", "ConvTranspose")
def convolution(d):
    shape = maps(d)
    rank = len(shape) - 2
    group = d.pick([g for g in range(1, shape[1] + 1) if shape[1] % g == 0]) if d.chance(0.4) else 1
    kernel = [d.size(1, min(3, n)) for n in shape[2:]]
    filters = group * d.size(1, 3)
    transposed = d.op == "ConvTranspose"
    d.add(d.array(shape))
    d.add(d.array((shape[1], filters // group, *kernel) if transposed else (filters, shape[1] // group, *kernel)),
          d.chance(0.7))
    if d.chance(0.5):
        d.add(d.array((filters,)), d.chance(0.7))
    window(d, shape[2:], kernel)
    d.set(group=group if group > 1 or d.chance(0.3) else None, kernel_shape=kernel if d.chance(0.7) else None)
    if transposed:
        strides = d.attributes.get("strides", [1] * rank)
        if d.chance(0.3):
            d.set(output_padding=[d.size(0, s - 1) for s in strides])
        elif d.chance(0.15):
            d.attributes.pop("pads", None)
            d.set(output_shape=[n * s for n, s in zip(shape[2:], strides)])


@draws("MaxPool", "AveragePool", "LpPool")
def pool(d):
    shape = maps(d)
    kernel = [d.size(1, min(3, n)) for n in shape[2:]]
    d.opset = 19 if d.op == "AveragePool" else 18
    d.specials = 0.05 if d.op == "MaxPool" and d.chance(0.3) else 0
    d.add(d.array(shape, d.pick(["f4", "f4", "f8"]) if d.op == "MaxPool" else "f4"))
    d.set(kernel_shape=kernel)
    window(d, shape[2:], kernel)
    d.set(ceil_mode=d.pick([None, None, 0, 1]))
    if d.op == "AveragePool":
        d.set(count_include_pad=d.pick([None, 0, 1]))
    if d.op == "LpPool":
        d.set(p=d.pick([None, 1, 2, 3]))


@draws("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d):
    d.add(d.array(maps(d)))


@draws("MatMul")
def matmul(d):
    kind = d.pick(("f4", "f4", "f8", "i4", "i8"))
    m, k, n = d.size(1, 9), d.size(1, 17), d.size(1, 9)
    batch = d.shape(0, 2, 0)
    a = d.part(batch) + (m, k) if d.chance(0.85) else (k,)
    b = d.part(batch) + (k, n) if d.chance(0.85) else (k,)
    d.add(d.array(a, kind))
    d.add(d.array(b, kind), d.chance(0.4))


@draws("Gemm")
def gemm(d):
    m, k, n = d.size(1, 9), d.size(1, 17), d.size(1, 9)
    turned = d.size(0, 1), d.size(0, 1)
    d.add(d.array((k, m) if turned[0] else (m, k)))
    d.add(d.array((n, k) if turned[1] else (k, n)), d.chance(0.5))
    if d.chance(0.7):
        d.add(d.array(d.part((m, n))), d.chance(0.5))
    d.set(transA=turned[0] or None, transB=turned[1] or None, alpha=d.pick([None, 0.5, 2.0]),
          beta=d.pick([None, 0.0, 0.25]))


EQUATIONS = ("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ij->", "ii->i", "i,i->", "i,j->ij", "bhid,bhjd->bhij", "...ij,...jk->...ik",
             "ij,ij->ij", "abc,cd->abd", "ij->i", "bij,bkj,bkl->bil")


@draws("Einsum")
def einsum(d):
    equation = d.pick(EQUATIONS)
    extents = collections.defaultdict(lambda: d.size(1, 5))
    dots = d.shape(0, 2, 0)
    for term in equation.split("->")[0].split(","):
        shape = dots if "..." in term else ()
        d.add(d.array(shape + tuple(extents[c] for c in term.replace("...", ""))))
    d.set(equation=equation)


@draws("Reshape")
def reshape(d):
    shape = d.shape(0, 5, 0)
    d.add(d.array(shape, d.pick(ALL + ("b1",))))
    count = int(np.prod(shape))
    first = d.pick([n for n in range(1, count + 1) if count % n == 0])
    out = list(d.pick([(count,), (first, count // first), (first, 1, count // first), (-1,), (first, -1)]))
    if shape and d.chance(0.2):
        out = [0] + [-1] if len(shape) > 1 else [0]
    d.ints(*out)
    d.set(allowzero=d.pick([None, None, 0]))


@draws("Flatten", "Transpose", "Squeeze", "Unsqueeze")
def reorder(d):
    shape = d.shape(2, 6)
    if d.op == "Squeeze":
        shape = tuple(1 if d.chance(0.5) else n for n in shape)
    d.add(d.array(shape, d.pick(ALL + ("b1",))))
    rank = len(shape)
    if d.op == "Flatten":
        d.set(axis=d.pick([None, int(d.rng.integers(-rank, rank + 1))]))
    elif d.op == "Transpose":
        d.set(perm=d.pick([None, [int(i) for i in d.rng.permutation(rank)]]))
    elif d.op == "Squeeze" and 1 in shape and d.chance(0.7):
        axes = [i for i, n in enumerate(shape) if n == 1]
        d.ints(*[a - rank if d.chance(0.3) else a for a in axes[:d.size(1, len(axes))]])
    elif d.op == "Unsqueeze":
        more = d.size(1, 2)
        d.ints(*[int(a) for a in d.rng.choice(rank + more, more, replace=False)])


@draws("Concat")
def concat(d):
    shape = list(d.shape(1, 5))
    axis = d.axis(len(shape))
    kind = d.pick(ALL)
    for _ in range(d.size(1, 5)):
        shape[axis] = d.size(1, 5)
        d.add(d.array(shape, kind), d.chance(0.2))
    d.set(axis=axis)


@draws("Slice")
def slices(d):
    shape = d.shape(1, 5, 0)
    d.add(d.array(shape, d.pick(ALL + ("b1",))))
    axes = [int(a) for a in d.rng.choice(len(shape), d.size(1, len(shape)), replace=False)]
    steps = [d.pick([1, 1, 2, 3, -1, -2]) for _ in axes]
    starts, ends = [], []
    for a, step in zip(axes, steps):
        n = shape[a]
        low, high = sorted([d.size(0, n - 1), d.size(0, n - 1)])
        start, end = (low, high + 1) if step > 0 else (high, low - 1)
        if d.chance(0.3):
            start, end = (0, 2 ** 31 - 1) if step > 0 else (2 ** 31 - 1, -2 ** 31)
        elif step > 0 and d.chance(0.3):
            start, end = start - n, end if end == n else end - n
        elif step < 0:
            end = end if end >= 0 else -n - 1
        starts.append(start)
        ends.append(end)
    d.ints(*starts)
    d.ints(*ends)
    d.ints(*axes)
    if any(s != 1 for s in steps) or d.chance(0.5):
        d.ints(*steps)


@draws("Split")
def split(d):
    shape = list(d.shape(1, 4, 0))
    axis = d.axis(len(shape))
    shape[axis] = d.size(2, 9)
    d.add(d.array(shape, d.pick(ALL)))
    d.set(axis=axis)
    if d.chance(0.5):
        d.outputs = d.size(1, shape[axis])
        d.set(num_outputs=d.outputs)
    else:
        first = d.size(1, shape[axis] - 1)
        d.outputs = 2
        d.ints(first, shape[axis] - first)


@draws("Pad")
def pad(d):
    shape = d.shape(1, 5, 0)
    mode = d.pick(["constant", "reflect", "edge", "wrap"])
    d.opset = 19
    d.specials = 0.05
    kind = d.pick(ALL)
    d.add(d.array(shape, kind))
    least = -1 if d.chance(0.3) else 0
    pads = []
    for n in shape * 2:
        most = n - 1 if mode == "reflect" else min(n, 3) if mode == "wrap" else 3
        pads.append(d.size(least if n > 2 else 0, max(0, min(most, 3))))
    d.ints(*pads)
    if mode == "constant" and d.chance(0.6):
        d.add(d.array((), kind), d.chance(0.7))
    d.set(mode=mode if mode != "constant" or d.chance(0.5) else None)


@draws("Tile", "Expand")
def repeat(d):
    shape = d.shape(1, 4, 0)
    if d.op == "Expand":
        whole = d.shape(0, 5, 0)
        d.add(d.array(d.part(whole), d.pick(ALL + ("b1",))))
        d.ints(*whole)
    else:
        d.add(d.array(shape[:3], d.pick(ALL)))
        d.ints(*[d.size(1, 3) for _ in shape[:3]])


@draws("Resize")
def resize(d):
    shape = maps(d, 1, 2, 6)
    mode = d.pick(["nearest", "linear", "cubic"]) if len(shape) == 4 else d.pick(["nearest", "linear"])
    d.opset = 19
    d.add(d.array(shape))
    d.add(None)
    scales = [1.0, 1.0] + [float(d.pick([0.5, 0.6, 1.0, 1.5, 2.0, 3.0])) for _ in shape[2:]]
    if d.chance(0.6):
        d.add(np.array(scales, "f4"), True)
    else:
        d.add(None)
        d.ints(*[max(1, int(n * s)) for n, s in zip(shape, scales)])
    d.set(mode=mode, coordinate_transformation_mode=d.pick(
        [None, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]))
    if mode == "nearest":
        d.set(nearest_mode=d.pick([None, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]))
    if mode == "cubic":
        d.set(cubic_coeff_a=d.pick([None, -0.5]), exclude_outside=d.pick([None, 0, 1]))


@draws("DepthToSpace", "SpaceToDepth")
def blocks(d):
    block = d.size(1, 3)
    to_space = d.op == "DepthToSpace"
    shape = (d.size(1, 2), d.size(1, 3) * (block * block if to_space else 1),
             *(d.size(1, 4) * (1 if to_space else block) for _ in range(2)))
    d.add(d.array(shape))
    d.set(blocksize=block)
    if to_space:
        d.set(mode=d.pick([None, "DCR", "CRD"]))


@draws("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND")
def indexed(d):
    shape = d.shape(1, 4, 0)
    rank = len(shape)
    axis = d.axis(rank)
    if d.chance(0.15):  # long, among axes of one
        shape = tuple(d.size(4000, 9000) if i == axis % rank else 1 for i in range(rank))
    kind = d.pick(ALL)
    constant = d.chance(0.5)
    d.add(d.array(shape, kind))
    n = shape[axis]

    def index(of, extent):
        least = -extent if d.op != "GatherND" or d.chance(0.5) else 0
        return d.rng.integers(least, extent, of).astype(d.pick(["i8", "i4"]) if d.op[0] == "G" and d.op != "GatherND" else "i8")

    if d.op == "Gather":
        d.add(index(d.shape(0, 2, 0)[:2], n), constant)
        d.set(axis=axis)
    elif d.op == "GatherElements":
        of = list(shape)
        of[axis] = d.size(1, 5)
        d.add(index(of, n), constant)
        d.set(axis=axis)
    elif d.op == "ScatterElements":
        of = [d.size(1, m) for m in shape]
        picked = np.stack([d.rng.permutation(n)[:of[axis]] for _ in range(int(np.prod(of)) // of[axis])])
        of_axis = [of[i] for i in range(rank) if i != axis % rank] + [of[axis]]
        d.add(np.moveaxis(picked.reshape(of_axis), -1, axis).astype("i8"), constant)
        d.add(d.array(of, kind))
        d.set(axis=axis, reduction=d.pick([None, "none", "add", "mul", "max", "min"]))
    else:
        depth = d.size(1, rank)
        if d.op == "GatherND":
            d.add(np.stack([index((d.size(1, 4),) * 1, m)[:1].repeat(3) for m in shape[:depth]], -1), constant)
        else:
            rows = list({tuple(int(d.rng.integers(m)) for m in shape[:depth]) for _ in range(d.size(1, 4))})
            d.add(np.array(rows, "i8"), constant)
            d.add(d.array((len(rows),) + shape[depth:], kind))
            d.set(reduction=d.pick([None, "none", "add", "mul", "max", "min"]))


@draws("Scatter")
def scatter(d):
    d.opset = 10
    shape = d.shape(1, 3, 0)
    axis = d.axis(len(shape))
    d.add(d.array(shape, d.pick(ALL)))
    d.add(np.zeros([1] * len(shape), "i8") + d.size(0, shape[axis] - 1), d.chance(0.5))
    d.add(d.array([1] * len(shape), d.inputs[0][0].dtype.str[1:]))
    d.set(axis=axis)


@draws("Attention")
def attention(d):
    batch, heads, queries, keys, size, width = (d.size(1, n) for n in (2, 4, 5, 6, 8, 8))
    d.opset = 23
    groups = d.pick([g for g in range(1, heads + 1) if heads % g == 0])
    flat = d.chance(0.3)

    def tensor(of, rows, elements):
        return d.array((batch, rows, of * elements) if flat else (batch, of, rows, elements))

    d.add(tensor(heads, queries, size))
    d.add(tensor(groups, keys, size))
    d.add(tensor(groups, keys, width))
    past = d.size(1, 3) if d.chance(0.4) else 0
    if d.chance(0.5):
        d.add(d.array(d.part((batch, heads)) [-2:] + (queries, keys + past) if d.chance(0.3) else (queries, keys + past),
                      d.pick(("f4", "b1"))), d.chance(0.3))
        if d.inputs[3][0].dtype == bool:
            d.inputs[3][0][..., 0] = True  # no row is masked whole
    elif past:
        d.add(None)
    if past:
        d.add(d.array((batch, groups, past, size)))
        d.add(d.array((batch, groups, past, width)))
        d.outputs = 3
    d.set(is_causal=d.pick([None, 0, 1]), scale=d.pick([None, 0.5]), softcap=d.pick([None, None, 2.0]))
    if flat:
        d.set(q_num_heads=heads, kv_num_heads=groups)


@draws("RotaryEmbedding")
def rotary(d):
    batch, heads, rows, size = d.size(1, 3), d.size(1, 4), d.size(1, 6), 2 * d.size(1, 5)
    d.opset = 23
    d.add(d.array((batch, heads, rows, size)))
    positions = d.chance(0.5)
    shape = (rows + 2, size // 2) if positions else (batch, rows, size // 2)
    d.add(d.array(shape), d.chance(0.5))
    d.add(d.array(shape), d.chance(0.5))
    if positions:
        d.add(d.rng.integers(0, rows + 2, (batch, rows)), d.chance(0.5))
    d.set(interleaved=d.pick([None, 0, 1]))


@draws("Dropout")
def dropout(d):
    d.opset = 13
    d.add(d.array(d.shape(), d.pick(REALS)))
    if d.chance(0.5):
        d.add(np.asarray(0.25, "f4"), True)
    d.outputs = d.size(1, 2)


@draws("Upsample")
def upsample(d):
    d.opset = 9
    shape = maps(d, 1, 2, 6)
    d.add(d.array(shape))
    d.add(np.array([1.0, 1.0] + [float(d.pick([1, 2, 3])) for _ in shape[2:]], "f4"), True)
    d.set(mode=d.pick([None, "nearest", "linear"] if len(shape) == 4 else [None, "nearest"]))


@draws("CenterCropPad")
def center(d):
    shape = d.shape(1, 4, 0)
    d.add(d.array(shape, d.pick(ALL)))
    axes = [int(a) for a in d.rng.choice(len(shape), d.size(1, len(shape)), replace=False)]
    axes = axes if d.chance(0.6) else None
    d.ints(*[d.size(1, 9) for _ in axes or shape])
    d.set(axes=axes)


@draws("OneHot")
def one_hot(d):
    depth = d.size(1, 7)
    indices = d.rng.integers(-depth, depth, d.shape(1, 3, 0))
    d.add(indices, d.chance(0.3))
    d.add(np.array(depth), True)
    d.add(d.array((2,), d.pick(("f4", "i8"))), True)
    d.set(axis=d.pick([None, d.axis(indices.ndim + 1)]))


@draws("TopK")
def top_k(d):
    shape = d.shape(1, 4, 0)
    axis = d.axis(len(shape))
    d.add(d.array(shape, d.pick(ALL)))
    d.ints(d.size(1, shape[axis]))
    d.set(axis=axis, largest=d.pick([None, 0, 1]))
    d.outputs = 2


@draws("CumSum", "CumProd")
def cumulate(d):
    shape = d.shape(1, 4, 0)
    d.opset = 26 if d.op == "CumProd" else OPSET
    d.add(d.array(shape, d.pick(ALL if d.op == "CumSum" else REALS), -2, 2))
    d.add(np.array(d.axis(len(shape))), True)
    d.set(exclusive=d.pick([None, 0, 1]), reverse=d.pick([None, 0, 1]))


@draws("Trilu", "EyeLike")
def triangle(d):
    shape = d.shape(2, 4, 0) if d.op == "Trilu" else tuple(d.size(1, 6) for _ in range(2))
    d.add(d.array(shape, d.pick(ALL)))
    if d.op == "Trilu":
        d.set(upper=d.pick([None, 0, 1]))
        if d.chance(0.6):
            d.add(np.array(d.size(-3, 3)), True)
    else:
        d.set(k=d.pick([None, -1, 2]), dtype=d.pick([None, CODES["f4"], CODES["i8"]]))


@draws("Range", "ConstantOfShape")
def made(d):
    if d.op == "Range":
        start, step = d.size(-5, 5), d.pick([1, 2, -1, 3])
        kind = d.pick(ALL)
        for value in (start, start + step * d.size(1, 9), step):
            d.add(np.array(value, kind), True)
    else:
        d.ints(*d.shape(1, 3, 0))
        d.set(value=numpy_helper.from_array(d.array((1,), d.pick(ALL))))


@draws("Shape", "Size")
def measured(d):
    d.add(d.array(d.shape(1, 5)))
    if d.op == "Shape":
        d.set(start=d.pick([None, 1, -1]), end=d.pick([None, 2, -1]))


@draws("RNN", "GRU", "LSTM")
def recurrent(d):
    steps, batch, size, hidden = d.size(1, 5), d.size(1, 3), d.size(1, 5), d.size(1, 5)
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.op]
    direction = d.pick([None, "forward", "reverse", "bidirectional"])
    n = 2 if direction == "bidirectional" else 1
    layout = d.pick([None, None, 0, 1])
    d.opset = 14
    d.add(d.array((batch, steps, size) if layout else (steps, batch, size)))
    d.add(d.array((n, gates * hidden, size)), True)
    d.add(d.array((n, gates * hidden, hidden)), True)
    d.add(d.array((n, 2 * gates * hidden)) if d.chance(0.6) else None, True)
    d.add(d.rng.integers(1, steps + 1, batch).astype("i4") if d.chance(0.15) else None, d.chance(0.5))
    state = (batch, n, hidden) if layout else (n, batch, hidden)
    d.add(d.array(state) if d.chance(0.4) else None)
    if d.op == "LSTM":
        d.add(d.array(state) if d.chance(0.4) else None)
        d.add(d.array((n, 3 * hidden)) if d.chance(0.2) else None, True)
        d.set(input_forget=1 if d.chance(0.1) else None)
    if d.op == "GRU":
        d.set(linear_before_reset=d.pick([None, 0, 1]))
    if d.chance(0.3):
        names = ["Tanh", "Sigmoid", "Softsign", "HardSigmoid", "ScaledTanh"]
        names += ["Relu", "Elu", "LeakyRelu", "Affine"] if d.op == "RNN" else []  # unbounded: no gates
        functions = {"RNN": 1, "GRU": 2, "LSTM": 3}[d.op]
        d.set(activations=[d.pick(names) for _ in range(n * functions)], activation_alpha=[0.3, 0.4, 0.6, 0.2, 0.7, 0.5],
              activation_beta=[0.1, 0.9, 0.5, 0.4, 0.2, 0.6])
    d.set(hidden_size=hidden, direction=direction, layout=layout, clip=0.5 if d.chance(0.1) else None)
    d.outputs = 3 if d.op == "LSTM" else 2


@draws("GridSample")
def grid_sample(d):
    shape = maps(d, 1, 3, 5)
    rank = len(shape) - 2
    d.opset = 20
    d.add(d.array(shape, d.pick(("f4", "f4", "f8"))))
    out = tuple(d.size(1, 4) for _ in range(rank))
    d.add(d.array((shape[0], *out, rank), d.inputs[0][0].dtype.str[1:], -1.8, 1.8))
    d.set(mode=d.pick([None, "linear", "nearest"] + (["cubic"] if rank == 2 else [])), align_corners=d.pick([None, 0, 1]),
          padding_mode=d.pick([None, "zeros", "border", "reflection"]))


@draws("RoiAlign")
def roi_align(d):
    shape, count = maps(d, 2, 2), d.size(1, 4)
    d.opset = 16
    d.add(d.array(shape))
    corner = d.rng.uniform(-2, 6, (count, 2))
    d.add(np.concatenate([corner, corner + d.rng.uniform(0.5, 6, (count, 2))], 1).astype("f4"))
    d.add(d.rng.integers(0, shape[0], count).astype("i8"), d.chance(0.3))
    d.set(output_height=d.size(1, 4), output_width=d.size(1, 4), sampling_ratio=d.size(1, 3),
          spatial_scale=d.pick([None, 0.5]), mode=d.pick([None, "avg"]),
          coordinate_transformation_mode=d.pick([None, "half_pixel", "output_half_pixel"]))


@draws("DeformConv")
def deform_conv(d):
    rows, columns = d.size(4, 7), d.size(4, 7)
    groups, offsets, window_size = d.size(1, 2), d.size(1, 2), d.size(1, 3)
    channels, filters = groups * offsets * d.size(1, 2), groups * d.size(1, 2)
    pads, stride = [d.size(0, 1) for _ in range(4)], d.size(1, 2)
    out = ((rows + pads[0] + pads[2] - window_size) // stride + 1, (columns + pads[1] + pads[3] - window_size) // stride + 1)
    batch, area = d.size(1, 2), window_size * window_size
    d.opset = 19
    d.add(d.array((batch, channels, rows, columns)))
    d.add(d.array((filters, channels // groups, window_size, window_size)), d.chance(0.5))
    d.add(d.array((batch, offsets * area * 2, *out)))
    d.add(d.array((filters,)) if d.chance(0.5) else None)
    d.add(d.array((batch, offsets * area, *out)) if d.chance(0.5) else None)
    d.set(group=groups, offset_group=offsets, pads=pads, strides=[stride, stride])


@draws("DFT")
def dft(d):
    shape = list(d.shape(1, 3, 0)) + [d.size(1, 2)]
    axis = d.size(0, len(shape) - 2)
    d.opset = 20
    d.add(d.array(shape, d.pick(REALS)))
    d.add(np.asarray(d.size(1, 9), "i8") if d.chance(0.3) else None, True)
    d.add(np.asarray(axis, "i8"), True)
    half = shape[-1] == 1 and d.chance(0.5)
    d.set(onesided=1 if half else None, inverse=None if half else d.pick([None, 0, 1]))


@draws("STFT")
def stft(d):
    frame, count = d.size(2, 8), d.size(9, 30)
    d.opset = 17
    d.add(d.array((d.size(1, 3), count, 1)))
    d.ints(d.size(1, 4))
    d.inputs[-1] = (d.inputs[-1][0][0], True)
    window = d.chance(0.5)
    d.add(d.array((frame,)) if window else None)
    d.add(np.asarray(frame, "i8"), True)
    d.set(onesided=d.pick([None, 0, 1]))


@draws("HannWindow", "HammingWindow", "BlackmanWindow")
def window_function(d):
    d.add(np.asarray(d.size(4, 20), "i8"), True)
    d.set(periodic=d.pick([None, 0, 1]))


@draws("Col2Im")
def col2im(d):
    block = [d.size(1, 3), d.size(1, 3)]
    strides, dilations = [d.size(1, 2), d.size(1, 2)], [d.size(1, 2), d.size(1, 2)]
    image = [n + d.size(3, 6) for n in block]
    counts = [(image[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(2)]
    d.opset = 18
    d.add(d.array((d.size(1, 2), d.size(1, 3) * block[0] * block[1], counts[0] * counts[1])))
    d.ints(*image)
    d.ints(*block)
    d.set(strides=strides, dilations=dilations)


@draws("Compress")
def compress(d):
    shape = d.shape(1, 4, 0)
    axis = None if d.chance(0.3) else d.axis(len(shape))
    d.add(d.array(shape, d.pick(ALL)))
    condition = d.array((d.size(1, int(np.prod(shape)) if axis is None else shape[axis]),), "b1")
    condition[0] = True
    d.add(condition, True)
    d.set(axis=axis)


@draws("ReverseSequence")
def reverse_sequence(d):
    shape, batch = d.shape(2, 4, 0), d.size(0, 1)
    d.add(d.array(shape, d.pick(ALL)))
    d.add(d.rng.integers(1, shape[1 - batch] + 1, shape[batch]).astype("i8"), d.chance(0.3))
    d.set(batch_axis=batch, time_axis=1 - batch)


@draws("Det")
def determinant(d):
    n = d.size(1, 4)
    d.add(d.array(d.shape(0, 2, 0) + (n, n)))


@draws("AffineGrid")
def affine_grid(d):
    rank = d.size(2, 3)
    size = [d.size(1, 3), 1] + [d.size(2, 5) for _ in range(rank)]
    d.opset = 20
    d.add(d.array((size[0], rank, rank + 1)))
    d.ints(*size)
    d.set(align_corners=d.pick([None, 0, 1]))


@draws("Scaler", "Normalizer", "Binarizer", "LinearRegressor", "LinearClassifier")
def linear_model(d):
    rows, features, scores = d.size(1, 5), d.size(1, 6), d.size(3, 5)
    d.domain = "ai.onnx.ml"
    d.add(d.array((rows, features)))

    def reals(count):
        return [float(v) for v in d.array((count,))]

    if d.op == "Scaler":
        d.set(offset=reals(d.pick([1, features])), scale=reals(d.pick([1, features])))
    elif d.op == "Normalizer":
        d.set(norm=d.pick(["L1", "L2"]))
    elif d.op == "Binarizer":
        d.set(threshold=0.5)
    else:
        d.set(coefficients=reals(scores * features), intercepts=reals(scores))
        if d.op == "LinearRegressor":
            d.set(targets=scores)
        else:
            d.outputs = 2
            d.set(classlabels_ints=[7 + 2 * i for i in range(scores)], post_transform=d.pick([None, "NONE", "SOFTMAX"]))


@draws("TreeEnsembleClassifier", "TreeEnsembleRegressor")
def trees(d):
    rows, features, targets = d.size(1, 6), d.size(1, 4), d.size(1, 4)
    classifies = d.op == "TreeEnsembleClassifier"
    d.domain = "ai.onnx.ml"
    d.add(np.round(d.array((rows, features)) * 2) / 2)
    if d.chance(0.2):
        d.inputs[0][0].ravel()[0] = np.nan
    targets = max(2, targets) if classifies else targets
    # Each leaf votes for each target: ONNX Runtime drops the base value of one without a vote. It takes 0
    # and 1 for the labels of two classes that both have votes.
    voted = [d.size(0, 1)] if classifies and targets == 2 else list(range(targets))
    lists = {name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
                                   "missing_value_tracks_true")}
    votes = {"treeids": [], "nodeids": [], "ids": [], "weights": []}
    modes = ["BRANCH_LEQ"] if d.chance(0.5) else ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ"]
    low = 0 if d.chance(0.5) else -1
    for tree in range(d.size(1, 4)):
        depth = d.size(0, 3)
        for node in range(2 ** (depth + 1) - 1):
            leaf = node >= 2 ** depth - 1
            values = (tree, node, 0 if leaf else d.size(0, features - 1), "LEAF" if leaf else d.pick(modes),
                      0.0 if leaf else d.size(-4, 4) / 2, 0 if leaf else 2 * node + 1, 0 if leaf else 2 * node + 2, d.size(0, 1))
            for name, value in zip(lists, values):
                lists[name].append(value)
            for target in voted if leaf else []:
                for name, value in zip(votes, (tree, node, target, float(d.rng.uniform(low, 1)))):
                    votes[name].append(value)
    d.set(**{"nodes_" + name: values for name, values in lists.items()})
    d.set(**{("class_" if classifies else "target_") + name: values for name, values in votes.items()})
    if classifies:
        d.outputs = 2
        d.set(classlabels_int64s=[3 * i + 1 for i in range(targets)], post_transform=d.pick(["NONE", "SOFTMAX", "LOGISTIC"]))
    else:
        d.set(n_targets=targets, aggregate_function=d.pick([None, "SUM", "AVERAGE", "MIN", "MAX"]),
              base_values=[float(v) for v in d.array((targets,))] if d.chance(0.5) else None)


@draws("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d):
    classes = d.size(2, 6)
    rest = tuple(d.size(1, 4) for _ in range(d.size(0, 2)))
    batch = d.size(1, 4)
    labels = d.rng.integers(0, classes, (batch,) + rest)
    d.add(d.array((batch, classes) + rest))
    d.add(labels, d.chance(0.3))
    if d.chance(0.4):
        d.add(d.array((classes,), low=0.1), d.chance(0.5))
    d.set(reduction=d.pick([None, "mean", "sum", "none"]))
    if d.chance(0.2):
        d.set(ignore_index=int(d.rng.integers(classes)))


# ---- quantized tensors: ONNX Runtime's bytes are wanted, but for a rare step of one

NARROW = ("u1", "i1")


def narrow(d, shape, kind, most=255):
    """Elements of the whole type, or of a part of it."""
    low = 0 if kind == "u1" else -128
    far = 257 if kind == "i2" else 1  # so that the whole type is drawn
    return np.asarray(d.rng.integers(low, low + most + 1, tuple(shape)) * far, kind)


def scales(d, shape):
    return np.asarray(d.rng.uniform(0.002, 0.05, shape), "f4")


def zero(d, shape, kind, none=0.3):
    """Zero points: often those that quantizers write."""
    usual = 128 if kind == "u1" else 0
    return np.full(shape, usual, kind) if d.chance(none) else narrow(d, shape, kind)


@draws("QuantizeLinear", "DequantizeLinear")
def quantize(d):
    d.opset, kind = 21, d.pick((*NARROW, "i2"))
    shape = d.shape(0 if d.chance(0.2) else 1, 4, empty=0)
    axis = d.axis(len(shape)) if shape and d.chance(0.5) else None
    of = () if axis is None else (shape[axis],)
    if axis is not None and d.chance(0.3):
        block = d.size(1, shape[axis])
        of = tuple(-(-n // block) if i == axis % len(shape) else n for i, n in enumerate(shape))
        d.set(block_size=block)
    d.set(axis=axis)
    quantizes = d.op == "QuantizeLinear"
    if not quantizes and kind != "i2" and d.chance(0.2):
        packed = ml_dtypes.int4 if kind == "i1" else ml_dtypes.uint4
        d.add((narrow(d, shape, kind) >> 4).astype(packed), True)
        d.add(scales(d, of))
        return
    d.add(d.array(shape, "f4", -4, 4) if quantizes else narrow(d, shape, kind))
    d.add(scales(d, of), d.chance(0.8))
    d.exact = quantizes
    if d.chance(0.8) or kind != "u1":
        d.add(zero(d, of, kind), d.chance(0.8))


@draws("DynamicQuantizeLinear")
def quantize_dynamically(d):
    d.outputs, d.exact = 3, True
    d.add(d.array(d.shape(1, 4, empty=0), "f4", -d.size(0, 3), d.size(0, 3) + 0.5))


def matrices(d, kinds):
    """Two operands of a product, the second one mostly a constant, with their zero points."""
    m, k, n = d.size(1, 9), d.pick((1, 2, 3, 4, 7, 8, 16, 33)), d.pick((1, 2, 5, 8, 17, 32))
    batch = tuple(d.size(1, 3) for _ in range(d.size(0, 2)))
    left = batch + (m, k)
    right = (batch if d.chance(0.2) else ()) + (k, n)
    per_column = len(right) == 2 and d.chance(0.4)
    return (narrow(d, left, kinds[0]), narrow(d, right, kinds[1]), zero(d, (), kinds[0]),
            zero(d, (n,) if per_column else (), kinds[1], 0.6), n if per_column else None)


@draws("MatMulInteger")
def matmul_integer(d):
    a, b, a_zero, b_zero, _ = matrices(d, (d.pick(("u1", "u1", "i1")), d.pick(NARROW)))
    d.exact = True
    d.add(a)
    d.add(b, d.chance(0.8))
    d.add(a_zero if d.chance(0.8) else None, d.chance(0.5))
    if d.chance(0.7):
        d.add(b_zero, d.chance(0.8))


@draws("QLinearMatMul")
def qlinear_matmul(d):
    kind = d.pick(("u1", "u1", "i1"))
    a, b, a_zero, b_zero, columns = matrices(d, (kind, d.pick(NARROW)))
    d.exact = True
    for array, constant in ((a, False), (scales(d, ()), True), (a_zero, True), (b, d.chance(0.8)),
                            (scales(d, (columns,) if columns else ()), True), (b_zero, True),
                            (np.float32(d.rng.uniform(0.05, 2)), True), (zero(d, (), kind), True)):
        d.add(array, constant)


def quantized_window(d):
    rank = d.size(1, 2)
    group = d.pick((1, 1, 1, 2, 3))
    channels, filters = group * d.size(1, 4), group * d.size(1, 4)
    kernel = [d.size(1, 3) for _ in range(rank)]
    d.set(strides=[d.size(1, 2) for _ in range(rank)], group=group, pads=[d.size(0, 1) for _ in range(2 * rank)])
    return (d.size(1, 2), channels) + tuple(d.size(4, 9) for _ in range(rank)), (filters, channels // group) + tuple(kernel)


@draws("ConvInteger")
def conv_integer(d):
    shape, weights = quantized_window(d)
    d.exact = True
    d.add(narrow(d, shape, "u1"))
    d.add(narrow(d, weights, "u1"), d.chance(0.8))
    d.add(zero(d, (), "u1") if d.chance(0.8) else None, d.chance(0.5))
    d.add(zero(d, (), "u1", 0.6) if d.chance(0.7) else None, d.chance(0.9))


@draws("QLinearConv")
def qlinear_conv(d):
    shape, weights = quantized_window(d)
    kind, data = d.pick((("i1", "u1"), ("u1", "u1"), ("i1", "i1")))
    of = (weights[0],) if kind == "i1" and d.chance(0.5) else ()
    d.exact = True
    for array in (narrow(d, shape, data), scales(d, ()), zero(d, (), data), narrow(d, weights, kind), scales(d, of),
                  np.zeros(of, "i1") if of else zero(d, (), kind, 0.6), np.float32(d.rng.uniform(0.05, 2)), zero(d, (), data)):
        d.add(array, len(d.inputs) > 0)
    if d.chance(0.6):
        d.add(np.asarray(d.rng.integers(-9000, 9000, weights[0]), "i4"), True)


@draws("MatMulIntegerToFloat", "DynamicQuantizeMatMul")
def scaled_matmul(d):
    d.domain = MICROSOFT
    a, b, a_zero, b_zero, columns = matrices(d, ("u1", d.pick(NARROW)))
    b_scale, bias = scales(d, (columns,) if columns else ()), d.array((b.shape[-1],))
    b = b if b.ndim == 2 else b.reshape((-1,) + b.shape[-2:])[0]
    if d.op == "DynamicQuantizeMatMul":
        parts = ((d.array(a.shape), False), (b, True), (b_scale, True), (b_zero, True), (bias, True))
    else:
        parts = ((a, False), (b, True), (scales(d, ()), d.chance(0.5)), (b_scale, True), (a_zero, d.chance(0.5)),
                 (b_zero, True), (bias, True))
    for array, constant in parts[:len(parts) - d.size(0, 1)]:
        d.add(array, constant)


@draws("MatMulNBits")
def matmul_nbits(d):
    d.domain = MICROSOFT
    n, blocks, block = d.pick((1, 3, 8, 17)), d.size(1, 3), d.pick((16, 32, 64))
    k = blocks * block - (d.size(1, block - 1) if d.chance(0.4) else 0)  # the last block may be padded
    d.set(K=k, N=n, bits=4, block_size=block, accuracy_level=d.pick((0, 4)))
    d.add(d.array((d.size(1, 3), d.size(1, 4), k)[d.size(0, 1):]))
    d.add(narrow(d, (n, blocks, block // 2), "u1"), True)
    d.add(scales(d, (n * blocks,)), True)
    if d.chance(0.5):
        d.add(narrow(d, (n * ((blocks + 1) // 2),), "u1"), True)


@draws("FusedMatMul")
def fused_matmul(d):
    d.domain = MICROSOFT
    m, k, n = d.size(1, 6), d.size(1, 9), d.size(1, 8)
    batch = tuple(d.size(1, 3) for _ in range(d.size(0, 2)))
    a_turned, b_turned = d.size(0, 1), d.size(0, 1)
    d.set(transA=a_turned, transB=b_turned, alpha=float(d.rng.uniform(0.1, 2)))
    d.add(d.array(batch + ((k, m) if a_turned else (m, k))))
    d.add(d.array(batch + ((n, k) if b_turned else (k, n))), d.chance(0.5))


@draws("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def skip_norm(d):
    d.domain = MICROSOFT
    shape = (d.size(1, 3), d.size(1, 5), d.pick((4, 8, 17)))
    count = d.size(3, 4) if d.op == "SkipSimplifiedLayerNormalization" else d.size(3, 5)
    d.set(epsilon=1e-5)
    for i in range(count):
        d.add(d.array(shape if i < 2 else shape[2:]), i > 1)


@draws("BiasGelu", "FastGelu", "QuickGelu")
def other_gelu(d):
    d.domain = MICROSOFT
    shape = d.shape(1, 4, empty=0)
    d.add(d.array(shape))
    if d.op == "BiasGelu" or (d.op == "FastGelu" and d.chance(0.5)):
        d.add(d.array(shape[-1:]), d.chance(0.6))


# ---- the run

def judge_with(options):
    def judge(bench, draw):
        """(what became of it, why)"""
        relu = options.tune and draw.inputs[0] is not None and not draw.inputs[0][1] and \
            draw.inputs[0][0].dtype.kind == "f" and draw.seed % 2 == 1
        try:
            model, feeds = draw.model(relu), draw.feeds()
            wanted = reference(model, feeds)
            if any(i is not None and i[0].dtype == np.float16 for i in draw.inputs):
                for output, array in zip(model.graph.output, wanted):  # files declare it
                    code = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
                    output.CopyFrom(helper.make_tensor_value_info(output.name, code, None))
        except Exception:  # pylint: disable=broad-except; ONNX Runtime has many reasons
            return "no draw", ""
        try:
            bench.write(model)
            bench.check()
            if options.tune:
                bench.tune()
                bench.compare(model, bench.plan, feeds, wanted=wanted, least=draw.least)
            else:
                bench.compare(model, bench.onnx, feeds, "--interpret", wanted=wanted, least=draw.least)
        except Refused as refused:
            return "refused", str(refused)
        except Fault as fault:
            deviates = DEVIATIONS.get(draw.op)
            if deviates and deviates[0](draw):
                return "deviates", deviates[1]
            return "wrong", "%s\n  %s" % (fault, onnx.printer.to_text(model.graph.node[-1]))
        return "right", ""
    return judge


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wpkctl")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--part", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_intermixed_args()
    today = int(time.time() // 86400)
    names = [n for i, n in enumerate(options.names or sorted(TABLE)) if (i + today) % options.part == 0]
    draws_of = []
    for i, name in enumerate(names):
        for seed in range(options.seed + i % 2, options.seed + i % 2 + options.count):
            draw = Draw(name, seed)
            TABLE[name](draw)
            draws_of.append(draw)
    counts, refused = collections.Counter(), collections.Counter()
    for draw, (kind, why) in each(options.wpkctl, draws_of, judge_with(options)):
        counts[kind] += 1
        if kind == "refused":
            refused[draw.op + ": " + why.split(": ", 1)[-1]] += 1
        if kind == "wrong":
            print("%s %d: %s" % (draw.op, draw.seed, why), flush=True)
    if options.list:
        for why, count in sorted(refused.items()):
            print("refused %d: %s" % (count, why))
    print("%d draws of %d operators: %d right, %d refused, %d wrong, %d where both may be "
          "right; %d that ONNX Runtime refuses" % (
              len(draws_of), len(names), counts["right"], counts["refused"], counts["wrong"],
              counts["deviates"], counts["no draw"]))
    sys.exit(1 if counts["wrong"] or not counts["right"] else 0)


if __name__ == "__main__":
    main()

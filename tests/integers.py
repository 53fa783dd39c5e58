# SPDX-License-Identifier: Apache-2.0
"""A model of integer operators and casts, beside ONNX Runtime, bit for bit.

    integers.py write TYPE DIRECTORY    integers.onnx, NAME.npy of inputs, NAME.want.npy of outputs
    integers.py compare DIRECTORY       those with NAME.got.npy: prints the outputs that differ

Left out is what ONNX Runtime computes in floating types: the remainder with fmod, and sums and
products of i64 that leave f64; and what stops it, the least number divided by -1.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"i4": TensorProto.INT32, "i8": TensorProto.INT64, "f4": TensorProto.FLOAT, "f8": TensorProto.DOUBLE,
         "b1": TensorProto.BOOL}


def element_type(array):
    return TYPES[array.dtype.str[1:]]


def make_inputs(name):
    dtype = np.dtype(name)
    most = np.iinfo(dtype).max
    wide = 2**53 + 1 if name == "i8" else 2**20 + 3
    a = np.array([[most - 1, -most - 1, 7, -7, most, 255], [256, -1, 1, wide, -wide, 3], [5, -5, 4, -4, 9, 2]], dtype)
    b = np.array([[1, -3, 2, 2, 3, -10], [16, 3, -3, 5, 7, 2], [5, 2, -4, -4, 8, 2]], dtype)
    real = np.array([[1.7, -1.7, 2.5, -2.5, 0.5, -0.5], [0, 3, 1e6 + 0.5, -1e6 - 0.5, 2.0**30, -2.0**30],
                     [0.99, -0.99, 1.01, -1.01, 100.4, 7]], np.float32)
    return {"A": a, "B": b, "S": (a % 100 - 50).astype(dtype), "F": real, "D": real.astype(np.float64),
            "M": np.array([[True, False, True] * 2] * 3)}


def make_nodes(name, constant):
    """(operator, inputs, output's type, attributes) of each output."""
    own, most = TYPES[name], np.iinfo(np.dtype(name)).max
    low, high = constant(np.array(-3, name)), constant(np.array(most, name))
    zero, one = constant(np.array(0, name)), constant(np.array(1, name))
    axis, axes, two = constant(np.array(1)), constant(np.array([1])), constant(np.array([2]))
    rows = constant(np.array([0, 2]))
    pads = constant(np.array([0, 1, 0, 1]))
    nodes = [(op, ["A", "B"], own, {}) for op in "Add Sub Mul Div Mod Min Max".split()]
    nodes += [(op, ["A"], own, {}) for op in "Neg Abs Sign Relu".split()]
    nodes += [(op, ["A", "B"], TYPES["b1"], {})
              for op in "Equal Less LessOrEqual Greater GreaterOrEqual".split()]
    nodes += [(op, ["S", axes], own, {})
              for op in "ReduceMax ReduceMin ReduceMean ReduceSum ReduceL1 ReduceSumSquare ReduceL2".split()]
    nodes += [(op, ["A", axes], own, {}) for op in ("ReduceMax", "ReduceMin")]
    nodes += [("ReduceProd", ["B", axes], own, {}), ("Mod", ["S", "B"], own, {"fmod": 1}),
              ("Pow", ["S", two], own, {}), ("Shrink", ["S"], own, {"bias": 0.5, "lambd": 1.0}),
              ("Where", ["M", "A", "B"], own, {}), ("Where", ["M", one, zero], own, {}),
              ("Where", ["M", high, "A"], own, {}), ("Clip", ["A", low, high], own, {}),
              ("PRelu", ["S", "B"], own, {}), ("CumSum", ["A", axis], own, {}),
              ("ArgMax", ["A"], TYPES["i8"], {"axis": 1}),
              ("ArgMin", ["A"], TYPES["i8"], {"axis": 1, "keepdims": 0}),
              ("TopK", ["A", two], own, {"axis": 1}), ("Gather", ["A", rows], own, {"axis": 0}),
              ("Concat", ["A", "B"], own, {"axis": 1}), ("Pad", ["A", pads, high], own, {}),
              ("Einsum", ["A", "B"], own, {"equation": "ij,kj->ik"}), ("Trilu", ["A"], own, {}),
              ("Add", [high, one], own, {}), ("EyeLike", ["A"], own, {})]
    for to in TYPES:
        nodes += [("Cast", [x], TYPES[to], {"to": TYPES[to]}) for x in ("A", "M")]
    nodes += [("Cast", [x], own, {"to": own}) for x in ("F", "D")]
    nodes += [("Cast", ["F"], TYPES["b1"], {"to": TYPES["b1"]}), ("CastLike", ["F", "A"], own, {})]
    return nodes


def write(name, folder):
    import onnxruntime
    inputs, constants, nodes, outputs = make_inputs(name), [], [], []

    def constant(array):
        constants.append(numpy_helper.from_array(array, "c%d" % len(constants)))
        return constants[-1].name

    for op, given, output_type, attributes in make_nodes(name, constant):
        output = "%s%d" % (op, len(nodes))
        more = [output + "_at"] if op == "TopK" else []
        nodes.append(helper.make_node(op, given, [output] + more, **attributes))
        outputs.append(helper.make_tensor_value_info(output, output_type, None))
        outputs += [helper.make_tensor_value_info(m, TYPES["i8"], None) for m in more]
    graph = helper.make_graph(
        nodes, "integers",
        [helper.make_tensor_value_info(n, element_type(a), a.shape) for n, a in inputs.items()], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(model, folder / "integers.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(folder / "integers.onnx", options, providers=["CPUExecutionProvider"])
    for n, array in inputs.items():
        np.save(folder / (n + ".npy"), array)
    for output, array in zip(outputs, session.run(None, inputs)):
        np.save(folder / (output.name + ".want.npy"), array)


def compare(folder):
    for path in sorted(folder.glob("*.want.npy")):
        want, got = np.load(path), np.load(str(path).replace(".want.", ".got."))
        if want.shape != got.shape or want.dtype != got.dtype or not np.array_equal(want, got):
            print(path.name, want.ravel().tolist(), "became", got.ravel().tolist())


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        compare(pathlib.Path(sys.argv[2]))

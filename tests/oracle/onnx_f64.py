# SPDX-License-Identifier: Apache-2.0
"""An ONNX model computed in f64 by NumPy (the reference evaluator of the package onnx): whose output is right where two
implementations in f32 differ.
"""
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

F32, F64 = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
TYPES = {"to", "dtype", "output_datatype"}  # attributes that name an element type


class STFT(OpRun):
    """The package's own knows no last frame that ends with the signal."""
    op_domain = ""

    def _run(self, signal, step, window=None, length=None, onesided=1):
        size = int(length) if length is not None else len(window)
        signal = np.asarray(signal).reshape(signal.shape[:2])
        frames = np.stack([signal[:, at:at + size] for at in range(0, signal.shape[1] - size + 1, int(step))], 1)
        frames = frames * (window if window is not None else 1)
        found = np.fft.rfft(frames) if onesided else np.fft.fft(frames)
        return (np.stack([found.real, found.imag], -1),)


def widen_tensor(tensor):
    if tensor.data_type == F32:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype("f8"), tensor.name))


def widen_attribute(attribute):
    if attribute.type == attribute.TENSOR:
        widen_tensor(attribute.t)
    elif attribute.type == attribute.GRAPH:
        widen(attribute.g)
    elif attribute.name in TYPES and attribute.i == F32:
        attribute.i = F64
    elif attribute.name in ("value_float", "value_floats"):
        value = np.array(attribute.f if attribute.name == "value_float" else attribute.floats, "f8")
        attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(value)))


def widen(graph):
    """Make each f32 of a graph, or of a function's body, an f64."""
    for tensor in getattr(graph, "initializer", ()):
        widen_tensor(tensor)
    for value in (*graph.input, *graph.output, *graph.value_info) if hasattr(graph, "initializer") else ():
        if value.type.tensor_type.elem_type == F32:
            value.type.tensor_type.elem_type = F64
    for node in graph.node:
        for attribute in node.attribute:
            widen_attribute(attribute)


def evaluate(path, inputs):
    """The outputs of a model for its inputs by name."""
    model = onnx.load(path)
    widen(model.graph)
    for function in model.functions:
        widen(function)
    wide = {name: array.astype("f8") if array.dtype == np.float32 else array for name, array in inputs.items()}
    return ReferenceEvaluator(model, new_ops=[STFT]).run(None, wide)

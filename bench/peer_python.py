# SPDX-License-Identifier: Apache-2.0
"""Code that all peers in Python share: hands their functions to bench/peer_python.c.

A peer is a class. Peer(path, node, constants, x, shape, fixed, threads) makes an operator ready
to run: `path` is the ONNX model, `node` the one that computes it (`relu` set when a Relu follows),
`constants` its constant operands in the node's order, `x` the input, a view of memory that stays
as it is, and `shape` the output's. `run()` is one call; `output()` an array with the last one's
result; `touch()` reads input and output; `choice` says what the library chose.
"""

import ctypes
import os
import sys
import traceback

import numpy as np
import onnx
from onnx import numpy_helper

OK, UNSUPPORTED, FAILED = 0, 1, 2
TEXT_MAX = 512  # WPK_DIAG_TEXT_MAX

FLOATS = ctypes.POINTER(ctypes.c_float)
OPEN = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_int, FLOATS,
                         ctypes.c_void_p)
RUN = ctypes.PYFUNCTYPE(ctypes.c_int)
OUTPUT = ctypes.PYFUNCTYPE(ctypes.c_int, FLOATS)
VISIT = ctypes.PYFUNCTYPE(None)


class Unsupported(Exception):
    """The library has no such operator."""


class Functions(ctypes.Structure):
    """struct bench_python."""
    _fields_ = [("version", ctypes.c_char_p), ("open", OPEN), ("run", RUN), ("output", OUTPUT),
                ("touch", VISIT), ("close", VISIT)]


class Node:
    """An ONNX node with its attributes as Python values."""

    def __init__(self, graph):
        first = graph.node[0]
        self.op = first.op_type
        self.relu = self.op != "Relu" and graph.node[-1].op_type == "Relu"
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in first.attribute}


def read_model(path):
    graph = onnx.load(path).graph
    shapes = [[d.dim_value for d in value.type.tensor_type.shape.dim]
              for value in list(graph.input) + list(graph.output)]
    return Node(graph), [numpy_helper.to_array(c) for c in graph.initializer], shapes


class Session:
    """The functions, over the one peer that is open."""

    def __init__(self, kind):
        self.kind = kind
        self.peer = None

    def open(self, path, fixed, threads, data, text):
        said, result = "", OK
        try:
            node, constants, shapes = read_model(path.decode())
            if len(shapes) != 2:
                raise Unsupported("one input only")
            x = np.ctypeslib.as_array(data, shapes[0])
            self.peer = self.kind(path.decode(), node, constants, x, shapes[1], bool(fixed),
                                  threads)
            said = self.peer.choice
        except Unsupported as error:
            said, result = str(error), UNSUPPORTED
        except Exception as error:  # whatever a library throws is a line of the report
            said, result = "%s: %s" % (type(error).__name__, error), FAILED
        ctypes.memmove(text, said.encode()[:TEXT_MAX - 1] + b"\0",
                       min(len(said.encode()), TEXT_MAX - 1) + 1)
        return result

    def run(self):
        try:
            self.peer.run()
            return OK
        except Exception:
            traceback.print_exc()
            return FAILED

    def output(self, out):
        try:
            values = self.peer.output()
            np.ctypeslib.as_array(out, values.shape)[...] = values
            return OK
        except Exception:
            traceback.print_exc()
            return FAILED

    def touch(self):
        self.peer.touch()

    def close(self):
        self.peer = None


def serve(version, kind):
    """Answer the driver until it is gone. sys.argv[1] is the library of bench/peer_python.c."""
    session = Session(kind)
    functions = Functions(version.encode(), OPEN(session.open), RUN(session.run),
                          OUTPUT(session.output), VISIT(session.touch), VISIT(session.close))
    # PyDLL and PYFUNCTYPE keep the interpreter's lock: no other thread is to run here.
    ctypes.PyDLL(sys.argv[1]).bench_python_serve(ctypes.byref(functions))
    os._exit(0)  # the libraries' own destructors are not under test, and some of them hang

# SPDX-License-Identifier: Apache-2.0
"""Runs the node tests of the package onnx through ONNX Runtime, without and with the provider:

    onnxruntime_nodes.py LIBRARY [--every N] [--list] [NAME...]

LIBRARY is libwpk-onnxruntime.so. A case that ONNX Runtime runs by itself has to run with the provider, and to answer
the same bits. A case whose nodes can all be claimed has to be claimed whole. `--every N` runs each N-th case, `--list`
prints the cases that are not claimed whole, NAME selects the cases whose names contain it. Ends with 1 if a case
differs.
"""
import argparse
import collections
import os
import sys
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx import AttributeProto, TensorProto, numpy_helper

warnings.filterwarnings("ignore")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from onnxruntime_ep_woodpecker import _bodies  # noqa: E402
from onnx.backend.test.case.node import collect_testcases  # noqa: E402 (warns at import)

PROVIDER = "WoodpeckerExecutionProvider"
DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
COPIED = (AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.FLOATS, AttributeProto.STRING,
          AttributeProto.STRINGS)


def array_of(value):
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def options():
    chosen = ort.SessionOptions()
    chosen.intra_op_num_threads = 1
    chosen.log_severity_level = 4
    chosen.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return chosen


def same(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        if a.dtype == object:
            return a.shape == b.shape and (a == b).all()
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a == b


def is_random(model):
    return any(node.op_type in ("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
                                "Multinomial", "Dropout") for node in model.graph.node)


def claimable(model):
    """Each node can be claimed: what docs/onnxruntime.md says."""
    values = list(model.graph.input) + list(model.graph.output) + list(model.graph.value_info)
    return all(v.type.HasField("tensor_type") and v.type.tensor_type.elem_type != TensorProto.STRING
               for v in values) and all(
        node.domain in DOMAINS and all(a.type in COPIED for a in node.attribute) for node in model.graph.node)


def has_bodies(model):
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    return any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for node in nodes for a in node.attribute)


def run(case, with_provider):
    """(each data set's outputs, (nodes of the provider, all nodes)); ONNX Runtime 1.23 tells no nodes"""
    chosen, providers, settings = options(), ["CPUExecutionProvider"], {"intra_op_num_threads": "1"}
    if ort.__version__.startswith("1.23."):
        settings["has_bodies"] = str(int(has_bodies(case.model)))
    if with_provider and PROVIDER in ort.get_available_providers():
        providers.insert(0, (PROVIDER, settings))
    elif with_provider:  # before 1.26
        chosen.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == PROVIDER][:1], settings)
        providers = None
    session = ort.InferenceSession(case.model.SerializeToString(), chosen, providers=providers, enable_fallback=0)
    names = [i.name for i in session.get_inputs()]
    found = [session.run(None, dict(zip(names, map(array_of, inputs)))) for inputs, _ in case.data_sets]
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return found, None
    nodes = [(part.ep_name, node) for part in session.get_provider_graph_assignment_info()
             for node in part.get_nodes()]
    return found, (sum(name == PROVIDER for name, _ in nodes), len(nodes))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_intermixed_args()
    ort.set_default_logger_severity(4)
    ort.register_execution_provider_library("woodpecker", os.path.abspath(args.library))
    cases = sorted(collect_testcases(None), key=lambda case: case.name)
    cases = [case for case in cases if not args.names or any(name in case.name for name in args.names)][::args.every]
    counts = collections.Counter()
    for case in cases:
        try:
            wanted, _ = run(case, False)
        except Exception:  # ONNX Runtime has not every operator in every type
            counts["not run by ONNX Runtime"] += 1
            continue
        counts["run by ONNX Runtime"] += 1
        said = ""
        if _bodies.has_bodies(case.model.SerializeToString()) != has_bodies(case.model):
            said = "bodies are not seen, or seen where there are none"
        try:
            found, told = run(case, True)
        except Exception as error:
            said = "fails: %s" % str(error)[:3000]
        else:
            counts["run with the provider"] += 1
            ours, count = told or (1, 1)
            whole = "claimed whole" if ours == count > 0 else "claimed in part" if ours else \
                "not claimed" if count else "folded to constants"
            counts[whole] += 1
            if is_random(case.model):
                counts["random"] += 1
            elif not same(found, wanted):
                said = said or "differs"
            if claimable(case.model) and ours < count:
                said = said or "not claimed whole"
            elif args.list and ours < count:
                print("%-60s %d of %d: %s" % (case.name, ours, count, [n.op_type for n in case.model.graph.node]))
        if said:
            counts["wrong"] += 1
            print("%s: %s" % (case.name, said))
    print(", ".join("%d %s" % (number, name) for name, number in counts.items()))
    return 1 if counts["wrong"] or not counts["claimed whole"] else 0


if __name__ == "__main__":
    sys.exit(main())

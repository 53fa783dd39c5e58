# SPDX-License-Identifier: Apache-2.0
"""Draws graphs, tunes each with one candidate, and compares two runs of its plan with ONNX Runtime:

    graphs.py WPKCTL [--count N] [--seed FIRST] [--nodes MOST] [--keep FOLDER]

A graph has 3 to MOST nodes of the kinds that real models consist of: residuals, Concat and Split,
outputs in the middle, shared constants, recurrent layers, attention with masks, Resize, Pad,
reductions, casts. A graph that fails is printed with its seed, after nodes that the failure does not
need were taken out; --keep keeps its model. Ends with 1 if one fails.
"""
import argparse
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from peer import Fault, Refused, each, reference

TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}
MAPS = ("Relu", "Tanh", "Sigmoid", "Neg", "Abs", "LeakyRelu", "Erf", "HardSwish", "Softplus", "Elu", "Softsign")
JOINS = ("Add", "Sub", "Mul", "Max", "Min")
REDUCES = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2")  # axes are attributes up to opset 17
OUTPUTS_MAX = 8
ELEMENTS_MAX = 4096


class Draw:
    """A graph as it grows. A value is (name, shape), of f32."""

    def __init__(self, seed, nodes):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs = [], {}, {}
        self.values, self.read = [], set()
        self.wanted = int(self.rng.integers(3, nodes + 1))

    # ---- pieces

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def size(self, low=1, high=6):
        return int(self.rng.integers(low, high + 1))

    def constant(self, array):
        name = "c%d" % len(self.constants)
        self.constants[name] = np.asarray(array)
        return name

    def weight(self, *shape):
        """Sometimes one that is there already: constants are shared."""
        same = [n for n, a in self.constants.items() if a.shape == shape and a.dtype == np.float32]
        if same and self.chance(0.3):
            return self.pick(same)
        scale = (shape[-2] if len(shape) == 2 else max(1, int(np.prod(shape[1:])))) ** -0.5
        return self.constant((self.rng.standard_normal(shape) * scale).astype("f4"))

    def ints(self, *values):
        return self.constant(np.array(values, "i8"))

    def input(self, shape, kind="f4"):
        name = "x%d" % len(self.inputs)
        self.inputs[name] = (tuple(shape), kind)
        if kind == "f4":
            self.values.append((name, tuple(shape)))
        return name

    def add(self, op, inputs, shapes, **attributes):
        """A node; each output with a shape can be read by later ones."""
        names = ["v%d" % len(self.nodes) + ("_%d" % i if i else "") for i in range(len(shapes))]
        names = [n if s is not None else "" for n, s in zip(names, shapes)]
        self.nodes.append(helper.make_node(op, inputs, names, name="%s%d" % (op, len(self.nodes)), **attributes))
        self.values += [(n, tuple(s)) for n, s in zip(names, shapes) if s is not None]
        self.read |= set(inputs)
        return names[0]

    def hide(self, op, *inputs, **attributes):
        """A node whose output only the caller's next node reads."""
        name = "h%d" % len(self.nodes)
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.read |= set(inputs)
        return name

    def value(self, rank=None, test=lambda shape: True):
        """A value of the graph; recent ones and those that nobody reads are likelier."""
        fits = [v for v in self.values if (rank is None or len(v[1]) == rank) and test(v[1])]
        if not fits:
            return None
        unread = [v for v in fits if v[0] not in self.read]
        if unread and self.chance(0.4):
            return self.pick(unread)
        return self.pick(fits[-4:] if self.chance(0.5) else fits)

    # ---- kinds of nodes; False: nothing fits

    def map(self):
        name, shape = self.value()
        self.add(self.pick(MAPS), [name], [shape])

    def clip(self):
        name, shape = self.value()
        self.add("Clip", [name, self.constant(np.float32(-0.5)), self.constant(np.float32(1.5))], [shape])

    def join(self):
        name, shape = self.value()
        other = self.value(len(shape), lambda s: s == shape and len(s) > 0)
        if other is None or self.chance(0.3):
            small = [1 if self.chance(0.4) else n for n in shape][self.size(0, len(shape)):]
            other = (self.weight(*small),)
        operands = [name, other[0]] if self.chance(0.5) else [other[0], name]
        self.add(self.pick(JOINS), operands, [shape])

    def concat(self):
        found = self.value(test=lambda s: len(s) > 0)
        if found is None:
            return False
        shape = found[1]
        axis = int(self.rng.integers(len(shape)))
        fits = [v for v in self.values if len(v[1]) == len(shape) and
                all(a == b for i, (a, b) in enumerate(zip(v[1], shape)) if i != axis)]
        parts = [self.pick(fits) for _ in range(self.size(1, 3))] + [found]
        order = self.rng.permutation(len(parts))
        parts = [parts[i] for i in order]
        total = sum(p[1][axis] for p in parts)
        if total * np.prod(shape) // shape[axis] > ELEMENTS_MAX:
            return False
        out = list(shape)
        out[axis] = total
        self.add("Concat", [p[0] for p in parts], [out], axis=axis if self.chance(0.5) else axis - len(shape))

    def split(self):
        found = self.value(test=lambda s: len(s) > 0 and max(s) > 1)
        if found is None:
            return False
        name, shape = found
        axis = self.pick([i for i, n in enumerate(shape) if n > 1])
        first = self.size(1, shape[axis] - 1)
        sizes = [first, shape[axis] - first]
        if sizes[1] > 1 and self.chance(0.3):
            sizes[1:] = [1, sizes[1] - 1]
        shapes = [tuple(n if i == axis else m for i, m in enumerate(shape)) for n in sizes]
        self.add("Split", [name, self.ints(*sizes)], shapes, axis=axis)

    def slice(self):
        found = self.value(test=lambda s: len(s) > 0 and max(s) > 1)
        if found is None:
            return False
        name, shape = found
        axis = self.pick([i for i, n in enumerate(shape) if n > 1])
        low = self.size(0, shape[axis] - 1)
        high = self.size(low + 1, shape[axis])
        step = self.size(1, 2)
        out = list(shape)
        out[axis] = -(-(high - low) // step)
        self.add("Slice", [name, self.ints(low), self.ints(high), self.ints(axis), self.ints(step)], [out])

    def gather(self):
        found = self.value(test=lambda s: len(s) > 0)
        if found is None:
            return False
        name, shape = found
        axis = int(self.rng.integers(len(shape)))
        index = self.rng.integers(-shape[axis], shape[axis], self.size(1, 3))
        out = list(shape)
        out[axis] = len(index)
        given = self.input(index.shape, "of%d" % shape[axis]) if self.chance(0.5) else self.constant(index)
        self.add("Gather", [name, given], [out], axis=axis)

    def reshape(self):
        name, shape = self.value()
        count = int(np.prod(shape))
        first = self.pick([n for n in range(1, count + 1) if count % n == 0])
        out = self.pick([(first, count // first), (count,), (1, first, count // first), (first, 1, count // first)])
        self.add("Reshape", [name, self.ints(*out)], [out])

    def squeeze(self):
        found = self.value(test=lambda s: 1 in s)
        if found is None:
            return False
        name, shape = found
        axis = self.pick([i for i, n in enumerate(shape) if n == 1])
        self.add("Squeeze", [name, self.ints(axis)], [shape[:axis] + shape[axis + 1:]])

    def unsqueeze(self):
        found = self.value(test=lambda s: len(s) < 4)
        if found is None:
            return False
        name, shape = found
        axis = self.size(0, len(shape))
        self.add("Unsqueeze", [name, self.ints(axis)], [shape[:axis] + (1,) + shape[axis:]])

    def flatten(self):
        found = self.value(test=lambda s: len(s) > 1)
        if found is None:
            return False
        name, shape = found
        axis = self.size(0, len(shape))
        self.add("Flatten", [name], [(int(np.prod(shape[:axis])), int(np.prod(shape[axis:])))], axis=axis)

    def transpose(self):
        found = self.value(test=lambda s: len(s) > 1)
        if found is None:
            return False
        name, shape = found
        order = [int(i) for i in self.rng.permutation(len(shape))]
        self.add("Transpose", [name], [[shape[i] for i in order]], perm=order)

    def pad(self):
        found = self.value(test=lambda s: len(s) > 0 and min(s) > 1 and np.prod(s) < 500)
        if found is None:
            return False
        name, shape = found
        mode = self.pick(["constant", "reflect", "edge"])
        pads = [int(self.rng.integers(0, 2)) for _ in range(2 * len(shape))]
        out = [n + pads[i] + pads[i + len(shape)] for i, n in enumerate(shape)]
        self.add("Pad", [name, self.ints(*pads)], [out], mode=mode)

    def reduce(self):
        found = self.value(test=lambda s: len(s) > 0)
        if found is None:
            return False
        name, shape = found
        axis = int(self.rng.integers(len(shape)))
        keep = self.chance(0.6)
        out = shape[:axis] + ((1,) if keep else ()) + shape[axis + 1:]
        self.add(self.pick(REDUCES), [name], [out], axes=[axis], keepdims=int(keep))

    def softmax(self):
        found = self.value(test=lambda s: len(s) > 0)
        if found is None:
            return False
        name, shape = found
        self.add(self.pick(["Softmax", "LogSoftmax"]), [name], [shape], axis=int(self.rng.integers(len(shape))))

    def layer_norm(self):
        found = self.value(test=lambda s: len(s) > 1 and s[-1] > 1)
        if found is None:
            return False
        name, shape = found
        self.add("LayerNormalization", [name, self.weight(shape[-1]), self.weight(shape[-1])], [shape],
                 epsilon=1e-2)

    def matmul(self):
        found = self.value(test=lambda s: len(s) > 1)
        if found is None:
            return False
        name, shape = found
        columns = self.size(1, 8)
        self.add("MatMul", [name, self.weight(shape[-1], columns)], [shape[:-1] + (columns,)])

    def gemm(self):
        found = self.value(2)
        if found is None:
            return False
        name, shape = found
        columns = self.size(1, 8)
        self.add("Gemm", [name, self.weight(columns, shape[1]), self.weight(columns)], [(shape[0], columns)],
                 transB=1)

    def residual(self):
        found = self.value(test=lambda s: len(s) > 1)
        if found is None:
            return False
        name, shape = found
        inner = self.add("MatMul", [name, self.weight(shape[-1], shape[-1])], [shape])
        self.add("Add", [self.add("Relu", [inner], [shape]), name], [shape])

    def conv(self):
        found = self.value(4, lambda s: min(s[2:]) > 1)
        if found is None:
            return False
        name, shape = found
        group = shape[1] if self.chance(0.3) else 1
        filters = shape[1] if group > 1 else self.size(1, 8)
        side = self.pick([1, 3])
        stride = self.pick([1, 1, 2])
        pad = side // 2
        out = [shape[0], filters] + [(n + 2 * pad - side) // stride + 1 for n in shape[2:]]
        inputs = [name, self.weight(filters, shape[1] // group, side, side)]
        inputs += [self.weight(filters)] if self.chance(0.5) else []
        self.add("Conv", inputs, [out], kernel_shape=[side] * 2, pads=[pad] * 4, strides=[stride] * 2, group=group)

    def pool(self):
        found = self.value(4, lambda s: min(s[2:]) > 1)
        if found is None:
            return False
        name, shape = found
        if self.chance(0.3):
            self.add("GlobalAveragePool", [name], [shape[:2] + (1, 1)])
            return None
        stride = self.pick([1, 2])
        out = list(shape[:2]) + [(n - 2) // stride + 1 for n in shape[2:]]
        self.add(self.pick(["MaxPool", "AveragePool"]), [name], [out], kernel_shape=[2, 2], strides=[stride] * 2)

    def batch_norm(self):
        found = self.value(4)
        if found is None:
            return False
        name, shape = found
        ones = [self.constant(self.rng.uniform(0.5, 1.5, shape[1]).astype("f4")) for _ in range(2)]
        self.add("BatchNormalization", [name, ones[0], self.weight(shape[1]), self.weight(shape[1]), ones[1]], [shape])

    def resize(self):
        found = self.value(4, lambda s: np.prod(s) <= 512)
        if found is None:
            return False
        name, shape = found
        scales = self.constant(np.array([1, 1, 2, 2], "f4"))
        linear = self.chance(0.5)
        self.add("Resize", [name, "", scales], [shape[:2] + (2 * shape[2], 2 * shape[3])],
                 mode="linear" if linear else "nearest",
                 coordinate_transformation_mode="half_pixel" if linear else "asymmetric",
                 **({} if linear else {"nearest_mode": "floor"}))

    def recurrent(self):
        found = self.value(3, lambda s: s[0] <= 6)
        if found is None:
            return False
        name, (steps, batch, size) = found
        op, gates = self.pick([("RNN", 1), ("GRU", 3), ("LSTM", 4)])
        hidden = self.size(1, 5)
        both = self.chance(0.3)
        directions = 2 if both else 1
        inputs = [name, self.weight(directions, gates * hidden, size), self.weight(directions, gates * hidden, hidden)]
        shapes = [(steps, directions, batch, hidden), (directions, batch, hidden), (directions, batch, hidden)]
        shapes = [s if self.chance(0.7) else None for s in shapes[:3 if op == "LSTM" else 2]]
        if all(s is None for s in shapes):
            shapes[0] = (steps, directions, batch, hidden)
        more = {"linear_before_reset": 1} if op == "GRU" and self.chance(0.5) else {}
        self.add(op, inputs, shapes, hidden_size=hidden, direction="bidirectional" if both else "forward", **more)
        if shapes[0] is not None and directions == 1:
            self.add("Squeeze", [self.values[-sum(s is not None for s in shapes)][0], self.ints(1)],
                     [(steps, batch, hidden)])

    def attention(self):
        found = self.value(3, lambda s: s[1] <= 8 and s[2] > 1)
        if found is None:
            return False
        name, (batch, tokens, width) = found
        shape = (batch, tokens, width)
        q, k, v = (self.add("MatMul", [name, self.weight(width, width)], [shape]) for _ in range(3))
        turned = self.add("Transpose", [k], [(batch, width, tokens)], perm=[0, 2, 1])
        scores = self.add("MatMul", [q, turned], [(batch, tokens, tokens)])
        if self.chance(0.5):
            real = self.hide("Cast", self.input((batch, 1, tokens), "mask"), to=TensorProto.FLOAT)
            away = self.hide("Sub", self.constant(np.float32(1)), real)
            far = self.hide("Mul", away, self.constant(np.float32(-1e4)))
            scores = self.add("Add", [scores, far], [(batch, tokens, tokens)])
        weights = self.add("Softmax", [scores], [(batch, tokens, tokens)], axis=-1)
        self.add("MatMul", [weights, v], [shape])

    def embed(self):
        rows, width = self.size(1, 9), self.size(1, 4)
        index = self.input((self.size(1, 3), self.size(1, 4)), "of%d" % rows)
        self.add("Gather", [self.weight(rows, width), index], [self.inputs[index][0] + (width,)], axis=0)

    def choose(self):
        name, shape = self.value()
        mask = self.input(shape, "b1")
        other = self.value(len(shape), lambda s: s == shape)
        self.add("Where", [mask, name, other[0]], [shape])

    def double(self):
        name, shape = self.value()
        self.add("Cast", [self.hide("Cast", name, to=TensorProto.DOUBLE)], [shape], to=TensorProto.FLOAT)

    def expand(self):
        found = self.value(test=lambda s: 1 in s)
        if found is None:
            return False
        name, shape = found
        out = [self.size(1, 3) if n == 1 else n for n in shape]
        if np.prod(out) > ELEMENTS_MAX:
            return False
        self.add("Expand", [name, self.ints(*out)], [out])

    # ---- the whole

    def grow(self):
        rank = self.pick([2, 3, 3, 4, 4])
        for _ in range(self.size(1, 2)):
            shape = [self.size(1, 4) for _ in range(rank)]
            if rank == 4:
                shape[2:] = [self.size(2, 9), self.size(2, 9)]
            self.input(shape)
        views = [self.concat, self.concat, self.concat, self.split, self.split, self.reshape, self.slice, self.squeeze,
                 self.unsqueeze, self.flatten, self.transpose, self.gather, self.expand]
        work = [self.map, self.map, self.clip, self.join, self.join, self.join, self.pad, self.reduce, self.softmax,
                self.layer_norm, self.matmul, self.matmul, self.gemm, self.residual, self.conv, self.conv, self.pool,
                self.batch_norm, self.resize, self.recurrent, self.recurrent, self.attention, self.choose, self.double,
                self.embed]
        share = self.rng.uniform(0.15, 0.6)
        while len(self.nodes) < self.wanted:
            self.pick(views if self.chance(share) else work)()
        return self.finish()

    def finish(self):
        made = {n for node in self.nodes for n in node.output if n}
        ends = [n for n, _ in self.values if n in made and (n not in self.read or self.chance(0.15))]
        ends = ends if len(ends) <= OUTPUTS_MAX else [ends[i] for i in sorted(
            self.rng.choice(len(ends), OUTPUTS_MAX, replace=False))]
        return prune(make_model(self.nodes, self.inputs, self.constants, ends))


def make_model(nodes, inputs, constants, ends):
    kinds = {"f4": TensorProto.FLOAT, "b1": TensorProto.BOOL}
    graph = helper.make_graph(
        nodes, "drawn", [helper.make_tensor_value_info(n, kinds.get(k, TensorProto.INT64), s, doc_string=k)
                         for n, (s, k) in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ends],
        [numpy_helper.from_array(a, n) for n, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def prune(model):
    """Without the nodes, inputs and constants that no output needs."""
    graph = model.graph
    needed = {o.name for o in graph.output}
    nodes = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            nodes.insert(0, node)
            needed |= set(node.input)
    kept = onnx.ModelProto()
    kept.CopyFrom(model)
    for field, items in (("node", nodes), ("input", [i for i in graph.input if i.name in needed]),
                         ("initializer", [i for i in graph.initializer if i.name in needed])):
        kept.graph.ClearField(field)
        getattr(kept.graph, field).extend(items)
    return kept


def feeds_of(model, seed):
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        kind = value.type.tensor_type.elem_type
        if kind == TensorProto.FLOAT:
            feeds[value.name] = rng.standard_normal(shape).astype("f4")
        elif kind == TensorProto.BOOL:
            feeds[value.name] = rng.random(shape) < 0.5
        elif value.doc_string.startswith("of"):
            feeds[value.name] = rng.integers(0, int(value.doc_string[2:]), shape)
        else:  # a mask that leaves the first token
            feeds[value.name] = (rng.random(shape) < 0.7).astype("i8")
            feeds[value.name][..., 0] = 1
    return feeds


def judge(bench, model):
    """Raises Fault if the plan of a model is wrong."""
    bench.write(model)
    bench.check()
    bench.tune()
    for seed in (1, 2):
        bench.compare(model, bench.plan, feeds_of(model, seed))


def fault_of(bench, model):
    """Why a model fails; None: it does not."""
    try:
        judge(bench, model)
    except (Fault, Refused) as fault:
        return "%s: %s" % (type(fault).__name__, fault)
    return None


def smaller(model):
    """Models with one output or one node less, the last ones first."""
    graph = model.graph
    for i in reversed(range(len(graph.output) if len(graph.output) > 1 else 0)):
        fewer = onnx.ModelProto()
        fewer.CopyFrom(model)
        del fewer.graph.output[i]
        yield prune(fewer)
    for i in range(len(graph.node) - 1):
        cut = cut_before(model, i)
        if cut is not None:
            yield cut


def cut_before(model, index):
    """The model with the first output of a node as an input of its own; None: it is no f32."""
    name = model.graph.node[index].output[0]
    if not name or name in {o.name for o in model.graph.output}:
        return None
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    shown.graph.output.append(helper.make_empty_tensor_value_info(name))
    value = reference(shown, feeds_of(model, 1))[-1]
    if str(value.dtype) != "float32":
        return None
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    del cut.graph.node[index]
    rest = [o for o in model.graph.node[index].output[1:] if o]
    if any(o in n.input for o in rest for n in cut.graph.node) or any(o.name in rest for o in cut.graph.output):
        return None
    cut.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape))
    return prune(cut)


def minimise(bench, model, why):
    """The smallest model found that fails in the same way."""
    kind = why.split(":")[0:2]
    tries = 60
    progress = True
    while progress and tries > 0:
        progress = False
        for other in smaller(model):
            tries -= 1
            found = fault_of(bench, other)
            if found is not None and found.split(":")[0] == kind[0]:
                model, why, progress = other, found, True
                break
            if tries <= 0:
                break
    return model, why


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wpkctl")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=40)
    parser.add_argument("--keep")
    options = parser.parse_args()

    def one(bench, seed):
        model = Draw(seed, options.nodes).grow()
        why = fault_of(bench, model)
        return (None, None) if why is None else minimise(bench, model, why)

    failed = 0
    for seed, (model, why) in each(options.wpkctl, range(options.seed, options.seed + options.count), one):
        if why is None:
            continue
        failed += 1
        print("seed %d: %s" % (seed, why))
        print(onnx.printer.to_text(model.graph)[:3000], flush=True)
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
            onnx.save(model, os.path.join(options.keep, "graph%d.onnx" % seed))
    print("%d graphs, %d failed; seeds %d to %d" % (options.count, failed, options.seed,
                                                   options.seed + options.count - 1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

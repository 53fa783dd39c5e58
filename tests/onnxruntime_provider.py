# SPDX-License-Identifier: Apache-2.0
"""Uses the provider of ONNX Runtime on small models, beside ONNX Runtime alone:

    onnxruntime_provider.py FOLDER

FOLDER is for files. WOODPECKER_ONNXRUNTIME_LIBRARY names libwpk-onnxruntime.so, for the package in python/; without it
an installed one is tested. Ends with 0 if everything is as it should be.
"""
import ctypes
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings

if "WOODPECKER_ONNXRUNTIME_LIBRARY" in os.environ:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import onnxruntime_ep_woodpecker as ep  # noqa: E402

assert "numpy" not in sys.modules and "onnxruntime" not in sys.modules, "the import needs neither"
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FOLDER = sys.argv[1]
NAME = ep.get_ep_name()
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
RNG = np.random.default_rng(46)


def value(name, dtype=FLOAT, shape=("n",)):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, constants=None, ir_version=9, opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs,
                              [numpy_helper.from_array(a, name) for name, a in (constants or {}).items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = ir_version
    return made


def session(made, ours=True, threads=1):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    providers = [(NAME, {"intra_op_num_threads": str(threads)})] if ours else []
    return ort.InferenceSession(made if isinstance(made, str) else made.SerializeToString(), options,
                                providers=providers + ["CPUExecutionProvider"], enable_fallback=0)


def claimed(made):
    """(operators of our nodes, operators of the others)"""
    parts = made.get_provider_graph_assignment_info()
    return tuple(sorted(node.op_type for part in parts if (part.ep_name == NAME) == ours for node in part.get_nodes())
                 for ours in (True, False))


def same(found, wanted):
    return len(found) == len(wanted) and all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
                                             for a, b in zip(found, wanted))


def both(made, *feeds, others=()):
    """Run the model without and with the provider, which claims all nodes but `others`; the session with it."""
    alone, ours = session(made, ours=False), session(made)
    assert claimed(ours)[0] and claimed(ours)[1] == list(others), claimed(ours)
    for feed in feeds:
        assert same(ours.run(None, feed), alone.run(None, feed)), (feed, ours.run(None, feed), alone.run(None, feed))
    return ours


def floats(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def layer(extents=("n", 8), declared=("n", 16)):
    return model([helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]),
                  helper.make_node("Relu", ["a"], ["y"])],
                 [value("x", shape=extents)], [value("y", shape=declared)], {"w": floats(8, 16), "b": floats(16)})


def test_free_extents():
    both(layer(), *({"x": floats(n, 8)} for n in (3, 1, 0, 3, 200)))
    both(layer(("b", "s", 8), ("b", "s", 16)), *({"x": floats(*s, 8)} for s in ((2, 3), (3, 2), (0, 4), (1, 1))))
    both(layer((None, 8), (None, 16)), {"x": floats(5, 8)}, {"x": floats(2, 8)})
    both(layer(None, None), {"x": floats(5, 8)}, {"x": floats(2, 3, 8)})
    both(layer((4, 8), (4, 16)), {"x": floats(4, 8)})


def test_wrong_declarations():
    """A file may state wrong extents of an output, and a symbol may stand for two numbers in one call."""
    both(layer(("n", 8), (1, 16)), {"x": floats(1, 8)}, {"x": floats(4, 8)})
    add = model([helper.make_node("Add", ["x", "y"], ["z"])], [value("x"), value("y")], [value("z")])
    both(add, {"x": floats(3), "y": floats(3)}, {"x": floats(1), "y": floats(4)}, {"x": floats(4), "y": floats(1)})
    mixed = model([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Expand", ["y", "s"], ["z"])],
                  [value("x", shape=("a", "b")), value("y", shape=("b", "b"))], [value("z", shape=("a", "b"))])
    both(mixed, {"x": floats(3, 2), "y": floats(1, 2)}, {"x": floats(4, 4), "y": floats(4, 1)})


def test_extents_from_data():
    made = model([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("NonZero", ["r"], ["y"]),
                  helper.make_node("Reshape", ["x", "s"], ["z"])],
                 [value("x", shape=(2, 6)), value("s", INT64, (2,))],
                 [value("y", INT64, (2, None)), value("z", shape=(None, None))])
    both(made, *({"x": floats(2, 6), "s": np.array(s)} for s in ((3, 4), (12, 1), (2, -1))))
    fill = model([helper.make_node("ConstantOfShape", ["s"], ["y"], value=helper.make_tensor("v", INT64, [1], [7])),
                  helper.make_node("Neg", ["y"], ["z"])], [value("s", INT64)],
                 [value("y", INT64, None), value("z", INT64, None)])
    both(fill, *({"s": np.array(s, dtype=np.int64)} for s in ((2, 3), (0, 3), (), (4,))))


def test_numbers():
    both(layer(), {"x": np.full((2, 8), np.nan, np.float32)}, {"x": np.array([[np.inf, -np.inf] * 4], np.float32)})


def named(graph, read):
    """The same graph of one node, which reads another value."""
    copy = onnx.GraphProto()
    copy.CopyFrom(graph)
    copy.node[0].input[0] = read
    return copy


def test_branches():
    """Nodes with bodies are left alone, and so are the bodies; groups around them are convex."""
    body = [helper.make_graph([helper.make_node(op, ["a"], ["r"])], op, [], [value("r")]) for op in ("Neg", "Abs")]
    made = model([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Exp", ["x"], ["e"]),
                  helper.make_node("If", ["c"], ["b"], then_branch=body[0], else_branch=body[1]),
                  helper.make_node("Add", ["b", "a"], ["s"]), helper.make_node("Mul", ["s", "e"], ["y"])],
                 [value("x"), value("c", BOOL, ())], [value("y")])
    ours = session(made)
    assert claimed(ours)[0] == ["Add", "Exp", "Mul", "Relu"], claimed(ours)
    both(made, *({"x": floats(5), "c": np.array(c)} for c in (True, False)), others=claimed(ours)[1])
    # The second If reads a value of a group only in its bodies.
    early = [named(part, "x") for part in body]
    late = [helper.make_graph([helper.make_node(op, ["d"], ["q"])], op + "2", [], [value("q")]) for op in ("Neg", "Abs")]
    made = model([helper.make_node("If", ["c"], ["b"], then_branch=early[0], else_branch=early[1]),
                  helper.make_node("Exp", ["b"], ["d"]),
                  helper.make_node("If", ["c"], ["e"], then_branch=late[0], else_branch=late[1]),
                  helper.make_node("Add", ["d", "e"], ["y"])], [value("x"), value("c", BOOL, ())], [value("y")])
    ours = session(made)
    assert claimed(ours)[0] == ["Add", "Exp"], claimed(ours)
    both(made, *({"x": floats(5), "c": np.array(c)} for c in (True, False)), others=claimed(ours)[1])
    step = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["v", "x"], ["w"])],
                             "step", [value("i", INT64, ()), value("go", BOOL, ()), value("v")],
                             [value("on", BOOL, ()), value("w")])
    made = model([helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Loop", ["k", "", "a"], ["l"], body=step),
                  helper.make_node("Exp", ["l"], ["y"])], [value("x"), value("k", INT64, ())], [value("y")])
    ours = session(made)
    assert claimed(ours)[0] == ["Exp", "Neg"] and "Loop" in claimed(ours)[1], claimed(ours)
    both(made, *({"x": floats(3), "k": np.array(k)} for k in (0, 1, 7)), others=claimed(ours)[1])


def test_errors():
    """An error names a node, or its first output; it is ONNX Runtime's, and the session goes on."""
    made = model([helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Reshape", ["a", "s"], ["shaped"])],
                 [value("x"), value("s", INT64, (1,))], [value("shaped")])
    alone, ours = session(made, ours=False), session(made)
    for feed, word in (({"x": floats(6), "s": np.array([5])}, "'shaped'"),
                       ({"x": floats(6, 1), "s": np.array([6])}, "rank"),
                       ({"x": np.zeros(6), "s": np.array([6])}, "double")):
        said = []
        for one in (alone, ours):
            try:
                one.run(None, feed)
            except Exception as error:
                said.append(error)
        assert len(said) == 2 and type(said[0]) is type(said[1]) and word in str(said[1]), said
    assert ours.get_providers()[0] == NAME and ours.run(None, {"x": floats(6), "s": np.array([6])})[0].shape == (6,)
    for options in ({"typo": "1"}, {"intra_op_num_threads": "many"}, {"intra_op_num_threads": "99999"},
                    {"graph_optimization_level": "-1"}):
        try:
            ort.InferenceSession(made.SerializeToString(), providers=[(NAME, options)], enable_fallback=0)
        except Exception as error:
            assert all(word in str(error) for word in next(iter(options.items()))[:1]), error
        else:
            raise AssertionError(options)


def test_constants():
    """Constants of every size, some that a caller may give in place of the model's, and ones of the model's files."""
    override = layer()
    override.graph.input.append(value("b", shape=(16,)))
    both(override, {"x": floats(3, 8)}, {"x": floats(3, 8), "b": floats(16)})
    path = os.path.join(FOLDER, "external.onnx")
    made = layer()
    for constant in made.graph.initializer:
        onnx.external_data_helper.set_external_data(constant, "weights.bin")
    if os.path.exists(os.path.join(FOLDER, "weights.bin")):
        os.remove(os.path.join(FOLDER, "weights.bin"))  # onnx appends
    onnx.save(made, path)
    ours = both(path, {"x": floats(3, 8)})
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert "weights.bin" in maps.read(), "it is mapped"
    del ours
    with open(os.path.join(FOLDER, "weights.bin"), "rb") as file:
        data = file.read()
    # Elsewhere in the file: at a place that is mapped, and at one that is not.
    for offset in (4096 + 4, 4096 + 2):
        with open(os.path.join(FOLDER, "weights.bin"), "wb") as file:
            file.write(bytes(offset) + data[:512])
        moved = onnx.load(path, load_external_data=False)
        del moved.graph.initializer[1:]
        moved.graph.initializer.append(numpy_helper.from_array(floats(16), "b"))
        for entry in moved.graph.initializer[0].external_data:
            entry.value = {"offset": str(offset), "length": "512"}.get(entry.key, entry.value)
        onnx.save(moved, path)
        both(path, {"x": floats(3, 8)})


def test_symbols():
    """Extents with two symbols stay two: without them the nodes would not be fused, and answer other bits."""
    made = model([helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["x", "m"], ["a"]),
                  helper.make_node("LayerNormalization", ["a", "g", "b"], ["y"], axis=-1)],
                 [value("x", shape=("batch", "length", 48))], [value("y", shape=None)],
                 {"w": floats(48, 48), "g": floats(48), "b": floats(48)})
    both(made, {"x": floats(3, 7, 48)}, {"x": floats(2, 40, 48)})


def resident():
    """MiB of this process."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def test_memory():
    """64 MiB of constants are there once: ONNX Runtime drops its own, and the twin those that it has packed."""
    nodes = [helper.make_node("MatMul", ["v%d" % k, "w%d" % k], ["v%d" % (k + 1)]) for k in range(16)]
    path = os.path.join(FOLDER, "large.onnx")
    onnx.save(model(nodes, [value("v0", shape=("n", 1024))], [value("v16", shape=None)],
                    {"w%d" % k: floats(1024, 1024) for k in range(16)}), path)
    before = resident()
    ours = session(path)
    assert ours.run(None, {"v0": floats(1, 1024)})[0].shape == (1, 1024)
    assert resident() - before < 100, resident() - before


def test_threads():
    made = layer()
    ours, alone = session(made, threads=2), session(made, ours=False)
    inputs = [floats(n, 8) for n in range(1, 9)]
    wanted = [alone.run(None, {"x": x}) for x in inputs]
    wrong = []

    def work(index):
        for _ in range(100):
            if not same(ours.run(None, {"x": inputs[index]}), wanted[index]):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    time.sleep(0.1)  # until the system has forgotten the threads
    before = len(os.listdir("/proc/self/task"))
    one = session(made)
    assert len(os.listdir("/proc/self/task")) <= before, "one thread is the caller's"
    del one


def test_binding():
    """An output that the caller bound is written where it is."""
    made = layer()
    ours = session(made)
    x, y = floats(4, 8), np.zeros((4, 16), np.float32)
    binding = ours.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    ours.run_with_iobinding(binding)
    assert same([y], session(made, ours=False).run(None, {"x": x}))


def test_whole_model():
    """A model that is claimed whole needs no other provider."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    whole = ort.InferenceSession(layer().SerializeToString(), options, providers=[NAME], enable_fallback=0)
    assert whole.run(None, {"x": floats(2, 8)})[0].shape == (2, 16)


def test_two_providers():
    """A second provider, here a copy of the library by another name: nodes that the first has are not claimed again."""
    other = NAME[:-1] + "X"
    with open(ep.get_library_path(), "rb") as library:
        data = library.read()
    # The other one does not know ConstantOfShape, which is left to ours when it comes second.
    data = data.replace(b"ConstantOfShape", b"ConstantOfNumber"[:15])
    path = os.path.join(FOLDER, "libother.so")
    with open(path, "wb") as library:
        library.write(data.replace(NAME.encode(), other.encode()))
    ort.register_execution_provider_library("other", path)
    made, x = layer(), floats(3, 8)
    for names in ([NAME, other], [other, NAME]):
        two = ort.InferenceSession(made.SerializeToString(), providers=names + ["CPUExecutionProvider"],
                                   enable_fallback=0)
        assert two.get_providers()[:2] == names
        assert same(two.run(None, {"x": x}), session(made, ours=False).run(None, {"x": x}))
    fill = helper.make_tensor("v", FLOAT, [1], [7])
    made = model([helper.make_node("Shape", ["x"], ["s"]),
                  helper.make_node("ConstantOfShape", ["s"], ["f"], value=fill),
                  helper.make_node("Concat", ["x", "f"], ["c"], axis=0), helper.make_node("Shape", ["c"], ["t"]),
                  helper.make_node("ConstantOfShape", ["t"], ["y"], value=fill)], [value("x")], [value("y")])
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    two = ort.InferenceSession(made.SerializeToString(), options, providers=[other, NAME], enable_fallback=0)
    assert claimed(two)[0] == ["ConstantOfShape", "ConstantOfShape"], claimed(two)
    assert same(two.run(None, {"x": -x[0]}), session(made, ours=False).run(None, {"x": -x[0]}))
    del two
    ort.unregister_execution_provider_library("other")


def test_install():
    made = layer().SerializeToString()
    options = ort.SessionOptions()
    options.intra_op_num_threads = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    assert NAME not in ort.InferenceSession(made).get_providers()
    assert ep.install() and ep.install()
    for arguments in ({}, {"providers": ["CPUExecutionProvider"]}, {"providers": [("CPUExecutionProvider", {})]},
                      {"providers": ["CPUExecutionProvider"], "provider_options": [{}]}, {"providers": [NAME]}):
        found = ort.InferenceSession(made, options, **arguments)
        assert found.get_providers() == [NAME, "CPUExecutionProvider"], (arguments, found.get_providers())
        assert found.get_provider_options()[NAME] == {"intra_op_num_threads": "3", "graph_optimization_level": "1"}
    ep.uninstall()
    assert NAME not in ort.InferenceSession(made).get_providers()
    path, program = os.path.join(FOLDER, "m.onnx"), os.path.join(FOLDER, "app.py")
    onnx.save(layer(), path)
    with open(program, "w", encoding="utf-8") as file:
        file.write("import onnxruntime, sys\nfrom onnxruntime import InferenceSession\n"
                   "print(sys.argv[1:], InferenceSession(%r, providers=['CPUExecutionProvider']).get_providers()[0])\n"
                   "sys.exit(3)\n" % path)
    package = os.path.dirname(os.path.dirname(os.path.abspath(ep.__file__)))
    told = subprocess.run([sys.executable, "-m", "onnxruntime_ep_woodpecker", program, "a", "-b"], check=False,
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": package}, timeout=60)
    assert told.returncode == 3 and told.stdout == "['a', '-b'] %s\n" % NAME, (told, told.stderr)


GET_API = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
CREATE_STATUS = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
GET_VERSION = ctypes.CFUNCTYPE(ctypes.c_void_p)


class Base(ctypes.Structure):
    _fields_ = [("get_api", GET_API), ("get_version", GET_VERSION)]


def test_old_versions():
    """An ONNX Runtime before 1.23 is told which one is needed, and all functions of a factory are set."""
    said = []
    status = CREATE_STATUS(lambda code, text: said.append(text.decode()) or 1)
    # A function that returns NULL, in each place of any table.
    null = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: None)
    tables = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.addressof(table))
    table = (ctypes.c_void_p * 512)(*[ctypes.cast(null, ctypes.c_void_p).value] * 512)
    table[0] = ctypes.cast(status, ctypes.c_void_p).value
    for place in (291, 317):  # the tables of the model editor and of providers
        table[place] = ctypes.cast(tables, ctypes.c_void_p).value
    # A copy, which is loaded once more: the tables are the process's.
    library = ctypes.CDLL(shutil.copy(ep.get_library_path(), os.path.join(FOLDER, "libcopy.so")))
    create = library.CreateEpFactories
    create.restype = ctypes.c_void_p
    factories, count = (ctypes.c_void_p * 4)(), ctypes.c_size_t(9)
    name = ctypes.create_string_buffer(b"1.22.1")
    for newest, wanted in ((22, 1), (0, None), (30, None)):
        base = Base(GET_API(lambda version: ctypes.addressof(table) if version <= newest else None),
                    GET_VERSION(lambda: ctypes.addressof(name)))
        assert create(b"x", ctypes.byref(base), None, factories, ctypes.c_size_t(4), ctypes.byref(count)) == wanted
        assert count.value == (newest == 30)
    assert said == ["Woodpecker needs ONNX Runtime 1.23 or newer, this is 1.22.1"], said
    words = ctypes.cast(factories[0], ctypes.POINTER(ctypes.c_uint64))
    assert words[0] & 0xffffffff == 23 and all(words[1:14]), "each function of 1.23 is set"
    library.ReleaseEpFactory(ctypes.c_void_p(factories[0]))

    register = ort.register_execution_provider_library
    try:
        del ort.register_execution_provider_library
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert ep.install() is False and len(caught) == 1, caught
        # Those before 1.26 take the provider by its device.
        ort.register_execution_provider_library = register
        ort.get_available_providers = lambda: ["CPUExecutionProvider"]
        assert ep.install()
        for options, providers in ((None, None), (ort.SessionOptions(), None), (None, ["CPUExecutionProvider"])):
            made = ort.InferenceSession(layer().SerializeToString(), options, providers)
            assert made.get_providers() == [NAME, "CPUExecutionProvider"], made.get_providers()
        options = ort.SessionOptions()
        for _ in range(2):
            made = ort.InferenceSession(layer().SerializeToString(), options, ["CPUExecutionProvider"])
            assert made.get_providers()[0] == NAME, "options may be used again"
    finally:
        ep.uninstall()
        ort.register_execution_provider_library = register
        ort.get_available_providers = ort.capi._pybind_state.get_available_providers
    assert ort.InferenceSession(layer().SerializeToString()).get_providers() == ["CPUExecutionProvider"]


def main():
    ort.register_execution_provider_library("woodpecker", ep.get_library_path())
    assert NAME in ort.get_available_providers() and ep.get_ep_names() == [NAME]
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, flush=True)
            test()
    # A session outlives the library's registration.
    made, x = layer(), floats(3, 8)
    ours, wanted = session(made), session(made, ours=False).run(None, {"x": x})
    assert claimed(ours)[0], "it is ours"
    ort.unregister_execution_provider_library("woodpecker")
    assert same(ours.run(None, {"x": x}), wanted)
    del ours
    print("passed")


if __name__ == "__main__":
    main()

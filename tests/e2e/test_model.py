# SPDX-License-Identifier: Apache-2.0
"""Models: what wpkctl check says of them, and what they compute, beside ONNX Runtime.

tests/models.py writes them, in the environment that deploy/setup.sh makes.
"""
import json
import os
import random
import re
import struct
import subprocess

from lib import BIN, ROOT, Skip, check, main

PYTHON = os.path.join(ROOT, ".deps/test-venv/bin/python3")
TOLERANCE = 2e-6  # of the largest output; f32 against f64 over 20 convolutions leaves 5e-7


def read_npy(path):
    """(extents, values) of an array of f32."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + size].decode()
    check("'<f4'" in header and "False" in header, "f32 in C order", header)
    extents = [int(n) for n in re.search(r"\(([^)]*)\)", header).group(1).split(",") if n.strip()]
    return extents, struct.unpack("<%df" % ((len(data) - 10 - size) // 4), data[10 + size:])


def make_model(box, name, *more):
    """The folder with NAME.onnx, x.npy and y.npy."""
    if not os.path.exists(PYTHON):
        raise Skip("no onnx: deploy/setup.sh test")
    folder = box.path(name)
    os.makedirs(folder, exist_ok=True)
    made = subprocess.run([PYTHON, os.path.join(ROOT, "tests/models.py"), name, folder, *more],
                          capture_output=True, text=True, check=False)
    check(made.returncode == 0, "models.py writes %s" % name, made.stderr[-1500:])
    return folder


def interpret(box, folder, name, *more):
    out = os.path.join(folder, "out.npy")
    return out, box.run("wpkctl", "run", os.path.join(folder, name + ".onnx"), "--interpret",
                        "--output", "y=" + out, *more)


def compare(found, expected):
    """The largest difference as a part of the largest output; the values of both differ."""
    (shape, values), (wanted, reference) = read_npy(found), read_npy(expected)
    check(shape == wanted, "extents", shape, wanted)
    check(max(reference) > min(reference) and max(values) > min(values), "values that differ")
    largest = max(abs(v) for v in reference)
    return max(abs(a - b) for a, b in zip(values, reference)) / largest


def refused(box, *words, status=2):
    """The text of stderr for a model or a plan that is refused."""
    ended, out, err = box.run("wpkctl", *words)
    check(ended == status, "%s ends with %d" % (words, status), ended, out, err)
    return err


def test_interpret_agrees_with_onnxruntime(box):
    """A small convolution net, a transformer's block with its computed shapes, and ResNet-18."""
    for name, more in (("small", ()), ("small", ("46",)), ("attention", ()), ("decoder", ()), ("parts", ()),
                       ("recurrent", ()), ("functions", ()), ("lookup", ()), ("choices", ()), ("resnet18", ("64",))):
        folder = make_model(box, name, *more)
        out, (status, said, err) = interpret(box, folder, name, "--input",
                                             "x=" + os.path.join(folder, "x.npy"))
        check(status == 0, "%s is interpreted" % name, said, err)
        error = compare(out, os.path.join(folder, "y.npy"))
        check(error <= TOLERANCE, "%s: error %g" % (name, error))


def test_check_shows_a_model(box):
    path = os.path.join(make_model(box, "resnet18"), "resnet18.onnx")
    status, out, err = box.run("wpkctl", "check", path)
    check(status == 0, "the model is shown", err)
    check("input    x f32[1,3,224,224]" in out and "output   y f32[1,1000]" in out, "its ends", out)
    check("(steps: roofline 23)" in out, "what a run is expected to take", out)
    status, out, err = box.run("wpkctl", "check", path, "--json", "--no-roofline")
    told = json.loads(out)
    operators = {o["name"]: o["nodes"] for o in told["operators"]}
    check(operators["Conv"] == 20 and operators["BatchNormalization"] == 20 and
          operators["Gemm"] == 1 and told["nodes"] == 77, "its operators", told)
    # Twice 1,813,561,344 multiply-adds of convolutions, and less than 1 % of all else.
    check(1 <= told["flops"] / (2 * 1813561344) < 1.01, "its work", told["flops"])
    check(told["constants_bytes"] > 46e6, "its weights", told)
    status, out, err = box.run("wpkctl", "check", path, "--expand", "--no-roofline")
    check("sum(c:3,r0:7,r1:7) X[d0,c,2*d2+r0-3,2*d3+r1-3] * X1[d1,c,r0,r1]" in out, "equations", out)
    folder = make_model(box, "attention")
    out = box.run("wpkctl", "check", os.path.join(folder, "attention.onnx"), "--json", "--no-roofline")[1]
    check("Shape" not in out and "Gather" not in out, "shapes are folded", out)


def test_bad_inputs_are_named(box):
    folder = make_model(box, "small")
    path = os.path.join(folder, "small.onnx")
    x, y = os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")
    check("input x has no file" in refused(box, "run", path, "--interpret"), "a missing input")
    check("no input 'xx'" in refused(box, "run", path, "--interpret", "--input", "xx=" + x), "a wrong name")
    err = refused(box, "run", path, "--interpret", "--input", "x=" + y)
    check("y.npy: x: " in err and "33" in err, "another shape", err)
    check("--interpret" in refused(box, "run", path, "--input", "x=" + x), "what runs it")
    err = refused(box, "check", os.path.join(folder, "absent.onnx"))
    check("absent.onnx" in err and err.count("\n") == 1, "a missing file", err)
    err = refused(box, "check", path, "--shape", "x=1,3,40,40")
    check("extent 2" in err and "33" in err, "a fixed extent", err)
    err = refused(box, "check", path, "--shape", "z=1")
    check("no input 'z'" in err, "an unknown input", err)


def edit(folder, name, to, code):
    """Write TO.onnx: the model after `code` has changed `m`, in the environment that has onnx."""
    program = ("import onnx, sys\nfrom onnx import helper, numpy_helper, TensorProto\n"
               "m = onnx.load('%s.onnx')\nn = {x.name: x for x in m.graph.node}\n%s\n"
               "open('%s.onnx', 'wb').write(m.SerializeToString())\n" % (name, code, to))
    made = subprocess.run([PYTHON, "-c", program], cwd=folder, capture_output=True, text=True,
                          check=False)
    check(made.returncode == 0, "the model is changed", made.stderr[-1500:])
    return os.path.join(folder, to + ".onnx")


def test_everything_unsupported_is_listed(box):
    folder = make_model(box, "small")
    err = refused(box, "check", edit(
        folder, "small", "odd", "n['relu3'].op_type = 'Frobnicate'\n"
        "n['softmax15'].domain = 'com.example'\nn['clip6'].attribute.append("
        "helper.make_attribute('surprise', 1))"))
    for text in ("odd.onnx: node relu3 (Frobnicate): the operator Frobnicate is not supported",
                 "node softmax15 (Softmax): the operator com.example.Softmax is not supported",
                 "node clip6 (Clip): its attribute surprise is not supported", "3 problems"):
        check(text in err, "all at once: " + text, err)
    for code, texts in (
            ("m.graph.input[0].type.tensor_type.shape.dim[0].dim_param = 'batch'",
             ("input x", "batch", "--shape x=")),
            ("m.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT16",
             ("input x", "uint16",)),
            ("n['conv1'].input[0] = 'nowhere'", ("node conv1 (Conv)", "nowhere")),
            ("n['conv1'].input[0] = n['relu3'].output[0]", ("node conv1 (Conv)", "cycle")),
            ("n['conv1'].attribute[1].ints[0] = 5", ("node conv1 (Conv)", "kernel_shape")),
            ("n['add8'].input[1] = n['relu3'].output[0]", ("node add8 (Add)", "broadcast")),
            ("m.opset_import[0].version = 99", ("opset 99",)),
            ("m.graph.output[0].name = 'z'", ("value z", "no node computes")),
            ("m.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64", ("output y is declared as int64",)),
            ("n['relu3'].output.append('more')", ("node relu3 (Relu): 2 outputs; it has at most 1",)),
            ("n['relu3'].attribute.append(helper.make_attribute('a', 1))\n"
             "n['conv1'].attribute.append(helper.make_attribute('a', 1))", ("node conv1 (Conv)", "2 problems")),
            ("m.graph.initializer[0].raw_data = b'1234'", ("tensor w0", "4 bytes")),
            ("m.graph.initializer[0].dims[0] = 1 << 40", ("tensor w0", "elements"))):
        err = refused(box, "check", edit(folder, "small", "bad", code))
        for text in ("bad.onnx",) + texts:
            check(text in err, "%s is named" % text, code, err)


def test_free_extents_are_given(box):
    folder = make_model(box, "small")
    path = edit(folder, "small", "free",
                "d = m.graph.input[0].type.tensor_type.shape.dim\nd[0].dim_param = 'batch'")
    status, out, err = box.run("wpkctl", "check", path, "--shape", "x=2,3,33,33")
    check(status == 0 and "output   y f32[2,10]" in out, "the batch", out, err)


def test_an_input_that_decides_on_shapes_is_bound(box):
    folder = make_model(box, "tiny")
    path = edit(folder, "tiny", "open",
                "import numpy\nw = next(w for w in m.graph.initializer if w.data_type == 7)\n"
                "numpy.save('shape.npy', numpy_helper.to_array(w))\n"
                "numpy.save('wrong.npy', numpy_helper.to_array(w).astype('f4'))\n"
                "m.graph.input.append(helper.make_tensor_value_info(w.name, 7, [2]))\n"
                "w.name, m.graph.input[1].name = 'gone', 'a=b'\n"
                "m.graph.node[-1].input[1] = 'a=b'")
    bind = "a=b=" + os.path.join(folder, "shape.npy")
    check("must be a constant" in refused(box, "check", path), "an open shape")
    status, out, err = box.run("wpkctl", "check", path, "--bind", bind)
    check(status == 0 and "a=b" not in out and "output   y f32[3,2]" in out, "it is bound", out, err)
    out, (status, said, err) = interpret(box, folder, "open", "--bind", bind, "--input",
                                         "x=" + os.path.join(folder, "x.npy"))
    check(status == 0 and compare(out, os.path.join(folder, "y.npy")) <= TOLERANCE, "the same", err)
    for binding, text in ((bind + "x", "shape.npyx"), ("b" + bind, "no open input 'ba'"),
                          (bind.replace("shape", "wrong"), "expected <i8")):
        check(text in refused(box, "check", path, "--bind", binding), text)
    check("no open input" in refused(box, "check", path, "--bind", bind, "--bind", bind), "twice")


def test_node_tests_of_onnx(box):
    """Each 15th; `make test-onnx` runs all."""
    if not os.path.exists(PYTHON):
        raise Skip("no onnx: deploy/setup.sh test")
    told = subprocess.run([PYTHON, os.path.join(ROOT, "tests/onnx_nodes.py"), os.path.join(BIN, "wpkctl"),
                           "--every", "15"], capture_output=True, text=True, check=False)
    passed = re.search(r"(\d+) passed, \d+ refused by name, 0 wrong, 0 crashed", told.stdout)
    check(told.returncode == 0 and passed and int(passed.group(1)) >= 45, "they pass", told.stdout,
          told.stderr[-500:])


def test_external_data(box):
    folder = make_model(box, "small")
    path = edit(folder, "small", "outside",
                "onnx.external_data_helper.convert_model_to_external_data(m, location='w.bin',"
                " size_threshold=64)\nonnx.save_model(m, 'outside.onnx')\n"
                "m = onnx.load('outside.onnx', load_external_data=False)")
    check(os.path.getsize(os.path.join(folder, "w.bin")) > 1000, "weights lie outside")
    out, (status, said, err) = interpret(box, folder, "outside", "--input",
                                         "x=" + os.path.join(folder, "x.npy"))
    check(status == 0 and compare(out, os.path.join(folder, "y.npy")) <= TOLERANCE, "the same", err)
    os.truncate(os.path.join(folder, "w.bin"), 1000)
    err = refused(box, "check", path)
    check("outside.onnx: tensor w" in err and "beyond the end of w.bin" in err, "cut short", err)
    os.rename(os.path.join(folder, "w.bin"), os.path.join(folder, "v.bin"))
    check("w.bin" in refused(box, "check", path), "a missing file")
    os.symlink("v.bin", os.path.join(folder, "w.bin"))
    check("leads out of the model's folder" in refused(box, "check", path), "a link")
    os.remove(os.path.join(folder, "w.bin"))
    os.mkfifo(os.path.join(folder, "w.bin"))
    check("w.bin is not a file" in refused(box, "check", path), "a FIFO, which nobody writes to")
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data.replace(b"w.bin", b"../xx"))
    check("../xx" in refused(box, "check", path), "outside of the model's folder")


def test_truncated_and_mutated_files(box):
    """Every file ends with 0 or 2 and one line or more of reason, and never by a signal."""
    folder = make_model(box, "small")
    with open(os.path.join(folder, "small.onnx"), "rb") as file:
        whole = file.read()
    path = os.path.join(folder, "cut.onnx")
    rng = random.Random(3)
    for trial in range(80):
        data = bytearray(whole)
        if trial < 20:
            data = data[:len(data) * trial // 20]
        for _ in range(rng.randrange(1, 4) if trial >= 20 else 0):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with open(path, "wb") as file:
            file.write(data)
        status, out, err = box.run("wpkctl", "check", path, "--no-roofline")
        check(status in (0, 2) and (status == 0) == (err == ""), "trial %d" % trial, status, err)
        check(trial >= 20 or status == 2, "a file that is cut short is refused", trial, out)


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""A model from its file to verified outputs: wpkctl tune, the plan, and libwpk that runs it."""
import os
import subprocess

from lib import Skip, check, main
from test_model import compare, make_model, refused

RUN_MODEL = os.environ.get("WPK_RUN_MODEL", "")
TOLERANCE = 1e-5  # of the largest output


def tuned(box):
    """The folder of a model with its plan."""
    folder = make_model(box, "tiny")
    path, plan = os.path.join(folder, "tiny.onnx"), os.path.join(folder, "tiny.wpk")
    status, out, err = box.run("wpkctl", "tune", path, "-o", plan, "--candidates", "1", "--seconds", "60",
                               "-q", "--data", box.path("history"), seconds=280)
    check(status == 0 and os.path.exists(plan), "the model is tuned", out, err)
    return folder, plan


def test_plan_computes_the_model(box):
    folder, plan = tuned(box)
    x, y, out = (os.path.join(folder, n + ".npy") for n in ("x", "y", "out"))
    status, said, err = box.run("wpkctl", "run", plan, "--input", "x=" + x, "--output", "y=" + out)
    check(status == 0, "the plan runs", said, err)
    check(compare(out, y) <= TOLERANCE, "it computes what ONNX Runtime does", compare(out, y))
    # Other inputs, beside the interpreter.
    wanted = os.path.join(folder, "wanted.npy")
    onnx = os.path.join(folder, "tiny.onnx")
    for words in (("run", plan, "--random", "--output", "y=" + out),
                  ("run", onnx, "--interpret", "--random", "--output", "y=" + wanted)):
        status, said, err = box.run("wpkctl", *words)
        check(status == 0, "%s" % (words,), said, err)
    check(compare(out, wanted) <= TOLERANCE, "it computes what the interpreter does")
    check("input x has no file" in refused(box, "run", plan), "a missing input")
    check("--interpret takes" in refused(box, "run", plan, "--interpret"), "what is interpreted")
    if RUN_MODEL:
        told = subprocess.run([RUN_MODEL, plan], capture_output=True, text=True, check=False)
        check(told.returncode == 0 and "y f32[3,2]" in told.stdout, "the example", told.stdout, told.stderr)

    # What is damaged is refused, with the file's name.
    with open(plan, "rb") as file:
        whole = file.read()
    for at in (3, 9, 20, 40, 100, len(whole) // 2, len(whole) - 4000):
        bad = os.path.join(folder, "bad.wpk")
        with open(bad, "wb") as file:
            file.write(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1:])
        status, said, err = box.run("wpkctl", "run", bad, "--random")
        check(status == 1 and "bad.wpk: " in err, "byte %d is changed" % at, status, err)
        with open(bad, "wb") as file:
            file.write(whole[:at])
        status, said, err = box.run("wpkctl", "run", bad, "--random")
        check(status == 1 and "bad.wpk: " in err, "cut at %d" % at, status, err)


def test_plan_of_nodes_with_several_outputs(box):
    folder = make_model(box, "parts")
    x, y, out, path, plan = (os.path.join(folder, n) for n in
                             ("x.npy", "y.npy", "out.npy", "parts.onnx", "parts.wpk"))
    status, said, err = box.run("wpkctl", "tune", path, "-o", plan, "--candidates", "1", "--seconds", "60",
                                "-q", "--data", box.path("history"), seconds=280)
    check(status == 0, "the model is tuned", said, err)
    status, said, err = box.run("wpkctl", "run", plan, "--input", "x=" + x, "--output", "y=" + out)
    check(status == 0 and compare(out, y) <= TOLERANCE, "it computes what ONNX Runtime does", err)


def test_refused_before_anything_starts(box):
    folder = make_model(box, "tiny")
    path = os.path.join(folder, "tiny.onnx")
    check("-o FILE.wpk" in refused(box, "tune", path), "where the plan goes")
    check("--layouts" in refused(box, "tune", path, "-o", "p.wpk", "--layouts", "any"), "row-major")
    check("absent.onnx" in refused(box, "tune", os.path.join(folder, "absent.onnx"), "-o", "p.wpk"),
          "a missing model")
    check("absent.wpk" in refused(box, "run", os.path.join(folder, "absent.wpk")), "a missing plan")
    check(not os.path.exists(box.path("history")), "nothing was started")


if __name__ == "__main__":
    main(globals())

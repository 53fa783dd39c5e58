# SPDX-License-Identifier: Apache-2.0
"""A tuned kernel, fetched and run through libwpk, gives the reference's numbers; its schedule can be
edited and built by hand."""
import json
import os
import re
import shutil
import subprocess

from lib import BIN, CONVOLUTION, Kept, Skip, check, check_tune_json, main, need, small_job

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
RUN_KERNEL = os.environ.get("WPK_RUN_KERNEL", "")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
HALIDE = os.path.join(ROOT, ".deps/halide/include")


def pattern(tensor, count):
    """The values that examples/run_kernel.c fills its tensors with, in eighths: exact integers."""
    return [(7 * i + 3 * tensor) % 17 - 8 for i in range(count)]


def reference(binding):
    """The convolution of lib.py in integer arithmetic; values in units of 1/64. The example fills
    the kernel's arguments in the order of their canonical names."""
    constants = sorted((name for _, name in binding["constants"]), key=lambda name: int(name[1:]))
    place = {mine: 1 + constants.index(name) for mine, name in binding["constants"]}
    channels, size = 16, 12
    x, w = pattern(0, channels * size * size), pattern(place["W"], channels * channels * 9)
    b = pattern(place["B"], channels)
    result = []
    for k in range(channels):
        for y in range(size):
            for col in range(size):
                total = 8 * b[k]
                for c in range(channels):
                    for r in range(3):
                        row = y + r - 1
                        if 0 <= row < size:
                            for s in range(3):
                                if 0 <= col + s - 1 < size:
                                    total += (x[(c * size + row) * size + col + s - 1] *
                                              w[((k * channels + c) * 3 + r) * 3 + s])
                result.append(max(total, 0) / 64)
    return result


def tune(box):
    need(*PROGRAMS)
    job = box.write("job.json", small_job(ops=[CONVOLUTION], budget={"candidates": 4, "seconds": 120}))
    result = check_tune_json(box.ctl("tune", job, "--data", box.data, "--json", "--pin",
                                     "algorithm=direct"))
    kernels = json.loads(box.ctl("kernels", "--data", box.data, "--json"))["kernels"]
    check(kernels and kernels[0]["own"] and kernels[0]["own"]["artifact"],
          "a generated kernel is kept", kernels)
    FOUND.append(result["kernels"][0])


FOUND = []  # what the tuning said
TUNED = Kept(tune)


def results(output):
    """The numbers that run_kernel prints, without its times."""
    return re.findall(r"t\d+: sum .*|t\d+\[\d+\] = \S+", output)


def call(box, command, **variables):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(box.env, **variables), cwd=box.dir, timeout=120, check=False)
    check(done.returncode == 0, " ".join(command), done.stdout[-3000:])
    return done.stdout


def check_installed(box, kernel_path, expected):
    """The README's lines for the installed library: headers, pkg-config file and libwpk are enough."""
    tools = [shutil.which(name) for name in ("meson", "cc", "pkg-config")]
    with open(os.path.join(BIN, "wpkctl"), "rb") as file:
        if None in tools or b"__asan_init" in file.read():
            return  # a sanitizer would have to be linked into the user's program too
    root = box.path("installed")
    call(box, ["meson", "install", "--quiet", "--no-rebuild", "-C", os.path.dirname(BIN),
               "--destdir", root])
    found = [folder for folder, _, names in os.walk(root) if "wpk.pc" in names]
    check(len(found) == 1, "one wpk.pc", found)
    flags = call(box, ["pkg-config", "--cflags", "--libs", "wpk"], PKG_CONFIG_PATH=found[0],
                 PKG_CONFIG_SYSROOT_DIR=root).split()
    source = shutil.copy(os.path.join(ROOT, "examples/run_kernel.c"), box.dir)
    call(box, ["cc", "-O2", source] + flags + ["-o", "run_kernel"])
    output = call(box, ["./run_kernel", kernel_path], LD_LIBRARY_PATH=os.path.dirname(found[0]))
    check(results(output) == results(expected) != [], "the same numbers", output, expected)
    programs = [name for _, _, names in os.walk(root) for name in names if name.startswith("wpk")]
    for name in ("wpkctl", "wpkd", "wpk-worker", "wpkctl.1", "wpk.h"):
        check(name in programs, name + " is installed", programs)
    files = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names]
    for name in ("openapi.yaml", "job.schema.json", "examples/run_kernel.c", "examples/demo.json", "cli.md"):
        check(any(file.endswith("/" + name) for file in files), name + " is installed", files)
    headers = [file for file in files if file.endswith(".h")]
    names = {file.partition("/include/")[2] for file in headers}
    check(names == {"wpk/wpk.h", "wpk/tensor.h", "wpk/err.h"}, "the public headers are wpk/ alone", headers)
    for header in headers:
        call(box, ["cc", "-fsyntax-only", "-x", "c", "-I", header[:header.index("/wpk/")], header])


def test_run_kernel(box):
    if not os.path.exists(RUN_KERNEL):
        raise Skip("examples/run_kernel is not built")
    TUNED.place(box)
    kernel = FOUND[0]
    path = box.path("small.so")
    box.ctl("get", kernel["fingerprint"], "--own", "-o", path, "--data", box.data)
    by_name = box.path("by_name.so")
    box.ctl("get", "small", "--own", "-o", by_name, "--data", box.data)
    with open(path, "rb") as one, open(by_name, "rb") as other:
        check(one.read() == other.read(), "by fingerprint and by name")
    done = subprocess.run([RUN_KERNEL, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env=box.env, timeout=60, check=False)
    check(done.returncode == 0, "the example runs it", done.stdout)
    want = reference(kernel["binding"])
    found = re.search(r"t\d+: sum (\S+), sum of magnitudes", done.stdout)
    check(found and abs(float(found.group(1)) - sum(want)) <= 1e-3 * abs(sum(want)) + 1e-3,
          "the sum", done.stdout, sum(want))
    points = re.findall(r"t\d+\[(\d+)\] = (\S+)", done.stdout)
    check(len(points) >= 4, "points are shown", done.stdout)
    for index, value in points:
        check(abs(float(value) - want[int(index)]) < 2e-6 + 1e-6 * abs(want[int(index)]),
              "point " + index, value, want[int(index)])
    check_installed(box, path, done.stdout)


# Calls the kernel with what pattern() fills arguments with, and prints the result in units of 1/64, after wrong calls.
TVM_CALLS = """
import json, sys
import numpy, tvm_ffi
path, data = sys.argv[1], json.load(sys.stdin)
module = tvm_ffi.load_module(path)
x, y = (tvm_ffi.from_dlpack(numpy.full(shape, value, "f4")) for shape, value in (((1, 16, 12, 12), 1), ((1, 16, 12, 12), 0)))
def fails(error, words, function, *arguments):
    try:
        function(*arguments)
    except error as found:
        assert words in str(found), found
    else:
        raise AssertionError(words)
fails(RuntimeError, "NAME_prepare", module.small, x, y)
constants = [numpy.array(values, "f4").reshape(shape) / 8 for shape, values in data["constants"]]
module.small_prepare(*constants)
fails(TypeError, "1 given, 2 wanted", module.small, x)
fails(TypeError, "X: no tensor", module.small, 1, y)
fails(TypeError, "X: elements of another type", module.small, numpy.ones((1, 16, 12, 12)), y)
fails(ValueError, "X: of another shape", module.small, constants[0], y)
fails(ValueError, "not contiguous", module.small, numpy.ones((1, 16, 12, 24), "f4")[..., ::2], y)
out = numpy.empty((1, 16, 12, 12), "f4")
module.small(numpy.array(data["x"], "f4").reshape(1, 16, 12, 12) / 8, out)
print(json.dumps((out.ravel() * 64).tolist()))
"""


def test_tvm_ffi(box):
    python = os.path.join(ROOT, ".deps/test-venv/bin/python3")
    if not os.path.exists(python):
        raise Skip("no .deps/test-venv: make setup")
    with open(os.path.join(BIN, "wpkctl"), "rb") as file:
        if b"__asan_init" in file.read():
            raise Skip("a sanitizer's library does not load into Python")
    TUNED.place(box)
    path = box.path("small_ffi.so")
    box.ctl("get", "small", "--own", "--tvm-ffi", "-o", path, "--data", box.data)
    binding = FOUND[0]["binding"]
    canonical = sorted((name for _, name in binding["constants"]), key=lambda name: int(name[1:]))
    shapes = {"W": (16, 16, 3, 3), "B": (16,)}
    data = {"x": pattern(0, 16 * 144), "constants": []}
    for mine, name in binding["constants"]:
        count = 16 * 16 * 9 if mine == "W" else 16
        data["constants"].append((shapes[mine], pattern(1 + canonical.index(name), count)))
    done = subprocess.run([python, "-c", TVM_CALLS, path], input=json.dumps(data), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    check(done.returncode == 0, "it is called", done.stderr[-3000:])
    want = [64 * value for value in reference(binding)]
    check(all(abs(a - b) <= 1e-3 * abs(b) + 1e-3 for a, b in zip(json.loads(done.stdout), want)), "the numbers")
    box.ctl("get", "small", "--own", "--tvm-ffi", "--ptx", "--data", box.data, want=2)


def check_readable(box):
    """The schedule as Halide C++: every tensor and directive, and a compiler accepts it."""
    path = box.path("small.cc")
    box.ctl("get", "small", "--own", "--halide", "-o", path, "--data", box.data)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for words in ("#include <Halide.h>", "ImageParam t0(", "Func t4(\"t4\");", ".vectorize("):
        check(words in text, "the text has " + words, text)
    box.ctl("get", "small", "--own", "--halide", "--schedule", "--data", box.data, want=2)
    if os.path.exists(os.path.join(HALIDE, "Halide.h")):
        done = subprocess.run(["g++", "-std=c++17", "-fsyntax-only", "-isystem", HALIDE, path],
                              stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        check(done.returncode == 0, "it compiles", done.stderr[-3000:], text)


# The operators of the page's examples.
ROWS = """#op input X f32[96,512]
#op input W f32[512]
#op intermediate T f32[96]
#op output Y f32[96]
#op T[i] = sum(j:512) X[i,j] * W[j]
#op Y[i] = T[i] * 2
wpk-schedule 2
target x86-64-linux-sse41-avx-avx2-f16c-fma threads 2
by halide-cpu
layout X f32[96,512] 0,1
layout W f32[512] 0
layout Y f32[96] 0
program
input X f32[96,512]
input W f32[512]
intermediate V f32[512]
intermediate T f32[96]
output Y f32[96]
V[j] = W[j]
T[i] = sum.f32(j:512) X[i,j] * V[j]
Y[i] = T[i] * 2
end
"""


def test_documented_schedule(box):
    """The page about schedules shows some, and nests: they build; and it names every word there is."""
    need(*PROGRAMS)
    with open(os.path.join(ROOT, "docs/schedule.md"), encoding="utf-8") as file:
        page = file.read()
    for text in re.findall(r"```\n(#.*?)```", page, re.DOTALL):
        record = json.loads(box.ctl("build", box.write("page.schedule", text), "--json"))
        check(record["outcome"] == "ok", "it builds and verifies", record, text)
    for number, nest in enumerate(re.findall(r"```\n(stage .*?)```", page, re.DOTALL)):
        path = box.write("%d.schedule" % number, ROWS + nest)
        if "block.x" in nest:
            code, out, err = box.run("wpkctl", "build", path)
            check(code in (1, 2) and "24:3: block.x needs a target of a GPU" in out + err, "not on a CPU", code,
                  out, err)
            continue
        by_c = box.write("%d.c.schedule" % number, (ROWS + nest).replace("by halide-cpu", "by c"))
        for path in (path, by_c):
            record = json.loads(box.ctl("build", path, "--json"))
            check(record["outcome"] == "ok", "so does the nest", path, record, nest)
    check(number >= 5, "there are examples", number)
    with open(os.path.join(ROOT, "nest/nest.h"), encoding="utf-8") as file:
        header = file.read()
    for name in re.findall(r'^    X\([A-Z_]+, "([a-z_.]+)"\)', header, re.MULTILINE):
        check(re.search("`(scope )?%s`" % re.escape(name), page), "the page says what it does: " + name)


def test_build_by_hand(box):
    TUNED.place(box)
    check_readable(box)
    path = box.path("small.schedule")
    box.ctl("get", "small", "--own", "--schedule", "-o", path, "--data", box.data)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    check("#op " in text and "wpk-schedule 2" in text, "the file says what it implements", text)
    built = box.path("built.so")
    record = json.loads(box.ctl("build", path, "--json", "-o", built))
    check(record["outcome"] == "ok", "it builds and verifies", record)
    check(os.path.getsize(built) > 1000, "the shared object is kept")
    check(record["artifact"]["path"] == built, "and its record says where", record["artifact"])
    record = json.loads(box.ctl("build", path, "--json"))
    check("path" not in record["artifact"], "nowhere, where it is not kept", record["artifact"])
    box.env["TMPDIR"] = box.path("nowhere")
    code, _, err = box.run("wpkctl", "build", path)
    check(code == 2 and box.env.pop("TMPDIR") in err, "$TMPDIR is where it works", code, err)
    check("max error" in box.ctl("build", path), "for people")
    # An edit that cannot be: the loop is not there.
    bad = box.write("bad.schedule", text + "\n  serial nonsense\n")
    code, out, err = box.run("wpkctl", "build", bad)
    check(code in (1, 2) and "%d:10: " % (text.count("\n") + 2) in out + err, "the line at fault is named", code,
          out, err)
    code, out, err = box.run("wpkctl", "build", box.write("old.schedule", text.replace("-schedule 2", "-schedule 1")))
    check(code in (1, 2) and "is no longer read: tune the operator again" in out + err, "nor is version 1", code, out,
          err)
    code, _, err = box.run("wpkctl", "build", box.write("none.schedule", "wpk-schedule 2\n"))
    check(code == 2 and "#op" in err, "no operator", code, err)


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""Candidates of many programs, built and verified against the reference: every outcome has to be ok,
and the error of those without transforms near that of direct evaluation.

sweep_programs.txt has the programs. The short sweep takes some of them, each with another layout,
thread count and instruction set; WPK_SWEEP=long takes all with all of those, WPK_SWEEP_SEED draws
other candidates, WPK_SWEEP_ONLY=NAME[,NAME] names programs.
"""
import json
import os
import subprocess

import lib

LONG = os.environ.get("WPK_SWEEP", "") == "long"
SEED = int(os.environ.get("WPK_SWEEP_SEED", "1"))
ONLY = [name for name in os.environ.get("WPK_SWEEP_ONLY", "").split(",") if name]
EVERY = LONG or os.environ.get("WPK_ORACLE") == "long"  # in `make test-all`, all of the short sweep
CONSTRUCTED, RANDOM = (6, 8) if LONG else (2, 2) if EVERY else (1, 1)
# Error of candidates that only move data, as a multiple of direct evaluation's. Strict is 1.125; the
# programs are so small that the ratio of two such errors is known within a third.
TIMES_DIRECT_MAX = 1.125 * 1.35
STRICT, STANDARD = 1.25 * 0.9, 4 * 0.9
# A build that takes LLVM too long is an outcome of the search, and depends on the machine's load.
TIMEOUT_SHARE_MAX = 0.03
SETTINGS = [(layouts, threads, isa) for isa in ("avx512", "avx2", "sse41") for threads in (1, 2)
            for layouts in ("fixed", "any")]


def read_programs():
    """{name: (words, text)}"""
    found = {}
    name = None
    with open(os.path.join(os.path.dirname(__file__), "sweep_programs.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("== "):
                name, *words = line[3:].split()
                found[name] = (words, "")
            elif name:
                found[name] = (found[name][0], found[name][1] + line)
    return found


def settings_of(number, words):
    """The whole product, or one that differs from program to program."""
    if LONG:
        return [s for s in SETTINGS if s[0] == "fixed" or "any" in words]
    layouts, threads, isa = SETTINGS[number * 5 % len(SETTINGS)]
    return [(layouts if "any" in words else "fixed", threads, isa)]


def evaluate(box, path, setting):
    layouts, threads, isa = setting
    code, out, err = box.run("wpk-evaluate", "--op", path, "--quiet", "--time-ms", 1,
                             "--construct", CONSTRUCTED, "--random", RANDOM, "--seed", SEED,
                             "--layouts", layouts, "--threads", threads, "--isa", isa, seconds=600)
    lib.check(code in (0, 1), "wpk-evaluate ended with %s" % code, path, setting, err[-2000:])
    results = [json.loads(line) for line in out.splitlines()]
    lib.check(results, "nothing was tried", path, setting)
    return results


def test_every_candidate_computes_its_program(box):
    lib.need("wpk-evaluate", "wpk-builder", "wpk-runner")
    programs = {name: p for name, p in read_programs().items()
                if (name in ONLY if ONLY else LONG or "short" in p[0])}
    tried = 0
    timeouts = []
    wrong = []
    for number, (name, (words, text)) in enumerate(programs.items()):
        path = box.write(name + ".txt", text)
        for setting in settings_of(number, words):
            results = evaluate(box, path, setting)
            tried += len(results)
            for result in results:
                outcome = result["record"]["outcome"]
                words_of = "%s %s: %s\n  %s\n  %s" % (name, setting, outcome, result["candidate"],
                                                      result["record"].get("log", ""))
                if outcome == "build_timeout":
                    timeouts.append(words_of)
                elif outcome != "ok":
                    wrong.append(words_of)
                    print(words_of, flush=True)
                times = result["record"]["error"]["times_direct"]
                if "winograd" not in result["candidate"] and times > TIMES_DIRECT_MAX:
                    wrong.append("%s: its error is %.3g times direct" % (words_of, times))
    print("%d candidates of %d programs, %d not ok, %d timeouts" % (
        tried, len(programs), len(wrong), len(timeouts)), flush=True)
    lib.check(not wrong, "%d candidates are not ok" % len(wrong), *wrong[:10])
    lib.check(len(timeouts) <= max(1, TIMEOUT_SHARE_MAX * tried), "too many builds took too long",
              *timeouts[:10])


def test_two_convolutions_take_different_algorithms(box):
    """Candidates of a residual block, in which each convolution is pinned to another algorithm."""
    lib.need("wpk-evaluate", "wpk-builder", "wpk-runner")
    if ONLY and "block" not in ONLY:
        return
    path = box.write("block.txt", read_programs()["block"][1])
    for first, second in (("winograd(3)", "direct"), ("direct", "winograd(5)"), ("winograd(2)", "winograd(3,5)")):
        pins = ("algorithm.C=" + first, "algorithm.D=" + second)
        code, out, err = box.run("wpk-evaluate", "--op", path, "--quiet", "--time-ms", 1, "--layouts", "any", "--pin",
                                 pins[0], "--pin", pins[1], "--construct", 1, "--random", 1, seconds=600)
        lib.check(code == 0, "wpk-evaluate ended with %s" % code, pins, out[-2000:], err[-2000:])
        for result in (json.loads(line) for line in out.splitlines()):
            lib.check(all(" %s " % pin in result["candidate"] for pin in pins), "another algorithm", pins,
                      result["candidate"])
            lib.check(result["record"]["outcome"] == "ok", "not ok", pins, result)


def test_long_random_programs(box):
    """A candidate of each of some programs of 16 to 25 stages."""
    lib.need("wpk-evaluate", "wpk-builder", "wpk-runner")
    draw = os.path.join(lib.BIN, "../tests/draw_program")
    for seed in () if ONLY else ("4", "5", "6"):
        path = box.write("random.txt", subprocess.run([draw, seed, "40"], check=True, capture_output=True,
                                                      text=True).stdout)
        code, out, err = box.run("wpk-evaluate", "--op", path, "--quiet", "--time-ms", 1, "--construct", 1, seconds=600)
        outcomes = [json.loads(line)["record"]["outcome"] for line in out.splitlines()]
        lib.check(code == 0 and outcomes == ["ok"], "not ok", seed, outcomes, err[-2000:])


def test_large_constants(box):
    """Packed in halves, also where neither tiles nor halves divide; in either back end, and by two threads."""
    lib.need("wpk-evaluate", "wpk-builder", "wpk-runner")
    path = box.write("large.txt", "input A f32[3,1450]\nconstant B f32[1450,3001]\noutput Y f32[3,3001]\n"
                                  "Y[i,j] = sum(k:1450) A[i,k] * B[k,j]\n")
    for back_end, threads in () if ONLY else (("halide-cpu", 1), ("c", 2)):
        code, out, err = box.run("wpk-evaluate", "--op", path, "--layouts", "any", "--quiet", "--time-ms", 1,
                                 "--threads", threads, "--pin", "Y.pack.B=halves", "--pin", "Y.tile.j=32", "--pin",
                                 "Y.lanes=8", "--pin", "Y.vec=j", "--pin", "by=" + back_end, "--isa", "avx2",
                                 "--random", 2, seconds=600)
        outcomes = [json.loads(line)["record"]["outcome"] for line in out.splitlines()]
        lib.check(code == 0 and outcomes == ["ok"] * 2, "not ok", back_end, threads, outcomes, err[-2000:])


def test_plain_kernel_is_strict(box):
    """The fallback kernel of a host: one of its candidates works, for all operators that there are; in `make test` for
    every second one."""
    lib.need("wpk-evaluate", "wpk-builder", "wpk-runner")
    missing = []
    programs = [(name, text) for name, (words, text) in read_programs().items()
                if (name in ONLY if ONLY else LONG or "short" in words)]
    for name, text in programs if EVERY or ONLY else programs[::2]:
        path = box.write(name + ".txt", text)
        code, out, err = box.run("wpk-evaluate", "--op", path, "--quiet", "--time-ms", 1, "--plain", seconds=600)
        lib.check(code in (0, 1), "wpk-evaluate ended with %s" % code, path, err[-2000:])
        records = [json.loads(line)["record"] for line in out.splitlines()]
        if not any(r["outcome"] == "ok" and r["error"]["times_direct"] <= STRICT for r in records):
            missing.append("%s: %s" % (name, [(r["outcome"], r["error"]["times_direct"], r.get("log")) for r in records]))
    lib.check(not missing, "%d programs have no plain kernel" % len(missing), *missing)


FLOATS = ("f32", "f64", "f16", "bf16")
BYTES = FLOATS + ("i8",)
MOVES = BYTES + ("u8", "i32")
# Outputs of thousands of values: fewer, and the ratio of two errors is noise.
SHORTHANDS = (
    [({"type": "conv2d", "input": [1, 12, 12, 12], "filters": 32, "kernel": [3, 3], "padding": [1, 1, 1, 1],
       "bias": True}, BYTES),
     ({"type": "depthwise_conv2d", "input": [1, 32, 12, 12], "kernel": [3, 3]}, BYTES),
     ({"type": "max_pool2d", "input": [1, 20, 30, 30], "kernel": [2, 2]}, FLOATS),
     ({"type": "avg_pool2d", "input": [1, 20, 30, 30], "kernel": [2, 2]}, FLOATS),
     ({"type": "global_avg_pool", "input": [8, 64, 5, 5]}, FLOATS),
     ({"type": "matmul", "a": [64, 48], "b": [48, 64], "bias": True, "activation": "relu"}, BYTES),
     ({"type": "batch_matmul", "a": [2, 40, 32], "b": [2, 32, 56]}, BYTES),
     ({"type": "gemm", "a": [64, 40], "b": [40, 72], "c": [64, 72]}, FLOATS),
     ({"type": "softmax", "shape": [64, 72]}, FLOATS),
     ({"type": "layernorm", "shape": [64, 72]}, FLOATS),
     ({"type": "elementwise", "expr": "A * B + A", "inputs": {"A": [64, 72], "B": [72]}}, FLOATS),
     ({"type": "transpose", "shape": [64, 72], "perm": [1, 0]}, MOVES)]
    + [({"type": "reduce", "shape": [64, 30, 72], "axes": [1], "reduction": r}, FLOATS)
       for r in ("sum", "mean", "max", "min")]
    + [({"type": "reduce", "shape": [64, 4, 72], "axes": [1], "reduction": "prod"}, FLOATS)]
    + [({"type": name, "a": [64, 72], "b": [72]}, FLOATS) for name in ("add", "sub", "mul", "div", "min", "max")]
    + [({"type": name, "shape": [64, 72]}, FLOATS)
       for name in ("relu", "relu6", "leaky_relu", "sigmoid", "tanh", "gelu", "silu", "hardswish", "exp", "log",
                    "sqrt", "rsqrt", "erf", "abs")])

# Halide multiplies by the reciprocal of a constant divisor, and takes a common factor out of a sum.
REWRITTEN = ("avg_pool2d", "global_avg_pool", "reduce", "elementwise")


def times_direct_max(op, dtype):
    """None: the reference is as precise as direct evaluation, which says nothing."""
    return None if dtype == "f64" else STANDARD if op["type"] in REWRITTEN else STRICT


def test_direct_candidates_of_shorthands_are_strict(box):
    """The short sweep takes each name with one of its types."""
    lib.need("wpk-evaluate", "wpk-builder", "wpk-runner")
    expand = os.path.join(lib.BIN, "../tests/expand")
    wrong = []
    tried = 0
    for number, (op, dtypes) in enumerate(SHORTHANDS):
        for dtype in dtypes if LONG else [dtypes[number % len(dtypes)]]:
            whole = subprocess.run([expand, json.dumps(dict(op, dtype=dtype))], check=True, capture_output=True,
                                   text=True).stdout
            path = box.write("shorthand.txt", whole)
            code, out, err = box.run("wpk-evaluate", "--op", path, "--quiet", "--time-ms", 1, "--pin",
                                     "algorithm=direct", "--construct", 3 if LONG else 1, seconds=600)
            lib.check(code in (0, 1), "wpk-evaluate ended with %s" % code, op, dtype, err[-2000:])
            for record in (json.loads(line)["record"] for line in out.splitlines()):
                tried += 1
                error = record["error"]["times_direct"]
                most = times_direct_max(op, dtype)
                if record["outcome"] != "ok" or (most is not None and error > most):
                    wrong.append("%s %s: %s, %.3g times direct %s" % (
                        op, dtype, record["outcome"], error, record.get("log", "")))
                    print(wrong[-1], flush=True)
    print("%d candidates of %d shorthands" % (tried, len(SHORTHANDS)), flush=True)
    lib.check(not wrong, "%d candidates are not strict" % len(wrong), *wrong[:10])


if __name__ == "__main__":
    lib.main(globals())

# SPDX-License-Identifier: Apache-2.0
"""Kernels built from a program with one mistake, held against the right one: none may pass.

The interpreter's mutants are tests/mutants.c; these go through code generation, loading and the
runner as every candidate does. Every tenth is built; WPK_MUTANTS=long builds all.
"""
import json
import os

import lib

LONG = os.environ.get("WPK_MUTANTS", "") == "long"

CONVOLUTION = """input X f32[1,8,10,16]
constant W f32[16,8,3,3]
constant B f32[16]
output Y f32[1,16,10,16]
intermediate T f32[1,16,10,16]
T[n,k,y,x] = sum(c:8,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]
Y[n,k,y,x] = max(T[n,k,y,x] + B[k], 0)
"""
SOFTMAX = """input X f32[7,37]
output Y f32[7,37]
intermediate M f32[7]
intermediate S f32[7]
M[i] = max(k:37) X[i,k]
S[i] = sum(k:37) exp(X[i,k] - M[i])
Y[i,j] = exp(X[i,j] - M[i]) / S[i]
"""
LAYERNORM = """input X f32[16,48]
constant G f32[48]
constant B f32[48]
output Y f32[16,48]
intermediate M f32[16]
intermediate V f32[16]
M[i] = sum(k:48) X[i,k] / 48
V[i] = sum(k:48) (X[i,k] - M[i]) * (X[i,k] - M[i]) / 48
Y[i,j] = (X[i,j] - M[i]) * rsqrt(V[i] + 0.00001) * G[j] + B[j]
"""
POOL = """input X f32[1,5,13,13]
output Y f32[1,5,7,7]
Y[n,c,y,x] = max(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1 | -inf]
"""
POINTWISE = """input X f32[777]
input Z f32[777]
output Y f32[777]
Y[i] = X[i] * 0.5 * (1 + erf(X[i] * 0.7071067811865476)) - Z[i] * sigmoid(Z[i]) + tanh(X[i])
"""
QUANTIZED = """input X f32[30,31]
output Y i8[30,31]
Y[i,j] = i8(X[i,j] * 20.0 + 1.5)
"""
INTEGERS = """input A i8[33,41]
input B i8[41,29]
output C i32[33,29]
C[i,j] = sum(k:41) (i32(A[i,k]) - 3) * i32(B[k,j])
"""
ATTENTION = """input Q f32[2,6,8]
input K f32[2,6,8]
input A f32[6,6]
output Y f32[2,6,6]
intermediate T f32[2,6,6]
intermediate M f32[2,6]
intermediate S f32[2,6]
T[b,i,j] = (sum(k:8) Q[b,i,k] * K[b,j,k]) * 0.35355339059327373 + A[i,j]
M[b,i] = max(j:6) T[b,i,j]
S[b,i] = sum(j:6) exp(T[b,i,j] - M[b,i])
Y[b,i,j] = exp(T[b,i,j] - M[b,i]) / S[b,i]
"""

# Pairs: a text in the program, and the mutant's text in its place.
MUTANTS = (
    [(CONVOLUTION, *m) for m in (
        ("y+r-1", "y+r"), ("x+s-1", "x+s-2"), ("c:8", "c:7"), ("r:3", "r:2"), ("| 0", "| 1"),
        ("W[k,c,r,s]", "W[k,c,s,r]"), ("W[k,c,r,s]", "W[k,c,2-r,s]"), ("T[n,k,y,x] + B[k]", "T[n,k,y,x] - B[k]"),
        ("+ B[k], 0)", "+ B[k], 1)"), ("max(T", "min(T"), ("B[k]", "B[15-k]"), ("sum(c", "max(c"))]
    + [(SOFTMAX, *m) for m in (
        ("max(k:37)", "min(k:37)"), ("max(k:37)", "max(k:20)"), ("max(k:37)", "max(k:1)"),
        ("max(k:37) X[i,k]", "max(k:37) min(X[i,k], 0)"),
        ("sum(k:37)", "sum(k:36)"), ("sum(k:37)", "max(k:37)"), ("X[i,k] - M[i]", "X[i,k]"),
        ("X[i,j] - M[i]", "X[i,j] - 2 * M[i]"), (" / S[i]", " * S[i]"), ("S[i]\n", "S[(i+1)%7]\n"),
        # for minus infinity alone: it becomes a number, and what was 0 becomes NaN
        ("X[i,k] - M[i]", "max(X[i,k], -6) - M[i]"), ("X[i,j] - M[i]", "max(X[i,j], -6) - M[i]"),
        ("exp(X[i,j] - M[i])", "X[i,j] / (X[i,j] * exp(M[i] - X[i,j]))"))]
    + [(LAYERNORM, *m) for m in (
        ("0.00001", "0.0001"), ("M[i] = sum(k:48)", "M[i] = sum(k:47)"), ("rsqrt", "sqrt"), ("+ B[j]", "- B[j]"),
        ("* G[j]", "+ G[j]"), ("V[i] = sum(k:48)", "V[i] = sum(k:47)"), ("X[i,k] / 48", "X[i,k] / 47"))]
    + [(POOL, *m) for m in (
        ("-inf", "0"), ("2*y+r-1", "2*y+r"), ("2*x+s-1", "x+s-1"), ("r:3", "r:2"), ("max", "min"), ("max", "sum"))]
    + [(POINTWISE, *m) for m in (
        ("0.7071067811865476", "0.708"), ("erf", "tanh"), ("- Z[i]", "+ Z[i]"), ("sigmoid(Z[i])", "sigmoid(X[i])"),
        ("0.5", "0.501"), ("1 + erf", "2 + erf"), ("tanh", "erf"))]
    + [(QUANTIZED, *m) for m in (("20.0", "20.01"), ("1.5", "1.51"), ("+ 1.5", "- 1.5"), ("X[i,j]", "X[i,30-j]"))]
    + [(INTEGERS, *m) for m in (
        ("k:41", "k:40"), ("- 3", "- 2"), ("- 3", "+ 3"), ("B[k,j]", "B[40-k,j]"), ("sum", "max"))]
    + [(ATTENTION, *m) for m in (
        ("0.35355339059327373", "0.3535"), ("+ A[i,j]", "+ A[j,i]"), ("+ A[i,j]", "- A[i,j]"), ("k:8", "k:7"),
        ("K[b,j,k]", "K[b,i,k]"), ("Q[b,i,k]", "Q[1-b,i,k]"), ("max(j:6)", "max(j:1)"), ("sum(j:6)", "sum(j:5)"),
        ("exp(T[b,i,j] - M[b,i]) / S", "exp(T[b,j,i] - M[b,i]) / S"), ("/ S[b,i]", "/ S[b,5-i]"))]
)


def evaluate(box, *arguments):
    code, out, err = box.run("wpk-evaluate", *arguments, seconds=120)
    lib.check(code in (0, 1), "wpk-evaluate ended with %s" % code, arguments, err[-2000:])
    return out


def outcome_of(box, text, was, becomes):
    """Of a kernel made from the mutant, verified as one of `text`."""
    lib.check(was in text, "%s is not in the program" % was, text)
    right = box.write("right.txt", text)
    wrong = box.write("wrong.txt", text.replace(was, becomes, 1))
    printed = evaluate(box, "--op", wrong, "--construct", 1, "--print")
    schedule = printed[printed.index("wpk-schedule"):].split("\n# ")[0]
    result = evaluate(box, "--op", right, "--schedule", box.write("schedule.txt", schedule),
                      "--time-ms", 1, "--quiet")
    return json.loads(result.splitlines()[0])["record"]["outcome"]


def test_no_built_mutant_passes(box):
    lib.need("wpk-evaluate", "wpk-builder", "wpk-runner")
    infinite = [m for m in MUTANTS if "max(X" in m[2]]
    chosen = MUTANTS if LONG else MUTANTS[::10] + infinite[:1]
    passed = []
    for text, was, becomes in chosen:
        outcome = outcome_of(box, text, was, becomes)
        if outcome != "wrong_result":
            passed.append("%s -> %s: %s in\n%s" % (was, becomes, outcome, text))
    print("%d of %d mutants built" % (len(chosen), len(MUTANTS)), flush=True)
    lib.check(not passed, "%d mutants are not caught" % len(passed), *passed)


if __name__ == "__main__":
    lib.main(globals())

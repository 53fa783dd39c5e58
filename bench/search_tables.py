#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the tables of bench/search/: sub-spaces that are timed whole, for `bench-search replay`.

    bench/search_tables.py NAME...       lists, builds, verifies and times every schedule (some 20 minutes each)
    bench/search_tables.py --count NAME  says how many there are

Each schedule is built and timed by wpk-evaluate; the best twentieth is timed again, and the smaller
median stays."""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build")

CONV = """input X f32[1,{c},{h},{w}]
constant W f32[{k},{c},{r},{r}]
constant B f32[{k}]
intermediate T f32[1,{k},{h},{w}]
output Y f32[1,{k},{h},{w}]
T[n,k,y,x] = sum(c:{c},r:{r},s:{r}) X[n,c,y+r-{p},x+s-{p}] * W[k,c,r,s]
Y[n,k,y,x] = max(T[n,k,y,x] + B[k], 0)
"""
PRODUCT = """input A f32[{m},{k}]
{role} B f32[{k},{n}]
output Y f32[{m},{n}]
Y[i,j] = sum(k:{k}) A[i,k] * B[k,j]
"""

DEPTHWISE = """input X f32[1,{c},{h},{h}]
constant W f32[{c},3,3]
output Y f32[1,{c},{h},{h}]
Y[n,c,y,x] = sum(r:3,s:3) X[n,c,y+r-1,x+s-1] * W[c,r,s]
"""
SOFTMAX = """input X f32[{m},{n}]
intermediate M f32[{m}]
intermediate E f32[{m},{n}]
intermediate D f32[{m}]
output Y f32[{m},{n}]
M[i] = max(j:{n}) X[i,j]
E[i,j] = exp(X[i,j] - M[i])
D[i] = sum(j:{n}) E[i,j]
Y[i,j] = E[i,j] / D[i]
"""

WINOGRAD = ["T_v.tile.c=16+32", "T_v.inner=c,ty,tx+ty,tx,c", "T_v.roll=yes", "T_v.at=root+T_m.block",
            "T_m.tile.ty=1+7", "T_m.block.ty=all", "T_m.tile.tx=1+7", "T_m.block.tx=all+1", "T_m.tile.k=16+32+64",
            "T_m.block.k=all", "T_m.outer=a,b,ty,tx,k+tx,a,b,ty,k", "T_m.inner=a,b,ty,tx,k+k,a,b,ty,tx", "T_m.sum=all",
            "T_m.unroll=1", "T_m.at=root", "T_m.tail=whole", "Y.roll=yes"]
DIRECT = ["Y.lanes=16", "Y.block.k=all", "Y.block.x=all", "Y.outer=y,x,k", "Y.sum=all", "Y.split=all", "Y.tail=whole"]
COPY = ["X_t.vec=i3", "X_t.lanes=16", "X_t.tile.i1=1", "X_t.tile.i2=1", "X_t.tile.i3=16+32", "X_t.inner=i1,i2,i3",
        "X_t.at=root+Y.block"]
# The first four are for tuning strategies, the last four for scoring them: their shapes are found nowhere else.
TABLES = {
    "conv-28": dict(op=CONV.format(c=128, k=128, h=28, w=28, r=3, p=1), layouts="any", pins=WINOGRAD + DIRECT + [
        "algorithm=direct+winograd(4)+winograd(2)+winograd(6)", "layout=halo-last1", "Y.vec=k", "Y.tile.k=16+32+48+64",
        "Y.tile.x=1+2+4+6+7+14", "Y.tile.y=1+2+4+6", "Y.block.y=all", "Y.inner=y,x,k+k,y,x", "Y.red=c,r,s+r,s,c",
        "Y.unroll=1+2"]),
    "product-35": dict(op=PRODUCT.format(m=35, k=700, n=2048, role="constant"), layouts="fixed", pins=[
        "layout=staged", "Y.vec=j", "Y.lanes=16", "Y.tile.i=1+2+4+5+6+7+8+9+12+14", "Y.tile.j=16+32+48+64+96",
        "Y.block.i=all", "Y.block.j=all+4+8", "Y.outer=i,j+j,i", "Y.inner=i,j+j,i", "Y.split=all", "Y.sum=all",
        "Y.unroll=1+2+4", "Y.pack.A=no+yes"]),
    "product-77": dict(op=PRODUCT.format(m=77, k=333, n=210, role="input"), layouts="fixed", pins=[
        "layout=staged", "Y.vec=j", "Y.lanes=8+16", "Y.tile.i=1+2+4+6+7+9+12+14", "Y.tile.j=16+32+48+64",
        "Y.block.i=all", "Y.block.j=all+2", "Y.outer=i,j", "Y.inner=i,j+j,i", "Y.split=all",
        "Y.unroll=1+2", "Y.pack.A=no+yes", "Y.pack.B=no+yes"]),
    "depthwise-28": dict(op=DEPTHWISE.format(c=256, h=28), layouts="fixed", pins=COPY + [
        "algorithm=direct", "Y.vec=x+c", "Y.lanes=16", "Y.tile.c=1+4+16", "Y.block.c=all+1", "Y.tile.y=1+4+7+14",
        "Y.block.y=all+1", "Y.tile.x=1+4+7+16", "Y.block.x=all", "Y.outer=c,y,x", "Y.inner=c,y,x+y,x,c",
        "Y.red=r,s+s,r", "Y.split=all", "Y.unroll=1+3", "Y.pack.W=yes"]),
    "conv-19": dict(op=CONV.format(c=96, k=160, h=19, w=19, r=3, p=1), layouts="fixed", pins=COPY + [
        "algorithm=direct+winograd(5)+winograd(4)+winograd(3)", "layout=staged-last1", "T_v.vec=c", "T_v.lanes=16",
        "T_v.tile.ty=1", "T_v.tile.tx=1", "T_v.tile.c=16", "T_v.inner=ty,tx,c", "T_v.roll=yes",
        "T_v.at=root+T_m.block+Y.block", "T_m.vec=k", "T_m.lanes=16", "T_m.tile.ty=1+5", "T_m.block.ty=all",
        "T_m.tile.tx=1+4+5", "T_m.block.tx=all+1", "T_m.tile.k=32+80", "T_m.block.k=all",
        "T_m.outer=a,b,ty,tx,k+tx,a,b,ty,k", "T_m.inner=a,b,ty,tx,k+k,a,b,ty,tx", "T_m.split=all", "T_m.sum=all",
        "T_m.unroll=1", "T_m.at=root+Y.block", "T_m.tail=whole", "Y.vec=k", "Y.lanes=16", "Y.tile.k=16+80",
        "Y.block.k=all", "Y.tile.y=1+3+4+5", "Y.block.y=all+1", "Y.tile.x=1+3+4+5", "Y.block.x=all", "Y.outer=k,y,x",
        "Y.inner=y,x,k+k,y,x", "Y.red=r,s,c", "Y.split=all", "Y.sum=all", "Y.unroll=1", "Y.tail=whole", "Y.roll=yes"]),
    "depthwise-27": dict(op=DEPTHWISE.format(c=144, h=27), layouts="fixed", pins=COPY + [
        "algorithm=direct", "Y.vec=x+c", "Y.lanes=16", "Y.tile.c=1+4+16", "Y.block.c=all+1", "Y.tile.y=1+4+7+14",
        "Y.block.y=all+1", "Y.tile.x=1+4+7+16", "Y.block.x=all", "Y.outer=c,y,x", "Y.inner=c,y,x+y,x,c",
        "Y.red=r,s+s,r", "Y.split=all", "Y.unroll=1+3", "Y.pack.W=yes"]),
    "softmax-222": dict(op=SOFTMAX.format(m=222, n=450), layouts="fixed", pins=[
        "M.tile.i=1+2", "M.split=all", "M.unroll=1", "E.vec=i+j", "E.lanes=16", "E.tile.i=1+2+16",
        "E.tile.j=1+2+16+48", "E.inner=i,j", "D.tile.i=1", "D.split=all", "D.unroll=1", "Y.vec=i+j",
        "Y.lanes=16", "Y.tile.i=1+2+16", "Y.tile.j=1+16+48", "Y.block.i=all+1+2", "Y.block.j=all", "Y.outer=i,j",
        "Y.inner=i,j"]),
    "product-53": dict(op=PRODUCT.format(m=53, k=911, n=1187, role="input"), layouts="fixed", pins=[
        "layout=staged", "Y.vec=j", "Y.lanes=16", "Y.tile.i=1+4+6+7+9+12+14+18", "Y.tile.j=16+32+48+64",
        "Y.block.i=all+2", "Y.block.j=all+4", "Y.outer=i,j", "Y.inner=i,j+j,i", "Y.split=all",
        "Y.unroll=1+2", "Y.pack.A=no+yes", "Y.pack.B=no+yes"]),
}


def listed(table, directory):
    op = os.path.join(directory, "op")
    with open(op, "w", encoding="utf-8") as file:
        file.write(table["op"])
    words = [os.path.join(BUILD, "bench/bench-search"), "list", op, "--layouts", table["layouts"]]
    for pin in table["pins"]:
        words += ["--pin", pin]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stderr)
    rows = {}
    device, *lines = result.stdout.splitlines()
    table["device"] = device
    for line in lines:
        key, text = line.split(" ", 1)
        rows.setdefault(key, text)
    return op, rows


def timed(table, op, texts, directory):
    path = os.path.join(directory, "candidates")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(texts) + "\n")
    words = [os.path.join(BUILD, "bin/wpk-evaluate"), "--op", op, "--layouts", table["layouts"], "--candidates", path,
             "--race", "4", "--quiet"]
    result = subprocess.run(words, capture_output=True, text=True)
    records = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if len(records) != len(texts):
        sys.exit("%d of %d were evaluated: %s" % (len(records), len(texts), result.stderr[-500:]))
    return [r["record"]["timing"]["median_ns"] if r["record"]["outcome"] == "ok" else 0 for r in records]


def make(name):
    table = TABLES[name]
    with tempfile.TemporaryDirectory() as directory:
        op, rows = listed(table, directory)
        keys, texts = list(rows), list(rows.values())
        times = timed(table, op, texts, directory)
        best = sorted((t, i) for i, t in enumerate(times) if t > 0)[:max(8, len(times) // 20)]
        for again, (_, i) in zip(timed(table, op, [texts[i] for _, i in best], directory), best):
            times[i] = min(times[i], again) if again > 0 else times[i]
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout
    path = os.path.join(ROOT, "bench/search", name + ".table")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write("op %s\n" % table["op"].strip().replace("\n", "||"))
        file.write("%s\nlayouts %s\nthreads 1\n" % (table["device"], table["layouts"]))
        file.write("".join("pin %s\n" % pin for pin in table["pins"]))
        file.write("machine %s\ncommit %s\nrows\n" % (model, commit.strip()))
        file.write("".join("%s %d\n" % row for row in zip(keys, times)))
    ok = [t for t in times if t > 0]
    print("%s: %d schedules, %d failed, best %.1f us, median %.1f us" %
          (name, len(times), len(times) - len(ok), min(ok) / 1e3, sorted(ok)[len(ok) // 2] / 1e3))


def main():
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    for name in names or TABLES:
        if "--count" in sys.argv:
            with tempfile.TemporaryDirectory() as directory:
                print(name, len(listed(TABLES[name], directory)[1]))
        else:
            make(name)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How large a plan's arena is beside the largest sum of bytes that are alive at one step.

    bench/arena.py PLAN.wpk...
"""
import json
import struct
import sys

ARENA = 0  # a value's place
ALIGNMENT = 64


def read(path):
    with open(path, "rb") as file:
        header = file.read(64)
        return json.loads(file.read(struct.unpack_from("<Q", header, 16)[0]))


def bytes_of(value):
    dtype, extents = value["type"].rstrip("]").split("[")
    size = {"f32": 4, "i32": 4, "f64": 8, "i64": 8, "bool": 1}[dtype]
    for extent in filter(None, extents.split(",")):
        size *= int(extent)
    return -(-size // ALIGNMENT) * ALIGNMENT


def largest_sum(plan):
    """Values that overlap lie in one block; a block lives from its first touch to its last."""
    spans = []
    for number, value in enumerate(plan["values"]):
        touched = [s for s, step in enumerate(plan["steps"])
                   if any(a["value"] == number for a in step["arguments"])]
        begin, end = value["offset"], value["offset"] + bytes_of(value)
        for loop in plan["loops"]:  # what its steps touch lives during all of it
            steps = range(loop["first"], loop["first"] + loop["count"])
            if any(s in steps for s in touched):
                touched = sorted(touched + [steps[0], steps[-1]])
                way = value["stride"] * (loop["times"] - 1)
                begin, end = begin + min(way, 0), end + max(way, 0)
        if value["place"] == ARENA and touched:
            spans.append((begin, end, touched[0], touched[-1]))
    most = 0
    for step in range(len(plan["steps"])):
        alive = sorted(s[:2] for s in spans if s[2] <= step <= s[3])
        total, end = 0, 0
        for begin, stop in alive:
            total += max(0, stop - max(begin, end))
            end = max(end, stop)
        most = max(most, total)
    return most


for name in sys.argv[1:]:
    read_plan = read(name)
    for shape in read_plan["shapes"]:
        size = shape["arena_size"]
        print("%-40s %10.3f MB  %.3f" % (name, size / 1e6, size / max(largest_sum(shape), 1)))

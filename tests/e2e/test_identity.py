# SPDX-License-Identifier: Apache-2.0
"""The function that was asked for: operators under any names, in any order of their operands."""
import json
import re

from lib import check, check_tune_json, main, need

SIZE = 16


def product(left, right):
    """C = left · right over the tensors A and B, which are of one shape."""
    text = "C[i,j] = sum(k) %s[i,k] * %s[k,j]" % (left, right)
    kind = "f32[%d,%d]" % (SIZE, SIZE)
    return {"name": "c", "op": text, "tensors": {"A": kind, "B": kind, "C": kind}}


def tune(box, op, name, **members):
    job = dict({"ops": [op], "budget": {"candidates": 2, "seconds": 120},
                "search": {"strategy": "random"}}, **members)
    return check_tune_json(box.ctl("tune", box.write(name + ".json", job), "--data", box.data, "--json"))


def test_operands_the_other_way_round(box):
    """A·B and B·A are one function of two operands: the kernel is shared, the names are not."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    first = tune(box, product("A", "B"), "ab")["kernels"][0]
    second = tune(box, product("B", "A"), "ba")["kernels"][0]
    check(second["fingerprint"] == first["fingerprint"] and second["from_history"], "one operator", second)
    names = dict(first["binding"]["inputs"])
    swapped = dict(second["binding"]["inputs"])
    check(names["A"] == swapped["B"] and names["B"] == swapped["A"] and names["A"] != names["B"],
          "with its operands exchanged", first["binding"], second["binding"])
    check(first["binding"]["outputs"] == second["binding"]["outputs"], "and one output", first["binding"])


def test_long_names(box):
    """Two axes with names of forty letters, which gene texts once cut: the job ends as any other."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    rows, columns = "r" * 40, "c" * 40
    op = {"name": "long", "op": "Y[%s,%s] = X[%s,%s] * 2" % (rows, columns, rows, columns),
          "tensors": {"X": "f32[16,16]", "Y": "f32[16,16]"}}
    kernel = tune(box, op, "long", search={"strategy": "ga"})["kernels"][0]
    check(kernel["candidates"]["measured"] == 2, "its candidates ran", kernel)


def test_pins_in_either_name(box):
    """A pin names the asker's tensors and axes, or the canonical ones."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    search = {"strategy": "random", "pin": {"C.lanes": "16", "C.vec": "j"}}
    tune(box, product("A", "B"), "mine", search=search)
    tune(box, product("A", "B"), "canonical", search={"strategy": "random", "pin": {"t2.lanes": "16"}})
    kernels = json.loads(box.ctl("kernels", "--data", box.data, "--json"))["kernels"]
    candidate = kernels[0]["own"]["candidate"]
    check(re.search(r"\bt\d+\.lanes=16\b", candidate) and "C." not in candidate, "canonical names", candidate)


if __name__ == "__main__":
    main(globals())

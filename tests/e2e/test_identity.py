# SPDX-License-Identifier: Apache-2.0
"""The function that was asked for: operators under any names, in any order of their operands."""
import json
import math
import re
import struct

from lib import Service, check, check_tune_json, main, need
from test_commands import write_npy

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


def run(box, service, op, inputs, output):
    """The output of an operator that `wpkctl run --check` computes at float32, and the entry of the choice that ran."""
    words = [word for name, values in inputs.items() for word in
             ("--input", "%s=%s" % (name, write_npy(box.path(name + ".npy"), ([SIZE, SIZE], values), "<f4")))]
    out = json.loads(box.ctl("run", box.write("run.json", {"ops": [op]}), *words, "--output", output + "=" +
                             box.path("out.npy"), "--check", "--json", "--server", service.url))
    check(out["check"]["passed"], "the right numbers", out)
    with open(box.path("out.npy"), "rb") as file:
        return struct.unpack("<%df" % SIZE ** 2, file.read()[-4 * SIZE ** 2:]), out["entry"]


def test_two_people(box):
    """One operator under two people's names and orders; each gets it, also when its kernel is revoked."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    kind = "f32[%d,%d]" % (SIZE, SIZE)
    other = {"name": "mine", "op": "out[u,v] = sum(w) Q[w,v] * P[u,w]", "tensors": {"Q": kind, "P": kind, "out": kind}}
    left, right = ([math.sin(step * i) for i in range(SIZE ** 2)] for step in (1, 2))
    wanted = [[sum(a[i * SIZE + k] * b[k * SIZE + j] for k in range(SIZE)) for i in range(SIZE) for j in range(SIZE)]
              for a, b in ((left, right), (right, left))]
    people = ((product("A", "B"), {"A": left, "B": right}, "C"), (other, {"P": left, "Q": right}, "out"),
              (product("B", "A"), {"A": left, "B": right}, "C"))
    found = [tune(box, op, "tuned")["kernels"][0] for op, _, _ in people]
    check(len({kernel["fingerprint"] for kernel in found}) == 1, "one operator", found)
    service = Service(box)
    listed = box.ctl("kernels", "-o", "csv", "--server", service.url)
    check('"c, mine"' in listed, "the list has both people's names of it", listed)
    for _ in range(2):
        results = [run(box, service, *person) for person in people]
        for (values, _), right_ones in zip(results, (wanted[0], wanted[0], wanted[1])):
            check(max(abs(a - b) for a, b in zip(values, right_ones)) < 1e-5, "A·B and B·A are told apart", values[:4])
        check(results[0] == results[1], "two people run the same", results[0][1], results[1][1])
        kernel = json.loads(box.ctl("kernels", "--json", "--server", service.url))["kernels"][0]
        gone = json.loads(box.ctl("kernels", "revoke", kernel["id"], "--json", "--server", service.url))
        check(gone["serves"], "another one is served", gone)
    service.stop()


def test_names_of_hidden_tensors(box):
    """An operand that is called as a hidden tensor would be: that one gives way in the choice."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    kind = "f32[%d,%d]" % (SIZE, SIZE)
    op = {"name": "c", "op": "C[i,j] = relu(sum(k) t2[i,k] * _t2[k,j])", "tensors": {"t2": kind, "_t2": kind, "C": kind}}
    binding = tune(box, op, "tuned")["kernels"][0]["binding"]
    check("t2" not in dict(binding["inputs"]).values(), "t2 is hidden", binding)
    service = Service(box)
    values = [math.sin(i) for i in range(SIZE ** 2)]
    run(box, service, op, {"t2": values, "_t2": values}, "C")
    service.stop()


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

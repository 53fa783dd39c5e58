#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what tuning found on inputs that nobody has seen, and checks that each error is in the class.

    bench/fresh.py TUNED.json [SETS]      TUNED.json: of bench/tuned/; SETS: default 20

Each kernel runs through `wpkctl run --check` on new inputs and constants, half of them uniform on
[-1, 1), half ReLU of normal inputs. One line for each kernel: the least and the largest error as a
multiple of direct evaluation's, and the largest that the class allows. Exit code 1 if one is beyond.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAYOUT = re.compile(r"^layout (\w+) f32\[([\d,]*)\]", re.MULTILINE)


def write_tensors(kernel, number, directory):
    """One .npy file for each input and constant; the words that name them to wpkctl."""
    shapes = {name: [int(n) for n in extents.split(",") if n]
              for name, extents in LAYOUT.findall(kernel["schedule"])}
    random = np.random.default_rng(number)
    words = []
    for role in ("inputs", "constants"):
        for name, canonical in kernel["binding"][role]:
            values = random.uniform(-1, 1, shapes[canonical])
            if role == "inputs" and number % 2 == 1:
                values = np.maximum(random.standard_normal(shapes[canonical]), 0)
            path = os.path.join(directory, name + ".npy")
            np.save(path, values.astype(np.float32))
            words += ["--input", "%s=%s" % (name, path)]
    return words


def check(kernel, job, data, directory, sets):
    """Whether all errors are in the class."""
    errors, passed, allowed = [], True, 0
    for number in range(sets):
        run = subprocess.run([os.path.join(ROOT, "build/bin/wpkctl"), "run", job, "--op", kernel["name"],
                              "--data", data, "--accuracy", kernel["accuracy"], "--conditions",
                              kernel["conditions"], "--check", "--json",
                              *write_tensors(kernel, 1000 + number, directory)],
                             stdout=subprocess.PIPE, text=True, check=False)
        if run.returncode not in (0, 1):
            return False
        result = json.loads(run.stdout)["check"]
        passed = passed and result["passed"]
        allowed = result["allowed"]
        errors.append(result["times_direct"])
    print("%-6s %-20s %6.2f to %5.2f of %5.2f  %s" % (kernel["name"], kernel.get("algorithm", ""), min(errors),
                                              max(errors), allowed, "in class" if passed else "NOT IN CLASS"), flush=True)
    return passed


def main():
    tuned = sys.argv[1]
    sets = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    parts = re.match(r"(\w+-\d+)-(.*)\.json", os.path.basename(tuned))
    job = os.path.join(ROOT, "bench/data/models", parts.group(1) + ".json")
    data = os.path.join(ROOT, "bench/data", "history-" + parts.group(2))
    with open(tuned, encoding="utf-8") as file:
        kernels = json.load(file)["kernels"]
    with tempfile.TemporaryDirectory() as directory:
        results = [check(kernel, job, data, directory, sets)
                   for kernel in kernels if kernel["schedule"]]  # not where a vendor is served
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

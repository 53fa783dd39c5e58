#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tunes what bench/gpu/ops.py lists on a GPU, times the vendors beside it, and prints own / vendor.

    bench.py [--gpu WHICH] [--seconds N] [--candidates N] [--only NAME,...] [--small] [--report] DIR

Records are lines of JSON in DIR/records.jsonl, written as soon as they are there; the history is DIR/data. A run stops
when its N seconds are over, and the next one goes on from there: what has a record is not measured again. With
`--gpu emulated` nothing is timed, and every line says so."""
import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import floor  # noqa: E402 pylint: disable=wrong-import-position
import ops  # noqa: E402 pylint: disable=wrong-import-position
import peer_torch  # noqa: E402 pylint: disable=wrong-import-position

LEAST_SECONDS = 15  # that an operator is begun with
COPY_BYTES = 256 << 20


class Records:
    def __init__(self, directory):
        self.path = os.path.join(directory, "records.jsonl")
        self.lines = []
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                for line in file:
                    if line.endswith("\n"):  # one that was cut off is made again
                        self.lines.append(json.loads(line))
            with open(self.path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in self.lines)

    def has(self, **wanted):
        return any(all(line.get(key) == value for key, value in wanted.items()) for line in self.lines)

    def add(self, **line):
        self.lines.append(line)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def program(name):
    beside = os.path.join(HERE, "bin", name)
    return beside if os.path.exists(beside) else os.path.join(HERE, "..", "..", "build", "bin", name)


def tune(options, name, op, seconds):
    """The kernel's line, or None: there was no time, or no kernel, and why."""
    job = {"name": "bench-gpu", "ops": [{"name": name, "op": op}], "target": {"kind": "cuda"},
           "budget": {"candidates": options.candidates, "seconds": int(seconds)}}
    path = os.path.join(options.directory, "job.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(job, file)
    done = subprocess.run([program("wpkctl"), "tune", path, "--gpu", options.gpu, "--data",
                           os.path.join(options.directory, "data"), "--json", "-q"],
                          capture_output=True, text=True, check=False)
    try:
        kernel = json.loads(done.stdout)["kernels"][0]
    except (ValueError, KeyError, IndexError):
        print("%s: %s" % (name, done.stderr.strip().split("\n")[-1]), file=sys.stderr)
        return None
    return kernel if kernel.get("time_ns") else None


def measure(options, records):
    end = time.monotonic() + options.seconds
    if not records.has(what="floor"):
        library = "libwpk-cuda-emulated.so" if options.gpu == "emulated" else "libcuda.so.1"
        found = floor.measure(library, 1 << 16 if options.small else COPY_BYTES, 5 if options.small else 30)
        records.add(what="floor", timed=options.gpu != "emulated", **found)
    todo = [(name, op) for name, op in ops.read(options.ops, options.small)
            if options.only is None or name in options.only.split(",")]
    for name, op in todo:
        left = end - time.monotonic()
        if left < min(LEAST_SECONDS, options.op_seconds):
            return False
        if not records.has(what="kernel", name=name):
            kernel = tune(options, name, op, min(left, options.op_seconds))
            if kernel is not None:
                own = kernel.get("own", kernel)  # where a vendor is faster, that is served
                records.add(what="kernel", name=name, op=op, timed=kernel["timed"], ns=own["time_ns"]["median"],
                            kernel=kernel)
        if options.gpu != "emulated" and not records.has(what="vendors", name=name):
            # in a process of its own: PyTorch and the tuner are not on the GPU at the same time
            said = subprocess.run([sys.executable, os.path.abspath(__file__), "--peer", json.dumps(op), "."],
                                  capture_output=True, text=True, check=False)
            times = json.loads(said.stdout.strip().split("\n")[-1]) if said.returncode == 0 else []
            records.add(what="vendors", name=name, times=times)
    return all(records.has(what="kernel", name=name) for name, _ in todo)


def report(records):
    """Own / vendor, operator by operator."""
    timed = [line for line in records.lines if line["what"] == "kernel"]
    vendors = {line["name"]: dict(line["times"]) for line in records.lines if line["what"] == "vendors"}
    for line in records.lines:
        if line["what"] == "floor":
            print("twelve empty launches %.1f us, copy %.0f GB/s%s" %
                  (line["launches_ns"] / 1e3, line["copy_bytes_per_s"] / 1e9, "" if line["timed"] else " (not timed)"))
    print("%-20s %12s %12s %8s  %s" % ("operator", "own us", "vendor us", "own/v", "algorithm"))
    won = both = 0
    for line in timed:
        times = vendors.get(line["name"], {})
        beside = line["kernel"]["baseline"]  # timed in turns with our kernels
        if beside is not None:
            times[beside["provider"]] = beside["time_ns"]["median"]
        best = min(times.values()) if times else None
        both += best is not None
        won += best is not None and line["ns"] <= best
        print("%-20s %12.2f %12s %8s  %s%s" %
              (line["name"], line["ns"] / 1e3, "%.2f" % (best / 1e3) if best else "-",
               "%.2f" % (line["ns"] / best) if best else "-", line["kernel"]["algorithm"],
               "" if line["timed"] else " (not timed)"))
    first = [line["ns"] for line in timed if line["name"][1:].isdigit()]
    print("c1 ... c12 at batch 1: %d of 12, together %.1f us; own is faster in %d of %d" %
          (len(first), sum(first) / 1e3, won, both))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", default="0")
    parser.add_argument("--seconds", type=float, default=540, help="of this run (540)")
    parser.add_argument("--op-seconds", type=float, default=40, help="of an operator, at most (40)")
    parser.add_argument("--candidates", type=int, default=64, help="of an operator, at most (64)")
    parser.add_argument("--small", action="store_true", help="small operators, for a rehearsal")
    parser.add_argument("--only", metavar="NAME,...", help="these operators")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--ops", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--peer", default=None, help=argparse.SUPPRESS)
    parser.add_argument("directory", metavar="DIR")
    options = parser.parse_args()
    if options.peer:
        print(json.dumps(peer_torch.measure(json.loads(options.peer))))
        return 0
    if options.ops is None:
        beside = os.path.join(HERE, "ops.json")
        options.ops = beside if os.path.exists(beside) else os.path.join(HERE, "..", "ops.json")
    os.makedirs(options.directory, exist_ok=True)
    records = Records(options.directory)
    done = options.report or measure(options, records)
    report(records)
    if not done:
        print("not done: run it again with the same DIR")
    return 0 if done else 3


if __name__ == "__main__":
    sys.exit(main())

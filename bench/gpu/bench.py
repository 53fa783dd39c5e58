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
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import floor  # noqa: E402 pylint: disable=wrong-import-position
import ops  # noqa: E402 pylint: disable=wrong-import-position
import peer_torch  # noqa: E402 pylint: disable=wrong-import-position

LEAST_SECONDS = 15  # that an operator is begun with
PATIENCE = 4  # times its seconds, after which an operator's process is ended
TRIES = 2  # of an operator that has no kernel
RESTARTS = 2  # processes that time the best kernel again
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


def emulated():
    """The emulated GPU's driver."""
    packed = os.path.join(HERE, "lib", "libwpk-cuda-emulated.so")
    return packed if os.path.exists(packed) else os.path.join(HERE, "..", "..", "build/tests/gpu/libwpk-cuda-emulated.so")


def program(name):
    beside = os.path.join(HERE, "bin", name)
    return beside if os.path.exists(beside) else os.path.join(HERE, "..", "..", "build", "bin", name)


def run(seconds, *command):
    """Run a program; its output, and the last line of its messages. One that does not end is killed with all of its
    processes, and has no output."""
    limit = PATIENCE * seconds + 60
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            out, messages = process.communicate(timeout=limit)
            return out, messages.strip().split("\n")[-1]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "", "no end after %d s" % limit


def trials(options, kernel):
    """The operator as text, and [(candidate, median ns)] of its trials by CUDA C."""
    with sqlite3.connect("file:%s?mode=ro" % os.path.join(options.directory, "data", "history.db"), uri=True) as history:
        rows = history.execute(
            "SELECT p.op, t.candidate, min(m.median_ns) FROM trial t JOIN problem p ON p.id = t.problem_id"
            " JOIN measurement m ON m.trial_id = t.id WHERE p.fingerprint = ? AND t.provider = 'cuda' AND t.outcome = 'ok'"
            " AND m.kind = 'trial' AND NOT m.censored AND (p.device_class LIKE 'cuda/emulated/%') = ? GROUP BY t.id",
            (kernel["fingerprint"], options.gpu == "emulated")).fetchall()
    return (rows[0][0] if rows else ""), [row[1:] for row in rows]


def evaluate(options, op, candidates, *more):
    """The output of wpk-evaluate for these candidates."""
    paths = [os.path.join(options.directory, name) for name in ("op.txt", "candidates.txt")]
    for path, text in zip(paths, (op, "\n".join(candidates) + "\n")):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return run(options.op_seconds, program("wpk-evaluate"), "--op", paths[0], "--candidates", paths[1], "--gpu", options.gpu,
               "--quiet", *more)[0]


def rank(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    at = 0
    while at < len(order):  # equal values have the mean of their ranks
        same = [i for i in order[at:] if values[i] == values[order[at]]]
        for i in same:
            ranks[i] = at + (len(same) - 1) / 2
        at += len(same)
    return ranks


def correlate(bounds, times):
    """Spearman's rank correlation, or None."""
    x, y = rank(bounds), rank(times)
    mean = (len(x) - 1) / 2
    spread = [sum((v - mean) ** 2 for v in values) for values in (x, y)]
    if len(x) < 3 or min(spread) == 0:
        return None
    return sum((a - mean) * (b - mean) for a, b in zip(x, y)) / (spread[0] * spread[1]) ** 0.5


def read_median(output):
    """The median of wpk-evaluate's first line, or None."""
    try:
        return json.loads(output.split("\n")[0])["record"]["timing"]["median_ns"]
    except (ValueError, KeyError):
        return None


def look_closer(options, name, kernel, records):
    """Record how well the model ranks the trials' times, and the best kernel's times in processes of its own."""
    op, found = trials(options, kernel)
    if not found:
        return
    printed = evaluate(options, op, [candidate for candidate, _ in found], "--print")
    bounds = [float(line.split()[-1]) for line in printed.splitlines() if line.startswith("# sha256 ")]
    if len(bounds) == len(found):
        records.add(what="model", name=name, trials=len(found), correlation=correlate(bounds, [ns for _, ns in found]))
    best = min(found, key=lambda trial: trial[1])[0]
    times = [read_median(evaluate(options, op, [best])) for _ in range(RESTARTS)]
    if all(times):
        records.add(what="restarts", name=name, ns=times)


def tune(options, name, op, seconds):
    """The kernel's line, or the reason why there is none."""
    job = {"name": "bench-gpu", "ops": [{"name": name, "op": op}], "target": {"kind": "cuda"},
           "budget": {"candidates": options.candidates, "seconds": int(seconds)}}
    path = os.path.join(options.directory, "job.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(job, file)
    out, why = run(seconds, program("wpkctl"), "tune", path, "--gpu", options.gpu, "--data",
                   os.path.join(options.directory, "data"), "--json", "-q")
    try:
        kernel = json.loads(out)["kernels"][0]
    except (ValueError, KeyError, IndexError):
        return why or "no kernel"
    return kernel if kernel.get("time_ns") else "no kernel has a time"


def measure(options, records):
    end = time.monotonic() + options.seconds
    if not records.has(what="floor"):
        library = emulated() if options.gpu == "emulated" else "libcuda.so.1"
        found = floor.measure(library, 1 << 16 if options.small else COPY_BYTES, 5 if options.small else 30)
        records.add(what="floor", timed=options.gpu != "emulated", **found)
    todo = [(name, op) for name, op in ops.read(options.ops, options.small)
            if options.only is None or name in options.only.split(",")]
    for name, op in todo:
        left = end - time.monotonic()
        if left < min(LEAST_SECONDS, options.op_seconds):
            return False
        if not is_settled(records, name):
            kernel = tune(options, name, op, min(left, options.op_seconds))
            if isinstance(kernel, str):
                print("%s: %s" % (name, kernel), file=sys.stderr)
                records.add(what="failed", name=name, why=kernel)
                continue
            own = kernel.get("own", kernel)  # where a vendor is faster, that is served
            records.add(what="kernel", name=name, op=op, timed=kernel["timed"], ns=own["time_ns"]["median"], kernel=kernel)
        if end - time.monotonic() < min(LEAST_SECONDS, options.op_seconds):
            return False
        if records.has(what="kernel", name=name) and not records.has(what="closer", name=name):
            look_closer(options, name, next(line["kernel"] for line in records.lines
                                            if line["what"] == "kernel" and line["name"] == name), records)
            records.add(what="closer", name=name)
        if options.gpu != "emulated" and not records.has(what="vendors", name=name):
            # in a process of its own: PyTorch and the tuner are not on the GPU at the same time
            said, _ = run(options.op_seconds, sys.executable, os.path.abspath(__file__), "--peer", json.dumps(op), ".")
            last = said.strip().split("\n")[-1]
            records.add(what="vendors", name=name, times=json.loads(last) if last.startswith("[") and last.endswith("]") else [])
    return all(is_settled(records, name) for name, _ in todo)


def is_settled(records, name):
    """True if it has a kernel, or has failed often enough."""
    failed = sum(line["what"] == "failed" and line["name"] == name for line in records.lines)
    return records.has(what="kernel", name=name) or failed >= TRIES


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
    for line in records.lines:
        if line["what"] == "failed":
            print("%-20s no kernel: %s" % (line["name"], line["why"]))
    report_aims(records, timed, vendors)
    print("own is faster in %d of %d" % (won, both))


def report_aims(records, timed, vendors):
    """Print the rows that docs/gpu.md has aims for, as far as they were measured."""
    own = {line["name"]: line["ns"] for line in timed}
    convolutions = [name for name in own if name[1:].isdigit()]
    print("c1 ... c12 at batch 1: %d of 12, together %.1f us" %
          (len(convolutions), sum(own[name] for name in convolutions) / 1e3))
    cudnn = {line["name"]: line["kernel"]["baseline"]["time_ns"]["median"] for line in timed
             if line["kernel"]["baseline"] is not None and line["kernel"]["baseline"]["provider"] == "cudnn"}
    first = {name: times["torch-first-choice"] for name, times in vendors.items() if "torch-first-choice" in times}
    for title, theirs in (("cuDNN's first choice", first), ("cuDNN's best plan", cudnn)):
        both = [name for name in convolutions if name in theirs]
        if both:
            print("%s / own, sum of %d: %.2f" % (title, len(both),
                                                 sum(theirs[n] for n in both) / sum(own[n] for n in both)))
    for line in records.lines:
        if line["what"] == "floor":
            for name in ("softmax-256MB", "layernorm-256MB"):
                if name in own:
                    print("%s / copy rate: %.2f" % (name, 2 * COPY_BYTES / own[name] * 1e9 / line["copy_bytes_per_s"]))
    correlations = [line["correlation"] for line in records.lines
                    if line["what"] == "model" and line["correlation"] is not None]
    if correlations:
        print("the model's rank correlation with times: median %.2f, least %.2f, of %d operators" %
              (statistics.median(correlations), min(correlations), len(correlations)))
    spreads = [max(line["ns"]) / min(line["ns"]) - 1 for line in records.lines if line["what"] == "restarts"]
    if spreads:
        print("spread of a kernel's median over %d restarts: median %.1f %%, most %.1f %%, of %d operators" %
              (RESTARTS, 100 * statistics.median(spreads), 100 * max(spreads), len(spreads)))


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
    if options.gpu != "emulated":  # for all that is timed here, as wpk-worker counts GPUs
        os.environ.update(CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=options.gpu)
    records = Records(options.directory)
    done = options.report or measure(options, records)
    report(records)
    if not done:
        print("not done: run it again with the same DIR")
    return 0 if done else 3


if __name__ == "__main__":
    sys.exit(main())

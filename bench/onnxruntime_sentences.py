# SPDX-License-Identifier: Apache-2.0
"""Sentences of many lengths through the provider of ONNX Runtime and ONNX Runtime alone, in turns in one process:

    PYTHONPATH=python:bench WOODPECKER_ONNXRUNTIME_LIBRARY=build/runtime/onnxruntime/libwpk-onnxruntime.so \\
        PATH=build/bin:$PATH .deps/test-venv/bin/python3 bench/onnxruntime_sentences.py FOLDER [--tune S] [--sentences N]

An encoder with the shape of MiniLM-L6 and a free length; lengths are log-normal, from 1 to 128, in random order. A first
pass notes them; then, for at most S seconds, `python -m onnxruntime_ep_woodpecker misses --tune` makes plans in FOLDER,
where they stay. Printed are the share of sentences that a plan served, mean latencies and their ratio, plain over provider,
of all sentences and of those with a plan, and the process's memory after 500 sentences and at the end.
"""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort
import onnxruntime_ep_woodpecker as ep
from onnxruntime_provider import memory_of, minilm

WARM_RUNS = 40  # of a length, before it counts: a plan is opened and tried beside calls


def lengths_of(count):
    draws = np.random.default_rng(1).lognormal(3, 0.7, 4 * count)
    return [int(n) for n in draws if 1 <= n < 129][:count]


def session_of(path, ours):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=([ep.get_ep_name()] if ours else []) + ["CPUExecutionProvider"])


def feed_of(length):
    return {"ids": np.random.default_rng(length).integers(0, 30522, (1, length))}


def tune(path, folder, lengths, seconds):
    """Note the lengths, those that are met most first, and make plans for them."""
    until = time.monotonic() + seconds
    for length, _ in collections.Counter(lengths).most_common():
        if time.monotonic() >= until:
            break
        session_of(path, True).run(None, feed_of(length))
        subprocess.run([sys.executable, "-m", "onnxruntime_ep_woodpecker", "misses", "--tune"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "WOODPECKER_PLANS": folder})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--tune", type=float, default=3000)
    parser.add_argument("--sentences", type=int, default=2000)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    os.environ["WOODPECKER_PLANS"] = args.folder
    ep.install()
    path, lengths = os.path.join(args.folder, "minilm.onnx"), lengths_of(args.sentences)
    if not os.path.exists(path):
        onnx.save(minilm()[0], path)
    tune(path, args.folder, lengths, args.tune)
    planned = len(list(pathlib.Path(args.folder).glob("*.wpk")))
    sessions = [session_of(path, ours) for ours in (False, True)]
    for length in sorted(set(lengths)):
        for _ in range(WARM_RUNS):
            sessions[1].run(None, feed_of(length))
            time.sleep(0.005)
    took, memory = [[], []], []
    for i, length in enumerate(lengths):
        feed = feed_of(length)
        for k in (0, 1) if i % 2 else (1, 0):
            began = time.perf_counter()
            sessions[k].run(None, feed)
            took[k].append(time.perf_counter() - began)
        if i in (500, len(lengths) - 1):
            memory.append(memory_of()["VmRSS"])
    said = [p.read_text(encoding="utf-8") for p in pathlib.Path(args.folder).glob("*.said")]
    plain, ours = (np.array(t) for t in took)
    served = plain / ours > 1.02
    print("%d lengths, %d plans, %d of them serve; faster in %.0f %% of %d sentences" % (
        len(set(lengths)), planned, sum("serves" in text for text in said), 100 * served.mean(), len(lengths)))
    print("plain %.3f ms, provider %.3f ms: %.3f; memory %s MiB" % (
        1e3 * plain.mean(), 1e3 * ours.mean(), plain.mean() / ours.mean(), " ".join("%.0f" % m for m in memory)))


if __name__ == "__main__":
    main()

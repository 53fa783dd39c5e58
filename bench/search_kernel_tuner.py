#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel Tuner's strategies on a table of bench/search/: bench/search_kernel_tuner.py NAME [SEEDS] [TRIALS]

They run in Kernel Tuner's simulation mode on exactly the table's schedules (its restrictions). The constructed candidates
that `auto` begins with are counted as their first trials. Needs the packages kernel_tuner and optuna."""
import contextlib
import io
import json
import logging
import os
import random
import sys
import tempfile
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import search_optuna  # noqa: E402
import search_tables  # noqa: E402

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
import kernel_tuner  # noqa: E402
from constraint import FunctionConstraint  # noqa: E402

STRATEGIES = ["genetic_algorithm", "simulated_annealing", "greedy_ils", "mls", "pso", "diff_evo"]


def cache_of(path, names, values, configurations, times):
    """Kernel Tuner's file of results that are known."""
    entries = {}
    for key, genes in configurations.items():
        row = {name: genes.get(name, "-") for name in names}
        row.update(time=times[key] / 1e6 if times[key] else "RuntimeFailedConfig", times=[times[key] / 1e6],
                   compile_time=0, verification_time=0, benchmark_time=0, strategy_time=0, framework_time=0,
                   timestamp="2026-01-01T00:00:00")
        entries[",".join(row[name] for name in names)] = row
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"device_name": "table", "kernel_name": "table", "problem_size": [1], "objective": "time",
                   "tune_params_keys": names, "tune_params": values, "cache": entries}, file)


def run(path, names, values, known, strategy, seed, trials):
    """Times in the order of Kernel Tuner's trials."""
    random.seed(seed)
    np.random.seed(seed)
    with contextlib.redirect_stdout(io.StringIO()):
        results, _ = kernel_tuner.tune_kernel(
            "table", "void table(void) {}", 1, [], dict(values), lang="C", cache=path, simulation_mode=True,
            restrictions=[FunctionConstraint(lambda *row: row in known)], strategy=strategy,
            strategy_options={"max_fevals": trials}, iterations=1)
    return [known[tuple(result[name] for name in names)] for result in results]


def main():
    name = sys.argv[1]
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    trials = int(sys.argv[3]) if len(sys.argv) > 3 else 128
    times = search_optuna.read(name)
    with tempfile.TemporaryDirectory() as directory:
        _, rows = search_tables.listed(search_tables.TABLES[name], directory)
        configurations = {key: search_optuna.genes_of(text) for key, text in rows.items() if key in times}
        names = sorted({gene for genes in configurations.values() for gene in genes})
        values = {gene: sorted({genes.get(gene, "-") for genes in configurations.values()}) for gene in names}
        names = [gene for gene in names if len(values[gene]) > 1]
        values = {gene: values[gene] for gene in names}
        known = {tuple(genes.get(gene, "-") for gene in names): times[key] or 10 * max(times.values())
                 for key, genes in configurations.items()}
        path = os.path.join(directory, "cache.json")
        cache_of(path, names, values, configurations, times)
        first = [times[key] or 10 * max(times.values()) for key in search_optuna.first_asks(name)]
        best = min(time for time in times.values() if time)
        for strategy in STRATEGIES:
            curves = []
            for seed in range(seeds):
                asked = first + run(path, names, values, known, strategy, seed, trials - len(first))
                asked += asked[-1:] * (trials - len(asked))
                curves.append(np.minimum.accumulate(asked[:trials]))
            shares = best / np.array(curves)
            to97 = [int(np.argmax(share >= 0.97)) + 1 if share[-1] >= 0.97 else trials for share in shares]
            print("%-20s" % strategy, " ".join("%d: %.3f (%.3f)" % (n, shares[:, n - 1].mean(), shares[:, n - 1].min())
                                               for n in (8, 16, 32, 64, trials)),
                  "to 97 %%: %.1f" % np.mean(to97), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Optuna's TPE on a table of bench/search/, to compare with: bench/search_optuna.py NAME [SEEDS] [TRIALS]

It is given the constructed candidates that `auto` begins with as its first trials, and repair: what it proposes becomes
the nearest schedule of the table, by the number of genes that differ, that was not tried. Needs the package optuna."""
import os
import subprocess
import sys

import optuna

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import search_tables  # noqa: E402

FIRST = 8


def read(name):
    times, rows = {}, False
    with open(os.path.join(search_tables.ROOT, "bench/search", name + ".table"), encoding="utf-8") as file:
        for line in file:
            if rows:
                key, time = line.split()
                times[key] = int(time)
            rows = rows or line.strip() == "rows"
    return times


def genes_of(text):
    return dict(word.split("=", 1) for word in text.split(" ")[1:])


def first_asks(name):
    """The keys of what `construct` asks for first."""
    done = subprocess.run([os.path.join(search_tables.BUILD, "bench/bench-search"), "asks",
                           os.path.join(search_tables.ROOT, "bench/search", name + ".table"), "construct",
                           "--trials", str(FIRST)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def run(configurations, times, first, seed, trials):
    names = sorted({gene for genes in configurations.values() for gene in genes})
    values = {gene: sorted({genes.get(gene, "-") for genes in configurations.values()}) for gene in names}
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=FIRST, multivariate=True)
    study = optuna.create_study(sampler=sampler)
    seen, best, curve = set(), float("inf"), []
    for number in range(trials):
        if number < len(first):
            study.enqueue_trial({gene: configurations[first[number]].get(gene, "-") for gene in names})
        trial = study.ask()
        wanted = {gene: trial.suggest_categorical(gene, values[gene]) for gene in names}
        key = min((key for key in configurations if key not in seen),
                  key=lambda k: sum(configurations[k].get(gene, "-") != wanted[gene] for gene in names))
        seen.add(key)
        time = times[key] or 10 * max(times.values())
        study.tell(trial, time)
        best = min(best, time)
        curve.append(best)
    return curve


def main():
    name = sys.argv[1]
    seeds, trials = (int(word) for word in (sys.argv[2:] + ["10", "128"][len(sys.argv[2:]):]))
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    import tempfile
    with tempfile.TemporaryDirectory() as directory:
        texts = search_tables.listed(search_tables.TABLES[name], directory)[1]
    times = read(name)
    configurations = {key: genes_of(text) for key, text in texts.items() if key in times}
    first, optimum = first_asks(name), min(time for time in times.values() if time)
    curves = [run(configurations, times, first, seed, trials) for seed in range(1, seeds + 1)]
    line = "optuna"
    for point in (8, 16, 32, 64, 96, 128):
        if point <= trials:
            shares = [optimum / curve[point - 1] for curve in curves]
            line += "  %d: %.3f (%.3f)" % (point, sum(shares) / seeds, min(shares))
    needed = [next((i + 1 for i, best in enumerate(curve) if optimum / best >= 0.97), trials) for curve in curves]
    print(line + "  to 97 %%: %.1f" % (sum(needed) / seeds))


if __name__ == "__main__":
    main()

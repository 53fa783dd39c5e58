#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How good are the estimates of wpkctl check? For each model whose kernels a history has, print the
time of a run by its kernels, and the time that is expected when that history does not have them.

    python3 bench/estimates.py HISTORY MODEL.onnx ...

HISTORY is a data directory; it is copied, its artifacts are linked."""
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WPKCTL = ROOT / "build/bin/wpkctl"


def check(model, data):
    """The output of wpkctl check for the model, with this history."""
    done = subprocess.run([WPKCTL, "check", model, "--data", data, "--json"],
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def without(history, fingerprints, folder):
    """A copy of the history that serves no kernel of these operators."""
    shutil.copytree(history, folder, dirs_exist_ok=True,
                    copy_function=lambda a, b: pathlib.Path(b).hardlink_to(a))
    for path in list(folder.glob("history.db*")):
        path.unlink()
        shutil.copy(history / path.name, path)
    with sqlite3.connect(folder / "history.db") as database:
        for fingerprint in fingerprints:
            database.execute("UPDATE kernel SET served = 0 WHERE problem_id IN"
                             " (SELECT id FROM problem WHERE fingerprint = ?)", (fingerprint,))


def main():
    history = pathlib.Path(sys.argv[1]).resolve()
    print("model                 measured ms  expected ms  ratio")
    for model in sys.argv[2:]:
        known = check(model, history)
        with tempfile.TemporaryDirectory(dir=history.parent) as folder:
            folder = pathlib.Path(folder)
            without(history, [region["fingerprint"] for region in known["regions"]], folder)
            expected = check(model, folder)
        times = known["expected_ns"] / 1e6, expected["expected_ns"] / 1e6
        print(f"{pathlib.Path(model).stem:20} {times[0]:12.3f} {times[1]:12.3f}"
              f" {times[1] / times[0]:6.2f}")


if __name__ == "__main__":
    main()

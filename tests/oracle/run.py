# SPDX-License-Identifier: Apache-2.0
"""Starts an oracle as a test of the suite, with the packages that it needs:

    run.py SCRIPT [OPTION...]

WPK_BIN is the folder of wpkctl; WPK_ORACLE=long takes the options behind `--`, too, which ask for more.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(HERE, "../../.deps/test-venv/bin/python3")
SKIPPED = 77


def main():
    script, options = sys.argv[1], sys.argv[2:]
    if not os.path.exists(PYTHON):
        print("[  SKIPPED ] %s: no onnx: deploy/setup.sh test" % script)
        sys.exit(SKIPPED)
    end = options.index("--")
    options = options[:end] + (options[end + 1:] if os.environ.get("WPK_ORACLE") == "long" else [])
    os.execv(PYTHON, [PYTHON, os.path.join(HERE, script), os.path.join(os.environ["WPK_BIN"], "wpkctl"), *options])


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""python -m onnxruntime_ep_woodpecker app.py [args]: runs a program whose sessions use the provider.

`-m module` in place of the file runs a module, as Python's own option does.
"""
import os
import runpy
import sys

from . import install


def main(arguments):
    if not arguments or (arguments[0] == "-m" and len(arguments) < 2):
        print("usage: python -m onnxruntime_ep_woodpecker [-m module | app.py] [args]", file=sys.stderr)
        return 2
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

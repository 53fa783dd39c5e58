# SPDX-License-Identifier: Apache-2.0
"""python -m onnxruntime_ep_woodpecker app.py [args]: runs a program whose sessions use the provider.

`-m module` in place of the file runs a module, as Python's own option does. `--tune background` before it makes plans.
`misses` lists shapes that sessions were called with and had no plan for, `misses --tune` makes the plans, `misses --tell`
tells the service of $WPK_URL.
"""
import itertools
import os
import runpy
import sys
import time

from . import _plans, install

USAGE = """usage: python -m onnxruntime_ep_woodpecker [--tune off|background|now] [-m module | app.py] [args]
       python -m onnxruntime_ep_woodpecker misses [--tune | --tell]"""


def misses(does):
    where = _plans.folder()
    if does == "--tell" and os.environ.get("WPK_URL"):
        time.sleep(1)  # a process that has started this one ends its sessions
        told = (stem for stem in _plans.wants(where) if _plans.tell(stem))
        list(itertools.islice(told, _plans.TELL_MAX))
    elif does == "--tune":
        for stem in _plans.wants(where):
            print(stem, "tuned" if _plans.tune(stem) else "has no plan: see its .failed", flush=True)
    else:
        _plans.list_wants(where)
    return 0


def main(arguments):
    tune = "off"
    if arguments[:1] == ["misses"] and arguments[1:] in ([], ["--tune"], ["--tell"]):
        return misses("".join(arguments[1:]))
    if arguments[:1] == ["--tune"] and arguments[1:2] and arguments[1] in ("off", "background", "now"):
        tune, arguments = arguments[1], arguments[2:]
    if not arguments or arguments[0].startswith("--") or (arguments[0] == "-m" and len(arguments) < 2):
        print(USAGE, file=sys.stderr)
        return 2
    install(tune)
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

# SPDX-License-Identifier: Apache-2.0
"""python -m woodpecker doctor: says what is here of what runs and tunes plans."""
import os
import shutil
import sys

from . import __version__
from ._errors import WoodpeckerError
from ._library import library

HISTORY = os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"),
                       "woodpecker", "history.db")


def _first(*programs):
    """The first of these programs that is here, or None."""
    return next((found for found in map(shutil.which, programs) if found), None)


def doctor():
    """Print a line for each thing.

    Returns
    -------
    int
        0 if plans can be run here.
    """
    status = 0
    try:
        path = library()._name
    except WoodpeckerError as reason:
        path, status = str(reason), 1
    for name, text in (
            ("package", __version__),
            ("libwpk", path),
            ("wpkctl", _first("wpkctl") or "is not in PATH: plans are run here, not tuned"),
            ("compiler", _first("gcc", "clang") or "neither gcc nor clang is in PATH: candidates in C are not built"),
            ("linker", _first("ld", "ld.lld") or "neither ld nor ld.lld is in PATH: kernels are not built"),
            ("history", HISTORY if os.path.exists(HISTORY) else "%s: none yet" % HISTORY)):
        print("%-9s %s" % (name, text))
    return status


if __name__ == "__main__":
    if sys.argv[1:] != ["doctor"]:
        print("usage: python -m woodpecker doctor", file=sys.stderr)
        sys.exit(2)
    sys.exit(doctor())

# SPDX-License-Identifier: Apache-2.0
"""The programs with which woodpecker tunes: wpkctl, a service of its own, workers, Halide.

`pip install 'woodpecker[tune]'` brings it, and ziglang, whose linker serves where there is no `ld`. The package is nothing
to import: woodpecker.compile() and woodpecker.op() find it.
"""
import os

__version__ = "0.1.0"


def folder():
    """The folder of the programs.

    Returns
    -------
    str
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")


def linker_folder():
    """The folder of an `ld` that is ziglang's, for the end of PATH.

    Returns
    -------
    str
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "linker")

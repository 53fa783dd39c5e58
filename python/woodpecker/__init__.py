# SPDX-License-Identifier: Apache-2.0
"""Woodpecker runs tuned plans of models and tuned kernels on NumPy arrays.

    import woodpecker as wpk
    plan = wpk.load("model.wpk")              # `wpkctl tune model.onnx -o model.wpk` wrote it
    y = plan.run({"x": image})["y"]
    kernel = wpk.load("c6.so.choice")         # `wpkctl get` wrote it

With wpkctl in PATH it tunes, too:

    plan = wpk.compile("model.onnx", shapes={"x": (1, 3, 224, 224)}, seconds=60)
    multiply = wpk.op("C[i,j] = relu(sum(k) A[i,k]*B[k,j])", A="f32[128,768]", B="f32[768,768]", constants="B").tune()
    tuner = wpk.Client("https://tuner.example:7443", token="...")
"""
from ._errors import (CorruptFile, DoesNotFit, InvalidInput, NotFound, OutOfRange, WoodpeckerError)
from ._kernel import Kernel
from ._plan import Plan
from ._tensor import Tensor

__all__ = ["Client", "CorruptFile", "DoesNotFit", "InvalidInput", "Job", "Kernel", "NotFound", "Op", "OutOfRange", "Plan",
           "ServiceError", "Tensor", "WoodpeckerError", "compile", "load", "op"]
__version__ = "0.1.0"
_LATER = {"Client": "_client", "Job": "_client", "ServiceError": "_client", "compile": "_compile", "Op": "_op", "op": "_op"}


def __getattr__(name):
    """Import the tuning half when it is asked for: a plan's run needs none of it."""
    if name not in _LATER:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    import importlib

    found = getattr(importlib.import_module("." + _LATER[name], __name__), name)
    globals()[name] = found
    return found


def load(path, threads=0):
    """Open a plan of a model, or a kernel.

    Parameters
    ----------
    path : str or os.PathLike
        A plan (``*.wpk``), a choice of a kernel (``*.choice``), or its shared object.
    threads : int
        Threads of one run; 0: as many as the plan was tuned for.

    Returns
    -------
    Plan or Kernel

    Raises
    ------
    NotFound, CorruptFile, DoesNotFit
        There is no such file; it is damaged; it is of another version, or needs a CPU that this one is not.
    """
    import os

    path = os.fspath(path)
    kind = Kernel if path.endswith((".choice", ".so")) else Plan
    return kind(path, threads)

# SPDX-License-Identifier: Apache-2.0
"""Woodpecker runs tuned plans of models and tuned kernels on NumPy arrays.

    import woodpecker as wpk
    plan = wpk.load("model.wpk")              # `wpkctl tune model.onnx -o model.wpk` wrote it
    y = plan.run({"x": image})["y"]
    kernel = wpk.load("c6.so.choice")         # `wpkctl get` wrote it
"""
from ._errors import (CorruptFile, DoesNotFit, InvalidInput, NotFound, OutOfRange, WoodpeckerError)
from ._kernel import Kernel
from ._plan import Plan
from ._tensor import Tensor

__all__ = ["CorruptFile", "DoesNotFit", "InvalidInput", "Kernel", "NotFound", "OutOfRange", "Plan", "Tensor",
           "WoodpeckerError", "load"]
__version__ = "0.1.0"


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

# SPDX-License-Identifier: Apache-2.0
"""Plans of ONNX models: tuned by a wpkctl of their own, or by a service."""
import os
import tempfile

from ._plan import Plan
from ._source import Source
from ._tools import Interrupted, budget


def compile(model, shapes=None, threads=1, seconds=60, candidates=None, bind=None, accuracy=None, math=None, weights=None, data=None,
            server=None, progress=True):
    """Tune a model. Ctrl-C ends the search, and keeps what was found.

    Parameters
    ----------
    model : str, os.PathLike or onnx.ModelProto
    shapes : dict, optional
        Extents of inputs that the model leaves open, by name.
    threads : int
        Threads of a run.
    seconds : float
        Of the search; 0: what history knows, and one candidate for the rest.
    candidates : int, optional
        Of each operator at the most.
    bind : dict, optional
        Arrays for inputs that become constants, by name.
    accuracy : str, optional
        ``strict``, ``standard``, ``fast`` or ``times_direct=K``.
    math : str, optional
        ``bf16``: the type of the operands of products, whose sums are f32; else their own.
    weights : str, optional
        ``bf16``, ``i8`` or ``i4``: the type that constant operands of products are stored in.
    data, server : str, optional
        The folder of a private history, or the URL of a service; else those of wpkctl.
    progress : bool
        Whether a bar, or a line of a terminal, shows it.

    Returns
    -------
    Plan
        It knows its model: ``plan.report()``, ``plan.tune()`` and a notebook use that.

    Raises
    ------
    InvalidInput, WoodpeckerError
        The model is refused, with its nodes and reasons; an operator has no kernel.
    """
    folder = tempfile.TemporaryDirectory(prefix="woodpecker-")
    path = _model_file(model, folder.name)
    words = budget(None, None, threads, data, server, accuracy)
    for name, extents in (shapes or {}).items():
        words += ["--shape", "%s=%s" % (name, ",".join(map(str, extents)))]
    for number, (name, array) in enumerate((bind or {}).items()):
        words += ["--bind", "%s=%s" % (name, _save(array, os.path.join(folder.name, "bind%d.npy" % number)))]
    words += [word for name, of in (("--math", math), ("--weights", weights)) if of for word in (name, of)]
    source = Source(path, words, folder)
    out = os.path.join(folder.name, "plan.wpk")
    try:
        source.tune(out, seconds, candidates, progress)
    except Interrupted:
        source.tune(out, 0, None, progress)
    plan = Plan(out)
    plan._source = source
    return plan


def _model_file(model, folder):
    if hasattr(model, "SerializeToString"):
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(model.SerializeToString())
        return path
    return os.path.abspath(os.fspath(model))


def _save(array, path):
    import numpy

    numpy.save(path, numpy.asarray(array))
    return path

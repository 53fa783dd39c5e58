# SPDX-License-Identifier: Apache-2.0
"""Plans of ONNX models: tuned by a wpkctl of their own, or by a service."""
import os
import shutil
import tempfile

from ._errors import InvalidInput
from ._plan import Plan
from ._tools import Interrupted, budget, call, call_json


def compile(model, shapes=None, threads=1, seconds=60, candidates=None, bind=None, accuracy=None, data=None, server=None,
            progress=True):
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


class Source:
    """Where a plan comes from: its model, and the options that it was tuned with."""

    def __init__(self, model, words, folder):
        self.model, self.words, self.folder = model, words, folder

    def tune(self, out, seconds, candidates=None, shown=False):
        """Write a plan; in no time: of what history knows, and one candidate for the rest."""
        words = budget(max(seconds, 1), candidates if seconds else 1, None, None)
        call("tune", self.model, "-o", out, *self.words, *words, shown=shown)


def report(plan, model, against, python):
    """wpkctl bench, as a dict."""
    model = model or (plan._source and plan._source.model)
    if model is None:
        raise InvalidInput("say which model the plan was made of: report(model=...)")
    return call_json("bench", plan._path, "--onnx", model, "--against", against, "--python", python)


def profile(plan):
    """The steps of a plan, each with its time and that of the roofline in ns."""
    return call_json("profile", plan._path)["steps"]


def drawing(plan):
    """The graph as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.svg")
        call("show", plan._path, "-o", path)
        with open(path, encoding="utf-8") as file:
            return file.read()


def html(plan):
    """A table of the longest steps, and the graph."""
    from html import escape

    rows = sorted(profile(plan), key=lambda step: -step["time_ns"])
    total = sum(step["time_ns"] for step in rows)
    text = ["<table><tr><th>kernel<th>nodes<th>µs<th>share<th>of the roofline"]
    for step in rows[:20]:
        share = step["roofline_ns"] / step["time_ns"] if step["roofline_ns"] and step["time_ns"] else 0
        text.append("<tr><td>%s<td>%s<td>%.1f<td>%.1f %%<td>%.0f %%" % (
            escape(step["kernel"] or "-"), escape(step["nodes"][:60]), step["time_ns"] / 1e3,
            100 * step["time_ns"] / total, 100 * share))
    text.append("</table><p>%d steps, %.3f ms</p>" % (len(rows), total / 1e6))
    return "\n".join(text) + drawing(plan)


def save(plan, path):
    shutil.copyfile(plan._path, os.fspath(path))

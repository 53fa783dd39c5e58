# SPDX-License-Identifier: Apache-2.0
"""Plans and wpkctl: how a plan is tuned on, timed beside other engines, and drawn."""
import os
import shutil
import tempfile

from ._errors import InvalidInput
from ._tools import budget, call, call_json


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

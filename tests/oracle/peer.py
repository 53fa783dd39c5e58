# SPDX-License-Identifier: Apache-2.0
"""Shared by the oracles: they run a model by wpkctl and by ONNX Runtime, and compare the outputs.

Needs the packages onnx, onnxruntime and numpy (deploy/setup.sh test)."""
import concurrent.futures
import os
import queue
import shutil
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime

import onnx_f64

TOLERANCE = 1e-4  # of the largest output; outputs of floats alone
PEER_ERRORS = 2  # errors of ONNX Runtime that an output may have, where it is off more than that,
ERROR_MAX = 1e-2  # as far as this
HALF_TOLERANCE = 2e-3  # of outputs of f16
REFUSED = 2  # wpkctl's exit code for a model that it does not support
LIMIT_S = 300  # only ends what hangs

onnxruntime.set_default_logger_severity(4)


class Fault(Exception):
    """An output is wrong, or wpkctl ends otherwise than it may."""


class Refused(Exception):
    """`wpkctl check` says why the model is not supported."""


def reference(model, feeds):
    """ONNX Runtime's outputs, without its own rewriting of graphs."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def differ(found, wanted, tolerance=TOLERANCE, least=0.0):
    """How two arrays differ; an empty text: they do not. A smaller largest output counts as `least`."""
    wanted = np.asarray(wanted)
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return "%s%s is not %s%s" % (found.dtype, found.shape, wanted.dtype, wanted.shape)
    if wanted.dtype.kind not in "f":
        bad = found != wanted
        return "" if not bad.any() else "%s is not %s" % (found[bad][:4], wanted[bad][:4])
    finite = np.isfinite(wanted)
    strange = ~finite & ~((found == wanted) | (np.isnan(found) & np.isnan(wanted)))
    strange |= finite & ~np.isfinite(found)
    if strange.any():
        return "%s is not %s" % (found[strange][:4], wanted[strange][:4])
    tolerance = max(tolerance, HALF_TOLERANCE) if wanted.dtype == np.float16 else tolerance
    error = error_of(found, wanted, least)
    return "" if error <= tolerance else "%.1e of the largest output" % error


def error_of(found, wanted, least=0.0):
    """The largest difference where both are finite, as a part of the largest output."""
    if found.shape != wanted.shape:
        return np.inf
    finite = np.isfinite(wanted) & np.isfinite(found)
    if not finite.any():
        return 0.0
    largest = max(np.abs(wanted[finite]).max(), 1e3 * np.finfo(np.float32).tiny, least)
    return np.abs(found[finite].astype("f8") - wanted[finite].astype("f8")).max() / largest


def is_nearer(path, feeds, index, found, peer):
    """True for an output that is as near to the model in f64 as ONNX Runtime's, whose functions are off by 1e-7."""
    if found.dtype.kind != "f" or found.shape != peer.shape:
        return False
    try:
        right = np.asarray(onnx_f64.evaluate(path, feeds)[index])
    except Exception:  # pylint: disable=broad-except; NumPy's evaluator knows some operators in part
        return False
    allowed = max(TOLERANCE, min(ERROR_MAX, PEER_ERRORS * error_of(peer, right)))
    return not differ(found, right.astype(found.dtype), allowed)


class Bench:
    """A folder with a model, its inputs, a history, and wpkctl."""

    def __init__(self, wpkctl, folder, history):
        self.wpkctl, self.folder, self.history = wpkctl, folder, history
        self.onnx, self.plan = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.wpk")

    def call(self, *words):
        try:
            return subprocess.run([self.wpkctl, *words], capture_output=True, text=True, check=False,
                                  timeout=LIMIT_S)
        except subprocess.TimeoutExpired as late:
            raise Fault("wpkctl %s has no end" % words[0]) from late

    def write(self, model):
        onnx.save(model, self.onnx)

    def check(self):
        done = self.call("check", "--no-roofline", self.onnx)
        if done.returncode == REFUSED and done.stderr:
            raise Refused(done.stderr.replace(self.onnx + ": ", "").splitlines()[0])
        if done.returncode != 0:
            raise Fault("check ends with %d: %s" % (done.returncode, done.stderr[-300:]))

    def tune(self):
        done = self.call("tune", self.onnx, "-o", self.plan, "--candidates", "1", "--threads", "1",
                         "-q", "--data", self.history)
        if done.returncode != 0:
            raise Fault("tune ends with %d: %s" % (done.returncode, done.stderr.strip()[-300:]))

    def run(self, what, feeds, names, *more):
        """The outputs of a plan, or of a model with --interpret."""
        words = ["run", what, *more]
        for name, array in feeds.items():
            path = os.path.join(self.folder, "in_%s.npy" % name)
            np.save(path, np.ascontiguousarray(array).reshape(np.shape(array)))
            words += ["--input", "%s=%s" % (name, path)]
        paths = [os.path.join(self.folder, "out%d.npy" % i) for i in range(len(names))]
        for name, path in zip(names, paths):
            words += ["--output", "%s=%s" % (name, path)]
        done = self.call(*words)
        if done.returncode != 0:
            raise Fault("run ends with %d: %s" % (done.returncode, done.stderr.strip()[-300:]))
        return [np.load(path) for path in paths]

    def compare(self, model, what, feeds, *more, tolerance=TOLERANCE, wanted=None, least=0.0):
        names = [o.name for o in model.graph.output]
        wanted = wanted if wanted is not None else reference(model, feeds)
        for i, (name, found, one) in enumerate(zip(names, self.run(what, feeds, names, *more), wanted)):
            why = differ(found, one, tolerance, least)
            if why and not is_nearer(self.onnx, feeds, i, found, np.asarray(one)):
                raise Fault("%s %s: %s" % (" ".join(more) or "plan", name, why))


def each(wpkctl, items, judge):
    """(item, judge(bench, item)) of each item, several at a time, as they come."""
    places = queue.Queue()
    root = tempfile.mkdtemp(prefix="wpk-oracle-")
    for i in range(os.cpu_count()):
        folder = os.path.join(root, str(i))
        os.makedirs(folder)
        places.put(Bench(wpkctl, folder, os.path.join(folder, "history")))

    def one(item):
        bench = places.get()
        try:
            return item, judge(bench, item)
        finally:
            places.put(bench)

    try:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from pool.map(one, items)
    finally:
        shutil.rmtree(root, ignore_errors=True)

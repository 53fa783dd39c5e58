# SPDX-License-Identifier: Apache-2.0
"""Plans of models that sessions of the provider use, in a folder:

    KEY.model           the model's path; KEY.onnx is beside it where a session got bytes
    KEY-SHAPES.want     shapes that a session was called with and had no plan for, "NAME=EXTENT,..." a line, and
                        "NAME=EXTENT,...:TYPE:ELEMENT,..." for an input that decides on shapes by its elements, and
                        "threads COUNT" where runs have several
    KEY-SHAPES.wpk      the plan for them
    KEY-SHAPES.said     what a session made of it: whether it serves, and both times
    KEY-SHAPES.failed   why there is none
    KEY-SHAPES.N.calls  calls that the twin answered meanwhile, and the ns that they took; a service is told of them
    KEY-SHAPES.told     a service has counted that there is none

KEY stands for the model's bytes.
"""
import atexit
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

POLL_S = 1.0
TELL_S = 60.0  # between two requests to a service
TELL_MAX = 16  # requests at an exit; the next process tells the rest
UNREACHABLE = 3  # the exit code of wpkctl where no service answers

# Python ends threads when the process ends: one that is inside ONNX Runtime's C++ would abort the process. The limit is
# for a process that was forked meanwhile, in which nobody releases the lock.
_in_onnxruntime = threading.Lock()
atexit.register(_in_onnxruntime.acquire, timeout=30)


def folder(given=None):
    """The folder of plans: that given, else $WOODPECKER_PLANS, else one of the user's."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.abspath(given or os.environ.get("WOODPECKER_PLANS") or os.path.join(data, "woodpecker", "plans"))


def _digest(model):
    digest = hashlib.sha256()
    if isinstance(model, bytes):
        digest.update(model)
    else:
        with open(model, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:32]


def note(model, where):
    """Remember a session's model.

    Parameters
    ----------
    model : str, os.PathLike or bytes
    where : str
        The folder of plans.

    Returns
    -------
    str
        The key, or "" where the model or the folder cannot be used: sessions run without plans then.
    """
    try:
        model = model if isinstance(model, bytes) else os.path.abspath(os.fspath(model))
        key = _digest(model)
        os.makedirs(where, exist_ok=True)
        if isinstance(model, bytes):
            path = os.path.join(where, key + ".onnx")
            if not os.path.exists(path):
                _write(path, model)
            model = path
        _write(os.path.join(where, key + ".model"), model.encode())
        return key
    except (OSError, TypeError):
        return ""


def _write(path, data):
    part = "%s.%d" % (path, os.getpid())
    with open(part, "wb") as file:
        file.write(data)
    os.replace(part, path)


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def wants(where, keys=None):
    """The paths, without ending, of what is wanted and neither there nor given up."""
    found = []
    for path in sorted(glob.glob(os.path.join(where, "*.want"))):
        stem = path[:-len(".want")]
        if (keys is None or os.path.basename(stem).split("-")[0] in keys) and not os.path.exists(stem + ".wpk") and \
                not os.path.exists(stem + ".failed"):
            found.append(stem)
    return found


def _free_inputs(model):
    """The inputs that the model's file leaves open."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    from . import _original
    with _in_onnxruntime:
        session = onnxruntime.InferenceSession.__new__(onnxruntime.InferenceSession)
        (_original or onnxruntime.InferenceSession.__init__)(session, model, options, ["CPUExecutionProvider"])
        free = {value.name for value in session.get_inputs() if any(not isinstance(dim, int) for dim in value.shape)}
        del session
    return free


def _fixing(model, want, where):
    """The options of wpkctl that fix a model's inputs; arrays are written into the folder `where`."""
    free, words = _free_inputs(model), []
    for index, line in enumerate(want.splitlines()):
        name, _, rest = line.rpartition("=")
        extents, *elements = rest.split(":")
        if elements:
            import numpy

            shape = [int(extent) for extent in extents.split(",") if extent]
            array = numpy.array([int(element) for element in elements[1].split(",") if element], elements[0])
            path = os.path.join(where, "%d.npy" % index)
            numpy.save(path, array.reshape(shape))
            words += ["--bind", "%s=%s" % (name, path)]
        elif name in free:
            words += ["--shape", line]
    return words


def _wpkctl(command, stem, *words):
    """Run wpkctl at the lowest priority on a model with the inputs that are wanted; None: there is no wpkctl."""
    program = shutil.which("wpkctl", path=os.environ.get("WPK_BIN")) or shutil.which("wpkctl")
    if program is None:
        return None
    model = _read(os.path.join(os.path.dirname(stem), os.path.basename(stem).split("-")[0] + ".model"))
    with tempfile.TemporaryDirectory() as arrays:
        fixing = _fixing(model, _read(stem + ".want"), arrays)
        return subprocess.run(["nice", "-n", "19", program, command, model, *fixing, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False)


def _begin(path):
    """Make a file by which this process alone does something."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        return True
    except OSError:
        return False


def tune(stem, words=()):
    """Make the plan that is wanted, by wpkctl at the lowest priority.

    Returns
    -------
    bool
        Whether there is a plan now.
    """
    if not _begin(stem + ".tuning"):
        return False  # another process is at it
    part = stem + ".part.wpk"
    try:
        threads = [line.split()[1] for line in _read(stem + ".want").splitlines() if "=" not in line]
        told = _wpkctl("tune", stem, "-o", part, "-q", "--pin", "packing=shared", "--threads", (threads or ["1"])[0],
                       *words)
        if told is not None and told.returncode != 0:
            _write(stem + ".failed", told.stderr.encode())
        elif told is not None:
            os.replace(part, stem + ".wpk")
        return os.path.exists(stem + ".wpk")
    except Exception as reason:  # onnxruntime's own classes, one a code
        _write(stem + ".failed", str(reason).encode())
        return False
    finally:
        os.unlink(stem + ".tuning")


def _take_calls(stem):
    """How often the twin answered since the last time, and the ns that this took. The files are gone then."""
    calls = time_ns = 0
    for path in glob.glob(glob.escape(stem) + ".*.calls"):
        mine = "%s.%d" % (path, os.getpid())
        try:
            os.rename(path, mine)  # other processes want it, too
            count, ns = _read(mine).split()
            os.unlink(mine)
        except (OSError, ValueError):
            continue
        calls, time_ns = calls + int(count), time_ns + int(ns)
    return calls, time_ns


def tell(stem):
    """Look the operators of a model up at the service of $WPK_URL, which counts those that it has no kernel for: once, and
    when there were calls since.

    Returns
    -------
    bool
        Whether the service was asked.
    """
    is_first, (calls, time_ns) = _begin(stem + ".told"), _take_calls(stem)
    if not is_first and not calls:
        return False
    told = None
    try:
        told = _wpkctl("check", stem, "--server", os.environ["WPK_URL"], "--json", "--calls", str(calls), "--time-ns",
                       str(time_ns))
    except Exception:  # onnxruntime's own classes, one a code; the model's file may be gone
        pass
    if told is None or told.returncode == UNREACHABLE:
        if is_first:
            os.unlink(stem + ".told")
        if calls:  # later, in one file
            _write("%s.0.calls" % stem, ("%d %d\n" % (calls, time_ns)).encode())
    return told is not None


def tell_at_exit(where, keys):
    """Have a process of its own tell what sessions leave behind: they end after this one's exit functions."""
    if wants(where, keys) and os.path.basename(sys.executable or "").startswith("python"):
        subprocess.Popen(["nice", "-n", "19", sys.executable, "-m", __package__, "misses", "--tell"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                         env={**os.environ, "WOODPECKER_PLANS": where,
                              "PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))})


def serve_now(session, where, key, words, seconds=30):
    """Tune a session's model for its shapes, where these are fixed, and call it until a plan serves or is refused."""
    import numpy

    types = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(int16)": "i2",
             "tensor(bool)": "?", "tensor(uint8)": "u1", "tensor(int8)": "i1"}
    feeds = {}
    for value in session.get_inputs():
        if value.type not in types or any(not isinstance(dim, int) for dim in value.shape):
            return
        feeds[value.name] = numpy.zeros(value.shape, types[value.type])
    try:
        session.run(None, feeds)
    except Exception:  # onnxruntime's own classes; zeros are no shape that this model takes
        return
    end = time.monotonic() + seconds
    while not glob.glob(os.path.join(where, key + "-*.want")) and time.monotonic() < end:
        time.sleep(0.01)
    for stem in wants(where, {key}):
        tune(stem, words)
    end = time.monotonic() + seconds
    while not glob.glob(os.path.join(where, key + "-*.said")) and time.monotonic() < end and \
            not glob.glob(os.path.join(where, key + "-*.failed")):
        session.run(None, feeds)
        time.sleep(0.05)


class Background:
    """Works on what this process's sessions want, one after the other, in a thread that ends with the process."""

    def __init__(self, where, work, pause_s=POLL_S):
        self.where, self.work, self.pause_s, self.keys = where, work, pause_s, set()
        threading.Thread(target=self._run, daemon=True, name="woodpecker-plans").start()

    def _run(self):
        while True:
            for stem in wants(self.where, self.keys):
                if self.work(stem):
                    time.sleep(self.pause_s)
            time.sleep(POLL_S)


def list_wants(where):
    """Print what is wanted; returns the number."""
    found = wants(where)
    for stem in found:
        key = os.path.basename(stem).split("-")[0]
        try:
            print(_read(os.path.join(where, key + ".model")), _read(stem + ".want").replace("\n", " "), sep="  ")
        except OSError as reason:
            print(reason, file=sys.stderr)
    return len(found)

# SPDX-License-Identifier: Apache-2.0
"""Uses the Python package on a tuned plan, its inputs and its outputs:

    python_package.py PLAN.wpk X.npy Y.npy

WOODPECKER_LIBRARY names libwpk, for the package in python/; without it an installed one is tested. Ends with 0 if everything is as it should be.
"""
import copy
import ctypes
import os
import pickle
import re
import subprocess
import sys
import threading
import time

started = time.perf_counter()
if "WOODPECKER_LIBRARY" in os.environ:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import woodpecker as wpk  # noqa: E402

assert "numpy" not in sys.modules, "the import needs no NumPy"
import numpy as np  # noqa: E402
from woodpecker import _library, _tensor  # noqa: E402

TOLERANCE = 1e-5
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def known_types():
    """NumPy's names of the library's element types, in its order."""
    with open(os.path.join(ROOT, "schema/tensor.h"), encoding="utf-8") as file:
        texts = re.findall(r'^    X\(\w+, "(\w+)"', file.read(), re.M)
    return tuple(t if t == "bool" else re.sub("^(b?f|u?i?)", lambda m: {"f": "float", "bf": "bfloat", "i": "int", "u": "uint"}[
        m.group(1)], t) for t in texts)


assert known_types() == _library.DTYPES, "the element types of both"


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        assert isinstance(error, wpk.WoodpeckerError) and error.code, error
        assert all(word in str(error) for word in words), (words, str(error))
        return
    raise AssertionError("%s is not raised" % kind.__name__)


def near(found, wanted):
    return np.abs(found - wanted).max() <= TOLERANCE * np.abs(wanted).max()


def test_layouts(plan):
    """The structs of ctypes are those of the library."""
    lib = _library.library()
    for tensor in plan.inputs + plan.outputs:
        assert lib.wpk_tensor_type_bytes(ctypes.byref(tensor._type)) == tensor.empty().nbytes
        assert lib.wpk_layout_is_row_major(ctypes.byref(tensor._type.layout))
    large = plan.inputs[0]
    large.shape, small = (1, 4099), large.shape  # 16 KiB
    large._size = None
    kept = [large.empty() for _ in range(20)]  # some of which malloc() would not align
    assert all(array.ctypes.data % 64 == 0 and array.shape == (1, 4099) for array in kept)
    large.shape, large._size = small, None


def test_run(plan, x, y):
    assert near(plan.run({"x": x})["y"], y)
    out = np.empty_like(y)
    assert plan.run({"x": x}, out={"y": out})["y"] is out and near(out, y)

    class Capsule:
        """Something with DLPack that is no array."""

        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    assert near(plan.run({"x": Capsule()})["y"], y)
    assert near(pickle.loads(pickle.dumps(plan)).run({"x": x})["y"], y)
    assert near(plan.run({"x": np.repeat(x, 2, -1)[..., ::2].astype("f8")}, copy=True)["y"], y)
    assert near(copy.copy(plan).run({"x": x})["y"], y)


def test_refusals(plan, x, y):
    raises(wpk.InvalidInput, lambda: plan.run({}), "x is missing")
    raises(wpk.InvalidInput, lambda: plan.run({"x": x, "z": x}), "no input z")
    raises(ValueError, lambda: plan.run({"x": x[..., :-1]}), "input x", str(list(x.shape)))
    raises(wpk.InvalidInput, lambda: plan.run({"x": x.astype("f8")}), "float64")
    raises(wpk.InvalidInput, lambda: plan.run({"x": np.repeat(x, 2, -1)[..., ::2]}), "rows")
    raises(wpk.InvalidInput, lambda: plan.run({"x": x}, out={"y": y.astype("f8")}), "output y")
    raises(wpk.NotFound, lambda: wpk.load("/nowhere.wpk"), "/nowhere.wpk")
    raises(FileNotFoundError, lambda: wpk.load("/nowhere.choice"))
    raises(wpk.CorruptFile, lambda: wpk.load(__file__))


def test_threads(plan, x, y):
    """Each thread has a context of its own."""
    wrong = []

    def work(seed):
        mine = x + np.float32(seed)
        first = plan.run({"x": mine})["y"]
        wrong.extend(1 for _ in range(50) if not (plan.run({"x": mine})["y"] == first).all())

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong and near(plan.run({"x": x})["y"], y)


def test_fork(plan, x, y):
    child = os.fork()
    if child == 0:
        os._exit(0 if near(plan.run({"x": x})["y"], y) else 1)
    assert os.waitpid(child, 0)[1] == 0, "a forked process runs the plan"
    assert near(plan.run({"x": x})["y"], y)


def test_doctor():
    """A line for each thing; the status says whether plans can be run here."""
    path = os.pathsep.join(p for p in (sys.path[0], os.environ.get("PYTHONPATH")) if p)
    for library, status in ((os.environ.get("WOODPECKER_LIBRARY"), 0), ("/nowhere.so", 1)):
        env = {**os.environ, "PYTHONPATH": path, "PATH": "/nowhere"}
        if library:
            env["WOODPECKER_LIBRARY"] = library
        told = subprocess.run([sys.executable, "-m", "woodpecker", "doctor"], env=env, capture_output=True, text=True,
                              check=False, timeout=30)
        assert told.returncode == status and not told.stderr, told
        lines = dict(line.split(None, 1) for line in told.stdout.splitlines())
        assert list(lines) == ["package", "libwpk", "wpkctl", "compiler", "linker", "history"], lines
        assert ("cannot be loaded" in lines["libwpk"]) == bool(status) and "not in PATH" in lines["wpkctl"], lines


def test_close(path, x):
    with wpk.load(path) as plan:
        assert plan.shapes[0]["x"] == x.shape and plan.threads >= 1 and "x: float32" in repr(plan)
    raises(wpk.InvalidInput, lambda: plan.run({"x": x}), "closed")
    plan.close()


def main():
    path, x, y = sys.argv[1], np.load(sys.argv[2]), np.load(sys.argv[3])
    plan = wpk.load(path)
    test_layouts(plan)
    test_run(plan, x, y)
    test_refusals(plan, x, y)
    test_threads(plan, x, y)
    test_fork(plan, x, y)
    test_close(path, x)
    test_doctor()
    assert _tensor.bind([], []) is not None
    print("passed")


if __name__ == "__main__":
    main()

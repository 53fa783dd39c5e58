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
from woodpecker import _dlpack, _library, _tensor  # noqa: E402

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
    large._size = large._new = None
    kept = [large.empty() for _ in range(20)]  # some of which malloc() would not align
    assert all(array.ctypes.data % 64 == 0 and array.shape == (1, 4099) for array in kept)
    large.shape, large._size, large._new = small, None, None


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
    for _ in range(2):  # once the types are known, too
        raises(wpk.InvalidInput, lambda: plan.run({"x": x}, out={"y": np.broadcast_to(y, y.shape)}), "output y is read-only")
        plan.run({"x": x})
    raises(wpk.NotFound, lambda: wpk.load("/nowhere.wpk"), "/nowhere.wpk")
    raises(FileNotFoundError, lambda: wpk.load("/nowhere.choice"))
    raises(wpk.CorruptFile, lambda: wpk.load(__file__))


class Lender:
    """Another library's array: capsules of bf16 by ctypes, with or without a version."""
    DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

    def __init__(self, bits, versioned, device=1, read_only=False, code=4, strides=None):
        self.bits, self.versioned, self.device, self.deleted, self.capsules = bits, versioned, device, 0, []
        self.shape = bits.shape
        extents = (ctypes.c_int64 * bits.ndim)(*bits.shape)
        steps = (ctypes.c_int64 * bits.ndim)(*[step // 2 for step in bits.strides])
        self.tensor = _dlpack._Tensor(bits.ctypes.data - 6, (device, 0), bits.ndim, code, 16, 1, ctypes.addressof(extents),
                                      None if strides is None else ctypes.addressof(steps), 6)
        self.deleter = self.DELETER(self.delete)
        address = ctypes.cast(self.deleter, ctypes.c_void_p).value

        class Unversioned(ctypes.Structure):
            _fields_ = [("tensor", _dlpack._Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

        self.managed = _dlpack._Versioned((1, 0), None, address, int(read_only), self.tensor) if versioned else \
            Unversioned(self.tensor, None, address)
        self.kept, self.name = (extents, steps), b"dltensor" + b"_versioned" * versioned

    def delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **options):
        if options and not self.versioned:
            raise TypeError("an old library knows no %s" % options)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        # A capsule has the address of its name, no copy.
        self.capsules.append(new(ctypes.addressof(self.managed), self.name, None))
        return self.capsules[-1]


def test_bfloat16():
    """Capsules of bf16 are read and written without a copy; NumPy has no such type."""
    kind = _library.TensorType(3, 2, (ctypes.c_int64 * 10)(2, 3))
    tensor = _tensor.Tensor(_library.Argument(b"w", kind))
    assert tensor.dtype == "bfloat16"
    bits = (np.arange(6, dtype="f4").reshape(2, 3).view("u4") >> 16).astype("u2")
    for versioned in (False, True):
        for strides in (None, True):
            lender = Lender(bits, versioned, strides=strides)
            taken = tensor.take(lender)
            assert taken.ctypes.data == bits.ctypes.data and (taken == bits).all() and taken.shape == (2, 3)
            assert _dlpack._name(lender.capsules[0]) == b"used_dltensor" + b"_versioned" * versioned
            assert lender.deleted == 0
            del taken
            lender.capsules.clear()
            assert lender.deleted == 1, lender.deleted
        skewed = Lender(np.arange(12, dtype="u2").reshape(2, 6)[:, ::2], versioned, strides=True)
        raises(wpk.InvalidInput, lambda lent=skewed: tensor.take(lent), "input w does not lie in rows")
        assert (tensor.take(skewed, copy=True) == [[0, 2, 4], [6, 8, 10]]).all()
        raises(wpk.InvalidInput, lambda: tensor.take(Lender(bits, versioned, device=2)), "input w cannot be read by DLPack")
        raises(wpk.InvalidInput, lambda: tensor.take(Lender(bits, versioned, code=0)), "w is bfloat16[2, 3], and int16")
        raises(wpk.InvalidInput, lambda: tensor.take(Lender(bits.T.copy(), versioned)), "and bfloat16[3, 2] is given")
    frozen = Lender(bits, True, read_only=True)
    assert (tensor.take(frozen) == bits).all(), "an input is only read"
    raises(wpk.InvalidInput, lambda: tensor.take(frozen, "output"), "output w is read-only")
    raises(wpk.InvalidInput, lambda: tensor.take(bits.astype("f4"), copy=True), "float32")
    kind.dtype = 0
    single = _tensor.Tensor(_library.Argument(b"w", kind))
    for copies in (False, True):  # bits are no numbers
        raises(wpk.InvalidInput, lambda: single.take(Lender(bits, True), copy=copies), "w is float32[2, 3], and bfloat16")

    out = tensor.empty()
    out[:] = bits
    for options in ({}, {"max_version": (1, 0)}):
        capsule = out.__dlpack__(**options)
        assert _dlpack._opened(capsule)[0].code == 4
    again = tensor.take(type("Other", (), {"__dlpack__": lambda self, **options: out.__dlpack__(**options),
                                           "__dlpack_device__": lambda self: out.__dlpack_device__()})())
    assert again.ctypes.data == out.ctypes.data and (again == bits).all() and type(out + 1) is np.ndarray


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
    test_bfloat16()
    test_threads(plan, x, y)
    test_fork(plan, x, y)
    test_close(path, x)
    test_doctor()
    assert _tensor.bind([], []) is not None
    print("passed")


if __name__ == "__main__":
    main()

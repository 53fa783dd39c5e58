# SPDX-License-Identifier: Apache-2.0
"""Operators in notation, tuned and called."""
import os
import re
import tempfile

from ._errors import InvalidInput
from ._kernel import Kernel
from ._tools import budget, call, call_json


class Op:
    """An operator: ``tune()`` finds a kernel for it, calls run that.

    Attributes
    ----------
    notation : str
    tensors : dict
        Types by name, such as ``{"A": "f32[128,768]"}``.
    """

    def __init__(self, notation, tensors, constants):
        self.notation, self.constants = notation, [constants] if isinstance(constants, str) else list(constants)
        self.output = notation.split("[")[0].strip()
        self.tensors = dict(tensors)
        if self.output not in self.tensors:
            self.tensors[self.output] = _output_type(notation, tensors)
        self._given = [name for name in tensors if name != self.output]
        self._kernel, self._names, self._packed, self._fingerprint, self._data = None, {}, None, None, None
        self._folder, self._open = None, None

    def __repr__(self):
        return "<woodpecker.Op %s%s>" % (self.notation, "" if self._kernel is None else ", tuned")

    def tune(self, candidates=64, seconds=None, threads=1, accuracy=None, data=None, server=None, progress=True):
        """Search a kernel, of so many candidates or seconds at the most.

        Returns
        -------
        Op
            Itself.
        """
        words = budget(seconds, candidates, threads, data, server, accuracy)
        for name, kind in self.tensors.items():
            words += ["--tensor", "%s=%s" % (name, kind)]
        for name in self.constants:
            words += ["--constant", name]
        found, = call_json("tune", "--op", self.notation, *words, shown=progress)["kernels"]
        self._fingerprint = found["fingerprint"]
        self._data = [word for option, value in (("--data", data), ("--server", server)) if value is not None
                      for word in (option, str(value))]
        self._folder = tempfile.TemporaryDirectory(prefix="woodpecker-")
        path = os.path.join(self._folder.name, "op.so")
        call("get", self._fingerprint, "-o", path, *self._data)
        self._open = lambda: Kernel(path + ".choice", threads)
        self._kernel, self._packed = self._open(), None
        self._names = {kind: dict(pairs) for kind, pairs in found["binding"].items()}
        return self

    def why(self):
        """Print why its kernel won."""
        if self._fingerprint is None:
            raise InvalidInput("tune() comes first")
        print(call("why", self._fingerprint, *self._data), end="")

    def __call__(self, *arrays):
        """Run it on its inputs and constants, in the order of their types.

        Returns
        -------
        numpy.ndarray
        """
        if self._kernel is None:
            raise InvalidInput("tune() comes first")
        if len(arrays) != len(self._given):
            raise InvalidInput("%d tensors are needed, %s" % (len(self._given), ", ".join(self._given)))
        given = dict(zip(self._given, arrays))
        constants = {name: given.pop(name) for name in self._names["constants"]}
        if self._packed is None or any(self._packed[name] is not array for name, array in constants.items()):
            self._kernel = self._kernel if self._packed is None else self._open()
            self._kernel.prepare({self._names["constants"][name]: array for name, array in constants.items()})
            self._packed = constants
        result = self._kernel.run({self._names["inputs"][name]: array for name, array in given.items()})
        return result[self._names["outputs"][self.output]]


def _output_type(notation, tensors):
    """The output's type: each of its axes has the extent that it has where it alone is an index."""
    extents, dtypes = {}, []
    for name, kind in tensors.items():
        match = re.fullmatch(r"\s*(\w+)\[([\d,\s]*)\]\s*", kind)
        if match is None:
            raise InvalidInput("%s: %r is no type such as f32[128,768]" % (name, kind))
        dtype, dims = match.groups()
        dims = [int(dim) for dim in dims.split(",")] if dims.strip() else []
        dtypes.append(dtype)
        for indices in re.findall(r"\b%s\[([^\]]*)\]" % re.escape(name), notation.partition("=")[2]):
            for index, dim in zip(indices.split(","), dims):
                extents.setdefault(index.strip(), dim)
    match = re.match(r"\s*(\w+)\[([^\]]*)\]\s*=", notation)
    if match is None:
        raise InvalidInput("%r is no equation such as C[i,j] = A[i,j] + B[j]" % notation)
    name, axes = match.groups()
    axes = [axis.strip() for axis in axes.split(",")] if axes.strip() else []
    if any(axis not in extents for axis in axes):
        raise InvalidInput("the extents of %s do not follow from its inputs: give its type, %s=\"f32[...]\"" % (name, name))
    return "%s[%s]" % (dtypes[0], ",".join(str(extents[axis]) for axis in axes))


def op(notation, constants=(), **tensors):
    """An operator of a notation and its tensors' types.

    Parameters
    ----------
    notation : str
        Such as ``"C[i,j] = relu(sum(k) A[i,k]*B[k,j])"``.
    constants : str or list of str
        Tensors that seldom change, such as weights: they are packed once.
    **tensors : str
        The type of each, such as ``A="f32[128,768]"``; the output's may be left out.

    Returns
    -------
    Op
    """
    return Op(notation, tensors, constants)

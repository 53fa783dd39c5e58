# SPDX-License-Identifier: Apache-2.0
"""Kernels of single operators."""
import ctypes
import json
import os

from ._errors import InvalidInput
from ._library import ContextOptions, Diag, check, library
from ._tensor import Tensor, bind, by_name, physical


class Kernel:
    """A tuned kernel. One thread at a time may run it.

    Attributes
    ----------
    inputs, outputs, constants : list of Tensor
    """

    def __init__(self, path, threads=0):
        lib, diag = library(), Diag()
        kernel, context = ctypes.c_void_p(), ctypes.c_void_p()
        self._path, self._wanted, self._kernel, self._context = os.path.abspath(path), threads, None, None
        opens = lib.wpk_open if path.endswith(".choice") else lib.wpk_kernel_open
        check(opens(os.fsencode(path), None, ctypes.byref(kernel), ctypes.byref(diag)), diag)
        self._kernel = kernel
        self.inputs = [Tensor(lib.wpk_kernel_input(kernel, i)[0]) for i in range(lib.wpk_kernel_input_count(kernel))]
        self.outputs = [Tensor(lib.wpk_kernel_output(kernel, i)[0]) for i in range(lib.wpk_kernel_output_count(kernel))]
        self.constants = [Tensor(lib.wpk_kernel_constant(kernel, i)[0])
                          for i in range(lib.wpk_kernel_constant_count(kernel))]
        self._is_prepared = False
        check(lib.wpk_context_new(ctypes.byref(ContextOptions(threads, None)), ctypes.byref(context)))
        self._context = context

    def __repr__(self):
        return "<woodpecker.Kernel %s: %s -> %s>" % (os.path.basename(self._path), self.inputs, self.outputs)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        self.close()

    def close(self):
        """Free the kernel."""
        kernel, self._kernel = getattr(self, "_kernel", None), None
        if kernel is not None:
            if self._context is not None:
                library().wpk_context_free(self._context)
            library().wpk_kernel_close(kernel)

    @property
    def manifest(self):
        """The kernel's manifest: a dict with its operator, layouts, schedule and versions."""
        return json.loads(library().wpk_kernel_manifest(self._kernel) or b"{}")

    def prepare(self, constants):
        """Pack the constants, once; they are copied.

        Parameters
        ----------
        constants : dict
            An array for each constant, by name.
        """
        diag = Diag()
        arrays = by_name(self.constants, constants, "constant")
        check(library().wpk_kernel_prepare(self._kernel, bind(self.constants, arrays), len(arrays),
                                           ctypes.byref(diag)), diag)
        self._is_prepared = True

    def run(self, inputs):
        """Run the kernel once.

        Parameters
        ----------
        inputs : dict
            An array for each input, by name, dense and row-major.

        Returns
        -------
        dict
            Each output's array, by name.
        """
        import numpy

        if self._kernel is None:
            raise InvalidInput("the kernel is closed")
        if not self._is_prepared:
            if self.constants:
                raise InvalidInput("prepare() takes the constants %s first" % [c.name for c in self.constants])
            self.prepare({})
        lib = library()
        arrays = [physical(tensor, array) for tensor, array in zip(self.inputs, by_name(self.inputs, inputs))]
        dense = [tensor.empty() for tensor in self.outputs]
        results = [array if lib.wpk_layout_is_row_major(ctypes.byref(tensor._type.layout)) else
                   numpy.zeros(lib.wpk_tensor_type_bytes(ctypes.byref(tensor._type)), numpy.uint8)
                   for tensor, array in zip(self.outputs, dense)]
        code = lib.wpk_kernel_run(self._kernel, self._context, bind(self.inputs, arrays), len(arrays),
                                  bind(self.outputs, results), len(results))
        check(code, text=lib.wpk_context_trouble(self._context).decode(errors="replace") if code else "")
        for tensor, array, result in zip(self.outputs, dense, results):
            if result is not array:
                lib.wpk_tensor_unpack(ctypes.byref(tensor._type), result.ctypes.data, array.ctypes.data)
        return {tensor.name: array for tensor, array in zip(self.outputs, dense)}

# SPDX-License-Identifier: Apache-2.0
"""Plans of models."""
import ctypes
import os
import threading

from ._errors import InvalidInput
from ._library import ContextOptions, Diag, check, library
from ._tensor import Tensor, bind, by_name


class Plan:
    """A tuned model. Threads may share it: each run takes a context of its own.

    Attributes
    ----------
    inputs, outputs : list of Tensor
        Of the first set of shapes.
    shapes : list of dict
        Each set of shapes of the inputs that it was tuned for, by name.
    threads : int
        Threads that its kernels were made for.
    """

    def __init__(self, path, threads=0):
        self._path, self._wanted = os.path.abspath(path), threads
        self._open()

    def _open(self):
        lib, diag, model = library(), Diag(), ctypes.c_void_p()
        self._model, self._idle, self._lock, self._owner = None, {}, threading.Lock(), os.getpid()
        check(lib.wpk_model_open(os.fsencode(self._path), None, ctypes.byref(model), ctypes.byref(diag)), diag)
        self._model = model
        count = lib.wpk_model_shape_count(model)
        self._sets = [([Tensor(lib.wpk_model_input(model, s, i)[0]) for i in range(lib.wpk_model_input_count(model))],
                       [Tensor(lib.wpk_model_output(model, s, i)[0])
                        for i in range(lib.wpk_model_output_count(model))]) for s in range(count)]
        self.inputs, self.outputs = self._sets[0]
        self.shapes = [{tensor.name: tensor.shape for tensor in inputs} for inputs, _ in self._sets]
        self.threads = lib.wpk_model_threads(model)

    def __repr__(self):
        return "<woodpecker.Plan %s: %s -> %s>" % (os.path.basename(self._path), self.inputs, self.outputs)

    def __reduce__(self):
        return Plan, (self._path, self._wanted)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        self.close()

    def close(self):
        """Free the plan; it cannot be run any more."""
        model, self._model = getattr(self, "_model", None), None
        if model is not None and self._owner == os.getpid():
            for contexts in self._idle.values():
                for context in contexts:
                    library().wpk_model_context_free(context)
            library().wpk_model_close(model)

    def _take(self, index):
        """A context for one run; after a fork the threads of the parent's are gone."""
        with self._lock:
            if self._model is None:
                raise InvalidInput("the plan is closed")
            if self._owner != os.getpid():
                self._idle, self._owner = {}, os.getpid()
            if self._idle.get(index):
                return self._idle[index].pop()
        context = ctypes.c_void_p()
        options = ContextOptions(self._wanted, None)
        check(library().wpk_model_context_new(self._model, index, ctypes.byref(options), ctypes.byref(context)))
        return context

    def _choose(self, given):
        """The number of the first set of shapes that fits."""
        if len(self._sets) == 1:
            return 0
        shapes = {name: tuple(getattr(array, "shape", ())) for name, array in given.items()}
        for index, wanted in enumerate(self.shapes):
            if shapes == wanted:
                return index
        raise InvalidInput("no set of shapes fits %s; the plan has %s" % (shapes, self.shapes))

    def run(self, inputs, out=None, copy=False):
        """Run the model once.

        Parameters
        ----------
        inputs : dict
            An array for each input, by name: NumPy's, or anything with DLPack on the CPU.
        out : dict, optional
            Arrays that outputs are written to, by name; outputs without one get new arrays.
        copy : bool
            Whether an input of another type, or one that does not lie in rows, is copied rather than refused.

        Returns
        -------
        dict
            Each output's array, by name.

        Raises
        ------
        InvalidInput, OutOfRange
        """
        index = self._choose(inputs)
        of_inputs, of_outputs = self._sets[index]
        arrays = by_name(of_inputs, inputs, copy=copy)
        given = out or {}
        results = [tensor.take(given[tensor.name], "output") if tensor.name in given else tensor.empty()
                   for tensor in of_outputs]
        context = self._take(index)
        lib = library()
        code = lib.wpk_model_run(context, bind(of_inputs, arrays), len(arrays), bind(of_outputs, results), len(results))
        reason = lib.wpk_model_context_failure(context).decode(errors="replace") if code else ""
        with self._lock:
            self._idle.setdefault(index, []).append(context)
        check(code, text=reason)
        return {tensor.name: array for tensor, array in zip(of_outputs, results)}

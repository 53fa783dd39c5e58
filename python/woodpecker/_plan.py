# SPDX-License-Identifier: Apache-2.0
"""Plans of models."""
import ctypes
import logging
import os
import threading

from ._errors import InvalidInput, NotFound, WoodpeckerError
from ._library import ContextOptions, Diag, check, library
from ._tensor import Slots, Tensor, by_name


class _Model:
    """An open plan with its idle contexts. It is freed with the last run that uses it."""

    def __init__(self, path, wanted):
        self._model = None
        lib, diag, model = library(), Diag(), ctypes.c_void_p()
        self._idle, self._owner, self._wanted = {}, os.getpid(), wanted
        check(lib.wpk_model_open(os.fsencode(path), None, ctypes.byref(model), ctypes.byref(diag)), diag)
        self._model, self.run = model, lib.wpk_model_run
        count = lib.wpk_model_shape_count(model)
        self.sets = [([Tensor(lib.wpk_model_input(model, s, i)[0]) for i in range(lib.wpk_model_input_count(model))],
                      [Tensor(lib.wpk_model_output(model, s, i)[0])
                       for i in range(lib.wpk_model_output_count(model))]) for s in range(count)]
        self.shapes = [{tensor.name: tensor.shape for tensor in inputs} for inputs, _ in self.sets]
        self.threads = lib.wpk_model_threads(model)

    def __del__(self):
        if self._model is not None and self._owner == os.getpid():
            for contexts in self._idle.values():
                for context, _, _ in contexts:
                    library().wpk_model_context_free(context)
            library().wpk_model_close(self._model)

    def take(self, index):
        """A context for one run, with lists of its inputs and outputs; after a fork the threads of the parent's are gone."""
        if self._owner != os.getpid():
            self._idle, self._owner = {}, os.getpid()
        try:  # two threads never get the same element of a list, nor lose one
            return self._idle[index].pop()
        except (KeyError, IndexError):
            pass
        self._idle.setdefault(index, [])
        context = ctypes.c_void_p()
        options = ContextOptions(self._wanted, None)
        check(library().wpk_model_context_new(self._model, index, ctypes.byref(options), ctypes.byref(context)))
        return context, *map(Slots, self.sets[index])

    def put(self, index, context):
        self._idle[index].append(context)


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
        self._path, self._wanted, self._source, self._searching = os.path.abspath(path), threads, None, None
        self._take_over(self._path)

    def _take_over(self, path):
        """Run another file's kernels from the next run on."""
        model = _Model(path, self._wanted)
        self.inputs, self.outputs = model.sets[0]
        self.shapes, self.threads = model.shapes, model.threads
        self._path, self._model = path, model

    def __repr__(self):
        return "<woodpecker.Plan %s: %s -> %s>" % (os.path.basename(self._path), self.inputs, self.outputs)

    def _repr_html_(self):
        """Of a notebook: the longest steps with their share of the roofline, and the graph."""
        from . import _source

        try:
            return _source.html(self)
        except NotFound:
            return "<pre>%s</pre>" % repr(self).replace("<", "&lt;")

    def __reduce__(self):
        return Plan, (self._path, self._wanted)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        """Free the plan; it cannot be run any more."""
        self._model = None

    def save(self, path):
        """Copy the plan's file."""
        from . import _source

        _source.save(self, path)

    def profile(self):
        """Time each step, which needs wpkctl.

        Returns
        -------
        list of dict
            With ``kernel``, ``nodes``, ``time_ns``, ``roofline_ns`` (0: not known) and so on.
        """
        from . import _source

        return _source.profile(self)

    def report(self, against="onnxruntime", model=None, python=None):
        """Time the plan beside other engines of this Python, in turns, which needs wpkctl.

        Parameters
        ----------
        against : str
            Names of engines, with commas: ``onnxruntime``, ``openvino``, ``mnn``, ``ncnn``.
        model : str, optional
            The ONNX model's path; a plan of ``compile`` knows it.
        python : str, optional
            An interpreter that has the engines; this one.

        Returns
        -------
        dict
            Of ``engines``, each with ``median_ns`` or ``why`` it does not run; others with ``ratio`` (its time over the
            plan's) and ``difference`` (of the largest output).
        """
        import sys

        from . import _source

        return _source.report(self, model, against, python or sys.executable)

    def tune(self, seconds=600):
        """Search on, in the background; when better kernels are there, the next run takes them.

        Returns
        -------
        threading.Thread
            ``join()`` waits for its end.
        """
        from . import _source

        if self._source is None:
            raise InvalidInput("a plan of woodpecker.compile() can be tuned on; this one is a file alone")
        if self._searching is not None and self._searching.is_alive():
            raise InvalidInput("it is being tuned")

        def search():
            out = os.path.join(self._source.folder.name, "plan%d.wpk" % threading.get_ident())
            try:
                self._source.tune(out, seconds)
                self._take_over(out)
            except WoodpeckerError as failure:
                logging.getLogger("woodpecker").warning("the plan stays as it is: %s", failure)

        self._searching = threading.Thread(target=search, daemon=True, name="woodpecker-tune")
        self._searching.start()
        return self._searching

    @staticmethod
    def _choose(model, given):
        """The number of the first set of shapes that fits, of several."""
        shapes = {name: tuple(getattr(array, "shape", ())) for name, array in given.items()}
        for index, wanted in enumerate(model.shapes):
            if shapes == wanted:
                return index
        raise InvalidInput("no set of shapes fits %s; the plan has %s" % (shapes, model.shapes))

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
            Each output's array, by name: the one in ``out``, else a new one.

        Raises
        ------
        InvalidInput, OutOfRange
        """
        model = self._model
        if model is None:
            raise InvalidInput("the plan is closed")
        index = 0 if len(model.sets) == 1 else self._choose(model, inputs)
        of_inputs, of_outputs = model.sets[index]
        arrays = by_name(of_inputs, inputs, copy=copy)
        results = [tensor.empty() for tensor in of_outputs] if not out else \
            [tensor.take(out[tensor.name], "output") if tensor.name in out else tensor.empty() for tensor in of_outputs]
        taken = model.take(index)
        context, data_in, data_out = taken
        code = model.run(context, data_in.point(arrays), len(arrays), data_out.point(results), len(results))
        if code:
            reason = library().wpk_model_context_failure(context).decode(errors="replace")
            model.put(index, taken)
            check(code, text=reason)
        model.put(index, taken)
        if out:
            results = [out.get(tensor.name, array) for tensor, array in zip(of_outputs, results)]
        return {tensor.name: array for tensor, array in zip(of_outputs, results)}

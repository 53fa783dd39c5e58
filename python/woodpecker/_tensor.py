# SPDX-License-Identifier: Apache-2.0
"""Tensors of a plan or kernel, and the arrays that callers give for them."""
import ctypes

from ._errors import InvalidInput
from ._library import DTYPES, TensorData, library


ALIGNED_BYTES = 4096  # smaller arrays lie as NumPy lays them


class Tensor:
    """The name, type and shape of an input or output.

    Attributes
    ----------
    name : str
    dtype : str
        NumPy's name, such as ``float32``. Of ``bfloat16``, which NumPy does not have, arrays are the bits, as
        ``uint16``; by DLPack they are bf16.
    shape : tuple of int
    """

    def __init__(self, argument):
        self.name = argument.name.decode()
        self.dtype = DTYPES[argument.type.dtype]
        self.shape = tuple(argument.type.extent[:argument.type.rank])
        self._type = argument.type
        self._kind = self._size = None  # NumPy's type, and bytes, once there is an array: the import needs no NumPy
        self._new = None  # numpy.empty, where that is all that empty() does

    def __repr__(self):
        return "%s: %s%s" % (self.name, self.dtype, list(self.shape))

    @property
    def _numpy(self):
        return "uint16" if self.dtype == "bfloat16" else self.dtype

    def take(self, array, what="input", copy=False):
        """The array as it is, if it fits; anything with DLPack becomes one. With ``copy`` a copy of one that
        has another type or does not lie in rows.

        Raises
        ------
        InvalidInput
            It has another shape or type, its elements do not lie one after the other in rows, it is on another device,
            or it is an output and read-only.
        """
        if self._kind is not None and getattr(array, "dtype", None) is self._kind and array.shape == self.shape and \
                array.flags.c_contiguous and (what != "output" or array.flags.writeable):
            return array
        import numpy

        array, is_bfloat16, is_writeable = self._read(array, what)
        converts = array.dtype == "uint16" if self.dtype == "bfloat16" else not is_bfloat16
        if copy and array.shape == self.shape and converts:
            array = numpy.ascontiguousarray(array, self._numpy).reshape(self.shape)
        if array.shape != self.shape or array.dtype != self._numpy:
            raise InvalidInput("%s %s is %s%s, and %s%s is given" % (
                what, self.name, self.dtype, list(self.shape), "bfloat16" if is_bfloat16 else array.dtype,
                list(array.shape)))
        if not array.flags.c_contiguous:
            raise InvalidInput("%s %s does not lie in rows; numpy.ascontiguousarray makes a copy that does" % (
                what, self.name))
        if what == "output" and not is_writeable:
            raise InvalidInput("%s %s is read-only" % (what, self.name))
        self._kind = array.dtype
        return array

    def _read(self, given, what):
        """An array of what is given, without a copy; whether it has the bits of bf16, and whether it may be written to."""
        import numpy

        if isinstance(given, numpy.ndarray) or not hasattr(given, "__dlpack__"):
            array = numpy.asarray(given)
            is_bfloat16 = array.dtype.name == "bfloat16"  # of ml_dtypes
            return array.view("uint16") if is_bfloat16 else array, is_bfloat16, array.flags.writeable
        from ._dlpack import Lent

        lent = Lent(given)
        try:
            array = numpy.from_dlpack(lent)
        except Exception as reason:  # of each library its own
            raise InvalidInput("%s %s cannot be read by DLPack: %s" % (what, self.name, reason)) from reason
        return array, lent.is_bfloat16, lent.is_writeable

    def empty(self):
        """A new array for it; one of several cache lines begins with one."""
        if self._new is not None:
            return self._new(self.shape, self._kind)
        import numpy

        if self._size is None:
            self._kind = numpy.dtype(self._numpy)
            self._size = int(numpy.prod(self.shape, dtype=numpy.int64)) * self._kind.itemsize
            self._new = numpy.empty if self._size < ALIGNED_BYTES and self.dtype != "bfloat16" else None
        if self._size < ALIGNED_BYTES:
            array = numpy.empty(self.shape, self._kind)
        else:
            memory = numpy.empty(self._size + 64, numpy.uint8)
            array = numpy.ndarray(self.shape, self._kind, memory, -address(memory) % 64)
        if self.dtype != "bfloat16":
            return array
        from ._dlpack import Bfloat16Array

        return array.view(Bfloat16Array)


_view, _addressof = ctypes.c_char.from_buffer, ctypes.addressof


def address(array):
    """Of an array's first element."""
    try:  # three times as fast, for arrays that may be written
        return _addressof(_view(array))
    except (TypeError, ValueError):
        return array.__array_interface__["data"][0]


class Slots:
    """A list of tensors for the library, whose addresses point() fills in."""

    def __init__(self, tensors):
        self._data = (TensorData * max(1, len(tensors)))()
        self._slots = list(self._data)[:len(tensors)]
        self._address = ctypes.addressof(self._data)
        for slot, tensor in zip(self._slots, tensors):
            slot.name, slot.size = tensor.name.encode(), library().wpk_tensor_type_bytes(ctypes.byref(tensor._type))

    def point(self, arrays):
        """The list's address; it has those of these arrays then."""
        try:
            for slot, array in zip(self._slots, arrays):
                slot.data = _addressof(_view(array))
        except (TypeError, ValueError):
            for slot, array in zip(self._slots, arrays):
                slot.data = address(array)
        return self._address


def bind(tensors, arrays):
    """The library's list of these arrays."""
    data = (TensorData * max(1, len(tensors)))()
    for slot, tensor, array in zip(data, tensors, arrays):
        slot.name, slot.size, slot.data = tensor.name.encode(), array.nbytes, address(array)
    return data


def by_name(tensors, given, what="input", copy=False):
    """The arrays of a dict, in the order of the tensors."""
    if len(given) == len(tensors):
        try:
            return [tensor.take(given[tensor.name], what, copy) for tensor in tensors]
        except KeyError:
            pass
    known = {tensor.name for tensor in tensors}
    missing = [tensor.name for tensor in tensors if tensor.name not in given]
    wrong = [name for name in given if name not in known]
    raise InvalidInput("%s %s is missing" % (what, missing[0]) if missing else
                       "there is no %s %s; there are %s" % (what, wrong[0], ", ".join(sorted(known))))


def physical(tensor, array):
    """A dense array in the layout of the tensor."""
    import numpy

    lib = library()
    if lib.wpk_layout_is_row_major(ctypes.byref(tensor._type.layout)):
        return array
    out = numpy.zeros(lib.wpk_tensor_type_bytes(ctypes.byref(tensor._type)), numpy.uint8)
    lib.wpk_tensor_pack(ctypes.byref(tensor._type), array.ctypes.data, out.ctypes.data)
    return out

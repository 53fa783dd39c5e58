# SPDX-License-Identifier: Apache-2.0
"""Arrays of others by DLPack, those of bf16 too, which NumPy does not know: here it has their bits, as uint16.

NumPy reads and writes all capsules, so that it calls each deleter, once. A capsule's element type alone is changed on the
way: from bf16 to uint16 before NumPy reads it, and back after NumPy wrote it. ::

    torch.bfloat16 ──capsule, bf16──▶ Lent ──capsule, uint16──▶ numpy.from_dlpack ──▶ kernel
    torch.from_dlpack ◀──capsule, bf16── Bfloat16Array ◀──capsule, uint16── numpy.ndarray.__dlpack__
"""
import ctypes

import numpy

UINT, BFLOAT = 1, 4  # DLDataTypeCode
READ_ONLY = 1        # in the flags of a versioned tensor


class _Tensor(ctypes.Structure):
    """DLTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned; a DLManagedTensor begins with its DLTensor."""
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_name, _pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
_name.argtypes, _name.restype = (ctypes.py_object,), ctypes.c_char_p
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def _opened(capsule):
    """The tensor in a capsule that nobody has taken yet, and whether it may be written to."""
    name = _name(capsule)
    if name == b"dltensor":
        return _Tensor.from_address(_pointer(capsule, name)), True
    whole = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
    return whole.tensor, not whole.flags & READ_ONLY


class Lent:
    """Another library's array, as NumPy can take it.

    Attributes
    ----------
    is_bfloat16, is_writeable : bool
        Once NumPy has taken it.
    """

    def __init__(self, given):
        self._given, self.is_bfloat16, self.is_writeable = given, False, True

    def __dlpack_device__(self):
        return self._given.__dlpack_device__()

    def __dlpack__(self, **options):
        try:
            capsule = self._given.__dlpack__(**options)
        except TypeError:  # a library of the time before versions
            capsule = self._given.__dlpack__()
        tensor, self.is_writeable = _opened(capsule)
        if tensor.code == BFLOAT:
            self.is_bfloat16, tensor.code = True, UINT
        return capsule


class Bfloat16Array(numpy.ndarray):
    """The bits of bf16, as uint16; others get bf16 by DLPack. Results of NumPy are plain arrays."""

    def __array_wrap__(self, array, context=None, return_scalar=False):
        array = array.view(numpy.ndarray)
        return array[()] if return_scalar else array

    def __dlpack__(self, **options):
        capsule = super().__dlpack__(**options)
        if self.dtype == numpy.uint16:
            _opened(capsule)[0].code = BFLOAT
        return capsule

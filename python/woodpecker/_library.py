# SPDX-License-Identifier: Apache-2.0
"""libwpk by ctypes: the structs of runtime/wpk.h and schema/tensor.h, and its functions."""
import ctypes
import os

from ._errors import error

RANK_MAX = 10
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool")


class Layout(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int), ("dim_count", ctypes.c_int), ("axis", ctypes.c_int * RANK_MAX),
                ("block_axis", ctypes.c_int), ("block", ctypes.c_int64), ("pad_before", ctypes.c_int64 * RANK_MAX),
                ("pad_after", ctypes.c_int64 * RANK_MAX)]


class TensorType(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("extent", ctypes.c_int64 * RANK_MAX),
                ("layout", Layout)]


class Argument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", TensorType)]


class TensorData(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int), ("cpus", ctypes.POINTER(ctypes.c_int))]


class Diag(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 512), ("file", ctypes.c_char * 128), ("field", ctypes.c_char * 128),
                ("line", ctypes.c_int), ("column", ctypes.c_int)]


_P = ctypes.c_void_p
_SIZE = ctypes.c_size_t
_DATA = ctypes.POINTER(TensorData)
_ARGUMENT = ctypes.POINTER(Argument)
_FUNCTIONS = {
    "wpk_open": (ctypes.c_int, [ctypes.c_char_p, _P, ctypes.POINTER(_P), ctypes.POINTER(Diag)]),
    "wpk_kernel_open": (ctypes.c_int, [ctypes.c_char_p, _P, ctypes.POINTER(_P), ctypes.POINTER(Diag)]),
    "wpk_kernel_close": (None, [_P]),
    "wpk_kernel_prepare": (ctypes.c_int, [_P, _DATA, _SIZE, ctypes.POINTER(Diag)]),
    "wpk_kernel_run": (ctypes.c_int, [_P, _P, _DATA, _SIZE, _DATA, _SIZE]),
    "wpk_kernel_input_count": (_SIZE, [_P]),
    "wpk_kernel_output_count": (_SIZE, [_P]),
    "wpk_kernel_constant_count": (_SIZE, [_P]),
    "wpk_kernel_input": (_ARGUMENT, [_P, _SIZE]),
    "wpk_kernel_output": (_ARGUMENT, [_P, _SIZE]),
    "wpk_kernel_constant": (_ARGUMENT, [_P, _SIZE]),
    "wpk_kernel_manifest": (ctypes.c_char_p, [_P]),
    "wpk_context_new": (ctypes.c_int, [ctypes.POINTER(ContextOptions), ctypes.POINTER(_P)]),
    "wpk_context_free": (None, [_P]),
    "wpk_context_trouble": (ctypes.c_char_p, [_P]),
    "wpk_model_open": (ctypes.c_int, [ctypes.c_char_p, _P, ctypes.POINTER(_P), ctypes.POINTER(Diag)]),
    "wpk_model_close": (None, [_P]),
    "wpk_model_input_count": (_SIZE, [_P]),
    "wpk_model_output_count": (_SIZE, [_P]),
    "wpk_model_shape_count": (_SIZE, [_P]),
    "wpk_model_step_count": (_SIZE, [_P, _SIZE]),
    "wpk_model_threads": (_SIZE, [_P]),
    "wpk_model_input": (_ARGUMENT, [_P, _SIZE, _SIZE]),
    "wpk_model_output": (_ARGUMENT, [_P, _SIZE, _SIZE]),
    "wpk_model_context_new": (ctypes.c_int, [_P, _SIZE, ctypes.POINTER(ContextOptions), ctypes.POINTER(_P)]),
    "wpk_model_context_free": (None, [_P]),
    "wpk_model_context_failure": (ctypes.c_char_p, [_P]),
    "wpk_model_run": (ctypes.c_int, [_P, _P, _SIZE, _P, _SIZE]),
    "wpk_tensor_type_bytes": (_SIZE, [ctypes.POINTER(TensorType)]),
    "wpk_tensor_pack": (None, [ctypes.POINTER(TensorType), _P, _P]),
    "wpk_tensor_unpack": (None, [ctypes.POINTER(TensorType), _P, _P]),
    "wpk_layout_is_row_major": (ctypes.c_bool, [ctypes.POINTER(Layout)]),
    "wpk_err_name": (ctypes.c_char_p, [ctypes.c_int]),
    "wpk_err_text": (ctypes.c_char_p, [ctypes.c_int]),
    "wpk_diag_format": (None, [ctypes.POINTER(Diag), ctypes.c_char_p, _SIZE]),
}
_loaded = None


def library():
    """The library: $WOODPECKER_LIBRARY, the one of this package, or the system's."""
    global _loaded
    if _loaded is None:
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libwpk.so.0")
        path = os.environ.get("WOODPECKER_LIBRARY") or (here if os.path.exists(here) else "libwpk.so.0")
        try:
            found = ctypes.CDLL(path)
        except OSError as reason:
            raise error("ENOENT", "libwpk cannot be loaded (%s); WOODPECKER_LIBRARY names it" % reason) from None
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
        _loaded = found
    return _loaded


def check(code, diag=None, text=""):
    """Raise the exception of a failure."""
    if code == 0:
        return
    lib = library()
    if diag is not None and not text:
        line = ctypes.create_string_buffer(1024)
        lib.wpk_diag_format(diag, line, len(line))
        text = line.value.decode(errors="replace")
    raise error(lib.wpk_err_name(code).decode(), text or lib.wpk_err_text(code).decode())

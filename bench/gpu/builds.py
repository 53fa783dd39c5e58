#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time NVRTC: kernels that it compiles in a second of one core, to PTX and machine code for sm_90.

    build/tests/cuda_counts FILE STEM     writes STEM.cu, the first kernel that a search constructs
    bench/gpu/builds.py STEM.cu...
"""
import ctypes
import os
import sys
import time

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.deps/nvrtc/lib/libnvrtc.so.12")


def compile_cubin(nvrtc, text):
    """Compile the text; the size of its cubin."""
    options = (ctypes.c_char_p * 2)(b"--gpu-architecture=sm_90", b"--fmad=true")
    module, size = ctypes.c_void_p(), ctypes.c_size_t()
    for result in (nvrtc.nvrtcCreateProgram(ctypes.byref(module), text, b"kernel.cu", 0, None, None),
                   nvrtc.nvrtcCompileProgram(module, 2, options), nvrtc.nvrtcGetCUBINSize(module, ctypes.byref(size))):
        if result != 0:
            sys.exit("NVRTC error %d" % result)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(module))
    return size.value


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    nvrtc = ctypes.CDLL(LIBRARY)
    texts = []
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            texts.append((path, file.read()))
    compile_cubin(nvrtc, texts[0][1])  # the first call loads what all others find
    total = 0.0
    for path, text in texts:
        began = time.process_time()
        size = compile_cubin(nvrtc, text)
        seconds = time.process_time() - began
        total += seconds
        print("%s: %.3f s, a cubin of %d bytes" % (path, seconds, size))
    print("%.1f kernels a second of a core" % (len(texts) / total))


if __name__ == "__main__":
    main()

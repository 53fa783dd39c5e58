#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The declarations of common/ agree with NVIDIA's cuda.h and nvml.h, and cublasLt.h and cudnn.h if those are installed,
too; one that is changed does not."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLACES = (os.path.join(ROOT, ".deps/nvrtc/include"), "/usr/local/cuda/include")
NAME = "declarations"
TOOLKITS = (os.path.join(ROOT, ".deps/gpu-vendors/include"), "/usr/local/cuda/include", "/usr/local/include", "/usr/include")
TOOLKIT = next((place for place in TOOLKITS
                if all(os.path.exists(os.path.join(place, name)) for name in ("cublasLt.h", "cudnn.h"))), None)

# (what stands in one of the headers, what stands there instead)
HEADERS = ("common/cuda_calls.h", "common/nvml_calls.h", "common/cublaslt_calls.h", "common/cudnn_calls.h")
WRONG = (("X(cuInit, (unsigned flags))", "X(cuInit, (size_t flags))"),
         ("(uint64_t address))", "(int address))"),
         ("void **parameters,", "void *parameters,"),
         ("unsigned shared_bytes;", "uint64_t shared_bytes;"),
         ("    void **extra;\n    void *kernel;", "    void *kernel;\n    void **extra;"),
         ("X(ILLEGAL_ADDRESS, 700)", "X(ILLEGAL_ADDRESS, 702)"),
         ("WPK_CUDA_DEVICE_SM_COUNT = 16", "WPK_CUDA_DEVICE_SM_COUNT = 17"),
         ("unsigned long long *reasons", "unsigned *reasons"),
         ("X(HwThermalSlowdown, 0x40)", "X(HwThermalSlowdown, 0x20)"))
WRONG_VENDORS = (("uint64_t rows, uint64_t columns", "int rows, uint64_t columns"),
                 ("int count_max,", "size_t count_max,"),
                 ("X(CUBLAS_COMPUTE_32F_PEDANTIC, 69)", "X(CUBLAS_COMPUTE_32F_PEDANTIC, 68)"),
                 ("uint64_t data[8]", "uint64_t data[9]"),
                 ("int64_t count_max, int64_t *count", "int count_max, int64_t *count"),
                 ("X(CUDNN_ATTR_TENSOR_STRIDES, 903)", "X(CUDNN_ATTR_TENSOR_STRIDES, 902)"))


def compiles(compiler, include, changed):
    """The compiler's messages; changed: a folder whose headers count."""
    args = [compiler, "-std=c++17", "-fsyntax-only", "-I" + changed, "-isystem", include,
            *(("-isystem", TOOLKIT) if TOOLKIT else ()),
            os.path.join(ROOT, "tests/cuda_header.cc")]
    return subprocess.run(args, capture_output=True, text=True, check=False)


def main():
    print("[ RUN      ] " + NAME)
    include = next((place for place in PLACES
                    if all(os.path.exists(os.path.join(place, name)) for name in ("cuda.h", "nvml.h"))), None)
    compiler = shutil.which("c++") or shutil.which("g++")
    if include is None or compiler is None:
        reason = "no C++ compiler" if compiler is None else "there is no cuda.h or no nvml.h: make setup-gpu brings it"
        print("[  SKIPPED ] %s: %s\n[  SKIPPED ] 1 test(s), listed below:" % (NAME, reason))
        return 77
    failures = []
    done = compiles(compiler, include, ROOT)
    if done.returncode != 0:
        failures.append(done.stderr)
    for right, wrong in WRONG + (WRONG_VENDORS if TOOLKIT else ()):
        found = False
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "common"))
            for header in HEADERS:
                with open(os.path.join(ROOT, header), encoding="utf-8") as file:
                    text = file.read()
                found = found or right in text
                with open(os.path.join(folder, header), "w", encoding="utf-8") as file:
                    file.write(text.replace(right, wrong))
            if not found:
                failures.append("no header has '%s'" % right)
            elif compiles(compiler, include, folder).returncode == 0:
                failures.append("'%s' passes for '%s'" % (wrong, right))
    print("\n".join(failures))
    print("[  FAILED  ] 1 test(s), listed below: " + NAME if failures else "[  PASSED  ] 1 test(s).")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

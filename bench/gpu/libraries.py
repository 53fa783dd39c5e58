# SPDX-License-Identifier: Apache-2.0
"""The folders of NVIDIA's libraries among a Python's packages: NVRTC, cuBLASLt, cuDNN. As a program it prints them as a
search path."""
import glob
import os
import sys


def folders(path):
    """nvidia/NAME/lib of each folder of packages, the newest CUDA's last."""
    return [found for package in path for found in sorted(glob.glob(os.path.join(package or ".", "nvidia", "*", "lib")))]


if __name__ == "__main__":
    print(":".join(folders(sys.path)))

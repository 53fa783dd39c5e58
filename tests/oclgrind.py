#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nests of GPUs' candidates on Oclgrind, an OpenCL device that looks for races: oclgrind.py BINDINGS."""
import os
import re
import shutil
import subprocess
import sys

NAME = "candidates_on_oclgrind"
COMPLAINT = re.compile(r"data race|Invalid|OCLGRIND FATAL")


def main():
    print("[ RUN      ] " + NAME)
    if shutil.which("oclgrind") is None:
        print("[  SKIPPED ] %s: there is no oclgrind: deploy/setup.sh test installs it\n"
              "[  SKIPPED ] 1 test(s), listed below:" % NAME)
        return 77
    done = subprocess.run(["oclgrind", "--data-races", "--max-errors", "3", sys.argv[1], "test_opencl_*"],
                          env=dict(os.environ, WPK_TEST_TERMS="64"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    if "ASan runtime does not come first" in done.stdout:
        print("[  SKIPPED ] %s: oclgrind and ASan both come first\n[  SKIPPED ] 1 test(s), listed below:" % NAME)
        return 77
    passed = done.returncode == 0 and "[  PASSED  ] 2 test(s)" in done.stdout
    if not passed or COMPLAINT.search(done.stdout):
        print(done.stdout[-6000:])
        print("[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] " + NAME)
        return 1
    print("[  PASSED  ] 1 test(s).")
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""--help of each program given: its usage, and nothing is made or measured."""
import os
import subprocess
import sys
import tempfile

for program in map(os.path.abspath, sys.argv[1:]):
    name = os.path.basename(program)
    for word, code in (("--help", 0), ("-h", 0), ("--nosuch", 2)):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([program, word], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, check=False, timeout=60)
            said = done.stdout if code == 0 else done.stderr
            assert done.returncode == code, (name, word, done)
            assert "usage: %s" % name in said and said.count("\n") > 1, (name, word, done)
            assert not os.listdir(directory), (name, word, "it makes something")

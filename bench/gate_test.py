# SPDX-License-Identifier: Apache-2.0
"""bench-gate sees a hash that differs, and refuses a file of another Halide. Arguments: bench-gate, the job file, the
gate's file."""
import os
import subprocess
import sys
import tempfile

PROGRAM, OPS, GATE = sys.argv[1:]
SAME, DIFFERENT, NOT_COMPARED = 0, 1, 2


def run(text, *options):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "gate.txt")
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return subprocess.run([PROGRAM, *options, OPS, path], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=240)


def expect(done, code, *words):
    assert done.returncode == code, (code, done)
    for word in words:
        assert word in done.stdout + done.stderr, (word, done)


with open(GATE, encoding="ascii") as gate:
    HEAD, *LINES = gate.read().splitlines(keepends=True)
WHOLE = HEAD + "".join(LINES)
FIRST = next(i for i, line in enumerate(LINES) if line.startswith("c8 "))
NUMBER = FIRST + 2

expect(run(WHOLE, "--only", "c8", "--count", "1"), SAME, "1 candidates, 1 the same, 0 differ")

WORDS = LINES[FIRST].split(" ")
for column, name in ((3, "schedule"), (4, "object"), (5, "prepare")):
    other = list(WORDS)
    other[column] = "0" * 64
    expect(run(HEAD + " ".join(other)), DIFFERENT,
           ":2: c8 any 1: %s differs: %s" % (name, " ".join(WORDS[6:]).rstrip()), "0 the same, 1 differ")

# A candidate that cannot be read any more has nothing in common with its line.
expect(run(HEAD + " ".join(WORDS[:6]) + " cpu-3 algorithm=none layout=asis\n"), DIFFERENT,
       ":2: c8 any 1: schedule object prepare differs", "algorithm=none")

expect(run(WHOLE, "--schedule", str(NUMBER)), SAME, "wpk-schedule 2\n", "\nprogram\n")
expect(run(WHOLE, "--schedule", "1"), NOT_COMPARED, "no candidate in line 1")
expect(run(HEAD.replace("halide ", "halide 0.") + "".join(LINES)), NOT_COMPARED, "halide 0.", "gate.txt:1")
expect(run(HEAD + "c8 any\n"), NOT_COMPARED, "gate.txt:2")
expect(run(WHOLE, "--only", "c99"), NOT_COMPARED, "no such candidates")

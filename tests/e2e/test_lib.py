# SPDX-License-Identifier: Apache-2.0
"""Tests of lib.py, which the other tests depend on."""
import sys

from lib import Process, check, main

LINES = 100000


def test_looking_at_a_program_takes_none_of_its_lines(box):
    source = "import os\nfor number in range(%d): os.write(2, b'line %%d\\n' %% number)" % LINES
    program = Process(box, [sys.executable, "-c", source])
    looks = 0
    while program.note() is None:
        said = program.text(program.err)
        looks += 1
        check(said == whole(said.count("\n")) + said.rpartition("\n")[2], "nothing is mixed", said[-200:])
    check(looks > 2 and program.text(program.err) == whole(LINES), "every line is there", looks)


def whole(lines):
    return "".join("line %d\n" % number for number in range(lines))


if __name__ == "__main__":
    main(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ninja and says how far it is.

    deploy/build.py DIRECTORY [TARGET...]

On a terminal one line is redrawn; elsewhere there is a line now and then. What a step prints, such
as a compiler's errors, is passed on. Nothing to do: nothing is said.
"""
import os
import re
import shutil
import subprocess
import sys
import time

PAUSE_S = 15  # between two lines where the output is no terminal
STEP = re.compile(r"^\[(\d+)/(\d+)\] ")
NOISE = re.compile(r"^ninja: (Entering directory|no work to do)")


def duration(seconds):
    return "%d s" % seconds if seconds < 60 else "%d min %02d s" % (seconds // 60, seconds % 60)


class Line:
    """The progress, on standard error."""

    def __init__(self, terminal):
        self.terminal = terminal
        self.began = time.monotonic()
        self.said = None  # when; None: nothing yet

    def show(self, done, total):
        now = time.monotonic()
        text = "make: building, %d of %d" % (done, total)
        if done > 10:
            text += ", about %s left" % duration((now - self.began) / done * (total - done))
        if self.terminal:
            columns = shutil.get_terminal_size().columns
            sys.stderr.write("\r\033[K" + text[:columns - 1])
        elif self.said is None or now - self.said >= PAUSE_S:
            sys.stderr.write(text + "\n")
        else:
            return
        sys.stderr.flush()
        self.said = now

    def clear(self):
        if self.terminal and self.said is not None:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def main(directory, *targets):
    line = Line(sys.stderr.isatty())
    env = dict(os.environ, NINJA_STATUS="[%f/%t] ")  # what STEP matches
    if line.terminal:
        env["CLICOLOR_FORCE"] = "1"
    with subprocess.Popen(["ninja", "-C", directory, *targets], env=env, text=True, errors="replace",
                          stdout=subprocess.PIPE) as ninja:
        for text in ninja.stdout:
            step = STEP.match(text)
            if step:
                line.show(int(step.group(1)), int(step.group(2)))
            elif not NOISE.match(text):
                line.clear()
                sys.stderr.write(text)
    line.clear()
    return ninja.returncode


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

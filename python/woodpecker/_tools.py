# SPDX-License-Identifier: Apache-2.0
"""wpkctl as a child: where it is, and how it is run, shown and stopped."""
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading

from ._errors import InvalidInput, NotFound, WoodpeckerError

_EXIT = {2: InvalidInput}
_LOG = logging.getLogger("woodpecker")
STOP_S = 600  # for the end of a search that was stopped: each operator still gets a kernel


def program(name="wpkctl"):
    """The path of one of Woodpecker's programs: that of $WPK_BIN, else of the package woodpecker_tune, else of PATH.

    Raises
    ------
    NotFound
    """
    folder, package = os.environ.get("WPK_BIN"), _package()
    if folder is None and package is not None:
        folder = package.folder()
    found = shutil.which(os.path.join(folder, name)) if folder else shutil.which(name)
    if found is None:
        raise NotFound("%s is not in %s: plans are run here, not tuned; pip install 'woodpecker[tune]'" %
                       (name, folder or "PATH"), "ENOENT")
    return found


def _package():
    try:
        import woodpecker_tune
    except ImportError:
        return None
    return woodpecker_tune


def environment():
    """The environment of programs: at the end of PATH the linker of ziglang, if that is installed."""
    package = _package()
    if package is None:
        return dict(os.environ)
    path = os.environ.get("PATH", os.defpath)
    return {**os.environ, "PATH": path + os.pathsep + package.linker_folder(), "WPK_PYTHON": sys.executable}


class _Progress:
    """Shows the lines of a child that works: a bar of tqdm if that is installed, else one line of a terminal."""

    def __init__(self, shown):
        self.lines, self.bar = [], None
        self.terminal = shown and sys.stderr.isatty()
        try:
            from tqdm.auto import tqdm
            self.bar = tqdm(bar_format="{desc} [{elapsed}]") if shown else None
        except ImportError:
            pass

    def say(self, line):
        self.lines = self.lines[-40:] + [line]
        _LOG.debug("%s", line)
        if self.bar is not None:
            self.bar.set_description_str(line[:100])
        elif self.terminal:
            print("\r\033[K" + line[:100], end="", file=sys.stderr, flush=True)

    def end(self):
        if self.bar is not None:
            self.bar.close()
        elif self.terminal:
            print(file=sys.stderr)


class Interrupted(WoodpeckerError):
    """Ctrl-C ended a search before every operator had a kernel; history keeps what was measured."""


def call(*words, shown=False):
    """Run wpkctl to its end. Ctrl-C stops its search; a second one ends it at once.

    Returns
    -------
    str
        Its standard output.

    Raises
    ------
    WoodpeckerError
        With what it says, if it fails.
    """
    _LOG.info("wpkctl %s", " ".join(map(os.fspath, words)))
    child = subprocess.Popen([program(), *map(os.fspath, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
                             env=environment())
    progress, out, interrupted = _Progress(shown), [], False
    readers = [threading.Thread(target=lambda: out.append(child.stdout.read()), daemon=True),
               threading.Thread(target=lambda: [progress.say(line.rstrip()) for line in child.stderr], daemon=True)]
    for reader in readers:
        reader.start()
    try:
        child.wait()
    except KeyboardInterrupt:
        interrupted = True
        child.send_signal(signal.SIGINT)
        child.wait(STOP_S)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        for reader in readers:
            reader.join(5)
        child.stdout.close()
        child.stderr.close()
        progress.end()
    if child.returncode != 0 and interrupted:
        raise Interrupted("interrupted; what was measured is kept, and the next search goes on from it", "EINTR")
    if child.returncode != 0:
        said = [line for line in progress.lines if line.startswith("wpkctl: ")] or progress.lines[-1:]
        text = "\n".join(line[len("wpkctl: "):] if line.startswith("wpkctl: ") else line for line in said)
        raise _EXIT.get(child.returncode, WoodpeckerError)(text or "wpkctl ends with %d" % child.returncode, "EINVAL")
    return out[0]


def call_json(*words, shown=False):
    """The same; what it prints as JSON."""
    return json.loads(call(*words, "--json", shown=shown))


def budget(seconds, candidates, threads, data, server=None, accuracy=None):
    """The options of a search."""
    words = []
    for option, value in (("seconds", seconds), ("candidates", candidates), ("threads", threads), ("data", data),
                          ("server", server), ("accuracy", accuracy)):
        if value is not None:
            words += ["--" + option, str(value)]
    return words

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages of the committed tree: built twice they are the same, lintian finds nothing, and piuparts installs
and purges them without a trace (`make test-packages`, as root; half an hour).

    tests/packages.py FOLDER

The second build has another folder, umask, time zone, locale and number of jobs. FOLDER keeps the packages.
"""
import glob
import hashlib
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
passed = failed = 0


def check(name, problem):
    global passed, failed  # pylint: disable=global-statement
    passed, failed = passed + (not problem), failed + bool(problem)
    print("%s %s%s" % ("FAIL" if problem else "ok", name, ": " + problem if problem else ""), flush=True)


def run(words, **more):
    """The end of what a program said, if it failed."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    return "" if done.returncode == 0 else "%s\n%s" % (done.returncode, done.stdout[-3000:])


def build(folder, **environment):
    return run(["%s/deploy/packages.sh" % ROOT, folder], env={**os.environ, **environment})


def hashes(folder):
    found = {}
    for path in glob.glob(folder + "/*.deb"):
        with open(path, "rb") as package:
            found[os.path.basename(path)] = hashlib.sha256(package.read()).hexdigest()
    return found


def main():
    folder = os.path.abspath(sys.argv[1])
    os.makedirs(folder, exist_ok=True)
    for path in glob.glob(folder + "/*.deb"):
        os.unlink(path)
    problem = build(folder)
    check("packages are built", problem)
    if problem:
        sys.exit("0 passed, 1 failed, 0 skipped")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="another-folder-") as other:
        old = os.umask(0o077)
        check("packages are built again", build(other + "/out", TMPDIR=other, TZ="Asia/Kathmandu", LC_ALL="C",
                                                 DEB_BUILD_OPTIONS="parallel=1", HOME=other))
        os.umask(old)
        first, second = hashes(folder), hashes(other + "/out")
        differ = [name for name in {**first, **second} if first.get(name) != second.get(name)]
        check("both are the same", "no packages" if not first else ", ".join(differ))
    packages = sorted(glob.glob(folder + "/*.deb"))
    check("lintian finds nothing", run(["lintian", "--fail-on", "error,warning", *packages]))
    check("piuparts finds nothing", run(["piuparts", "--distribution", "bookworm", "--no-eatmydata", "--skip-logrotatefiles-test",
                                         *packages]))
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

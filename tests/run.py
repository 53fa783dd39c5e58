#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build every variant, run its tests, and count test cases.

    tests/run.py [VARIANT...]      plain clang asan tsan; all of them by default

The last line is `N passed, N failed, N skipped`; the exit code is 1 if anything failed. A cmocka
binary counts as its test cases, any other program as one.
"""
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# name: (compilers, meson options, meson test options)
# Warnings are errors in plain and clang; under sanitizers gcc warns of what is not there.
# TSan runs what has threads or talks to them. Everything end to end runs plain and under ASan.
VARIANTS = {
    "plain": (("gcc", "g++"), ["-Dwerror=true"], []),
    "clang": (("clang", "clang++"), ["-Dwerror=true"], ["--no-suite", "e2e", "--no-suite", "tidy"]),
    "asan": (("gcc", "g++"),
             ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Doptimization=1"],
             ["--no-suite", "tidy", "-t", "4"]),
    "tsan": (("gcc", "g++"), ["-Db_sanitize=thread", "-Db_lundef=false", "-Doptimization=1"],
             ["--suite", "common", "--suite", "runtime", "--suite", "worker",
              "--suite", "coordinator", "--suite", "sim", "-t", "4"]),
}

# What ASan keeps of freed memory counts as the daemons', where a test bounds it.
SANITIZER_ENV = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_stack_use_after_return=1:quarantine_size_mb=32",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "LSAN_OPTIONS": "print_suppressions=0:suppressions=" + os.path.join(ROOT, "tests/lsan.supp"),
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:suppressions="
                    + os.path.join(ROOT, "tests/tsan.supp"),
}

CASES = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) +\] (\d+) test\(s\)", re.MULTILINE)


def build(name):
    """Configure and build one variant; returns None, or the output that says why not."""
    compilers, options, _ = VARIANTS[name]
    directory = os.path.join(ROOT, "build-test", name)
    env = dict(os.environ, CC=compilers[0], CXX=compilers[1])
    configured = os.path.exists(os.path.join(directory, "build.ninja"))
    # Reconfiguring finds wheels that came after the first time.
    setup = ["meson", "setup", directory, ROOT] + options + (["--reconfigure"] if configured else [])
    for command in (setup, ["ninja", "-C", directory]):
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
        if done.returncode != 0:
            return done.stdout
    return None


def count_cases(entry):
    """Passed, failed and skipped cases of one test program."""
    output = (entry.get("stdout") or "") + "\n" + (entry.get("stderr") or "")
    result = entry["result"]
    counts = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    for kind, number in CASES.findall(output):
        counts[kind] += int(number)
    if result in ("OK", "EXPECTEDFAIL"):
        if not any(counts.values()):
            counts["PASSED"] = 1
    elif result == "SKIP":
        if not any(counts.values()):
            counts["SKIPPED"] = 1
    elif counts["FAILED"] == 0:
        # Crashed, timed out, or a leak found at exit: the cases before it do not make it pass.
        counts["FAILED"] = 1
    return counts


def run(name):
    """Test one variant; returns its counts and prints what failed."""
    directory = os.path.join(ROOT, "build-test", name)
    log = os.path.join(directory, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)
    env = dict(os.environ, **SANITIZER_ENV)
    done = subprocess.run(
        ["meson", "test", "-C", directory, "--no-rebuild", "--num-processes", "2",
         "--print-errorlogs"] + VARIANTS[name][2],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    total = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                entry = json.loads(line)
                counts = count_cases(entry)
                for kind, number in counts.items():
                    total[kind] += number
                if counts["FAILED"]:
                    print("--- %s: %s (%s)" % (name, entry["name"], entry["result"]))
                    print(((entry.get("stdout") or "") + (entry.get("stderr") or ""))[-6000:])
    if done.returncode != 0 and total["FAILED"] == 0:
        print(done.stdout[-6000:])
        total["FAILED"] = 1
    return total


def main():
    names = sys.argv[1:] or list(VARIANTS)
    unknown = [name for name in names if name not in VARIANTS]
    if unknown:
        sys.exit("no such variant: %s; there are: %s" % (" ".join(unknown), " ".join(VARIANTS)))
    total = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    for name in names:
        started = time.monotonic()
        why = build(name)
        if why is not None:
            print("--- %s: does not build" % name)
            print(why[-8000:])
            counts = {"PASSED": 0, "FAILED": 1, "SKIPPED": 0}
        else:
            counts = run(name)
        for kind, number in counts.items():
            total[kind] += number
        print("%-6s %5d passed, %d failed, %d skipped in %.0f s" % (
            name + ":", counts["PASSED"], counts["FAILED"], counts["SKIPPED"],
            time.monotonic() - started), flush=True)
    print("%d passed, %d failed, %d skipped" % (total["PASSED"], total["FAILED"], total["SKIPPED"]))
    sys.exit(1 if total["FAILED"] else 0)


if __name__ == "__main__":
    main()

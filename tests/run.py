#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds what the tests need, runs them side by side, and counts test cases.

    tests/run.py [test|all|plain] [WORD...]

    test    each test once, where it finds most (the default; `make test`)
    all     the whole matrix, with all seeds (`make test-all`)
    plain   the tests of the plain build (`make check`)
    WORD    only tests whose name contains one of the words

Variants are built at low priority while the tests of those that are there run. A failure prints the
test's output at once. At the end come the reasons of what was skipped, the slowest tests, and as the
last line `N passed, N failed, N skipped`; the exit code is 1 if anything failed. A cmocka binary
counts as its test cases, any other program as one.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORES = len(os.sched_getaffinity(0))

# A test that hangs is ended after its own limit times this, so that a slow machine fails none; the seconds are
# those of Patience, so that a busy one fails none either.
PATIENCE = 4
GRACE_S = 20  # of a test that is told to end
MEMORY = "/dev/shm"  # where files cost no disk's time, and tests wait for no sync
MEMORY_FREE_MIN = 2 << 30  # bytes; a whole run has had 300 MB at a time
LONG = 20  # times as patient, where tests do more than in `make test`
PROGRESS_S = 15  # between two progress lines where the output is no terminal
SLOWEST = 15
COSTS = os.path.join(ROOT, "build-test/costs.json")  # of each test's last run: [seconds, of CPU]

# Tests that run at a time. End-to-end tests wait much: for processes, timers, and each other's turn at
# timing kernels.
SLOTS = 3 * CORES

# Lines for a sanitizer's report, and no more: debug information costs a third of compiling. The C++ files call Halide,
# which has no sanitizer: to optimize them takes longer than all that they ever do.
SANITIZED = ["-Dwerror=true", "-Db_lundef=false", "-Doptimization=1", "-Ddebug=false", "-Dc_args=-g1",
             "-Dcpp_args=-g1 -O0"]

# name: (directory, compilers, meson options). `make` has configured the plain one.
VARIANTS = {
    "plain": ("build", (), []),
    "gcc": ("build-test/gcc", ("gcc", "g++"), ["-Dwerror=true"]),
    "asan": ("build-test/asan", ("gcc", "g++"), ["-Db_sanitize=address,undefined"] + SANITIZED),
    "tsan": ("build-test/tsan", ("gcc", "g++"), ["-Db_sanitize=thread"] + SANITIZED),
    "clang": ("build-test/clang", ("clang", "clang++"),
              ["-Dwerror=true", "-Doptimization=0", "-Ddebug=false"]),
}

# Stands for a suite: programs that cannot start a thread, as those built under ASan show.
SINGLE_THREADED = "single-threaded"

# set: {variant: (suites that run in it or None for all, suites that do not)}, in the order of
# building. None in place of the pair: the variant is compiled, not linked. The suite "numeric" is long
# arithmetic on a few arrays, in which ASan finds nothing.
SETS = {
    "test": {"plain": ({"deploy", "tidy", "e2e_plain", "numeric"}, set()),
             "asan": (None, {"deploy", "e2e_plain", "numeric", "sim_seeds", "tidy"}),
             "tsan": ({"common", "runtime", "worker", "coordinator"}, {SINGLE_THREADED}),
             "clang": None},
    "all": {"gcc": (None, set()),
            "asan": (None, {"oracle", "tidy"}),
            "tsan": ({"common", "runtime", "worker", "coordinator", "sim"}, set()),
            "clang": (None, {"e2e", "tidy"})},
    "plain": {"plain": (None, set())},
}

# set: what its tests find in the environment: all mutants are built; each strategy is killed 20 times; 90 candidates of
# each program for GPUs, in all orders of blocks; hundreds of random operators and graphs; 200 faults of a wpkd whose
# history PostgreSQL keeps; eight kills of a job; all draws of tests/share.h.
SET_ENV = {"all": {"WPK_MUTANTS": "long", "WPK_ORACLE": "long", "WPK_ASK_KILLS": "20", "WPK_TEST_GPU_CANDIDATES": "90",
                   "WPK_LOG_FAULTS": "200", "WPK_KILLS": "8", "WPK_TEST_DRAWS": "all"}}

# Freed memory that ASan keeps counts as the daemons' memory, where a test bounds it.
TEST_ENV = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_stack_use_after_return=1:quarantine_size_mb=32",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "LSAN_OPTIONS": "print_suppressions=0:suppressions=" + os.path.join(ROOT, "tests/lsan.supp"),
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:suppressions="
                    + os.path.join(ROOT, "tests/tsan.supp"),
    "MALLOC_PERTURB_": "85",
    "OPENBLAS_NUM_THREADS": "1",  # of NumPy, whose threads spin
}

CASES = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) +\] (\d+) test\(s\)", re.MULTILINE)
SKIPPED_CASE = re.compile(r"^\[  SKIPPED +\] (\w+)(?:: (.*))?$")


class Patience:
    """A clock of what one thread gets: where more threads want to run than there are cores, a second counts as the
    share of a core that each of them has."""

    def __init__(self):
        self.seconds = 0.0
        self.looked = time.monotonic()

    def look(self):
        with open("/proc/loadavg", encoding="utf-8") as file:
            runnable = int(file.read().split()[3].split("/")[0])
        now = time.monotonic()
        self.seconds += (now - self.looked) * min(1, CORES / max(runnable, 1))
        self.looked = now
        return self.seconds


class Test:
    """One program under one variant, and what became of it."""

    def __init__(self, variant, entry):
        self.variant = variant
        self.name = entry["name"]
        self.label = "%s %s" % (variant, entry["name"])
        self.entry = entry
        self.suites = {suite.split(":")[-1] for suite in entry["suite"]}
        self.limit = entry["timeout"] * PATIENCE * (LONG if "WPK_TEST_GPU_CANDIDATES" in os.environ else 1)
        self.seconds = self.cpu_seconds = 0.0
        self.counts = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
        self.output = self.ending = ""
        self.pid = 0
        self.began = 0.0  # by the clock of Patience
        self.overdue = False

    def end_if_overdue(self, seconds):
        """First as Ctrl-C does, so that the test clears up. `seconds`: of Patience's clock."""
        if seconds - self.began > self.limit:
            end_group(self.pid, signal.SIGINT if not self.overdue else signal.SIGKILL)
            self.overdue = True
            self.began += GRACE_S

    def run(self):
        env = dict(os.environ, **TEST_ENV, **self.entry["env"])
        began = time.monotonic()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(self.entry["cmd"], env=env, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, start_new_session=True,
                                       cwd=self.entry["workdir"] or os.path.join(
                                           ROOT, VARIANTS[self.variant][0]))
            self.pid = process.pid
            _, status, usage = os.wait4(process.pid, 0)
            self.pid = 0
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.monotonic() - began
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
            output.seek(0)
            self.output = output.read().decode(errors="replace")
        self.ending = ("no end in %d s" % self.limit if self.overdue
                       else "exit code %d" % process.returncode)
        self.count(process.returncode)

    def count(self, code):
        for kind, number in CASES.findall(self.output):
            self.counts[kind] += int(number)
        if code in (0, 77):
            if not any(self.counts.values()):
                self.counts["SKIPPED" if code else "PASSED"] = 1
        elif self.counts["FAILED"] == 0:
            # Crashed, timed out, or a leak found at exit: the cases before it do not make it pass.
            self.counts["FAILED"] = 1

    def skips(self):
        """(case, reason): what stands behind the name, or what was printed since the case began."""
        said, begun = [], False
        for line in self.output.splitlines():
            match = SKIPPED_CASE.match(line)
            if line.startswith("[====") and begun:
                return  # the summary names them again
            if line.startswith("[ RUN "):
                said, begun = [], True
            elif match:
                yield match.group(1), match.group(2) or " ".join(said) or "no reason given"
            else:
                said.append(line.strip())


def end_group(pid, number):
    """`pid`: 0 before it began and after it has ended."""
    try:
        if pid:
            os.killpg(pid, number)
    except ProcessLookupError:
        pass


def starts_threads(program):
    """Whether the program of the build under ASan calls what starts threads, ours or a library's; true if there is
    none."""
    nm = subprocess.run(["nm", "-D", "--undefined-only", os.path.join(ROOT, VARIANTS["asan"][0], program)],
                        capture_output=True, text=True, check=False)
    return nm.returncode != 0 or re.search(
        r" (pthread_create|uv_thread_create|uv_queue_work|nng_\w+|MHD_start_daemon)\b", nm.stdout) is not None


class Build:
    """One variant's directory; what it has to make follows from the tests that are run in it."""

    def __init__(self, name):
        directory, self.compilers, self.options = VARIANTS[name]
        self.name = name
        self.directory = os.path.join(ROOT, directory)
        self.cpu_seconds = 0.0

    def call(self, *command):
        """Run it at low priority: the cores belong to the tests first. Raises with the output. A ccache that is empty
        need not run the preprocessor."""
        env = dict(os.environ, CCACHE_DEPEND="1", **dict(zip(("CC", "CXX"), self.compilers)))
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, env=env, stdout=output, stderr=subprocess.STDOUT,
                                       preexec_fn=lambda: os.nice(5), cwd=ROOT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_seconds += usage.ru_utime + usage.ru_stime
            output.seek(0)
            text = output.read().decode(errors="replace")
        if process.returncode != 0:
            raise RuntimeError(text)
        return text

    def configure(self):
        configured = os.path.exists(os.path.join(self.directory, "build.ninja"))
        if self.compilers:
            # Reconfiguring finds wheels that came after the first time.
            self.call("meson", "setup", self.directory, ROOT, *self.options,
                      *(["--reconfigure"] if configured else []))
        elif not configured:
            raise RuntimeError("there is no %s: run make" % self.directory)

    def introspect(self, what):
        return json.loads(self.call("meson", "introspect", "--" + what, self.directory))

    def make(self, tests):
        """Build the targets that these tests need; without tests every object."""
        if not tests:
            targets = re.findall(r"^(\S+\.o): c", self.call(
                "ninja", "-C", self.directory, "-t", "targets", "all"), re.MULTILINE)
        else:
            files = {target["id"]: target["filename"] for target in self.introspect("targets")}
            wanted = {file for test in tests for part in test.entry["depends"] for file in files[part]}
            # Programs stand in a test's command too, those of other folders as arguments.
            wanted |= {word for test in tests for word in test.entry["cmd"]
                       if os.path.normpath(word).startswith(self.directory + "/")}
            targets = sorted(os.path.relpath(file, self.directory) for file in wanted)
        self.call("ninja", "-C", self.directory, "-j", str(CORES), *targets)


class Run:
    """All builds and tests of a set. The lock guards every field."""

    def __init__(self, variants, words):
        self.variants = variants
        self.words = words
        self.lock = threading.Condition()
        self.tests = []     # all there will be
        self.ready = []     # built, not begun
        self.running = []
        self.ended = []
        self.building = ""  # what the builder is at; None: it has ended
        self.builds = []
        self.broken = []    # variants that do not build
        self.quiet_since = time.monotonic()
        self.patience = Patience()
        try:
            with open(COSTS, encoding="utf-8") as file:
                self.costs = json.load(file)
        except (OSError, ValueError):
            self.costs = {}

    # ---- what builds

    def select(self, build):
        suites = self.variants[build.name]
        if suites is None:
            return []
        found = [Test(build.name, entry) for entry in build.introspect("tests")]
        if SINGLE_THREADED in suites[1]:
            for test in found:
                if not starts_threads(os.path.relpath(test.entry["cmd"][0], build.directory)):
                    test.suites.add(SINGLE_THREADED)
        return [test for test in found
                if (suites[0] is None or test.suites & suites[0]) and not test.suites & suites[1]
                and (not self.words or any(word in test.name for word in self.words))]

    def step(self, build, what, work):
        """Do a part of a build; False if it fails, which is told."""
        with self.lock:
            self.building = "%s %s" % (what, build.name)
        try:
            work()
        except RuntimeError as failure:
            with self.lock:
                self.broken.append(build.name)
                self.say("--- %s: does not build\n%s" % (build.name, str(failure)[-8000:]))
            return False
        return True

    def build(self):
        for name in self.variants:
            build = Build(name)
            if self.words and self.variants[name] is None:
                continue
            if self.step(build, "configuring", build.configure):
                self.builds.append(build)
        for build in self.builds:
            tests = self.select(build)  # of programs that those before have built
            with self.lock:
                self.tests += tests
            if not tests and self.variants[build.name] is not None:
                continue
            if self.step(build, "building", lambda: build.make(tests)):
                with self.lock:
                    self.ready += tests
                    # Longest first, so that no long one is left alone at the end. Before a test's first
                    # run its limit stands for its time, and among equals the order of its meson.build.
                    self.ready.sort(key=lambda test: -self.costs.get(test.label, [test.limit])[0])
                    self.lock.notify_all()
        with self.lock:
            self.building = None
            self.lock.notify_all()

    # ---- what tests

    def next_test(self):
        with self.lock:
            while True:
                for test in self.ready:
                    if test.entry["is_parallel"] or all(t.entry["is_parallel"] for t in self.running):
                        self.ready.remove(test)
                        self.running.append(test)
                        test.began = self.patience.seconds
                        return test
                if self.building is None and not self.ready:
                    return None
                self.lock.wait()

    def test(self):
        while True:
            test = self.next_test()
            if test is None:
                return
            test.run()
            with self.lock:
                self.running.remove(test)
                self.ended.append(test)
                if test.counts["FAILED"]:
                    self.say("--- %s failed after %.0f s: %s\n%s" % (
                        test.label, test.seconds, test.ending, test.output[-12000:]))
                self.lock.notify_all()

    # ---- what is said

    def say(self, text):
        if sys.stdout.isatty():
            sys.stdout.write("\r\033[K")
        print(text, flush=True)
        self.quiet_since = time.monotonic()

    def progress(self):
        with self.lock:
            failed = sum(1 for test in self.ended if test.counts["FAILED"])
            parts = ["[%d/%d]" % (len(self.ended), len(self.tests))]
            parts += ["%d failed;" % failed] if failed else []
            parts += [", ".join(test.label for test in self.running)]
            parts += ["(%s)" % self.building] if self.building else []
            line = " ".join(parts)
            if sys.stdout.isatty():
                sys.stdout.write("\r\033[K" + line[:os.get_terminal_size().columns - 1])
                sys.stdout.flush()
            elif time.monotonic() - self.quiet_since >= PROGRESS_S:
                self.say(line)

    def run(self):
        threads = [threading.Thread(target=self.build, daemon=True)]
        threads += [threading.Thread(target=self.test, daemon=True) for _ in range(SLOTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(1)
                with self.lock:
                    for test in self.running:
                        test.end_if_overdue(self.patience.seconds)
                    self.patience.look()
                self.progress()

    def remember_costs(self):
        self.costs.update((test.label, [round(test.seconds, 1), round(test.cpu_seconds, 1)])
                          for test in self.ended)
        os.makedirs(os.path.dirname(COSTS), exist_ok=True)
        with open(COSTS, "w", encoding="utf-8") as file:
            json.dump(self.costs, file, sort_keys=True)

    def report(self):
        """Skips, the slowest, each variant; returns the counts of all."""
        reasons = {}
        for test in self.ended:
            for case, reason in test.skips():
                reasons.setdefault("%s: %s: %s" % (test.name, case, reason), []).append(test.variant)
        for reason, variants in sorted(reasons.items()):
            self.say("skipped (%s) %s" % (", ".join(variants), reason))
        remedies = [match.group(0) for reason in reasons for match in re.finditer(r"make setup[\w-]*", reason)]
        for remedy in sorted(set(remedies)):
            self.say("skipped for want of a package: %d; `%s` installs it" % (remedies.count(remedy), remedy))
        self.say("slowest:  seconds  of cpu")
        for test in sorted(self.ended, key=lambda test: -test.seconds)[:SLOWEST]:
            self.say("         %8.1f %7.1f  %s" % (test.seconds, test.cpu_seconds, test.label))
        total = {"PASSED": 0, "FAILED": len(self.broken), "SKIPPED": 0}
        for build in self.builds:
            tests = [test for test in self.ended if test.variant == build.name]
            counts = {kind: sum(test.counts[kind] for test in tests) for kind in total}
            for kind, number in counts.items():
                total[kind] += number
            self.say("%-6s %5d passed, %d failed, %d skipped; %.0f s of cpu to build, %.0f to test" % (
                build.name + ":", counts["PASSED"], counts["FAILED"], counts["SKIPPED"],
                build.cpu_seconds, sum(test.cpu_seconds for test in tests)))
        return total


def put_files_in_memory():
    """Set TMPDIR, where programs can be run from memory, and there is enough."""
    try:
        room = os.statvfs(MEMORY)
    except OSError:
        return
    if room.f_bavail * room.f_frsize >= MEMORY_FREE_MIN and not room.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK):
        os.environ.setdefault("TMPDIR", MEMORY)


def main():
    put_files_in_memory()
    words = sys.argv[1:]
    name = words.pop(0) if words and words[0] in SETS else "test"
    os.environ.update(SET_ENV.get(name, {}))
    began = time.monotonic()
    run = Run(SETS[name], words)
    try:
        run.run()
    except KeyboardInterrupt:
        for test in run.running:
            end_group(test.pid, signal.SIGINT)
        run.say("interrupted")
        run.report()
        sys.exit(130)
    run.remember_costs()
    total = run.report()
    print("in %.0f s" % (time.monotonic() - began))
    print("%d passed, %d failed, %d skipped" % (total["PASSED"], total["FAILED"], total["SKIPPED"]))
    sys.exit(1 if total["FAILED"] else 0)


if __name__ == "__main__":
    main()

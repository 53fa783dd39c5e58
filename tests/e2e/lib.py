# SPDX-License-Identifier: Apache-2.0
"""Shared by the end-to-end tests: a sandbox for one test, and looking after processes.

A test is a function test_*(box). main() runs them all, each in a sandbox of its own, and counts in
the words of cmocka, so that run.py adds them up. A test that finds a process of its own left running
has failed.
"""
import atexit
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

BIN = os.environ.get("WPK_BIN", os.path.join(os.path.dirname(__file__), "../../build/bin"))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Limits in seconds only end what hangs: each may last so many times as long, on a slow machine or a
# busy one.
PATIENCE = 5

# An operator that is tuned in seconds, and still has something to choose: a convolution with a
# window of one, of which a candidate is built in a third of the time that one of CONVOLUTION takes.
SMALL_OP = {
    "name": "small",
    "op": "Y[n,k,y,x] = relu(sum(c) X[n,c,y,x] * W[k,c] + B[k])",
    "tensors": {"X": "f32[1,8,12,12]", "W": "f32[8,8]", "B": "f32[8]", "Y": "f32[1,8,12,12]"},
    "constants": ["W", "B"],
}

# Pins under which every schedule of SMALL_OP is legal for an odd multiple of its rows and of its columns, too:
# tiles that divide both, and lanes that both spaces have.
SCALABLE = {"layout": "staged", "Y.tile.x": "4"}

# With a border and several algorithms, for tests of kernels; and for those that have to meet a candidate
# at work.
CONVOLUTION = {
    "name": "small",
    "op": "Y[n,k,y,x] = relu(sum(c,r,s) X[n,c,y+r-1,x+s-1] * W[k,c,r,s] + B[k])",
    "tensors": {"X": "f32[1,16,12,12]", "W": "f32[16,16,3,3]", "B": "f32[16]", "Y": "f32[1,16,12,12]"},
    "constants": ["W", "B"],
}


class Failure(Exception):
    """The test found something wrong."""


class Skip(Exception):
    """The test cannot run here."""


def check(condition, message, *details):
    if not condition:
        # Clipped: a kernel's schedule would push everything else out of a log.
        raise Failure("\n".join([message] + [str(d)[:2000] for d in details]))


def small_job(**changes):
    job = {"name": "e2e", "ops": [dict(SMALL_OP)], "target": {"kind": "cpu", "threads": 1},
           "search": {"strategy": "random", "seed": 1}, "budget": {"candidates": 4, "seconds": 120}}
    job.update(changes)
    return job


def stat_of(pid):
    """(parent, start time, name) of a process, or None."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            text = file.read()
        head, tail = text[:text.rindex(")")], text[text.rindex(")") + 2:].split()
        return None if tail[0] == "Z" else (int(tail[1]), tail[19], head[head.index("(") + 1:])
    except (OSError, ValueError):
        return None


# A kernel may be built without it.
LISTS_CHILDREN = os.path.exists("/proc/self/task/%d/children" % os.getpid())


def children(pid):
    """Of each of its threads. To look at all processes instead costs milliseconds, each time."""
    found = []
    if not LISTS_CHILDREN:
        return [int(entry) for entry in os.listdir("/proc")
                if entry.isdigit() and (stat_of(int(entry)) or (0,))[0] == pid]
    try:
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, thread), encoding="ascii") as file:
                found += [int(child) for child in file.read().split()]
    except OSError:
        pass  # it has just ended
    return found


def descendants(root):
    """{pid: (start time, name)} of everything below `root`."""
    found = {}
    waiting = [root]
    while waiting:
        for pid in children(waiting.pop()):
            stat = stat_of(pid)
            if stat and pid not in found:
                found[pid] = (stat[1], stat[2])
                waiting.append(pid)
    return found


def kill(pid):
    """Kills `pid`; false where it has ended by itself since it was listed."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Process:
    """A program under test; remembers everything that ever ran below it."""

    def __init__(self, box, args, **options):
        self.box = box
        self.args = args
        self.seen = {}
        self.out = tempfile.TemporaryFile("ab+", dir=box.dir)
        self.err = tempfile.TemporaryFile("ab+", dir=box.dir)
        self.popen = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=self.out,
                                      stderr=self.err, env=box.env, cwd=box.dir, **options)
        box.processes.append(self)

    def note(self):
        self.seen.update(descendants(self.popen.pid))
        return self.popen.poll()

    def text(self, file):
        """The text that the program has written so far. pread: the program writes at the same descriptor's position."""
        content = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
        return content.decode(errors="replace")

    def wait(self, seconds=120):
        """Wait for the end; (exit code, stdout, stderr)."""
        end = time.monotonic() + seconds * PATIENCE
        pause = 0.01
        while self.note() is None:
            if time.monotonic() > end:
                raise Failure("%s does not end; so far:\n%s\n%s" % (
                    " ".join(self.args), self.text(self.out)[-2000:], self.text(self.err)[-4000:]))
            # The longer it lasts, the less often.
            pause = min(0.1, pause * 1.5)
            time.sleep(pause)
        return self.popen.returncode, self.text(self.out), self.text(self.err)

    def find(self, name, seconds=30):
        """The pid of the program `name` below this process, once it is there."""
        end = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < end:
            for pid, (start, found) in descendants(self.popen.pid).items():
                self.seen[pid] = (start, found)
                if found == name[:15]:
                    return pid
            check(self.popen.poll() is None, "%s ended before %s was seen" % (self.args, name),
                  self.text(self.err)[-2000:])
            time.sleep(0.01)
        raise Failure("there is no %s below %s" % (name, self.args))

    def left(self):
        """{pid: name} of the processes seen below it that still run."""
        alive = {}
        for pid, (start, name) in self.seen.items():
            stat = stat_of(pid)
            if stat and stat[1] == start:
                alive[pid] = name
        return alive


class Box:
    """A directory, an environment and processes that belong to one test."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="wpk-e2e-")
        self.data = os.path.join(self.dir, "data")
        # Candidates are timed for a third of the time: no test looks at how precise a time is.
        self.env = {"PATH": os.environ["PATH"], "HOME": self.dir, "LANG": "C.UTF-8", "WPK_TIME_MS": "6"}
        if "TMPDIR" in os.environ:
            self.env.update(TMPDIR=os.environ["TMPDIR"], XDG_RUNTIME_DIR=os.environ["TMPDIR"])
        for name, value in os.environ.items():
            if name.endswith("SAN_OPTIONS"):
                self.env[name] = value
        self.processes = []

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, content):
        """A file of text, bytes, or JSON; its path."""
        with open(self.path(name), "wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            elif isinstance(content, str):
                file.write(content.encode())
            else:
                file.write(json.dumps(content).encode())
        return self.path(name)

    def start(self, program, *args, **options):
        return Process(self, [os.path.join(BIN, program)] + [str(a) for a in args], **options)

    def run(self, program, *args, seconds=120):
        return self.start(program, *args).wait(seconds)

    def ctl(self, *args, want=0, seconds=120):
        """wpkctl, which has to end with exit code `want`; its standard output."""
        code, out, err = self.run("wpkctl", *args, seconds=seconds)
        check(code == want, "wpkctl %s ended with %s, not %s" % (" ".join(map(str, args)), code, want),
              out[-2000:], err[-4000:], self.logs())
        return out

    def logs(self):
        """The last words of the private processes, for a failure's message."""
        words = ""
        folder = os.path.join(self.data, "log")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                words += "--- %s\n%s\n" % (name, file.read()[-1500:])
        return words

    def expect_nothing_left(self, seconds=20):
        end = time.monotonic() + seconds * PATIENCE
        left = {}
        for process in self.processes:
            while True:
                left = process.left()
                if not left or time.monotonic() > end:
                    break
                time.sleep(0.05)
            check(not left, "processes were left behind by %s" % process.args, left)

    def close(self):
        for process in self.processes:
            process.note()
            if process.popen.poll() is None:
                process.popen.kill()
                process.popen.wait()
            process.out.close()
            process.err.close()
        # After a failure only: a test that passes has seen that nothing is left.
        for process in self.processes:
            for pid in process.left():
                kill(pid)
        shutil.rmtree(self.dir, ignore_errors=True)


class Kept:
    """Folders of a sandbox that are made once, by the first test that wants them: each works on a copy."""

    def __init__(self, make, *names):
        self.make = make
        self.names = names or ("data",)
        self.folder = None

    def place(self, box):
        """At box.path() of their names, of which that of a data directory is "data"."""
        if self.folder is None:
            self.make(box)
            self.folder = tempfile.mkdtemp(prefix="wpk-e2e-kept-")
            atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
            for name in self.names:
                shutil.copytree(box.path(name), os.path.join(self.folder, name),
                                ignore=shutil.ignore_patterns("log", "*.lock"))
        for name in self.names:
            shutil.rmtree(box.path(name), ignore_errors=True)
            shutil.copytree(os.path.join(self.folder, name), box.path(name))


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket: what curl --unix-socket does."""

    def __init__(self, path):
        super().__init__("localhost", timeout=30 * PATIENCE)
        self.unix_path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.unix_path)


def metric_of(page, name, value=None):
    """A number of the page of /metrics: that of a label's value, else the sum of all."""
    found = [float(number) for label, number in
             re.findall(r'^%s(?:\{[a-z]+="([^"]*)"\})? (\S+)$' % name, page, re.M) if value in (None, label)]
    check(found, "there is a metric %s of %s" % (name, value), page)
    return sum(found)


class Service:
    """A wpkd started by hand, with workers."""

    def __init__(self, box, data=None, options=()):
        self.box = box
        # A socket's path has to be short.
        self.socket = box.path("http.sock")
        self.url = "unix:" + self.socket
        self.listen = "ipc://" + box.path("workers.sock")
        self.wpkd = box.start("wpkd", "--data", data or box.data, "--http", self.url,
                              "--listen", self.listen, *options)
        self.workers = []
        wait_for("wpkd answers", self.healthy, 30)

    def healthy(self):
        code = self.wpkd.popen.poll()
        check(code is None, "wpkd ended with %s" % code, self.wpkd.text(self.wpkd.err)[-2000:])
        try:
            return self.ask("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def ask(self, method, path, body=None, kind="application/json"):
        """(status, parsed JSON or bytes, headers)"""
        connection = UnixConnection(self.socket)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.putrequest(method, path)
        if data is not None:
            connection.putheader("Content-Type", kind)
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders()
        try:
            connection.send(data or b"")
        except BrokenPipeError:
            pass  # refused by its headers: the answer is there before the body was taken
        answer = connection.getresponse()
        content = answer.read()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        if "json" in headers.get("content-type", ""):
            content = json.loads(content)
        return answer.status, content, headers

    def metric(self, name, value=None):
        return metric_of(self.ask("GET", "/metrics")[1].decode(), name, value)

    def add_worker(self, *options, device=("--cpu",)):
        worker = self.box.start("wpk-worker", *device, "--coordinator", self.listen, *options)
        self.workers.append(worker)
        return worker

    def stop(self):
        for process in self.workers + [self.wpkd]:
            if process.note() is None:
                process.popen.terminate()
            process.wait(30)


def wait_for(what, condition, seconds=60):
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise Failure("waited %d s in vain: %s" % (seconds, what))


def need(*programs):
    missing = [p for p in programs if not os.path.exists(os.path.join(BIN, p))]
    if missing:
        raise Skip("not built: " + ", ".join(missing))


def need_stalled_disk(box):
    """The path of what wpkd is to preload (stalled_disk.c)."""
    path = os.path.join(os.path.dirname(BIN), "tests/e2e/libstalled_disk.so")
    if not os.path.exists(path):
        raise Skip("not built: " + path)
    # ASan need not be loaded first: it wraps nothing that the library replaces for good.
    box.env["ASAN_OPTIONS"] = box.env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return path


def check_tune_json(text, artifacts=True):
    """The contract of `wpkctl tune --json`: these names, these types, nothing else. `artifacts`: they
    lie where this test can see them."""
    result = json.loads(text)
    check(set(result) == {"kernels", "seconds"}, "members of the result", sorted(result))
    check(isinstance(result["seconds"], (int, float)), "seconds", result["seconds"])
    time_names = {"median", "min", "mad"}
    for kernel in result["kernels"]:
        if kernel["artifact"] is None and "own" in kernel:
            # Ours stands beside a vendor that is served, for those who compare.
            own = kernel.pop("own")
            check(set(own) == {"provider", "algorithm", "time_ns", "artifact"}, "members of own", own)
            check(own["time_ns"]["median"] > 0 and own["artifact"], "own has an artifact", own)
        check(set(kernel) == {"name", "fingerprint", "binding", "provider", "algorithm", "time_ns", "baseline",
                              "timed", "speedup", "candidates", "accuracy", "conditions", "verified", "from_history",
                              "artifact", "schedule"}, "members of a kernel", sorted(kernel))
        check(re.fullmatch("[0-9a-f]{64}", kernel["fingerprint"]), "fingerprint", kernel)
        times = [kernel["time_ns"]]
        if kernel["baseline"] is not None:
            check(set(kernel["baseline"]) == {"provider", "time_ns"}, "members of baseline", kernel)
            times.append(kernel["baseline"]["time_ns"])
            ratio = times[1]["median"] / times[0]["median"]
            check(abs(kernel["speedup"] - ratio) < 0.02 * ratio, "speedup is the ratio", kernel)
        for time_ns in times:
            check(set(time_ns) == time_names, "members of time_ns", time_ns)
            check(all(isinstance(v, int) for v in time_ns.values()), "times are integers", time_ns)
            check(0 < time_ns["min"] <= time_ns["median"], "times are ordered", time_ns)
        check(set(kernel["candidates"]) == {"measured", "failed"}, "members of candidates", kernel)
        check(set(kernel["verified"]) == {"max_error", "tolerance", "of_rms", "times_direct"},
              "members of verified", kernel)
        check(kernel["verified"]["max_error"] <= kernel["verified"]["tolerance"], "verified", kernel)
        check(isinstance(kernel["from_history"], bool), "from_history", kernel)
        if kernel["artifact"] is not None and artifacts:
            check(os.path.isfile(kernel["artifact"]), "the artifact is there", kernel["artifact"])
    return result


def cpu_seconds():
    """Of this process and of all that have ended below it."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def run_tests(tests):
    """Run the functions named test_* of a module; of them those that the command line names, if any. Return how many
    passed, and the names of those that failed and that were skipped."""
    failed, skipped, passed = [], [], 0
    # A shell starts background jobs with SIGINT ignored, and programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in [n for n in tests if n.startswith("test_") and (not sys.argv[1:] or n in sys.argv[1:])]:
        box = Box()
        began, used = time.monotonic(), cpu_seconds()
        print("[ RUN      ] " + name, flush=True)
        try:
            tests[name](box)
            box.expect_nothing_left()
            print("[       OK ] %s (%.1f s, %.1f of cpu)" % (
                name, time.monotonic() - began, cpu_seconds() - used), flush=True)
            passed += 1
        except Skip as reason:
            print("[  SKIPPED ] %s: %s" % (name, reason), flush=True)
            skipped.append(name)
        except Exception:  # whatever it is, the test has failed and the next one runs
            traceback.print_exc(file=sys.stdout)
            print("[  FAILED  ] " + name, flush=True)
            failed.append(name)
        finally:
            box.close()
    return passed, failed, skipped


def main(tests):
    """Run them, and say what became of them as cmocka does."""
    passed, failed, skipped = run_tests(tests)
    print("[  PASSED  ] %d test(s)." % passed)
    if skipped:
        print("[  SKIPPED ] %d test(s), listed below:" % len(skipped))
    if failed:
        print("[  FAILED  ] %d test(s), listed below: %s" % (len(failed), " ".join(failed)))
    sys.exit(1 if failed else 77 if skipped and not passed else 0)

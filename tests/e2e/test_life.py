# SPDX-License-Identifier: Apache-2.0
"""The life of a wpkd as a service manager sees it: this test plays systemd."""
import json
import os
import re
import select
import signal
import socket
import sqlite3
import sys
import time

from lib import (BIN, PATIENCE, Process, Service, UnixConnection, check, main, metric_of, need,
                 need_stalled_disk, small_job, wait_for)


class Manager:
    """The other end of NOTIFY_SOCKET; `abstract` names need no file."""

    def __init__(self, box, abstract=False):
        name = "\0wpk-manager-%d" % os.getpid() if abstract else box.path("notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name)
        self.environment = name.replace("\0", "@")
        self.words = []

    def listen(self, seconds):
        """Everything said within so long, or until nothing more comes after the first word."""
        ready, _, _ = select.select([self.socket], [], [], seconds)
        if ready:
            self.words += self.socket.recv(4096).decode().split("\n")
        return bool(ready)

    def wait_for(self, word, seconds=20):
        end = time.monotonic() + seconds * PATIENCE
        while word not in self.words and time.monotonic() < end:
            self.listen(0.2)
        check(word in self.words, "the manager is told %s" % word, self.words)

    def wait_for_many(self, word, count):
        """Heard from now on, so many times."""
        self.words = []
        wait_for("%s comes %d times" % (word, count),
                 lambda: self.listen(0.2) and self.words.count(word) >= count)

    def count(self, word, seconds):
        self.words = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.listen(max(0, end - time.monotonic()))
        return self.words.count(word)


# Becomes wpkd with what a manager would have set: its pid, and a socket as descriptor 3.
BECOME = """
import os, sys
if sys.argv[1] != "-":
    os.dup2(int(sys.argv[1]), 3)
os.environ["WATCHDOG_PID"] = os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


def start(box, manager, *options, passed=None, **environment):
    box.env.update(environment, NOTIFY_SOCKET=manager.environment)
    if passed:
        box.env["LISTEN_FDS"] = "1"
    arguments = [sys.executable, "-c", BECOME, str(passed.fileno()) if passed else "-",
                 os.path.join(BIN, "wpkd")] + list(options)
    return Process(box, arguments, pass_fds=(passed.fileno(),) if passed else ())


def answers(path):
    connection = UnixConnection(path)
    connection.request("GET", "/healthz")
    return connection.getresponse().status


def end(process, seconds=60, by=signal.SIGTERM):
    process.popen.send_signal(by)
    return process.wait(seconds)


def test_notify(box):
    need("wpkd")
    for abstract, by in ((False, signal.SIGTERM), (True, signal.SIGINT)):
        manager = Manager(box, abstract)
        wpkd = start(box, manager, "--data", box.data)
        manager.wait_for("READY=1")
        check(answers(box.data + "/wpkd.sock") == 200, "ready means that it answers")
        manager.wait_for("STATUS=0 jobs, 0 workers")
        code, _, log = end(wpkd, by=by)
        manager.wait_for("STOPPING=1")
        check(code == 0, "ends", code, log)


def test_watchdog(box):
    need("wpkd")
    manager = Manager(box)
    wpkd = start(box, manager, "--data", box.data, WATCHDOG_USEC="2000000")
    manager.wait_for("READY=1")
    manager.wait_for_many("WATCHDOG=1", 4)
    wpkd.popen.send_signal(signal.SIGSTOP)
    manager.count("", 0.5)
    check(manager.count("WATCHDOG=1", 3) == 0, "a wpkd that stands still feeds nobody")
    wpkd.popen.send_signal(signal.SIGCONT)
    manager.wait_for_many("WATCHDOG=1", 1)
    end(wpkd)


def ask(path, method, target, body=None):
    """(status, parsed JSON)"""
    connection = UnixConnection(path)
    connection.request(method, target, json.dumps(body) if body else None,
                       {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, json.loads(content)


def metric(path, name, value=None):
    connection = UnixConnection(path)
    connection.request("GET", "/metrics")
    page = connection.getresponse().read().decode()
    connection.close()
    return metric_of(page, name, value)


def test_watchdog_of_a_disk_that_hangs(box):
    """wpkd goes on answering reads, and says in /readyz and to its manager that it records nothing."""
    need("wpkd")
    stalled_disk = need_stalled_disk(box)
    manager = Manager(box)
    stalled = box.path("stalled")
    wpkd = start(box, manager, "--data", box.data, WATCHDOG_USEC="2000000", LD_PRELOAD=stalled_disk,
                 WPK_STALLED=stalled)
    manager.wait_for("READY=1")
    path = box.data + "/wpkd.sock"
    lookup = ("POST", "/v1/kernels:lookup", {"fingerprint": "0" * 64})
    check(ask(path, *lookup)[0] == 200 and ask(path, "GET", "/readyz")[0] == 200, "all is well")
    with open(stalled, "w", encoding="utf-8"):
        pass
    submission = UnixConnection(path)
    submission.request("POST", "/v1/jobs", json.dumps(small_job()), {"Content-Type": "application/json"})
    wait_for("a store that stands still feeds nobody", lambda: manager.count("WATCHDOG=1", 4) == 0)
    check(ask(path, *lookup)[0] == 200, "lookups are answered")
    status, ready = wait_for("it is not ready", lambda: (
        lambda answer: answer if answer[0] == 503 else None)(ask(path, "GET", "/readyz")), 10)
    check("the store has not answered for" in ready["reasons"][0], "and says why", ready)
    check(metric(path, "wpk_store_stalled_seconds") > 0 and metric(path, "wpk_batches_pending") > 0,
          "the metrics say so, too")
    wait_for("the manager sees why", lambda: manager.listen(1) and any(
        word.startswith("STATUS=the store has not answered") for word in manager.words), 15)
    readable, _, _ = select.select([submission.sock], [], [], 0)
    check(not readable, "the job is not acknowledged")
    os.unlink(stalled)
    check(submission.getresponse().status == 201, "until it is recorded")
    manager.wait_for_many("WATCHDOG=1", 1)
    wait_for("it is ready", lambda: ask(path, "GET", "/readyz")[0] == 200, 5)
    wait_for("the metrics say so", lambda: metric(path, "wpk_store_stalled_seconds") == 0, 5)
    code, _, log = end(wpkd)
    check(code == 0, "ends", log)


def test_watchdog_of_a_full_disk(box):
    """A restart would not help."""
    need("wpkd")
    manager = Manager(box)
    first = start(box, manager, "--data", box.data)
    manager.wait_for("READY=1")
    end(first)
    manager.words = []
    pages = os.path.getsize(os.path.join(box.data, "history.db")) // 4096
    wpkd = start(box, manager, "--data", box.data, "--store-pages-max", str(pages + 2), WATCHDOG_USEC="2000000")
    manager.wait_for("READY=1")
    path = box.data + "/wpkd.sock"
    wait_for("it is full", lambda: ask(path, "POST", "/v1/jobs", small_job(name="n" * 60))[0] == 507)
    manager.wait_for_many("WATCHDOG=1", 4)
    check(ask(path, "GET", "/readyz")[0] == 503, "full it is")
    code, _, log = end(wpkd)
    check(code == 0, "ends", log)


def test_drain(box):
    """A wpkd that is to end records what it has taken in; not for longer than drain_s."""
    need("wpkd")
    stalled_disk = need_stalled_disk(box)
    manager = Manager(box)
    stalled = box.path("stalled")
    path = box.data + "/wpkd.sock"
    for drain_s in (3600, 1):
        config = box.write("wpkd.json", {"data": box.data, "drain_s": drain_s})
        wpkd = start(box, manager, "--config", config, LD_PRELOAD=stalled_disk, WPK_STALLED=stalled)
        manager.wait_for("READY=1")
        check(metric(path, "wpk_draining") == 0, "not yet")
        with open(stalled, "w", encoding="utf-8"):
            pass
        submission = UnixConnection(path)
        submission.request("POST", "/v1/jobs", json.dumps(small_job()), {"Content-Type": "application/json"})
        wait_for("the job is under way", lambda: metric(path, "wpk_batches_pending") > 0)
        wpkd.popen.terminate()
        if drain_s > 1:
            status, ready = wait_for("it is not ready", lambda: (
                lambda answer: answer if answer[0] == 503 else None)(ask(path, "GET", "/readyz")), 10)
            check("wpkd is ending" in ready["reasons"] and metric(path, "wpk_draining") == 1, "and says why", ready)
            check(ask(path, "POST", "/v1/kernels:lookup", {"fingerprint": "0" * 64})[0] == 200, "lookups go on")
        else:
            wait_for("its time is over", lambda: "drain_cut_short seconds=1" in wpkd.text(wpkd.err), 20)
        os.unlink(stalled)
        if drain_s > 1:
            check(submission.getresponse().status == 201, "the job is acknowledged")
        submission.close()
        code, _, log = wpkd.wait(30)
        check(code == 0 and ("drain_cut_short" in log) == (drain_s == 1), "ends", code, log)
        manager.words = []


def test_no_watchdog_for_others(box):
    need("wpkd")
    manager = Manager(box)
    box.env.update(NOTIFY_SOCKET=manager.environment, WATCHDOG_USEC="400000", WATCHDOG_PID="1")
    wpkd = box.start("wpkd", "--data", box.data)
    manager.wait_for("READY=1")
    check(manager.count("WATCHDOG=1", 1) == 0, "it was meant for another process", manager.words)
    end(wpkd)


def test_sockets_passed_in(box):
    need("wpkd")
    path = box.path("http.sock")
    passed = socket.socket(socket.AF_UNIX)
    passed.bind(path)
    passed.listen(16)
    manager = Manager(box)
    early = UnixConnection(path)
    early.request("GET", "/healthz")  # waits in the backlog until there is a wpkd
    wpkd = start(box, manager, "--data", box.data, "--http", "unix:" + path, passed=passed)
    manager.wait_for("READY=1")
    check(early.getresponse().status == 200, "who came before the start is served")
    check(answers(path) == 200, "and who comes after it")
    code, _, log = end(wpkd)
    check(code == 0, "ends", log)
    check(os.path.exists(path), "the manager's socket stays")
    passed.close()


def test_sockets_that_are_not_ours(box):
    need("wpkd")
    passed = socket.socket(socket.AF_INET)
    passed.bind(("127.0.0.1", 0))
    passed.listen(1)
    wpkd = start(box, Manager(box), "--data", box.data, passed=passed)
    code, _, log = wpkd.wait(20)
    check(code == 2 and "127.0.0.1:%d" % passed.getsockname()[1] in log, "is said", code, log)
    passed.close()


def test_reload(box):
    need("wpkd")
    manager = Manager(box)
    config = box.write("wpkd.json", '{ // quiet\n"data": "%s", "log": {"level": "warn"}}' % box.data)
    wpkd = start(box, manager, "--config", config)
    manager.wait_for("READY=1")
    check("ready" not in wpkd.text(wpkd.err), "warnings alone", wpkd.text(wpkd.err))
    manager.words = []
    box.write("wpkd.json", {"data": box.data, "log": {"level": "info", "format": "json"},
                            "owners": {"ann": {"weight": 3, "jobs_max": 5}, "*": {"jobs_max": 1}}})
    path = box.data + "/wpkd.sock"
    check(ask(path, "POST", "/v1/jobs", small_job())[0] == 201, "a job is taken")
    wpkd.popen.send_signal(signal.SIGHUP)
    manager.wait_for("RELOADING=1")
    manager.wait_for("READY=1")
    log = wait_for("the log says so", lambda: wpkd.text(wpkd.err))
    check(json.loads(log.split("\n")[-2])["event"] == "reloaded", "in the new format", log)
    check(ask(path, "POST", "/v1/jobs", small_job())[0] == 429, "with the new quota")
    # A file with an error changes nothing, and the error is logged.
    box.write("wpkd.json", '{"data": "%s",\n "owners": {"ann": {"weight": "much"}}}' % box.data)
    wpkd.popen.send_signal(signal.SIGHUP)
    wait_for("the reason", lambda: "wpkd.json:2:31: owners.ann.weight: must be a number" in
             wpkd.text(wpkd.err))
    check(ask(path, "POST", "/v1/jobs", small_job())[0] == 429, "as before")
    # A field that needs a restart is logged, and the other changes take effect.
    box.write("wpkd.json", {"data": "/elsewhere", "log": {"format": "text"}})
    wpkd.popen.send_signal(signal.SIGHUP)
    wait_for("the field", lambda: "restart_needed" in wpkd.text(wpkd.err))
    wait_for("the format", lambda: " info wpkd reloaded" in wpkd.text(wpkd.err))
    check(ask(path, "POST", "/v1/jobs", small_job())[0] == 201, "it serves all the same, with the first quota")
    counts = [metric(path, "wpk_config_reloads_total", result) for result in ("ok", "failed")]
    check(counts == [2, 1], "reloads are counted", counts)
    code, _, log = end(wpkd)
    check(code == 0, "ends", log)


def test_start_names_every_listener(box):
    """The log names each listener, so that an administrator sees a new one."""
    need("wpkd")
    clients = ["unix:" + box.path(name) for name in ("one.sock", "two.sock")]
    workers = ["ipc://" + box.path(name) for name in ("three.sock", "four.sock")]
    config = box.write("wpkd.json", {"data": box.data,
                                     "http": {"listen": [{"address": a} for a in clients]},
                                     "workers": {"listen": [{"address": a} for a in workers]}})
    manager = Manager(box)
    wpkd = start(box, manager, "--config", config)
    manager.wait_for("READY=1")
    code, _, log = end(wpkd)
    check(code == 0 and "http=%s listen=%s\n" % (",".join(clients), ",".join(workers)) in log,
          "all of them", log)


def test_configuration(box):
    need("wpkd")
    config = box.write("wpkd.json", {"data": box.data, "drain_s": "long"})
    for options in (("--check-config",), ()):
        code, out, err = box.run("wpkd", "--config", config, *options)
        check(code == 2 and "wpkd.json:1:" in err and "drain_s: must be a number" in err,
              "the field and the line", code, err)
    box.write("wpkd.json", {"data": box.data, "drain_s": 5})
    code, out, err = box.run("wpkd", "--config", config, "--check-config")
    check(code == 0 and box.data in out and not os.path.exists(box.data), "checked only", out, err)
    code, out, err = box.run("wpkd", "--config", box.path("none.json"))
    check(code == 2 and "none.json" in err, "no such file", code, err)


def test_exit_codes(box):
    """1 may be another time better; 2 and 3 are not, and systemd need not try."""
    need("wpkd")
    taken, pem = box.write("taken", "a file of somebody's"), box.write("pem", "no certificate")
    for section, listener, why in (
            ("http", {"address": "unix:" + taken}, "is no socket"),
            ("workers", {"address": "ipc://" + taken}, "is no socket"),
            ("http", {"address": "unix:/" + "x" * 200}, "longer than"),
            ("http", {"address": "127.0.0.1:0", "certificate": pem, "key": pem}, pem),
            ("workers", {"address": "tls+tcp://127.0.0.1:0", "certificate": pem, "key": pem}, pem)):
        config = box.write("wpkd.json", {"data": box.data, section: {"listen": [listener]}})
        code, _, err = box.run("wpkd", "--config", config)
        check(code == 2 and why in err, "a configuration that no start can use", code, err)
    check(os.path.exists(taken), "what is no socket stays")
    service = Service(box)
    code, _, err = box.run("wpkd", "--data", box.data)
    check(code == 1 and "another wpkd (pid %d)" % service.wpkd.popen.pid in err, "taken", code, err)
    service.stop()
    history = sqlite3.connect(os.path.join(box.data, "history.db"))
    (version,), = history.execute("PRAGMA user_version")
    history.execute("PRAGMA user_version = 999")
    history.close()
    code, _, err = box.run("wpkd", "--data", box.data)
    check(code == 3 and re.search(r"\b999\b.*\b%d\b" % version, err), "a newer store, and what is known", code, err)
    os.makedirs(box.path("other"))
    with open(box.path("other/history.db"), "wb") as file:
        file.write(b"this is not a database, and long enough to be seen not to be one" * 100)
    code, _, err = box.run("wpkd", "--data", box.path("other"))
    check(code == 3, "a corrupt store", code, err)


def test_second_signal_kills(box):
    need("wpkd")
    service = Service(box)
    service.wpkd.popen.terminate()
    service.wpkd.popen.terminate()
    code, _, log = service.wpkd.wait(10)
    check(code in (0, -signal.SIGTERM), "is gone", code, log)


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""Messages of wpkctl about a wrong word: the word that was meant, and what to do."""
import json
import os
import signal
import socket

from lib import Service, check, main, need, small_job, wait_for
from wire import FakeWpkd


def refused(box, *words, code=2):
    status, out, err = box.run("wpkctl", *words)
    check(status == code, "%s ended with %s" % (words, status), out, err)
    check(err.count("\n") == 1, "one line", err)
    return err


def test_did_you_mean(box):
    job = box.write("job.json", small_job())
    for words, meant in ((("kernals",), "'kernels'"), (("tun",), "'tune'"),
                         (("jobs", "--statte", "done"), "'--state'"),
                         (("kernels", "-json"), "'--json'"),
                         (("tune", job, "--strategy", "gaa"), "'ga'"),
                         (("jobs", "puase", "j0123456789abcdef"), "'pause'"),
                         (("db", "chekc"), "'check'"),
                         (("token", "create", "--owner", "ann", "--role", "amin"), "'admin'")):
        err = refused(box, *words)
        check("did you mean %s?" % meant in err, "%s: %s is meant" % (words, meant), err)
    check("wpkctl help" in refused(box, "frobnicate"), "where the names are")
    err = refused(box, "token", "create", "--owner", "ann", "--role", "bogus")
    check("--role" in err and "read, submit" in err, "the option, and what it takes", err)
    check("1:" not in err and "roles[" not in err, "no place in a text that nobody wrote", err)


def test_errors_say_what_to_do(box):
    """Each message ends with a command, an option or an action that helps."""
    service = Service(box)
    job = box.write("job.json", small_job())
    absent = "j0123456789abcdef"
    for words, code, advice in (
            (("trials", "nosuch"), 2, "wpkctl jobs"), (("jobs", "pause"), 2, "wpkctl jobs"),
            (("workers", "drain"), 2, "wpkctl workers"), (("token", "revoke", "x"), 2, "wpkctl token list"),
            (("kernels", "pin", "x"), 2, "wpkctl kernels"), (("kernels", "pin", "k99"), 4, "list of kernels"),
            (("trials", absent), 4, "list of jobs"), (("status", absent), 4, "list of jobs"),
            (("jobs", "cancel", absent), 4, "list of jobs"), (("workers", "drain", "nobody"), 4, "list of workers"),
            (("token", "revoke", "0123456789abcdef"), 4, "list of tokens"),
            (("get", "a/b"), 2, "wpkctl kernels"), (("get", "nobody"), 4, "wpkctl jobs"),
            (("lookup", "nobody"), 2, "wpkctl kernels"), (("lookup", "0123456789ab"), 4, "wpkctl kernels"),
            (("run", "nobody"), 4, "wpkctl jobs"), (("lookup", "0123456789ab", "--tune"), 2, "job file"),
            (("run", "nosuch.so"), 2, "check the path"), (("genes", "nosuch.json"), 2, "check the path"),
            (("jobs", "--data", box.data), 2, "give one of them"), (("jobs", "a", "b", "c"), 2, "wpkctl help jobs"),
            (("lookup", job, "--accuracy", "exact"), 2, "strict, standard, fast")):
        err = refused(box, *words, "--server", service.url, code=code)
        check(advice in err, "%s: '%s' is named" % (words, advice), err)
    service.stop()
    for words, code, advice in ((("jobs", "--server", "unix:" + box.path("nobody")), 3, "--server"),
                                (("tune", job, "--threads", "1000", "--data", box.data), 2, "--threads"),
                                (("db", "restore", box.dir, "--data", box.data), 2, "wpkctl db backup"),
                                (("tune", "nosuch.json"), 2, "check the path"),
                                (("check", box.dir), 2, "name a file"),
                                (("build", "nosuch.schedule"), 2, "check the path"),
                                (("tune", job, "--data", job), 2, "check the path"),
                                (("tune", job, "--pin", "algorithm"), 2, "NAME=VALUE"),
                                (("tune", "--op", "Y[i] = Z[i]", "--tensor", "Y=f32[4]"), 2, "declare it among the tensors"),
                                (("import", job, "--data", box.path("imported")), 2, "wpkctl export"),
                                (("import", "nosuch", "--data", box.path("imported")), 2, "check the path"),
                                (("export", "/nowhere/x", "--data", box.data), 2, "make its directory first")):
        err = refused(box, *words, code=code)
        check(advice in err, "%s: '%s' is named" % (words, advice), err)


def test_version(box):
    check(json.loads(box.ctl("version", "--json"))["version"] in box.ctl("version"), "as JSON too")
    refused(box, "version", "--jsno")


def test_a_worker_says_that_nobody_listens(box):
    need("wpk-builder")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(box.path("manager"))
    manager.settimeout(300)
    box.env.update(NOTIFY_SOCKET=box.path("manager"), WATCHDOG_USEC="1000000")
    worker = box.start("wpk-worker", "--cpu", "--coordinator", "ipc://" + box.path("nobody.sock"),
                       "--data", box.dir)
    # Before its first request times out after 15 s: the watchdog is fed four times a second.
    said = [manager.recv(4096).decode()]
    while len(said) < 50 and "STATUS=Not connected" not in said[-1]:
        said.append(manager.recv(4096).decode())
    check("STATUS=Waiting" in said[0] and "STATUS=Not connected" in said[-1],
          "the reason is that of the first try to connect", said)
    while said[-1] != "WATCHDOG=1":
        said.append(manager.recv(4096).decode())
    manager.close()
    check("not_connected" in worker.text(worker.err), "the reason", worker.text(worker.err))
    check("nobody.sock" in worker.text(worker.err), "with the address", worker.text(worker.err))
    check("start wpkd there" in worker.text(worker.err), "and what to do", worker.text(worker.err))
    worker.popen.send_signal(signal.SIGINT)
    code, _, err = worker.wait(30)
    check(code == 0, "it ends when it is told to", code, err)


def test_a_worker_says_that_it_is_refused_again(box):
    """A refusal is said again after a loss of the connection, though its error is the same."""
    need("wpk-builder")
    asked = []

    def refuse(message):
        asked.append(message)
        return {"type": "error", "code": "ECLOSED", "text": "closing", "retry_ms": 0}

    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(box.path("manager"))
    manager.settimeout(60)
    box.env.update(NOTIFY_SOCKET=box.path("manager"))
    path = box.path("fake.sock")
    wpkd = FakeWpkd(path, refuse)
    worker = box.start("wpk-worker", "--cpu", "--coordinator", wpkd.url, "--data", box.dir)
    while "STATUS=Refused" not in manager.recv(4096).decode():
        pass
    os.unlink(path)
    for connection in wpkd.connections:
        connection.shutdown(socket.SHUT_RDWR)
    while "STATUS=Not connected" not in manager.recv(4096).decode():
        pass
    asked.clear()
    again = FakeWpkd(path, refuse)
    wait_for("the log has both refusals", lambda: worker.text(worker.err).count(" refused ") >= 2, 60)
    while "STATUS=Refused" not in manager.recv(4096).decode():
        pass
    worker.popen.send_signal(signal.SIGINT)
    worker.wait(30)
    for fake in (wpkd, again):
        fake.close()
    manager.close()


if __name__ == "__main__":
    main(globals())

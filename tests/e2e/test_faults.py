# SPDX-License-Identifier: Apache-2.0
"""Garbage on both ports, a full disk, a second wpkd, directories that cannot be: everyone else is
served, or a clear error is given and nothing half-written is left."""
import os
import random
import socket
import sqlite3
import struct
import time

from lib import Service, UnixConnection, check, main, need, small_job, wait_for
from wire import GREETING, VERSION, frame, talk


def connect(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(5)
    sock.connect(path)
    return sock


def throw(path, data):
    """Send bytes and see what comes; being hung up on is fine."""
    sock = connect(path)
    try:
        sock.sendall(data)
        return sock.recv(65536)
    except OSError:
        return b""
    finally:
        sock.close()


def test_garbage_on_http(box):
    need("wpkd")
    service = Service(box)
    draw = random.Random(1)
    throw(service.socket, b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100000 + b"\r\n\r\n")
    for size in (1, 100, 5000):
        throw(service.socket, bytes(draw.randrange(256) for _ in range(size)) + b"\r\n\r\n")
    big = throw(service.socket, b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n")
    check(b" 413 " in big, "100 MB are refused before they are read", big)
    slow = [connect(service.socket) for _ in range(100)]
    for sock in slow:
        sock.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Le")
    for body in (b"{", b"[]", b'"x"', b"\xff\xfe", b"{\"ops\":" + b"[" * 10000, b""):
        status, answer, headers = service.ask("POST", "/v1/jobs", body)
        check(400 <= status < 500, "a problem", status, answer)
        check(headers["content-type"] == "application/problem+json", "a problem document", headers)
        check(answer["status"] == status and answer["detail"], "with a reason", answer)
    status, answer, _ = service.ask("POST", "/v1/jobs", small_job(search={"strategy": "astrology"}))
    check(status == 422 and answer["field"] == "search.strategy", "the field is named", answer)
    check(service.ask("POST", "/v1/jobs", b"name=x", kind="text/plain")[0] == 415, "not JSON")
    check(service.ask("GET", "/v1/jobs?page_size=0")[0] == 422, "a wrong page size")
    check(service.ask("GET", "/v1/jobs")[1]["jobs"] == [], "nothing was stored")
    for sock in slow:
        sock.close()
    service.stop()


def test_garbage_on_the_worker_port(box):
    need("wpkd")
    service = Service(box)
    path = box.path("workers.sock")
    draw = random.Random(2)
    for size in (1, 8, 1000):
        throw(path, bytes(draw.randrange(256) for _ in range(size)))
    throw(path, GREETING + b"\1" + struct.pack(">Q", 1 << 40) + b"x" * 100)
    for body in (b"", b"\xff\xff\xff\xff", frame({}), frame({"version": VERSION}), frame([]), b"x" * 5000):
        answer = talk(path, body)
        check(answer and answer["type"] == "error", "garbage is answered by an error", body[:40], answer)
    answer = talk(path, frame({"version": 99, "type": "poll", "session": "1"}))
    check(answer["code"] == "EMISMATCH" and "99" in answer["text"], "another version", answer)
    answer = talk(path, frame({"version": VERSION, "type": "poll", "session": "7", "want": 1, "wait_ms": 0,
                               "holding": [], "running": "0"}))
    check(answer["code"] == "ENOENT", "a session that nobody knows", answer)
    check(service.ask("GET", "/healthz")[0] == 200, "wpkd lives")
    check(service.ask("GET", "/v1/workers")[1]["workers"] == [], "nobody joined")
    service.stop()


def test_two_on_one_directory(box):
    need("wpkd")
    service = Service(box)
    code, _, err = box.run("wpkd", "--data", box.data, "--http", "unix:" + box.path("other"),
                           "--listen", "ipc://" + box.path("others"))
    check(code == 1 and "another wpkd" in err and str(service.wpkd.popen.pid) in err, "refused", err)
    check(service.ask("GET", "/healthz")[0] == 200, "the first goes on")
    service.stop()


def test_addresses(box):
    need("wpkd")
    for options, says, want in ((("--http", "0.0.0.0:80"), "0.0.0.0", 2),
                                (("--listen", "nonsense"), "nonsense", 2),
                                (("--listen", "tcp://0.0.0.0:80"), "0.0.0.0", 2),
                                (("--http", "unix:" + "/x" * 100), "longer", 2)):
        code, _, err = box.run("wpkd", "--data", box.data, *options)
        check(code == want and says in err, "refused with the reason", options, code, err)
    code, _, err = box.run("wpkd", "--data", "/proc/nothing")
    check(code == 1 and "/proc/nothing" in err, "a directory that cannot be made", err)
    code, _, err = box.run("wpkd", "--bogus")
    check(code == 2, "usage", code, err)


def test_full_disk(box):
    """The database may not grow: the job is refused with the reason, and nothing of it is stored."""
    need("wpkd")
    options = ["--data", box.data, "--http", "unix:" + box.path("http.sock"), "--listen",
               "ipc://" + box.path("workers.sock")]
    service = Service(box)
    service.stop()
    pages = os.path.getsize(os.path.join(box.data, "history.db")) // 4096
    service.wpkd = box.start("wpkd", *options, "--store-pages-max", pages + 2)
    wait_for("wpkd answers", service.healthy, 30)
    status = 201
    accepted = 0
    for number in range(200):
        status, answer, _ = service.ask("POST", "/v1/jobs", small_job(name="n" * 60))
        if status != 201:
            break
        accepted += 1
    check(status == 507 and "full" in answer["detail"], "the reason is given", status, answer)
    jobs = service.ask("GET", "/v1/jobs?page_size=1000")[1]["jobs"]
    check(len(jobs) == accepted, "what was acknowledged can be read", accepted, len(jobs))
    status, answer, _ = service.ask("POST", "/v1/jobs", small_job(name="again"))
    check(status == 507 and "full" in answer["detail"], "nothing is promised", status, answer)
    service.stop()
    service.wpkd = box.start("wpkd", *options)
    wait_for("wpkd answers again", service.healthy, 30)
    jobs = service.ask("GET", "/v1/jobs?page_size=1000")[1]["jobs"]
    check(len(jobs) == accepted, "what was acknowledged is there, and nothing else", accepted, len(jobs))
    service.stop()
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        check(db.execute("PRAGMA integrity_check").fetchone() == ("ok",), "the database is whole")


def test_idle(box):
    need("wpkd")
    wpkd = box.start("wpkd", "--data", box.data, "--exit-when-idle", 1)

    def is_answered():
        connection = UnixConnection(box.data + "/wpkd.sock")
        try:
            connection.request("GET", "/v1/kernels")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    # A client that looks kernels up counts against --exit-when-idle. wpkd may end only if this
    # machine kept us from asking.
    wait_for("wpkd answers", lambda: is_answered() or wpkd.popen.poll() is not None, 30)
    started = asked = time.monotonic()
    while time.monotonic() - started < 2.5:
        begun = time.monotonic()
        if not is_answered():
            check(time.monotonic() - asked > 0.9, "it stays while it is asked")
            break
        asked = begun
        time.sleep(0.02)
    code, _, err = wpkd.wait(20)
    check(code == 0 and "idle" in err, "it ends by itself", code, err)
    check(time.monotonic() - asked > 0.9, "not at once")


if __name__ == "__main__":
    main(globals())

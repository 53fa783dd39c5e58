#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A REST port that is attacked, while somebody else uses it and has to be served.

Each attack runs beside an honest client, whose every request has to be answered. Memory and
processor time of wpkd are bounded. WPK_HOSTILE_SECONDS makes each attack last longer: its default
is what a test run can afford; from 35 on slow connections are seen to be ended and honest requests
to be answered soon, which a busy machine may fail.
"""
import http.client
import json
import os
import random
import re
import resource
import selectors
import signal
import socket
import ssl
import subprocess
import threading
import time
import warnings

from lib import Service, UnixConnection, check, main, need, small_job, wait_for
from port import free_port
from wire import Peer, hello

SECONDS = float(os.environ.get("WPK_HOSTILE_SECONDS", "4"))
LONG = SECONDS >= 35
ANSWER_S_MAX = 4.0  # for an honest request, on a quiet machine
TRIES = 3  # of an honest request
HONEST_MIN = 5  # requests that an honest client has answered during an attack
GROWTH_MAX = 192 << 20  # bytes of resident memory that an attack may cost
JSON_HEAD = b"Host: x\r\nContent-Type: application/json\r\n"


# ---- who has to be served

class Honest(threading.Thread):
    """Asks again and again, on a connection that it keeps while it can."""

    def __init__(self, make_connection, headers=None):
        super().__init__(daemon=True)
        self.make_connection = make_connection
        self.headers = headers or {}
        self.ended = threading.Event()
        self.answered = 0
        self.slowest = 0.0
        self.failures = []

    def ask(self):
        """A GET may be sent again when its connection ends without an answer (RFC 9110, 9.2.2): where many come
        before it is sent, it was the oldest of those that had sent nothing."""
        for _ in range(TRIES - 1):
            try:
                return self.ask_once()
            except (http.client.RemoteDisconnected, ConnectionError):
                pass
        return self.ask_once()

    def ask_once(self):
        connection = self.make_connection()
        end = time.monotonic() + 60
        try:
            while True:
                try:
                    connection.connect()
                    break
                except BlockingIOError:  # a Unix socket's backlog is full: not to be waited for
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.005)
            connection.request("GET", "/v1/jobs", headers=self.headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    def run(self):
        while not self.ended.is_set():
            began = time.monotonic()
            try:
                status = self.ask()
                if status != 200:
                    self.failures.append("status %d" % status)
            except OSError as error:
                self.failures.append(repr(error))
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.answered += 1
            time.sleep(0.01)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            wait_for("an honest client is served", lambda: self.answered >= HONEST_MIN)
        self.ended.set()
        self.join(60)
        if kind is None:
            check(not self.failures, "every honest request is answered", self.failures[:5],
                  "%d of %d failed" % (len(self.failures), self.answered))
            check(not LONG or self.slowest < ANSWER_S_MAX, "soon", self.slowest)


def honest(service):
    return Honest(lambda: UnixConnection(service.socket))


def status_of(pid, name):
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    return 0


def resident(pid):
    return status_of(pid, "VmRSS") * 1024


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bounded:
    """Memory does not grow by an attack, and when it is over no processor time is used."""

    def __init__(self, service):
        self.pid = service.wpkd.popen.pid

    def __enter__(self):
        self.before = resident(self.pid)
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            return
        grown = resident(self.pid) - self.before
        check(grown < GROWTH_MAX, "memory is bounded", grown)

        def calm():
            began = cpu_seconds(self.pid)
            time.sleep(0.5)
            return cpu_seconds(self.pid) - began < 0.15
        wait_for("wpkd is calm again", calm, 30)


# ---- connections that are not honest

def connect(service):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(service.socket)  # waits where the backlog is full
    sock.settimeout(10)
    return sock


def hear(sock, seconds=60):
    """All that comes until the other side closes, and whether it did."""
    heard = b""
    end = time.monotonic() + seconds
    while True:
        sock.settimeout(max(0.01, end - time.monotonic()))
        try:
            part = sock.recv(65536)
        except socket.timeout:
            return heard, False
        except OSError:
            return heard, True
        if not part:
            return heard, True
        heard += part


def throw(service, data):
    """Send it as far as it is taken; (what is heard, whether the connection was closed)."""
    sock = connect(service)
    try:
        sock.sendall(data)
    except OSError:
        pass
    try:
        return hear(sock)
    finally:
        sock.close()


# ---- one message, or none

INNER = b"GET /v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

# Requests that a proxy may parse differently than we do: no second request may follow them.
AMBIGUOUS = {
    "both lengths": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "chunked": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
               b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "chunked, disguised": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                          b"Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n" + INNER,
    "chunked, then not": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                         b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + INNER,
    "a tab before chunked": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                            b"Transfer-Encoding:\tchunked\r\nContent-Length: 0\r\n\r\n" + INNER,
    "a blank before the colon": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                                b"Content-Length : 40\r\n\r\n" + INNER,
    "chunked with a blank": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                            b"Transfer-Encoding : chunked\r\n\r\n" + INNER,
    "two lengths": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                   b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + INNER,
    "the same length twice": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                             b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" + INNER,
    "a list of lengths": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                         b"Content-Length: 0, 40\r\n\r\n" + INNER,
    "a signed length": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD + b"Content-Length: +0\r\n\r\n" + INNER,
    "a hexadecimal length": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                            b"Content-Length: 0x0\r\n\r\n" + INNER,
    "a negative length": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                         b"Content-Length: -1\r\n\r\n" + INNER,
    "a length without digits": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                               b"Content-Length:\r\n\r\n" + INNER,
    "a length past 64 bits": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                             b"Content-Length: 18446744073709551616\r\n\r\n" + INNER,
    "a length in a folded line": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                                 b"X: y\r\n Content-Length: 40\r\n\r\n" + INNER,
    "a folded length": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD +
                       b"Content-Length:\r\n 0\r\n\r\n" + INNER,
    "a lone LF": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD + b"X: y\nContent-Length: 0\r\n\r\n" + INNER,
    "lone LFs": b"GET /v1/jobs HTTP/1.1\nHost: x\n\n" + INNER,
    "the end by a lone LF": b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\n" + INNER,
    "a lone CR": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD + b"X: y\rContent-Length: 40\r\n\r\n" + INNER,
    "a NUL": b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD + b"Content-Length: 0\x00 40\r\n\r\n" + INNER,
    "a line that begins with NUL": b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\x00X: y\r\n" + INNER,
    "a NUL that makes up for lone LFs": b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nX: a\x00b\n\n" + INNER,
    "a NUL in the target": b"GET /v1/jobs\x00x HTTP/1.1\r\nHost: x\r\n\r\n" + INNER,
    "an escaped NUL": b"GET /v1/jobs%00x HTTP/1.1\r\nHost: x\r\n\r\n" + INNER,
    "a blank in the target": b"GET /v1/jobs x HTTP/1.1\r\nHost: x\r\n\r\n" + INNER,
    "two blanks": b"GET  /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n" + INNER,
    "an absolute target": b"GET http://x/v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n" + INNER,
    "an authority": b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n" + INNER,
    "no version": b"GET /v1/jobs\r\nHost: x\r\n\r\n" + INNER,
    "version 0.9": b"GET /v1/jobs HTTP/0.9\r\nHost: x\r\n\r\n" + INNER,
    "version 1.2": b"GET /v1/jobs HTTP/1.2\r\nHost: x\r\n\r\n" + INNER,
    "no host": b"GET /v1/jobs HTTP/1.1\r\n\r\n" + INNER,
    "two hosts": b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + INNER,
    "a body that is not expected": b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n" +
                                   INNER,
    "a header without a colon": b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n" + INNER,
    "a header without a name": b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n" + INNER,
}


def test_nothing_is_smuggled(box):
    need("wpkd")
    service = Service(box)
    two = b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    heard, closed = throw(service, two)
    check(heard.count(b"HTTP/1.1 200") == 2 and closed, "two requests are two requests", heard)
    for name, data in AMBIGUOUS.items():
        heard, closed = throw(service, data)
        check(closed, "%s: the connection ends" % name, heard)
        # libmicrohttpd 0.9.75 says the head of its refusal twice when a Content-Length is malformed.
        answers = re.findall(rb"HTTP/1\.[01] (\d+)", heard)
        check(len(answers) <= 2 and len(set(answers)) <= 1, "%s: one answer" % name, heard)
        check(all(a in (b"400", b"411", b"413", b"505") for a in answers), "%s: a refusal" % name, heard)
        check(b"smuggled" not in heard, "%s: smuggled" % name, heard)
    check(service.ask("GET", "/v1/jobs")[1]["jobs"] == [], "nothing was stored")
    service.stop()


# ---- floods

def test_garbage(box):
    need("wpkd")
    service = Service(box)
    draw = random.Random(int(os.environ.get("WPK_SEED", "1")))
    end = time.monotonic() + SECONDS
    count = 0
    with honest(service), Bounded(service):
        while time.monotonic() < end or count <= 50:
            kind = count % 5
            if kind == 0:
                data = draw.randbytes(draw.randrange(1, 20000))
            elif kind == 1:
                data = b"GET /" + b"a" * draw.randrange(1, 100000)
            elif kind == 2:
                data = b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * draw.randrange(1, 20000)
            elif kind == 3:
                data = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + draw.randbytes(500)
            else:
                data = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n" + draw.randbytes(50)
            sock = connect(service)
            try:
                sock.sendall(data)
                sock.setblocking(False)
                sock.recv(100)
            except OSError:
                pass
            sock.close()
            count += 1
    check(service.ask("GET", "/v1/jobs")[1]["jobs"] == [], "nothing was stored")
    service.stop()


def test_large_bodies(box):
    need("wpkd")
    service = Service(box)
    part = b"x" * 65536
    with honest(service), Bounded(service):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for head in (b"Content-Length: 104857600", b"Transfer-Encoding: chunked"):
                sock = connect(service)
                sent = 0
                try:
                    sock.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n")
                    while sent < 100 << 20:
                        sock.sendall(part)
                        sent += len(part)
                except OSError:
                    pass
                check(sent < 10 << 20, "100 MB are not read", sent)
                sock.close()
    # Those that are just allowed, and never end: their memory is counted, and given back.
    with honest(service), Bounded(service):
        held = [connect(service) for _ in range(100)]
        for sock in held:
            sock.sendall(b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD + b"Content-Length: 1000000\r\n\r\n")
        for sock in held:
            sock.setblocking(False)
            try:
                sock.send(b"x" * 100000)
            except OSError:
                pass
        time.sleep(0.5)
        for sock in held:
            sock.close()
    service.stop()


def raise_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def heavy_job(ops):
    """Within the limits of a job file, and seconds of work to understand."""
    names = ["T%d" % i for i in range(40)]
    text = " + ".join("%s[i]*%s[i]" % (a, b) for n, a in enumerate(names) for b in names[:n])
    return {"name": "heavy", "budget": {"candidates": 1, "seconds": 1},
            "ops": [{"name": "o%d" % i, "op": "Y[i] = " + text,
                     "tensors": {name: "f32[%d]" % (64 + i) for name in names + ["Y"]}}
                    for i in range(ops)]}


def read_meanwhile(service, path, body):
    """While four clients ask that again and again: how many of them were answered while a worker was
    let in WELCOMES times, one after the other; and every status they had."""
    ended = threading.Event()
    answers = []

    def ask():
        while not ended.is_set():
            status, _, headers = service.ask("POST", path, body)
            answers.append((status, "retry-after" in headers))
            if status == 503:
                time.sleep(0.05)

    def taken():
        return sum(1 for status, _ in answers if status in (200, 201))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_for("two are told to come again, so two are being read",
             lambda: sum(1 for status, _ in answers if status == 503) >= 2)
    with Peer(service.box.path("workers.sock"), seconds=60) as worker:
        worker.greet()
        before = taken()
        for _ in range(WELCOMES):
            check(worker.ask(hello())[0]["type"] == "welcome", "a worker is let in")
        meanwhile = taken() - before
    ended.set()
    for thread in threads:
        thread.join()
    return meanwhile, answers


WELCOMES = 40


def test_jobs_that_take_long_to_read(box):
    """They are read where the loop is not: it goes on with everybody else's work. Of large ones two are
    read at a time. A loop that read them would answer a worker once a job."""
    need("wpkd")
    service = Service(box)
    job = heavy_job(12)
    lookups = [{"op": op["op"], "tensors": op["tensors"], "device": "cpu/x/avx2"} for op in job["ops"]]
    for path, body in (("/v1/jobs", job), ("/v1/kernels:lookup?tune=1", {"lookups": lookups})):
        meanwhile, answers = read_meanwhile(service, path, json.dumps(body).encode())
        check(all(status in (200, 201) or (status == 503 and retry) for status, retry in answers) and
              any(status in (200, 201) for status, _ in answers), "taken, or to come again", answers)
        check(meanwhile < WELCOMES / 2, "the loop goes on", path, meanwhile, answers)
    service.stop()


def test_the_end_while_jobs_are_read(box):
    """wpkd ends all the same, and whoever waits is told. A job that is read before wpkd hears that it
    is to end is taken; then this is tried again with a longer one."""
    need("wpkd")
    for count in (12, 24, 48, 96, 192):
        body = json.dumps(heavy_job(count)).encode()
        service = Service(box)
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(service.ask("POST", "/v1/jobs", body)[0]))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_for("two are told to come again, so two are being read", lambda: answers.count(503) >= 2, 20)
        service.wpkd.popen.terminate()
        code, _, log = service.wpkd.wait(30)
        for thread in threads:
            thread.join()
        check(code == 0 and set(answers) <= {201, 503} and len(answers) == 4, "each is answered",
              code, answers, log)
        if answers == [503] * 4:
            return
    check(False, "told that it ends", answers)


def test_many_idle_connections(box):
    need("wpkd")
    wanted = min(10000, raise_descriptors() - 500)
    service = Service(box)
    socks = []
    with honest(service), Bounded(service):
        for i in range(wanted):
            sock = connect(service)
            if i % 2 == 0:
                sock.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost")
            socks.append(sock)
        time.sleep(SECONDS / 2)
        descriptors = len(os.listdir("/proc/%d/fd" % service.wpkd.popen.pid))
        check(descriptors < 3000, "they are not all kept", descriptors)
    check(len(socks) == wanted, "all were taken in")
    for sock in socks:
        sock.close()
    service.stop()


def test_many_peers_without_a_token(box):
    """From the honest client's own address, without a token: he goes on, each time by a new one."""
    need("wpkd")
    port = free_port()
    raise_descriptors()
    service = open_service(box, [{"address": "127.0.0.1:%d" % port}])
    token = make_token(service, "read")["secret"]
    client = Honest(lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=30),
                    {"Authorization": "Bearer " + token})
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    socks = []

    def use_kept():
        kept.request("GET", "/v1/jobs", headers={"Authorization": "Bearer " + token})
        answer = kept.getresponse()
        answer.read()
        check(answer.status == 200, "a connection that has shown a token is kept", answer.status)
    with client, Bounded(service):
        for i in range(5000):
            sock = socket.create_connection(("127.0.0.1", port), timeout=10)
            sock.sendall((b"GET /v1/jobs HTTP/1.1\r\nHost: loc", b"", b"\x16\x03\x01")[i % 3])
            socks.append(sock)
            if i % 500 == 0:
                use_kept()
        use_kept()
        check(socks[0].recv(1) == b"", "the first to come was the first to go")
    for sock in socks:
        sock.close()
    kept.close()
    service.stop()


def drip(socks, data, seconds, pause):
    """One byte after the other, to all; those that are closed are taken out."""
    selector = selectors.DefaultSelector()
    for sock in socks:
        sock.setblocking(False)
        selector.register(sock, selectors.EVENT_READ)
    end = time.monotonic() + seconds
    at = 0
    while time.monotonic() < end and selector.get_map():
        byte = data[at % len(data):at % len(data) + 1]
        at += 1
        for key in list(selector.get_map().values()):
            try:
                key.fileobj.send(byte)
            except OSError:
                selector.unregister(key.fileobj)
        pause_end = time.monotonic() + pause
        while time.monotonic() < pause_end and selector.get_map():
            for key, _ in selector.select(max(0, pause_end - time.monotonic())):
                try:
                    gone = key.fileobj.recv(4096) == b""
                except OSError:
                    gone = True
                if gone:
                    selector.unregister(key.fileobj)
    left = len(selector.get_map() or ())
    selector.close()
    return left


def test_slow_ones(box):
    need("wpkd")
    service = Service(box)
    heads = [connect(service) for _ in range(200)]
    bodies = [connect(service) for _ in range(100)]
    for sock in heads:
        sock.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nX: ")
    for sock in bodies:
        sock.sendall(b"POST /v1/jobs HTTP/1.1\r\n" + JSON_HEAD + b"Content-Length: 1000\r\n\r\n")
    with honest(service), Bounded(service):
        left = drip(heads + bodies, b"y", SECONDS, min(2.0, SECONDS / 4))
    if LONG:
        check(left == 0, "they are ended, a byte every two seconds or not", left)
    for sock in heads + bodies:
        sock.close()
    service.stop()


def test_slow_readers(box):
    """Peers that ask and do not read the answers: memory held for them is bounded."""
    need("wpkd")
    service = Service(box)
    ask = b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n"
    socks = [connect(service) for _ in range(200)]
    with honest(service), Bounded(service):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for sock in socks:
                sock.setblocking(False)
                try:
                    sock.send(ask * 100)
                except OSError:
                    pass
            time.sleep(0.1)
    for sock in socks:
        sock.close()
    service.stop()


def test_no_descriptors_left(box):
    """A limit so low that the attack would use them all up: some are kept back."""
    need("wpkd")
    raise_descriptors()

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))

    start = box.start
    box.start = lambda *args, **options: start(*args, preexec_fn=few, **options)
    service = Service(box)
    box.start = start
    socks = []
    with honest(service), Bounded(service):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or len(socks) <= 500:
            socks += [connect(service) for _ in range(50)]
            used = len(os.listdir("/proc/%d/fd" % service.wpkd.popen.pid))
            check(used < 400 - 32, "some descriptors are left to others", used)
            time.sleep(0.05)
    for sock in socks:
        sock.close()
    service.stop()


# ---- TCP and TLS

def make_certificate(box, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-days", "2", "-subj", "/CN=" + name, "-addext",
                    "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", box.path("tls.key"),
                    "-out", box.path("tls.crt")], check=True, capture_output=True, timeout=60)
    with open(box.path("tls.crt"), encoding="ascii") as file:
        return ssl.PEM_cert_to_DER_cert(file.read())


def trusting():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def open_service(box, listeners):
    """A wpkd that listens on these, besides its Unix socket."""
    config = box.write("wpkd.json", {"http": {"listen": [
        {"address": "unix:" + box.path("http.sock")}] + listeners}})
    start = box.start
    box.start = lambda program, *args, **options: start(
        program, "--config", config, "--data", box.data, "--listen", args[args.index("--listen") + 1])
    service = Service(box)
    box.start = start
    return service


def make_token(service, *roles, **more):
    status, token, _ = service.ask("POST", "/v1/tokens", dict(more, owner="anna", roles=list(roles)))
    check(status == 201, "a token is made", status, token)
    return token


def ask_tcp(port, token, method="GET", path="/v1/jobs", body=None, context=None):
    """(status, text of the answer)"""
    make = http.client.HTTPSConnection if context else http.client.HTTPConnection
    connection = make("127.0.0.1", port, timeout=10, **({"context": context} if context else {}))
    headers = {"Authorization": "Bearer " + token} if token else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def throw_tcp(port, data):
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    sock.sendall(data)
    answer = hear(sock)
    sock.close()
    return answer


def test_tokens(box):
    need("wpkd")
    port = free_port()
    service = open_service(box, [{"address": "127.0.0.1:%d" % port}])
    reader = make_token(service, "read")
    brief = make_token(service, "read", seconds=1)
    writer = make_token(service, "read", "submit")
    check(ask_tcp(port, None)[0] == 401, "TCP needs a token")
    check(ask_tcp(port, "wrong")[0] == 401, "and a right one")
    check(ask_tcp(port, "x" * 5000)[0] == 401, "a long one is none")
    builder = make_token(service, "build")["secret"]
    for path, status in (("/healthz", 200), ("/readyz", 200), ("/metrics", 403)):
        check(ask_tcp(port, None, path=path)[0] == 401, "that needs a token, too: " + path)
        check(ask_tcp(port, builder, path=path)[0] == status, "of any role, or of the right one: " + path)
    check(ask_tcp(port, reader["secret"], path="/metrics")[0] == 200, "who may read reads them")
    check(ask_tcp(port, reader["secret"])[0] == 200, "who may read reads")
    status, text = ask_tcp(port, reader["secret"], "POST", "/v1/jobs", small_job())
    check(status == 403 and "submit" in text, "the role that is missing is named", status, text)
    status, text = ask_tcp(port, writer["secret"], "POST", "/v1/jobs", small_job())
    check(status == 201, "who may submit submits", status, text)
    check(json.loads(text)["owner"] == "anna", "the owner is the token's", text)
    check(ask_tcp(port, writer["secret"], "POST", "/v1/tokens", {"owner": "x", "roles": ["admin"]})[0]
          == 403, "nobody raises himself")
    # On a connection that is there: good until the very request after it was revoked.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def again():
        connection.request("GET", "/v1/jobs", headers={"Authorization": "Bearer " + reader["secret"]})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    check(again() == 200 and again() == 200, "the connection is used")
    check(service.ask("DELETE", "/v1/tokens/" + reader["id"])[0] == 200, "it is revoked")
    check(again() == 401, "a revoked token is refused at once")
    connection.close()
    time.sleep(1.1)
    check(ask_tcp(port, brief["secret"])[0] == 401, "an expired token is refused")
    # A page in a browser, whose name was resolved to this machine.
    ask = (b"GET /v1/jobs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nAuthorization: Bearer " +
           writer["secret"].encode() + b"\r\n\r\n")
    heard, closed = throw_tcp(port, ask)
    check(b" 403 " in heard and closed, "the Host header is checked", heard)
    # Until a reload has it as the name of this machine.
    with open(box.path("wpkd.json"), encoding="utf-8") as file:
        config = json.load(file)
    config["http"]["hosts"] = ["evil.example"]
    box.write("wpkd.json", config)
    service.wpkd.popen.send_signal(signal.SIGHUP)
    wait_for("it is let in", lambda: b" 200 " in throw_tcp(port, ask)[0], 20)
    # Tokens are there after a restart.
    service.stop()
    service = open_service(box, [{"address": "127.0.0.1:%d" % port}])
    check(ask_tcp(port, writer["secret"])[0] == 200, "a token survives a restart")
    check(ask_tcp(port, reader["secret"])[0] == 401, "a revocation too")
    service.stop()


def dial_tls(port, context=None):
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    return (context or trusting()).wrap_socket(sock, server_hostname="localhost")


def ask_tls(sock, close=False):
    sock.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n" +
                 (b"Connection: close\r\n" if close else b"") + b"\r\n")
    return sock.recv(65536)


def test_tls(box):
    need("wpkd")
    first = make_certificate(box, "first")
    port = free_port()
    service = open_service(box, [{"address": "127.0.0.1:%d" % port,
                                  "certificate": box.path("tls.crt"), "key": box.path("tls.key")}])
    token = make_token(service, "read", "submit")["secret"]
    status, text = ask_tcp(port, token, "POST", "/v1/jobs", small_job(), trusting())
    check(status == 201, "a job is submitted over TLS", status, text)
    job = json.loads(text)["id"]
    sock = dial_tls(port)
    check(sock.getpeercert(True) == first, "the certificate of the file")
    check(sock.version() in ("TLSv1.2", "TLSv1.3"), "a version of today", sock.version())
    answer = ask_tls(sock)
    check(b" 401 " in answer and b"WWW-Authenticate: Bearer" in answer, "a token is needed", answer)
    sock.close()
    old = trusting()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    try:
        dial_tls(port, old).close()
        check(False, "TLS 1.1 is refused")
    except OSError:
        pass
    plain = socket.create_connection(("127.0.0.1", port), timeout=10)
    plain.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n")
    heard, closed = hear(plain)
    check(closed and b"HTTP/" not in heard, "no plain text on this port", heard)
    plain.close()
    # A new certificate: whoever is connected stays, whoever comes sees the new one.
    stays = dial_tls(port)
    second = make_certificate(box, "second")
    service.wpkd.popen.send_signal(signal.SIGHUP)

    def replaced():
        with dial_tls(port) as new:
            return new.getpeercert(True) == second
    with honest(service):
        wait_for("the new certificate is served", replaced, 15)
        check(b" 401 " in ask_tls(stays), "the connection that was there is served")
        time.sleep(0.5)
        check(ask_tcp(port, token, path="/v1/jobs/" + job, context=trusting())[0] == 200,
              "the job is there")
    stays.close()
    # One that is none: the old one stays.
    with open(box.path("tls.crt"), "w", encoding="ascii") as file:
        file.write("nonsense\n")
    service.wpkd.popen.send_signal(signal.SIGHUP)
    time.sleep(1)
    check(replaced(), "a bad certificate replaces nothing")
    service.stop()


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""The protocol between worker and wpkd (schema/message.h) by hand: a worker's side of it for tests of
wpkd's port, and a wpkd that says what a test wants for tests of workers."""
import hashlib
import json
import os
import socket
import ssl
import struct
import threading
import time

# A greeting of 8 bytes; then each message with its size in 64 bits (over ipc after a byte 1), which
# begins with the number of a request and its first bit set.
GREETING = b"\0SP\0\0\x30\0\0"
GREETING_BACK = b"\0SP\0\0\x31\0\0"


def frame(message, tail=b""):
    text = json.dumps(message).encode()
    return struct.pack("<I", len(text)) + text + tail


def parse(body):
    """(message, what follows it)"""
    size = struct.unpack("<I", body[:4])[0]
    return json.loads(body[4:4 + size]), body[4 + size:]


def take(sock, size):
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("the other side has closed")
        data += more
    return data


class Peer:
    """A connection to wpkd. `address`: a path, or (host, port); `context`: for TLS."""

    def __init__(self, address, context=None, seconds=10):
        self.is_local = isinstance(address, str)
        family = socket.AF_UNIX if self.is_local else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(seconds)
        end = time.monotonic() + seconds
        while True:
            try:
                self.sock.connect(address)
                break
            except BlockingIOError:  # more than the kernel lets wait: a moment later
                if time.monotonic() > end:
                    raise
                time.sleep(0.001)
        if context is not None:
            self.sock = context.wrap_socket(self.sock, server_hostname="localhost")
        self.number = 0x80000000

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def greet(self):
        self.sock.sendall(GREETING)
        return take(self.sock, 8)

    def head(self, size):
        """The header of a message of so many bytes."""
        self.number += 1
        return (b"\1" if self.is_local else b"") + struct.pack(">QI", size + 4, self.number)

    def send(self, body):
        self.sock.sendall(self.head(len(body)) + body)

    def receive(self):
        head = take(self.sock, 9 if self.is_local else 8)
        return take(self.sock, struct.unpack(">Q", head[-8:])[0])[4:]

    def ask(self, message, tail=b""):
        """(answer, what follows it)"""
        self.send(frame(message, tail))
        return parse(self.receive())

    def closes_within(self, seconds):
        """Does wpkd hang up in that time, whatever it says before?"""
        end = time.monotonic() + seconds
        try:
            while True:
                self.sock.settimeout(max(end - time.monotonic(), 0.001))
                if not self.sock.recv(65536):
                    return True
        except (socket.timeout, ssl.SSLWantReadError):
            return False
        except OSError:
            return True


def talk(address, body):
    """One request and its answer; None when wpkd hangs up instead."""
    try:
        with Peer(address, seconds=60) as peer:
            peer.greet()
            peer.send(body)
            return parse(peer.receive())[0]
    except (OSError, struct.error):
        return None


DEVICE = {"kind": "cpu", "model": "CPU", "flags": ["sse4_1", "avx", "avx2", "fma", "f16c"],
          "core_count": 2, "l1_bytes": 32768, "l2_bytes": 1048576, "l3_bytes": 33554432,
          "peak_flops_per_s": 0, "peak_bytes_per_s": 0, "instance": "h/cpu0"}


VERSION = 8


def hello(version=VERSION, **changes):
    message = {"version": version, "type": "hello", "session": "0", "holding": [], "name": "h/1",
               "device": DEVICE, "environment": "codegen=1",
               "providers": [{"name": "halide-cpu", "vendor": False}], "back_ends": [],
               "program": "test", "token": "", "builds": True, "runs": True, "slots": 1, "labels": {}}
    message.update(changes)
    return message


def poll(session, **changes):
    message = {"version": VERSION, "type": "poll", "session": session, "want": 1, "wait_ms": 0,
               "holding": [], "running": "0"}
    message.update(changes)
    return message


def identify(item):
    """The fields by which a poll and an upload name a work item."""
    return {name: item[name] for name in ("search", "kind", "index")}


def put_artifact(session, item, data, **changes):
    """The message that uploads `data` for a work item; the bytes follow it."""
    message = dict(identify(item), version=VERSION, type="put_artifact", session=session,
                   sha256=hashlib.sha256(data).hexdigest())
    message.update(changes)
    return message


def take_items(peer, session, count):
    """So many work items, one after the other: the strategy's answer takes a moment."""
    items = []
    while len(items) < count:
        items += peer.ask(poll(session, want=count - len(items), wait_ms=5000,
                                holding=[identify(item) for item in items]))[0]["work"]
    return items


class BadLine:
    """A line to a socket at `target` that carries so many bytes a second towards it, and breaks after
    each of `breaks` bytes."""

    def __init__(self, path, target, rate, breaks):
        self.target = target
        self.rate = rate
        self.breaks = list(breaks)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.bind(path)
        self.sock.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.sock.close()

    def accept(self):
        while True:
            try:
                near = self.sock.accept()[0]
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            far.connect(self.target)
            threading.Thread(target=self.carry, args=(near, far), daemon=True).start()
            threading.Thread(target=self.carry_back, args=(far, near), daemon=True).start()

    def carry(self, near, far):
        left = self.breaks[0] if self.breaks else 1 << 60
        try:
            while left > 0:
                data = near.recv(min(4096, left))
                if not data:
                    break
                far.sendall(data)
                left -= len(data)
                time.sleep(len(data) / self.rate)
        except OSError:
            pass
        if left <= 0:
            self.breaks.pop(0)
        for end in (near, far):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    @staticmethod
    def carry_back(far, near):
        try:
            while True:
                data = far.recv(65536)
                if not data:
                    return
                near.sendall(data)
        except OSError:
            pass


class FakeWpkd:
    """A wpkd that gives out what a test has put into `items` and keeps what comes back.

    `trouble` is asked first about every request: an answer of its own, or None."""

    LEASE_MS = 20000

    def __init__(self, path, trouble=None):
        self.url = "ipc://" + path
        self.lock = threading.Lock()
        self.items = {}     # role ("builds", "runs"): work items that wait
        self.common = {}     # ops and targets of every answer with work
        self.artifacts = {}  # sha256: bytes
        self.hellos = []
        self.polls = []
        self.results = []
        self.given_back = []
        self.sessions = {}
        self.trouble = trouble
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if os.path.exists(path):
            os.unlink(path)
        self.sock.bind(path)
        self.sock.listen(16)
        self.connections = []
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.sock.close()
        for connection in self.connections:
            connection.close()

    def accept(self):
        while True:
            try:
                connection = self.sock.accept()[0]
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            connection.sendall(GREETING_BACK)
            take(connection, 8)
            while True:
                size = struct.unpack(">Q", take(connection, 9)[1:])[0]
                body = take(connection, size)
                threading.Thread(target=self.answer, args=(connection, body), daemon=True).start()
        except OSError:
            pass

    def answer(self, connection, body):
        message, tail = parse(body[4:])
        answer = (self.trouble and self.trouble(message)) or self.respond(message, tail)
        if not isinstance(answer, tuple):
            answer = (answer, b"")
        if answer[0] is None:
            return
        data = body[:4] + frame(dict(answer[0], version=VERSION, session=message["session"]), answer[1])
        if answer[0]["type"] == "welcome":
            data = body[:4] + frame(dict(answer[0], version=VERSION), answer[1])
        with self.lock:
            try:
                connection.sendall(b"\1" + struct.pack(">Q", len(data)) + data)
            except OSError:
                pass

    def respond(self, message, tail):
        kind = message["type"]
        if kind == "hello":
            with self.lock:
                self.hellos.append(message)
                session = str(len(self.hellos))
                self.sessions[session] = message
            return {"type": "welcome", "session": session, "lease_ms": self.LEASE_MS,
                    "server": "fake"}
        if message["session"] not in self.sessions:
            return {"type": "error", "code": "ENOENT", "text": "hello?", "retry_ms": 0}
        if kind == "poll":
            self.polls.append(message)
            return self.give(self.sessions[message["session"]], message)
        if kind == "results":
            with self.lock:
                self.results += message["results"]
            return {"type": "ack", "results": ["recorded"] * len(message["results"])}
        if kind == "put_artifact":
            if hashlib.sha256(tail).hexdigest() != message["sha256"]:
                return {"type": "error", "code": "ECORRUPT", "text": "damaged", "retry_ms": 0}
            self.artifacts[message["sha256"]] = tail
            return {"type": "ack", "results": []}
        if kind == "get_artifact":
            data = self.artifacts.get(message["sha256"])
            if data is None:
                return {"type": "error", "code": "ECORRUPT", "text": "not here", "retry_ms": 0}
            return {"type": "artifact", "sha256": message["sha256"]}, data
        self.given_back.append(message)
        return {"type": "ack", "results": []}

    def give(self, worker, message):
        """Work for one of the worker's roles, once there is some."""
        end = time.monotonic() + message["wait_ms"] / 1000
        while True:
            with self.lock:
                for role in ("builds", "runs"):
                    waiting = self.items.get(role, [])
                    if worker[role] and waiting and message["want"] > 0:
                        given = [waiting.pop(0) for _ in range(min(message["want"], len(waiting)))]
                        return dict(self.common, type="work", work=given, leave=False)
            if time.monotonic() >= end:
                return {"type": "work", "ops": [], "targets": [], "work": [], "leave": False}
            time.sleep(0.01)

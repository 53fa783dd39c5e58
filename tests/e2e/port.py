# SPDX-License-Identifier: Apache-2.0
"""A wpkd whose workers come over TCP, and certificates for it."""
import json
import random
import signal
import socket
import subprocess

from lib import Service, Skip, check, wait_for


def free_port():
    """A port that is free, outside the range that the kernel gives to connections: one of these could take
    it before a wpkd is started again."""
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(15000, 32000)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


ELLIPTIC = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")  # made in no time, where RSA may take seconds


def make_certificates(box, name, host="localhost", authority=False, names=None, kind=ELLIPTIC):
    """An authority and a server's certificate of it: (authority's file, certificate's, key's).
    `authority`: it is there already, and gives another certificate. `names`: of others than `host`."""
    if subprocess.run(["openssl", "version"], capture_output=True, check=False).returncode != 0:
        raise Skip("there is no openssl to make certificates with")

    def openssl(*args):
        done = subprocess.run(["openssl"] + list(args), capture_output=True, check=False)
        check(done.returncode == 0, "openssl %s" % args[0], done.stderr)

    ca, ca_key = box.path(name + "-ca.pem"), box.path(name + "-ca.key")
    key, request, certificate = (box.path(name + end) for end in (".key", ".csr", ".pem"))
    if not authority:
        openssl("req", "-x509", "-newkey", *kind, "-nodes", "-keyout", ca_key, "-out", ca, "-days", "2",
                "-subj", "/CN=authority " + name)
    openssl("req", "-newkey", *kind, "-nodes", "-keyout", key, "-out", request, "-subj", "/CN=" + host)
    names = box.write(name + ".ext", "subjectAltName=%s\n" % (names or "DNS:" + host))
    openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2",
            "-extfile", names, "-out", certificate)
    return ca, certificate, key


class Port(Service):
    """A wpkd whose workers come over ipc and over TCP, with TLS or without."""

    def __init__(self, box, certificate=None, key=None, config=None, **options):
        self.port = free_port()
        self.address = ("127.0.0.1", self.port)
        self.tcp = ("tls+tcp" if certificate else "tcp") + "://127.0.0.1:%d" % self.port
        self.tls_url = "tls+tcp://localhost:%d" % self.port
        listener = {"address": self.tcp}
        if certificate:
            listener.update(certificate=certificate, key=key)
        self.box = box
        self.socket = box.path("http.sock")
        self.local = box.path("workers.sock")
        self.listen = "ipc://" + self.local
        self.url = "unix:" + self.socket
        self.workers = []
        config = box.write("wpkd.json", dict({
            "data": box.data, "http": {"listen": [{"address": self.url}]},
            "workers": {"listen": [{"address": self.listen}, listener]}}, **(config or {})))
        self.start = lambda: self.begin(config, **options)
        self.start()

    def configure(self, **members):
        """Change members of the configuration, and reload it."""
        with open(self.box.path("wpkd.json"), encoding="utf-8") as file:
            config = json.load(file)
        self.box.write("wpkd.json", dict(config, **members))
        self.wpkd.popen.send_signal(signal.SIGHUP)

    def begin(self, config, **options):
        self.wpkd = self.box.start("wpkd", "--config", config, **options)
        wait_for("wpkd answers", self.healthy, 30)

    def joined(self):
        return self.ask("GET", "/v1/workers")[1]["workers"]

    def log(self):
        return self.wpkd.text(self.wpkd.err)

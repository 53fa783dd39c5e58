# SPDX-License-Identifier: Apache-2.0
"""wpkctl over https: what it does with the right CA and token, and what it says of wrong ones."""
import http.server
import json
import os
import signal
import ssl
import threading
import time

from lib import Service, check, main, need, small_job, wait_for
from port import free_port, make_certificates


class Remote(Service):
    """A wpkd that also listens at https://localhost, for somebody with a token."""

    def __init__(self, box, names="DNS:localhost"):
        self.box = box
        self.ca, self.certificate, self.key = make_certificates(box, "one", names=names)
        port = free_port()
        self.remote = "https://localhost:%d" % port
        self.misnamed = "https://127.0.0.1:%d" % port  # the certificate is of another name
        self.socket = box.path("http.sock")
        self.url = "unix:" + self.socket
        self.listen = "ipc://" + box.path("workers.sock")
        self.workers = []
        config = box.write("wpkd.json", {
            "data": box.data,
            "http": {"listen": [{"address": self.url},
                                {"address": "127.0.0.1:%d" % port, "certificate": self.certificate,
                                 "key": self.key}]},
            "workers": {"listen": [{"address": self.listen}]}})
        self.wpkd = box.start("wpkd", "--config", config)
        wait_for("wpkd answers", self.healthy, 30)

    def token(self, *roles, **more):
        """(its file, its id)"""
        status, token, _ = self.ask("POST", "/v1/tokens", dict(more, owner="ann", roles=roles))
        check(status == 201, "a token", status, token)
        return self.box.write("token" + token["id"], token["secret"] + "\n"), token["id"]

    def refused(self, code, says, *words, server=None):
        """wpkctl ends with that code, one line, and these words in it."""
        got, out, err = self.box.run("wpkctl", *words, "--server", server or self.remote)
        check(got == code and out == "", "%s ended with %s, not %s" % (words[0], got, code), out, err)
        check(len(err.splitlines()) == 1 and all(word in err for word in says), "it is said", says, err)


def test_everything_over_https(box):
    need("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
    service = Remote(box)
    service.add_worker()
    token, _ = service.token("read", "submit")
    access = ("--server", service.remote, "--ca", service.ca, "--token-file", token)
    job = box.ctl("submit", box.write("job.json", small_job()), *access).strip()
    box.ctl("watch", job, *access, "--quiet")
    kernels = json.loads(box.ctl("kernels", "--json", *access))["kernels"]
    check(len(kernels) == 1, "one is served", kernels)
    check(json.loads(box.ctl("status", job, "--json", *access))["owner"] == "ann", "the token's owner")
    box.ctl("get", "small", "--own", "-o", box.path("small.so"), *access)
    check(all(os.path.isfile(box.path("small.so" + end)) for end in ("", ".manifest", ".sig")), "a kernel")
    # From the environment, and from the file that names this server.
    box.env.update(WPK_URL=service.remote, WPK_CA=service.ca, WPK_TOKEN_FILE=token)
    box.ctl("kernels")
    for name in ("WPK_URL", "WPK_CA", "WPK_TOKEN_FILE"):
        del box.env[name]
    os.makedirs(box.path(".config/woodpecker"))
    box.write(".config/woodpecker/wpkctl.json",
              {"server": service.remote, "ca": service.ca, "token_file": token})
    box.ctl("kernels")
    service.stop()


def test_a_certificate_of_an_address(box):
    """wpkctl goes by it."""
    need("wpkd")
    service = Remote(box, names="IP:127.0.0.1")
    token, _ = service.token("read")
    box.ctl("kernels", "--server", service.misnamed, "--ca", service.ca, "--token-file", token)
    service.refused(5, ["localhost", "not trusted", "name"], "kernels", "--ca", service.ca,
                    "--token-file", token)
    service.stop()


def test_whom_wpkctl_does_not_trust(box):
    """It says what is wrong with the server, and does not show it the token."""
    need("wpkd")
    service = Remote(box)
    other, _, _ = make_certificates(box, "other")
    token = ("--token-file", box.write("unknown", "0" * 64 + "\n"))
    service.refused(5, ["localhost", "not trusted"], "kernels", "--ca", other, *token)
    service.refused(5, ["localhost", "not trusted", "--ca"], "kernels", *token)
    service.refused(5, ["127.0.0.1", "not trusted", "name"], "kernels", "--ca", service.ca, *token,
                    server=service.misnamed)
    service.refused(2, ["nowhere.pem"], "kernels", "--ca", box.path("nowhere.pem"), *token)
    service.refused(2, ["unknown"], "kernels", "--ca", box.path("unknown"), *token)
    service.refused(2, ["nowhere"], "kernels", "--ca", service.ca, "--token-file", box.path("nowhere"))
    check(service.metric("wpk_auth_denied_total", "unknown") == 0, "the token was shown to nobody")
    # In the clear it goes nowhere but to this machine.
    service.refused(2, ["https"], "kernels", *token, server="http://192.0.2.1:80")
    plain = service.remote.replace("https", "http")
    code, out, err = box.run("wpkctl", "kernels", "--server", plain)
    check(code not in (0, 5) and out == "" and plain in err, "no TLS where there is TLS", code, err)
    service.stop()


def test_whom_wpkd_does_not_trust(box):
    """Expired, revoked, unknown, missing or without the role: it says which of them."""
    need("wpkd")
    service = Remote(box)
    ca = ("--ca", service.ca)
    reader, identifier = service.token("read")
    brief, _ = service.token("read", seconds=1)
    box.ctl("kernels", "--server", service.remote, *ca, "--token-file", reader)
    job = box.write("job.json", small_job())
    service.refused(5, ["submit"], "submit", job, *ca, "--token-file", reader)
    service.refused(5, ["token"], "kernels", *ca)
    service.refused(5, ["no such token"], "kernels", *ca, "--token-file", box.write("other", "1" * 64))
    time.sleep(1.1)
    service.refused(5, ["expired"], "kernels", *ca, "--token-file", brief)
    box.ctl("token", "revoke", identifier, "--server", service.url)
    service.refused(5, ["revoked"], "kernels", *ca, "--token-file", reader)
    for reason in ("role", "missing", "unknown", "expired", "revoked"):
        count = service.metric("wpk_auth_denied_total", reason)
        check(count == 1, "it is counted as " + reason, count)
    service.stop()


def test_another_certificate(box):
    """A reload serves it, to who connects; whoever watches a job goes on."""
    need("wpkd")
    service = Remote(box)
    token, _ = service.token("read", "submit")
    access = ("--server", service.remote, "--ca", service.ca, "--token-file", token)
    job = box.ctl("submit", box.write("job.json", small_job()), *access).strip()
    watch = box.start("wpkctl", "watch", job, *access)
    time.sleep(1)
    make_certificates(box, "one", authority=True)  # of the same authority, with another key
    new_ca, certificate, key = make_certificates(box, "new")
    service.wpkd.popen.send_signal(signal.SIGHUP)
    wait_for("it is read", lambda: "reloaded" in service.wpkd.text(service.wpkd.err), 10)
    box.ctl("jobs", *access)
    check(watch.popen.poll() is None, "it watches on", watch.text(watch.err))
    os.replace(certificate, service.certificate)
    os.replace(key, service.key)
    service.wpkd.popen.send_signal(signal.SIGHUP)
    wait_for("it is read", lambda: service.wpkd.text(service.wpkd.err).count("reloaded") == 2, 10)
    service.refused(5, ["not trusted"], "jobs", "--ca", service.ca, "--token-file", token)
    box.ctl("jobs", "--server", service.remote, "--ca", new_ca, "--token-file", token)
    box.ctl("cancel", job, "--server", service.url)
    watch.popen.kill()
    watch.wait(20)
    service.stop()


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A server that sends whoever asks to another one."""

    asked = []

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response(302)
        self.send_header("Location", "http://localhost:%d/taken" % self.server.server_port)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_a_redirection_is_not_followed(box):
    need("wpkctl")
    ca, certificate, key = make_certificates(box, "one")
    server = http.server.HTTPServer(("127.0.0.1", 0), Elsewhere)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    code, out, err = box.run("wpkctl", "kernels", "--server", "https://localhost:%d" % server.server_port,
                             "--ca", ca, "--token-file", box.write("token", "secret"))
    server.shutdown()
    thread.join()
    server.server_close()
    check(code == 1 and out == "" and "302" in err, "it is no wpkd", code, out, err)
    check(len(Elsewhere.asked) == 1, "asked once", Elsewhere.asked)


if __name__ == "__main__":
    main(globals())

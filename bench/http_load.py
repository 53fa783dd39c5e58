#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast wpkd answers over HTTP: lookups by key among the kernels of a data directory.

    bench/http_load.py DIR [--seconds S] [--beside COMMAND]

DIR is what `bench-fleet --data DIR --fill` left. wpkd is started on it with a Unix socket, TCP and
TLS on loopback; everything over TCP shows a token. One line a measurement: requests a second,
times in microseconds, processor time of wpkd a request. COMMAND runs during the open loop, with
WPK_HTTP and WPK_WORKERS in its environment. wrk, if it is there, measures TLS.
"""
import argparse
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("WPK_BUILD", os.path.join(ROOT, "build"))


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Service:
    def __init__(self, data, folder):
        self.folder = folder
        self.socket = os.path.join(folder, "http.sock")
        self.tcp, self.tls = free_port(), free_port()
        certificate, key = os.path.join(folder, "tls.crt"), os.path.join(folder, "tls.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
        config = os.path.join(folder, "wpkd.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"http": {"listen": [
                {"address": "unix:" + self.socket}, {"address": "127.0.0.1:%d" % self.tcp},
                {"address": "127.0.0.1:%d" % self.tls, "certificate": certificate, "key": key}]}},
                file)
        self.workers = "ipc://" + os.path.join(folder, "workers.sock")
        began = time.monotonic()
        self.process = subprocess.Popen([os.path.join(BUILD, "bin/wpkd"), "--config", config, "--data",
                                         data, "--listen", self.workers, "--log-level", "warn"])
        while True:
            try:
                self.ask("GET", "/healthz")
                break
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit("wpkd does not start")
                time.sleep(0.01)
        print("ready after %.2f s" % (time.monotonic() - began))

    def ask(self, method, path, body=None):
        connection = Unix(self.socket)
        headers = {"Content-Type": "application/json"} if body else {}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def write(self, name, lines):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        return path

    def resident_mib(self):
        with open("/proc/%d/status" % self.process.pid, encoding="utf-8") as file:
            return next(int(l.split()[1]) for l in file if l.startswith("VmRSS")) / 1024


def find_keys(service):
    keys, token = [], ""
    while len(keys) < 10000:
        page = service.ask("GET", "/v1/kernels?page_size=1000" + token)
        keys += [k["fingerprint"] for k in page["kernels"]]
        token = "&page_token=" + page["next_page_token"]
        if not page["next_page_token"] or not page["kernels"]:
            break
    return keys


def measure(title, service, *options):
    done = subprocess.run([os.path.join(BUILD, "bench/bench-http"), "--pid", str(service.process.pid)] +
                          [str(o) for o in options], stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise SystemExit("bench-http failed")
    r = json.loads(done.stdout)
    print("%-40s %8.0f /s  p50 %8.1f  p99 %9.1f  p99.9 %9.1f  CPU %7.2f us%s" % (
        title, r["answers_per_s"], r["p50_us"], r["p99_us"], r["p999_us"], r["cpu_us_per_answer"],
        "  %d FAILED" % r["failures"] if r["failures"] else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--beside")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="wpk-http-")
    service = Service(os.path.abspath(options.data), folder)
    try:
        token = service.ask("POST", "/v1/tokens", {"owner": "bench", "roles": ["read"]})["secret"]
        keys = find_keys(service)
        print("%d kernels, %.0f MiB resident" % (len(keys), service.resident_mib()))
        gets = service.write("gets", ["/v1/kernels?page_size=1&fingerprint=" + k for k in keys])
        posts = service.write("posts", [json.dumps({"fingerprint": k}) for k in keys])
        batches = service.write("batches", [
            json.dumps({"lookups": [{"fingerprint": k} for k in keys[i:i + 1000]]})
            for i in range(0, len(keys), 1000)])
        unix, tcp = "unix:" + service.socket, "127.0.0.1:%d" % service.tcp
        lookup = ["--target", "/v1/kernels:lookup", "--post"]
        known = ["--to", tcp, "--token", token, "--seconds", options.seconds]
        measure("healthz, closed loop", service, *known)
        measure("GET by key, closed loop", service, *known, "--targets", gets)
        measure("lookup, closed loop", service, *known, *lookup, posts)
        measure("lookup, closed loop, Unix socket", service, "--to", unix, "--seconds", options.seconds,
                *lookup, posts)
        measure("lookup, closed loop, 1,000 connections", service, *known, *lookup, posts,
                "--connections", 1000)
        measure("1,000 lookups a batch, closed loop", service, *known, *lookup, batches,
                "--connections", 4)
        beside = None
        if options.beside:
            beside = subprocess.Popen(options.beside, shell=True, start_new_session=True, env=dict(
                os.environ, WPK_HTTP=unix, WPK_WORKERS=service.workers))
            time.sleep(3)
        measure("lookup, open loop, 5,000/s", service, *known, *lookup, posts, "--rate", 5000)
        measure("GET by key, open loop, 5,000/s", service, *known, "--targets", gets, "--rate", 5000)
        if beside:
            os.killpg(beside.pid, signal.SIGTERM)  # the shell and what it started
            beside.wait()
        if shutil.which("wrk"):
            subprocess.run(["wrk", "-t1", "-c32", "-d%ds" % options.seconds, "--latency", "-H",
                            "Authorization: Bearer " + token,
                            "https://127.0.0.1:%d/v1/kernels?page_size=1&fingerprint=%s" % (
                                service.tls, keys[0] if keys else "")], check=False)
        print("%.0f MiB resident" % service.resident_mib())
    finally:
        service.process.terminate()
        service.process.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

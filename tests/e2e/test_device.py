# SPDX-License-Identifier: Apache-2.0
"""A worker is stopped while it has its machine's device. Machines are network namespaces: the device's
lock is an abstract socket, of which each namespace has its own."""
import json
import os
import shutil
import signal
import subprocess
import time

from lib import BIN, CONVOLUTION, PATIENCE, Process, Service, Skip, check, main, need, small_job, wait_for

CANDIDATES = 12
USER = [] if os.geteuid() == 0 else ["-r"]


def start_worker(service, name, *machine):
    """`machine`: the command that enters it; it becomes the worker."""
    worker = Process(service.box, [*machine, os.path.join(BIN, "wpk-worker"), "--cpu", "--coordinator",
                                   service.listen, "--name", name, "--data", service.box.dir])
    service.workers.append(worker)
    return worker


def events(service, event, worker):
    found = [json.loads(line) for line in service.wpkd.text(service.wpkd.err).splitlines(keepends=True)
             if line.endswith("\n")]
    return [e for e in found if e["event"] == event and e["worker"] == worker]


def leased(service, worker):
    return {e["work"] for e in events(service, "leased", worker)}


def outcomes(service, path):
    """Of the candidates that have ended."""
    trials = service.ask("GET", path + "/trials?page_size=100")[1]["trials"]
    return [trial["outcome"] for trial in trials
            if trial["provider"] == "halide-cpu" and trial["outcome"] != "pending"]


def network(process):
    return os.readlink("/proc/%s/ns/net" % process)


def has_device(worker):
    """Somebody of its machine has."""
    with open("/proc/%d/net/unix" % worker.popen.pid, encoding="utf-8") as file:
        return "@woodpecker-device-cpu\n" in file.read()


def is_stopped(worker):
    with open("/proc/%d/stat" % worker.popen.pid, encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def stop_with_device(worker):
    """It is alone on its machine, and times one candidate after the other."""
    # Until then it is `unshare`, which sees the devices of this machine.
    wait_for("it is on its machine", lambda: network(worker.popen.pid) != network("self"))
    end = time.monotonic() + 60 * PATIENCE
    while time.monotonic() < end:
        if has_device(worker):
            worker.popen.send_signal(signal.SIGSTOP)
            wait_for("it stands still", lambda: is_stopped(worker))
            if has_device(worker):
                return
            worker.popen.send_signal(signal.SIGCONT)
        time.sleep(0.001)
    check(False, "it has the device now and then", worker.text(worker.err)[-2000:])


def test_a_stopped_worker_keeps_the_device(box):
    """Another worker of its machine waits for the device, and gives its leases back after a minute: a
    worker of another machine tries what they were for."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    if shutil.which("unshare") is None or subprocess.run(
            ["unshare", "-n", *USER, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("no network namespace can be made here")
    service = Service(box, options=("--log-level", "debug", "--log-format", "json"))
    job = small_job(ops=[CONVOLUTION], budget={"candidates": CANDIDATES, "seconds": 3600})
    status, job, _ = service.ask("POST", "/v1/jobs", job)
    check(status == 201, "the job is taken", job)
    path = "/v1/jobs/" + job["id"]
    stopped = start_worker(service, "stopped", "unshare", "-n", *USER)
    stop_with_device(stopped)
    waiting = start_worker(service, "waiting", "nsenter", "--target", str(stopped.popen.pid), "--net",
                           *(["--user", "--preserve-credentials"] if USER else []))
    # Once the stopped one is lost, if it had all.
    wait_for("the other one has leases", lambda: leased(service, "waiting"), 120)
    start_worker(service, "elsewhere", "unshare", "-n", *USER)
    wait_for("all is tried", lambda: len(outcomes(service, path)) >= CANDIDATES, 240)
    check("abandoned" not in outcomes(service, path), "to its end", outcomes(service, path))
    check(is_stopped(stopped), "it stood still all the time", stopped.text(stopped.err))
    timed = [e for e in events(service, "received", "waiting") if e["outcome"] == "ok"]
    check(not timed, "and so nothing was timed on its machine", timed, waiting.text(waiting.err))
    check(leased(service, "waiting") & leased(service, "elsewhere"), "what waited went elsewhere",
          leased(service, "waiting"), leased(service, "elsewhere"))
    check(not events(service, "blamed", "waiting"), "without blame", events(service, "blamed", "waiting"))
    check(not events(service, "worker_lost", "waiting"), "nor was that worker lost")
    check(waiting.popen.poll() is None, "it lives", waiting.text(waiting.err)[-2000:])
    stopped.popen.send_signal(signal.SIGCONT)
    wait_for("the stopped worker comes back", lambda: len(events(service, "worker_joined", "stopped")) == 2)
    wait_for("the job is done", lambda: service.ask("GET", path)[1]["state"] == "done", 120)
    service.stop()


if __name__ == "__main__":
    main(globals())

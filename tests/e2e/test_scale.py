# SPDX-License-Identifier: Apache-2.0
"""Fleets that grow with demand, and workers that leave by themselves."""
import os
import re
import shutil
import signal
import subprocess
import time

from lib import BIN, CONVOLUTION, ROOT, Process, Skip, check, descendants, main, need, wait_for
from test_api import Api
from test_worker_fleet import ended_of, state_of, submit, trials_of, wait_done

CLASS = "cpu/some model/avx2"


def demand(service, query=""):
    return service.want(200, "GET", "/v1/demand" + query)


def test_demand_before_any_worker(box):
    """Jobs that no worker has served are wanted, by device and labels."""
    need("wpkd")
    service = Api(box)
    check(demand(service) == {"demand": [], "workers": 0}, "nothing is wanted", demand(service))
    submit(service)
    submit(service, target={"kind": "cpu", "device": CLASS, "threads": 1}, search={"strategy": "random", "seed": 2})
    submit(service, target={"kind": "cpu", "threads": 1, "labels": {"site": "a"}}, search={"strategy": "random", "seed": 3})
    entries = [{"device": "cpu", "labels": {}, "workers": 1}, {"device": CLASS, "labels": {}, "workers": 1},
               {"device": "cpu", "labels": {"site": "a"}, "workers": 1}]
    check(demand(service) == {"demand": entries, "workers": 3}, "each is wanted", demand(service))
    for query, workers in (("device=cpu", 1), ("device=cuda", 0), ("device=cpu/some%20model/avx2", 2), ("device=cp", 0),
                           ("device=cpux", 0)):
        got = demand(service, "?" + query)
        check(got["workers"] == workers, query, got)
    wait_for("the metric follows", lambda: service.metric("wpk_workers_wanted") == 3, 10)
    check(service.metric("wpk_workers_wanted", "cpu") == 2, "with and without labels")
    check(service.metric("wpk_workers_wanted", CLASS) == 1, "of the class, too")
    check(service.metric("wpk_queue_depth") in (None, 0), "no search is open yet")
    service.stop()


def blamed(service, job):
    """Trials that took more than one attempt, and lines of the log that blame one."""
    return [t for t in trials_of(service, job) if t.get("attempts", 1) > 1] + re.findall("^.*(?:blamed|abandoned).*$", service.wpkd.text(service.wpkd.err), re.M)


def test_workers_leave_when_idle(box):
    """A surplus worker leaves after its idle time, the other one after the last work."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    service = Api(box)
    job = submit(service)
    first = service.add_worker("--exit-when-idle", "3", "--name", "first")
    wait_done(service, job)
    ended = time.monotonic()
    check(demand(service)["workers"] == 0, "nothing is wanted any more")
    code, _, err = first.wait(30)
    left_s = time.monotonic() - ended
    check(code == 0 and "reason=idle" in err, "it leaves in peace", code, err[-2000:])
    surplus = service.add_worker("--exit-when-idle", "1", "--name", "surplus")
    code, _, err = surplus.wait(30)
    check(code == 0 and "reason=idle" in err, "it got no work", code, err[-2000:])
    check(not blamed(service, job), "nobody is blamed", blamed(service, job))
    check("worker_lost" not in service.wpkd.text(service.wpkd.err), "it said goodbye")
    print("# from the last work to the exit: %.1f s of 3" % left_s)
    service.stop()


def test_workers_leave_without_wpkd(box):
    """A worker whose wpkd is not there has no work, either."""
    need("wpk-worker", "wpk-builder", "wpk-runner")
    worker = box.start("wpk-worker", "--cpu", "--coordinator", "ipc://" + box.path("none.sock"), "--exit-when-idle", "1")
    code, _, err = worker.wait(30)
    check(code == 0 and "reason=idle" in err, "it leaves", code, err)


def test_workers_leave_in_time(box):
    """Workers that leave in the middle of a job lose no result and blame no candidate."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    service = Api(box)
    job = submit(service, ops=[dict(CONVOLUTION)], budget={"candidates": 400, "seconds": 600})
    ended = set()
    for turn in range(2):
        worker = service.add_worker("--leave-after", "6", "--name", "worker%d" % turn)
        code, _, err = worker.wait(90)
        check(code == 0 and "reason=time" in err, "it leaves in time", code, err[-2000:])
        check(state_of(service, job)["state"] in ("queued", "running"), "the job goes on")
        now = ended_of(service, job)
        check(ended <= now, "no result is lost", ended - now)
        ended = now
        check(service.metric("wpk_leases_held") == 0 or wait_for("its leases went back", lambda: service.metric("wpk_leases_held") == 0, 5), "none is held")
    if not ended:
        raise Skip("this machine is too busy: no candidate was timed in 6 s")
    check(not blamed(service, job), "nobody is blamed", blamed(service, job))
    log = service.wpkd.text(service.wpkd.err)
    check("worker_lost" not in log and log.count("worker_left") == 2, "each said goodbye", log[-2000:])
    service.stop()


def test_all_processes_are_told(box):
    """Slurm sends SIGTERM to every process of a job: no candidate dies of it."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    service = Api(box)
    job = submit(service, ops=[dict(CONVOLUTION)], budget={"candidates": 400, "seconds": 600})
    for turn in range(2):
        worker = service.add_worker("--name", "worker%d" % turn)
        known = len(ended_of(service, job))
        wait_for("it works", lambda: len(ended_of(service, job)) > known, 60)
        for pid in list(descendants(worker.popen.pid)) + [worker.popen.pid]:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass  # a candidate has ended meanwhile
        code, _, err = worker.wait(90)
        check(code == 0 and "reason=told" in err, "it leaves", code, err[-2000:])
        check("died" not in err and "interrupted" not in err, "nothing was cut short", err[-2000:])
    outcomes = {outcome for _, outcome in ended_of(service, job)}
    check(not outcomes & {"run_crash", "build_error", "abandoned"} and not blamed(service, job), "nobody is blamed", outcomes)
    service.stop()


# Slurm, as far as the scaler sees it: jobs are processes of this machine.
SBATCH = """#!/bin/sh
for option; do
    case $option in --array=1-*) count=${option#--array=1-} ;; esac
done
echo "$@" >>"$SLURM_DIR/calls"
for task in $(seq "$count"); do
    SLURM_JOB_END_TIME=$(($(date +%s) + 3600)) sh "$option" </dev/null >"$SLURM_DIR/log.$$.$task" 2>&1 &
    echo $! >>"$SLURM_DIR/pids"
done
"""
SQUEUE = """#!/bin/sh
[ ! -e "$SLURM_DIR/down" ] || exit 1
[ ! -e "$SLURM_DIR/pids" ] || while read -r pid; do
    [ ! -e "/proc/$pid/exe" ] || echo "$pid"
done <"$SLURM_DIR/pids"
"""
SCANCEL = '#!/bin/sh\necho "$@" >>"$SLURM_DIR/cancelled"\n'


def start_scaler(box, service, **variables):
    """The scaler of deploy/slurm, with stubs of Slurm's commands, and the directory that they write to."""
    if not shutil.which("curl"):
        raise Skip("no curl")
    directory = box.path("slurm")
    os.mkdir(directory)
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
        path = box.write("slurm/" + name, text)
        os.chmod(path, 0o755)
    box.env.update(SLURM_DIR=directory, PATH="%s:%s:%s" % (directory, os.path.abspath(BIN), os.environ["PATH"]),
                   WPK_URL=service.url, WPK_COORDINATOR=service.listen, WPK_EVERY_S="1", WPK_IDLE_S="3", **variables)
    scaler = Process(box, [os.path.join(ROOT, "deploy/slurm/scaler.sh"), "--partition=main"])
    return scaler, directory


def read(*path):
    try:
        with open(os.path.join(*path), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def test_scaler(box):
    """Workers come with work and leave with it."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    service = Api(box)
    scaler, directory = start_scaler(box, service, WPK_WORKERS_MAX="2")
    time.sleep(3)
    check(read(directory, "calls") == "", "without work nothing is started", read(directory, "calls"))
    box.write("slurm/down", "")
    submitted = time.monotonic()
    job = submit(service, budget={"candidates": 40, "seconds": 600})
    time.sleep(3)
    check(read(directory, "calls") == "", "nor while Slurm does not answer", read(directory, "calls"))
    os.remove(box.path("slurm/down"))
    up = time.monotonic()
    wait_for("a worker has come", lambda: read(directory, "calls"), 30)
    wait_for("there is a result", lambda: any(t["outcome"] == "ok" for t in trials_of(service, job)), 60)
    first_s = time.monotonic() - up
    wait_done(service, job)
    done = time.monotonic()
    wait_for("the workers have left", lambda: not live(directory), 60)
    print("# first result %.1f s after a look at Slurm was possible, job %.1f s, last work to last exit %.1f s (idle time 3 s)" % (
        first_s, done - submitted, time.monotonic() - done))
    calls = read(directory, "calls").splitlines()
    check(all("--partition=main" in call and "--job-name=wpk-worker-cpu" in call for call in calls), "with its options", calls)
    check(len(calls) < 10, "it does not start in vain", calls)
    logs = "".join(read(directory, name) for name in os.listdir(directory) if name.startswith("log."))
    check("reason=idle" in logs, "they left by themselves", logs[-2000:])
    cancelled = read(directory, "cancelled")
    check(cancelled.startswith("-t PENDING -n wpk-worker-cpu -u "), "those that wait are cancelled", cancelled)
    check(not blamed(service, job), "nobody is blamed", blamed(service, job))
    scaler.popen.terminate()
    scaler.wait(10)
    service.stop()


def test_scaler_asks_with_a_token(box):
    """By TLS, from files whose names have spaces; the token is no argument, which others could see."""
    stub = '#!/bin/sh\n[ ! -e "$SLURM_DIR/asked" ] || exit 1\nprintf "%s\\n" "$@" >"$SLURM_DIR/arguments"\ncat >"$SLURM_DIR/input"\n: >"$SLURM_DIR/asked"\n'
    os.mkdir(box.path("a slurm"))
    for name, text in (("curl", stub), ("squeue", "#!/bin/sh\nexit 1\n")):
        os.chmod(box.write("a slurm/" + name, text), 0o755)
    box.env.update(SLURM_DIR=box.path("a slurm"), PATH=box.path("a slurm") + ":" + os.environ["PATH"], WPK_COORDINATOR="tcp://x:1",
                   WPK_URL="https://tuner:8443", WPK_CA=box.path("a ca.pem"), WPK_DEVICE=CLASS,
                   WPK_TOKEN_FILE=box.write("a token", "secret of * two words\n"), WPK_EVERY_S="0.1")
    scaler = Process(box, [os.path.join(ROOT, "deploy/slurm/scaler.sh")])
    wait_for("it asks", lambda: os.path.exists(box.path("a slurm/asked")), 10)
    scaler.popen.terminate()
    scaler.wait(10)
    arguments = read(box.dir, "a slurm/arguments").splitlines()
    check(arguments[-1] == "https://tuner:8443/v1/demand" and "device=" + CLASS in arguments, "for its device", arguments)
    check(arguments[arguments.index("--cacert") + 1] == box.path("a ca.pem"), "with its CA", arguments)
    check(read(box.dir, "a slurm/input") == "Authorization: Bearer secret of * two words\n", "and its token", arguments)
    check("secret" not in " ".join(arguments), "as no argument", arguments)


def live(directory):
    return [pid for pid in read(directory, "pids").split() if os.path.exists("/proc/%s/exe" % pid)]


def test_worker_of_slurm(box):
    """worker.sbatch names the GPU by its UUID, and leaves before the job's time is over. tests/schedulers.py asks Slurm."""
    directory = box.path("slurm")
    os.mkdir(directory)
    for name, text in (("wpk-worker", '#!/bin/sh\necho "$@"\n'), ("nvidia-smi", '#!/bin/sh\necho "GPU-$2-of-smi"\n')):
        os.chmod(box.write("slurm/" + name, text), 0o755)
    script = os.path.join(ROOT, "deploy/slurm/worker.sbatch")
    for variables, want in (({}, "--cpu --coordinator tcp://x:1 --exit-when-idle 30"),
                            ({"CUDA_VISIBLE_DEVICES": "3,4", "WPK_IDLE_S": "5", "WPK_WORKER": "--ca /a --label a=/*"},
                             "--gpu GPU-3-of-smi --coordinator tcp://x:1 --exit-when-idle 5 --ca /a --label a=/*"),
                            ({"CUDA_VISIBLE_DEVICES": "3", "WPK_DEVICE": CLASS}, "--cpu --coordinator tcp://x:1 --exit-when-idle 30"),
                            ({"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2", "WPK_DEVICE": "cuda"},
                             "--gpu GPU-1 --coordinator tcp://x:1 --exit-when-idle 30"),
                            ({"CUDA_VISIBLE_DEVICES": "MIG-1"}, "--gpu MIG-1 --coordinator tcp://x:1 --exit-when-idle 30")):
        env = {"PATH": directory + ":" + os.environ["PATH"], "WPK_COORDINATOR": "tcp://x:1", **variables}
        said = subprocess.run(["sh", script], env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
        check(said == want + "\n", "the options", said, want)
    end = str(int(time.time()) + 1000)
    said = subprocess.run(["sh", script], env=dict(env, SLURM_JOB_END_TIME=end), stdout=subprocess.PIPE, text=True, check=True).stdout
    check(790 <= int(said.split("--leave-after ")[1]) <= 820, "three minutes before", said)
    box.write("slurm/nvidia-smi", "#!/bin/sh\nexit 6\n")
    for variables in ({"CUDA_VISIBLE_DEVICES": "3"}, {"CUDA_VISIBLE_DEVICES": "", "WPK_DEVICE": "cuda"}):
        failed = subprocess.run(["sh", script], env=dict(env, **variables), stdout=subprocess.PIPE, text=True, check=False)
        check(failed.returncode == 6 and failed.stdout == "", "without its GPU there is no worker", failed)
    check(subprocess.run(["sh", script], env={"PATH": env["PATH"]}, stderr=subprocess.DEVNULL, check=False).returncode != 0, "it needs a wpkd")


if __name__ == "__main__":
    main(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers that Slurm and Ray start by the files of deploy/, each a private one on this machine (`make test-schedulers`).

    tests/schedulers.py [TEST...]

Slurm's daemons run as root in the test's directory, with ports, a key and a spool of their own. Its node has a GPU that is
/dev/null.
"""
import glob
import os
import shutil
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "e2e"))
from lib import BIN, CONVOLUTION, ROOT, Process, Skip, check, kill, need, run_tests, small_job, stat_of, wait_for  # noqa: E402
from port import free_port  # noqa: E402
from test_api import Api  # noqa: E402
from test_scale import blamed, read  # noqa: E402
from test_worker_fleet import ended_of, submit, trials_of, wait_done  # noqa: E402

PROGRAMS = ("wpkd", "wpkctl", "wpk-worker", "wpk-builder", "wpk-runner")
RAY = os.path.join(ROOT, ".deps/ray-venv/bin")

# A pause between preemption and SIGKILL, at whose beginning the user's signal is sent: what docs/operations.md asks for.
CONFIG = """ClusterName=wpk
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={0}/munge.sock
SlurmctldPort={1}
SlurmdPort={2}
StateSaveLocation={0}/state
SlurmdSpoolDir={0}/spool
SlurmctldPidFile={0}/slurmctld.pid
SlurmdPidFile={0}/slurmd.pid
SlurmctldLogFile={0}/slurmctld.log
SlurmdLogFile={0}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
KillWait=90
ReturnToService=2
GresTypes=gpu
NodeName=localhost NodeAddr=127.0.0.1 NodeHostname={3} CPUs={4} Gres=gpu:1
PartitionName=main Nodes=ALL Default=YES PriorityTier=1 GraceTime=90
PartitionName=urgent Nodes=ALL PriorityTier=2
"""


class Slurm:
    """A cluster of one node. At the end of `with` nothing of it is left."""

    def __init__(self, box):
        if os.getuid() != 0:
            raise Skip("slurmd runs as root")
        path = os.environ["PATH"] + ":/usr/sbin"
        missing = [p for p in ("munged", "slurmctld", "slurmd", "sbatch", "curl") if not shutil.which(p, path=path)]
        if missing:
            raise Skip("not installed: %s (deploy/setup.sh schedulers)" % ", ".join(missing))
        self.box = box
        self.config = box.path("slurm.conf")
        box.env.update(SLURM_CONF=self.config, PATH="%s:%s" % (os.path.abspath(BIN), path))
        self.daemons = []

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def start(self):
        box = self.box
        for folder in ("state", "spool"):
            os.mkdir(box.path(folder))
        os.chmod(box.write("munge.key", os.urandom(1024)), 0o600)
        box.write("slurm.conf", CONFIG.format(box.dir, free_port(), free_port(), socket.gethostname(), os.cpu_count()))
        box.write("gres.conf", "NodeName=localhost Name=gpu File=/dev/null\n")
        munged = ["munged", "--foreground", "--force", *("--%s=%s" % (option, box.path(file)) for option, file in (
            ("socket", "munge.sock"), ("key-file", "munge.key"), ("log-file", "munged.log"), ("pid-file", "munged.pid"),
            ("seed-file", "munged.seed")))]
        for words in (munged, ["slurmctld", "-D"], ["slurmd", "-D", "-N", "localhost"]):
            self.daemons.append(Process(box, words))
            if words is munged:
                wait_for("munged listens", lambda: os.path.exists(box.path("munge.sock")), 10)
        wait_for("the node is there", lambda: self.state() == "idle", 30)

    def __exit__(self, kind, *_):
        if kind is None:
            try:
                self.run("scancel", "-u", "root")
                wait_for("all jobs have ended", lambda: not self.queue(), 60)
                for daemon in reversed(self.daemons):
                    daemon.popen.terminate()
                    daemon.wait(30)
                wait_for("no process is left", lambda: not self.processes(), 20)
                return
            finally:
                self.kill()
        print("".join("--- %s\n%s\n" % (name, read(name)[-1500:]) for name in
                      glob.glob(self.box.path("*.log")) + glob.glob(self.box.path("out-*"))))
        self.kill()

    def processes(self):
        """All that have this cluster's configuration in their environment: Slurm's steps are nobody's children."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as file:
                    if ("SLURM_CONF=%s" % self.config).encode() in file.read().split(b"\0") and stat_of(int(pid)):
                        found.append(int(pid))
            except OSError:
                pass  # it has just ended
        return found

    def kill(self):
        for pid in self.processes():
            kill(pid)

    def run(self, *words):
        code, out, err = Process(self.box, list(words)).wait(60)
        check(code == 0, "%s ended with %d" % (" ".join(words), code), out, err)
        return out

    def state(self):
        """Of the node; "" while slurmctld does not answer."""
        code, out, _ = Process(self.box, ["sinfo", "-h", "-p", "main", "-o", "%T"]).wait(60)
        return out.strip() if code == 0 else ""

    def queue(self, *options):
        """The state of each job, by its id."""
        return dict(line.split() for line in self.run("squeue", "-h", "-r", "-o", "%i %T", *options).splitlines())

    def submit(self, *options, device="cpu"):
        """The id of a job of worker.sbatch; out-ID has what it says."""
        return self.run("sbatch", "--parsable", "--output", self.box.path("out-%j"), "--export=ALL,WPK_DEVICE=" + device, *options,
                        os.path.join(ROOT, "deploy/slurm/worker.sbatch")).strip()

    def said(self, job):
        return read(self.box.path("out-" + job))


def start_service(box):
    """A wpkd for the workers that are started in this box."""
    need(*PROGRAMS)
    service = Api(box)
    box.env.update(WPK_COORDINATOR=service.listen)
    return service


def begin(service, candidates=60):
    return submit(service, ops=[dict(CONVOLUTION)], budget={"candidates": candidates, "seconds": 600})


def wait_at_work(service, job):
    known = len(ended_of(service, job))
    wait_for("candidates are timed", lambda: len(ended_of(service, job)) > known + 3, 20)


def check_left(service, job, words, left=1):
    """A worker has left as it was told to, in the middle of a job."""
    check("reason=told" in words and "died" not in words, "it was told to leave", words[-2000:])
    wait_for("its leases went back", lambda: service.metric("wpk_leases_held") == 0, 10)
    check(service.want(200, "GET", "/v1/jobs/" + job)["state"] == "running", "the job waits for another worker")
    log = service.wpkd.text(service.wpkd.err)
    check("worker_lost" not in log and log.count("worker_left") == left, "it said goodbye", log[-2000:])


def check_outcomes(service, job):
    wait_done(service, job)
    outcomes = {outcome for _, outcome in ended_of(service, job)}
    check(not outcomes & {"run_crash", "build_error", "abandoned"} and not blamed(service, job), "nobody is blamed", outcomes,
          blamed(service, job))


def test_slurm_scaler(box):
    """Workers come with work, no more than WPK_WORKERS_MAX, and the node is free again after it. All else is the
    scaler's default: a look each 10 s, an idle time of 30 s."""
    with Slurm(box) as slurm:
        service = start_service(box)
        box.env.update(WPK_URL=service.url, WPK_WORKERS_MAX="2")
        scaler = Process(box, [os.path.join(ROOT, "deploy/slurm/scaler.sh"), "--output=" + box.path("out-%a")])
        time.sleep(3)
        check(not slurm.queue(), "without work nothing is started")
        submitted = time.monotonic()
        jobs = []
        for n in range(8, 80, 8):  # until it is open, a search counts two work items, and eight occupy a worker
            op = dict(CONVOLUTION, tensors=dict(CONVOLUTION["tensors"], W="f32[%d,16,3,3]" % n, B="f32[%d]" % n,
                                                Y="f32[1,%d,12,12]" % n))
            file = box.write("job.json", small_job(ops=[op], budget={"candidates": 8, "seconds": 600}))
            jobs.append(box.ctl("submit", file, "--server", service.url).split()[-1])
        wanted = service.want(200, "GET", "/v1/demand?device=cpu")
        check(wanted["workers"] == 3, "more are wanted than may be there", wanted)
        wait_for("there is a result", lambda: any(t["outcome"] == "ok" for job in jobs for t in trials_of(service, job)), 20)
        first_s = time.monotonic() - submitted
        states = []
        while any(service.want(200, "GET", "/v1/jobs/" + job)["state"] in ("queued", "running") for job in jobs):
            done = time.monotonic()
            states.append(sorted(slurm.queue("-n", "wpk-worker-cpu").values()))
            check(done - submitted < 600, "the jobs end", states)
            time.sleep(0.2)
        done = time.monotonic()
        check(states.count(["PENDING", "RUNNING"]) == len(states), "one works, and one waits for the node", states)
        check(done - submitted - first_s > 10, "the scaler looked again meanwhile", done - submitted)
        wait_for("the node is free", lambda: not slurm.queue() and slurm.state() == "idle", 60)
        free_s = time.monotonic() - done
        print("# Slurm: first result %.1f s after the submission, node free %.1f s after the last work (idle time 30 s)" % (
            first_s, free_s))
        check(first_s <= 30 and free_s <= 60, "in time", first_s, free_s)
        check("reason=idle" in slurm.said("1"), "the worker left by itself", slurm.said("1")[-2000:])
        check(not os.path.exists(box.path("out-2")), "the job that waited was cancelled", slurm.said("2")[-2000:])
        for job in jobs:
            check_outcomes(service, job)
        service.stop()
        wait_for("it says that wpkd is away", lambda: "curl:" in scaler.text(scaler.err), 30)
        scaler.popen.terminate()
        scaler.wait(10)


def test_slurm_signal(box):
    """scancel --signal=TERM --batch: the worker leaves, and another one ends the job."""
    with Slurm(box) as slurm:
        service = start_service(box)
        job = begin(service)
        first = slurm.submit()
        wait_at_work(service, job)
        slurm.run("scancel", "--signal=TERM", "--batch", first)
        wait_for("it has left", lambda: not slurm.queue(), 60)
        check_left(service, job, slurm.said(first))
        slurm.submit()
        check_outcomes(service, job)
        service.stop()


def test_slurm_requeue(box):
    """A job that is requeued leaves as if told, and comes back."""
    with Slurm(box) as slurm:
        service = start_service(box)
        job = begin(service)
        worker = slurm.submit()
        wait_at_work(service, job)
        slurm.run("scontrol", "requeue", worker)
        wait_for("it waits", lambda: slurm.queue() == {worker: "PENDING"}, 120)
        check_left(service, job, slurm.said(worker))
        slurm.run("scontrol", "update", "jobid=" + worker, "StartTime=now")  # which is minutes later by default
        check_outcomes(service, job)
        check(slurm.queue() == {worker: "RUNNING"}, "it is the same job", slurm.queue())
        service.stop()


def test_slurm_preempt(box):
    """A job of a partition that goes first: the worker hears of it at the beginning of its grace time."""
    with Slurm(box) as slurm:
        service = start_service(box)
        job = begin(service)
        worker = slurm.submit()
        wait_at_work(service, job)
        began = time.monotonic()
        urgent = slurm.run("sbatch", "--parsable", "-p", "urgent", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 60").strip()
        wait_for("the other job runs", lambda: slurm.queue() == {urgent: "RUNNING"}, 120)
        check(time.monotonic() - began < 80, "before the grace time is over", time.monotonic() - began)
        check_left(service, job, slurm.said(worker))
        slurm.run("scancel", urgent)
        slurm.submit()
        check_outcomes(service, job)
        service.stop()


def test_slurm_options(box):
    """A worker has the GPU that its job has, unless it shall have none, and leaves three minutes before the job's end. Two
    tasks of an array run beside each other."""
    with Slurm(box) as slurm:
        os.mkdir(box.path("fake"))
        for name, text in (("wpk-worker", '#!/bin/sh\necho "$@"\nsleep 3\n'), ("nvidia-smi", '#!/bin/sh\necho "GPU-$2-of-smi"\n')):
            os.chmod(box.write("fake/" + name, text), 0o755)
        box.env.update(PATH=box.path("fake") + ":" + box.env["PATH"], WPK_COORDINATOR="tcp://x:1")
        for device, options, want in (("", ["--gpus=1"], "--gpu GPU-0-of-smi "), ("cpu", [], "--cpu "),
                                      ("cpu/some model/avx2", ["--array=1-2", "--oversubscribe"], "--cpu ")):
            first = int(slurm.submit("--wait", "--time=60", *options, device=device))
            for job in range(first, first + 1 + ("--array=1-2" in options)):
                said = slurm.said(str(job))
                check(said.startswith(want + "--coordinator tcp://x:1 --exit-when-idle 30 --leave-after "), "its options", said)
                check(3360 < int(said.split()[-1]) <= 3420, "three minutes before the end", said)


class Ray:
    """A cluster whose nodes are on this machine."""

    def __init__(self, box):
        if not os.path.exists(RAY + "/ray"):
            raise Skip("no Ray (deploy/setup.sh schedulers)")
        self.box = box
        self.nodes = []
        self.port = 0
        while not 20000 < self.port:  # those below are Ray's workers'
            self.port = free_port()
        box.env.update(RAY_ADDRESS="127.0.0.1:%d" % self.port, RAY_USAGE_STATS_ENABLED="0", RAY_TMPDIR=box.path("r"))

    def add_node(self, cpus, programs):
        """The first one is the head. `programs`: the directory where it finds wpk-worker."""
        path = self.box.env["PATH"]
        self.box.env["PATH"] = programs + ":" + path
        where = ["--address=127.0.0.1:%d" % self.port] if self.nodes else [
            "--head", "--port=%d" % self.port, "--include-dashboard=false", "--temp-dir=" + self.box.path("r")]
        node = Process(self.box, [RAY + "/ray", "start", *where, "--num-cpus=%d" % cpus, "--node-ip-address=127.0.0.1",
                                  "--object-store-memory=100000000", "--memory=1000000000", "--block"])
        self.box.env["PATH"] = path
        self.nodes.append(node)
        wait_for("the node has started", lambda: node.note() is not None or "--block" in node.text(node.out) + node.text(node.err), 60)
        check(node.note() is None, "the node runs", node.text(node.out), node.text(node.err))

    def workers(self, *options):
        return Process(self.box, [RAY + "/python", os.path.join(ROOT, "deploy/ray/workers.py"), *options]).wait(120)

    def stop(self):
        for node in reversed(self.nodes):
            node.note()
            node.popen.terminate()
            node.wait(60)


def test_ray(box):
    """A worker does a job, leaves when idle, and the script ends with 0."""
    service = start_service(box)
    job = submit(service)
    ray = Ray(box)
    ray.add_node(1, os.path.abspath(BIN))
    code, out, err = ray.workers("--cpu", "--coordinator", service.listen, "--exit-when-idle", "3")
    check(code == 0 and "reason=idle" in out + err, "it leaves by itself", code, out[-2000:], err[-2000:])
    check_outcomes(service, job)
    code, out, err = ray.workers("--cpu", "--coordinator", "nothing")
    check(code == 1, "a worker fails, and the script", code, out[-2000:], err[-2000:])
    ray.stop()
    service.stop()


def test_ray_failure(box):
    """One worker that is killed, or is not there, fails the script, which still waits for the other one. A head without
    CPUs has no worker."""
    ray = Ray(box)

    def write_worker(node, text):
        os.chmod(box.write(node + "/wpk-worker", "#!/bin/sh\necho >>%s/began\n%s\n" % (box.path(node), text)), 0o755)

    for node, cpus in (("head", 0), ("one", 1), ("two", 1)):
        os.mkdir(box.path(node))
        write_worker(node, "exit 0")
        ray.add_node(cpus, box.path(node))
    for good, bad in (("one", "two"), ("two", "one")):  # Ray has them in an order of its own
        write_worker(good, "sleep 5; echo >>%s" % box.path(good + "/ended"))
        write_worker(bad, "kill -9 $$")
        for turn in (1, 2):
            code, out, err = ray.workers("--cpu")
            check(code == 1, "the script fails", code, out[-2000:], err[-2000:])
            check(len(read(box.path(good + "/ended"))) == turn, "after both have ended", out[-2000:], err[-2000:])
            if turn == 1:
                os.unlink(box.path(bad + "/wpk-worker"))
    check(len(read(box.path("one/began"))) == len(read(box.path("two/began"))) == 3, "each is started once a turn")
    check(not os.path.exists(box.path("head/began")), "none is started on the head")
    ray.stop()


if __name__ == "__main__":
    passed_count, failed_names, skipped_names = run_tests(globals())
    print("%d passed, %d failed, %d skipped" % (passed_count, len(failed_names), len(skipped_names)))
    sys.exit(bool(failed_names))

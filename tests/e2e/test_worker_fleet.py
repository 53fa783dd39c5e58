# SPDX-License-Identifier: Apache-2.0
"""Workers that build for workers that run, over TLS with tokens, and a wpkd that is restarted, or
whose certificate is replaced, in the middle of a job."""
import hashlib
import signal
import time

from lib import Service, check, main, need, small_job, wait_for
from port import Port, make_certificates
from wire import DEVICE, Peer, VERSION, hello, poll, put_artifact

ENDED = ("done", "failed", "cancelled")


def make_token(service, box, name, *roles):
    """A file with the secret of a new token."""
    status, token, _ = service.ask("POST", "/v1/tokens", {"owner": "fleet", "roles": list(roles)})
    check(status == 201, "a token is made", status, token)
    return box.write(name + ".token", token["secret"] + "\n"), token["id"]


def add_worker(service, box, ca, token, *options):
    worker = box.start("wpk-worker", "--cpu", "--coordinator", service.tls_url, "--ca", ca, "--token-file",
                       token, "--data", box.dir, *options)
    service.workers.append(worker)
    return worker


def submit(service, **changes):
    status, job, _ = service.ask("POST", "/v1/jobs", small_job(**changes))
    check(status == 201, "the job is taken", status, job)
    return job["id"]


def state_of(service, job):
    return service.ask("GET", "/v1/jobs/" + job)[1]


def wait_done(service, job, seconds=150):
    try:
        wait_for("the job has ended", lambda: state_of(service, job)["state"] in ENDED, seconds)
    except Exception as error:
        raise type(error)("%s\n%s\n%s\n%s" % (error, state_of(service, job), service.log()[-3000:], "\n".join(
            w.text(w.err)[-1500:] for w in service.workers))) from error
    answer = state_of(service, job)
    check(answer["state"] == "done", "it is done", answer)
    return answer


def trials_of(service, job):
    found, page = [], ""
    while True:
        answer = service.ask("GET", "/v1/jobs/%s/trials?page_size=100%s" % (job, page))[1]
        found += answer["trials"]
        if not answer["next_page_token"]:
            return found
        page = "&page_token=" + answer["next_page_token"]


def ended_of(service, job):
    return {(t["candidate"], t["outcome"]) for t in trials_of(service, job) if t["outcome"] != "pending"}


def test_builders_and_runners(box):
    """One worker that only builds and one that only runs do a job between them."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    ca, certificate, key = make_certificates(box, "first")
    service = Port(box, certificate, key)
    build_token, build_id = make_token(service, box, "builder", "build")
    run_token, _ = make_token(service, box, "runner", "measure")
    wrong = add_worker(service, box, ca, build_token, "--run-only")
    code, _, err = wrong.wait(30)
    check(code == 3 and "measure" in err, "a token of the other role is refused", code, err)
    runner = add_worker(service, box, ca, run_token, "--run-only", "--name", "runner")
    wait_for("the runner joins", lambda: len(service.joined()) == 1, 30)
    job = submit(service)
    time.sleep(1)
    check(state_of(service, job)["state"] in ("queued", "running"), "nobody builds yet")
    builder = add_worker(service, box, ca, build_token, "--build-only", "--name", "builder")
    wait_for("the builder joins", lambda: len(service.joined()) == 2, 30)
    wait_done(service, job)
    runner.note()
    builder.note()
    check("wpk-builder" not in runner.seen.values(), "the runner built nothing", runner.seen)
    check("wpk-runner" not in builder.seen.values(), "the builder ran nothing", builder.seen)
    trials = trials_of(service, job)
    check(len(trials) >= 4 and any(t["outcome"] == "ok" for t in trials), "trials", trials[:3])
    # A token that is taken back is refused at the next hello, and says so.
    check(service.ask("DELETE", "/v1/tokens/" + build_id)[0] in (200, 204), "revoked")
    late = add_worker(service, box, ca, build_token, "--build-only")
    code, _, err = late.wait(30)
    check(code == 3 and "revoked" in err, "a revoked token", code, err)
    service.stop()


TIMING = {"median_ns": 5000, "min_ns": 4900, "mad_ns": 10, "repeat_count": 1, "censored": False,
          "sample_ns": [4900, 5000, 5100]}


def record_of(work, artifact):
    """A record as a worker would report it."""
    timing = dict(TIMING, median_ns=5000 + work["index"], sample_ns=[4900, 5000 + work["index"], 6000])
    anchor = {"anchor": work["anchor"], "anchor_ratio": timing["median_ns"] / 1000} \
        if "anchor" in work else {}
    return {**anchor, "outcome": "ok", "timing": timing, "anchor_ns": 1000, "build_ns": 1, "verify_ns": 1,
            "measure_ns": 1, "constants_bytes": 0,
            "error": {"max": 0, "tolerance": 1, "ratio": 0, "of_rms": 0, "times_direct": 1},
            "schedule": "wpk-schedule 2\n", "schedule_sha256": hashlib.sha256(b"wpk-schedule 2\n").hexdigest(),
            "artifact": {"sha256": artifact}}


def work_by_hand(peer, session):
    """One poll and what it leads to; how many items were done."""
    work = peer.ask(poll(session, want=4, wait_ms=1000))[0]
    check(work["type"] == "work" and work["version"] == VERSION, "work", work)
    done = 0
    for item in work["work"]:
        result = {name: item[name] for name in ("search", "kind", "index", "attempt", "lease", "stage")}
        if item["kind"] == "final":
            result.update(failure="", times=[{"timing": TIMING} for _ in item["contenders"]])
        else:
            data = b"built from %s" % item["candidate"].encode()
            put = put_artifact(session, item, data)
            if item["stage"] != "run":
                check(peer.ask(put, data)[0]["type"] == "ack", "its artifact is taken")
            result["record"] = record_of(item, item.get("artifact", put["sha256"]))
        answer = peer.ask({"version": VERSION, "type": "results", "session": session, "results": [result]})[0]
        # Of the trials that are leased before there is an anchor the first becomes it, and the others
        # are run again beside it.
        early = item["kind"] == "trial" and "anchor" not in item
        check(answer["type"] == "ack" and answer["results"][0] in ("recorded", "unknown")[:1 + early],
              "recorded", answer)
        done += answer["results"][0] == "recorded"
    return done


def test_a_worker_written_by_hand(box):
    """The protocol alone, without any code of ours, does a whole job."""
    need("wpkd")
    service = Service(box)
    status, job, _ = service.ask("POST", "/v1/jobs", small_job())
    check(status == 201, "the job is taken", job)
    with Peer(box.path("workers.sock")) as peer:
        peer.greet()
        session = peer.ask(hello(device=dict(DEVICE, core_count=1)))[0]["session"]
        end = time.monotonic() + 300
        done = 0
        while state_of(service, job["id"])["state"] not in ENDED and time.monotonic() < end:
            done += work_by_hand(peer, session)
    answer = state_of(service, job["id"])
    check(answer["state"] == "done" and done >= 8, "done: trials, a final, a verification", answer, done)
    service.stop()


def test_nothing_is_lost(box):
    """A certificate replaced and a wpkd restarted in the middle of a job over TLS: the worker comes
    back by itself, and every candidate is recorded once."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    ca, certificate, key = make_certificates(box, "first")
    service = Port(box, certificate, key)
    token, _ = make_token(service, box, "worker", "build", "measure")
    worker = add_worker(service, box, ca, token)
    job = submit(service, budget={"candidates": 1000, "seconds": 86400})
    wait_for("some are measured", lambda: len(ended_of(service, job)) > 3, 60)
    # Another key of the same authority.
    again = make_certificates(box, "first", authority=True)
    check(again[0] == ca, "the same authority")
    service.wpkd.popen.send_signal(signal.SIGHUP)
    wait_for("read again", lambda: "reloaded" in service.log(), 10)
    before = len(ended_of(service, job))
    wait_for("and the job goes on", lambda: len(ended_of(service, job)) > before, 60)
    known = ended_of(service, job)
    service.wpkd.popen.kill()
    service.wpkd.wait(10)
    time.sleep(1)
    service.start()
    wait_for("and goes on again", lambda: len(ended_of(service, job)) > len(known) + 3, 60)
    check(known <= ended_of(service, job), "nothing is lost", known - ended_of(service, job))
    candidates = [t["candidate"] for t in trials_of(service, job) if t["provider"] == "halide-cpu"]
    check(len(set(candidates)) == len(candidates), "none is counted twice", candidates)
    check(worker.popen.poll() is None, "the worker lives")
    service.stop()


def test_a_worker_comes_back(box):
    """Whenever wpkd dies, and at whatever moment of a greeting, its worker joins the next one."""
    need("wpkd", "wpk-worker")
    ca, certificate, key = make_certificates(box, "first")
    service = Port(box, certificate, key)
    token, _ = make_token(service, box, "worker", "build", "measure")
    worker = add_worker(service, box, ca, token)
    wait_for("it joins", lambda: len(service.joined()) == 1, 30)
    for i in range(12):
        service.wpkd.popen.kill()
        service.wpkd.wait(10)
        service.start()
        time.sleep(0.02 * i)
        if i % 4 == 3:
            wait_for("it joins again, time %d" % i, lambda: len(service.joined()) == 1, 30)
    check(worker.popen.poll() is None, "the worker lives")
    service.stop()


if __name__ == "__main__":
    main(globals())

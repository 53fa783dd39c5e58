# SPDX-License-Identifier: Apache-2.0
"""The REST interface for administrators: tokens and their roles, the audit log, keys of requests, what is
done to kernels, and what supervisors ask. Every answer is held to schema/openapi.yaml.
"""
import contextlib
import json
import os
import pwd
import re
import sqlite3
import threading
import time

import contract
from lib import (SCALABLE, SMALL_OP, Service, Skip, UnixConnection, check, main, need, small_job,
                 wait_for)
from port import Port

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner")


class Api(Service):
    """Requests with headers, answers as the contract says."""

    def send(self, method, path, body=None, token=None, **headers):
        connection = UnixConnection(self.socket)
        data = None if body is None else json.dumps(body).encode()
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            fields["Content-Type"] = "application/json"
        if token:
            fields["Authorization"] = "Bearer " + token
        connection.request(method, path, data, fields)
        answer = connection.getresponse()
        content = answer.read()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        if "json" in fields.get("content-type", "") and content:
            content = json.loads(content)
        if answer.status != 304:
            found = contract.of_answer(method, path, answer.status, content)
            check(not found, "%s %s answers as the contract says" % (method, path), found, content)
        return answer.status, content, fields

    def want(self, status, method, path, body=None, token=None, **headers):
        got, content, _ = self.send(method, path, body, token, **headers)
        check(got == status, "%s %s: %d, not %d" % (method, path, got, status), content)
        return content

    def audit(self, action):
        return self.want(200, "GET", "/v1/audit?action=" + action)["entries"]

    def tuned(self, **changes):
        """The kernel of a job that has ended."""
        job = self.want(201, "POST", "/v1/jobs", small_job(**changes))

        def ended():
            answer = self.want(200, "GET", "/v1/jobs/" + job["id"])
            return answer if answer["state"] not in ("queued", "running") else None
        done = wait_for("the job ends", ended, 120)
        check(done["state"] == "done", "done", done)
        return done["kernels"][0]


def test_health(box):
    need("wpkd")
    service = Api(box)
    check(service.want(200, "GET", "/healthz")["status"] == "ok", "it lives")
    check(service.want(200, "GET", "/readyz") == {"status": "ready", "reasons": []}, "it is ready")
    version = box.run("wpkd", "--version")[1].split()[-1]
    metrics = service.want(200, "GET", "/metrics").decode()
    check('wpk_build_info{version="%s"' % version in metrics, "the version", version, metrics)
    lookup = {"op": SMALL_OP["op"], "tensors": SMALL_OP["tensors"]}
    check(service.want(200, "POST", "/v1/kernels:lookup", lookup)["match"] == "none", "nothing is known")
    after = service.want(200, "GET", "/metrics").decode()
    for level, count in (("none", 1), ("exact", 0), ("vendor", 0), ("nearest_shape", 0), ("same_family", 0)):
        line = 'wpk_lookup_requests_total{match="%s"} ' % level
        check("\n%s0\n" % line in metrics and "\n%s%d\n" % (line, count) in after, "counts " + level, after)
    check(service.want(200, "GET", "/v1/devices") == {"devices": []}, "no device yet")
    check(service.want(405, "DELETE", "/v1/jobs")["status"] == 405, "a wrong method")
    _, _, headers = service.send("PUT", "/v1/tokens")
    check(headers["allow"] == "POST, GET", "what is allowed instead", headers)
    service.stop()


def test_tokens(box):
    """A token does what its roles say until it is revoked; its secret is told once."""
    need("wpkd")
    service = Api(box)
    reader = service.want(201, "POST", "/v1/tokens", {"owner": "ann", "roles": ["read"]})
    writer = service.want(201, "POST", "/v1/tokens",
                          {"owner": "ben", "roles": ["submit", "read"], "seconds": 3600, "note": "n"})
    check(len(reader["secret"]) == 64 and reader["expires"] is None, "a secret", reader)
    check(writer["expires"] > writer["created"] and writer["note"] == "n", "it expires", writer)
    listed = service.want(200, "GET", "/v1/tokens")["tokens"]
    check({t["id"] for t in listed} == {reader["id"], writer["id"]}, "both are listed", listed)
    check(not any("secret" in token for token in listed), "the secret is not told again", listed)
    service.want(200, "GET", "/v1/kernels", token=reader["secret"])
    problem = service.want(403, "POST", "/v1/jobs", small_job(), token=reader["secret"])
    check("submit" in problem["detail"], "the role that is missing", problem)
    status, _, headers = service.send("GET", "/v1/tokens", token=writer["secret"])
    check(status == 403 and "allow" not in headers, "no role, though the method is right", headers)
    job = service.want(201, "POST", "/v1/jobs", small_job(), token=writer["secret"])
    check(job["owner"] == "ben", "the owner is who sends it", job)
    path = "/v1/jobs/%s:cancel" % job["id"]
    other = service.want(201, "POST", "/v1/tokens", {"owner": "cat", "roles": ["submit"]})
    for verb in ("pause", "resume", "cancel"):
        service.want(403, "POST", "/v1/jobs/%s:%s" % (job["id"], verb), token=other["secret"])
    refused = service.audit("job.cancel")[0]
    check(refused["actor"] == "cat" and refused["outcome"] == "EACCES" and
          refused["subject"] == job["id"], "a refusal is logged with its actor", refused)
    check(service.want(200, "POST", path, token=writer["secret"])["state"] == "cancelled", "an owner cancels its own job")
    service.want(401, "GET", "/v1/kernels", token="0" * 64)
    check(service.want(200, "DELETE", "/v1/tokens/" + reader["id"])["revoked"], "revoked")
    service.want(401, "GET", "/v1/kernels", token=reader["secret"])
    service.want(404, "DELETE", "/v1/tokens/" + "0" * 16)
    for wrong, field in (({"owner": "", "roles": ["read"]}, "owner"), ({"owner": "x"}, "roles"),
                         ({"owner": "x", "roles": []}, "roles"),
                         ({"owner": "x", "roles": ["king"]}, "roles[0]"),
                         ({"owner": "x", "roles": ["read"], "seconds": 0}, "seconds")):
        problem = service.want(422, "POST", "/v1/tokens", wrong)
        check(problem["field"] == field, "what is wrong with it", wrong, problem)
    entries = service.audit("token.create")
    check([e["subject"] for e in entries] == [other["id"], writer["id"], reader["id"]], entries)
    check(service.audit("token.revoke")[0]["outcome"] == "ENOENT", "what failed is logged too")
    submitted = service.audit("job.submit")[0]
    check(submitted["actor"] == "ben" and submitted["token"] == writer["id"], "by whom", submitted)
    check(not any(t["secret"] in json.dumps(service.want(200, "GET", "/v1/audit"))
                  for t in (reader, writer, other)), "no secret is logged")
    service.stop()


# The requests that each role may make, here for objects that do not exist; admin may make all requests.
NOBODYS = ("/v1/jobs/j0123456789abcdef", "/v1/kernels/k999999")
MAY = {
    "read": ("GET /v1/jobs", "GET " + NOBODYS[0], "GET /v1/workers", "GET /v1/demand", "GET /v1/devices", "GET /v1/kernels",
             "GET " + NOBODYS[1], "POST /v1/kernels:lookup", "GET /v1/artifacts/" + "0" * 64, "GET /metrics"),
    "submit": ["POST /v1/jobs"] + ["POST %s:%s" % (NOBODYS[0], verb) for verb in ("pause", "resume", "cancel")],
    "admin": ["POST /v1/workers:" + verb for verb in ("drain", "quarantine", "resume")] +
             ["POST %s:%s" % (NOBODYS[1], verb) for verb in ("pin", "unpin", "revoke", "rollback")] +
             ["GET /v1/audit", "GET /v1/tokens", "POST /v1/tokens", "DELETE /v1/tokens/" + "0" * 16],
}


def test_roles(box):
    """Each role may do what operations.md says, and nothing else."""
    need("wpkd")
    service = Api(box)
    for role in ("read", "submit", "build", "measure", "admin"):
        token = service.want(201, "POST", "/v1/tokens", {"owner": "ann", "roles": [role]})["secret"]
        for needed, requests in MAY.items():
            for request in requests:
                method, path = request.split()
                status = service.send(method, path, {} if method == "POST" else None, token)[0]
                check((status == 403) == (role not in (needed, "admin")), "%s: %s" % (role, request), status)
    service.stop()


def test_unknown_parameters(box):
    """A misspelled filter is an error, not a list of everything."""
    need("wpkd")
    service = Api(box)
    for method, path, name in (("GET", "/v1/kernels?fingerprnt=" + "0" * 64, "fingerprnt"),
                               ("GET", "/v1/jobs?page_size=3&sate=done", "sate"),
                               ("GET", "/healthz?x=1", "x"), ("GET", "/v1/audit?actr=ann", "actr"),
                               ("POST", "/v1/workers:drain?name=one", "name")):
        problem = service.want(400, method, path, {"name": "one"} if method == "POST" else None)
        check(problem["field"] == name and "'%s'" % name in problem["detail"], "named", problem)
    check("'state'" in service.want(400, "GET", "/v1/jobs?sate=done")["detail"], "what was meant")
    service.stop()


def test_orders_are_logged_as_they_ended(box):
    need("wpkd")
    service = Api(box)
    service.want(404, "POST", "/v1/workers:drain", {"name": "nosuch", "reason": "a new fan"})
    entry = service.audit("worker.drain")[0]
    check((entry["subject"], entry["outcome"], entry["detail"]) == ("nosuch", "ENOENT", "a new fan"),
          "nobody was drained", entry)
    service.want(404, "POST", "/v1/jobs/j0123456789abcdef:cancel")
    check([e["outcome"] for e in service.audit("job.cancel")] == ["ENOENT"], "no job was cancelled")
    service.stop()


def test_tokens_last(box):
    """Tokens are there after a restart, and those that were revoked stay so."""
    need("wpkd")
    service = Api(box)
    kept = service.want(201, "POST", "/v1/tokens", {"owner": "ann", "roles": ["read"]})
    gone = service.want(201, "POST", "/v1/tokens", {"owner": "ann", "roles": ["read"]})
    service.want(200, "DELETE", "/v1/tokens/" + gone["id"])
    service.wpkd.popen.kill()
    service.wpkd.popen.wait()
    again = Api(box)
    again.want(200, "GET", "/v1/kernels", token=kept["secret"])
    again.want(401, "GET", "/v1/kernels", token=gone["secret"])
    again.stop()


def test_refusals(box):
    """Refused credentials are in the audit log, at a bounded rate."""
    need("wpkd")
    service = Api(box)
    reader = service.want(201, "POST", "/v1/tokens", {"owner": "ann", "roles": ["read"]})
    for _ in range(100):
        service.want(401, "GET", "/v1/kernels", token="0" * 64)
        service.want(403, "GET", "/v1/tokens", token=reader["secret"])
    entries = wait_for("they are written down", lambda: service.audit("auth.refused"), 10)
    check(all(e["outcome"] == "EACCES" and e["detail"] for e in entries), "with the reason", entries)
    wait_for("with the role that was missing",
             lambda: [e for e in service.audit("auth.refused") if e["actor"] == "ann"], 10)
    count = len(service.audit("auth.refused"))
    for _ in range(20):
        service.want(403, "GET", "/v1/tokens", token=reader["secret"])
        time.sleep(0.1)
    entries = service.audit("auth.refused")
    check(len(entries) == count, "one a minute of each", entries)
    check(any(re.fullmatch(r"and \d+ more before it", entry["subject"]) for entry in entries), "with their number", entries)
    service.stop()


def test_a_user_of_this_machine(box):
    """A user who is not in `peers` is refused, and in the audit log; a reload lets him in."""
    if os.geteuid() != 0:
        raise Skip("only root can be somebody else")
    nobody = pwd.getpwuid(65534).pw_name
    sockets = {"http": ("unix:" + box.path("http.sock"), "0666"),
               "workers": ("ipc://" + box.path("workers.sock"), "0660")}
    service = Port(box, config={name: {"listen": [{"address": address, "mode": mode}]}
                                for name, (address, mode) in sockets.items()})
    for name, (_, mode) in sockets.items():
        found = os.stat(box.path(name + ".sock")).st_mode & 0o777
        check(found == int(mode, 8), "the mode of %s" % name, oct(found))
    os.chmod(box.dir, 0o755)

    def ask_as_nobody():
        try:
            return box.start("wpkctl", "jobs", "--server", service.url, user=65534).wait(30)
        except PermissionError as error:
            raise Skip("%s may not run wpkctl here" % nobody) from error
    code, out, err = ask_as_nobody()
    check(code == 5 and out == "", "is refused, and told so", code, out, err)
    entry = wait_for("it is in the audit log",
                     lambda: service.ask("GET", "/v1/audit?action=auth.refused")[1]["entries"], 10)[0]
    check((entry["outcome"], entry["peer"]) == ("EACCES", "unix") and nobody in entry["detail"], "by whom", entry)
    check(service.metric("wpk_auth_denied_total", "user") >= 1, "it is counted")
    service.configure(peers={nobody: ["read"]})
    wait_for("is let in", lambda: ask_as_nobody()[0] == 0, 20)
    service.stop()


def test_tune(box):
    """A miss becomes a job, once."""
    need("wpkd")
    service = Api(box)
    lookup = {name: SMALL_OP[name] for name in ("op", "tensors", "constants")}
    path = "/v1/kernels:lookup?tune=1"
    check("job_id" not in service.want(200, "POST", "/v1/kernels:lookup", lookup), "not unasked")
    first = service.want(200, "POST", path, lookup)
    check(first["match"] == "none" and first["job_id"], "a job was made", first)
    check(service.want(200, "POST", path, lookup)["job_id"] == first["job_id"], "the same job")
    other = service.want(200, "POST", path, dict(lookup, threads=2))
    check(other["job_id"] != first["job_id"], "another key, another job", other)
    job = service.want(200, "GET", "/v1/jobs/" + first["job_id"])
    service.want(200, "POST", "/v1/jobs/%s:cancel" % job["id"])
    after = service.want(200, "POST", path, lookup)["job_id"]
    check(after not in (job["id"], other["job_id"]), "one that was cancelled answers nobody", after)
    check(service.want(200, "POST", path, lookup)["job_id"] == after, "the same job")
    check(len(service.want(200, "GET", "/v1/jobs")["jobs"]) == 3, "three jobs in all")
    there = service.want(200, "POST", path, dict(lookup, device="cpu/nobody/avx2"))
    check(there["job_id"] not in (after, job["id"]), "another device, another job", there)
    waits = service.want(200, "GET", "/v1/jobs/" + there["job_id"])
    check("no worker with" in waits["reason"], "it waits for that device", waits)
    gpu = service.want(200, "POST", path, dict(lookup, device="cuda/NVIDIA H200/sm_90/132"))
    waits = service.want(200, "GET", "/v1/jobs/" + gpu["job_id"])
    check("no worker with kind cuda" in waits["reason"], "a GPU's, too", waits)
    problem = service.want(422, "POST", path, dict(lookup, device="cuda/NVIDIA H200/sm_90/132", threads=2))
    check(problem["field"] == "threads" and "one thread" in problem["detail"], "the right reason", problem)
    problem = service.want(422, "POST", path, dict(lookup, device="toaster"))
    check(problem["field"] == "device", "not a device", problem)
    problem = service.want(422, "POST", path, dict(lookup, device="cpu/nobody/avx2+typo"))
    check(problem["field"] == "device", "not what a worker's device is called", problem)
    service.want(422, "POST", path, {"fingerprint": "0" * 64})
    reader = service.want(201, "POST", "/v1/tokens", {"owner": "ann", "roles": ["read"]})["secret"]
    service.want(200, "POST", "/v1/kernels:lookup", lookup, token=reader)
    service.want(403, "POST", path, lookup, token=reader)
    service.stop()


def matmul(rows, threads=1):
    return {"op": {"type": "matmul", "a": [rows, 7], "b": [7, 3]}, "threads": threads}


def test_tune_a_batch(box):
    """The misses of a batch become one job for each number of threads, with all of them in it."""
    need("wpkd")
    config = box.write("wpkd.json", {"owners": {"ben": {"jobs_max": 1}}})
    service = Api(box, options=("--config", config))
    path = "/v1/kernels:lookup?tune=1"
    batch = {"lookups": [matmul(5), matmul(6), matmul(5, 2), matmul(8), dict(matmul(9), layouts="any")]}
    plain = service.want(200, "POST", "/v1/kernels:lookup", batch)["matches"]
    check(not any("job_id" in match for match in plain), "not unasked", plain)
    matches = service.want(200, "POST", path, batch)["matches"]
    ids = [match["job_id"] for match in matches]
    check(len(set(ids)) == 2 and ids[2] not in ids[:2] + ids[3:], "two jobs", ids)
    job = service.want(200, "GET", "/v1/jobs/" + ids[0])
    check(len(job["ops"]) == 4, "one has four", job)
    check(len({op["name"] for op in job["ops"]}) == 4, "each of its name", job["ops"])
    again = service.want(200, "POST", path, batch)["matches"]
    check([match["job_id"] for match in again] == ids, "the same jobs all day", again)
    check(len(service.want(200, "GET", "/v1/jobs")["jobs"]) == 2, "two jobs in all")
    single = service.want(200, "POST", path, matmul(5, 2))
    check(single["job_id"] == ids[2], "as if asked for alone", single)
    problem = service.want(422, "POST", path, {"lookups": [matmul(5), {"fingerprint": "0" * 64}]})
    check(problem["field"] == "lookups[1].op", "what is missing", problem)
    many = {"lookups": [matmul(rows) for rows in range(100, 1101)]}
    problem = service.want(422, "POST", path, many)
    check("at most 1000" in problem["detail"], "how many there may be", problem)
    del many["lookups"][0]
    ids = {match["job_id"] for match in service.want(200, "POST", path, many)["matches"]}
    sizes = [len(service.want(200, "GET", "/v1/jobs/" + name)["ops"]) for name in ids]
    check(sizes == [1000], "all in one", sizes)
    reader = service.want(201, "POST", "/v1/tokens", {"owner": "ann", "roles": ["read"]})["secret"]
    service.want(200, "POST", "/v1/kernels:lookup", batch, token=reader)
    problem = service.want(403, "POST", path, batch, token=reader)
    check("submit" in problem["detail"], "the role that is missing", problem)
    wait_for("it is written down", lambda: [
        entry for entry in service.audit("auth.refused") if entry["actor"] == "ann"], 10)
    writer = service.want(201, "POST", "/v1/tokens", {"owner": "ben", "roles": ["read", "submit"]})["secret"]
    service.want(200, "POST", path, {"lookups": [matmul(20)]}, token=writer)
    status, problem, headers = service.send("POST", path, {"lookups": [matmul(21)]}, token=writer)
    check(status == 429 and headers["retry-after"], "over his quota", status, problem)
    service.stop()


def test_idempotency(box):
    """The same key and body make one job, also over a restart."""
    need("wpkd")
    service = Api(box)
    first = service.want(201, "POST", "/v1/jobs", small_job(), Idempotency_Key="a")
    again = service.want(201, "POST", "/v1/jobs", small_job(), Idempotency_Key="a")
    check(first["id"] == again["id"], "the same job", first, again)
    problem = service.want(422, "POST", "/v1/jobs", small_job(priority=1), Idempotency_Key="a")
    check(problem["field"] == "Idempotency-Key", "another body", problem)
    other = service.want(201, "POST", "/v1/jobs", small_job(), Idempotency_Key="b")
    check(other["id"] != first["id"], "another key, another job")
    token = service.want(201, "POST", "/v1/tokens", {"owner": "ann", "roles": ["submit"]})["secret"]
    hers = service.want(201, "POST", "/v1/jobs", small_job(), token=token, Idempotency_Key="a")
    check(hers["id"] != first["id"], "keys are an owner's own")
    service.want(422, "POST", "/v1/jobs", small_job(), Idempotency_Key="x" * 256)
    service.wpkd.popen.kill()
    service.wpkd.popen.wait()
    later = Api(box)
    kept = later.want(201, "POST", "/v1/jobs", small_job(), Idempotency_Key="a")
    check(kept["id"] == first["id"], "after a restart too", kept)
    check(len(later.want(200, "GET", "/v1/jobs")["jobs"]) == 3, "three jobs in all")
    # The clock went a day forward, when keys are forgotten, and back.
    later.want(200, "POST", "/v1/jobs/%s:cancel" % first["id"])
    with contextlib.closing(sqlite3.connect(os.path.join(box.data, "history.db"))) as store, store:
        store.execute("DELETE FROM idempotency")
    wait_for("nothing of it is under way any more", lambda: later.send(
        "POST", "/v1/jobs", small_job(), Idempotency_Key="a")[0] != 409, 10)
    once = later.want(201, "POST", "/v1/jobs", small_job(), Idempotency_Key="a")
    check(once["id"] == first["id"] and once["state"] == "cancelled", "not made twice", once)
    check("store_failed" not in later.wpkd.text(later.wpkd.err), "and nobody else's is lost")
    later.stop()


def test_pages_of_large_jobs(box):
    """A page ends where it has enough operators, and the next one goes on there."""
    need("wpkd")
    service = Api(box)
    job = small_job()
    job["ops"] = [{"name": "o%d" % i, "op": "Y[i] = X[i]",
                   "tensors": {"X": "f32[%d]" % (i + 1), "Y": "f32[%d]" % (i + 1)}} for i in range(256)]
    made = [service.want(201, "POST", "/v1/jobs", job)["id"] for _ in range(10)]
    listed, pages, token = [], 0, ""
    while pages == 0 or token:
        page = service.want(200, "GET", "/v1/jobs?page_token=" + token)
        check(0 < len(page["jobs"]) <= 4, "a page is bounded", len(page["jobs"]))
        listed += [job["id"] for job in page["jobs"]]
        token = page["next_page_token"]
        pages += 1
    check(listed == made[::-1] and pages == 3, "all of them, newest first", listed, pages)
    service.stop()


def near_misses(service, count):
    """Answers to six batches at a time, each of shapes for which the known one's schedule is legal."""
    batch = {"lookups": [
        {"op": SMALL_OP["op"], "constants": SMALL_OP["constants"],
         "tensors": {name: text.replace("12,12", "12,%d" % (36 + 24 * i))
                     for name, text in SMALL_OP["tensors"].items()}} for i in range(count)]}
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        service.send("POST", "/v1/kernels:lookup", batch))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_kernels(box):
    """Kernels are pinned, revoked and rolled back, and lookups follow at once."""
    need(*PROGRAMS)
    service = Api(box)
    service.add_worker()
    service.tuned(search={"strategy": "random", "seed": 1, "pin": SCALABLE})
    lookup = {"op": SMALL_OP["op"], "tensors": SMALL_OP["tensors"],
              "constants": SMALL_OP["constants"]}
    match = service.want(200, "POST", "/v1/kernels:lookup", lookup)
    kernel = match["kernel_id"]
    path = "/v1/kernels/" + kernel
    _, page, headers = service.send("GET", path)
    check(service.send("GET", path, If_None_Match=headers["etag"])[0] == 304, "as it was", headers)
    listed = service.send("GET", "/v1/kernels?layouts=fixed")[2]["etag"]
    check(service.send("GET", "/v1/kernels?layouts=fixed", If_None_Match=listed)[0] == 304, "a list")
    refused = []
    for _ in range(20):  # until two of six were at it when another came
        answers = near_misses(service, 200)
        served = [content for status, content, _ in answers if status == 200]
        check(len(served) >= 2 and {match["match"] for content in served for match in content["matches"]}
              == {"nearest_shape"}, "near shapes", answers)
        refused = [(status, headers) for status, _, headers in answers if status != 200]
        check(all(status == 503 and headers["retry-after"] for status, headers in refused), "later", refused)
        if refused:
            break
    check(refused, "two of those at a time")
    check([status for status, _, _ in near_misses(service, 15)] == [200] * 6, "short ones, all at once")
    check(service.want(200, "POST", path + ":pin", {"reason": "good"})["pinned"], "pinned")
    check(service.send("GET", "/v1/kernels?layouts=fixed", If_None_Match=listed)[0] == 200, "changed")
    check(service.send("GET", path, If_None_Match=headers["etag"])[0] == 200, "it has changed")
    match = service.want(200, "POST", "/v1/kernels:lookup", lookup)
    check(match["kernel"]["pinned"], "the lookup knows", match)
    check(not service.want(200, "POST", path + ":unpin")["pinned"], "unpinned")
    service.want(409, "POST", path + ":unpin")
    service.want(409, "POST", path + ":rollback")
    revoked = service.want(200, "POST", path + ":revoke", {"reason": "wrong on Tuesdays"})
    check(revoked["revoked"]["reason"] == "wrong on Tuesdays" and not revoked["served"], revoked)
    match = service.want(200, "POST", "/v1/kernels:lookup", lookup)
    check(revoked["serves"] and revoked["serves"] != kernel, "another one is served", revoked)
    check(match["kernel_id"] == revoked["serves"], "which lookups find", match)
    check(match["accuracy"] == "standard" and match["conditions"] == "warm", "its class", match)
    check(set(match["verified"]) == {"max_error", "tolerance", "of_rms", "times_direct"}, "its errors", match)
    check(service.audit("kernel.revoke")[0]["detail"]
          == "wrong on Tuesdays; serves: standard %(serves)s (%(serves_provider)s)" % revoked, "the log names it")
    strict = service.want(200, "POST", "/v1/kernels:lookup", dict(lookup, accuracy={"times_direct": 1e-9}))
    cold = service.want(200, "POST", "/v1/kernels:lookup", dict(lookup, conditions="cold"))
    check(cold["match"] == "none", "conditions are part of the key", cold)
    check(strict["match"] in ("none", "exact", "vendor"), "a class of one's own", strict)
    service.want(422, "POST", "/v1/kernels:lookup", dict(lookup, accuracy="best"))
    service.want(422, "POST", "/v1/kernels:lookup", dict(lookup, conditions="hot"))
    listed = service.want(200, "GET", "/v1/kernels?accuracy=standard&conditions=warm")["kernels"]
    check([k["id"] for k in listed] == [revoked["serves"]], "kernels of a class", listed)
    check(not service.want(200, "GET", "/v1/kernels?accuracy=fast")["kernels"], "none of another")
    service.want(422, "GET", "/v1/kernels?accuracy=best")
    if revoked["artifact"]:
        service.want(410, "GET", path + "/manifest")
        service.want(410, "GET", "/v1/artifacts/" + revoked["artifact"])
    job = service.want(200, "GET", "/v1/jobs")["jobs"][0]["id"]
    check(not service.want(200, "GET", "/v1/jobs/" + job)["kernels"], "nor its job's")
    service.want(409, "POST", path + ":pin")
    service.want(404, "POST", "/v1/kernels/k999999:pin")
    service.want(422, "POST", path + ":revoke", {"why": "?"})
    check([e["outcome"] for e in service.audit("kernel.revoke")] == ["ok"], "logged")
    check([e["outcome"] for e in service.audit("kernel.pin")] == ["ENOENT", "EEXIST", "ok"], "logged")
    service.stop()


if __name__ == "__main__":
    main(globals())

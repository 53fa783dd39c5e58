# SPDX-License-Identifier: Apache-2.0
"""wpkd and a worker by hand; wpkctl and plain HTTP against them."""
import concurrent.futures
import hashlib
import json
import math
import os
import re
import shutil
import time

import contract
from lib import ROOT, SCALABLE, SMALL_OP, Process, Service, check, main, need, small_job, wait_for

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner")
JOBS_MAX = 1000  # that have not ended, of an owner of whom the configuration says nothing


class CheckedService(Service):
    """Every answer has to be what openapi.yaml promises."""

    def ask(self, method, path, body=None, kind="application/json"):
        status, content, headers = super().ask(method, path, body, kind)
        found = contract.of_answer(method, path, status, content)
        check(not found, "%s %s answers as the contract says" % (method, path), found, content)
        return status, content, headers


def test_commands(box):
    need(*PROGRAMS)
    service = Service(box)
    job = box.write("job.json", small_job())
    identifier = box.ctl("submit", job, "--server", service.url).strip()
    status, answer, _ = service.ask("GET", "/v1/jobs/" + identifier)
    check(status == 200 and answer["state"] in ("queued", "running"), "submitted", answer)
    worker = service.add_worker()
    wait_for("the worker is known", lambda: "ready" in box.ctl("workers", "--server", service.url), 30)
    name = service.ask("GET", "/v1/workers")[1]["workers"][0]["name"]
    check(name.endswith("/%d" % worker.popen.pid), "by its process id", name)
    report = box.ctl("watch", identifier, "--server", service.url)
    check("small" in report and "GFLOP/s" in report, "the report", report)
    check("done" in box.ctl("status", identifier, "--server", service.url), "status")
    check(identifier in box.ctl("jobs", "--server", service.url), "jobs")
    done = json.loads(box.ctl("status", identifier, "--server", service.url, "--json"))
    check(done["state"] == "done" and len(done["kernels"]) == 1, "the job as JSON", done)
    check(json.loads(box.ctl("workers", "--server", service.url, "--json"))["workers"], "workers")
    check(done["kernels"][0]["fingerprint"][:12] in box.ctl("kernels", "--server", service.url), "kernels")
    box.env["WPK_URL"] = service.url
    check(identifier in box.ctl("jobs"), "WPK_URL is heeded")
    box.ctl("status", "j0000000000000000", want=4)
    box.ctl("status", "nonsense", want=2)
    box.ctl("get", "nonsense", want=4)
    box.ctl("get", "0" * 64, want=4)
    service.stop()


def test_who_hears_that_it_is_done_hears_the_kernel(box):
    """The first answer that calls a job done has its kernel, however often is asked."""
    need(*PROGRAMS)
    service = Service(box)
    service.add_worker()
    for rows in (8, 9):
        job = {"name": "done", "ops": [{"name": "op", "op": {"type": "matmul", "a": [rows, 8], "b": [8, 8]}}],
               "budget": {"candidates": 1, "seconds": 60}}
        identifier = service.ask("POST", "/v1/jobs", job)[1]["id"]
        end = time.monotonic() + 300
        while True:
            answer = service.ask("GET", "/v1/jobs/" + identifier)[1]
            if answer["state"] not in ("queued", "running"):
                break
            check(time.monotonic() < end, "it ends", answer)
            time.sleep(0.002)
        check(answer["state"] == "done" and len(answer["kernels"]) == 1, "done, with its kernel", answer)
    service.stop()


def test_cancel(box):
    need(*PROGRAMS)
    service = Service(box)
    job = box.write("job.json", small_job())
    identifier = box.ctl("submit", job, "--server", service.url).strip()
    box.ctl("cancel", identifier, "--server", service.url)
    box.ctl("watch", identifier, "--server", service.url, want=1)
    check(service.ask("GET", "/v1/jobs/" + identifier)[1]["state"] == "cancelled", "cancelled")
    service.stop()


def check_trials(service, job):
    """Trials, page by page; one that failed has its reason."""
    path = "/v1/jobs/%s/trials?page_size=4" % job["id"]
    trials, token = [], ""
    while token or not trials:
        status, page, _ = service.ask("GET", path + ("&page_token=" + token if token else ""))
        check(status == 200 and 0 < len(page["trials"]) <= 4, "a page", page)
        trials, token = trials + page["trials"], page["next_page_token"]
    own = [trial for trial in trials if trial["index"] >= 0]
    counts = job["ops"][0]["candidates"]
    check(len(own) == counts["measured"] + counts["failed"] > 3, "each candidate once", counts, own)
    check([t["index"] for t in own] == list(range(len(own))), "in the order of the asks", own)
    for trial in trials:
        check((trial["outcome"] == "ok") == (trial["time_ns"] is not None), "ok has a time", trial)
        check(trial["outcome"] == "ok" or trial["log"], "a failure has its reason", trial)
    check(service.ask("GET", path + "&op=small")[1]["trials"] == trials[:4], "of an operator")
    check(service.ask("GET", path + "&op=large")[0] == 422, "of one that is not in the job")


def check_documented(box, service, job, artifact):
    """The lines for curl in the page about commands, as they stand there."""
    with open(os.path.join(ROOT, "docs/cli.md"), encoding="utf-8") as file:
        block = re.search(r"## curl\n\n```sh\n(.*?)```", file.read(), re.DOTALL).group(1)
    lines = block.replace("\\\n", " ").splitlines()
    check(len(lines) >= 5 and all(line.startswith("curl ") for line in lines), "they are found", block)
    box.write("job.json", small_job())
    for line in lines if shutil.which("curl") else []:
        if "SHA256" in line and not artifact:
            continue
        for name, value in (("SOCKET", service.socket), ("JOB", job["id"]), ("SHA256", artifact)):
            line = line.replace(name, value or "")
        code, out, err = Process(box, ["sh", "-c", line]).wait(30)
        check(code == 0, "curl does it: " + line, code, err)
        if " -o " not in line:
            answer = json.loads(out)
            check("title" not in answer, "no problem with: " + line, answer)
    if shutil.which("curl") and artifact:
        with open(box.path("kernel.so"), "rb") as file:
            check(hashlib.sha256(file.read()).hexdigest() == artifact, "curl got the artifact")


def match_id(service, kernel):
    page = service.ask("GET", "/v1/kernels?fingerprint=" + kernel["fingerprint"])[1]
    return page["match"]["kernel_id"]


LEVELS = ("exact", "other_version", "nearest_shape", "same_family", "vendor", "none")


def check_lookups(service, kernel):
    """Each level of a match that one kernel can give, and the same in a batch."""
    def counted():
        return {name: service.metric("wpk_lookup_requests_total", name) for name in LEVELS}

    def ask(**changes):
        status, match, _ = service.ask("POST", "/v1/kernels:lookup", {**lookup, **changes})
        check(status == 200, "a lookup is answered", status, match)
        asked.append(({**lookup, **changes}, match))
        return match
    asked, before = [], counted()
    lookup = {"op": SMALL_OP["op"], "tensors": SMALL_OP["tensors"],
              "constants": SMALL_OP["constants"], "layouts": "fixed", "threads": 1}
    level = "exact" if kernel["artifact"] else "vendor"
    match = ask()
    check(match["match"] == level and match["distance"] == 0, "the operator is found", match)
    check(match["kernel"]["fingerprint"] == kernel["fingerprint"], "by its fingerprint", match)
    check(match["expected_ns"]["median"] == kernel["time_ns"]["median"], "its time", match)
    check(match["provenance"]["worker"] and match["provenance"]["job"], "its provenance", match)
    match = ask(environment="halide=1.2.3")
    check(match["match"] == "other_version" and match["differs"][0]["field"] == "halide",
          "in another environment", match)
    match = ask(threads=2)
    check(match["match"] == "same_family" and match["artifact"] is None, "other threads", match)
    check(match["expected_from"] == "elsewhere" and match["expected_ns"]["median"] > 0,
          "their time is estimated", match)
    match = ask(tensors={name: text.replace("12,12", "36,36")
                         for name, text in lookup["tensors"].items()})
    check(match["match"] == "nearest_shape" and match["artifact"] is None, "another shape is near", match)
    check(match["distance"] == round(4 * math.log2(3), 4), "three times as long in two axes, of two stages", match)
    expected = match["expected_ns"]["median"] / kernel["time_ns"]["median"]
    check(8 < expected < 9.01, "nine times the work, of almost as many bytes", match)
    check(match["expected_from"] == "nearest_shape", "and where that is from", match)
    match = ask(op="Y[i] = exp(X[i])", tensors={"X": "f32[8]", "Y": "f32[8]"}, constants=[])
    check(match["match"] == "none" and match["kernel"] is None, "another operator is not", match)
    status, answer, _ = service.ask("POST", "/v1/kernels:lookup", {"lookups": [a for a, _ in asked]})
    for single, batched in zip([match for _, match in asked], answer["matches"]):
        del single["kernel"]
        check(single == batched, "a batch says the same", single, batched)
    levels = [match["match"] for _, match in asked]
    after = counted()
    check({name: after[name] - before[name] for name in LEVELS} == {name: 2 * levels.count(name) for name in LEVELS},
          "each is counted at its level", before, after, levels)
    wrong = {"lookups": [lookup, {**lookup, "threads": 0}]}
    status, problem, _ = service.ask("POST", "/v1/kernels:lookup", wrong)
    check(status == 422 and problem["field"] == "lookups[1].threads", "the item at fault", problem)
    status, problem, _ = service.ask("POST", "/v1/kernels:lookup", {"lookups": [lookup] * 1001})
    check(status == 422 and problem["field"] == "lookups", "as many as that are not", problem)


def test_http(box):
    """The three resources, as curl would ask for them."""
    need(*PROGRAMS)
    service = CheckedService(box)
    service.add_worker()
    status, job, headers = service.ask("POST", "/v1/jobs", small_job(search={
        "strategy": "random", "seed": 1, "pin": SCALABLE}))
    check(status == 201 and headers.get("location", "").endswith(job["id"]), "created", job, headers)

    def ended():
        answer = service.ask("GET", "/v1/jobs/" + job["id"])[1]
        return answer if answer["state"] not in ("queued", "running") else None

    done = wait_for("the job ends", ended, 120)
    check(done["state"] == "done", "done", done)
    kernel = done["kernels"][0]
    check_lookups(service, kernel)
    status, page, _ = service.ask("GET", "/v1/kernels?fingerprint=" + kernel["fingerprint"])
    check(status == 200 and page["kernels"], "listed by fingerprint", page)
    check(page["match"]["match"] in ("exact", "vendor"), "with the level of the match", page)
    for filters in ("device=cpu/none/avx", "layouts=any", "threads=7", "provider=nobody"):
        page = service.ask("GET", "/v1/kernels?" + filters)[1]
        check(page["kernels"] == [], "none of those: " + filters, page)
    path = "/v1/kernels/" + match_id(service, kernel)
    status, one, headers = service.ask("GET", path)
    check(status == 200 and one["served"] and not one["pinned"], "one kernel", one)
    check(one in service.ask("GET", path + "/history")[1]["kernels"], "among all of its problem")
    check(service.ask("GET", "/v1/kernels/k999999")[0] == 404, "one that is not there")
    artifact = kernel["artifact"] or (kernel["own"] or {}).get("artifact")
    if artifact:
        status, data, _ = service.ask("GET", "/v1/artifacts/" + artifact)
        check(status == 200 and hashlib.sha256(data).hexdigest() == artifact, "the artifact", status)
    check(service.ask("GET", "/v1/jobs?state=done")[1]["jobs"][0]["id"] == job["id"], "jobs by state")
    status, problem, _ = service.ask("GET", "/v1/jobs?state=nonsense")
    check(status == 422 and problem["field"] == "state" and "cancelled" in problem["detail"],
          "a state that is none", status, problem)
    check(service.ask("GET", "/v1/workers")[1]["workers"], "the worker is known")
    check_trials(service, done)
    check_documented(box, service, done, artifact)
    check(service.ask("GET", "/v1/artifacts/" + "0" * 64)[0] == 404, "an unknown artifact")
    check(service.ask("GET", "/v1/nonsense")[0] == 404, "an unknown path")
    check(service.ask("POST", "/healthz", {})[0] == 405, "a wrong method")
    service.stop()


def test_many_jobs(box):
    """Live jobs are bounded, and that is no reason to come again in a second."""
    need("wpkd")
    service = CheckedService(box)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: service.ask("POST", "/v1/jobs", small_job())[0],
                                range(JOBS_MAX)))
    check(set(answers) == {201}, "as many are taken", set(answers))
    status, problem, headers = service.ask("POST", "/v1/jobs", small_job())
    check(status == 429 and "may have 1000" in problem["detail"], "one more is not", status, problem)
    check(int(headers["retry-after"]) > 1, "when to come again", headers)
    box.ctl("submit", box.write("job.json", small_job()), "--server", service.url, want=1)
    status, page, _ = service.ask("GET", "/v1/jobs?page_size=1000")
    check(len(page["jobs"]) == 100 and page["next_page_token"], "a page of jobs is bounded",
          len(page["jobs"]))
    listed = json.loads(box.ctl("jobs", "--server", service.url, "--max", 2 * JOBS_MAX, "--json"))["jobs"]
    check(len({job["id"] for job in listed}) == JOBS_MAX, "all of them, page by page", len(listed))
    service.stop()


def test_restart(box):
    """wpkd is killed and started again: jobs and kernels are as they were."""
    need(*PROGRAMS)
    service = Service(box)
    service.add_worker()
    job = box.write("job.json", small_job())
    identifier = box.ctl("submit", job, "--server", service.url).strip()
    wait_for("something is recorded", lambda: service.ask("GET", "/v1/jobs/" + identifier)[1]
             ["ops"][0]["candidates"]["measured"] > 0, 60)
    service.wpkd.note()
    service.wpkd.popen.kill()
    service.wpkd.popen.wait()
    time.sleep(0.2)
    workers = service.workers
    again = Service(box)
    again.workers = workers
    box.ctl("watch", identifier, "--server", again.url)
    done = again.ask("GET", "/v1/jobs/" + identifier)[1]
    check(done["state"] == "done" and done["kernels"], "the worker came back and ended it", done)
    again.stop()


if __name__ == "__main__":
    main(globals())

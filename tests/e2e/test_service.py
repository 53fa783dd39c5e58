# SPDX-License-Identifier: Apache-2.0
"""wpkd and a worker by hand; wpkctl and plain HTTP against them."""
import hashlib
import json
import time

from lib import SMALL_OP, Service, check, main, need, small_job, wait_for

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner")


def test_commands(box):
    need(*PROGRAMS)
    service = Service(box)
    job = box.write("job.json", small_job())
    identifier = box.ctl("submit", job, "--url", service.url).strip()
    status, answer, _ = service.ask("GET", "/v1/jobs/" + identifier)
    check(status == 200 and answer["state"] in ("queued", "running"), "submitted", answer)
    service.add_worker()
    wait_for("the worker is known", lambda: "ready" in box.ctl("workers", "--url", service.url), 30)
    report = box.ctl("watch", identifier, "--url", service.url)
    check("small" in report and "GFLOP/s" in report, "the report", report)
    check("done" in box.ctl("status", identifier, "--url", service.url), "status")
    check(identifier in box.ctl("jobs", "--url", service.url), "jobs")
    done = json.loads(box.ctl("status", identifier, "--url", service.url, "--json"))
    check(done["state"] == "done" and len(done["kernels"]) == 1, "the job as JSON", done)
    check(json.loads(box.ctl("workers", "--url", service.url, "--json"))["workers"], "workers")
    check(done["kernels"][0]["fingerprint"][:12] in box.ctl("kernels", "--url", service.url), "kernels")
    box.env["WPK_URL"] = service.url
    check(identifier in box.ctl("jobs"), "WPK_URL is heeded")
    box.ctl("status", "j0000000000000000", want=4)
    box.ctl("status", "nonsense", want=2)
    box.ctl("get", "nonsense", want=4)
    box.ctl("get", "0" * 64, want=4)
    service.stop()


def test_cancel(box):
    need(*PROGRAMS)
    service = Service(box)
    job = box.write("job.json", small_job())
    identifier = box.ctl("submit", job, "--url", service.url).strip()
    box.ctl("cancel", identifier, "--url", service.url)
    box.ctl("watch", identifier, "--url", service.url, want=1)
    check(service.ask("GET", "/v1/jobs/" + identifier)[1]["state"] == "cancelled", "cancelled")
    service.stop()


def test_http(box):
    """The three resources, as curl would ask for them."""
    need(*PROGRAMS)
    service = Service(box)
    service.add_worker()
    status, job, headers = service.ask("POST", "/v1/jobs", small_job())
    check(status == 201 and headers.get("location", "").endswith(job["id"]), "created", job, headers)

    def ended():
        answer = service.ask("GET", "/v1/jobs/" + job["id"])[1]
        return answer if answer["state"] not in ("queued", "running") else None

    done = wait_for("the job ends", ended, 120)
    check(done["state"] == "done", "done", done)
    kernel = done["kernels"][0]
    lookup = {"op": SMALL_OP["op"], "tensors": SMALL_OP["tensors"],
              "constants": SMALL_OP["constants"], "layouts": "fixed", "threads": 1}
    status, match, _ = service.ask("POST", "/v1/kernels:lookup", lookup)
    check(status == 200 and match["match"] in ("exact", "vendor"), "the operator is found", match)
    check(match["kernel"]["fingerprint"] == kernel["fingerprint"], "by its fingerprint", match)
    lookup["tensors"] = {name: text.replace("16", "17") for name, text in lookup["tensors"].items()}
    status, match, _ = service.ask("POST", "/v1/kernels:lookup", lookup)
    check(status == 200 and match["match"] == "none", "another shape is not", match)
    status, page, _ = service.ask("GET", "/v1/kernels?fingerprint=" + kernel["fingerprint"])
    check(status == 200 and page["kernels"], "listed by fingerprint", page)
    artifact = kernel["artifact"] or (kernel["own"] or {}).get("artifact")
    if artifact:
        status, data, _ = service.ask("GET", "/v1/artifacts/" + artifact)
        check(status == 200 and hashlib.sha256(data).hexdigest() == artifact, "the artifact", status)
    check(service.ask("GET", "/v1/artifacts/" + "0" * 64)[0] == 404, "an unknown artifact")
    check(service.ask("GET", "/v1/nonsense")[0] == 404, "an unknown path")
    check(service.ask("POST", "/healthz", {})[0] == 405, "a wrong method")
    service.stop()


def test_restart(box):
    """wpkd is killed and started again: jobs and kernels are as they were."""
    need(*PROGRAMS)
    service = Service(box)
    service.add_worker()
    job = box.write("job.json", small_job())
    identifier = box.ctl("submit", job, "--url", service.url).strip()
    wait_for("something is recorded", lambda: service.ask("GET", "/v1/jobs/" + identifier)[1]
             ["ops"][0]["candidates"]["measured"] > 0, 60)
    service.wpkd.note()
    service.wpkd.popen.kill()
    service.wpkd.popen.wait()
    time.sleep(0.2)
    workers = service.workers
    again = Service(box)
    again.workers = workers
    box.ctl("watch", identifier, "--url", again.url)
    done = again.ask("GET", "/v1/jobs/" + identifier)[1]
    check(done["state"] == "done" and done["kernels"], "the worker came back and ended it", done)
    again.stop()


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""An administrator's view: /metrics after real work, and logs that follow a candidate."""
import json
import re

from lib import Service, check, main, need, small_job, wait_for

SAMPLE = re.compile(r'([a-z_]+)(?:\{([a-z]+)="([^"]*)"\})? (\S+)')


def metrics(service):
    """{(name, label value or ""): number} of a page that has to be in Prometheus' text format."""
    status, page, headers = service.ask("GET", "/metrics")
    check(status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4"),
          "answers", status, headers)
    found, family = {}, None
    for line in page.decode().split("\n")[:-1]:
        if line.startswith("# TYPE "):
            family = line.split()[2]
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            check(match and match.group(1).startswith(family), "a sample of its family", line)
            found[match.group(1), match.group(3) or ""] = float(match.group(4))
    return found


def test_metrics_after_a_job(box):
    need("wpkd", "wpk-worker", "wpk-runner")
    service = Service(box)
    service.add_worker()
    before = metrics(service)
    check(before["wpk_trials_total", "ok"] == 0, "nothing yet", before)
    identifier = box.ctl("submit", box.write("job.json", small_job()), "--server", service.url).strip()
    box.ctl("watch", identifier, "--server", service.url)
    job = service.ask("GET", "/v1/jobs/" + identifier)[1]
    # Ended jobs are counted as they end, the other gauges once a second, one after the other.
    ended = {("wpk_jobs", "done"): 1, ("wpk_jobs", "running"): 0, ("wpk_workers", "idle"): 1,
             ("wpk_leases_held", ""): 0, ("wpk_kernels", ""): 1, ("wpk_worker_connections", ""): 1}
    now = wait_for("the gauges have seen the end", lambda: (lambda page: page if all(
        page[gauge] == number for gauge, number in ended.items()) else None)(metrics(service)), 20)
    counts = job["ops"][0]["candidates"]
    trials = sum(v for (name, _), v in now.items() if name == "wpk_trials_total")
    check(trials >= counts["measured"] + counts["failed"] > 0, "trials are counted", counts, trials)
    check(now["wpk_leases_total", ""] > 0, "leases", now)
    for name in ("build", "run", "commit"):
        check(now["wpk_%s_seconds_count" % name, ""] > 0 and now["wpk_%s_seconds_sum" % name, ""] > 0,
              name + " is timed", now)
    check(now["wpk_measurement_noise_ratio_count", ""] > 0, "noise", now)
    check(now["wpk_http_requests_total", "2xx"] > 0, "requests", now)
    check(now["wpk_worker_messages_total", ""] > 0, "messages of workers", now)
    check(now["wpk_store_degraded", ""] == 0 and now["wpk_store_bytes", ""] > 0, "the store", now)
    device = [v for (name, v) in now  # those that jobs may name have a series of 0, too
              if name == "wpk_device_seconds_total" and v != "other" and now[name, v] > 0]
    check(len(device) == 1, "device time", device)
    kernel = job["kernels"][0]["fingerprint"]
    service.ask("POST", "/v1/kernels:lookup",
                {"fingerprint": kernel, "device": device[0], "layouts": "fixed", "threads": 1})
    after = metrics(service)
    check(after["wpk_lookup_seconds_count", ""] == now["wpk_lookup_seconds_count", ""] + 1, "the lookup is timed", after)
    for name in ("wpk_lookup_seconds_sum", "wpk_loop_turn_seconds_count", "wpk_loop_turn_seconds_sum"):
        check(after[name, ""] > 0, name, after)
    # The last answer may be counted a moment after it was heard.
    timed = after["wpk_http_request_seconds_count", ""] - now["wpk_http_request_seconds_count", ""]
    check(1 <= timed <= 3, "and each request", timed)
    check(after["process_resident_memory_bytes", ""] > 1e6, "the process", after)
    check(set(k for k in now if k[0] != "wpk_device_seconds_total") <= set(after), "as before")
    service.stop()


def test_logs_follow_a_candidate(box):
    """The same lease in wpkd's log and in the worker's, at debug level."""
    need("wpkd", "wpk-worker", "wpk-runner")
    service = Service(box, options=("--log-level", "debug", "--log-format", "json"))
    worker = service.add_worker("--log-level", "debug", "--log-format", "json")
    job = box.write("job.json", small_job(budget={"candidates": 3, "seconds": 60}))
    identifier = box.ctl("submit", job, "--server", service.url).strip()
    box.ctl("watch", identifier, "--server", service.url)

    def events(process, name):
        lines = [json.loads(line) for line in process.text(process.err).splitlines(keepends=True)
                 # A sanitizer says what it cannot do in its own words; half a line is one as yet.
                 if line.endswith("\n") and not re.match("==[0-9]+==|False positive|HINT", line)]
        return {line["work"]: line for line in lines if line["event"] == name}
    received = events(service.wpkd, "received")
    check(len(received) >= 3, "results are logged", received)
    wait_for("the worker has heard that all arrived",
             lambda: set(received) <= set(events(worker, "brought")), 20)
    for work, line in received.items():
        for process, name in ((service.wpkd, "leased"), (worker, "taken"), (worker, "brought")):
            found = events(process, name).get(work)
            check(found and found["lease"] == line["lease"], "one id through wpkd and worker", name,
                  found, line)
        check(line["outcome"], "what became of it", line)
        check(events(worker, "taken")[work]["trial"], "what builder, runner and trace call it")
    service.stop()


if __name__ == "__main__":
    main(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of wpkd's pages with a large history: CPU time of all threads, size and time of each page.

    pages.py [TRIALS]     default 1000000, in one search; jobs and kernels by the hundred
    pages.py --data DIR   pages with code, of the newest job in a history: `wpkctl tune examples/demo.json --data DIR`
    pages.py --paint      first paint of each page in Chromium, of the same history
    pages.py --viewers    100 viewers of a page beside 3,000 results a second; else as bench-open-loop

The history is made up in SQL. Each page is asked for ROUNDS times, further apart than pages are kept, so that each is
rendered; then again at once, so that none is.
"""
import glob
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/e2e"))
from lib import Box, Service, UnixConnection, wait_for  # noqa: E402

ROUNDS = 8
PAGES = ("/ui/", "/ui/job?id=j0000000000000001", "/ui/job?id=j0000000000000001&by=source",
         "/ui/job?id=j0000000000000001&by=strategy", "/ui/kernels", "/ui/fleet")
JOBS = 100
CANDIDATE = ("cpu-6 algorithm=winograd(6) layout=halo-last1 Y_acc_v.vec=c Y_acc_v.lanes=16 Y_acc_v.tile.ty=1 Y_acc_v."
             "tile.tx=1 Y_acc_v.tile.c=16 Y.block.y=1 Y.block.x=all Y.outer=y,x,k Y.tile.x=")
GENES = "(1 + n % 6) || ' Y.tile.k=' || (1 << n / 7 % 7) || ' Y.hold=' || (n / 49 % 3) || ' n=' || n"
BUCKET = ("CASE WHEN n < 16 THEN n ELSE ((CAST(floor(log2(n)) AS INTEGER) - 3) << 4) +"
          " ((n >> (CAST(floor(log2(n)) AS INTEGER) - 4)) & 15) END")


def fill(path, trials):
    base = sqlite3.connect(path)
    base.execute("PRAGMA synchronous = OFF")
    count = "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < %d) " % (trials - 1)
    base.execute("INSERT INTO problem VALUES (1, 'f', 'fixed', 'cpu/bench/avx2', 'e', 'threads=1', 'f', '1', '', 'op', 1e9,"
                 " 1e6, 1, 1)")
    base.execute("INSERT INTO search VALUES (1, 1, 'ga', '', '', '', '', '1', 'halide-cpu', 's', 'standard', '', '', 0, 1,"
                 " %d, 1, NULL, '', '', 0, 0, 0, 0, '', 1, 1)" % trials)
    base.execute("INSERT INTO trial (id, problem_id, provider, candidate, candidate_hash, outcome, log, detail,"
                 " schedule_sha256, artifact_sha256, error_max, error_tolerance, of_rms, times_direct, constants_bytes,"
                 " unseen, recipe, build_ns, verify_ns, recorded_at, epoch) " + count +
                 "SELECT n + 1, 1, 'halide-cpu', '" + CANDIDATE + "' || " + GENES + ", CAST(printf('%016d', n) AS BLOB),"
                 " iif(n % 7, 'ok', 'build_error'), iif(n % 7, '', 'error: the compiler said no\n' || hex(zeroblob(200))), '', '',"
                 " '', 0, 0, 0, 1, 0, '', '', 1, 1, n * 1000000000, 1 FROM c")
    base.execute("INSERT INTO measurement (trial_id, number, kind, search_id, worker, instance, median_ns, min_ns,"
                 " mad_ns, repeat_count, censored, anchor_ns, anchor_ratio, anchor, samples_ns, counters, measured_at,"
                 " epoch) SELECT id, 0, 'trial', 1, 'w', 'i', 500000 + (id * 7919) % 9000000 / (1 + id / 1000), 400000,"
                 " 3000, 1, 0, 0, 0, '', '[]', '', 1, 1 FROM trial WHERE outcome = 'ok'")
    base.execute("INSERT INTO ask SELECT 1, id - 1, id, 'proposed', 1, 0, 1 FROM trial")
    base.execute("INSERT INTO search_bucket SELECT 1, %s, sum(m.median_ns IS NOT NULL), sum(m.median_ns IS NULL),"
                 " coalesce(min(m.median_ns), 0), n, n + 1, n * 1000000000 FROM (SELECT id - 1 AS n, id FROM trial) t"
                 " LEFT JOIN measurement m ON m.trial_id = t.id GROUP BY 2" % BUCKET)
    base.execute("INSERT INTO search_outcome SELECT 1, outcome, count(*), max(id) FROM trial GROUP BY outcome")
    best = {"provider": "halide-cpu", "algorithm": "winograd(6)", "candidate": CANDIDATE,
            "time_ns": {"median": 500000, "min": 400000, "mad": 3000}}
    for number in range(1, JOBS + 1):
        name = "j%016x" % number
        document = {"id": name, "name": "job %d" % number, "owner": "bench", "state": "done", "reason": "",
                    "created": "2026-01-01T00:00:00.000Z", "seconds": 1.0, "seconds_left": 0,
                    "ops": [{"name": "conv", "fingerprint": "f" * 64, "phase": "done", "reason": "",
                             "candidates": {"measured": trials, "failed": 0, "known": 0, "wanted": trials},
                             "best": best, "baseline": best}]}
        base.execute("INSERT INTO job VALUES (?, ?, 'job', 'bench', 0, 'done', '', ?, 1, 1, 1, 'cpu', '', 1, '', 'ga',"
                     " '', '', '1', 1, 0, 1, '', 1)", (number, name, json.dumps(document, separators=(",", ":"))))
        base.execute("INSERT INTO job_op VALUES (?, 0, 1, NULL, 'done', '', 0, 'conv', 1, 'fixed', 'standard', 'warm',"
                     " 'f', 'f', '', 1, 1, '', '', 1)", (number,))
    base.commit()
    base.close()


def cpu_ms(pid):
    total = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        with open(path, encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e6


def ask(service, path):
    connection = UnixConnection(service.socket)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise SystemExit("%s: %d %s" % (path, answer.status, body[:300]))
    return len(body)


def measure(service, path):
    pid = service.wpkd.popen.pid
    ask(service, path)
    idle = cpu_ms(pid)
    time.sleep(1.2 * ROUNDS)
    idle = cpu_ms(pid) - idle
    spent, wall, size = cpu_ms(pid), 0, 0
    for _ in range(ROUNDS):
        time.sleep(1.2)
        begin = time.monotonic()
        size = ask(service, path)
        wall += time.monotonic() - begin
    rendered = max(0, cpu_ms(pid) - spent - idle) / ROUNDS
    spent = cpu_ms(pid)
    for _ in range(100):
        ask(service, path)
    kept = (cpu_ms(pid) - spent) / 100
    print("%-34s %8.2f ms CPU %8.2f ms wall %7.1f KB %8.3f ms CPU kept" %
          (path, rendered, 1e3 * wall / ROUNDS, size / 1e3, kept))


def paint(box, service):
    """First contentful paint, the median of ROUNDS, by a browser that has the style."""
    from browser import Browser  # pylint: disable=import-outside-toplevel
    dashboard = box.start("wpkctl", "dashboard", "--server", service.url)
    url = wait_for("its URL", lambda: re.search(r"(http://127.0.0.1:\d+)(/ui/\?ticket=\w+)",
                                                dashboard.text(dashboard.out)), 30)
    with Browser() as browser:
        browser.open(url.group(1) + url.group(2))
        for path in PAGES:
            times = []
            for _ in range(ROUNDS):
                browser.open(url.group(1) + path)
                times.append(browser.first_paint_ms())
            print("%-34s %8.0f ms to the first paint, %.0f to %.0f" % (path, sorted(times)[ROUNDS // 2], min(times),
                                                                       max(times)))
    dashboard.popen.terminate()
    dashboard.wait(30)


def measure_code(box, data):
    service = Service(box, data=data)
    job = first_job(service.socket)
    for path in ("job?id=" + job, "trials?id=%s&op=&a=0&b=1" % job, "compare?a=%s&b=%s" % (job, job), "kernel?id=k1",
                 "report?id=" + job):
        measure(service, "/ui/" + path)
    service.stop()


def first_job(socket):
    try:
        connection = UnixConnection(socket)
        connection.request("GET", "/v1/jobs")
        jobs = json.loads(connection.getresponse().read())["jobs"]
        connection.close()
        return jobs and jobs[0]["id"]
    except OSError:
        return None


def look_at(socket, path, over):
    """A viewer: as script.js, every 2 s by the ETag of the last answer."""
    etag = ""
    while not over.wait(2):
        try:
            connection = UnixConnection(socket)
            connection.request("GET", path, headers={"If-None-Match": etag})
            answer = connection.getresponse()
            answer.read()
            etag = answer.getheader("etag") or etag
            connection.close()
        except OSError:  # the benchmark has ended
            return


def viewers(box):
    """bench-open-loop alone, then with 100 viewers: what it prints has the p99, and wpkd's CPU."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build/bench/bench-open-loop")
    for count in (0, 100):
        data = box.path("w%d" % count)
        bench = subprocess.Popen([program, data], stdout=subprocess.PIPE, text=True)
        path_of_socket = os.path.join(data, "http.sock")
        job = wait_for("a job", lambda path=path_of_socket: first_job(path), 60)
        over = threading.Event()
        threads = [threading.Thread(target=look_at, args=(path_of_socket, "/ui/job?id=" + job, over))
                   for _ in range(count)]
        for thread in threads:
            thread.start()
            time.sleep(0.02)
        print("%d viewers: %s" % (count, bench.communicate()[0].strip()), flush=True)
        over.set()
        for thread in threads:
            thread.join()


def main():
    trials = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 1000000
    box = Box()
    try:
        if "--data" in sys.argv:
            measure_code(box, os.path.abspath(sys.argv[sys.argv.index("--data") + 1]))
            return
        if "--viewers" in sys.argv:
            viewers(box)
            return
        service = Service(box)
        service.stop()
        begin = time.monotonic()
        fill(os.path.join(box.data, "history.db"), trials)
        print("%d trials, %d jobs, filled in %.0f s" % (trials, JOBS, time.monotonic() - begin), flush=True)
        service = Service(box)
        if "--paint" in sys.argv:
            paint(box, service)
        else:
            for path in (*PAGES, "/ui/job?id=j0000000000000001&axis=seconds",
                         "/ui/job?id=j0000000000000001&page_token=0.%d" % (trials // 2),
                         "/ui/report?id=j0000000000000001"):
                measure(service, path)
        service.stop()
    finally:
        box.close()


if __name__ == "__main__":
    main()

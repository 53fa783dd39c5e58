# SPDX-License-Identifier: Apache-2.0
"""Pages of a wpkd: policy, ETags, cookies, relative URLs, hostile names, the report, the dashboard's port."""
import contextlib
import http.client
import json
import os
import re
import sqlite3

from browser import Browser, check_looks
from lib import Service, UnixConnection, check, main, need, small_job, wait_for
from port import Port, free_port

PAGES = ("/ui/", "/ui/kernels", "/ui/misses", "/ui/fleet")
HOSTILE = "<script>alert(1)</script>\u202e\u05d0"


def get(connection, path, **headers):
    connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.getheaders()}


def visit(service, path, **headers):
    connection = UnixConnection(service.socket)
    found = get(connection, path, **headers)
    connection.close()
    return found


def check_page(path, status, text, headers):
    check(status == 200 and headers["content-type"].startswith("text/html"), "%s is a page" % path, status, text)
    policy = headers["content-security-policy"]
    check("default-src 'none'" in policy and "require-trusted-types-for 'script'" in policy
          and "unsafe" not in policy, "a strict policy", policy)
    check(len(text) < 150000, "its size", len(text))
    links = re.findall(r'(?:href|src|action)="([^"]*)"', text)
    check(links and not any(link.startswith(("/", "http:", "https:", "//")) for link in links),
          "relative URLs, so that a proxy's prefix works", links)
    check("<script>" not in text and " style=" not in text and " onclick" not in text, "nothing inline")


def done_job(box, service, **more):
    job = small_job(name=HOSTILE, **more)
    identifier = service.ask("POST", "/v1/jobs", job)[1]["id"]
    wait_for("the job ends", lambda: service.ask("GET", "/v1/jobs/" + identifier)[1]["state"] == "done", 120)
    return identifier


def test_pages_of_a_job(box):
    need("wpkd", "wpk-worker", "wpk-runner")
    service = Service(box)
    service.add_worker()
    job = done_job(box, service)
    second = done_job(box, service, search={"strategy": "ga", "seed": 1})
    paths = PAGES + ("/ui/job?id=" + job, "/ui/job?id=%s&op=small&axis=seconds" % job,
                     "/ui/job?id=%s&by=source" % job, "/ui/job?id=%s&by=strategy" % job,
                     "/ui/compare?a=%s&b=%s" % (job, second), "/ui/trials?id=%s&op=small&a=0&b=3" % job)
    for path in paths:
        check_page(path, *visit(service, path))
    page = visit(service, "/ui/job?id=" + job)[1]
    check("&lt;script&gt;alert(1)" in page and "\u202e" not in page, "a hostile name is text")
    check("<svg" in page and 'class="best"' in page, "how the search converged")
    every = service.ask("GET", "/v1/jobs/%s/trials?op=small" % job)[1]["trials"]
    sources = {trial["source"] for trial in every if trial["index"] >= 0}
    check(sources and sources <= {"constructed", "drawn", "proposed", "neighbour", "crossed", "walked"},
          "the sources of candidates", every)
    page_of_sources = visit(service, "/ui/job?id=%s&by=source" % job)[1]
    check(all(">%s</text>" % source in page_of_sources for source in sources), "convergence by source", page_of_sources)
    page_of_both = visit(service, "/ui/job?id=%s&by=strategy" % job)[1]
    check(">random</text>" in page_of_both and ">ga</text>" in page_of_both, "convergence by strategy", page_of_both)
    genes = re.findall(r"<tr><td>([^<]*)</td><td class=\"n\">(\d+) %</td><td class=\"text\"><bdi>([^<]*)</bdi></td><td"
                       r" class=\"n\">\d+</td><td class=\"n\" data-v=\"([0-9.]+)\">", page)
    check(genes and [int(g[1]) for g in genes] == sorted((int(g[1]) for g in genes), reverse=True)
          and min(float(g[3]) for g in genes) == 1, "what genes are worth", genes)
    outcomes = page[page.index('<table id="outcomes"'):]
    counts = [int(n) for n in re.findall(r'<td class="n">(\d+)</td>', outcomes[:outcomes.index("</table>")])]
    check(sum(counts) == 4, "each trial of the budget is counted once", counts)
    check(visit(service, "/ui/job?id=j0000000000000000")[0] == 404, "no such job")
    check(visit(service, "/ui/job?id=%s&op=none" % job)[0] == 404, "no such operator")
    check(visit(service, "/ui/nonsense")[0] == 404, "no such page")
    pair = visit(service, "/ui/trials?id=%s&op=small&a=0&b=3" % job)[1]
    check("<td>0</td>" in pair.replace(' class="n"', "") and "<td>3</td>" in pair.replace(' class="n"', ""), "two trials", pair)
    check("Schedule of ask 0" in pair and "Code of ask 3" in pair, "schedules and code of both", pair)
    check(visit(service, "/ui/trials?id=%s&op=small&a=0&b=99" % job)[0] == 404, "no such trial")
    kernel = service.ask("GET", "/v1/kernels")[1]["kernels"][0]
    check(kernel["job"] in (job, second) and kernel["owner"], "who asked for a kernel", kernel)
    path = "/ui/kernel?id=" + kernel["id"]
    check_page(path, *visit(service, path))
    page = visit(service, path)[1]
    check("At the device's peaks" in page.replace("&#39;", "'") and kernel["verified_by"] in page and kernel["job"] in page
          and "Code of" in page, "all of a kernel", page)
    check(re.search("device: (exact|vendor), kernel %s[.]" % kernel["id"], page), "its match", page)
    for wrong in ("", "k0", "k99", "x", "k18446744073709551615"):
        check(visit(service, "/ui/kernel?id=" + wrong)[0] == 404, "no such kernel", wrong)
    fine = service.ask("GET", "/v1/jobs/%s/trials?op=small&outcome=ok" % job)[1]
    check([t["index"] for t in fine["trials"]] == [t["index"] for t in every if t["index"] >= 0 and t["outcome"] == "ok"]
          and fine["next_page_token"] == "", "the asks with an outcome", fine, every)
    check(service.ask("GET", "/v1/jobs/%s/trials?outcome=none" % job)[1]["trials"] == [], "no such outcome")
    check("Those that ended with ok" in visit(service, "/ui/job?id=%s&outcome=ok" % job)[1], "a list of one outcome")
    check(visit(service, "/ui/trials?id=%s&op=small&a=x&b=0" % job)[0] in (400, 422), "no number")
    lookup = {"op": "Y[i] = X[i] + 1", "tensors": {"X": "f32[5]", "Y": "f32[5]"}, "device": HOSTILE, "calls": 3,
              "time_ns": 7000}
    service.ask("POST", "/v1/kernels:lookup", lookup)
    missing = wait_for("a lookup is counted", lambda: [
        page for page in [visit(service, "/ui/misses")[1]] if "Y[i] = X[i] + 1" in page], 10)[0]
    check("7.00" in missing and "&lt;script&gt;" in missing and "\u202e" not in missing, "by the time lost", missing)
    report = box.path("report.html")
    box.ctl("report", job, "-o", report, "--server", service.url)
    with open(report, encoding="utf-8") as file:
        text = file.read()
    check("<style>" in text and "<svg" in text and not re.search(r"\b(src|href)=", text) and "<script" not in text,
          "a report needs nothing else")
    box.ctl("report", job, "--server", service.url, want=2)
    box.ctl("report", "j0000000000000000", "-o", report, "--server", service.url, want=4)
    service.stop()


def put_gone_job(data, name):
    """As prune leaves one."""
    gone = {"id": "j00000000000000ff", "name": name, "owner": name, "state": "done", "finished": "2026-01-01T00:00:00Z",
            "pruned": "2026-02-01T00:00:00Z", "op_count": 17, "ops": [{"name": name, "best_ns": 1500}] * 16}
    with contextlib.closing(sqlite3.connect(os.path.join(data, "history.db"))) as store, store:
        store.execute("INSERT INTO gone_job (id, document) VALUES (?, ?)", (gone["id"], json.dumps(gone)))
    return gone["id"]


def test_pages_in_a_browser(box):
    """In light, dark and on a phone: no breach of the policy, nothing that axe-core finds, no hostile name that runs."""
    need("wpkd", "wpk-worker", "wpk-runner")
    with Browser() as browser:
        Service(box).stop()
        gone = put_gone_job(box.data, HOSTILE)
        service = Service(box)
        service.add_worker()
        job = done_job(box, service)
        status, text, _ = visit(service, "/ui/job?id=" + gone)
        check(status == 410 and "&lt;script&gt;alert(1)" in text and "\u202e" not in text and "1.500 µs" in text,
              "a job that was pruned", status, text)
        dashboard = box.start("wpkctl", "dashboard", "--server", service.url)
        url = wait_for("its URL", lambda: re.search(r"(http://127.0.0.1:\d+)(/ui/\?ticket=\w+)",
                                                    dashboard.text(dashboard.out)), 30)
        browser.open(url.group(1) + url.group(2))
        for path in PAGES + ("/ui/job?id=%s&by=source" % job, "/ui/compare?a=%s&b=%s" % (job, job),
                             "/ui/trials?id=%s&op=small&a=0&b=3" % job, "/ui/kernel?id=k1"):
            check_looks(browser, url.group(1) + path, path)
        box.ctl("report", job, "-o", box.path("report.html"), "--server", service.url)
        check_looks(browser, "file://" + box.path("report.html"), "a report")
        for path in ("/ui/job?id=" + gone, "/ui/job?id=j0000000000000000"):
            browser.open(url.group(1) + path)
            check(not browser.faults(), path, browser.faults())
        dashboard.popen.terminate()
        dashboard.wait(30)
        service.stop()


def test_a_page_that_has_not_changed_is_not_sent_again(box):
    need("wpkd")
    service = Service(box)
    for path in ("/ui/", "/ui/kernels", "/ui/style.css", "/ui/script.js"):
        status, text, headers = visit(service, path)
        check(status == 200 and text and headers["etag"], "%s has a name" % path, headers)
        status, text, _ = visit(service, path, If_None_Match=headers["etag"])
        check(status == 304 and not text, "not twice", status, text)
    service.stop()


def test_signing_in(box):
    """A pasted token becomes a cookie, which reads pages, nothing else, while its token is valid."""
    need("wpkd")
    port = free_port()
    service = Port(box, config={"http": {"listen": [{"address": "unix:" + box.path("http.sock")},
                                                    {"address": "127.0.0.1:%d" % port}]}})
    made = service.ask("POST", "/v1/tokens", {"owner": "ann", "roles": ["admin"]})[1]
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask(method, path, body=None, **headers):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.getheaders()}

    status, _, headers = ask("GET", "/ui/job?id=x")
    check(status == 303 and headers["location"] == "sign-in", "to the sign-in beside it", status, headers)
    status, text, headers = ask("GET", "/ui/sign-in")
    check_page("/ui/sign-in", status, text, headers)
    check(ask("GET", "/ui/style.css")[0] == 200, "its style")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, text, _ = ask("POST", "/ui/sign-in", "token=wrong", **form)
    check(status == 403 and "no such token" in text, "a wrong token", status, text)
    status, _, headers = ask("POST", "/ui/sign-in", "token=" + made["secret"], **form)
    cookie = headers.get("set-cookie", "")
    check(status == 303 and "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Max-Age=43200" in cookie
          and made["secret"] not in cookie and "Path" not in cookie, "a cookie", status, cookie)
    cookie = {"Cookie": "other=1; " + cookie.split(";")[0]}
    check(ask("GET", "/ui/sign-in?signed=1")[1].find("keeps no cookie") > 0, "a browser without cookies is told")
    check(ask("GET", "/ui/sign-in?signed=1", **cookie)[0] == 303, "one that has it goes on")
    for path in PAGES:
        check_page(path, *ask("GET", path, **cookie))
    check(ask("GET", "/v1/jobs", **cookie)[0] == 401, "not for the API")
    check(ask("POST", "/v1/jobs", "{}", **cookie)[0] == 401, "not for changes")
    check(ask("GET", "/ui/", Cookie="wpk=" + "0" * 64)[0] == 303, "not another one")
    service.ask("DELETE", "/v1/tokens/" + made["id"])
    check(ask("GET", "/ui/", **cookie)[0] == 303, "it dies with its token")
    connection.close()
    service.stop()


def test_the_dashboard(box):
    """A port of this machine, whose ticket is taken once."""
    need("wpkd")
    service = Service(box)
    dashboard = box.start("wpkctl", "dashboard", "--server", service.url)
    url = wait_for("its URL", lambda: re.search(r"http://127.0.0.1:(\d+)(/ui/\?ticket=\w+)",
                                                dashboard.text(dashboard.out)), 30)
    port, ticket = int(url.group(1)), url.group(2)

    def ask(path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        found = get(connection, path, **headers)
        connection.close()
        return found

    check(ask("/ui/")[0] == 403, "not without the ticket")
    check(ask(ticket, Host="evil.example")[0] == 403, "not by another name")
    status, _, headers = ask(ticket)
    cookie = {"Cookie": headers["set-cookie"].split(";")[0]}
    check(status == 303 and ask(ticket)[0] == 403, "the ticket is taken once")
    for path in PAGES:
        status, text, headers = ask(path, **cookie)
        check_page(path, status, text, headers)
    status, text, _ = ask("/ui/kernels", If_None_Match=ask("/ui/kernels", **cookie)[2]["etag"], **cookie)
    check(status == 304 and not text, "ETags pass")
    status, _, headers = ask("/v1/jobs", **cookie)
    check(status == 303, "pages only", status, headers)
    check(ask("/ui/plan", **cookie)[0] == 404, "no plan")
    box.ctl("dashboard", "--plan", box.write("no.wpk", "WPKPLAN?"), "--server", service.url, want=1)
    dashboard.popen.terminate()
    check(dashboard.wait(30)[0] == 0, "it ends when told to")
    service.stop()


if __name__ == "__main__":
    main(globals())

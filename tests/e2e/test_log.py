# SPDX-License-Identifier: Apache-2.0
"""A history in PostgreSQL's keeping: a second wpkd follows and takes over. WPK_LOG_FAULTS says how many faults befall
the pair (6), WPK_SEED which."""
import atexit
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import threading
import time

from lib import Service, check, main, need, small_job, wait_for
from postgres import Link, Server
from wire import DEVICE, VERSION, Peer, hello, poll, put_artifact

FAULTS = int(os.environ.get("WPK_LOG_FAULTS", 6))
OPERATOR = {"name": "product", "op": "Y[i,j] = sum(k:48) A[i,k] * B[k,j]",
            "tensors": {"A": "f32[35,48]", "B": "f32[48,96]", "Y": "f32[35,96]"}}
SCHEDULE = b"wpk-schedule 2\n"
SERVERS = []


def server():
    """The server of this module's tests: each has a database of its own."""
    need("wpkd")
    if not SERVERS:
        SERVERS.append(Server().start())
        atexit.register(SERVERS[0].close)
    return SERVERS[0]


class Site:
    """wpkds of one log, by name; each has a data directory."""

    def __init__(self, box, url):
        self.box, self.url, self.running = box, url, {}

    def data(self, name):
        return self.box.path("data-" + name)

    def workers(self, name):
        return self.box.path(name + ".workers")

    def start(self, name, *options, url=None):
        """Start it; it serves some time later, or never."""
        if not os.path.exists(self.data(name)):
            os.mkdir(self.data(name), 0o700)
            if "a" in self.running:
                shutil.copy(os.path.join(self.data("a"), "signing.key"), self.data(name))
        process = self.box.start("wpkd", "--data", self.data(name), "--http", "unix:" + self.box.path(name + ".sock"),
                                 "--listen", "ipc://" + self.workers(name), "--log", url or self.url, *options)
        self.running[name] = process
        return process

    def first(self, name="a", **more):
        self.start(name, **more)
        self.serves(name)

    def ask(self, name, *args):
        service = Service.__new__(Service)
        service.socket = self.box.path(name + ".sock")
        return service.ask(*args)

    def is_serving(self, name):
        try:
            return self.ask(name, "GET", "/readyz")[0] == 200
        except OSError:
            return False

    def serves(self, name, seconds=30):
        wait_for(name + " serves", lambda: self.is_serving(name), seconds)

    def said(self, name):
        process = self.running[name]
        return process.text(process.err)

    def stands_by(self, name):
        wait_for(name + " stands by", lambda: "holds the log" in self.said(name))

    def kill(self, name):
        self.running[name].popen.kill()
        self.running[name].popen.wait()

    def end(self, name, want=0):
        self.running[name].popen.terminate()
        code, _, err = self.running[name].wait(30)
        check(code == want, "%s ends with %s" % (name, want), code, err[-2000:])

    def submit(self, name, candidates):
        status, job, _ = self.ask(name, "POST", "/v1/jobs", small_job(
            ops=[OPERATOR], search={"strategy": "random", "seed": 5}, budget={"candidates": candidates, "seconds": 36000}))
        check(status == 201, "the job is taken", job)
        return job["id"]

    def rows(self, name, sql):
        with sqlite3.connect("file:%s?mode=ro" % os.path.join(self.data(name), "history.db"), uri=True, timeout=30) as db:
            return db.execute(sql).fetchall()


class Worker(threading.Thread):
    """A worker by hand, that goes to whichever wpkd serves, and remembers all that it was told."""

    def __init__(self, addresses):
        super().__init__(daemon=True)
        self.addresses = addresses
        self.asks = {}  # (search, number): candidate, as it was handed out
        self.done = {}  # of those whose result was acknowledged: the outcome
        self.times = {}  # by the artifact's hash
        self.stopping, self.fault, self.leased_at = False, None, 0.0

    def run(self):
        while not self.stopping and self.fault is None:
            for address in self.addresses:
                try:
                    self.work(address)
                except (OSError, ConnectionError):
                    pass
                except Exception as reason:  # a finding: the test's own thread says it
                    self.fault = reason
            time.sleep(0.05)

    def work(self, address):
        with Peer(address, seconds=2) as peer:
            peer.greet()
            answer = peer.ask(hello(device=dict(DEVICE, core_count=1)))[0]
            while not self.stopping and answer["type"] != "error":
                session = answer.get("session", "0")
                answer = peer.ask(poll(session, want=16, wait_ms=200))[0]
                for item in answer.get("work", []):
                    self.leased_at = time.monotonic()
                    self.do(peer, session, item)

    def do(self, peer, session, item):
        key = item["search"], item["index"]
        if item["kind"] != "trial":
            return
        check(self.asks.setdefault(key, item["candidate"]) == item["candidate"], "the ask is what it was", item,
              self.asks[key])
        result = {name: item[name] for name in ("search", "kind", "index", "attempt", "lease", "stage")}
        result["record"], data = make_record(item["candidate"])
        if data is not None:
            ns = result["record"]["timing"]["median_ns"]
            self.times[result["record"]["artifact"]["sha256"]] = ns
            if "anchor" in item:
                anchor_ns = self.times[item["anchor"]]
                result["record"].update(anchor=item["anchor"], anchor_ns=anchor_ns, anchor_ratio=ns / anchor_ns)
            put = put_artifact(session, item, data)
            answer = peer.ask(put, data)[0]
            if answer["type"] != "ack":
                return
        answer = peer.ask({"version": VERSION, "type": "results", "session": session, "results": [result]})[0]
        if answer["type"] == "ack":
            self.done[key] = result["record"]["outcome"]

    def stop(self):
        self.stopping = True
        self.join()
        if self.fault is not None:
            raise self.fault


def make_record(candidate):
    """One of eight is built: its record, and its bytes; the others cannot be."""
    number = int.from_bytes(hashlib.sha256(candidate.encode()).digest()[:4], "little")
    record = {"outcome": "build_error", "log": "no", "anchor_ns": 0, "build_ns": 1, "verify_ns": 1, "measure_ns": 1,
              "constants_bytes": 0, "error": {"max": 0, "tolerance": 1, "ratio": 0, "of_rms": 0, "times_direct": 1}}
    if number % 8 != 0:
        return record, None
    data = b"built from %s" % candidate.encode()
    ns = 100000 + number % 400000
    del record["log"]
    record.update(outcome="ok", schedule=SCHEDULE.decode(), schedule_sha256=hashlib.sha256(SCHEDULE).hexdigest(),
                  artifact={"sha256": hashlib.sha256(data).hexdigest()},
                  timing={"median_ns": ns, "min_ns": ns, "mad_ns": 1, "repeat_count": 1, "censored": False,
                          "sample_ns": [ns] * 3})
    return record, data


def check_history(site, name, worker):
    """Every acknowledged result is there, once, and so is its artifact; every ask is what was handed out."""
    asks = {(search, number): (candidate, ended, outcome, measured, artifact) for
            search, number, candidate, ended, outcome, measured, artifact in site.rows(
                name, "SELECT a.search_id, a.number, t.candidate, a.ended, t.outcome, (SELECT count(*) FROM measurement m"
                " WHERE m.trial_id = t.id), t.artifact_sha256 FROM ask a JOIN trial t ON t.id = a.trial_id")}
    for key, candidate in worker.asks.items():
        where = int(key[0]), key[1]
        check(where in asks and asks[where][0] == candidate, "the ask is in the history", key, asks.get(where))
    lost = [key for key, outcome in worker.done.items() if asks[int(key[0]), key[1]][1:3] != (1, outcome)]
    check(not lost, "acknowledged results are in the history", [(key, asks[int(key[0]), key[1]]) for key in lost[:3]])
    doubled = [key for key, ask in asks.items() if ask[3] > (ask[2] == "ok")]
    check(not doubled, "no result is there twice", doubled[:5])
    absent = [ask[4] for ask in asks.values() if ask[4] != "" and not os.path.exists(
        os.path.join(site.data(name), "artifacts", ask[4][:2], ask[4] + ".so"))]
    check(not absent, "their artifacts are there", absent[:5])


def test_takeover(box):
    """kill -9 of the holder, and SIGTERM of the next one."""
    site = Site(box, server().database("takeover"))
    site.first()
    site.submit("a", 100000)
    worker = Worker([site.workers("a"), site.workers("b")])
    worker.start()
    site.start("b", "--standby")
    site.stands_by("b")
    wait_for("results", lambda: len(worker.done) > 50 and "ok" in worker.done.values())
    site.kill("a")
    killed = time.monotonic()
    site.serves("b")
    wait_for("the other one leases", lambda: worker.leased_at > killed)
    print("killed: %.1f s until a lease" % (worker.leased_at - killed))
    site.start("a", "--standby")
    site.stands_by("a")
    ended = time.monotonic()
    site.end("b")
    wait_for("the first one leases again", lambda: worker.leased_at > ended + 0.1 and site.is_serving("a"))
    print("handed over: %.1f s until a lease" % (worker.leased_at - ended))
    check(worker.leased_at - ended < 5, "a holder that ends hands over at once")
    worker.stop()
    site.end("a")
    check_history(site, "a", worker)
    # wpkd alone must not change what the log would not get.
    code, _, err = box.run("wpkd", "--data", site.data("a"), "--http", "unix:" + box.path("c.sock"))
    check(code == 3 and "has a log in PostgreSQL" in err, "without --log it is refused", code, err)
    code, _, err = box.run("wpkd", "--db", "prune", "--data", site.data("a"))
    check(code != 0 and "has a log in PostgreSQL" in err, "no tool changes it", code, err)


def test_refusals(box):
    """A standby that cannot follow ends at once, with code 3 and the reason."""
    here = server()
    url = here.database("refusals")
    site = Site(box, url)
    site.first()
    site.submit("a", 10)

    def refused(name, says, *options, code=3):
        found, _, err = site.start(name, *options).wait(30)
        check(found == code and says in err, "%s is refused: %s" % (name, says), found, err)

    refused("b", "process %d" % site.running["a"].popen.pid, code=1)  # no standby, and the holder is alive
    os.mkdir(site.data("key"), 0o700)
    shutil.copy(os.path.join(site.data("a"), "signing.key"), box.path("key"))
    refused("key", "has no signing.key", "--standby", code=2)
    with open(os.path.join(site.data("key"), "signing.key"), "w", encoding="ascii") as file:
        with open(box.path("key"), encoding="ascii") as good:
            text = good.read().strip()
        file.write(text[:-1] + ("0" if text[-1] != "0" else "1") + "\n")
    os.chmod(os.path.join(site.data("key"), "signing.key"), 0o600)
    refused("key", "signing.key here is not that of the log", "--standby")
    here.ask("UPDATE wpk_site SET version = version + 1", url)
    refused("c", "all machines need the same wpkd", "--standby")
    here.ask("UPDATE wpk_site SET version = version - 1", url)
    site.end("a")
    last = here.ask("SELECT max(number) FROM wpk_entry", url)[0][0]
    here.ask("DELETE FROM wpk_entry WHERE number = " + last, url)
    refused("a", "the log ends at entry %d, and the history here has entry %s" % (int(last) - 1, last))
    here.ask("INSERT INTO wpk_entry VALUES (%s, 5, '')" % last, url)
    refused("a", "entry %s of the log is not the one that the history here has" % last)
    other = Site(box, here.database("refusals_other"))
    other.running["a"] = site.running["a"]  # whose key it shares
    other.start("new", "--standby")
    wait_for("a new log is waited for", lambda: "the log is new" in other.said("new"))
    other.end("new")
    code, _, err = other.start("a").wait(30)
    check(code == 3 and "the log is empty, and the history here has entry" in err, "a log that was lost", code, err)
    code, _, err = box.run("wpkd", "--standby", "--data", box.path("d"))
    check(code == 2 and "--standby needs --log" in err, "a standby of nothing", code, err)


def test_bases(box):
    """The log keeps what follows a base; a machine without a history begins with one, and one that is too far behind."""
    here = server()
    url = here.database("bases")
    here.ask("ALTER DATABASE bases SET wpk.base_bytes = 20000")
    site = Site(box, url)
    Service(box, data=site.data("a")).stop()  # a history of before, with a key
    site.first()
    site.submit("a", 100000)
    worker = Worker([site.workers("a"), site.workers("b")])
    worker.start()
    site.start("b", "--standby")
    site.stands_by("b")
    site.end("b")

    def first_entry():
        return int(here.ask("SELECT coalesce(min(number), 0) FROM wpk_entry", url)[0][0])

    behind = site.rows("b", "SELECT log_number FROM installation")[0][0]
    wait_for("older entries go", lambda: first_entry() > behind + 1)
    site.start("b", "--standby")
    site.start("c", "--standby")
    for name in ("b", "c"):
        site.stands_by(name)
        check("base_wanted" in site.said(name), name + " begins with a base", site.said(name))
    site.kill("a")
    wait_for("another one serves", lambda: site.is_serving("b") or site.is_serving("c"))
    holder, other = ("b", "c") if site.is_serving("b") else ("c", "b")
    worker.stop()
    site.end(other)
    site.end(holder)
    check_history(site, holder, worker)
    check(len(here.ask("SELECT 1 FROM pg_largeobject_metadata", url)) == 1, "an old base goes")
    # A backup has no log, so it can be started alone, or begin another one.
    box.run("wpkd", "--db", "backup", "--data", site.data(holder), box.path("backup"))
    shutil.rmtree(site.data(holder))
    os.rename(box.path("backup"), site.data(holder))
    site.url = here.database("bases_again")
    site.first(holder)
    check_history(site, holder, worker)
    site.end(holder)


def test_postgres_away(box):
    """As a full disk: nothing is acknowledged, reads go on, and so does everything else when it is back."""
    away = Server().start()
    try:
        site = Site(box, away.url)
        site.first()
        job = site.submit("a", 100000)
        worker = Worker([site.workers("a"), site.workers("b")])
        worker.start()
        site.start("b", "--standby")
        site.stands_by("b")
        wait_for("results", lambda: len(worker.done) > 20)
        away.stop()
        wait_for("it is not ready", lambda: not site.is_serving("a"))
        count = len(worker.done)
        check(site.ask("a", "GET", "/v1/jobs/" + job)[0] == 200, "reads go on")
        status, answer, _ = site.ask(
            "a", "POST", "/v1/jobs/%s:pause" % job)
        check(status == 507, "changes are refused", status, answer)
        check(len(worker.done) == count, "nothing is acknowledged")
        away.start()
        wait_for("results again", lambda: len(worker.done) > count + 20)
        # A commit that was under way and has come to be is in doubt: the holder ends, and the standby goes on.
        goes_on = site.running["a"].popen.poll() is None
        check(goes_on or "in doubt" in site.said("a"), "why the holder has ended", site.said("a"))
        check(site.is_serving("b") != goes_on, "the holder goes on, not the standby", site.said("b"))
        worker.stop()
        for name in ("b", "a") if goes_on else ("b",):
            site.end(name)
        check_history(site, "a" if goes_on else "b", worker)
    finally:
        away.close()


class Pair(Site):
    """Two wpkds, a server with a synchronous standby, and what can befall them. Each fault says how long it took until
    the next lease by the other one, if the holder changes; after it all is whole again."""

    def __init__(self, box):
        self.main = Server(synchronous="other").start()
        super().__init__(box, self.main.url)
        self.other = Server("other", of=self.main).start()
        self.links = {name: Link(self.main) for name in "ab"}
        self.first("a", url=self.links["a"].url)
        self.holder = "a"
        self.join("b")
        self.worker = Worker([self.workers(name) for name in "ab"])
        self.job = self.submit("a", 1000000)
        self.worker.start()

    def close(self):
        for end in (self.other, self.main, *self.links.values()):
            end.close()

    def standby(self):
        return "ab".replace(self.holder, "")

    def join(self, name):
        self.start(name, "--standby", url=self.links[name].url)
        self.stands_by(name)

    def taken_over(self, began):
        """The standby leases: the seconds that it took."""
        self.serves(self.standby())
        self.holder = self.standby()
        now = time.monotonic()
        wait_for("a lease", lambda: self.worker.leased_at > now)
        return self.worker.leased_at - began

    def deposed(self, name):
        code, _, err = self.running[name].wait(30)
        check(code == 1 and "another wpkd has taken the log over" in err, "it has to end", code, err[-2000:])
        self.join(name)

    def fault_kill(self, began):
        """kill -9 of the holder"""
        name = self.holder
        self.kill(name)
        taken = self.taken_over(began)
        self.join(name)
        return taken

    def fault_stop(self, began):
        """SIGSTOP of the holder, and SIGCONT when the other one serves"""
        name = self.holder
        self.running[name].popen.send_signal(signal.SIGSTOP)
        taken = self.taken_over(began)
        self.running[name].popen.send_signal(signal.SIGCONT)
        self.deposed(name)
        return taken

    def fault_link(self, began):
        """the holder's link to PostgreSQL down, and up when the other one serves"""
        name = self.holder
        self.links[name].down()
        taken = self.taken_over(began)
        self.links[name].up()
        self.deposed(name)
        return taken

    def fault_pause(self, _):
        """SIGSTOP and SIGCONT before anybody takes over"""
        self.running[self.holder].popen.send_signal(signal.SIGSTOP)
        time.sleep(1)
        self.running[self.holder].popen.send_signal(signal.SIGCONT)

    def fault_cut(self, _):
        """the holder's connections cut, maybe while it commits: it may have to start anew"""
        name = self.holder
        self.links[name].cut()
        wait_for("it is noticed", lambda: "store_failed" in self.said(name), 10)
        wait_for("it goes on", lambda: self.running[name].note() is not None or "store_resumed" in self.said(name))
        if self.running[name].note() is not None:
            check("in doubt" in self.said(name), "it ends for a reason", self.said(name)[-2000:])
            self.taken_over(0)
            self.join(name)

    def fault_standby(self, _):
        """kill -9 of the wpkd that stands by"""
        name = self.standby()
        self.kill(name)
        self.join(name)

    def fault_promotion(self, _):
        """the server killed, and its standby promoted"""
        self.main.stop(signal.SIGKILL if random.random() < 0.5 else signal.SIGQUIT)
        self.main.close()
        self.main = self.other
        self.main.promote()
        for link in self.links.values():
            link.server = self.main
            link.cut()
        self.other = Server("other", of=self.main).start()
        self.main.set("synchronous_standby_names = 'other'\n")
        self.main.ask("SELECT pg_reload_conf()")
        name = self.holder
        wait_for("the holder goes on", lambda: self.is_serving(name) or self.running[name].note() is not None)
        if not self.is_serving(name):
            self.taken_over(0)
            self.join(name)

    def fault_handover(self, began):
        """SIGTERM of the holder"""
        name = self.holder
        self.running[name].popen.terminate()
        taken = self.taken_over(began)
        self.running[name].wait(30)
        self.join(name)
        return taken

    def befall(self, kind):
        before = len(self.worker.done)
        self.running[self.holder].err.truncate(0)  # an earlier fault may have brought about the same words
        check(self.running[self.holder].note() is None, "the holder lives", self.holder)
        taken = getattr(self, "fault_" + kind)(time.monotonic())
        wait_for("results after " + kind, lambda: self.worker.fault or len(self.worker.done) > before + 10)
        check(self.worker.fault is None, "the worker finds", self.worker.fault)
        return taken


def test_faults(box):
    """Acknowledged results are neither lost nor doubled, and asks do not change."""
    need("wpkd")
    kinds = [name[len("fault_"):] for name in dir(Pair) if name.startswith("fault_")]
    seed = int(os.environ.get("WPK_SEED", 1))
    draw = random.Random(seed)
    random.seed(seed)
    pair = Pair(box)
    times = {}
    try:
        chosen = ["kill", "stop", "link", "cut", "promotion", "handover"]
        chosen += draw.choices(kinds, k=max(FAULTS - len(chosen), 0))
        for kind in chosen:
            taken = pair.befall(kind)
            times.setdefault(kind, []).append(taken or 0)
            if FAULTS > 6:
                print("%s %.1f s, %d results" % (kind, taken or 0, len(pair.worker.done)), flush=True)
        pair.worker.stop()
        pair.end(pair.holder)
        pair.serves(pair.standby())
        last = pair.standby()
        pair.end(last)
        check_history(pair, last, pair.worker)
    finally:
        pair.close()
    print("%d faults, %d results acknowledged, lost 0, doubled 0, asks changed 0" % (len(chosen), len(pair.worker.done)))
    for kind, taken in times.items():
        print("  %s: %d, until a lease at most %.1f s" % (kind, len(taken), max(taken)))


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""An administrator's commands for a whole history: check, back up, restore, prune, move it elsewhere."""
import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess

from lib import BIN, Service, Skip, UnixConnection, check, main, need, small_job
from wire import Peer, hello, take_items

# One tuning serves all tests: each works on a copy.
TUNED = []


def tuned(box):
    """A data directory with a finished job, nobody at work on it."""
    need("wpk-builder")
    if not TUNED:
        job = box.write("job.json", small_job())
        box.ctl("tune", job, "--data", box.data, "--quiet")
        shutil.rmtree(os.path.join(box.data, "log"), ignore_errors=True)
        TUNED.append({})
        for folder, _, names in os.walk(box.data):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        TUNED[0][os.path.relpath(path, box.data)] = (file.read(),
                                                                     os.stat(path).st_mode & 0o777)
    data = box.path("history")
    shutil.rmtree(data, ignore_errors=True)
    for name, (content, mode) in TUNED[0].items():
        path = os.path.join(data, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
    return data


def db(box, command, data, *more, want=0):
    """`wpkd --db`: its report, or what it said on standard error when it failed."""
    code, out, err = box.run("wpkd", "--db", command, "--data", data, "--json", *more)
    check(code == want, "wpkd --db %s ended with %s, not %s" % (command, code, want), out, err)
    return json.loads(out) if out.strip() else err


def rows(data, query):
    with sqlite3.connect("file:%s?mode=ro" % os.path.join(data, "history.db"), uri=True) as database:
        return database.execute(query).fetchall()


def execute(data, sql, *values):
    with contextlib.closing(sqlite3.connect(os.path.join(data, "history.db"))) as store, store:
        store.execute(sql, values)


def summary(data):
    """The contents of a history, without anything that belongs to one installation alone."""
    return {
        "trials": rows(data, "SELECT p.fingerprint, t.provider, t.candidate, t.outcome,"
                             " t.artifact_sha256 FROM trial t JOIN problem p ON p.id = t.problem_id"
                             " WHERE t.outcome NOT IN ('', 'abandoned') ORDER BY 1, 2, 3"),
        "times": rows(data, "SELECT t.provider, t.candidate, m.kind, m.median_ns, m.worker FROM"
                            " measurement m JOIN trial t ON t.id = m.trial_id ORDER BY 1, 2, m.number"),
        "kernels": rows(data, "SELECT provider, artifact_sha256, median_ns, document, manifest,"
                              " served FROM kernel WHERE served = 1 ORDER BY document"),
    }


def artifacts(data):
    return sorted(name for _, _, names in os.walk(os.path.join(data, "artifacts")) for name in names)


def test_check_finds_nothing_and_damage(box):
    data = tuned(box)
    report = db(box, "check", data)
    check(report["found_count"] == 0 and report["trials"] > 4 and report["artifacts"] > 0, "whole",
          report)
    names = artifacts(data)
    folder = os.path.join(data, "artifacts")
    with open(os.path.join(folder, names[0][:2], names[0]), "r+b") as file:
        file.seek(100)
        byte = file.read(1)
        file.seek(100)
        file.write(bytes([byte[0] ^ 4]))
    os.unlink(os.path.join(folder, names[1][:2], names[1]))
    with sqlite3.connect(os.path.join(data, "history.db")) as database:
        database.execute("UPDATE job_op SET job_number = 4711")
    report = db(box, "check", data, want=1)
    found = "\n".join(report["found"])
    check(names[0][:64] + ": the file is damaged" in found, "damage", found)
    check(names[1][:64] + ": the file is missing" in found, "loss", found)
    check("job_op" in found and report["found_count"] == 3, "a broken reference", found)
    check("findings" in box.run("wpkd", "--db", "check", "--data", data)[2], "said in words")
    db(box, "check", box.path("nowhere"), want=4)


def test_commands_work_on_files(box):
    """On those of the home directory, where no others are named; not on the wpkd of $WPK_URL."""
    data = tuned(box)
    home = box.path(".local/share/woodpecker")
    os.makedirs(os.path.dirname(home))
    os.rename(data, home)
    box.env["WPK_URL"] = "unix:" + box.path("nobody.sock")
    for words in (["db", "check"], ["db", "backup", box.path("backup")], ["export", box.path("moved")],
                  ["db", "prune", "--dry-run"]):
        box.ctl(*words)
    check(summary(box.path("backup")) == summary(home), "that one")


def test_backup_beside_a_running_wpkd_and_restore(box):
    data = tuned(box)
    backup = box.path("backup")
    service = Service(box, data)
    token = service.ask("POST", "/v1/tokens", {"owner": "ann", "roles": ["read"]})[1]["secret"]
    job = service.ask("POST", "/v1/jobs", small_job(name="unfinished", budget={"candidates": 50, "seconds": 86400}))[1]
    report = db(box, "backup", data, backup)
    check(report["artifacts"] == len(artifacts(data)), "all of them", report)
    check(os.stat(backup).st_mode & 0o077 == 0, "for its owner only: the key is in it")
    db(box, "backup", data, backup, want=2)
    check("another wpkd (pid %d) works on %s: stop it first" % (service.wpkd.popen.pid, data)
          in db(box, "restore", data, backup, want=3),
          "not under a wpkd at work")
    check("stop it first" in db(box, "prune", data, want=3), "nor is anything deleted there")
    service.stop()
    check(db(box, "check", backup)["found_count"] == 0, "whole")
    check(summary(backup) == summary(data), "the same")

    # Into a place where nothing is, and over a history that is there.
    fresh = box.path("fresh")
    db(box, "restore", fresh, backup)
    check(summary(fresh) == summary(data) and artifacts(fresh) == artifacts(data), "restored")
    key, copy = (os.path.join(folder, "signing.key") for folder in (data, fresh))
    if os.path.exists(key):
        with open(key, "rb") as ours, open(copy, "rb") as theirs:
            check(ours.read() == theirs.read(), "the same key signs")
        check(os.stat(copy).st_mode & 0o777 == 0o600, "and is secret")
    with sqlite3.connect(os.path.join(fresh, "history.db")) as database:
        database.execute("DELETE FROM measurement")
    report = db(box, "restore", fresh, backup)
    check(os.path.isfile(os.path.join(fresh, report["set_aside"])), "what was there is kept", report)
    check(summary(fresh) == summary(data), "restored over another")
    again = Service(box, fresh)
    kernels = again.ask("GET", "/v1/kernels")[1]["kernels"]
    check(len(kernels) == len(summary(data)["kernels"]) > 0, "and served", kernels)
    reader = UnixConnection(again.socket)
    reader.request("GET", "/v1/jobs", headers={"Authorization": "Bearer " + token})
    jobs = json.loads(reader.getresponse().read())["jobs"]
    check(["unfinished"] == [one["name"] for one in jobs if one["id"] == job["id"]], "with its tokens and jobs", jobs)
    with Peer(box.path("workers.sock")) as worker:
        worker.greet()
        session = worker.ask(hello())[0]["session"]
        check(take_items(worker, session, 1), "which go on")
    again.stop()


def test_root_leaves_a_service_its_files(box):
    if os.geteuid() != 0:
        raise Skip("only root can give files away")
    data, nobody = tuned(box), 65534
    backup, service = box.path("backup"), box.path("service")
    db(box, "backup", data, backup)
    os.mkdir(box.path("private"), 0o700)
    os.chown(box.path("private"), nobody, nobody)
    os.symlink(box.path("private"), service)  # as systemd has it for a dynamic user
    db(box, "restore", service, backup)
    db(box, "prune", service, "--older-than", "0", "--keep", "1")
    for folder, folders, names in os.walk(box.path("private")):
        for name in folders + names:
            path = os.path.join(folder, name)
            check(os.stat(path).st_uid == nobody, "is the service's: " + path)
    check(all(os.stat(os.path.join(backup, name)).st_uid == 0 for name in os.listdir(backup)), "ours")
    # A service that is not to be trusted gets nothing by links: not what it names, nor what it hides.
    secret = box.write("secret", "root's own")
    os.link(secret, os.path.join(service, "artifacts", "mine"))
    lock = os.path.join(service, "wpkd.lock")
    for command, more in (("restore", [backup]), ("prune", []), ("import", [box.path("nothing")])):
        db(box, command, service, *more, want=2 if command == "import" else 0)
        check(os.stat(secret).st_uid == 0, "given away by " + command)
    for command, more in (("restore", [backup]), ("prune", [])):
        os.unlink(lock)
        os.symlink(secret, lock)
        check("wpkd.lock" in db(box, command, service, *more, want=2), "no link is followed")
        with open(secret, encoding="ascii") as file:
            check(file.read() == "root's own", "written over by " + command)


def test_a_damaged_backup_is_not_restored(box):
    data = tuned(box)
    backup = box.path("backup")
    db(box, "backup", data, backup)
    names = artifacts(backup)
    os.unlink(os.path.join(backup, "artifacts", names[0][:2], names[0]))
    before = summary(data)
    check("not whole" in db(box, "restore", data, backup, want=1), "refused")
    db(box, "restore", data, box.path("nowhere"), want=2)
    check(summary(data) == before, "nothing was changed")


def test_history_moves_to_another_installation(box):
    data = tuned(box)
    file = box.path("history.wpk")
    service = Service(box, data)
    report = db(box, "export", data, file)
    check("stop it first" in db(box, "import", data, file, want=3), "import needs it stopped")
    service.stop()
    execute(data, "UPDATE kernel SET median_ns = 1 WHERE provider = 'plain'")  # served last, however fast
    db(box, "export", data, file)
    check(report["trials"] == len(summary(data)["trials"]) and report["kernels"] > 0, "all", report)

    other = box.path("other")
    first = db(box, "import", other, file)
    check(first["new_trials"] == report["trials"] and first["new_kernels"] == report["kernels"],
          "all of it is new", first)
    check(rows(data, "SELECT COUNT(*) FROM kernel WHERE served = 1") == [(first["newly_served"],)], "as it was", first)
    plain = "SELECT provider, plain_sha256 FROM kernel WHERE served = 1 OR provider = 'plain' ORDER BY 1"
    check(rows(other, plain) == rows(data, plain), "with its plain kernel", rows(other, plain), rows(data, plain))
    check(summary(other) == summary(data), "the same history")
    check(artifacts(other) == artifacts(data), "and the same artifacts")
    check(db(box, "check", other)["found_count"] == 0, "whole, and signed with its own key")
    second = db(box, "import", other, file)
    check(not any(second[key] for key in second if key.startswith("new")), "twice changes nothing", second)
    check(summary(other) == summary(data), "not at all")

    # A kernel that was revoked in the history is not brought back by a file that has it too.
    third = box.path("third")
    db(box, "import", third, file)
    execute(third, "UPDATE kernel SET served = 0, revoked_at = 1, created_at = 1")
    again = db(box, "import", third, file)
    check(again["new_kernels"] == 0 and again["newly_served"] == 0, "revoked", again)

    # One that is faster is served after the one there was, whatever the clock says of that one.
    fourth = box.path("fourth")
    db(box, "import", fourth, file)
    execute(fourth, "UPDATE kernel SET served_at = served_at + 3600000000000, median_ns = median_ns * 2,"
                    " created_at = 1")
    faster = db(box, "import", fourth, file)
    check(faster["newly_served"] > 0, "the faster one is served", faster)
    late = rows(fourth, "SELECT count(*) FROM kernel k JOIN kernel b ON b.problem_id = k.problem_id"
                        " WHERE k.served = 1 AND b.served = 0 AND b.served_at >= k.served_at")
    check(late == [(0,)], "and a rollback finds the other before it", late)

    # A trial that came to nothing here is filled in; what it has of measurements comes first, and of a
    # file that says something twice the first counts.
    fifth = box.path("fifth")
    db(box, "import", fifth, file)
    lost = "SELECT id FROM trial WHERE outcome = 'ok' AND id IN (SELECT trial_id FROM measurement) LIMIT 1"
    (trial,), = rows(fifth, lost)
    numbers = "SELECT number FROM measurement WHERE trial_id = %d ORDER BY number" % trial
    count = len(rows(fifth, numbers))
    execute(fifth, "UPDATE trial SET outcome = 'abandoned', log = 'three attempts' WHERE id = ?", trial)
    with open(file, "rb") as stream:
        twice = box.write("twice.wpk", said_twice(box, stream.read()))
    filled = db(box, "import", fifth, twice)
    check(filled["new_trials"] == 1 and filled["new_kernels"] == 0, "one trial", filled)
    check(rows(fifth, "SELECT outcome FROM trial WHERE id = %d" % trial) == [("ok",)], "has its result")
    check(rows(fifth, numbers) == [(n,) for n in range(2 * count)], "behind what was measured before")
    sixth = box.path("sixth")
    check(db(box, "import", sixth, twice) == first, "what is said twice counts once")
    check(db(box, "check", sixth)["found_count"] == 0, "and is whole")

    # Imported measurements are not repeated, except lower bounds: the job is answered from them,
    # with a worker to say what device there is.
    box.ctl("tune", box.write("job.json", small_job()), "--data", other, "--quiet")
    measured = ("SELECT candidate, COUNT(*) FROM measurement m JOIN trial t ON t.id = m.trial_id"
                " WHERE kind = 'trial' GROUP BY candidate HAVING SUM(censored) = 0 ORDER BY 1")
    once = rows(data, measured)
    again = rows(other, measured)
    check(once and set(once) <= set(again), "nothing was measured again", set(once) - set(again))

    # And back: measurements made here stay as they are.
    back = box.path("back.wpk")
    db(box, "export", other, back)
    before = summary(data)["times"]
    db(box, "import", data, back)
    check(summary(data)["times"] == before, "ours is not changed")


SEAL_SIZE = len("wpk-export ") + 64 + 1


def resealed(box, content, *statements):
    """An export with rows changed, as whoever made it would have sealed it."""
    path = box.write("changed.db", content[:-SEAL_SIZE])
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
    with open(path, "rb") as stream:
        content = stream.read()
    return content + b"wpk-export %s\n" % hashlib.sha256(content).hexdigest().encode()


def said_twice(box, content):
    """An export in which each kernel stands again behind itself."""
    again = ["CREATE TEMP TABLE more AS SELECT * FROM kernel", "UPDATE more SET id = NULL, served = 0",
             "INSERT INTO kernel SELECT * FROM more"]
    return resealed(box, content, *again)


def test_a_changed_file_is_not_imported(box):
    data = tuned(box)
    file = box.path("history.wpk")
    db(box, "export", data, file)
    with open(file, "rb") as stream:
        content = stream.read()
    other = box.path("other")
    changed = bytearray(content)
    changed[content.index(b"sum.f32(")] ^= 1
    wrong = [
        (bytes(changed), "changed on its way; export it again"),
        (content[:len(content) // 2], "; export it again"),
        (content[:-SEAL_SIZE], "cut off"),
        (content + b"more", "follows"),
        (resealed(box, content, "PRAGMA user_version = 99"), "export it with the same wpkctl"),
        (b"", "no export of Woodpecker; wpkctl export"),
        (b"{}\n", "no export of Woodpecker"),
        (b'{"wpk_export":5,"program":"0.1.0"}\n{"end":{}}\n', "one of an older wpkd"),
        (b"\x7fELF\n", "no export of Woodpecker; wpkctl export"),
        (b"# a text of several\nlines\n", "no export of Woodpecker; wpkctl export"),
        (resealed(box, content, "UPDATE problem SET op = replace(op, 'sum.f32(', 'max(')"), "fingerprint"),
        (resealed(box, content, "UPDATE kernel SET document = '{\"provider\":'"), "document"),
        (resealed(box, content, "UPDATE trial SET outcome = 'splendid'"), "outcome"),
        (resealed(box, content, "UPDATE trial SET candidate = 'a=1'||id"), "candidate_hash"),
        (resealed(box, content, "UPDATE measurement SET kind = 'guess'"), "kind"),
        (resealed(box, content, "CREATE TRIGGER mine AFTER INSERT ON trial BEGIN SELECT 1; END"), "damaged"),
        (resealed(box, content, "DROP TABLE hint", "CREATE VIEW hint AS SELECT 1"), "damaged"),
        (resealed(box, content, "UPDATE artifact_bytes SET bytes = x'00'"), "sha256"),
    ]
    for bad, word in wrong:
        code, _, err = box.run("wpkd", "--db", "import", "--data", other, box.write("bad.wpk", bad))
        check(code in (1, 2) and word in err, "refused: " + word, code, err)
        there = os.path.exists(os.path.join(other, "history.db"))
        check(not there or not rows(other, "SELECT id FROM problem UNION SELECT id FROM trial"),
              "and nothing of it is there", word)
    # Standard output and input.
    subprocess.run("wpkd --db export --data '%s' - | wpkd --db import --data '%s' -" % (data, other), shell=True,
                   env=dict(os.environ, PATH=BIN + ":" + os.environ["PATH"]), check=True)
    check(summary(other) == summary(data), "the same history")


def test_prune_forgets_what_is_old_but_for_the_best(box):
    data = tuned(box)
    keep = 3
    before = summary(data)
    count = len(artifacts(data))
    dry = db(box, "prune", data, "--older-than", "0", "--keep", keep, "--dry-run")
    check(summary(data) == before, "a dry run changes nothing")
    check(dry.pop("dry_run") is True, "and says that it was one", dry)
    words = box.ctl("db", "prune", "--data", data, "--older-than", "0", "--dry-run")
    check(words.startswith("dry run: nothing was removed"), "in words too", words)
    old = db(box, "prune", data, "--older-than", "30", "--keep", keep)
    check(summary(data) == before and not any(old[key] for key in old if key != "found"),
          "what is young stays", old)
    # Without a word on it, what is older than 90 days goes.
    for days, trials in ((89, 0), (2, dry["trials"])):
        for table, column in (("trial", "recorded_at"), ("search", "created_at"), ("job", "finished_at")):
            execute(data, "UPDATE %s SET %s = %s - ?" % (table, column, column), days * 24 * 3600 * 10**9)
        found = db(box, "prune", data, "--keep", keep, "--dry-run")
        check(found["trials"] == trials, "%d more days" % days, found)
    gone = dict(zip(("id", "name", "owner", "state"), rows(data, "SELECT id, name, owner, state FROM job")[0]))
    report = db(box, "prune", data, "--older-than", "0", "--keep", keep)
    check(report.pop("dry_run") is False, "this was none", report)
    check({**report, "found": 0} == {**dry, "found": 0}, "as the dry run said", dry, report)
    after = summary(data)
    check(after["kernels"] == before["kernels"], "what is served is still served")
    check(0 < len(after["trials"]) < len(before["trials"]) and report["trials"] > 0, "trials went", report)
    check(set(after["trials"]) <= set(before["trials"]), "others did not come")
    fastest = rows(data, "SELECT COUNT(*) FROM trial WHERE outcome = 'ok'")[0][0]
    check(keep <= fastest <= 2 * keep, "the best stay", fastest)
    check(report["artifacts"] > 0 and len(artifacts(data)) == count - report["artifacts"],
          "files went with their rows", report)
    check(rows(data, "SELECT artifact_bytes FROM installation") ==
          rows(data, "SELECT sum(size) FROM artifact"), "the quota counts what is left")
    check(db(box, "check", data)["found_count"] == 0, "whole")
    # A row of the job is left, by which it is known that it was.
    job = gone.pop("id")
    service = Service(box, data)
    status, problem = service.ask("GET", "/v1/jobs/" + job)[:2]
    check(status == 410 and {**gone, **problem["gone"]} == problem["gone"] and problem["gone"]["id"] == job, "410",
          problem, gone)
    check(problem["gone"]["ops"][0]["name"] == "small" and problem["gone"]["ops"][0]["best_ns"] > 0
          and problem["gone"]["op_count"] == 1 and problem["gone"]["pruned"] > problem["gone"]["finished"][:10],
          "its operators", problem)
    code, _, err = box.run("wpkctl", "status", job, "--server", service.url)
    check(code == 4 and "was pruned at" in err, "in words", code, err)
    check(service.ask("GET", "/v1/jobs/%s/trials" % job)[0] == 410, "and its trials")
    check(service.ask("POST", "/v1/jobs/%s:cancel" % job)[0] == 410, "nor is it cancelled")
    check(service.ask("GET", "/v1/jobs/j0000000000000000")[0] == 404, "one that never was")
    status, page = service.ask("GET", "/ui/job?id=" + job)[:2]
    check(status == 410 and b"small" in page and gone["owner"].encode() in page, "its page", status, page)
    service.stop()
    # And it goes on from there.
    box.ctl("tune", box.write("job.json", small_job()), "--data", data, "--quiet")
    check(len(summary(data)["trials"]) >= len(before["trials"]), "forgotten ones are tried again")
    check(db(box, "check", data)["found_count"] == 0, "whole")


def test_prune_leaves_nothing_that_only_grows(box):
    """References to an artifact are counted again, files that no row names go, and so do tokens that were good
    once and owners of nothing."""
    data = tuned(box)
    execute(data, "UPDATE artifact SET kept = 2")
    stray = os.path.join(data, "artifacts", "ab", "ab" * 32 + ".so")
    os.makedirs(os.path.dirname(stray), exist_ok=True)
    with open(stray, "wb") as file:
        file.write(b"no row names me")
    for name, expires, revoked in (("good", 0, 0), ("expired", 1, 0), ("revoked", 0, 1)):
        execute(data, "INSERT INTO token VALUES (?, 'ann', 'read', ?, '', 1, ?, ?, 1)", name, name,
                expires, revoked)
    for owner in ("ann", "bob"):
        execute(data, "INSERT INTO owner VALUES (?, 1, 1, 1)", owner)
    execute(data, "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10007)"
                  " INSERT INTO gone_job SELECT n, 'j' || n, '{}' FROM c")
    report = db(box, "prune", data, "--older-than", "0", "--keep", "3")
    check(rows(data, "SELECT count(*), min(document) < '{}' FROM gone_job") == [(10000, 1)], "jobs that are gone")
    check(report["stray_files"] == 1 and not os.path.exists(stray), "the file is gone", report)
    check(report["tokens"] == 2 and rows(data, "SELECT id FROM token") == [("good",)], "tokens", report)
    check(rows(data, "SELECT name FROM owner") == [("ann",)], "and owners", report)
    # The search has forgotten all: what keeps an artifact is a kernel that names it.
    check(rows(data, "SELECT max(kept) FROM artifact") == [(1,)], "counted again")
    kept = rows(data, "SELECT count(*) FROM artifact a WHERE kept > 0 AND NOT EXISTS (SELECT 1 FROM"
                      " kernel k WHERE json_extract(k.document, '$.own.artifact') = a.sha256)")
    check(kept == [(0,)], "the quota reaches all others", kept)
    check(db(box, "check", data)["found_count"] == 0, "whole")


def modes_of(data):
    """Those that let others in: of the directory, and of all that is in it."""
    return {path: oct(os.lstat(path).st_mode & 0o777)
            for folder, _, names in os.walk(data) for path in [folder] + [os.path.join(folder, n) for n in names]
            if os.lstat(path).st_mode & 0o077}


def test_others_cannot_read_a_history(box):
    """With the umask that everybody has: what wpkd makes is its user's, what get writes is a program."""
    before = os.umask(0o022)
    try:
        job = box.write("job.json", small_job(budget={"candidates": 2, "seconds": 120}))
        box.data = box.path("new/history")
        need("wpk-builder")
        report = json.loads(box.ctl("tune", job, "--data", box.data, "--json"))
        check(os.path.exists(os.path.join(box.data, "history.db")), "there is one")
        check(modes_of(box.path("new")) == {}, "nobody else's", modes_of(box.path("new")))
        box.ctl("export", box.path("moved"), "--data", box.data)
        check(os.stat(box.path("moved")).st_mode & 0o777 == 0o600, "nor what is exported")
        box.ctl("get", report["kernels"][0]["fingerprint"], "--own", "-o", box.path("k.so"), "--data", box.data)
        check(os.stat(box.path("k.so")).st_mode & 0o777 == 0o755, "a kernel is for whoever runs the program",
              oct(os.stat(box.path("k.so")).st_mode))
    finally:
        os.umask(before)


def test_usage(box):
    for words in ([], ["check"], ["sell", "--data", "x"], ["check", "--data", "x", "more"],
                  ["backup", "--data", "x"], ["prune", "--data", "x", "--keep", "-1"]):
        code, out, err = box.run("wpkd", "--db", *words)
        check(code == 2 and "usage: wpkd --db" in err and not out, "usage", words, code, err)


if __name__ == "__main__":
    main(globals())

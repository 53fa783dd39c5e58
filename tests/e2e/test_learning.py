# SPDX-License-Identifier: Apache-2.0
"""A search's inputs from elsewhere: priors of a history, hints of other tuners, a share of the job's budget."""
import json
import os
import sqlite3

from lib import check, main, need, small_job

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner")


def operator(m, n, k):
    return {"name": "p%d" % m, "op": "Y[i,j] = sum(k:%d) A[i,k] * B[k,j]" % k,
            "tensors": {"A": "f32[%d,%d]" % (m, k), "B": "f32[%d,%d]" % (k, n), "Y": "f32[%d,%d]" % (m, n)}}


def test_a_prior_of_the_history(box):
    """A history's prior is written after a test on operators left out; a search that begins from it is another one,
    which a restart can go on with."""
    need(*PROGRAMS, "wpk-builder")
    job = box.write("one.json", small_job())
    box.ctl("tune", job, "--data", box.data, "--json")
    code, _, err = box.run("wpkctl", "learn", "--data", box.data)
    check(code == 4 and "two operators" in err, "an operator alone teaches nothing", code, err)
    job = box.write("job.json", small_job(ops=[operator(40, 48, 64), operator(24, 96, 32)], search={"strategy": "auto"},
                                          budget={"candidates": 20, "seconds": 120}))
    box.ctl("tune", job, "--data", box.data, "--json")
    prior = box.path("prior")
    said = json.loads(box.ctl("learn", "--data", box.data, "-o", prior, "--force", "--json"))
    check(said["operators"] == 2 and said["trials"] > 30 and 0 < said["ranked_right"] <= 1, "what it says", said)
    if said["ranked_right"] <= said["ranked_right_without"]:
        code, _, err = box.run("wpkctl", "learn", "--data", box.data, "-o", box.path("none"))
        check(code != 0 and "no better than none" in err and not os.path.exists(box.path("none")), "refused", err)
    other = box.write("other.json", small_job(ops=[operator(32, 64, 48)], search={"strategy": "auto", "prior": "prior"},
                                              budget={"candidates": 12, "seconds": 120}))
    box.ctl("tune", other, "--data", box.data, "--json")
    box.ctl("tune", other, "--data", box.data, "--json", "--strategy", "rl", "--prior", prior)
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        searches = db.execute("SELECT strategy, prior FROM search ORDER BY id").fetchall()
        stored = db.execute("SELECT sha256, text FROM prior").fetchall()
    check(searches[3:] == [("auto", said["sha256"]), ("rl", said["sha256"])] and searches[0][1] == "", "keys", searches)
    with open(prior, encoding="utf-8") as file:
        check(stored == [(said["sha256"], file.read())], "the prior itself")
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        db.execute("DELETE FROM prior")
    with open(prior, "a", encoding="utf-8") as file:
        file.write("x")
    for words, says in ((("tune", other), ("other.json:1:", "search.prior", "damaged")),
                        (("tune", job, "--prior", box.path("nowhere")), ("nowhere",)),
                        (("tune", job, "--strategy", "ga", "--prior", box.write("v0", "wpk-prior-0 cpu-1 2")),
                         ("takes no prior", "auto, rl")),
                        (("tune", job, "--prior", box.path("v0")), ("wpk-prior-0 cpu-1", "learn it again"))):
        code, _, err = box.run("wpkctl", *words, "--data", box.data)
        check(code == 2 and all(word in err for word in says), "a message about %s" % (words,), code, err)


def test_trials_of_elsewhere_are_hints(box):
    """Trials that one history exports as T4 are hints for another: its search measures the fastest again, and serves
    kernels that it verified itself. A hint that is no candidate is refused with file, line and field."""
    need(*PROGRAMS, "wpk-builder")
    job = box.write("job.json", small_job(search={"strategy": "random"}, budget={"candidates": 14, "seconds": 120}))
    box.ctl("tune", job, "--data", box.data, "--json")
    exported = box.path("t4.json")
    box.ctl("export", exported, "--format", "t4", "--job", "small", "--data", box.data)
    with open(exported, encoding="utf-8") as file:
        t4 = json.load(file)
    timed = sorted((result["times"]["runtimes"][0], "".join(" %s=%s" % gene for gene in result["configuration"].items()))
                   for result in t4["results"] if result["invalidity"] == "correct")
    other = box.path("other")
    said = json.loads(box.ctl("import", exported, "--format", "t4", "--job", job, "--data", other, "--json"))
    check(said["new_hints"] == len(timed) and said["new_trials"] == said["newly_served"] == 0, "hints", said, len(timed))
    said = json.loads(box.ctl("import", exported, "--format", "t4", "--job", job, "--data", other, "--json"))
    check(said["new_hints"] == 0, "nothing is there twice", said)
    box.ctl("tune", job, "--data", other, "--json", "--strategy", "anneal", "--seed", "7",
            "--candidates", "26")
    with sqlite3.connect(os.path.join(other, "history.db")) as db:
        asked = [row[0][row[0].index(" "):] for row in db.execute(
            "SELECT t.candidate FROM ask a JOIN trial t ON t.id = a.trial_id ORDER BY a.number")]
        verified = [row[0] for row in db.execute("SELECT verified_by FROM kernel WHERE served = 1 AND provider <> 'onednn'")]
    again = [one for one in asked if one in {text for _, text in timed}]
    check(again == [text for _, text in timed][:8] or len(timed) < 8, "the fastest, in their order", again, timed)
    check(all(verified), "verified here", verified)
    gene = next(name for name in t4["results"][0]["configuration"] if "tile" in name)
    for broken, says in (({"schema_version": "2.0.0", "results": []}, ("schema_version", "1.0.0")),
                         ({"schema_version": "1.0.0", "results": [{"invalidity": "correct", "times": {"runtimes": [1]},
                                                                   "configuration": {"block_size_x": 32}}]},
                          ("bad.json:11:21", "results[0].configuration", "algorithm=")),
                         (json.loads(json.dumps(t4).replace('"%s": "' % gene, '"%s": "77' % gene)), ("configuration", gene))):
        bad = box.write("bad.json", json.dumps(broken, indent=1))
        code, _, err = box.run("wpkctl", "import", bad, "--format", "t4", "--job", job, "--data", other)
        check(code == 2 and "bad.json:" in err and all(word in err for word in says), "refused", code, err)


def test_a_total_budget_is_shared_out(box):
    """The operator that is called more often gets more of it, and nothing is left over."""
    need(*PROGRAMS, "wpk-builder")
    often = dict(operator(32, 64, 48), count=1000)
    job = box.write("job.json", small_job(ops=[operator(40, 64, 48), often], search={"strategy": "random"},
                                          budget={"total": 40, "seconds": 120}))
    box.ctl("tune", job, "--data", box.data, "--json")
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        asks = dict(db.execute("SELECT o.name, COUNT(*) FROM ask a JOIN job_op o ON o.search_id = a.search_id GROUP BY 1"))
        document = json.loads(db.execute("SELECT document FROM job").fetchone()[0])
    check(sum(asks.values()) == 40 and asks["p32"] > asks["p40"] >= 8, "more for the second", asks)
    check(document["budget"]["total"] == 40, "it is shown", document["budget"])
    wanted = {op["name"]: op["candidates"]["wanted"] for op in document["ops"]}
    check(wanted == asks, "what each was allotted", wanted, asks)
    code, _, err = box.run("wpkctl", "check", box.write("bad.json", '{"ops": [{"name": "s", "op": {"type": "softmax", "shape": '
                                                        '[4, 8]}, "count": 0}],\n "budget": {"total": 0}}'))
    check(code == 2 and "bad.json:2:" in err and "budget.total" in err, "file, line and field", code, err)


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""Strategies and their options, ends of searches, and what is said of a search afterwards."""
import json
import os
import sqlite3
import xml.dom.minidom

from lib import check, main, need, small_job

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner")
SCHEMA = os.path.join(os.path.dirname(__file__), "../../schema/job.schema.json")


def test_strategies_are_listed(box):
    listed = json.loads(box.ctl("strategies", "--json"))["strategies"]
    with open(SCHEMA, encoding="utf-8") as file:
        allowed = json.load(file)["properties"]["search"]["properties"]["strategy"]["enum"]
    check([one["name"] for one in listed] == allowed, "those of the job file's schema", listed, allowed)
    for one in listed:
        for option in one["options"]:
            check(option["least"] <= option["default"] <= option["most"], "a default in its range", option)


def test_strategies_tune(box):
    """From job to kernel, past the first asks; options are part of a search's key."""
    need(*PROGRAMS, "wpk-builder")
    learning = ("auto", "mcmc", "bayes", "rl")
    for strategy in learning:
        job = box.write("job.json", small_job(name=strategy, search={"strategy": strategy, "seed": 1},
                                              budget={"candidates": 20, "seconds": 120}))
        box.ctl("tune", job, "--data", box.data, "--json")
    box.ctl("tune", job, "--data", box.data, "--json", "--set", "rl.drafts=2", "--set", "rl.learning_rate=1e-1")
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        rows = db.execute("SELECT strategy, options FROM search ORDER BY id").fetchall()
    check(rows == [(one, "") for one in learning] + [("rl", "rl.drafts=2;rl.learning_rate=0.10000000000000001")],
          "searches", rows)


def test_wrong_options(box):
    """Wrong options start no search: the message names the field, the mistake and the possible values."""
    job = box.write("job.json", small_job())
    for words, says in ((("--set", "rl.drafts=2"), ("random", "none")),
                        (("--strategy", "rl", "--set", "rl.drafts=0"), ("rl.drafts", "1 to 64")),
                        (("--strategy", "rl", "--set", "rl.drafts=1.5"), ("an integer",)),
                        (("--strategy", "rl", "--set", "rl.drafts=many"), ("number",)),
                        (("--until", "never"), ("converged", "speedup")),
                        (("--until", "speedup=-1"), ("above 0",))):
        code, _, err = box.run("wpkctl", "tune", job, "--data", box.data, *words)
        check(code == 2 and all(word in err for word in says), "a message about %s" % (words,), code, err)
    written = box.write("options.json", '{\n "ops": [{"name": "s", "op": {"type": "softmax", "shape": [4, 8]}}],\n'
                        ' "search": {"strategy": "ga",\n  "options": {"ga.crossover": 7}}}\n')
    code, _, err = box.run("wpkctl", "check", written)
    check(code == 2 and "options.json:4:" in err and "ga.crossover" in err and "0 to 1" in err,
          "file, line and field", code, err)


def test_why_and_plot(box):
    need(*PROGRAMS, "wpk-builder")
    job = box.write("job.json", small_job(search={"strategy": "auto"}, budget={"candidates": 24, "seconds": 120}))
    kernel = json.loads(box.ctl("tune", job, "--data", box.data, "--json"))["kernels"][0]
    why = json.loads(box.ctl("why", "small", "--data", box.data, "--json"))
    check(kernel["schedule"] is None or kernel["time_ns"]["median"] == why["median_ns"],
          "the time that the table shows", kernel, why)
    tried = sum(one["tried"] for one in why["outcomes"])
    check(tried > 0 and 0 <= why["probability"] <= 1 and why["median_ns"] > 0, "what was tried", why)
    check(why["genes"] and all(gene["value"] != gene["other"] and 0 < gene["ratio"] <= gene["median"]
                               and 0 <= gene["share"] <= 1 for gene in why["genes"]), "genes", why)
    said = box.ctl("why", why["job"], "--data", box.data)
    check("candidates were tried" in said and "the noise of the winner" in said, "in words", said)
    picture = os.path.join(box.data, "job.svg")
    box.ctl("plot", "small", "--data", box.data, "-o", picture)
    texts = [node.firstChild.data for node in
             xml.dom.minidom.parse(picture).getElementsByTagName("text")]
    check("time, µs" in texts and "candidates asked for" in texts, "axes with units", texts)
    box.ctl("plot", "small", "--data", box.data, "--by", "source", "-o", picture)
    texts = [node.firstChild.data for node in xml.dom.minidom.parse(picture).getElementsByTagName("text")]
    check("constructed" in texts and kernel["algorithm"] not in texts, "sources of candidates", texts)
    box.ctl("plot", "small", "--data", box.data, "--by", "time", "-o", picture, want=2)
    exported = os.path.join(box.data, "t4.json")
    box.ctl("export", exported, "--format", "t4", "--job", "small", "--data", box.data)
    with open(exported, encoding="utf-8") as file:
        t4 = json.load(file)
    check(t4["schema_version"] == "1.0.0" and len(t4["results"]) == tried, "T4", t4)
    for result in t4["results"]:
        check(result["invalidity"] in ("timeout", "compile", "runtime", "correctness", "constraints", "correct") and
              {"configuration", "times", "correctness"} <= set(result), "a result as its schema says", result)
    for words in (("why", "nobody"), ("plot", "nobody", "-o", picture), ("export", exported, "--format", "t4",
                                                                           "--job", "nobody")):
        code, _, err = box.run("wpkctl", *words, "--data", box.data)
        check(code == 4 and "nobody" in err, "no such operator", code, err)


def test_a_search_ends_when_it_is_good_enough(box):
    """One candidate reaches a millionth of the peak: the budget of 40 is not spent."""
    need(*PROGRAMS, "wpk-builder")
    job = box.write("job.json", small_job(search={"strategy": "auto"}, budget={
        "candidates": 40, "seconds": 120, "until": {"of_peak": 0.000001}}))
    box.ctl("tune", job, "--data", box.data, "--json")
    with sqlite3.connect(os.path.join(box.data, "history.db")) as db:
        asks = db.execute("SELECT COUNT(*) FROM ask").fetchone()[0]
        until = db.execute("SELECT until FROM job").fetchone()[0]
    check(0 < asks < 40 and until.startswith("of_peak="), "fewer than the budget", asks, until)


if __name__ == "__main__":
    main(globals())

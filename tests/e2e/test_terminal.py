# SPDX-License-Identifier: Apache-2.0
"""wpkctl on a terminal of 80 columns, and what reading leaves alone. The wpkd is the fake one."""
import csv
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import termios

from lib import check, main, small_job
from test_client import arrange, job, run

COLUMNS = 80


def on_terminal(box, *args):
    """(exit code, text) of wpkctl with both outputs on a terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    process = subprocess.Popen([arrange(box)] + [str(a) for a in args], stdin=subprocess.DEVNULL,
                               stdout=slave, stderr=slave, env=box.env, cwd=box.dir)
    os.close(slave)
    text = b""
    while True:
        try:
            read = os.read(master, 65536)
        except OSError:
            break
        if not read:
            break
        text += read
    os.close(master)
    return process.wait(60), text.decode().replace("\r\n", "\n")


def test_everything_fits(box):
    name = "a-layer-with-a-name-that-takes-much-of-the-line"
    ops = [dict(small_job()["ops"][0], name=name), dict(small_job()["ops"][0], name="second")]
    path = box.write("ours.json", small_job(name="ours", ops=ops, budget={"candidates": 8, "seconds": 60}))
    code, text = on_terminal(box, "tune", path, "--data", box.data)
    check(code == 0, "it ends well", text)
    drawn = [line for part in text.split("\r\033[K") for line in part.split("\n")]
    table = [line for line in drawn if "speedup" in line or "3.00x" in line]
    check(table and all(len(line) <= COLUMNS for line in table), "the table fits", table)
    progress = [line for line in drawn if " tried" in line or " left" in line]
    check(progress and all(len(line) < COLUMNS for line in progress), "so does the progress", progress)
    check(any("of 8 tried" in line for line in progress), "which says how far it is", progress)
    code, text = on_terminal(box, "kernels", "--data", box.data)
    check(code == 0 and all(len(line) <= COLUMNS for line in text.split("\n")), "and lists", text)
    check("kernel " in text, "the most important columns stay", text)
    wide = on_terminal(box, "kernels", "-o", "wide", "--data", box.data)[1]
    check("layouts" in wide and "layouts" not in text, "-o wide shows every column", wide)


def test_help_fits(box):
    """Every line of help, on any terminal of so many columns."""
    texts = {"help": run(box, "help")[0]}
    for command in re.findall(r"^  ([a-z]+) .*", texts["help"], re.M):
        texts[command] = run(box, "help", command)[0] if command not in ("help", "version") else ""
    check(len(texts) > 20, "the commands are found", sorted(texts))
    for command, text in texts.items():
        check(all(len(line) <= COLUMNS for line in text.split("\n") if not line.startswith("usage: ")),
              "help of " + command, text)


def test_forms(box):
    run(box, "tune", job(box, "ours"), "--data", box.data, "--quiet")
    rows = list(csv.reader(io.StringIO(run(box, "kernels", "-o", "csv", "--data", box.data)[0])))
    check(rows[0][:2] == ["kernel", "operator"] and len(rows) > 1 and len(rows[0]) == len(rows[1]), "CSV", rows)
    same = [json.loads(run(box, "jobs", *form, "--data", box.data)[0]) for form in (["--json"], ["-o", "json"])]
    check(same[0] == same[1], "-o json", same)
    _, err = run(box, "jobs", "-o", "jsn", "--data", box.data, want=2)
    check("did you mean 'json'?" in err, "another form", err)
    out, _ = run(box, "tune", job(box, "ours"), "--data", box.data, "-o", "csv", "--quiet")
    check(out.startswith("op,best") and len(out.splitlines()) == 2, "the result as CSV", out)


def test_reading_makes_nothing(box):
    for words in (("jobs",), ("kernels",), ("audit",), ("token", "list"), ("get", "small"),
                  ("status", "j0123456789abcdef"), ("watch", "j0123456789abcdef"),
                  ("trials", "j0123456789abcdef"), ("lookup", "0" * 64)):
        _, err = run(box, *words, "--data", box.data, want=4)
        check("no history" in err and "wpkctl tune" in err, "what to do", err)
        check(not os.path.exists(box.data), "%s made a directory" % words[0])


def test_pins_are_checked_first(box):
    for pin, meant in (("algorithm=dirct", "direct"), ("algoritm=direct", "algorithm")):
        _, err = run(box, "tune", job(box, "ours"), "--data", box.data, "--pin", pin, want=2)
        check("did you mean '%s'?" % meant in err, "what was meant", err)
    check(not os.path.exists(box.data), "nothing was started")
    genes = json.loads(run(box, "genes", job(box, "ours"), "--json")[0])["ops"][0]["genes"]
    named = {gene["gene"]: gene["values"] for gene in genes}
    check("direct" in named["algorithm"] and len(named) > 5, "what can be pinned", sorted(named))
    for gene, values in named.items():
        sizes = [int(value) for value in values if value.isdigit()]
        check(sizes == sorted(sizes) and "all" not in values[:-1], "sizes ascend, and all is the last", gene, values)
    pin = "%s=%s" % (genes[-1]["gene"], genes[-1]["values"][-1])
    run(box, "tune", job(box, "ours"), "--data", box.data, "--pin", pin, "--quiet")


def test_watching_what_has_ended(box):
    run(box, "tune", job(box, "ours"), "--data", box.data, "--quiet")
    name = json.loads(run(box, "jobs", "--json", "--data", box.data)[0])["jobs"][0]["id"]
    out, err = run(box, "watch", name, "--data", box.data)
    check("3.00x" in out and "no wpkd" not in err, "history tells of it", out, err)


if __name__ == "__main__":
    main(globals())

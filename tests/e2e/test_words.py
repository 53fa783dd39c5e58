# SPDX-License-Identifier: Apache-2.0
"""What wpkctl says when a word is wrong: what was meant, and what to do."""
import json
import os

from lib import check, main, need, small_job, wait_for


def refused(box, *words, code=2):
    status, out, err = box.run("wpkctl", *words)
    check(status == code, "%s ended with %s" % (words, status), out, err)
    check(err.count("\n") == 1, "one line", err)
    return err


def test_did_you_mean(box):
    job = box.write("job.json", small_job())
    for words, meant in ((("kernals",), "'kernels'"), (("tun",), "'tune'"),
                         (("jobs", "--statte", "done"), "'--state'"),
                         (("kernels", "-json"), "'--json'"),
                         (("tune", job, "--strategy", "gaa"), "'ga'"),
                         (("jobs", "puase", "j0123456789abcdef"), "'pause'"),
                         (("db", "chekc"), "'check'"),
                         (("token", "create", "--owner", "ann", "--role", "amin"), "'admin'")):
        err = refused(box, *words)
        check("did you mean %s?" % meant in err, "%s: %s is meant" % (words, meant), err)
    check("wpkctl help" in refused(box, "frobnicate"), "where the names are")
    err = refused(box, "token", "create", "--owner", "ann", "--role", "bogus")
    check("--role" in err and "read, submit" in err, "the option, and what it takes", err)
    check("1:" not in err and "roles[" not in err, "no place in a text that nobody wrote", err)


def test_version(box):
    check(json.loads(box.ctl("version", "--json"))["version"] in box.ctl("version"), "as JSON too")
    refused(box, "version", "--jsno")


def test_a_worker_says_that_nobody_listens(box):
    need("wpk-builder")
    worker = box.start("wpk-worker", "--cpu", "--coordinator", "ipc://" + box.path("nobody.sock"),
                       "--data", box.dir)
    # Its first request is given up after 15 s, which is when it used to say something.
    wait_for("the reason", lambda: "not_connected" in worker.text(worker.err), 12)
    check("nobody.sock" in worker.text(worker.err), "with the address", worker.text(worker.err))
    worker.popen.terminate()
    worker.wait(30)


if __name__ == "__main__":
    main(globals())

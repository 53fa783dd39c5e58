# SPDX-License-Identifier: Apache-2.0
"""Mistakes in a job are reported with file, line, column and field, and nothing is stored."""
import json
import os

from lib import BIN, Process, Service, check, main, need, small_job, SMALL_OP
from test_model import make_model

HERE = os.path.dirname(os.path.abspath(__file__))


def bad_jobs():
    with open(os.path.join(HERE, "bad_jobs.json"), encoding="utf-8") as file:
        for case in json.load(file):
            yield case["name"], case["text"].replace("OP", json.dumps(SMALL_OP)), case["says"]


def test_check_accepts(box):
    out = json.loads(box.ctl("check", "--json", box.write("job.json", small_job())))
    op = out["ops"][0]
    check(op["name"] == "small" and len(op["fingerprint"]) == 64, "an operator", op)
    multiply_adds = 12 * 12 * 8 * 8
    check(2 * multiply_adds <= op["flops"] <= 2.3 * multiply_adds, "FLOPs", op)
    check(op["bytes"] == 4 * (2 * 8 * 12 * 12 + 8 * 8 + 8), "bytes", op)
    check(op["roofline_ns"] > 0 and op["space_size_log2"] > 1, "roofline and space", op)
    check(op["roofline_cold_ns"] >= op["roofline_cold_constants_ns"] >= op["roofline_ns"], "cold costs no less", op)
    check(op["unseen"] == "", "verification sees every fault", op)
    # The text says the same to people.
    text = box.ctl("check", os.path.join(HERE, "../../examples/job.json"))
    for word in ("c6", "c4", "attention", "fingerprint", "space", "relu("):
        check(word in text, "the text shows " + word, text)


def test_what_verification_would_not_see(box):
    op = {"name": "twice", "op": "Y[i] = relu(T[i]) where T[i] = relu(X[i])",
          "tensors": {"X": "f32[16]", "Y": "f32[16]"}}
    path = box.write("job.json", small_job(ops=[op]))
    box.env["TMPDIR"] = box.dir
    found = json.loads(box.ctl("check", "--no-roofline", "--json", path))["ops"][0]["unseen"]
    check(found == "T: identity; Y: identity", "a relu of a relu is one of them", found)
    text = box.ctl("check", "--no-roofline", path)
    check("unseen       T: identity" in text and "verification" in text, "said to people", text)
    check(json.loads(box.ctl("check", "--no-faults", "--json", path))["ops"][0]["unseen"] is None, "not looked for")
    check(not [name for name in os.listdir(box.dir) if "wpk-check" in name], "nothing is left behind")


def test_lost_output(box):
    """A failed write of the output is no success; a reader that closes the pipe early is no failure."""
    command = "%s/wpkctl check --json job.json %s; echo $? >&2"
    box.write("job.json", small_job())
    for where, says in ((">/dev/full", "wpkctl: cannot write the output: No space left on device; make room there\n1\n"),
                        ("| true", "0\n"), (">&-", "1\n")):
        code, _, err = Process(box, ["sh", "-c", command % (BIN, where)]).wait(20)
        check(err.endswith(says), where, code, err)


def test_check_rejects(box):
    for name, text, says in bad_jobs():
        path = box.write("bad.json", text)
        code, out, err = box.run("wpkctl", "check", path)
        check(code == 2 and out == "", "exit code 2: " + name, code, out, err)
        for word in ["bad.json"] + says:
            check(word in err, "%s: '%s' is named" % (name, word), err)


def test_pins_are_checked(box):
    """Genes belong to a device's space, so that wpkctl names them where they stand, and wpkd cannot."""
    for pin, says in (({"algorithmus": "direct"}, "3:18: search.pin.algorithmus: there is no gene"),
                      ({"algorithm": "directt"}, "3:16: search.pin.algorithm: gene 'algorithm' has no value 'directt'")):
        text = json.dumps(small_job(search={}))
        check('"search": {}' in text, "the job has a search", text)
        path = box.write("pin.json", text.replace('"search": {}', '\n"search": {"pin":\n ' + json.dumps(pin) + "}"))
        for command in (["check"], ["tune", "--data", box.data]):
            code, _, err = box.run("wpkctl", *command, path)
            check(code == 2 and path + ":" + says in err, says, command, code, err)


def hostile_files(box):
    """(path, a word that has to be said)"""
    huge = box.path("huge.json")
    with open(huge, "wb") as file:
        file.write(b'{"name": "')
        file.truncate(100 << 20)
    deep = "[" * 10000 + "]" * 10000
    yield huge, "4194304"
    yield box.write("deep.json", deep), "1:65"
    yield box.write("deep_op.json", '{"ops": %s}' % deep), "deep"
    yield box.write("latin.json", b'{"name":\n "\xe9", "ops": []}'), "2:3: not valid UTF-8"
    yield box.write("wide.json", json.dumps(small_job()).encode("utf-16")), "1:1"
    yield box.write("nul.json", b'{"name": "a\0b", "ops": []}'), "1:12"
    yield box.write("surrogate.json", '{"name": "\\ud800", "ops": []}'), "1:"
    yield box.path("missing.json"), "No such file"
    yield box.dir, "Is a directory"


def test_hostile_files(box):
    for path, word in hostile_files(box):
        for command in (["check"], ["tune", "--data", box.data], ["submit", "--data", box.data]):
            code, out, err = box.run("wpkctl", *command, path, seconds=10)
            check(code == 2 and out == "", "rejected by %s: %s" % (command[0], path), code, err)
            check(path in err and word in err, "and said why: " + path, word, err)
    check(not os.path.exists(box.data), "nothing is stored")


def test_tune_rejects(box):
    need("wpkd", "wpk-worker")
    for name, text, _ in list(bad_jobs())[:3]:
        code, _, err = box.run("wpkctl", "tune", "--data", box.data, box.write("bad.json", text))
        check(code == 2 and "bad.json" in err, "exit code 2: " + name, code, err)
    check(not os.path.exists(box.data), "nothing is stored")
    good = box.write("job.json", small_job())
    code, _, err = box.run("wpkctl", "tune", "--data", box.data, good, "--threads", 1024)
    check(code == 2 and "1024 threads" in err, "more threads than cores", code, err)
    for arguments in (["--candidates", "0"], ["--candidates", "many"], ["--nonsense"],
                      ["--layouts", "nhwc"], ["--strategy", "magic"], ["--pin", "algorithm"], [good]):
        code, _, err = box.run("wpkctl", "tune", "--data", box.data, good, *arguments)
        check(code == 2 and err, "exit code 2: %s" % arguments, code, err)
    check(box.run("wpkctl")[0] == 2, "no command")
    check(box.run("wpkctl", "nonsense")[0] == 2, "unknown command")
    check(box.run("wpkctl", "status", "j0123456789abcdef", "--server", "unix:/nowhere")[0] == 3,
          "nobody there")


def test_outputs_are_refused_before_any_work(box):
    """An output that would destroy an input or the history, or that nothing can write."""
    need("wpkd", "wpk-worker")
    model = os.path.join(make_model(box, "tiny"), "tiny.onnx")
    history = os.path.join(box.data, "history.db")
    job = box.write("job.json", small_job())
    check(box.run("wpkctl", "tune", job, "--candidates", "1", "--data", box.data)[0] == 0, "a history")
    for words, kept, why in (
            (["tune", model, "-o", model], model, "it is the command's input"),
            (["run", model, "--interpret", "--random", "--output", "y=" + model], model, "the command's input"),
            (["tune", model, "-o", box.path("no/m.wpk")], model, "make its directory first"),
            (["tune", model, "-o", ""], model, "the name is empty"),
            (["tune", model, "-o", "-"], model, "/dev/stdout"),
            (["run", job, "--random", "--output", "Y=" + history], history, "belongs to a history"),
            (["get", "small", "-o", history], history, "belongs to a history"),
            (["plot", "small", "-o", box.dir], history, "it is a directory"),
            (["export", history], history, "belongs to a history")):
        with open(kept, "rb") as file:
            before = file.read()
        code, out, err = box.run("wpkctl", *words, "--data", box.data, seconds=20)
        with open(kept, "rb") as file:
            check(code == 2 and out == "" and why in err and file.read() == before, "%s" % words, code, out, err)


def test_low_limits(box):
    """Too few descriptors, and too small a stack, are said to be; a small soft limit is raised."""
    need("wpkd", "wpk-worker")
    job = box.write("job.json", small_job())

    def limited(kind, limit, *words):
        return box.run("/bin/sh", "-c", "ulimit %s %d; exec \"$@\"" % (kind, limit), "sh",
                       os.path.join(BIN, "wpkctl"), *words, seconds=60)

    code, _, err = limited("-n", 256, "tune", job, "--data", box.data, "--candidates", "1")
    check(code == 3 and "wpkd needs 384: raise it" in err, "256 descriptors", code, err)
    code, _, err = limited("-s", 256, "check", job)
    check(code == 1 and "start with a higher limit" in err, "a stack of 256 KiB", code, err)
    code, _, err = limited("-Ss", 256, "tune", job, "--data", box.data, "--candidates", "1")
    check(code == 0, "a stack that may grow", code, err)


def test_no_directory(box):
    """An empty --data, as of a variable that is not set, is not the default history."""
    need("wpkd", "wpk-worker")
    job = box.write("job.json", small_job())
    for words in (["wpkctl", "tune", job], ["wpkctl", "kernels"], ["wpkctl", "get", "small"],
                  ["wpkctl", "db", "check"], ["wpkd"]):
        for empty in (["--data", ""], ["--data="]):
            code, _, err = box.run(*words, *empty, seconds=20)
            check(code == 2 and "--data: '' is no directory" in err, "refused: %s" % words, code, err)


def test_wpkd_rejects(box):
    need("wpkd")
    service = Service(box)
    for name, text, says in bad_jobs():
        status, problem, headers = service.ask("POST", "/v1/jobs", text.encode())
        check(status in (400, 422), "%s is rejected" % name, status, problem)
        check(headers["content-type"].startswith("application/problem+json"), name, headers)
        check(problem["status"] == status and problem["detail"], name, problem)
        if says[0].rstrip(":").isdigit() or says[0][0] in "12":
            check(problem.get("line") == int(says[0].split(":")[0]), "line of " + name, problem)
    for path, word in hostile_files(box):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                status, problem, headers = service.ask("POST", "/v1/jobs", file.read())
            check(400 <= status < 500 and problem["status"] == status, path, status, problem)
            check(headers["content-type"].startswith("application/problem+json"), path, headers)
            check(word == "4194304" or problem.get("line", 0) > 0, "with a position", problem)
    status, problem, _ = service.ask("POST", "/v1/jobs", json.dumps(small_job()).encode(),
                                     "text/plain")
    check(status == 415, "not JSON", status, problem)
    check(service.ask("GET", "/v1/jobs")[1]["jobs"] == [], "nothing is stored")
    service.stop()


if __name__ == "__main__":
    main(globals())

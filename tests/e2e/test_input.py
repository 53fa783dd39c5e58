# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a job is said, with file, line, column and field, and nothing is stored."""
import json
import os

from lib import Service, check, main, need, small_job, SMALL_OP

HERE = os.path.dirname(os.path.abspath(__file__))


def bad_jobs():
    with open(os.path.join(HERE, "bad_jobs.json"), encoding="utf-8") as file:
        for case in json.load(file):
            yield case["name"], case["text"].replace("OP", json.dumps(SMALL_OP)), case["says"]


def test_check_accepts(box):
    out = json.loads(box.ctl("check", "--json", box.write("job.json", small_job())))
    op = out["ops"][0]
    check(op["name"] == "small" and len(op["fingerprint"]) == 64, "an operator", op)
    multiply_adds = 12 * 12 * 16 * 16 * 9
    check(2 * multiply_adds <= op["flops"] <= 2.2 * multiply_adds, "FLOPs", op)
    check(op["bytes"] == 4 * (2 * 16 * 12 * 12 + 16 * 16 * 9 + 16), "bytes", op)
    check(op["roofline_ns"] > 0 and op["space_size_log2"] > 1, "roofline and space", op)
    # The text says the same to people.
    text = box.ctl("check", os.path.join(HERE, "../../examples/job.json"))
    for word in ("c6", "c4", "attention", "fingerprint", "space", "relu("):
        check(word in text, "the text shows " + word, text)


def test_check_rejects(box):
    for name, text, says in bad_jobs():
        path = box.write("bad.json", text)
        code, out, err = box.run("wpkctl", "check", path)
        check(code == 2 and out == "", "exit code 2: " + name, code, out, err)
        for word in ["bad.json"] + says:
            check(word in err, "%s: '%s' is named" % (name, word), err)


def test_hostile_files(box):
    deep = box.write("deep.json", "[" * 10000 + "]" * 10000)
    latin = box.write("latin.json", b'{"name": "\xe9", "ops": []}')
    huge = box.path("huge.json")
    with open(huge, "wb") as file:
        file.truncate(100 << 20)
    for path, word in ((deep, "deep"), (latin, "1:"), (huge, "1048576"),
                       (box.path("missing.json"), "missing.json"), (box.dir, box.dir)):
        code, out, err = box.run("wpkctl", "check", path, seconds=5)
        check(code == 2 and out == "" and word in err, "rejected: " + path, code, err)


def test_tune_rejects(box):
    need("wpkd", "wpk-worker")
    for name, text, _ in list(bad_jobs())[:3]:
        code, _, err = box.run("wpkctl", "tune", "--data", box.data, box.write("bad.json", text))
        check(code == 2 and "bad.json" in err, "exit code 2: " + name, code, err)
    check(not os.path.exists(box.data), "nothing is stored")
    good = box.write("job.json", small_job())
    for arguments in (["--candidates", "0"], ["--candidates", "many"], ["--nonsense"],
                      ["--layouts", "nhwc"], ["--strategy", "magic"], ["--pin", "algorithm"], [good]):
        code, _, err = box.run("wpkctl", "tune", "--data", box.data, good, *arguments)
        check(code == 2 and err, "exit code 2: %s" % arguments, code, err)
    check(box.run("wpkctl")[0] == 2, "no command")
    check(box.run("wpkctl", "nonsense")[0] == 2, "unknown command")
    check(box.run("wpkctl", "status", "j0123456789abcdef", "--url", "unix:/nowhere")[0] == 3,
          "nobody there")


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
    status, problem, _ = service.ask("POST", "/v1/jobs", b"x" * (2 << 20))
    check(status == 413, "too large", status, problem)
    status, problem, _ = service.ask("POST", "/v1/jobs", b"[" * 10000)
    check(status in (400, 422), "too deep", status, problem)
    status, problem, _ = service.ask("POST", "/v1/jobs", json.dumps(small_job()).encode(),
                                     "text/plain")
    check(status == 415, "not JSON", status, problem)
    check(service.ask("GET", "/v1/jobs")[1]["jobs"] == [], "nothing is stored")
    service.stop()


if __name__ == "__main__":
    main(globals())

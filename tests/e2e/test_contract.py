# SPDX-License-Identifier: Apache-2.0
"""schemathesis asks a wpkd whatever schema/openapi.yaml allows, and what it does not: no answer may be
a failure of the server, or one that the contract does not describe; what is valid is taken and what
is not is refused. A random job or lookup may be refused for what a schema cannot say
(schemathesis.toml), so jobs and lookups that have to be taken are written out in test_valid_requests.

How much schemathesis asks is fixed by the seed and the number of examples, so that a run repeats what the last
one found. WPK_CONTRACT_SECONDS: ask with another seed for so long; give it hours now and then.
"""
import json
import os
import re

from lib import ROOT, SMALL_OP, Process, check, main, need, small_job, wait_for, Skip
from port import free_port
from test_api import Api

SECONDS = int(os.environ.get("WPK_CONTRACT_SECONDS", "0"))
EXAMPLES = ("--max-examples", "15" if os.environ.get("WPK_TEST_DRAWS") else "6", "--seed", "1") if SECONDS == 0 else (
    "--max-examples", "100000", "--max-time", str(SECONDS), "--seed", str(os.getpid()))
VENV = os.path.join(ROOT, ".deps/test-venv/bin")
SCHEMATHESIS = os.path.join(VENV, "schemathesis")
CONTRACT = os.path.join(ROOT, "schema/openapi.yaml")


class TcpApi(Api):
    """A wpkd that listens on TCP too, which is what schemathesis speaks."""

    def __init__(self, box):
        self.box = box
        self.socket = box.path("http.sock")
        self.url = "unix:" + self.socket
        self.listen = "ipc://" + box.path("workers.sock")
        self.port = free_port()
        listeners = [{"address": self.url}, {"address": "127.0.0.1:%d" % self.port}]
        config = box.write("wpkd.json", {"http": {"listen": listeners}})
        self.wpkd = box.start("wpkd", "--config", config, "--data", box.data, "--listen", self.listen)
        self.workers = []
        wait_for("wpkd answers", self.healthy, 30)


def run_schemathesis(box, service, contract, *options):
    """(exit code, what it says, how many operations were asked)"""
    if not os.path.exists(SCHEMATHESIS):
        raise Skip("no schemathesis: deploy/setup.sh test")
    token = service.want(201, "POST", "/v1/tokens", {"owner": "test", "roles": ["admin"]})["secret"]
    code, out, err = Process(box, [
        # The script's first line names the interpreter by the place where the environment was made.
        os.path.join(VENV, "python3"), SCHEMATHESIS, "--config-file", os.path.join(ROOT, "tests/e2e/schemathesis.toml"), "run",
        contract, "--url", "http://127.0.0.1:%d" % service.port, "-H", "Authorization: Bearer " + token,
        "--no-shrink", "--warnings", "off", "--workers", "1",
        *options]).wait(SECONDS + 180)
    tested = re.search(r"Tested: +(\d+)", out)
    return code, out + err, int(tested.group(1)) if tested else 0


def operators():
    """Operators that jobs and lookups may ask for, without a name: each shorthand's examples, and notation."""
    with open(os.path.join(ROOT, "schema/job.schema.json"), encoding="utf-8") as file:
        definitions = json.load(file)["$defs"]
    found = [{"op": example} for definition in definitions.values() for example in definition.get("examples", [])]
    check(len(found) == len(definitions["named"]["properties"]["op"]["oneOf"]), "each shorthand has an example")
    return found + [{name: value for name, value in SMALL_OP.items() if name != "name"}]


def test_valid_requests(box):
    """Jobs and lookups that are valid are accepted: every kind of operator, every field with each of its
    values or at both ends of its range."""
    need("wpkd")
    service = Api(box)
    of_operators = [{"layouts": "any"}, {"layouts": "fixed"}] + \
        [{"accuracy": accuracy} for accuracy in (
            "strict", "standard", "fast", {"times_direct": 0.5}, {"times_direct": 1000000})] + \
        [{"conditions": conditions} for conditions in ("warm", "cold-constants", "cold")]
    named = [dict(operator, name="op.%d" % i) for i, operator in enumerate(operators())]
    jobs = [{"ops": [operator]} for operator in named] + [{"ops": named}] + \
        [{"ops": [dict(SMALL_OP, **more)]} for more in of_operators] + \
        [small_job(**more) for more in (
            {"name": ""}, {"name": "n" * 63}, {"priority": -100}, {"priority": 100},
            {"target": {}}, {"target": {"kind": "cpu", "threads": 1024}},
            {"target": {"device": "cpu/some model/zen4", "labels": {"rack.1": "a"}}},
            {"search": {}}, {"search": {"strategy": "ga", "seed": 0}},
            {"search": {"strategy": "random", "seed": 9007199254740991}},
            {"search": {"seed": "18446744073709551615"}}, {"search": {"pin": {"layout": "staged"}}},
            {"budget": {}}, {"budget": {"candidates": 1, "seconds": 1}},
            {"budget": {"candidates": 1000000, "seconds": 604800}})]
    for job in jobs:
        made = service.want(201, "POST", "/v1/jobs", job)
        check([op["name"] for op in made["ops"]] == [op["name"] for op in job["ops"]], "its operators", job, made)
        check(service.want(200, "GET", "/v1/jobs/" + made["id"])["id"] == made["id"], "it is there", made)
    lookups = operators() + [{"fingerprint": "0" * 64}] + \
        [dict(operators()[-1], **more) for more in of_operators + [
            {"name": "n" * 63}, {"threads": 1}, {"threads": 1024}, {"device": "cpu/some model/avx2"},
            {"device": ""}, {"environment": "halide=21.0.0"}]]
    for lookup in lookups:
        match = service.want(200, "POST", "/v1/kernels:lookup", lookup)
        check(match["match"] == "none", "nothing was measured here", lookup, match)
    matches = service.want(200, "POST", "/v1/kernels:lookup", {"lookups": lookups})["matches"]
    check([match["match"] for match in matches] == ["none"] * len(lookups), "all at once", matches)
    check(service.want(200, "POST", "/v1/kernels:lookup", {"lookups": []}) == {"matches": []}, "and none")
    tuned = service.want(200, "POST", "/v1/kernels:lookup?tune=1", operators()[-1])
    check(service.want(200, "GET", "/v1/jobs/" + tuned["job_id"])["ops"], "a job for it", tuned)
    service.stop()


def test_contract(box):
    need("wpkd")
    service = TcpApi(box)
    if os.path.exists(SCHEMATHESIS) and all(
            os.path.exists(os.path.join(os.path.dirname(service.wpkd.args[0]), name))
            for name in ("wpk-worker", "wpk-runner")):
        # Something to be asked for.
        worker = service.add_worker()
        service.tuned()
        worker.popen.terminate()
        worker.wait(30)
    code, said, tested = run_schemathesis(
        box, service, CONTRACT, "--phases", "examples,coverage,fuzzing", *EXAMPLES)
    check(code == 0, "schemathesis is content", said[-12000:])
    check(tested >= 20, "it came to ask", said[-2000:])
    check(service.want(200, "GET", "/healthz")["status"] == "ok", "wpkd lives")
    service.stop()


def test_it_finds_mistakes(box):
    """schemathesis fails where the contract promises something else than wpkd does."""
    need("wpkd")
    service = TcpApi(box)
    with open(CONTRACT, encoding="utf-8") as file:
        text = file.read()
    # The schema of jobs lies beside it.
    box.write("job.schema.json", open(os.path.join(ROOT, "schema/job.schema.json"), "rb").read())
    for path, right, wrong in (
            ("/healthz", "status: { const: ok }", "status: { const: well }"),
            ("/v1/tokens", "TokenId: { type: string,", "TokenId: { type: integer,")):
        check(right in text, "the place of the mistake", right)
        contract = box.write("openapi.yaml", text.replace(right, wrong))
        code, said, _ = run_schemathesis(box, service, contract, "--phases", "coverage", "--seed", "1",
                                         "--include-path", path)
        check(code == 1 and "Response violates schema" in said, "it is found: " + wrong, code,
              said[-4000:])
    service.stop()


if __name__ == "__main__":
    main(globals())

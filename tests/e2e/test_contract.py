# SPDX-License-Identifier: Apache-2.0
"""schemathesis asks a wpkd whatever schema/openapi.yaml allows, and what it does not: no answer may be
a failure of the server, or one that the contract does not describe; what is valid is taken and what
is not is refused.

How much it asks is fixed by the seed and the number of examples, so that a run repeats what the last
one found. WPK_CONTRACT_SECONDS: ask with another seed for so long; give it hours now and then.
"""
import os
import re

from lib import ROOT, Process, check, main, need, wait_for, Skip
from port import free_port
from test_api import Api

SECONDS = int(os.environ.get("WPK_CONTRACT_SECONDS", "0"))
EXAMPLES = ("--max-examples", "15", "--seed", "1") if SECONDS == 0 else (
    "--max-examples", "100000", "--max-time", str(SECONDS), "--seed", str(os.getpid()))
SCHEMATHESIS = os.path.join(ROOT, ".deps/test-venv/bin/schemathesis")
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
        SCHEMATHESIS, "--config-file", os.path.join(ROOT, "tests/e2e/schemathesis.toml"), "run",
        contract, "--url", "http://127.0.0.1:%d" % service.port, "-H", "Authorization: Bearer " + token,
        "--no-shrink", "--warnings", "off", "--workers", "1",
        *options]).wait(SECONDS + 180)
    tested = re.search(r"Tested: +(\d+)", out)
    return code, out + err, int(tested.group(1)) if tested else 0


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
    """It would say so: of a contract that promises something else."""
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

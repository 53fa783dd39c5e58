# SPDX-License-Identifier: Apache-2.0
"""The manifests are what Kubernetes' schemas allow, and their pods have no privilege. With the wheels of deploy/setup.sh
test alone."""
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from lib import ROOT, Skip, check, main  # noqa: E402

PYTHON = os.environ.get("WPK_TEST_PYTHON", os.path.join(ROOT, ".deps/test-venv/bin/python3"))
FILES = sorted(glob.glob(os.path.join(ROOT, "deploy/kubernetes/*.yaml")))
READ = "import json, sys, yaml; print(json.dumps([[d for d in yaml.safe_load_all(open(f))] for f in sys.argv[1:]]))"
VALIDATE = """import json, sys, kubernetes_validate
for document in json.load(sys.stdin):
    kubernetes_validate.validate(document, "1.31", strict=True)
"""


def run(code, *args, text=None):
    return subprocess.run([PYTHON, "-c", code, *args], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)


def documents():
    if not os.path.exists(PYTHON) or run("import yaml").returncode != 0:
        raise Skip("no PyYAML: deploy/setup.sh test")
    done = run(READ, *FILES)
    check(done.returncode == 0, "they are YAML", done.stdout)
    return [document for documents in json.loads(done.stdout) for document in documents]


def as_job(document):
    """A ScaledJob's template as a Job: KEDA's own kinds are in no schema here."""
    job = document["spec"]["jobTargetRef"]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": document["metadata"], "spec": job}


def pods():
    for document in documents():
        spec = (as_job(document) if document["kind"] == "ScaledJob" else document).get("spec", {})
        if "template" in spec:
            yield document["kind"], spec["template"]["spec"]


def test_schemas(box):
    if not os.path.exists(PYTHON) or run("import kubernetes_validate").returncode != 0:
        raise Skip("no kubernetes-validate: deploy/setup.sh test")
    known = [as_job(d) if d["kind"] == "ScaledJob" else d for d in documents() if d["kind"] != "TriggerAuthentication"]
    done = run(VALIDATE, text=json.dumps(known))
    check(done.returncode == 0, "are valid", done.stdout[-2000:])
    broken = json.loads(json.dumps(known[0]).replace('"spec": {', '"spec": {"replicsa": 1, ', 1))
    check(run(VALIDATE, text=json.dumps([broken])).returncode != 0, "a misspelled field is not")


def test_pods_are_restricted(box):
    """The standard `restricted` of Pod Security, CPUs of their own, and no write but to /tmp."""
    kinds = []
    for kind, pod in pods():
        kinds.append(kind)
        context = pod["securityContext"]
        check(context["runAsNonRoot"] and context["seccompProfile"]["type"] == "RuntimeDefault", kind, context)
        check(pod["automountServiceAccountToken"] is False and pod["terminationGracePeriodSeconds"] >= 90, kind, pod)
        check({v["name"] for v in pod["volumes"]} == {"secret", "tmp"} and "hostNetwork" not in pod, kind, pod)
        for container in pod["containers"]:
            own = container["securityContext"]
            check(own == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}, kind, own)
            resources = container["resources"]
            check(resources["requests"] == resources["limits"] and resources["limits"]["cpu"].isdigit(), "static CPUs", resources)
            leaves = any(a.startswith("--exit-when-idle=") for a in container["args"])
            check(leaves == (kind != "DaemonSet"), "it leaves if it was started for work", kind)
    check(sorted(kinds) == ["DaemonSet", "Job", "ScaledJob"], "all are there", kinds)


if __name__ == "__main__":
    main(globals())

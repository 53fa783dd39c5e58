# SPDX-License-Identifier: Apache-2.0
"""The GPU bench, rehearsed on the emulated GPU: from the tree and from a packed folder, cut off and gone on with."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SKIP = 77


def run(script, directory, *options):
    done = subprocess.run([script, "--gpu", "emulated", "--small", "--candidates", "2", "--seconds", "60", "--op-seconds",
                           "10", *options, directory], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def read(directory):
    with open(os.path.join(directory, "records.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main():
    for needed in ("build/bin/wpk-builder", "build/emulate/libwpk-cuda-emulated.so", ".deps/nvrtc/lib/libnvrtc.so.12"):
        if not os.path.exists(os.path.join(ROOT, needed)):
            print("there is no %s" % needed)
            return SKIP
    script = os.path.join(ROOT, "bench", "gpu", "run.sh")
    directory = tempfile.mkdtemp()
    try:
        data = os.path.join(directory, "results")
        code, out, err = run(script, data, "--only", "c3")
        assert code == 0 and "(not timed)" in out and "1 of 12" in out, (code, out, err)
        first = read(data)
        assert [line["what"] for line in first] == ["floor", "kernel"] and not first[1]["timed"], first
        with open(os.path.join(data, "records.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"what": "kern')  # a run was killed here
        folder = os.path.join(directory, "folder")
        subprocess.run([script, "pack", folder], check=True)
        code, out, err = run(os.path.join(folder, "run.sh"), data, "--only", "c3,softmax-256MB")
        assert code == 0, (code, out, err)
        second = read(data)
        assert second[:2] == first and [line["name"] for line in second[1:]] == ["c3", "softmax-256MB"], second
        fake = os.path.join(ROOT, "build", "tests", "fake_vendor")
        os.environ["LD_LIBRARY_PATH"] = fake
        code, out, err = run(script, os.path.join(directory, "vendors"), "--only", "gemm-1024")
        del os.environ["LD_LIBRARY_PATH"]
        assert code == 0 and "of 1\n" in out, ("cuBLASLt stands beside a product", code, out, err)
        code, out, err = run(script, data, "--seconds", "0")
        assert code == 3 and "not done" in out and read(data) == second, (code, out, err)
    finally:
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())

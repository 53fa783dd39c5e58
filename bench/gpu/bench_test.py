# SPDX-License-Identifier: Apache-2.0
"""The GPU bench, rehearsed on the emulated GPU: from the tree and from a packed folder, cut off and gone on with."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench  # noqa: E402 pylint: disable=wrong-import-position
import libraries  # noqa: E402 pylint: disable=wrong-import-position

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SKIP = 77


PACKED_BYTES_MAX = 40 << 20
GLIBC_MAX = (2, 36)  # of Debian 12


def run(script, directory, *options, env=None):
    done = subprocess.run([script, "--gpu", "emulated", "--small", "--candidates", "2", "--seconds", "60", "--op-seconds",
                           "10", *options, directory], capture_output=True, text=True, check=False, env=env)
    return done.returncode, done.stdout, done.stderr


def unpack(script, directory):
    """(the packed folder, unpacked elsewhere; the environment of a machine with Python alone)"""
    subprocess.run([script, "pack", os.path.join(directory, "wpk-gpu")], check=True)
    shutil.rmtree(os.path.join(directory, "wpk-gpu"))
    archive = os.path.join(directory, "wpk-gpu.tar.xz")
    assert os.path.getsize(archive) < PACKED_BYTES_MAX, os.path.getsize(archive)
    elsewhere, tools = os.path.join(directory, "elsewhere"), os.path.join(directory, "tools")
    os.mkdir(elsewhere)
    os.mkdir(tools)
    subprocess.run(["tar", "-C", elsewhere, "-xJf", archive], check=True)
    for name in ("sh", "dirname", "python3"):
        os.symlink(shutil.which(name), os.path.join(tools, name))
    return os.path.join(elsewhere, "wpk-gpu"), {"PATH": tools, "HOME": directory}


def check_packed(folder, env):
    """A packed folder has all libraries but libc's, NVRTC's and Halide's."""
    files = [os.path.join(folder, part, name) for part in ("bin", "lib") for name in os.listdir(os.path.join(folder, part))]
    assert not [name for name in files if "nvrtc" in name or "alide" in name], files
    for path in files:
        said = subprocess.run(["readelf", "-V", path], capture_output=True, text=True, check=True).stdout
        newest = max((tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", said)), default=(0,))
        assert newest <= GLIBC_MAX, (path, newest)
        if os.path.dirname(path).endswith("bin"):
            said = subprocess.run(["ldd", path], capture_output=True, text=True, check=True, env={}).stdout
            strange = [line for line in said.split("\n") if "=> /" in line and folder not in os.path.realpath(line.split()[2])
                       and not re.match(r"\s*lib(c|m|dl|rt|pthread|resolv)\.so", line)]
            assert not strange, (path, strange)
    done = subprocess.run([os.path.join(folder, "run.sh"), "check", "emulated"], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0 and "compiler    nvrtc" in done.stdout and "halide-cuda none: no Halide" in done.stdout, done
    os.makedirs(os.path.join(folder, "packages/nvidia/cu13/lib"))
    assert libraries.folders([os.path.join(folder, "packages")]) == [os.path.join(folder, "packages/nvidia/cu13/lib")]


def read(directory):
    with open(os.path.join(directory, "records.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main():
    for needed in ("build/bin/wpk-builder", "build/tests/gpu/libwpk-cuda-emulated.so", ".deps/nvrtc/lib/libnvrtc.so.12"):
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
        assert [line["what"] for line in first] == ["floor", "kernel", "model", "restarts", "closer"] and not first[1]["timed"], first
        assert "spread of a kernel's median over 2 restarts: median 0.0 %" in out, out
        assert bench.correlate([1, 2, 3, 4], [5, 6, 8, 7]) == 0.8 and bench.correlate([1, 1, 1], [1, 2, 3]) is None
        with open(os.path.join(data, "records.jsonl"), "a", encoding="utf-8") as file:
            file.write('{"what": "kern')  # a run was killed here
        folder, env = unpack(script, directory)
        check_packed(folder, env)
        code, out, err = run(os.path.join(folder, "run.sh"), data, "--only", "c3,softmax-256MB", env=env)
        assert code == 0, (code, out, err)
        second = read(data)
        assert second[:5] == first, second
        assert [line["name"] for line in second if line["what"] == "kernel"] == ["c3", "softmax-256MB"], second
        fake = os.path.join(ROOT, "build", "tests", "gpu", "fake_vendor")
        os.environ["LD_LIBRARY_PATH"] = fake
        code, out, err = run(script, os.path.join(directory, "vendors"), "--only", "gemm-1024")
        del os.environ["LD_LIBRARY_PATH"]
        assert code == 0 and ("faster in 1 of 1\n" in out or "faster in 0 of 1\n" in out), ("cuBLASLt stands beside a product", code, out, err)
        os.environ["WPK_EMULATED_ORDERS"] = "cuMemcpyDtoHAsync_v2:1=719"
        for _ in range(bench.TRIES):
            code, out, err = run(script, os.path.join(directory, "failing"), "--only", "gemm-1024")
        del os.environ["WPK_EMULATED_ORDERS"]
        assert code == 0 and "no kernel: " in out, ("what always fails is left", code, out, err)
        code, out, err = run(script, data, "--seconds", "0")
        assert code == 3 and "not done" in out and read(data) == second, (code, out, err)
    finally:
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The provider of ONNX Runtime: what it answers beside ONNX Runtime alone, and its Python package."""
import os
import subprocess

from lib import BIN, ROOT, Skip, check, main, wait_for
from test_commands import tuned
from test_model import PYTHON

LIBRARY = os.path.join(os.path.dirname(BIN), "runtime/onnxruntime/libwpk-onnxruntime.so")
LONG = os.environ.get("WPK_ORACLE") == "long"
EVERY = "1" if LONG else "15"


def run(*words, python=PYTHON, **env):
    with open(LIBRARY, "rb") as library:
        if b"__asan_init" in library.read():
            raise Skip("Python itself has no ASan")
    told = subprocess.run([python, *words], capture_output=True, text=True, check=False, timeout=1000,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "WOODPECKER_PLANS": "/proc/none", **env})
    check(told.returncode == 0, " ".join(words), told.stdout[-1500:], told.stderr[-1500:])
    return told.stdout


def check_provider(box, **env):
    said = run(os.path.join(ROOT, "tests/onnxruntime_provider.py"), box.dir, **env)
    check("passed" in said, "the provider", said)


def test_provider(box):
    """Free extents, zero sizes, bodies, errors, constants, threads, two providers, an ONNX Runtime that is too old."""
    check_provider(box, WOODPECKER_ONNXRUNTIME_LIBRARY=LIBRARY)


def test_nodes(box):
    """A sample of ONNX's node tests: the same bits as without the provider."""
    said = run(os.path.join(ROOT, "tests/onnxruntime_nodes.py"), LIBRARY, "--every", EVERY)
    check("claimed whole" in said, "node tests", said)


def test_plans(box):
    """Plans are made, tried and served; those that differ, are damaged or of another model are refused."""
    said = run(os.path.join(ROOT, "tests/onnxruntime_plans.py"), box.dir, WOODPECKER_ONNXRUNTIME_LIBRARY=LIBRARY,
               WPK_BIN=BIN)
    check("passed" in said, "plans", said)


def test_other_version(box):
    """$WPK_ONNXRUNTIME_PYTHON has another ONNX Runtime: its node tests and plans."""
    other = os.environ.get("WPK_ONNXRUNTIME_PYTHON", "")
    if not other:
        raise Skip("WPK_ONNXRUNTIME_PYTHON names no Python")
    said = run(os.path.join(ROOT, "tests/onnxruntime_nodes.py"), LIBRARY, "--every", EVERY, python=other)
    check("claimed whole" in said, "node tests", said)
    said = run(os.path.join(ROOT, "tests/onnxruntime_plans.py"), box.dir, python=other,
               WOODPECKER_ONNXRUNTIME_LIBRARY=LIBRARY, WPK_BIN=BIN)
    check("passed" in said, "plans", said)


def test_misses(box):
    """A service's misses have the operators that sessions have no plan for, with their calls."""
    service = tuned(box)
    run(os.path.join(ROOT, "tests/onnxruntime_plans.py"), box.dir, WOODPECKER_ONNXRUNTIME_LIBRARY=LIBRARY, WPK_BIN=BIN,
        WPK_URL=service.url)

    def calls():
        misses = service.ask("GET", "/v1/misses")[1]["misses"]
        check(all(miss["time_ns"] > 1000 * miss["calls"] for miss in misses), "a call takes more than 1 us", misses)
        return sorted((miss["op"]["tensors"]["X"], miss["calls"]) for miss in misses)

    wait_for("both shapes with their calls", lambda: calls() == [("f32[5,64]", 21), ("f32[7,64]", 31)], 60)
    service.stop()


def test_wheel(box):
    """The wheel does all that without a library beside. In `make test-all` it is packed twice, with the same bytes, as that
    of test_model_plan.py is each time."""
    if not os.path.exists(os.path.join(ROOT, ".deps/wheel-venv/stamp")):
        raise Skip("needs `deploy/setup.sh wheel`")
    packed = []
    for folder in (box.path("a"), box.path("b"))[:1 + LONG]:
        told = subprocess.run([os.path.join(ROOT, "python/make_wheel.sh"), os.path.dirname(BIN), folder,
                               "onnxruntime_ep_woodpecker"],
                              capture_output=True, text=True, check=False, timeout=120)
        wheels = [path for path in told.stdout.split() if "onnxruntime" in path]
        check(told.returncode == 0 and len(wheels) == 1 and "manylinux_2_28" in wheels[0], "a wheel", told.stdout,
              told.stderr)
        with open(wheels[0], "rb") as wheel:
            packed.append(wheel.read())
    check(packed[0] == packed[-1] and len(packed[0]) < 1e6, "the same wheel, below 1 MB", len(packed[0]))
    site = box.path("site")
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps",
                    "--target", site, wheels[0]], check=True, timeout=120)
    check_provider(box, PYTHONPATH=site)


if __name__ == "__main__":
    main(globals())

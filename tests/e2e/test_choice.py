# SPDX-License-Identifier: Apache-2.0
"""What `wpkctl get` writes always runs: a choice, signed by wpkd, in the asker's names; libwpk takes
its best entry that works, and says why it passed others over."""
import ctypes
import json
import os
import subprocess

from lib import BIN, Skip, check, check_tune_json, main, need, small_job

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
RUN_KERNEL = os.environ.get("WPK_RUN_KERNEL", "")
LIBWPK = os.path.join(BIN, "../runtime/libwpk.so")


def get(box, name="small", file="x.so"):
    """(the choice, its path, what get said)"""
    path = box.path(file)
    code, _, err = box.run("wpkctl", "get", name, "-o", path, "--data", box.data)
    check(code == 0, "get leaves something that runs", err, box.logs())
    with open(path + ".choice", encoding="utf-8") as text:
        return json.load(text), path, err


def run_kernel(box, path):
    done = subprocess.run([RUN_KERNEL, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env=box.env, timeout=120, check=False)
    return done.returncode, done.stdout


def kinds(choice):
    return [entry["kind"] for entry in choice["chain"]]


def test_choice(box):
    need(*PROGRAMS)
    if not os.path.exists(RUN_KERNEL):
        raise Skip("examples/run_kernel is not built")
    job = box.write("job.json", small_job())
    kernel = check_tune_json(box.ctl("tune", job, "--data", box.data, "--json", "--pin",
                                     "algorithm=direct"))["kernels"][0]
    choice, path, err = get(box)
    for suffix in ("", ".manifest", ".sig", ".choice", ".choice.sig"):
        check(os.path.isfile(path + suffix), "there is x.so" + suffix, err)
    check(choice["fingerprint"] == kernel["fingerprint"], "of the operator", choice)
    check(choice["binding"] == kernel["binding"], "in the asker's names", choice["binding"], kernel["binding"])
    for name in ("X", "W", "B", "Y"):
        check(" %s f32[" % name in choice["operator"], "the operator has " + name, choice["operator"])
    check("kernel" in kinds(choice), "our own is there", choice["chain"])
    check(("vendor" in kinds(choice)) == bool(kernel["baseline"]), "the vendor's recipe is there", choice["chain"], kernel["baseline"])
    check(choice["self_test"]["points"], "it tests itself", choice["self_test"])
    vendor_wins = kernel["provider"] != "halide-cpu"
    check((kinds(choice)[0] == "vendor") <= vendor_wins, "the best comes first", kinds(choice), kernel["provider"])
    if vendor_wins:
        check(kernel["provider"] in err, "who is fastest", err)

    code, out = run_kernel(box, path + ".choice")
    check(code == 0, "it runs", out)
    check("entry 0 of the choice" in out and "Y: sum" in out, "the first entry, in the asker's names", out)

    by_fingerprint, _, _ = get(box, kernel["fingerprint"], "y.so")
    check(all(a == b for pairs in by_fingerprint["binding"].values() for a, b in pairs),
          "a bare fingerprint has canonical names", by_fingerprint["binding"])

    # A damaged object: what is left is taken, or nothing is, and the reason is told.
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 1)
    code, out = run_kernel(box, path + ".choice")
    check("x.so" in out or "vendor" in out, "the object is named, or was not needed", out)
    check((code == 0) == ("vendor" in kinds(choice)), "the vendor's is left", kinds(choice), out)


def open_choice(path, key):
    """What wpk_open says, as a number; by the public key."""

    class Options(ctypes.Structure):
        _fields_ = [("device", ctypes.c_void_p), ("public_key", ctypes.c_char_p),
                    ("any_model", ctypes.c_bool), ("library_dir", ctypes.c_char_p),
                    ("self_test", ctypes.c_bool)]

    lib = ctypes.CDLL(LIBWPK)
    kernel = ctypes.c_void_p()
    diag = ctypes.create_string_buffer(4096)
    err = lib.wpk_open(path.encode(), ctypes.byref(Options(public_key=key)), ctypes.byref(kernel), diag)
    if err == 0:
        lib.wpk_kernel_close(kernel)
    return err


def test_signature(box):
    need(*PROGRAMS)
    job = box.write("job.json", small_job())
    box.ctl("tune", job, "--data", box.data, "--json", "--pin", "algorithm=direct")
    _, path, _ = get(box)
    key = box.ctl("get", "--public-key", "--data", box.data).strip().encode()
    with open(LIBWPK, "rb") as file:
        if b"__asan_init" in file.read():
            raise Skip("a sanitizer's library does not load into Python")
    check(open_choice(path + ".choice", key) == 0, "it is opened by its key")
    check(open_choice(path + ".choice", b"0" * 64) != 0, "by no other")
    with open(path + ".choice", "r+b") as file:
        content = file.read()
        file.seek(content.index(b'"threads":1') + 10)
        file.write(b"2")
    check(open_choice(path + ".choice", key) != 0, "nor once it was changed")


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""Shared by tests of GPUs: an emulated GPU, its jobs and operators."""
import os
import re
import sqlite3
import tempfile

from lib import BIN, Skip, check, need, small_job

PROGRAMS = ("wpkd", "wpk-worker", "wpk-runner", "wpk-builder")
DRIVER_CALLS = ("cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute",
                "cuDeviceGetUuid_v2", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxPushCurrent_v2",
                "cuCtxPopCurrent_v2", "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuMemAlloc_v2",
                "cuMemFree_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernel", "cuStreamCreate",
                "cuStreamDestroy_v2", "cuStreamSynchronize", "cuEventCreate", "cuEventDestroy_v2")
EXAMPLE = os.environ.get("WPK_RUN_KERNEL", "") + "_cuda"
EMULATED = ("--gpu", "emulated")
CLASS = "cuda/emulated/sm_90/132"
NAMED_CLASS = "cuda/Test GPU/sm_90/132"
PRODUCT = {"name": "mm", "op": "Y[i,j] = relu((sum(k) A[i,k] * B[k,j]) + C[j])",
           "tensors": {"A": "f32[33,40]", "B": "f32[40,24]", "C": "f32[24]", "Y": "f32[33,24]"},
           "constants": ["B", "C"]}
SOFTMAX = {"name": "soft", "op": "S[i,j] = exp(X[i,j]-M[i])/D[i] where M[i]=max(k) X[i,k]; D[i]=sum(k) exp(X[i,k]-M[i])",
           "tensors": {"X": "f32[9,128]", "S": "f32[9,128]"}}


def need_compiler(box):
    """The name of this machine's compiler, "nvrtc-12.9"."""
    need(*PROGRAMS)
    code, said, _ = box.run("wpk-worker", *EMULATED, "--check")
    if code != 0:
        raise Skip(said.split("\n")[0])
    check(CLASS in said and "not timed" in said, "--check names the device", said)
    return re.search(r"(?m)^compiler +(\S+)$", said).group(1)


def job_of(ops, candidates=6):
    return small_job(ops=ops, target={"kind": "cuda"}, budget={"candidates": candidates, "seconds": 120})


def check_ptx(box, name, path):
    """The PTX that `get` prints is what the shared object has."""
    ptx = box.ctl("get", name, "--data", box.data, "--ptx", "-o", "-")
    with open(path, "rb") as file:
        whole = ".target sm_" in ptx and re.search(r"\}\s*$", ptx)
        check(whole and ptx.encode() in file.read(), "PTX of the object", ptx[:500], ptx[-100:])


def lookup(service, device, **more):
    body = {**more, "device": device, "op": PRODUCT["op"], "tensors": PRODUCT["tensors"], "constants": PRODUCT["constants"]}
    status, answer, _ = service.ask("POST", "/v1/kernels:lookup", body)
    check(status == 200, "a lookup is answered", status, answer)
    return answer


def state_of(service, identifier):
    return service.ask("GET", "/v1/jobs/" + identifier)[1]


def recorded(box):
    with sqlite3.connect(os.path.join(box.data, "history.db")) as history:
        return sorted(history.execute("SELECT candidate, outcome FROM trial WHERE provider = 'cuda'").fetchall())


def order(box, orders, shared=True):
    """Make the emulated driver fail; `shared`: all processes of the box count calls together."""
    box.env["WPK_EMULATED_ORDERS"] = orders
    box.env.pop("WPK_EMULATED_ORDERS_COUNT", None)
    if shared:
        box.env["WPK_EMULATED_ORDERS_COUNT"] = os.path.join(tempfile.mkdtemp(dir=box.dir), "count")


def need_vendors():
    """The folder of the libraries that stand for vendors'."""
    fake = os.environ.get("WPK_FAKE_VENDOR_DIR", "")
    if not os.path.exists(os.path.join(fake, "libcublasLt.so.12")) or not os.path.exists(os.path.join(BIN, "wpk-evaluate")):
        raise Skip("the libraries that stand for vendors' are not built")
    return fake

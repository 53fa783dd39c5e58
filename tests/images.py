#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the images of deploy/image.py as a container engine would: images.py FOLDER. Needs root.

Each in a mount namespace of its own, on a read-only root, as the image's user, with its volumes and a /tmp; both share
/run/woodpecker. A job is submitted by the wpkctl of wpkd's image, and has to be done.
"""
import gzip
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

JOB = {"name": "image", "ops": [{"name": "product", "op": "C[i,j] = sum(k) A[i,k] * B[k,j]",
                                 "tensors": {"A": "f32[64,64]", "B": "f32[64,64]", "C": "f32[64,64]"}}],
       "budget": {"candidates": 4, "seconds": 60}}


class Image:
    """An OCI layout, checked and unpacked."""

    def __init__(self, path, folder):
        self.root = folder
        with tarfile.open(path) as tar:
            blobs = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
        self.blobs = blobs
        manifest = self.blob(json.loads(blobs["index.json"])["manifests"][0])
        config = self.blob(manifest["config"])
        self.config = config["config"]
        for layer, plain in zip(manifest["layers"], config["rootfs"]["diff_ids"]):
            data = gzip.decompress(blobs["blobs/" + layer["digest"].replace(":", "/")])
            assert "sha256:" + hashlib.sha256(data).hexdigest() == plain, "the layer's digest"
            subprocess.run(["tar", "-x", "-C", folder, "-f", "-"], input=data, check=True)

    def blob(self, descriptor):
        data = self.blobs["blobs/" + descriptor["digest"].replace(":", "/")]
        assert "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"] and len(data) == descriptor["size"]
        return json.loads(data)

    def start(self, run, command=None):
        """Start the image's program, or another one, where `run` is its /run/woodpecker."""
        script = "mount --bind {0} {0} && mount -t tmpfs -o mode=1777,exec tmp {0}/tmp && " \
                 "mount -t tmpfs -o mode=777 data {0}/var/lib/woodpecker && mount --bind {1} {0}/run/woodpecker && " \
                 "mount -t proc proc {0}/proc && mount --bind /sys {0}/sys && mount --bind /dev {0}/dev && " \
                 "mount -o remount,bind,ro {0} && cd {0} && exec chroot --userspec={2} {0} /usr/bin/env -i {3} {4}".format(
                     self.root, run, self.config["User"], shlex.join(self.config["Env"]),
                     shlex.join(command or self.config["Entrypoint"] + self.config["Cmd"]))
        return subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True)


def main():
    folder = sys.argv[1]
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        images = {}
        for name in ("wpkd", "wpk-worker"):
            os.mkdir(os.path.join(work, name))
            images[name] = Image(os.path.join(folder, name + ".tar"), os.path.join(work, name))
        run = os.path.join(work, "run")
        os.mkdir(run)
        os.chown(run, *map(int, images["wpkd"].config["User"].split(":")))
        with open(os.path.join(run, "job.json"), "w", encoding="utf-8") as file:
            json.dump(JOB, file)
        wpkd = images["wpkd"].start(run)
        worker = images["wpk-worker"].start(run)
        wpkctl = ["wpkctl", "tune", "/run/woodpecker/job.json", "--server", "unix:/run/woodpecker/wpkd.sock"]
        deadline, text, code = time.monotonic() + 60, "", 1
        while code != 0 and time.monotonic() < deadline:
            client = images["wpkd"].start(run, wpkctl)
            text, code = client.communicate()[0], client.returncode
        for process in (worker, wpkd):
            os.killpg(process.pid, signal.SIGTERM)  # unshare, and the first process in its namespace
        said = [process.communicate()[0][-800:] for process in (worker, wpkd)]
        if code != 0 or " + 0" not in text:
            sys.exit("images: the job was not done:\n%s\n%s" % (text, "\n".join(said)))
        print(text)


if __name__ == "__main__":
    main()

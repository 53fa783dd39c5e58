#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes container images of the Debian packages: image.py PACKAGES FOLDER

FOLDER/wpkd.tar and FOLDER/wpk-worker.tar are OCI layouts of one layer, which `docker load`, `podman load` and
`skopeo copy oci-archive:FILE` read. Nothing but Debian's archive is asked, by mmdebstrap. A container runs as user 65532
and writes to its volumes alone.
"""
import argparse
import glob
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile

SUITE = "bookworm"
USER = 65532  # as deploy/kubernetes/ has it
FOLDERS = ("/var/lib/woodpecker", "/run/woodpecker")
IMAGES = {
    "wpkd": (("wpkd", "wpk"), ["wpkd"], ["--config", "/etc/woodpecker/wpkd.json"]),
    "wpk-worker": (("wpk-worker", "wpk-halide"), ["wpk-worker"], ["--cpu", "--config", "/etc/woodpecker/worker.json"]),
}
# Manuals are for hosts.
LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/lintian/*",
            "/usr/share/bash-completion/*", "/usr/share/zsh/*",
            # gcc compiles C, without optimization at link time and without sanitizers
            "/usr/lib/gcc/*/lto*", "/usr/bin/*lto-dump*", "/usr/bin/*-ld.gold", "/usr/bin/*-dwp", "*gprofng*",
            *("*/lib%s.*" % sanitizer for sanitizer in ("asan", "tsan", "lsan", "ubsan")))
KEPT = ("/usr/share/doc/*/copyright", "/usr/share/doc/*/licenses/*")


def package(folder, name):
    found = glob.glob(os.path.join(folder, name + "_*.deb"))
    if len(found) != 1:
        sys.exit("image.py: %s has %d packages %s_*.deb, not one; make packages builds them" % (folder, len(found), name))
    return os.path.abspath(found[0])


def make_root(packages, when, out):
    """The file system of Debian's essential packages and these, as a tar file."""
    options = ["--dpkgopt=path-exclude=" + path for path in LEFT_OUT] + ["--dpkgopt=path-include=" + path for path in KEPT]
    hook = "echo woodpecker:x:{0}:{0}::/var/lib/woodpecker:/usr/sbin/nologin >> $1/etc/passwd && " \
           "echo woodpecker:x:{0}: >> $1/etc/group && " \
           "rm -rf $1/var/lib/apt/lists/* $1/var/cache/apt/* $1/var/log/*".format(USER)
    subprocess.run(["mmdebstrap", "--quiet", "--variant=essential", "--aptopt=APT::Install-Recommends false", *options,
                    "--hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount",
                    "--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr",
                    *("--include=" + path for path in packages), "--customize-hook=" + hook, SUITE, out], check=True)
    with tarfile.open(out, "a") as tar:  # mmdebstrap empties /run
        for folder in FOLDERS:
            info = tarfile.TarInfo("." + folder)
            info.type, info.mode, info.uid, info.gid, info.mtime = tarfile.DIRTYPE, 0o755, USER, USER, when
            tar.addfile(info)


def pressed(path):
    """(the gzipped layer, the digest of what it unpacks to)"""
    out, plain = io.BytesIO(), hashlib.sha256()
    with open(path, "rb") as file, gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0) as packed:
        while block := file.read(1 << 20):
            plain.update(block)
            packed.write(block)
    return out.getvalue(), plain.hexdigest()


class Layout:
    """An OCI image layout while it is written as a tar file."""

    def __init__(self, path, when):
        self.tar, self.when = tarfile.open(path, "w"), when  # pylint: disable=consider-using-with; close() does

    def add(self, name, data):
        info = tarfile.TarInfo(name)
        info.size, info.mtime = len(data), self.when
        self.tar.addfile(info, io.BytesIO(data))

    def add_blob(self, kind, data):
        digest = hashlib.sha256(data).hexdigest()
        self.add("blobs/sha256/" + digest, data)
        return {"mediaType": "application/vnd.oci.image.%s" % kind, "digest": "sha256:" + digest, "size": len(data)}

    def close(self):
        self.tar.close()


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def write_image(name, version, root, when, path):
    _, entry, command = IMAGES[name]
    layer, plain = pressed(root)
    layout = Layout(path, when)
    config = layout.add_blob("config.v1+json", as_json({
        "architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:" + plain]},
        "config": {"User": "%d:%d" % (USER, USER), "Entrypoint": entry, "Cmd": command, "Env": ["PATH=/usr/bin:/bin"],
                   "Volumes": {folder: {} for folder in FOLDERS}, "WorkingDir": FOLDERS[0], "StopSignal": "SIGTERM"}}))
    manifest = layout.add_blob("manifest.v1+json", as_json({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
        "layers": [layout.add_blob("layer.v1.tar+gzip", layer)]}))
    manifest["annotations"] = {"org.opencontainers.image.ref.name": version,
                               "io.containerd.image.name": "docker.io/library/%s:%s" % (name, version)}
    layout.add("index.json", as_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                                      "manifests": [manifest]}))
    layout.add("oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
    layout.close()
    print("%-12s %5.1f MB, %s" % (name, os.path.getsize(path) / 1e6, path))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages")
    parser.add_argument("folder")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    when = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    for name, (parts, _, _) in IMAGES.items():
        files = [package(options.packages, part) for part in parts]
        version = os.path.basename(files[0]).split("_")[1]
        with tempfile.TemporaryDirectory() as work:
            root = os.path.join(work, "root.tar")
            make_root(files, when, root)
            write_image(name, version, root, when, os.path.join(options.folder, name + ".tar"))


if __name__ == "__main__":
    main()

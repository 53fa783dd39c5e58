#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the peers that `make bench` compares with into .deps/bench-venv, a virtual environment of
# the bench's own: 2.5 GB, because oneDNN's newest wheel brings SYCL and its compilers along.
# Versions and hashes are pinned in bench/requirements.txt and, for packages of Debian 12, which are
# unpacked and not installed, in bench/debian.txt; a second run does nothing.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/.deps/bench-venv
requirements=$root/bench/requirements.txt

who='bench setup'
. "$root/deploy/progress.sh"

# The wheels' library names carry versions; the build wants names that stay.
link_peers() {
    site=$(echo "$venv"/lib/python3.*/site-packages)
    peers=$venv/peers
    mkdir -p "$peers"
    for library in "$site"/onnxruntime/capi/libonnxruntime.so.* \
        "$site"/openvino/libs/libopenvino_c.so.*; do
        name=$(basename "$library")
        ln -sf "$library" "$peers/$name"
        ln -sf "$library" "$peers/${name%%.so*}.so"
    done
    # ONNX Runtime is looked up at run time by the name that it gives itself.
    ln -sf "$peers/libonnxruntime.so" "$peers/libonnxruntime.so.1"
    ln -sfn "$site/openvino/libs" "$peers/openvino-libs"
    ln -sfn "$site/openvino/include" "$peers/openvino-include"
}

fetch_wheels() {
    python=
    for candidate in python3 /usr/bin/python3; do
        if [ -z "$python" ] && $candidate -c 'import ensurepip, venv' 2>/dev/null; then
            python=$candidate
        fi
    done
    if [ -z "$python" ]; then
        fail "python3-venv is missing; as root: apt-get install python3-venv"
    fi
    begin "fetching ONNX Runtime, OpenVINO, oneDNN, ncnn and MNN (0.7 GB, 2.5 GB unpacked)"
    rm -rf "$venv"
    $python -m venv "$venv"
    log=$venv/log
    if ! "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes -r "$requirements" >"$log" 2>&1; then
        finished
        tail -n 15 "$log" >&2
        fail "pip could not fetch the wheels of bench/requirements.txt (see above); is there a network?"
    fi
    finished
    link_peers
    cp "$requirements" "$venv/stamp"
}

# oneDNN 2.6 is a package of Debian 12. Elsewhere the bench does without it, and says so.
fetch_debian() {
    packages=$venv/debian/packages
    begin "fetching oneDNN 2.6 (7 MB)"
    rm -rf "$venv/debian"
    mkdir -p "$packages"
    while read -r hash package; do
        if ! (cd "$packages" && apt-get download -q "$package" >log 2>&1); then
            finished
            say "no $package here, so no oneDNN 2.6 (it needs Debian 12's packages, or: apt-get update)"
            return 0
        fi
        file=$(echo "$packages/${package%%=*}"_*.deb)
        if ! echo "$hash  $file" | sha256sum --check --quiet; then
            finished
            fail "$file is not the one of bench/debian.txt; try again after apt-get update"
        fi
        dpkg-deb -x "$file" "$venv/debian/root"
    done <"$root/bench/debian.txt"
    finished
    ln -s root/usr/include "$venv/debian/include"
    ln -s "root/usr/lib/x86_64-linux-gnu" "$venv/debian/lib"
    cp "$root/bench/debian.txt" "$venv/debian/stamp"
}

is_done() {
    cmp -s "$requirements" "$venv/stamp" && cmp -s "$root/bench/debian.txt" "$venv/debian/stamp"
}

if is_done; then
    exit 0
fi
mkdir -p "$root/.deps"
exec 9>"$root/.deps/bench-lock"
flock 9
if is_done; then
    exit 0
fi
if ! cmp -s "$requirements" "$venv/stamp"; then
    fetch_wheels
fi
fetch_debian

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs the wheels of the packages woodpecker and onnxruntime_ep_woodpecker, each with its library and the libraries that
# it needs, into a folder:
#
#     python/make_wheel.sh BUILD FOLDER
#
# Two runs on the same build write the same bytes.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/.deps/wheel-venv/bin
build=${1:?usage: python/make_wheel.sh BUILD FOLDER}
out=${2:?usage: python/make_wheel.sh BUILD FOLDER}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# The moment of the last commit, which zip files have as the time of their members.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 1700000000)
export SOURCE_DATE_EPOCH PATH="$tools:$PATH"

# pack PACKAGE PROJECT PAGE LIBRARY DEBIAN_PACKAGE...: the last are of libraries that go into the wheel.
pack() {
    name=$1 project=$2 page=$3 library=$4
    shift 4
    folder=$work/$name
    mkdir -p "$folder/licenses" "$folder/$name"
    cp "$root/python/$project" "$folder/pyproject.toml"
    cp "$root/docs/$page" "$folder/README.md"
    cp "$root/LICENSE" "$folder/licenses/"
    for debian in "$@"; do
        cp "/usr/share/doc/$debian/copyright" "$folder/licenses/$debian"
    done
    cp "$root/python/$name"/*.py "$root/python/$name/py.typed" "$folder/$name/"
    cp -L "$build/runtime/$library" "$folder/$name/"
    strip --strip-unneeded "$folder/$name/$(basename "$library")"
    pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --no-index \
        --config-settings=--build-option="--plat-name=linux_x86_64 --python-tag=py3" \
        --wheel-dir "$work/linux" "$folder"
    auditwheel repair --wheel-dir "$work/many" "$work/linux/$name"-*.whl >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

pack woodpecker pyproject.toml python.md libwpk.so.0 libcjson1 libsodium23
pack onnxruntime_ep_woodpecker pyproject.onnxruntime.toml onnxruntime.md onnxruntime/libwpk-onnxruntime.so
mkdir -p "$out"
mv "$work"/many/*.whl "$out/"
ls "$out"/woodpecker-*.whl "$out"/onnxruntime_ep_woodpecker-*.whl

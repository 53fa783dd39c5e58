#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs the wheels of the packages woodpecker, woodpecker_tune and onnxruntime_ep_woodpecker, each with its programs or its
# library, and the libraries that these need, into a folder:
#
#     python/make_wheel.sh BUILD FOLDER [tune]
#
# Two runs on the same build write the same bytes. woodpecker_tune, 60 MB with Halide, takes a minute, and is asked for.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/.deps/wheel-venv/bin
build=${1:?usage: python/make_wheel.sh BUILD FOLDER [tune]}
out=${2:?usage: python/make_wheel.sh BUILD FOLDER [tune]}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# The moment of the last commit, which zip files have as the time of their members.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 1700000000)
export SOURCE_DATE_EPOCH PATH="$tools:$PATH"

# begin PACKAGE PROJECT PAGE: the package's folder, without what is compiled.
begin() {
    name=$1
    folder=$work/$name
    mkdir -p "$folder/licenses" "$folder/$name"
    cp "$root/python/$2" "$folder/pyproject.toml"
    cp "$root/docs/$3" "$folder/README.md"
    cp "$root/LICENSE" "$folder/licenses/"
    cp -r "$root/python/$name/." "$folder/$name/"
    rm -rf "$folder/$name/__pycache__"
}

# add FILE FOLDER: a compiled file, and the licences of the libraries that it needs and Debian has.
add() {
    mkdir -p "$folder/$name/$2"
    cp -L "$1" "$folder/$name/$2/"
    strip --strip-unneeded "$folder/$name/$2/$(basename "$1")"
    ldd "$1" | awk '$3 ~ /^\// { print $3 }' | while read -r path; do
        real=$(realpath "$path") # dpkg may know it without the /usr that /lib is a link into
        package=$(dpkg -S "$real" "${real#/usr}" 2>/dev/null | head -n 1 | cut -d: -f1)
        [ -z "$package" ] || cp "/usr/share/doc/$package/copyright" "$folder/licenses/$package"
    done
}

finish() {
    pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --no-index \
        --config-settings=--build-option="--plat-name=linux_x86_64 --python-tag=py3" \
        --wheel-dir "$work/linux" "$folder"
    auditwheel repair --wheel-dir "$work/many" "$work/linux/$name"-*.whl >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

begin woodpecker pyproject.toml python.md
add "$build/runtime/libwpk.so.0" .
finish
begin onnxruntime_ep_woodpecker pyproject.onnxruntime.toml onnxruntime.md
add "$build/runtime/onnxruntime/libwpk-onnxruntime.so" .
finish
if [ "${3:-}" = tune ]; then
    begin woodpecker_tune pyproject.tune.toml python.md
    for program in wpkctl wpkd wpk-worker wpk-builder wpk-runner wpk-evaluate; do
        add "$build/bin/$program" bin
    done
    add "$build/target/libwpk-halide.so" bin
    cp "$root/.deps/halide/share/doc/Halide/LICENSE.txt" "$folder/licenses/Halide" 2>/dev/null || true
    finish
fi
mkdir -p "$out"
mv "$work"/many/*.whl "$out/"
ls "$out"/*.whl

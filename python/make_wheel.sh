#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs the wheel of the package woodpecker, with libwpk and the libraries that it needs, into a folder:
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

mkdir "$work/package"
cp "$root/python/pyproject.toml" "$work/package/"
cp "$root/docs/python.md" "$work/package/README.md"
mkdir "$work/package/licenses" "$work/package/woodpecker"
cp "$root/LICENSE" "$work/package/licenses/"
for library in libcjson1 libsodium23; do
    cp "/usr/share/doc/$library/copyright" "$work/package/licenses/$library"
done
cp "$root"/python/woodpecker/*.py "$root/python/woodpecker/py.typed" "$work/package/woodpecker/"
cp -L "$build/runtime/libwpk.so.0" "$work/package/woodpecker/"
strip --strip-unneeded "$work/package/woodpecker/libwpk.so.0"

# The moment of the last commit, which zip files have as the time of their members.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 1700000000)
export SOURCE_DATE_EPOCH PATH="$tools:$PATH"
pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --no-index \
    --config-settings=--build-option="--plat-name=linux_x86_64 --python-tag=py3" \
    --wheel-dir "$work/linux" "$work/package"
auditwheel repair --wheel-dir "$work/many" "$work"/linux/*.whl >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mkdir -p "$out"
mv "$work"/many/*.whl "$out/"
ls "$out"/woodpecker-*.whl

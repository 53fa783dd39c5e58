#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages of the committed tree: packages.sh FOLDER. Needs debhelper, and what
# deploy/setup.sh installs; the wheels in .deps/ are part of the source, and nothing is fetched.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/woodpecker"
git -C "$root" archive HEAD | tar -x -C "$work/woodpecker"
mv "$work/woodpecker/deploy/debian" "$work/woodpecker/debian"
mkdir "$work/woodpecker/.deps"
for part in halide onednn licenses; do
    cp -a "$root/.deps/$part" "$work/woodpecker/.deps/"
done
# The same bytes whenever and wherever it is built: the time of the commit, and no path of this machine.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
DEB_BUILD_MAINT_OPTIONS=reproducible=+fixfilepath
export SOURCE_DATE_EPOCH DEB_BUILD_MAINT_OPTIONS
umask 022
(cd "$work/woodpecker" && dpkg-buildpackage --build=binary --no-sign)
cp "$work"/*.deb "$out/"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Called by `meson install`: DIRECTORY FILE... A file that is there is the administrator's: it stays.
set -eu
directory="${DESTDIR:-}$1"
shift
mkdir -p "$directory"
for file; do
    target="$directory/$(basename "$file")"
    if [ -e "$target" ]; then
        echo "$target stays as it is"
    else
        install -m 0644 "$file" "$target"
    fi
done

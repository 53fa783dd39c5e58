#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write files as C arrays: embed.py OUT.c NAME=FILE...; files of one name become one array. A zero byte follows
each, which its size does not count."""
import sys


def array(name, data):
    rows = [", ".join("0x%02x" % byte for byte in data[i:i + 16]) for i in range(0, len(data), 16)]
    return ("extern const unsigned char %s[];\nextern const size_t %s_size;\n"
            "const unsigned char %s[] = {\n    %s, 0x00,\n};\nconst size_t %s_size = %d;\n" %
            (name, name, name, ",\n    ".join(rows), name, len(data)))


with open(sys.argv[1], "w", encoding="ascii") as out:
    out.write("#include <stddef.h>\n")
    arrays = {}
    for argument in sys.argv[2:]:
        symbol, path = argument.split("=", 1)
        with open(path, "rb") as source:
            arrays[symbol] = arrays.get(symbol, b"") + source.read()
    for symbol, data in arrays.items():
        out.write(array(symbol, data))

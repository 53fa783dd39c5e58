# SPDX-License-Identifier: Apache-2.0
"""One name, one type: no struct, union, enum or typedef is defined twice in the tree.

Looked at are names that begin with wpk_ or bench_, and every name that a header defines: a name that only sources
define is known in its own file alone.
"""
import re

PREFIXES = ("wpk_", "bench_")
TAG = re.compile(r"\b(struct|union|enum)\s+(\w+)\s*\{")
TYPEDEF = re.compile(r"\btypedef\b([^;{}]*(?:\{[^{}]*\}[^;{}]*)?);", re.DOTALL)

# An interface of which each file that implements it has a struct of its own.
IMPLEMENTED_OFTEN = {
    "wpk_strategy",  # search/strategy/strategy.h: each strategy's state
    "bench_peer",  # bench/peer.h: each peer's library
}


def typedef_name(text):
    """The name that a typedef defines."""
    pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", text)
    words = re.findall(r"\w+", re.sub(r"\[[^\]]*\]", "", text))
    return pointer.group(1) if pointer else words[-1] if words else None


def definitions(code):
    """(name, offset) of each type that the code defines."""
    for match in TAG.finditer(code):
        yield match.group(2), match.start()
    for match in TYPEDEF.finditer(code):
        name = typedef_name(match.group(1))
        if name and not re.search(r"\b(struct|union|enum)\s+%s\b" % name, match.group(1)):
            yield name, match.start()


def check(files, code_only):
    places = {}
    in_header = set()
    for path, text in sorted(files.items()):
        if not path.endswith((".c", ".h", ".cc", ".hh")):
            continue
        code = code_only(text)
        for name, offset in definitions(code):
            places.setdefault(name, []).append((path, code.count("\n", 0, offset) + 1))
            if path.endswith((".h", ".hh")):
                in_header.add(name)
    for name, found in sorted(places.items()):
        known = name.startswith(PREFIXES) or name in in_header
        if known and len(found) > 1 and name not in IMPLEMENTED_OFTEN:
            path, line = found[1]
            yield "%s:%d: %s is a type of %s:%d, too" % (path, line, name, *found[0])

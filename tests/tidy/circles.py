# SPDX-License-Identifier: Apache-2.0
"""Circles of files: one calls another that, directly or through others, calls the first.

A file depends on the file that defines a function or table which it names; a header on the headers
that it includes. Tests are left out.
"""
import os
import re

NAME = r"((?:wpk|bench)_\w+)"
DEFINED = re.compile(r"^(?!static |extern |typedef |struct \w+ \{)[A-Za-z][^;{}()=#]*?\b" + NAME +
                     r"(?:\((?:[^;{}]|\n)*?\)\s*\{|(?:\[[^\]]*\])*\s*=)", re.MULTILINE)
USED = re.compile(r"(?<!struct )(?<!enum )\b" + NAME + r"\b")
INCLUDED = re.compile(r'^#include "([\w/.]+)"', re.MULTILINE)


def of_calls(sources):
    """{path: the paths that it depends on}, of .c and .cc files without comments and strings."""
    home = {}
    for path, text in sources.items():
        for name in DEFINED.findall(text):
            home.setdefault(name, set()).add(path)
    edges = {}
    for path, text in sources.items():
        used = set(USED.findall(text))
        # A name with several homes is chosen by the build: whichever is meant, it is no circle of ours.
        edges[path] = {next(iter(home[name])) for name in used if len(home.get(name, ())) == 1} - {path}
    return edges


def of_includes(headers):
    return {path: {name for name in INCLUDED.findall(text) if name in headers} for path, text in headers.items()}


def find(edges):
    """The strongly connected groups of two or more, after Tarjan (1972)."""
    index, low, stack, groups = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                groups.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return groups


def check(files, code_only):
    """A breach for each circle; `files`: {path: text}."""
    code = {path: code_only(text) for path, text in files.items()
            if path.endswith((".c", ".cc", ".h")) and "_test." not in path and not path.startswith("tests/")}
    sources = {path: text for path, text in code.items() if not path.endswith(".h")}
    headers = {path: text for path, text in code.items() if path.endswith(".h")}
    for group in find(of_calls(sources)) + find(of_includes(headers)):
        yield "%s: a circle of files: %s" % (group[0], ", ".join(os.path.basename(p) for p in group))

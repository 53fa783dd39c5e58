# SPDX-License-Identifier: Apache-2.0
"""The include graph of folders, drawn from the code into a document.

An arrow goes from a folder to each that its files include, without those that it also reaches through
another one. Tests are left out.
"""
import re

DOCUMENT = "docs/architecture.md"
BLOCK = re.compile(r"(?<=```mermaid\n)graph TD\n.*?(?=```)", re.DOTALL)
INCLUDED = re.compile(r'^#include "([\w/.]+)"', re.MULTILINE)


def edges_of(files, folder_of, is_test):
    """{folder: the folders that its files include}"""
    edges = {}
    for path, text in files.items():
        if path.endswith((".c", ".cc", ".h")) and not is_test(path):
            targets = edges.setdefault(folder_of(path), set())
            targets.update(folder_of(name) for name in INCLUDED.findall(text) if name in files)
    return {folder: targets - {folder} for folder, targets in edges.items()}


def reach(edges, folder):
    seen, waiting = set(), [folder]
    while waiting:
        for target in edges[waiting.pop()] - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def draw(edges, folders):
    """Mermaid's text, of `folders` alone."""
    lines = ["graph TD"]
    for folder in sorted(folders):
        below = edges.get(folder, set())
        through = set().union(*(reach(edges, other) for other in below))
        lines += ["    %s --> %s" % (folder, other) for other in sorted(below - through)]
    return "\n".join(lines) + "\n"


def check(document, drawn):
    """A breach if the document shows another graph."""
    if BLOCK.findall(document) != [drawn]:
        yield DOCUMENT + ": the include graph is not the code's; `tests/tidy/tidy.py --draw` draws it"

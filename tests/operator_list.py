# SPDX-License-Identifier: Apache-2.0
"""Compares the operators that docs/models.md lists with those of the program's table:

    operator_list.py WPKCTL MODELS.md

Each operator stands in one row of the page's table of operators. Ends with 1 and says which differ.
"""
import json
import re
import subprocess
import sys


def listed(page):
    """The operators of the page's table, with their domain before a dot if it is not ONNX's own."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    table = text[text.index("| | operators |"):].split("\n\n")[0]
    return re.findall(r"\b(?:(?:ai\.onnx\.\w+|com\.microsoft)\.)?[A-Z]\w+", table)


def main():
    said = json.loads(subprocess.run([sys.argv[1], "operators", "--json"], capture_output=True,
                                     text=True, check=True).stdout)
    known = {("" if op["domain"] == "ai.onnx" else op["domain"] + ".") + op["name"]
             for op in said["operators"]}
    page = listed(sys.argv[2])
    twice = {name for name in page if page.count(name) > 1}
    wrong = False
    for what, names in (("not in the page", known - set(page)), ("not in the table", set(page) - known),
                        ("twice in the page", twice)):
        if names:
            wrong = True
            print("%s: %s" % (what, ", ".join(sorted(names))))
    sys.exit(wrong)


if __name__ == "__main__":
    main()

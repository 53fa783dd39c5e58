#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the product on purpose and counts what the tests see. Run by hand, in hours of processor time:

    tests/mutate.py [--count N] [--seed S] [--work DIR] [FOLDER...]

N mutants (default 100) of the sources of FOLDER... (default coordinator common client): one token of one
line each: a condition negated, a comparison or an arithmetic operator exchanged, a constant changed, a
call deleted, a return of success before the work. DIR (default build-test/mutants) holds a copy of the
tree, its plain build and results.jsonl: the same command goes on where it was interrupted, and the same
seed draws the same mutants.

A mutant meets first the unit tests whose programs it is linked into, then the simulator if that is one
of them, then the end-to-end tests of its folder, until one fails: it is killed. When all mutants have
met the plain build, the survivors meet the same tests under ASan. A mutant survives when all pass. One
that does not build, or whose programs are the same code, is drawn again. In the end: the share killed,
and each survivor as a diff.
"""
import argparse
import difflib
import hashlib
import json
import os
import random
import re
import subprocess
import sys

import run

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A mutant that hangs is killed, too. A unit test takes a second.
UNIT_SECONDS_MAX, TEST_SECONDS_MAX = 90, 600

# folder: end-to-end tests that concern it, the quickest first; of all folders where none is longer.
END_TO_END = {
    "client": ("e2e_client", "e2e_input", "e2e_commands", "e2e_db", "e2e_https", "e2e_service", "e2e_outcomes", "e2e_tune"),
    "common": ("e2e_life", "e2e_worker_port", "e2e_watch", "e2e_https", "e2e_api", "e2e_hostile_http"),
    "coordinator": ("e2e_watch", "e2e_api", "e2e_service", "e2e_worker_fleet"),
    "coordinator/api": ("e2e_api", "e2e_service", "e2e_commands", "e2e_contract"),
    "coordinator/db": ("e2e_db", "e2e_export"),
    "coordinator/http": ("e2e_https", "e2e_life", "e2e_hostile_http"),
    "coordinator/store": ("e2e_faults", "e2e_db", "e2e_api", "e2e_full_disk"),
}

# (what it is called, pattern, replacements for what group 1 matches)
EXCHANGES = [
    ("comparison", r"(?<![-<>=])(<=|>=|==|!=|<|>)(?![<>=])(?= )",
     {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="]}),
    ("arithmetic", r"(?<= )([-+])(?= )", {"+": ["-"], "-": ["+"]}),
    ("logic", r"(?<= )(&&|\|\|)(?= |$)", {"&&": ["||"], "||": ["&&"]}),
    ("assignment", r"(?<= )(\+=|-=)(?= )", {"+=": ["-="], "-=": ["+="]}),
    ("boolean", r"\b(true|false)\b", {"true": ["false"], "false": ["true"]}),
]
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
CONDITION = re.compile(r"^( *(?:\} else )?(?:if|while) \()(.*)(\) \{)$")
CALL = re.compile(r"^ +(?!return|goto|if|while|for|switch|WPK_ASSERT|wpk_log|wpk_diag_set)[a-z_]\w*(?:->\w+)*\(.*\);$")


def code_lines(text):
    """(number, line) of what is code: no comments, directives or long strings."""
    inside = False
    for number, line in enumerate(text.split("\n")):
        begins, ends = "/*" in line, "*/" in line
        if not (inside or begins or line.startswith("#") or '"' in line or "'" in line
                or "WPK_ASSERT" in line or not line.strip()):
            yield number, line
        inside = (inside or begins) and not ends


def mutations(text):
    """All there are: (kind, line number, new line)."""
    lines = text.split("\n")
    for number, line in code_lines(text):
        if not line.startswith(" "):
            # Behind the head of a function that may fail.
            if line == "{" and re.match(r"(static )?wpk_err \w+\(", "".join(lines[max(0, number - 1):number])):
                yield "early success", number, "{ if (1) { return WPK_OK; }"
            continue
        match = CONDITION.match(line)
        if match:
            yield "negation", number, "%s!(%s)%s" % match.groups()
        for kind, pattern, others in EXCHANGES:
            for match in re.finditer(pattern, line):
                for other in others[match.group(1)]:
                    yield kind, number, line[:match.start(1)] + other + line[match.end(1):]
        for match in NUMBER.finditer(line):
            yield "constant", number, line[:match.start(1)] + str(int(match.group(1)) + 1) + line[match.end(1):]
        if CALL.match(line):
            yield "deletion", number, re.match(" *", line).group(0) + ";"


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout


class Workshop:
    """The copy of the tree, its build, and what depends on what in it."""

    def __init__(self, directory):
        self.tree = os.path.join(directory, "tree")
        self.build = os.path.join(self.tree, "build")
        os.makedirs(self.tree, exist_ok=True)
        for name in git("ls-files").split():
            self.put(name, open(os.path.join(ROOT, name), "rb").read())
        if not os.path.exists(os.path.join(self.tree, ".deps")):
            os.symlink(os.path.join(ROOT, ".deps"), os.path.join(self.tree, ".deps"))
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            subprocess.run(["meson", "setup", self.build, self.tree, "--libdir", "lib"], check=True, stdout=subprocess.DEVNULL)
        self.sanitized = os.path.join(self.tree, "sanitized")
        if not os.path.exists(os.path.join(self.sanitized, "build.ninja")):
            subprocess.run(["meson", "setup", self.sanitized, self.tree, "--libdir", "lib"] + run.VARIANTS["asan"][2],
                           check=True, stdout=subprocess.DEVNULL)
        self.ninja(check=True)
        self.tests = json.loads(self.ask("meson", "introspect", "--tests", self.build))
        self.before = self.digests()

    def put(self, name, data):
        """Written only if it is another: what is built of it stays."""
        path = os.path.join(self.tree, name)
        if not os.path.exists(path) or open(path, "rb").read() != data:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, os.stat(os.path.join(ROOT, name)).st_mode)

    @staticmethod
    def ask(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def ninja(self, check=False, build=None):
        return subprocess.run(["ninja", "-C", build or self.build], stdout=subprocess.DEVNULL,
                              check=check).returncode == 0

    def sanitize(self, tests):
        """The same tests, built under ASan and UBSan."""
        self.ninja(check=True, build=self.sanitized)
        names = {test["name"] for test in tests}
        return [test for test in json.loads(self.ask("meson", "introspect", "--tests", self.sanitized))
                if test["name"] in names]

    def digests(self):
        """By test, of its program's code and data; of everything in bin/ where it is a script."""
        def digest(path):
            sections = [word for name in (".text", ".rodata", ".data", ".data.rel.ro") for word in ("-j", name)]
            image = os.path.join(self.build, "image.bin")  # objcopy writes nothing into a pipe
            subprocess.run(["objcopy", "-O", "binary", *sections, path, image], stderr=subprocess.DEVNULL, check=True)
            with open(image, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        folder = os.path.join(self.build, "bin")
        programs = " ".join(digest(entry.path) for entry in sorted(os.scandir(folder), key=lambda e: e.name)
                            if entry.is_file())
        return {test["name"]: digest(test["cmd"][0]) if test["cmd"][0].startswith(self.build) else programs
                for test in self.tests}

    def concerned(self, source):
        """The tests that run other code than before, in the order in which they are to run."""
        folder = os.path.dirname(source)
        scripts = END_TO_END.get(folder, END_TO_END[folder.split("/")[0]])
        chosen = []
        now = self.digests()
        for test in self.tests:
            suites = {suite.split(":")[-1] for suite in test["suite"]}
            if suites & {"e2e"}:
                rank = 2 + scripts.index(test["name"]) if test["name"] in scripts else None
            elif suites & {"tidy", "deploy", "fuzz", "bench", "sim_seeds"}:
                rank = None
            else:
                rank = 1 if "sim" in suites else 0
            if rank is not None and now[test["name"]] != self.before[test["name"]]:
                chosen.append((rank, test))
        return [test for _, test in sorted(chosen, key=lambda pair: pair[0])]

    def passes(self, test):
        env = dict(os.environ, **run.TEST_ENV, **test["env"])
        process = subprocess.Popen(test["cmd"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True, cwd=self.tree)
        try:
            scripted = any(suite.endswith(("e2e", "sim")) for suite in test["suite"])
            return process.wait(TEST_SECONDS_MAX if scripted else UNIT_SECONDS_MAX) in (0, 77)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return False


def draw(rng, sources):
    """A mutant: each line of code is as likely as another."""
    while True:
        name = rng.choices(list(sources), [len(text) for text in sources.values()])[0]
        found = list(mutations(sources[name]))
        kinds = sorted({kind for kind, _, _ in found})
        if kinds:
            kind = rng.choice(kinds)
            return (name,) + rng.choice([one for one in found if one[0] == kind])


def meet(workshop, mutant, text, sanitized):
    """The outcome of a mutant in the plain build or under ASan: {outcome, by}; None if it does not build
    or no test depends on it."""
    name, _, number, new = mutant
    lines = text.split("\n")
    lines[number] = new
    workshop.put(name, "\n".join(lines).encode())
    try:
        if not workshop.ninja():
            return None
        tests = workshop.concerned(name)
        if not tests:
            return None
        for test in workshop.sanitize(tests) if sanitized else tests:
            if not workshop.passes(test):
                return {"outcome": "killed", "by": test["name"] + (" under ASan" if sanitized else "")}
        return {"outcome": "survived", "by": "", "passed": [test["name"] for test in tests],
                "sanitized": sanitized}
    finally:
        workshop.put(name, text.encode())


def report(results, sources):
    ended = [result for result in results if result["outcome"] != "none"]
    killed = sum(1 for result in ended if result["outcome"] == "killed")
    for result in ended:
        if result["outcome"] == "survived":
            before = sources[result["file"]].split("\n")
            after = list(before)
            after[result["line"]] = result["new"]
            print("\n".join(difflib.unified_diff(before, after, result["file"], result["kind"], lineterm="")))
            print("    passed: %s\n" % " ".join(result["passed"]))
    print("%d of %d killed" % (killed, len(ended)))


def main():
    parser = argparse.ArgumentParser(description="break the product, and count what the tests see")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", default=os.path.join(ROOT, "build-test/mutants"))
    parser.add_argument("folders", nargs="*", default=["coordinator", "common", "client"])
    options = parser.parse_args()
    work = os.path.abspath(options.work)
    sources = {name: open(os.path.join(ROOT, name), encoding="utf-8").read()
               for name in sorted(git("ls-files", *[folder + "/*.c" for folder in options.folders]).split())
               if not re.search(r"_test\.c$|/net_pair\.c$|/main\.c$", name)}
    workshop = Workshop(work)
    path = os.path.join(work, "results.jsonl")
    known = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = {json.dumps([one["file"], one["kind"], one["line"], one["new"]]): one
                     for one in map(json.loads, file)}
    rng = random.Random(options.seed)
    results = []

    def learn(mutant, sanitized):
        name, kind, number, new = mutant
        result = {"file": name, "kind": kind, "line": number, "new": new,
                  **(meet(workshop, mutant, sources[name], sanitized) or {"outcome": "none", "by": ""})}
        known[json.dumps(mutant)] = result
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        return result

    def show(count, result):
        print("%3d %-8s %s:%d %s %s" % (count, result["outcome"], result["file"], result["line"] + 1,
                                        result["kind"], result["by"]), flush=True)
    while sum(1 for result in results if result["outcome"] != "none") < options.count:
        mutant = draw(rng, sources)
        results.append(known.get(json.dumps(mutant)) or learn(mutant, False))
        show(len(results), results[-1])
    for i, result in enumerate(results):
        if result["outcome"] == "survived" and not result["sanitized"]:
            results[i] = learn([result[key] for key in ("file", "kind", "line", "new")], True)
            show(i + 1, results[i])
    report(results, sources)


if __name__ == "__main__":
    sys.exit(main())

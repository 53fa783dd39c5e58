# SPDX-License-Identifier: Apache-2.0
"""Sentences of comments and pages name their subject first.

A sentence may not begin with a pronoun, a relative clause or a question: the reader has to guess what it is about.
"""
import re

OPENING = re.compile(
    r"(What|Who|Whom|Whose|Whoever|Whatever|Its|Nobody|Nothing|Only what|Not beside|Of (?:two|several|these)|"
    r"Where [^.]{0,60}? is to)\b")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
SENTENCE = re.compile(r"(?:^|(?<=[.!?:]\s)|(?<=\n\n))\s*([A-Z][^.!?]*[.!?]?)")
REMARK = re.compile(r'(?:^|\s)(?:#|""")\s*(.*)')
CODE = (".c", ".h", ".cc", ".hh")


def sentences(path, text):
    """(line, sentence)"""
    if path.endswith(CODE):
        for block in COMMENT.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            for match in SENTENCE.finditer(re.sub(r"\n\s*\* ?", "\n", block.group(0)[2:-2])):
                yield line, match.group(1)
        return
    for line, content in enumerate(text.split("\n"), 1):
        if not path.endswith(".md"):
            remark = REMARK.search(content)
            content = remark.group(1) if remark else ""
        for sentence in re.split(r"(?<=[.!?])\s+", content.strip("| -*")):
            yield line, sentence


def check(path, text):
    """(line, message)"""
    for line, sentence in sentences(path, text):
        if OPENING.match(sentence):
            yield line, 'a sentence begins with "%s": name its subject' % OPENING.match(sentence).group(1)
        elif sentence.endswith("?") and path.endswith(CODE):
            yield line, "a comment asks: say what holds"

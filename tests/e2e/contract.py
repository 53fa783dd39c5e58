# SPDX-License-Identifier: Apache-2.0
"""Holds what wpkd answers to schema/openapi.yaml: what is required is there, what is there is
described, and each value is of its kind. Reads as much YAML as that file uses, so that the tests
need nothing but Python.
"""
import json
import os
import re

from lib import ROOT

KEY = re.compile(r'("[^"]*"|.+?):(?: +(.*))?$')
WORDS = {"true": True, "false": False, "null": None, "": None}


def scalar(text):
    text = text.strip()
    if text.startswith('"'):
        return json.loads(text)
    return int(text) if re.fullmatch(r"-?\d+", text) else WORDS.get(text, text)


class Flow:
    """{ a: b, c: [d, e] }"""

    def __init__(self, text):
        self.text = text
        self.at = 0

    def peek(self):
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1
        return self.text[self.at]

    def take(self, pattern):
        self.peek()
        match = re.compile(pattern).match(self.text, self.at)
        self.at = match.end()
        return scalar(match.group(0))

    def value(self):
        first = self.peek()
        if first not in "{[":
            return self.take(r'"(?:\\.|[^"\\])*"|[^,\[\]{}]*')
        self.at += 1
        items = [] if first == "[" else {}
        while self.peek() not in "}]":
            if first == "[":
                items.append(self.value())
            else:
                name = self.take(r'"[^"]*"|[^:,{}]+')
                items[name] = None
                if self.peek() == ":":
                    self.at += 1
                    items[name] = self.value()
            if self.peek() == ",":
                self.at += 1
        self.at += 1
        return items


class Block:
    """Lines that belong together by how far they are indented."""

    def __init__(self, text):
        lines = [line for line in text.split("\n") if line.strip() and line.lstrip()[0] != "#"]
        self.lines = [(len(line) - len(line.lstrip()), line.strip()) for line in lines]
        self.at = 0

    def indent(self):
        return self.lines[self.at][0] if self.at < len(self.lines) else -1

    def node(self):
        indent, text = self.lines[self.at]
        items = [] if text.startswith("- ") else {}
        while self.indent() == indent:
            text = self.lines[self.at][1]
            if isinstance(items, dict):
                name, rest = KEY.match(text).groups()
                self.at += 1
                items[scalar(name)] = self.value(rest or "", indent)
            elif text[2:].startswith("{"):
                self.at += 1
                items.append(self.value(text[2:], indent))
            else:
                self.lines[self.at] = (indent + 2, text[2:])
                items.append(self.node())
        return items

    def deeper(self, indent):
        text = ""
        while self.indent() > indent:
            text += " " + self.lines[self.at][1]
            self.at += 1
        return text

    def value(self, rest, indent):
        if rest == "" and self.indent() > indent and self.lines[self.at][1][0] not in "{[":
            return self.node()
        if rest == ">":
            return self.deeper(indent).strip()
        text = (rest + self.deeper(indent)).strip()
        return Flow(text).value() if text[:1] in ("{", "[") else scalar(text)


with open(os.path.join(ROOT, "schema/openapi.yaml"), encoding="utf-8") as contract_file:
    CONTRACT = Block(contract_file.read()).node()

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float), "null": type(None)}


def resolve(schema):
    """The schema with what it refers to, and all of its parts, in one."""
    whole = dict(schema)
    parts = whole.pop("allOf", [])
    reference = whole.pop("$ref", "")
    if reference.startswith("#/"):
        target = CONTRACT
        for name in reference[2:].split("/"):
            target = target[name]
        parts = [target] + parts
    for part in map(resolve, parts):
        whole["required"] = part.get("required", []) + whole.get("required", [])
        whole["properties"] = {**part.get("properties", {}), **whole.get("properties", {})}
        whole = {**part, **whole}
    return whole


def is_type(value, names):
    names = names if isinstance(names, list) else [names]
    return any(isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
               for name in names)


def complaints(schema, value, where):
    """Each way in which the value is not what the schema says."""
    schema = resolve(schema)
    if "oneOf" in schema:
        found = [list(complaints(one, value, where)) for one in schema["oneOf"]]
        yield from [] if [] in found else found[-1]
        return
    if "type" in schema and not is_type(value, schema["type"]):
        yield "%s is no %s: %r" % (where, schema["type"], value)
    elif value != schema.get("const", value) or value not in schema.get("enum", [value]):
        yield "%s may not be %r" % (where, value)
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield "%s does not look like %s: %r" % (where, schema["pattern"], value)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from complaints(schema.get("items", {}), item, "%s[%d]" % (where, number))
    elif isinstance(value, dict) and schema.get("properties"):
        for name in schema.get("required", []):
            if name not in value:
                yield "%s has no %s" % (where, name)
        for name, item in value.items():
            if name in schema["properties"]:
                yield from complaints(schema["properties"][name] or {}, item, where + "." + name)
            else:
                yield "%s.%s is not described" % (where, name)


def of_answer(method, path, status, content):
    """The complaints about an answer."""
    path = path.partition("?")[0]
    responses = {"default": {"$ref": "#/components/responses/Problem"}}
    for template, resource in CONTRACT["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/:]+", template), path) and method.lower() in resource:
            responses = {**responses, **resource[method.lower()]["responses"]}
    if str(status) not in responses and status < 400:
        return ["%s %s: status %d is not described" % (method, path, status)]
    response = resolve(responses.get(str(status), responses["default"]))
    for kind, body in response["content"].items():
        if kind.endswith("json"):
            return list(complaints(body["schema"], content, "the answer"))
    return []

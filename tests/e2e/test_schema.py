# SPDX-License-Identifier: Apache-2.0
"""schema/job.schema.json and the decoder say the same of a job."""
import json
import os
import re

from lib import ROOT, check, main, small_job

with open(os.path.join(ROOT, "schema/job.schema.json"), encoding="utf-8") as schema_file:
    SCHEMA = json.load(schema_file)

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}


def is_type(value, name):
    if name in ("integer", "number"):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and \
            (name == "number" or value == int(value))
    return isinstance(value, TYPES[name])


def bounds(schema, value):
    size = len(value) if isinstance(value, (str, list, dict)) else value
    lower = {str: "minLength", list: "minItems", dict: "minProperties"}.get(type(value), "minimum")
    upper = {str: "maxLength", list: "maxItems", dict: "maxProperties"}.get(type(value), "maximum")
    return isinstance(value, bool) or schema.get(lower, size) <= size <= schema.get(upper, size)


def is_valid(schema, value):
    """As much of JSON Schema as the job's uses."""
    if isinstance(schema, bool):
        return schema
    if "$ref" in schema and not is_valid(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], value):
        return False
    if "oneOf" in schema and sum(is_valid(one, value) for one in schema["oneOf"]) != 1:
        return False
    if "type" in schema and not is_type(value, schema["type"]):
        return False
    if value != schema.get("const", value) or value not in schema.get("enum", [value]):
        return False
    if not bounds(schema, value):
        return False
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return False
    if isinstance(value, list):
        return all(is_valid(schema.get("items", True), item) for item in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        rest = schema.get("additionalProperties", True)
        return all(name in value for name in schema.get("required", [])) and \
            all(is_valid(schema.get("propertyNames", True), name) and
                is_valid(known.get(name, rest), item) for name, item in value.items())
    return True


def verdict(box, job):
    """Does wpkctl accept it? And what does it say if not?"""
    code, _, err = box.run("wpkctl", "check", "--no-roofline", box.write("job.json", job))
    check(code in (0, 2), "accepted or rejected", code, err)
    return code == 0, err


def job_of(op):
    return {"ops": [{"name": "a", "op": op}]}


def shorthands():
    for reference in SCHEMA["$defs"]["named"]["properties"]["op"]["oneOf"]:
        yield SCHEMA["$defs"][reference["$ref"].rpartition("/")[2]]


def test_examples(box):
    for name in ("job.json", "demo.json"):
        with open(os.path.join(ROOT, "examples", name), encoding="utf-8") as file:
            job = json.load(file)
        check(is_valid(SCHEMA, job) and verdict(box, job)[0], "valid: " + name, verdict(box, job)[1])
    check(is_valid(SCHEMA, small_job()), "the tests' own job")


def test_shorthands(box):
    for schema in shorthands():
        for example in schema["examples"]:
            job = job_of(example)
            check(is_valid(SCHEMA, job), "an example is valid", example)
            accepted, err = verdict(box, job)
            check(accepted, "an example is accepted", example, err)
            for name in schema["required"]:
                less = job_of({k: v for k, v in example.items() if k != name})
                check(not is_valid(SCHEMA, less), "%s is required" % name, less)
                check(not verdict(box, less)[0], "%s is required" % name, less)
        types = schema["properties"]["type"]
        for name in types.get("enum", [types.get("const")]):
            job = job_of(dict(schema["examples"][0], type=name))
            if name != "matmul":
                accepted, err = verdict(box, job)
                check(accepted, "a type of that name is known", name, err)


def test_fields(box):
    """The fields of the schema are those of the decoder: none unknown, none more."""
    for schema in shorthands():
        example = schema["examples"][0]
        for name in schema["properties"]:
            accepted, err = verdict(box, job_of(dict(example, **{name: {"x": {}}})))
            check(not accepted and "unknown field" not in err, "a field of %s" % example["type"],
                  name, err)
        accepted, err = verdict(box, job_of(dict(example, novel=1)))
        check(not accepted and "novel" in err, "a field that is none", err)


def test_rejected(box):
    """The decoder rejects all jobs that the schema rejects."""
    op = small_job()["ops"][0]
    cases = [dict(small_job(), **change) for change in (
        {"ops": []}, {"ops": [dict(op, name="a b")]}, {"ops": [dict(op, layouts="nhwc")]},
        {"target": {"kind": "tpu"}}, {"target": {"threads": 0}}, {"target": {"cores": 1}},
        {"search": {"strategy": "magic"}}, {"search": {"seed": -1}}, {"search": {"seed": 1 << 60}},
        {"search": {"pin": {"a": 1}}}, {"budget": {"candidates": 0}}, {"budget": {"seconds": 1.5}},
        {"priority": 101}, {"owner": "me"}, {"name": "x" * 64}, {"novel": 1})]
    for job in cases:
        check(not is_valid(SCHEMA, job), "not valid", job)
        check(not verdict(box, job)[0], "not accepted", job)


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""A stored kernel can be built again from its record: same machine code, however it was asked for."""
import json
import struct

from lib import check, main, need

OP = """input X f32[1,16,14,14]
constant W f32[16,16,3,3]
output Y f32[1,16,14,14]
Y[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]
"""


def functions(path):
    """{name: machine code} of the generated functions in a shared object."""
    with open(path, "rb") as file:
        elf = file.read()
    start, = struct.unpack_from("<Q", elf, 0x28)
    size, count = struct.unpack_from("<HH", elf, 0x3A)
    # name, type, flags, address, offset, size, link
    sections = [struct.unpack_from("<IIQQQQI", elf, start + i * size) for i in range(count)]
    found = {}
    for symbols in (s for s in sections if s[1] == 2):
        names = sections[symbols[6]][4]
        for at in range(symbols[4], symbols[4] + symbols[5], 24):
            name, info, _, section, value, length = struct.unpack_from("<IBBHQQ", elf, at)
            name = elf[names + name:elf.index(b"\0", names + name)].decode()
            if info & 15 == 2 and name.startswith("wpk_") and length > 0:
                offset = sections[section][4] + value - sections[section][3]
                found[name] = elf[offset:offset + length]
    return found


def evaluate(box, work, *args):
    code, out, err = box.run("wpk-evaluate", "--op", box.path("op.txt"), "--quiet", "--time-ms", 1,
                             "--layouts", "any", "--keep", "--work", box.path(work), *args,
                             seconds=240)
    check(code == 0, "wpk-evaluate ended with %s" % code, args, err[-2000:])
    return [json.loads(line) for line in out.splitlines()]


def test_the_record_gives_the_code_again(box):
    need("wpk-evaluate", "wpk-builder", "wpk-runner")
    box.write("op.txt", OP)
    first = evaluate(box, "first", "--construct", 4)
    prepares = 0
    for number, trial in enumerate(first):
        record = trial["record"]
        again = evaluate(box, "again%d" % number, "--candidate", trial["candidate"])[0]["record"]
        check(again["schedule_sha256"] == record["schedule_sha256"], "another schedule", trial)
        check(again["artifact"]["sha256"] == record["artifact"]["sha256"],
              "the same candidate gives another shared object", trial["candidate"])
        path = box.write("schedule%d" % number, record["schedule"])
        by_hand = evaluate(box, "hand%d" % number, "--schedule", path)[0]["record"]
        check(by_hand["schedule_sha256"] == record["schedule_sha256"], "another schedule", trial)
        # The manifest says by whom the kernel was made, so the objects differ, the code does not.
        before, after = functions(record["artifact"]["path"]), functions(by_hand["artifact"]["path"])
        check(len(before["wpk_main"]) > 500, "there is code", before.keys())
        check(before == after, "other machine code", trial["candidate"])
        prepares += "wpk_prepare" in before
    check(prepares > 0, "one has something to prepare")


def test_an_edited_schedule_is_another_kernel(box):
    need("wpk-evaluate", "wpk-builder", "wpk-runner")
    box.write("op.txt", OP)
    record = evaluate(box, "first", "--construct", 1)[0]["record"]
    edited = record["schedule"].replace(" unroll ", " serial ", 1)
    check(edited != record["schedule"], "something was edited", record["schedule"])
    other = evaluate(box, "second", "--schedule", box.write("edited", edited))[0]["record"]
    check(other["outcome"] == "ok", "it runs", other)
    check(other["schedule_sha256"] != record["schedule_sha256"], "it has another identity")


if __name__ == "__main__":
    main(globals())

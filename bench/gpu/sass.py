#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Count the instructions of a cubin: FFMA in each function's loop that has the most, and loads and stores of 16 bytes.

    build/tests/cuda_counts FILE STEM && bench/gpu/sass.py NVDISASM STEM.cubin

NVDISASM is NVIDIA's disassembler, of the CUDA toolkit."""
import re
import subprocess
import sys

INSTRUCTION = re.compile(r"^\s+(?:/\*[0-9a-f]+\*/)?\s+(?:@!?U?P\d+ )?([A-Z][A-Z0-9_.]*)(.*?);")


def functions(text):
    """{name: [(label or None, opcode, operands)]}"""
    found, lines = {}, None
    for line in text.splitlines():
        name = re.match(r"\.text\.(\w+):", line)
        label = re.match(r"(\.L_\w+):", line)
        instruction = INSTRUCTION.match(line)
        if name:
            lines = found.setdefault(name.group(1), [])
        elif label and lines is not None:
            lines.append((label.group(1), "", ""))
        elif instruction and lines is not None:
            lines.append((None, instruction.group(1), instruction.group(2)))
    return found


def main_loop(lines):
    """Opcodes of the loop with the most FFMA."""
    places = {label: i for i, (label, _, _) in enumerate(lines) if label}
    best = []
    for i, (_, opcode, operands) in enumerate(lines):
        target = re.search(r"`\((\.L_\w+)\)", operands)
        if opcode.startswith("BRA") and target and places.get(target.group(1), i) < i:
            body = [op for label, op, _ in lines[places[target.group(1)]:i + 1] if not label]
            if body.count("FFMA") > best.count("FFMA"):
                best = body
    return best


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    text = subprocess.run([sys.argv[1], "-c", sys.argv[2]], capture_output=True, text=True, check=True).stdout
    for name, lines in functions(text).items():
        loop = main_loop(lines)
        opcodes = [op for label, op, _ in lines if not label]
        print("%s: %d instructions, main loop %d, of which FFMA %d (%.0f %%)" %
              (name, len(opcodes), len(loop), loop.count("FFMA"), 100 * loop.count("FFMA") / max(1, len(loop))))
        for title, heads in (("shared loads", ("LDS",)), ("global copies to shared memory", ("LDGSTS",)),
                             ("global stores", ("STG",)), ("local memory", ("LDL", "STL"))):
            all_of = [op for op in opcodes if op.split(".")[0] in heads]
            print("  %-31s %4d, of 16 bytes %d" % (title, len(all_of), sum(".128" in op for op in all_of)))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""--trace shows where the wall time goes; and that two engines of one machine time in turns."""
import json

from lib import check, main, need

OP = """input X f32[1,16,14,14]
constant W f32[16,16,3,3]
output Y f32[1,16,14,14]
Y[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]
"""
STEPS = ("plan", "build", "verify", "measure")


def start(box, number, *args):
    return box.start("wpk-evaluate", "--op", box.path("op.txt"), "--quiet", "--layouts", "any",
                     "--construct", 4, "--trace", box.path("trace%d" % number), *args)


def finish(box, number, process):
    """The trace's spans: (name, trial, begin, end, row), in microseconds."""
    code, out, err = process.wait(240)
    check(code == 0, "wpk-evaluate ended with %s" % code, err[-2000:])
    check(len(out.splitlines()) == 4, "all were tried", out)
    with open(box.path("trace%d" % number), encoding="utf-8") as file:
        events = json.load(file)
    rows = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    check(sorted(rows.values()) == ["engine", "runner"], "the rows have names", rows)
    spans = []
    for event in events:
        check(event["ph"] in "MX" and event["pid"] == 1, "a span or a name", event)
        if event["ph"] == "X":
            check(event["ts"] > 0 and event["dur"] >= 0, "a time", event)
            spans.append((event["name"], event["args"]["trial"], event["ts"],
                          event["ts"] + event["dur"], rows.get(event["tid"], "builder")))
    return spans


def test_each_step_of_each_trial_is_there(box):
    need("wpk-evaluate", "wpk-builder", "wpk-runner")
    box.write("op.txt", OP)
    spans = finish(box, 0, start(box, 0, "--time-ms", 5))
    by_trial = {}
    for name, trial, begin, end, row in spans:
        by_trial.setdefault(trial, {})[name] = (begin, end, row)
    check(set(by_trial) == {0, 1, 2, 3}, "every trial", spans)
    measured = [steps for steps in by_trial.values() if "measure" in steps]
    check(measured, "somebody was measured", spans)
    for steps in measured:
        check(all(step in steps for step in STEPS), "every step", steps)
        ends = [steps[step][:2] for step in STEPS]
        check(all(a[1] <= b[0] for a, b in zip(ends, ends[1:])), "one after the other", steps)
        check([steps[step][2] for step in STEPS] == ["engine", "builder", "runner", "runner"],
              "on the row of who did it", steps)
        check(steps["measure"][1] - steps["measure"][0] >= 5000, "as long as was asked for", steps)


def test_engines_of_one_machine_time_in_turns(box):
    need("wpk-evaluate", "wpk-builder", "wpk-runner")
    box.write("op.txt", OP)
    both = [start(box, number, "--time-ms", 500) for number in range(2)]
    traces = [finish(box, number, process) for number, process in enumerate(both)]
    for spans in traces:
        check(any(s[0] == "measure" for s in spans), "each has measured", spans)
    for name, _, begin, end, _ in traces[0]:
        for other, _, other_begin, other_end, _ in traces[1]:
            if name == other == "measure":
                check(end <= other_begin or other_end <= begin, "at the same time",
                      (begin, end), (other_begin, other_end))


if __name__ == "__main__":
    main(globals())

# SPDX-License-Identifier: Apache-2.0
"""--trace shows where the wall time goes, and two engines of one machine time in turns; one id follows
a candidate through the logs of wpkd, worker, builder and runner, whatever becomes of it."""
import json
import os
import signal

from lib import CONVOLUTION, Service, check, kill, main, need, small_job, wait_for

OP = """input X f32[1,16,14,14]
constant W f32[16,16,3,3]
output Y f32[1,16,14,14]
Y[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]
"""
STEPS = ("plan", "build", "verify", "measure")
CANDIDATES = 30  # enough for three of them to be met at work


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
    both = [start(box, number, "--time-ms", 200) for number in range(2)]
    traces = [finish(box, number, process) for number, process in enumerate(both)]
    for spans in traces:
        check(any(s[0] == "measure" for s in spans), "each has measured", spans)
    for name, _, begin, end, _ in traces[0]:
        for other, _, other_begin, other_end, _ in traces[1]:
            if name == other == "measure":
                check(end <= other_begin or other_end <= begin, "at the same time",
                      (begin, end), (other_begin, other_end))


class Logs:
    """The logs of all programs, as JSON, a line an event."""

    def __init__(self, *processes):
        self.processes = processes
        self.done = set()

    def lines(self, **wanted):
        found = []
        for process in self.processes:
            process.note()
            for line in process.text(process.err).splitlines(keepends=True):
                if not line.endswith("\n") or line.startswith("=="):
                    continue  # half a line as yet, or a sanitizer's
                event = json.loads(line)
                if all(event.get(name) == value for name, value in wanted.items()):
                    found.append(event)
        return found

    def of(self, work):
        """(program, event) in the order in which each program said it."""
        return [(line["program"], line["event"]) for line in self.lines(work=work)]

    def strike(self, event, number, outcome):
        """Kill children that have just been announced by `event` until one has died of it; its id."""
        def struck():
            for line in self.lines(event=event):
                if line["pid"] not in self.done and "/trial/" in line["work"]:
                    self.done.add(line["pid"])
                    try:
                        os.kill(int(line["pid"]), number)
                    except ProcessLookupError:
                        pass  # it was faster
            ended = event.replace("started", "ended")
            return [line["work"] for line in self.lines(event=ended, outcome=outcome)
                    if line["level"] == "info" and signal.Signals(number).name in str(line)]
        return wait_for("a child dies at " + event, struck, 90)[0]


def interrupt_runner(logs, worker):
    """kill -9 of wpk-runner itself, with a candidate, whose id is returned. Each start is struck once: a
    second strike before the next start would be the end of the candidate's attempts."""
    struck = []

    def interrupted():
        started, ended = logs.lines(event="run_started"), logs.lines(event="run_ended")
        if started and started[-1] not in struck and started[-1]["work"] not in [line["work"] for line in ended]:
            struck.append(started[-1])
            kill(worker.find("wpk-runner"))
        return [line["work"] for line in logs.lines(event="interrupted", by="wpk-runner")]
    return wait_for("the runner dies with a candidate", interrupted, 60)[0]


def check_story(logs, work, outcome):
    said = logs.of(work)
    story = [("wpkd", "leased"), ("wpk-worker", "taken"), ("wpk-builder", "build_started"),
             ("wpk-builder", "build_ended"), ("wpk-worker", "ended"), ("wpk-worker", "brought"),
             ("wpkd", "received")]
    if outcome != "build_error":
        story += [("wpk-runner", "run_started"), ("wpk-runner", "run_ended")]
    check(not set(story) - set(said), "everybody tells of it", work, said)
    last = logs.lines(work=work, event="received")[-1]
    check(last["outcome"] == outcome and last["worker"] == "w", "what wpkd heard, from whom", last)


def test_one_id_follows_a_candidate(box):
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    talkative = ("--log-level", "debug", "--log-format", "json")
    service = Service(box, options=talkative)
    worker = service.add_worker("--name", "w", "--data", box.dir, *talkative)
    logs = Logs(service.wpkd, worker)
    job = service.ask("POST", "/v1/jobs", small_job(ops=[CONVOLUTION], budget={
        "candidates": CANDIDATES, "seconds": 200}))[1]["id"]
    crashed = logs.strike("run_started", signal.SIGABRT, "run_crash")
    unbuilt = logs.strike("build_started", signal.SIGABRT, "build_error")
    interrupted = interrupt_runner(logs, worker)
    wait_for("the job is done", lambda: service.ask("GET", "/v1/jobs/" + job)[1]["state"] == "done", 120)
    trials = service.ask("GET", "/v1/jobs/%s/trials?page_size=100" % job)[1]["trials"]
    by_work = {trial["work"]: trial for trial in trials}
    check(len(by_work) == len(trials), "each has its id", list(by_work))
    check(sum(trial["index"] >= 0 for trial in trials) == CANDIDATES, "every candidate is one", list(by_work))
    check(by_work[crashed]["outcome"] == "run_crash" and by_work[unbuilt]["outcome"] == "build_error",
          "the API's words", by_work[crashed], by_work[unbuilt])
    check_story(logs, crashed, "run_crash")
    check_story(logs, unbuilt, "build_error")
    check(("wpk-worker", "runner_died") in logs.of(interrupted), "who had it when it died", interrupted)
    starts = logs.lines(work=interrupted, event="run_started")
    check(len(starts) >= 2, "it was run once more", starts)
    for work, trial in by_work.items():
        said = logs.of(work)
        check(all(event in said for event in (("wpkd", "leased"), ("wpk-worker", "taken"),
                                              ("wpk-worker", "ended"), ("wpkd", "received"))),
              "nobody is left out", work, said)
        check(logs.lines(work=work, event="received")[-1]["outcome"] == trial["outcome"], "one word", work)
    check(logs.lines(event="joined")[0]["server"].startswith("wpkd "), "whom it joined", logs.lines(event="joined"))
    finals = [line["work"] for line in logs.lines(event="run_ended") if "/final/" in line["work"]]
    check(finals and ("wpkd", "leased") in logs.of(finals[0]), "finals too", finals)
    service.stop()


if __name__ == "__main__":
    main(globals())

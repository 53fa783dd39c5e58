#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast candidates were built, verified and timed, read from the history of tuning runs.

    bench/rates.py HISTORY.db [OPERATOR...]

One table for each job that ended: a line for each operator, with the candidates that its search
asked for and nobody knew, their outcomes, and where their time went. `wall` is from the job's start
to its end, finals and vendors included; builders work beside the timing, so the columns of
milliseconds add up to more than the wall time. With OPERATORs, totals count those alone, and `wall`
is from the first of their results to the last.
"""
import sqlite3
import sys

ASKED = """
SELECT trial.outcome, trial.build_ns, trial.verify_ns, trial.recorded_at
FROM ask JOIN trial ON trial.id = ask.trial_id
WHERE ask.search_id = ? AND ask.known = 0 ORDER BY trial.recorded_at
"""


def quantile(values, share):
    """The smallest value that `share` of them do not exceed."""
    values = sorted(values)
    return values[max(0, -int(-share * len(values) // 1) - 1)]


def line(name, rows, seconds):
    builds = [build for _, build, _, _ in rows if build > 0] or [0]
    failed = sum(outcome != "ok" for outcome, _, _, _ in rows)
    print("%-22s %5d %6d %7.1f %6.2f  %8.0f %6.0f %6.0f %6.0f  %6.0f" % (
        name, len(rows), failed, seconds, len(rows) / seconds,
        quantile(builds, 0.5) / 1e6, quantile(builds, 0.9) / 1e6, quantile(builds, 0.99) / 1e6,
        max(builds) / 1e6, sum(row[2] for row in rows) / len(rows) / 1e6))


def show(db, number, name, wall, wanted):
    searches = db.execute("SELECT name, search_id FROM job_op WHERE job_number = ? AND"
                          " search_id IS NOT NULL ORDER BY position", (number,)).fetchall()
    print("job %s" % name)
    print("%-22s %5s %6s %7s %6s  %8s %6s %6s %6s  %6s" % (
        "", "tried", "failed", "s", "1/s", "build ms", "90 %", "99 %", "most", "verify"))
    total = []
    for op, search in searches:
        rows = db.execute(ASKED, (search,)).fetchall()
        if not rows or (wanted and op not in wanted):
            continue
        line(op, rows, (rows[-1][3] - rows[0][3]) / 1e9 or 1)
        total += rows
    if total:
        stamps = [row[3] for row in total]
        line("all", total, (max(stamps) - min(stamps)) / 1e9 or 1)
        print("wall %.0f s, %.2f candidates a second\n" % (wall, len(total) / wall))


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    db = sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True)
    for job in db.execute("SELECT number, name, (finished_at - started_at) / 1e9 FROM job"
                          " WHERE finished_at > 0 ORDER BY number").fetchall():
        show(db, *job, set(sys.argv[2:]))


if __name__ == "__main__":
    main()

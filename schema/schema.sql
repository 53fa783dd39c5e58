-- SPDX-License-Identifier: Apache-2.0
--
-- The history of one wpkd: version 17. coordinator/store/store.c is the only writer.
--
--   owner ─< job ─< job_op >─ search >─ problem ─< trial ─< measurement
--     └─< token                 └──< ask >──────────┘
--                               └──< kernel >─ artifact
--
-- Times are integers: *_ns durations in nanoseconds, *_at wall clock in nanoseconds since 1970.
-- Rows are only added, or filled in; what was measured is never rewritten. PRAGMA user_version is
-- the version of this file; a database of another version is refused.
-- `epoch`: which life of the store wrote the row. It grows by one each time the store is opened,
-- so that several writers, one after the other, can be told apart.

-- One row: what belongs to the store itself.
CREATE TABLE installation (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    epoch      INTEGER NOT NULL,        -- of the wpkd that has the store open, or had it last
    created_at INTEGER NOT NULL,
    artifact_bytes INTEGER NOT NULL,    -- sum of artifact.size
    -- The last entry of the log that keeps all changes elsewhere (coordinator/store/keeper.h).
    log_id     INTEGER NOT NULL DEFAULT 0, -- of the log, random; 0: there is none
    log_number INTEGER NOT NULL DEFAULT 0,
    log_tag    INTEGER NOT NULL DEFAULT 0  -- random: two entries of one number differ in it
);

-- Within a problem times can be compared and results shared: the history's key.
CREATE TABLE problem (
    id           INTEGER PRIMARY KEY,
    fingerprint  TEXT NOT NULL,         -- SHA-256 of the operator's canonical form
    layouts      TEXT NOT NULL,         -- "fixed" or "any"
    device_class TEXT NOT NULL,         -- schema/device.h
    environment  TEXT NOT NULL,         -- versions: "codegen=1;halide=21.0.0;onednn=3.2.0"
    policy       TEXT NOT NULL,         -- how it is timed: "threads=1;conditions=warm;..."
    family       TEXT NOT NULL,         -- fingerprint with the extents and borders erased
    extents      TEXT NOT NULL,         -- of the canonical form's axes: "64,64,56,56,3,3"; within a
                                        -- family as many everywhere, so shapes have a distance
    constants    TEXT NOT NULL DEFAULT '', -- hash of the extents of constants, in the family's
                                        -- order
    op           TEXT NOT NULL,         -- the operator's canonical form
    flops        REAL NOT NULL,         -- of one call
    bytes        REAL NOT NULL,         -- of its inputs, constants and outputs
    created_at   INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    UNIQUE (fingerprint, layouts, device_class, environment, policy)
);
CREATE INDEX problem_family ON problem (family);

-- A strategy at work on a problem. Jobs that agree on the whole row share it.
CREATE TABLE search (
    id            INTEGER PRIMARY KEY,
    problem_id    INTEGER NOT NULL REFERENCES problem,
    strategy      TEXT NOT NULL,        -- "ga"
    options       TEXT NOT NULL,        -- of the strategy, sorted: "ga.crossover=0.4;..."; "": none
    prior         TEXT NOT NULL,        -- SHA-256 of the prior that it begins from; "": none
    pins          TEXT NOT NULL,        -- sorted: "gene=value;..."; "" for none
    packing       TEXT NOT NULL DEFAULT '', -- of pins that share it: a candidate that packs constants
                                        -- as this search does; "": none was there
    seed          TEXT NOT NULL,        -- 64 bits in decimal
    providers     TEXT NOT NULL,        -- whose implementations compete: "halide-cpu;onednn",
                                        -- or "halide-cpu+c/gcc-12.2.0;onednn"
    space_version TEXT NOT NULL,        -- of the candidates' texts
    accuracy      TEXT NOT NULL,        -- what an answer has to fit: "standard"; schema/accuracy.h
    anchor        TEXT NOT NULL,        -- artifact whose time all ratios are to: of its first ok
                                        -- candidate; "": none yet; once set it stays
    stand_in      TEXT NOT NULL,        -- artifact that its candidates are timed in turns with: the
                                        -- anchor; another one since that was lost; "": none now
    stand_in_ratio REAL NOT NULL,       -- time of that over the anchor's; 0: none
    elapsed_ns    INTEGER NOT NULL,     -- time spent on it so far
    ended_asks    INTEGER NOT NULL,     -- asks that the last result took into account; 0: none yet
    exhausted     INTEGER NOT NULL,     -- 1: the space holds nothing that was not asked
    kernel_id     INTEGER REFERENCES kernel, -- the last result; NULL: none yet
    -- What a restart goes on from: the strategy as it was after `snapshot_told` tells. What came
    -- after it is in `ask`.
    snapshot         TEXT NOT NULL,     -- the strategy's own text; "": none, tell it all
    snapshot_version TEXT NOT NULL,     -- of that text: strategy and version; another one is told all
    snapshot_told    INTEGER NOT NULL,
    ok_count         INTEGER NOT NULL,  -- of the first `snapshot_told` asks
    failed_count     INTEGER NOT NULL,
    known_count      INTEGER NOT NULL,
    best             TEXT NOT NULL,     -- numbers of the best of them, best first: "17,4;33"; those
                                        -- before the semicolon keep their artifacts
    created_at    INTEGER NOT NULL,
    epoch         INTEGER NOT NULL,
    UNIQUE (problem_id, strategy, options, prior, pins, seed, providers, space_version, accuracy)
);

-- What trials of other operators have taught (search/model/prior.h); searches and jobs name it.
CREATE TABLE prior (
    sha256     TEXT PRIMARY KEY,
    text       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    epoch      INTEGER NOT NULL
) WITHOUT ROWID;

-- Candidates with times that were measured elsewhere, by another tuner or on another device: a
-- search that begins later measures the fastest ones, and learns the others (search/strategy/hints.h). They
-- are no results: none is served.
CREATE TABLE hint (
    fingerprint TEXT NOT NULL,          -- of the operator, as in problem; the next one, too
    layouts     TEXT NOT NULL,
    candidate   TEXT NOT NULL,          -- genes as text
    time_ns     REAL NOT NULL,
    created_at  INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, layouts, candidate)
) WITHOUT ROWID;

-- One candidate of one provider, and what became of it: the row is there from the first ask on, the
-- outcome follows. The first result that settles it stays: a failure, or a whole time and an
-- artifact (of a vendor: a time). Later searches take that from here; what was abandoned, raced out
-- or left no artifact they measure again. A winner that is rejected on fresh inputs has failed.
CREATE TABLE trial (
    id              INTEGER PRIMARY KEY,
    problem_id      INTEGER NOT NULL REFERENCES problem,
    provider        TEXT NOT NULL,      -- "halide-cpu", "c/gcc-12.2.0", "onednn", "plain"
    candidate       TEXT NOT NULL,      -- genes as text; "" for a vendor; of the plain
                                        -- kernel "algorithm=direct"
    candidate_hash  BLOB NOT NULL,      -- first 16 bytes of the SHA-256 of provider, a zero byte and
                                        -- candidate: what is unique, and short
    outcome         TEXT NOT NULL,      -- schema/record.h; "": asked, no result yet
    log             TEXT NOT NULL,      -- bounded excerpt; for ok a remark, or ""
    detail          TEXT NOT NULL,      -- what a vendor chose
    schedule_sha256 TEXT NOT NULL,      -- identity of what was built; "" for a vendor
    artifact_sha256 TEXT NOT NULL,      -- "" when the shared object was not kept
    error_max       REAL NOT NULL,      -- largest |y - ref|
    error_tolerance REAL NOT NULL,
    of_rms          REAL NOT NULL,      -- rms(y - y64) / rms(y64) on the uniform set of inputs
    times_direct    REAL NOT NULL,      -- rms error over that of direct evaluation, the largest of
                                        -- all sets; 0: exact; -1: not measured
    constants_bytes INTEGER NOT NULL,   -- of the prepared constants
    launch          TEXT NOT NULL DEFAULT '{}', -- the most that a launch of a GPU's kernel needs, JSON
                                        -- as in a record (schema/record.c)
    unseen          TEXT NOT NULL,      -- faults that no set of inputs shows; "" for none
    recipe          TEXT NOT NULL,      -- a vendor's entry of a choice, JSON; "" for none
    build_ns        INTEGER NOT NULL,
    verify_ns       INTEGER NOT NULL,
    recorded_at     INTEGER NOT NULL,
    epoch           INTEGER NOT NULL,
    UNIQUE (problem_id, candidate_hash)
);

-- One timing of a trial: its own ("trial" or "vendor"; several, if it was measured again: the last
-- that is not censored counts), one in a search's "final", one on fresh inputs ("verify"). A trial
-- that failed in the end may have some, from before.
CREATE TABLE measurement (
    trial_id     INTEGER NOT NULL REFERENCES trial,
    number       INTEGER NOT NULL,      -- of the trial's measurements, from 0
    kind         TEXT NOT NULL,         -- schema/message.h: "trial", "vendor", "final", ...
    search_id    INTEGER REFERENCES search, -- the search that asked for it
    worker       TEXT NOT NULL,
    instance     TEXT NOT NULL,         -- of the device: host and slot
    median_ns    INTEGER NOT NULL,
    min_ns       INTEGER NOT NULL,
    mad_ns       INTEGER NOT NULL,      -- median absolute deviation
    repeat_count INTEGER NOT NULL,      -- calls averaged in a sample
    censored     INTEGER NOT NULL,      -- 1: stopped early because clearly slower; a lower bound
    anchor_ns    INTEGER NOT NULL,      -- of what it was timed in turns with: the search's anchor or
                                        -- its stand-in; 0: none
    anchor_ratio REAL NOT NULL,         -- median of its samples over the anchor's, pair by pair; of
                                        -- a stand-in's, times stand_in_ratio; 0: none
    anchor       TEXT NOT NULL,         -- the search's anchor, which the ratio is to; "": none
    samples_ns   TEXT NOT NULL,         -- JSON array, one call each
    counters     TEXT NOT NULL,         -- JSON object of hardware counters; "" for none
    measured_at  INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    PRIMARY KEY (trial_id, number)
) WITHOUT ROWID;

-- The event log of a search: ask after ask, recorded before the candidate is leased to anybody.
CREATE TABLE ask (
    search_id INTEGER NOT NULL REFERENCES search,
    number    INTEGER NOT NULL,         -- from 0, without gaps: the order of asks and of tells
    trial_id  INTEGER NOT NULL REFERENCES trial, -- its candidate, and what became of it
    source    TEXT NOT NULL,            -- of the candidate, as in openapi.yaml: "constructed", ...
    ended     INTEGER NOT NULL,         -- 1: this search has its result
    known     INTEGER NOT NULL,         -- 1: history had the result when it was asked
    epoch     INTEGER NOT NULL,
    PRIMARY KEY (search_id, number)
) WITHOUT ROWID;

-- How a search converged, without a look at all of its asks: bucket N is ask N below 16; above, each
-- power of two is divided into 16 buckets, so that a million asks have 272.
CREATE TABLE search_bucket (
    search_id  INTEGER NOT NULL REFERENCES search,
    number     INTEGER NOT NULL,
    ok         INTEGER NOT NULL,        -- ended asks with a whole time
    failed     INTEGER NOT NULL,        -- all others that ended
    best_ns    INTEGER NOT NULL,        -- the shortest median of these; 0: none
    best_ask   INTEGER NOT NULL,        -- number of its ask
    best_trial INTEGER NOT NULL,        -- id of its trial
    best_at    INTEGER NOT NULL,
    PRIMARY KEY (search_id, number)
) WITHOUT ROWID;

-- How the asks of a search ended, likewise.
CREATE TABLE search_outcome (
    search_id  INTEGER NOT NULL REFERENCES search,
    outcome    TEXT NOT NULL,           -- as in trial; "raced out": stopped early, clearly slower
    count      INTEGER NOT NULL,
    last_trial INTEGER NOT NULL,        -- id of the last one's trial
    PRIMARY KEY (search_id, outcome)
) WITHOUT ROWID;

-- What is served: the answer of a search. A problem serves one kernel for each accuracy class that
-- it was searched in: the pinned one if there is one, else the last answer that replaced what was
-- served before; never one that was revoked. A lookup in a class takes the fastest served kernel
-- whose error fits it. Kernels that were verified in the same final and lost are rows as well, and so
-- is the plain kernel: they take the place of one that is revoked, the plain kernel last.
CREATE TABLE kernel (
    id              INTEGER PRIMARY KEY,
    problem_id      INTEGER NOT NULL REFERENCES problem,
    search_id       INTEGER NOT NULL REFERENCES search,
    provider        TEXT NOT NULL,      -- whose implementation it is
    artifact_sha256 TEXT NOT NULL,      -- "" for a vendor's
    plain_sha256    TEXT NOT NULL,      -- of the problem's plain kernel, which is a row of its own,
                                        -- by provider "plain"; "": none
    accuracy        TEXT NOT NULL,      -- of its search
    times_direct    REAL NOT NULL,      -- as in trial
    median_ns       INTEGER NOT NULL,
    served          INTEGER NOT NULL,   -- 1: the class's best; at most one of problem and class
    served_at       INTEGER NOT NULL,   -- when it last became the served one; 0: it never was
    pinned          INTEGER NOT NULL,   -- 1: served whatever searches find, until it is unpinned
    revoked_at      INTEGER NOT NULL,   -- 0: it was not
    revoked_reason  TEXT NOT NULL,
    verified_by     TEXT NOT NULL,      -- the worker that verified it on fresh inputs; "": a vendor's
    document        TEXT NOT NULL,      -- the resource of openapi.yaml, without a job's fields
    manifest        TEXT NOT NULL,      -- what libwpk loads by, byte for byte; "": a vendor's
    signature       TEXT NOT NULL,      -- Ed25519 over the manifest's bytes, hexadecimal; "": none
    created_at      INTEGER NOT NULL,
    epoch           INTEGER NOT NULL
);
CREATE INDEX kernel_problem ON kernel (problem_id);
CREATE INDEX kernel_artifact ON kernel (artifact_sha256);
CREATE UNIQUE INDEX kernel_served ON kernel (problem_id, accuracy) WHERE served = 1;

-- Shared objects by content; the bytes lie in artifacts/ of the data directory.
CREATE TABLE artifact (
    sha256     TEXT PRIMARY KEY,
    size       INTEGER NOT NULL,        -- bytes
    used_at    INTEGER NOT NULL,        -- asked for or made, to the day: what is pruned first
    kept       INTEGER NOT NULL,        -- how many searches have it among their best: while there
                                        -- are any, or a kernel names it, it is not pruned
    created_at INTEGER NOT NULL,
    epoch      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX artifact_unkept ON artifact (used_at) WHERE kept = 0;

CREATE TABLE job (
    number      INTEGER PRIMARY KEY,    -- the order of submission
    id          TEXT NOT NULL UNIQUE,   -- "j" and 16 hexadecimal digits
    name        TEXT NOT NULL,
    owner       TEXT NOT NULL,          -- from the token, or the user at the other end of the socket
    priority    INTEGER NOT NULL,
    state       TEXT NOT NULL,          -- queued, running, paused, done, failed, cancelled
    reason      TEXT NOT NULL,          -- why it failed
    document    TEXT NOT NULL,          -- once ended: the resource of openapi.yaml; before: ""
    created_at  INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,       -- 0: not yet
    finished_at INTEGER NOT NULL,       -- 0: not yet
    -- The file's content besides its operators: a start does not read the file again.
    kind        TEXT NOT NULL,          -- of the device: "cpu"
    device      TEXT NOT NULL,          -- class that it is for; "": any
    threads     INTEGER NOT NULL,
    labels      TEXT NOT NULL,          -- "name=value" of each, a line each
    strategy    TEXT NOT NULL,
    options     TEXT NOT NULL,          -- of the strategy, as in search
    prior       TEXT NOT NULL,          -- likewise
    seed        TEXT NOT NULL,          -- 64 bits in decimal
    candidates  INTEGER NOT NULL,       -- budget of each operator
    total       INTEGER NOT NULL,       -- budget of all together, in candidates; 0: none
    time_ns     INTEGER NOT NULL,       -- likewise
    until       TEXT NOT NULL,          -- what ends it earlier: "speedup=1.2"; "": nothing
    epoch       INTEGER NOT NULL
);
CREATE INDEX job_state ON job (state);

-- One operator of a job.
CREATE TABLE job_op (
    job_number   INTEGER NOT NULL REFERENCES job,
    position     INTEGER NOT NULL,      -- in the job file, from 0
    search_id    INTEGER REFERENCES search, -- NULL until a device was found for it
    kernel_id    INTEGER REFERENCES kernel, -- its answer; NULL until it has one
    phase        TEXT NOT NULL,         -- schema/openapi.yaml, JobOp.phase
    reason       TEXT NOT NULL,         -- why it failed
    from_history INTEGER NOT NULL,
    -- The file's content about it.
    name         TEXT NOT NULL,
    count        INTEGER NOT NULL,      -- calls, by which a total budget is shared out
    layouts      TEXT NOT NULL,         -- as in problem, as all up to `flops`
    accuracy     TEXT NOT NULL,
    conditions   TEXT NOT NULL,
    fingerprint  TEXT NOT NULL,
    family       TEXT NOT NULL,
    op           TEXT NOT NULL,         -- canonical form; "" once the job has ended
    flops        REAL NOT NULL,
    bytes        REAL NOT NULL,
    pins         TEXT NOT NULL,         -- as in search
    binding      TEXT NOT NULL,         -- its tensors by the file's names: the Binding of
                                        -- openapi.yaml; "" once the job has ended
    epoch        INTEGER NOT NULL,
    PRIMARY KEY (job_number, position)
);
CREATE INDEX job_op_search ON job_op (search_id);

-- What is left of jobs that db prune deleted: the last 10,000.
CREATE TABLE gone_job (
    number   INTEGER PRIMARY KEY,       -- the order of pruning
    id       TEXT NOT NULL UNIQUE,      -- as in job
    document TEXT NOT NULL              -- GoneJob of openapi.yaml
);

-- Who may do what. The secret itself is nowhere: only its hash.
CREATE TABLE token (
    id         TEXT PRIMARY KEY,        -- 16 hexadecimal digits: how it is named and revoked
    owner      TEXT NOT NULL,
    roles      TEXT NOT NULL,           -- of read, submit, build, measure, admin; joined by ','
    hash       TEXT NOT NULL UNIQUE,    -- SHA-256 of the secret, hexadecimal
    note       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,        -- 0: never
    revoked_at INTEGER NOT NULL,        -- 0: it was not
    epoch      INTEGER NOT NULL
) WITHOUT ROWID;

-- What an owner has used: shares are fair across restarts.
CREATE TABLE owner (
    name      TEXT PRIMARY KEY,
    device_ns INTEGER NOT NULL,         -- device time charged so far
    share_ns  INTEGER NOT NULL,         -- its virtual time: device time divided by its weight
    epoch     INTEGER NOT NULL
) WITHOUT ROWID;

-- The admin state that an administrator has set for a worker; without a row it is none.
CREATE TABLE worker_order (
    name   TEXT PRIMARY KEY,            -- of the worker
    state  TEXT NOT NULL,               -- drain, quarantine
    reason TEXT NOT NULL,
    at     INTEGER NOT NULL,
    epoch  INTEGER NOT NULL
) WITHOUT ROWID;

-- Who did what, in order: every request that changed something, and every refusal of a credential.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,              -- owner; "uid:1000" for a local user without a name
    token   TEXT NOT NULL,              -- id of the token; "" for a local user
    peer    TEXT NOT NULL,              -- address, or "unix"
    action  TEXT NOT NULL,              -- "job.submit", "kernel.revoke", "token.create", ...
    subject TEXT NOT NULL,              -- id of what it was done to
    outcome TEXT NOT NULL,              -- "ok", or the error's name
    detail  TEXT NOT NULL,
    epoch   INTEGER NOT NULL
);

-- Lookups that no kernel answered, at most 4096: those that cost most stay.
CREATE TABLE miss (
    key         TEXT PRIMARY KEY,       -- fingerprint, threads, layouts, class, conditions, device
    op          TEXT NOT NULL,          -- JSON: the operator as a job file has it
    match       TEXT NOT NULL,          -- how well the last answer fitted: "none", "nearest_shape", ...
    lookups     INTEGER NOT NULL,
    calls       INTEGER NOT NULL,       -- that askers told of
    time_ns     INTEGER NOT NULL,       -- that these calls took
    estimate_ns INTEGER NOT NULL,       -- of one call of the kernel that is missing; 0: unknown
    seen_at     INTEGER NOT NULL,
    epoch       INTEGER NOT NULL
);

-- Answers to requests that carried an Idempotency-Key, for a day: asked again, the same is said.
CREATE TABLE idempotency (
    owner       TEXT NOT NULL,
    key         TEXT NOT NULL,
    route       TEXT NOT NULL,          -- "POST /v1/jobs"
    body_sha256 TEXT NOT NULL,          -- another body with the same key is refused
    status      INTEGER NOT NULL,
    subject     TEXT NOT NULL,          -- id of what was made
    created_at  INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created_at);

-- SPDX-License-Identifier: Apache-2.0
--
-- The tables of version 2, without comments: what schema_2_to_3.sql begins with, for its tests.

CREATE TABLE installation (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    artifact_bytes INTEGER NOT NULL
);

CREATE TABLE problem (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    layouts TEXT NOT NULL,
    device_class TEXT NOT NULL,
    environment TEXT NOT NULL,
    policy TEXT NOT NULL,
    family TEXT NOT NULL,
    extents TEXT NOT NULL,
    op TEXT NOT NULL,
    flops REAL NOT NULL,
    created_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    UNIQUE (fingerprint, layouts, device_class, environment, policy)
);
CREATE INDEX problem_family ON problem (family);

CREATE TABLE search (
    id INTEGER PRIMARY KEY,
    problem_id INTEGER NOT NULL REFERENCES problem,
    strategy TEXT NOT NULL,
    parameters TEXT NOT NULL,
    seed TEXT NOT NULL,
    providers TEXT NOT NULL,
    space_version TEXT NOT NULL,
    elapsed_ns INTEGER NOT NULL,
    ended_asks INTEGER NOT NULL,
    exhausted INTEGER NOT NULL,
    kernel_id INTEGER REFERENCES kernel,
    snapshot TEXT NOT NULL,
    snapshot_version TEXT NOT NULL,
    snapshot_told INTEGER NOT NULL,
    ok_count INTEGER NOT NULL,
    failed_count INTEGER NOT NULL,
    known_count INTEGER NOT NULL,
    best TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    UNIQUE (problem_id, strategy, parameters, seed, providers, space_version)
);

CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    problem_id INTEGER NOT NULL REFERENCES problem,
    provider TEXT NOT NULL,
    candidate TEXT NOT NULL,
    candidate_hash BLOB NOT NULL,
    outcome TEXT NOT NULL,
    log TEXT NOT NULL,
    detail TEXT NOT NULL,
    schedule_sha256 TEXT NOT NULL,
    artifact_sha256 TEXT NOT NULL,
    error_max REAL NOT NULL,
    error_tolerance REAL NOT NULL,
    build_ns INTEGER NOT NULL,
    verify_ns INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    UNIQUE (problem_id, candidate_hash)
);

CREATE TABLE measurement (
    trial_id INTEGER NOT NULL REFERENCES trial,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    search_id INTEGER REFERENCES search,
    worker TEXT NOT NULL,
    instance TEXT NOT NULL,
    median_ns INTEGER NOT NULL,
    min_ns INTEGER NOT NULL,
    mad_ns INTEGER NOT NULL,
    repeat_count INTEGER NOT NULL,
    censored INTEGER NOT NULL,
    reference_ns INTEGER NOT NULL,
    samples_ns TEXT NOT NULL,
    counters TEXT NOT NULL,
    measured_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    PRIMARY KEY (trial_id, number)
) WITHOUT ROWID;

CREATE TABLE ask (
    search_id INTEGER NOT NULL REFERENCES search,
    number INTEGER NOT NULL,
    trial_id INTEGER NOT NULL REFERENCES trial,
    ended INTEGER NOT NULL,
    known INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    PRIMARY KEY (search_id, number)
) WITHOUT ROWID;

CREATE TABLE kernel (
    id INTEGER PRIMARY KEY,
    problem_id INTEGER NOT NULL REFERENCES problem,
    search_id INTEGER NOT NULL REFERENCES search,
    provider TEXT NOT NULL,
    artifact_sha256 TEXT NOT NULL,
    median_ns INTEGER NOT NULL,
    served INTEGER NOT NULL,
    served_at INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL,
    revoked_reason TEXT NOT NULL,
    verified_by TEXT NOT NULL,
    document TEXT NOT NULL,
    manifest TEXT NOT NULL,
    signature TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL
);
CREATE INDEX kernel_problem ON kernel (problem_id);
CREATE INDEX kernel_artifact ON kernel (artifact_sha256);
CREATE UNIQUE INDEX kernel_served ON kernel (problem_id) WHERE served = 1;

CREATE TABLE artifact (
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    kept INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX artifact_unkept ON artifact (used_at) WHERE kept = 0;

CREATE TABLE job (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    priority INTEGER NOT NULL,
    source TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    document TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL
);
CREATE INDEX job_state ON job (state);

CREATE TABLE job_op (
    job_number INTEGER NOT NULL REFERENCES job,
    position INTEGER NOT NULL,
    search_id INTEGER REFERENCES search,
    kernel_id INTEGER REFERENCES kernel,
    phase TEXT NOT NULL,
    reason TEXT NOT NULL,
    from_history INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    PRIMARY KEY (job_number, position)
) WITHOUT ROWID;
CREATE INDEX job_op_search ON job_op (search_id);

CREATE TABLE token (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    roles TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    note TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE owner (
    name TEXT PRIMARY KEY,
    device_ns INTEGER NOT NULL,
    share_ns INTEGER NOT NULL,
    epoch INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE worker_order (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    epoch INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    token TEXT NOT NULL,
    peer TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    outcome TEXT NOT NULL,
    detail TEXT NOT NULL,
    epoch INTEGER NOT NULL
);

CREATE TABLE idempotency (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    route TEXT NOT NULL,
    body_sha256 TEXT NOT NULL,
    status INTEGER NOT NULL,
    subject TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created_at);

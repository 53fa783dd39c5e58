-- SPDX-License-Identifier: Apache-2.0
--
-- From version 2 to version 3. store_migrate.c has set every table of version 2 aside as old_NAME and
-- made those of schema.sql, which are empty.
--
-- New in 3: operators are canonical, so that what version 2 stored under a fingerprint may be
-- another function than the one that is asked for under it: its kernels are revoked, and nothing of
-- it is found again, for the fingerprints of version 3 are other ones. Trials know their error.

INSERT INTO installation SELECT * FROM old_installation;

INSERT INTO problem SELECT * FROM old_problem;

INSERT INTO search (id, problem_id, strategy, parameters, seed, providers, space_version, accuracy,
        anchor, stand_in, stand_in_ratio, elapsed_ns, ended_asks, exhausted, kernel_id, snapshot, snapshot_version,
        snapshot_told, ok_count, failed_count, known_count, best, created_at, epoch)
    SELECT id, problem_id, strategy, parameters, seed, providers, space_version, 'standard',
        '', '', 0, elapsed_ns, ended_asks, exhausted, kernel_id, snapshot, snapshot_version,
        snapshot_told, ok_count, failed_count, known_count, best, created_at, epoch FROM old_search;

INSERT INTO trial (id, problem_id, provider, candidate, candidate_hash, outcome, log, detail,
        schedule_sha256, artifact_sha256, error_max, error_tolerance, of_rms, times_direct,
        constants_bytes, unseen, build_ns, verify_ns, recorded_at, epoch)
    SELECT id, problem_id, provider, candidate, candidate_hash, outcome, log, detail,
        schedule_sha256, artifact_sha256, error_max, error_tolerance, 0, -1,
        0, '', build_ns, verify_ns, recorded_at, epoch FROM old_trial;

-- What version 2 timed beside was a sentinel, not an anchor.
INSERT INTO measurement (trial_id, number, kind, search_id, worker, instance, median_ns, min_ns,
        mad_ns, repeat_count, censored, anchor_ns, anchor_ratio, anchor, samples_ns, counters,
        measured_at, epoch)
    SELECT trial_id, number, kind, search_id, worker, instance, median_ns, min_ns,
        mad_ns, repeat_count, censored, 0, 0, '', samples_ns, counters,
        measured_at, epoch FROM old_measurement;

INSERT INTO ask SELECT * FROM old_ask;

INSERT INTO kernel (id, problem_id, search_id, provider, artifact_sha256, plain_sha256, accuracy,
        times_direct, median_ns, served, served_at, pinned, revoked_at, revoked_reason, verified_by,
        document, manifest, signature, created_at, epoch)
    SELECT id, problem_id, search_id, provider, artifact_sha256, '', 'standard',
        -1, median_ns, 0, served_at, 0,
        iif(revoked_at <> 0, revoked_at, CAST(strftime('%s', 'now') AS INTEGER) * 1000000000),
        iif(revoked_at <> 0, revoked_reason, 'made before identity was canonical'), verified_by,
        document, manifest, signature, created_at, epoch FROM old_kernel;

INSERT INTO artifact SELECT * FROM old_artifact;
-- A live job's file is read again, as its fingerprints are other ones.
INSERT INTO job (number, id, name, owner, priority, source, state, reason, document, created_at,
        started_at, finished_at, epoch)
    SELECT number, id, name, owner, priority, source, state, reason, document, created_at,
        started_at, finished_at, epoch FROM old_job;
INSERT INTO job_op (job_number, position, search_id, kernel_id, phase, reason, from_history, epoch)
    SELECT job_number, position, search_id, kernel_id, phase, reason, from_history, epoch
    FROM old_job_op;
INSERT INTO token SELECT * FROM old_token;
INSERT INTO owner SELECT * FROM old_owner;
INSERT INTO worker_order SELECT * FROM old_worker_order;
INSERT INTO audit SELECT * FROM old_audit;
INSERT INTO idempotency SELECT * FROM old_idempotency;

-- SPDX-License-Identifier: Apache-2.0
--
-- From version 1 to version 2. store.c has set every table of version 1 aside as old_NAME and made
-- those of schema.sql, which are empty. candidate_hash() is store.c's.
--
-- New in 2: a trial's row is there from the first ask on, so an ask no longer holds a candidate of
-- its own, and what was asked without a result gets the row that it lacks.

INSERT INTO installation (id, epoch, created_at, artifact_bytes)
    SELECT id, epoch, created_at, (SELECT COALESCE(SUM(size), 0) FROM old_artifact)
    FROM old_installation;

INSERT INTO problem (id, fingerprint, layouts, device_class, environment, policy, family, extents,
        op, flops, created_at, epoch)
    SELECT id, fingerprint, layouts, device_class, environment, policy, family, '',
        op, flops, created_at, epoch FROM old_problem;

INSERT INTO search (id, problem_id, strategy, parameters, seed, providers, space_version,
        elapsed_ns, ended_asks, exhausted, kernel_id, snapshot, snapshot_version, snapshot_told,
        ok_count, failed_count, known_count, best, created_at, epoch)
    SELECT id, problem_id, strategy, parameters, seed, providers, space_version,
        elapsed_ns, ended_asks, exhausted, kernel_id, '', '', 0,
        0, 0, 0, '', created_at, epoch FROM old_search;

INSERT INTO trial (id, problem_id, provider, candidate, candidate_hash, outcome, log, detail,
        schedule_sha256, artifact_sha256, error_max, error_tolerance, build_ns, verify_ns,
        recorded_at, epoch)
    SELECT id, problem_id, provider, candidate, candidate_hash(provider, candidate), outcome, log,
        detail, schedule_sha256, artifact_sha256, error_max, error_tolerance, build_ns, verify_ns,
        recorded_at, epoch FROM old_trial;

-- The first of a search's providers is the one whose candidates it asks.
CREATE TEMP VIEW asked AS
    SELECT a.search_id, a.number, a.candidate, a.trial_id, a.known, a.epoch, s.problem_id,
        substr(s.providers, 1, instr(s.providers || ';', ';') - 1) AS provider
    FROM old_ask a JOIN old_search s ON s.id = a.search_id;

INSERT INTO trial (problem_id, provider, candidate, candidate_hash, outcome, log, detail,
        schedule_sha256, artifact_sha256, error_max, error_tolerance, build_ns, verify_ns,
        recorded_at, epoch)
    SELECT problem_id, provider, candidate, candidate_hash(provider, candidate), '', '', '',
        '', '', 0, 0, 0, 0, 0, epoch FROM asked WHERE trial_id IS NULL
    ON CONFLICT DO NOTHING;

INSERT INTO ask (search_id, number, trial_id, ended, known, epoch)
    SELECT a.search_id, a.number, COALESCE(a.trial_id, t.id), a.trial_id IS NOT NULL, a.known,
        a.epoch
    FROM asked a LEFT JOIN trial t ON a.trial_id IS NULL AND t.problem_id = a.problem_id
        AND t.candidate_hash = candidate_hash(a.provider, a.candidate);

DROP VIEW asked;

INSERT INTO measurement (trial_id, number, kind, search_id, worker, instance, median_ns, min_ns,
        mad_ns, repeat_count, censored, reference_ns, samples_ns, counters, measured_at, epoch)
    SELECT trial_id, ROW_NUMBER() OVER (PARTITION BY trial_id ORDER BY id) - 1, kind, search_id,
        worker, instance, median_ns, min_ns, mad_ns, repeat_count, censored, reference_ns,
        samples_ns, counters, measured_at, epoch FROM old_measurement;

INSERT INTO kernel (id, problem_id, search_id, provider, artifact_sha256, median_ns, served,
        served_at, pinned, revoked_at, revoked_reason, verified_by, document, manifest, signature,
        created_at, epoch)
    SELECT id, problem_id, search_id, provider, artifact_sha256, median_ns, served,
        served * created_at, 0, 0, '', '', document, '', '', created_at, epoch FROM old_kernel;

-- Which are among the best is not known before their searches are opened again.
INSERT INTO artifact (sha256, size, used_at, kept, created_at, epoch)
    SELECT sha256, size, created_at, 0, created_at, epoch FROM old_artifact;

INSERT INTO job (number, id, name, owner, priority, source, state, reason, document, created_at,
        started_at, finished_at, epoch)
    SELECT number, id, name, owner, priority, source, state, reason, document, created_at,
        started_at, finished_at, epoch FROM old_job;

INSERT INTO job_op (job_number, position, search_id, kernel_id, phase, reason, from_history, epoch)
    SELECT job_number, position, search_id, kernel_id, phase, reason, from_history, epoch
    FROM old_job_op;

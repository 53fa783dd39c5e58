-- SPDX-License-Identifier: Apache-2.0
--
-- Merges an export, the attached database `given` (db_file.h), into the history, by content:
-- existing rows stay, missing rows are added, and a second import changes nothing. db_import.c has
-- checked the export, has filled `signed` with signatures of its kernels' manifests, and `here` with
-- the epoch and the time of new rows.
--
-- Imported times have the same device class, environment and policy, so they compare with local
-- ones; but a local trial stays as it is. A kernel becomes served where none is, or where it is
-- faster and no other is pinned.

INSERT OR IGNORE INTO hint SELECT fingerprint, layouts, candidate, time_ns,
    (SELECT now FROM here), (SELECT epoch FROM here) FROM given.hint;

-- ---- problems

CREATE TEMP TABLE new_problem AS SELECT * FROM given.problem;
UPDATE new_problem SET id = NULL, epoch = (SELECT epoch FROM here);
INSERT OR IGNORE INTO problem SELECT * FROM new_problem;
CREATE TEMP TABLE problem_of AS SELECT g.id AS given, p.id AS id FROM given.problem g
    JOIN problem p USING (fingerprint, layouts, device_class, environment, policy);
CREATE UNIQUE INDEX temp.problem_of_given ON problem_of (given);

-- ---- trials: what has a result here stays as it is

CREATE TEMP TABLE new_trial AS SELECT * FROM given.trial;
UPDATE new_trial AS n SET epoch = (SELECT epoch FROM here),
    problem_id = (SELECT o.id FROM problem_of o WHERE o.given = n.problem_id);
DELETE FROM new_trial AS n WHERE EXISTS (
    SELECT 1 FROM trial t WHERE t.problem_id = n.problem_id AND t.candidate_hash = n.candidate_hash
        AND t.outcome NOT IN ('', 'abandoned'));

-- As wpk_history_is_revoked().
UPDATE new_trial AS n SET outcome = 'wrong_result', log = 'revoked before'
    WHERE outcome = 'ok' AND (candidate = '' OR artifact_sha256 <> '') AND EXISTS (
        SELECT 1 FROM kernel k WHERE k.problem_id = n.problem_id
            AND +k.artifact_sha256 = n.artifact_sha256
            AND (k.artifact_sha256 <> '' OR k.provider = n.provider) AND k.revoked_at <> 0);
UPDATE new_trial SET artifact_sha256 = ''
    WHERE artifact_sha256 <> '' AND artifact_sha256 NOT IN (SELECT sha256 FROM artifact);

CREATE TEMP TABLE trial_of AS SELECT n.id AS given, coalesce(t.id,
        n.rowid + (SELECT coalesce(max(id), 0) FROM trial)) AS id
    FROM new_trial n LEFT JOIN trial t USING (problem_id, candidate_hash);
CREATE UNIQUE INDEX temp.trial_of_given ON trial_of (given);
UPDATE new_trial AS n SET id = (SELECT o.id FROM trial_of o WHERE o.given = n.id);
INSERT INTO trial SELECT * FROM new_trial WHERE true
    ON CONFLICT (problem_id, candidate_hash) DO UPDATE SET outcome = excluded.outcome,
        log = excluded.log, detail = excluded.detail, schedule_sha256 = excluded.schedule_sha256,
        artifact_sha256 = excluded.artifact_sha256, error_max = excluded.error_max,
        error_tolerance = excluded.error_tolerance, of_rms = excluded.of_rms,
        times_direct = excluded.times_direct, constants_bytes = excluded.constants_bytes,
        launch = excluded.launch, unseen = excluded.unseen, recipe = excluded.recipe, build_ns = excluded.build_ns,
        verify_ns = excluded.verify_ns, recorded_at = excluded.recorded_at;

-- Those of a trial that was abandoned here come first.
CREATE TEMP TABLE new_measurement AS
    SELECT * FROM given.measurement WHERE trial_id IN (SELECT given FROM trial_of);
UPDATE new_measurement AS m SET trial_id = o.id, search_id = NULL, epoch = (SELECT epoch FROM here),
        number = m.number + (SELECT coalesce(max(l.number) + 1, 0) FROM measurement l
            WHERE l.trial_id = o.id)
    FROM trial_of o WHERE o.given = m.trial_id;
INSERT INTO measurement SELECT * FROM new_measurement;

-- ---- kernels: not those that are known, that were revoked here, or whose shared object is missing

CREATE TEMP TABLE new_kernel AS SELECT * FROM given.kernel ORDER BY served DESC, id;
UPDATE new_kernel AS n SET epoch = (SELECT epoch FROM here), plain_sha256 = '', served = 0,
        served_at = (SELECT now FROM here), pinned = 0, revoked_at = 0, revoked_reason = '',
        problem_id = (SELECT o.id FROM problem_of o WHERE o.given = n.problem_id),
        signature = (SELECT s.signature FROM signed s WHERE s.kernel = n.id);
DELETE FROM new_kernel AS n
    WHERE (artifact_sha256 <> '' AND artifact_sha256 NOT IN (SELECT sha256 FROM artifact))
        OR rowid NOT IN (SELECT min(rowid) FROM new_kernel
            GROUP BY problem_id, provider, artifact_sha256, created_at, document)
        OR EXISTS (SELECT 1 FROM kernel k WHERE k.problem_id = n.problem_id
            AND +k.artifact_sha256 = n.artifact_sha256
            AND (k.provider = n.provider OR (k.artifact_sha256 <> '' AND k.revoked_at <> 0))
            AND (k.revoked_at <> 0 OR (k.created_at = n.created_at AND k.document = n.document)));

-- The fastest of a class is served if it is faster than what is served here, and that is not pinned.
-- A plain kernel comes after all others, however fast it was.
UPDATE new_kernel AS n SET served = 1, served_at = max(served_at,
        (SELECT coalesce(max(k.served_at), 0) + 1 FROM kernel k WHERE k.problem_id = n.problem_id))
    WHERE rowid = (
        SELECT b.rowid FROM new_kernel b WHERE b.problem_id = n.problem_id
            AND b.accuracy = n.accuracy ORDER BY b.provider = 'plain', b.median_ns, b.rowid
            LIMIT 1)
    AND NOT EXISTS (
        SELECT 1 FROM kernel k WHERE k.problem_id = n.problem_id AND k.accuracy = n.accuracy
            AND k.served = 1 AND (k.pinned = 1
                OR (k.provider = 'plain', k.median_ns) <= (n.provider = 'plain', n.median_ns)));
UPDATE new_kernel SET served_at = 0 WHERE served = 0;
UPDATE kernel AS k SET served = 0 FROM new_kernel n
    WHERE k.served = 1 AND n.served = 1 AND n.problem_id = k.problem_id AND n.accuracy = k.accuracy;

-- The search that it was the answer of has no log here, so that it would begin anew.
CREATE TEMP TABLE new_search AS
    SELECT * FROM given.search WHERE id IN (SELECT search_id FROM new_kernel);
UPDATE new_search AS n SET id = NULL, epoch = (SELECT epoch FROM here),
        created_at = (SELECT now FROM here), elapsed_ns = 0, ended_asks = 0, exhausted = 0,
        kernel_id = NULL, snapshot = '', snapshot_version = '', snapshot_told = 0, ok_count = 0,
        failed_count = 0, known_count = 0, best = '', anchor = '', stand_in = '', stand_in_ratio = 0,
        problem_id = (SELECT o.id FROM problem_of o WHERE o.given = n.problem_id);
INSERT INTO search SELECT * FROM new_search WHERE true ON CONFLICT DO NOTHING;
UPDATE new_kernel AS n SET id = NULL, search_id = (
    SELECT s.id FROM given.search w JOIN search s USING
        (strategy, options, prior, pins, seed, providers, space_version, accuracy)
    WHERE w.id = n.search_id AND s.problem_id = n.problem_id);
INSERT INTO kernel SELECT * FROM new_kernel;

-- A plain kernel that is new is named by all of its problem; else those that are new name the one here.
UPDATE kernel AS k SET plain_sha256 = coalesce(
        (SELECT p.artifact_sha256 FROM kernel p
            WHERE p.problem_id = k.problem_id AND p.provider = 'plain' ORDER BY p.id DESC LIMIT 1), '')
    WHERE problem_id IN (SELECT problem_id FROM new_kernel) AND (plain_sha256 = ''
        OR problem_id IN (SELECT problem_id FROM new_kernel WHERE provider = 'plain'));

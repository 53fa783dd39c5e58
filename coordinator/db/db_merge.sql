-- SPDX-License-Identifier: Apache-2.0
--
-- From the temporary tables that db_merge.c has filled into the history, by content. A new_NAME has
-- the columns of NAME. Of new_measurement, trial_id is a row of new_trial; row N of new_search is the
-- search of row N of new_kernel.

-- ---- trials: what has a result here stays as it is

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

UPDATE new_trial AS n SET id = coalesce(
    (SELECT t.id FROM trial t
        WHERE t.problem_id = n.problem_id AND t.candidate_hash = n.candidate_hash),
    n.rowid + (SELECT coalesce(max(id), 0) FROM trial));
INSERT INTO trial SELECT * FROM new_trial WHERE true
    ON CONFLICT (problem_id, candidate_hash) DO UPDATE SET outcome = excluded.outcome,
        log = excluded.log, detail = excluded.detail, schedule_sha256 = excluded.schedule_sha256,
        artifact_sha256 = excluded.artifact_sha256, error_max = excluded.error_max,
        error_tolerance = excluded.error_tolerance, of_rms = excluded.of_rms,
        times_direct = excluded.times_direct, constants_bytes = excluded.constants_bytes,
        registers = excluded.registers, local_bytes = excluded.local_bytes,
        shared_bytes = excluded.shared_bytes,
        unseen = excluded.unseen, recipe = excluded.recipe, build_ns = excluded.build_ns,
        verify_ns = excluded.verify_ns, recorded_at = excluded.recorded_at;

-- Those of a trial that was abandoned here come first.
DELETE FROM new_measurement WHERE trial_id NOT IN (SELECT rowid FROM new_trial);
UPDATE new_measurement AS m SET trial_id = n.id,
        number = m.number + (SELECT coalesce(max(o.number) + 1, 0) FROM measurement o
            WHERE o.trial_id = n.id)
    FROM new_trial n WHERE n.rowid = m.trial_id;
INSERT INTO measurement SELECT * FROM new_measurement;

-- ---- kernels: not those that are known, that were revoked here, or whose shared object is missing

DELETE FROM new_kernel AS n
    WHERE (artifact_sha256 <> '' AND artifact_sha256 NOT IN (SELECT sha256 FROM artifact))
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
INSERT INTO search SELECT * FROM new_search WHERE rowid IN (SELECT rowid FROM new_kernel)
    ON CONFLICT DO NOTHING;
UPDATE new_kernel AS n SET search_id = (
    SELECT s.id FROM new_search w JOIN search s USING
        (problem_id, strategy, options, prior, pins, seed, providers, space_version, accuracy)
    WHERE w.rowid = n.rowid);
INSERT INTO kernel SELECT * FROM new_kernel;

-- A plain kernel that is new is named by all of its problem; else those that are new name the one here.
UPDATE kernel AS k SET plain_sha256 = coalesce(
        (SELECT p.artifact_sha256 FROM kernel p
            WHERE p.problem_id = k.problem_id AND p.provider = 'plain' ORDER BY p.id DESC LIMIT 1), '')
    WHERE problem_id IN (SELECT problem_id FROM new_kernel) AND (plain_sha256 = ''
        OR problem_id IN (SELECT problem_id FROM new_kernel WHERE provider = 'plain'));

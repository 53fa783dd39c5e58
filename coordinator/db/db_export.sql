-- SPDX-License-Identifier: Apache-2.0
--
-- What a copy of the history loses before it is an export: all that belongs to one installation.

PRAGMA journal_mode = DELETE;
PRAGMA synchronous = OFF; -- db_file.c syncs the whole file

DROP TABLE IF EXISTS probe;
DELETE FROM job_op;
DELETE FROM job;
DELETE FROM gone_job;
DELETE FROM ask;
DELETE FROM search_bucket;
DELETE FROM search_outcome;
DELETE FROM prior;
DELETE FROM token;
DELETE FROM owner;
DELETE FROM worker_order;
DELETE FROM audit;
DELETE FROM idempotency;
DELETE FROM miss;

-- Trials with a result that says something of the candidate; kernels that are served, and plain ones.
DELETE FROM measurement WHERE trial_id IN (SELECT id FROM trial WHERE outcome IN ('', 'abandoned'));
DELETE FROM trial WHERE outcome IN ('', 'abandoned');
DELETE FROM kernel WHERE revoked_at <> 0 OR (served = 0 AND provider <> 'plain');
DELETE FROM search WHERE id NOT IN (SELECT search_id FROM kernel);
UPDATE search SET snapshot = '', best = '';
VACUUM;

-- SPDX-License-Identifier: Apache-2.0
--
-- The log of a history in PostgreSQL: what coordinator/store/keeper.c calls. A database of
-- PostgreSQL, or a schema that the URI names as search_path, has one log.
--
--   wpk_site ─< wpk_entry       one row; the changes of each commit of the history
--       └──── a large object    the history as it was at the entry `base`
--   wpk_artifact                shared objects by hash
--
-- Numbers of entries have no gaps. The history itself says which entry it has last, by number and
-- tag, in the same transaction.

CREATE TABLE IF NOT EXISTS wpk_site (
    id         int PRIMARY KEY CHECK (id = 1),
    version    bigint NOT NULL,         -- of schema.sql
    log        bigint NOT NULL,         -- random; 0: nobody has begun the log
    public_key text NOT NULL,           -- of the signing key, which all machines share
    epoch      bigint NOT NULL,         -- grows when the holder changes, or connects anew
    holder     text NOT NULL,           -- the process that may append; '': it has handed over
    seen_at    timestamptz NOT NULL,    -- when it last did
    base       bigint NOT NULL,         -- -1: there is none yet
    base_tag   bigint NOT NULL,
    base_oid   oid NOT NULL,
    base_bytes bigint NOT NULL
);
INSERT INTO wpk_site VALUES (1, 0, 0, '', 0, '', clock_timestamp(), -1, 0, 0, 0) ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS wpk_entry (
    number  bigint PRIMARY KEY,
    tag     bigint NOT NULL,            -- random: two entries of one number differ in it
    changes bytea NOT NULL              -- of SQLite's session extension
);
-- LZ4 if the server has it (14 or newer, built with it): slower methods cost more than they save.
DO $$ BEGIN
    EXECUTE 'ALTER TABLE wpk_entry ALTER changes SET COMPRESSION lz4';
EXCEPTION WHEN OTHERS THEN
    ALTER TABLE wpk_entry ALTER changes SET STORAGE EXTERNAL;
END $$;

CREATE TABLE IF NOT EXISTS wpk_artifact (
    sha256 text PRIMARY KEY,
    number bigint NOT NULL,             -- of the entry that has its row
    bytes  bytea NOT NULL
);
CREATE INDEX IF NOT EXISTS wpk_artifact_number ON wpk_artifact (number);

-- Become the holder, of the new epoch; 0 if `other` is, and is alive. The update waits for an append
-- under way, and none with an older epoch commits after it.
CREATE OR REPLACE FUNCTION wpk_claim(me text, stale_too bool, OUT mine text, OUT other text) AS $$
BEGIN
    UPDATE wpk_site SET epoch = epoch + 1, holder = me, seen_at = clock_timestamp()
        WHERE holder = '' OR (stale_too AND seen_at < clock_timestamp() - interval '5 s')
        RETURNING epoch::text INTO mine;
    mine := coalesce(mine, '0');
    SELECT holder INTO other FROM wpk_site;
END $$ LANGUAGE plpgsql;

-- Make the epoch of the holder grow, so that no append of before comes late: no row if it is deposed.
CREATE OR REPLACE FUNCTION wpk_return(me text) RETURNS TABLE (epoch text) AS $$
    UPDATE wpk_site s SET epoch = s.epoch + 1, seen_at = clock_timestamp() WHERE holder = me
        RETURNING s.epoch::text
$$ LANGUAGE sql;

-- Append an entry (NULL: none, only be seen) and forget artifacts, whose hashes are lines: false if
-- the epoch is not the site's.
CREATE OR REPLACE FUNCTION wpk_append(mine bigint, new_number bigint, new_tag bigint,
    new_changes bytea, removed text) RETURNS bool AS $$
BEGIN
    PERFORM 1 FROM wpk_site WHERE epoch = mine FOR SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF new_changes IS NOT NULL THEN
        INSERT INTO wpk_entry VALUES (new_number, new_tag, new_changes);
        DELETE FROM wpk_artifact WHERE removed <> '' AND sha256 = ANY (string_to_array(removed, E'\n'));
    END IF;
    UPDATE wpk_site SET seen_at = clock_timestamp()
        WHERE epoch = mine AND seen_at < clock_timestamp() - interval '1 s';
    RETURN true;
END $$ LANGUAGE plpgsql;

-- Can a history go on from here? `its_log`: 0 for one without a log, -1 where there is none. `answer`:
-- 'entries' it can, 'base' by the base, 'new' the log has not begun; else why it cannot.
CREATE OR REPLACE FUNCTION wpk_look(its_version bigint, its_key text, its_log bigint, its_number bigint,
    its_tag bigint, OUT answer text, OUT base_oid text, OUT last text, OUT holder text) AS $$
DECLARE
    s wpk_site;
    stored bigint;
    last_number bigint;
BEGIN
    SELECT * INTO s FROM wpk_site;
    SELECT coalesce(max(number), s.base) INTO last_number FROM wpk_entry;
    SELECT tag INTO stored FROM wpk_entry WHERE number = its_number;
    base_oid := s.base_oid;
    last := last_number;
    holder := s.holder;
    answer := CASE
        WHEN s.base < 0 AND its_log IN (0, -1, s.log) THEN 'new'
        WHEN s.base < 0 THEN format('the log is empty, and the history here has entry %s of a log', its_number)
        WHEN s.version <> its_version THEN format('the log is of version %s of the history, and this'
            ' wpkd has version %s: all machines need the same wpkd', s.version, its_version)
        WHEN s.public_key <> its_key THEN 'signing.key here is not that of the log: copy it from the'
            ' machine that began the log'
        WHEN its_log = -1 THEN 'base'
        WHEN its_log <> s.log THEN 'the history here is not of this log: move it away, or name its own log'
        WHEN its_number > last_number THEN format('the log ends at entry %s, and the history here has'
            ' entry %s: PostgreSQL has lost entries, or was restored from a backup', last_number, its_number)
        WHEN stored = its_tag OR (its_number = s.base AND its_tag = s.base_tag) THEN 'entries'
        WHEN stored IS NULL AND its_number <= s.base THEN 'base'
        ELSE format('entry %s of the log is not the one that the history here has: PostgreSQL has lost'
            ' entries', its_number)
    END;
END $$ LANGUAGE plpgsql;

-- The holder has a new base. Entries up to the base before go, so that who follows closely needs none.
CREATE OR REPLACE FUNCTION wpk_publish(me text, number_now bigint, tag_now bigint, oid_now oid)
    RETURNS void AS $$
DECLARE
    s wpk_site;
BEGIN
    SELECT * INTO s FROM wpk_site WHERE holder = me FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another wpkd has taken the log over';
    END IF;
    UPDATE wpk_site SET base = number_now, base_tag = tag_now, base_oid = oid_now,
        base_bytes = lo_lseek64(lo_open(oid_now, x'40000'::int), 0, 2);
    DELETE FROM wpk_entry WHERE number <= s.base;
    IF s.base_oid <> 0 THEN
        PERFORM lo_unlink(s.base_oid);
    END IF;
END $$ LANGUAGE plpgsql;

-- Whoever begins with a base reads the entries after it, too: those may be as many bytes, and 64 MiB.
-- ALTER DATABASE ... SET wpk.base_bytes says another number.
CREATE OR REPLACE FUNCTION wpk_is_base_due() RETURNS bool AS $$
    SELECT (SELECT coalesce(sum(octet_length(changes)), 0) FROM wpk_entry WHERE number > base)
        >= coalesce(current_setting('wpk.base_bytes', true)::bigint, greatest(base_bytes, 64 << 20))
        FROM wpk_site WHERE id = 1
$$ LANGUAGE sql;

/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/history.h"

#include <stdio.h>
#include <string.h>

/* Of a policy's text, "threads=1;conditions=warm;...". */
static enum wpk_conditions read_conditions(const char *policy)
{
    static const char field[] = "conditions=";
    enum wpk_conditions conditions = WPK_CONDITIONS_WARM;
    char name[32];
    const char *at = strstr(policy, field);
    if (at != NULL) {
        at += sizeof field - 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ";"), at);
        if (wpk_conditions_parse(name, &conditions) != WPK_OK) {
            conditions = WPK_CONDITIONS_WARM;
        }
    }
    return conditions;
}

/* The largest of an implementation's trial and of its kernels; -1: none. A final on fresh inputs
 * writes to both, to the trial alone if it rejects. */
static double find_times_direct(struct wpk_store *store, uint64_t problem_id, const char *provider,
                                const char *candidate, const char *artifact)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    wpk_store_hash(provider, candidate, hash);
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT coalesce(max(times_direct), -1) FROM (SELECT times_direct FROM"
                        " kernel WHERE problem_id = ?1 AND provider = ?2 AND artifact_sha256 = ?3"
                        " UNION ALL SELECT times_direct FROM trial WHERE problem_id = ?1 AND"
                        " candidate_hash = ?4)",
                        "itth", (int64_t)problem_id, provider, artifact, hash);
    double found = wpk_rows_next(rows) ? wpk_rows_real(rows, 0) : -1;
    wpk_rows_close(rows);
    return found;
}

bool wpk_history_read_choice(struct wpk_store *store, uint64_t kernel_id,
                             const struct wpk_history_chain *chain, struct wpk_history_choice *out)
{
    uint8_t hash[WPK_STORE_HASH_SIZE];
    uint64_t problem_id = 0;
    *out = (struct wpk_history_choice){.accuracy = WPK_ACCURACY_STANDARD};
    wpk_store_hash(chain->vendor, "", hash);
    struct wpk_rows *rows =
        wpk_store_query(store,
                        "SELECT k.accuracy, p.policy, coalesce(t.recipe, ''), k.plain_sha256, p.id"
                        " FROM kernel k"
                        " JOIN problem p ON p.id = k.problem_id"
                        " LEFT JOIN trial t ON t.problem_id = k.problem_id AND t.candidate_hash = ?"
                        " AND t.outcome = 'ok' WHERE k.id = ?",
                        "hi", hash, (int64_t)kernel_id);
    bool found = wpk_rows_next(rows);
    if (found) {
        if (wpk_accuracy_parse(wpk_rows_text(rows, 0), &out->accuracy, NULL) != WPK_OK) {
            out->accuracy = WPK_ACCURACY_STANDARD;
        }
        out->conditions = read_conditions(wpk_rows_text(rows, 1));
        wpk_buf_append_text(&out->recipe, wpk_rows_text(rows, 2));
        snprintf(out->plain_sha256, sizeof out->plain_sha256, "%s", wpk_rows_text(rows, 3));
        problem_id = (uint64_t)wpk_rows_int(rows, 4);
    }
    wpk_rows_close(rows);
    out->own_times_direct =
        find_times_direct(store, problem_id, chain->provider, chain->candidate, chain->artifact);
    out->vendor_times_direct = find_times_direct(store, problem_id, chain->vendor, "", "");
    out->plain_times_direct =
        find_times_direct(store, problem_id, "plain", "algorithm=direct", out->plain_sha256);
    if (found && wpk_history_is_revoked(store, problem_id, "", out->plain_sha256)) {
        out->plain_sha256[0] = '\0';
    }
    return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/history_choice.h"

#include "coordinator/store/history.h"

#include <stdio.h>
#include <string.h>

/* Of the kernels that a condition selects, and of the trial with this hash: a final on fresh inputs
 * writes to both, to the trial alone if it rejects. */
#define TIMES_DIRECT(kernels, hash)                                                                \
    "coalesce((SELECT max(times_direct) FROM (SELECT times_direct FROM kernel"                     \
    " WHERE problem_id = p.id AND " kernels " UNION ALL SELECT times_direct FROM trial"            \
    " WHERE problem_id = p.id AND candidate_hash = " hash ")), -1)"

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

bool wpk_history_read_choice(struct wpk_store *store, uint64_t kernel_id,
                             const struct wpk_history_chain *chain, struct wpk_history_choice *out)
{
    uint8_t own[WPK_STORE_HASH_SIZE];
    uint8_t vendor[WPK_STORE_HASH_SIZE];
    uint8_t plain[WPK_STORE_HASH_SIZE];
    uint64_t problem_id = 0;
    *out = (struct wpk_history_choice){.accuracy = WPK_ACCURACY_STANDARD};
    wpk_store_hash(chain->provider, chain->candidate, own);
    wpk_store_hash(chain->vendor, "", vendor);
    wpk_store_hash("plain", "algorithm=direct", plain);
    struct wpk_rows *rows = wpk_store_query(
        store,
        "SELECT k.accuracy, p.policy, coalesce(t.recipe, ''), k.plain_sha256, p.id,"
        " " TIMES_DIRECT(
            "artifact_sha256 = ?1",
            "?2") ","
                  " " TIMES_DIRECT(
                      "artifact_sha256 = '' AND provider = ?3",
                      "?4") ","
                            " " TIMES_DIRECT(
                                "artifact_sha256 = k.plain_sha256",
                                "?5") " FROM kernel k"
                                      " JOIN problem p ON p.id = k.problem_id"
                                      " LEFT JOIN trial t ON t.problem_id = k.problem_id"
                                      " AND t.candidate_hash = ?4 AND t.outcome = 'ok' WHERE k.id "
                                      "= ?6",
        "ththhi", chain->artifact, own, chain->vendor, vendor, plain, (int64_t)kernel_id);
    bool found = wpk_rows_next(rows);
    if (found) {
        if (wpk_accuracy_parse(wpk_rows_text(rows, 0), &out->accuracy, NULL) != WPK_OK) {
            out->accuracy = WPK_ACCURACY_STANDARD;
        }
        out->conditions = read_conditions(wpk_rows_text(rows, 1));
        wpk_buf_append_text(&out->recipe, wpk_rows_text(rows, 2));
        snprintf(out->plain_sha256, sizeof out->plain_sha256, "%s", wpk_rows_text(rows, 3));
        problem_id = (uint64_t)wpk_rows_int(rows, 4);
        out->own_times_direct = wpk_rows_real(rows, 5);
        out->vendor_times_direct = wpk_rows_real(rows, 6);
        out->plain_times_direct = wpk_rows_real(rows, 7);
    }
    wpk_rows_close(rows);
    if (found && wpk_history_is_revoked(store, problem_id, "", out->plain_sha256)) {
        out->plain_sha256[0] = '\0';
    }
    return found;
}

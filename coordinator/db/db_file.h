/* SPDX-License-Identifier: Apache-2.0 */
/* The export file, which moves history between installations: lines of JSON objects in this order.
 *
 *     {"wpk_export":4,"program":"0.1.0","created":"..."}
 *     {"artifact":{"sha256":"...","size":"41232"}}    `size` bytes and a newline follow
 *     {"problem":{...}}                               of the lines up to the next problem
 *     {"trial":{...,"measurements":[...]}}
 *     {"kernel":{"search":{...},...}}                 served kernels only
 *     {"hint":{...}}                                  of operators, whatever their problems
 *     {"end":{"sha256":"..."}}                        of all bytes before this line
 *
 * Members have the names of the columns of schema.sql; 64-bit numbers are strings. Row numbers are
 * not exported: equal objects are recognised by their content.
 *
 * Each list below describes one object. db_export.c makes its query and JSON from the list,
 * db_merge.c its decoder and row. A row is X(column, type, limit); the type is that of the JSON:
 *
 *     t  text of at most `limit` bytes      i  integer in [0, limit], below 2^53
 *     r  real, at least `limit`             u  integer in [0, limit], as a string
 */
#ifndef WPK_COORDINATOR_DB_DB_FILE_H
#define WPK_COORDINATOR_DB_DB_FILE_H

#include "common/json.h"
#include "schema/record.h"

#define WPK_DB_KEY_MAX ((size_t)4096)     /* bytes of one field of a key */
#define WPK_DB_TEXT_MAX ((size_t)4 << 20) /* of an operator, a candidate or a document */
#define WPK_DB_LINE_MAX ((size_t)8 << 20) /* bytes: schedules are long */

#define WPK_DB_PROBLEM_LIST(X)                                                                     \
    X(fingerprint, t, WPK_DB_KEY_MAX)                                                              \
    X(layouts, t, WPK_DB_KEY_MAX)                                                                  \
    X(device_class, t, WPK_DB_KEY_MAX)                                                             \
    X(environment, t, WPK_DB_KEY_MAX)                                                              \
    X(policy, t, WPK_DB_KEY_MAX)                                                                   \
    X(op, t, WPK_DB_TEXT_MAX)                                                                      \
    X(flops, r, 0)                                                                                 \
    X(bytes, r, 0)                                                                                 \
    X(created_at, u, INT64_MAX)

#define WPK_DB_TRIAL_LIST(X)                                                                       \
    X(provider, t, WPK_DB_KEY_MAX)                                                                 \
    X(candidate, t, WPK_DB_TEXT_MAX)                                                               \
    X(outcome, t, WPK_DB_KEY_MAX)                                                                  \
    X(log, t, WPK_DB_TEXT_MAX)                                                                     \
    X(detail, t, WPK_DB_TEXT_MAX)                                                                  \
    X(schedule_sha256, t, WPK_DB_KEY_MAX)                                                          \
    X(artifact_sha256, t, WPK_DB_KEY_MAX)                                                          \
    X(error_max, r, 0)                                                                             \
    X(error_tolerance, r, 0)                                                                       \
    X(of_rms, r, 0)                                                                                \
    X(times_direct, r, -1)                                                                         \
    X(constants_bytes, i, WPK_JSON_INT_MAX)                                                        \
    X(registers, i, INT32_MAX)                                                                     \
    X(local_bytes, i, INT32_MAX)                                                                   \
    X(shared_bytes, i, INT32_MAX)                                                                  \
    X(unseen, t, WPK_DB_TEXT_MAX)                                                                  \
    X(recipe, t, WPK_DB_TEXT_MAX)                                                                  \
    X(build_ns, u, INT64_MAX)                                                                      \
    X(verify_ns, u, INT64_MAX)                                                                     \
    X(recorded_at, u, INT64_MAX)

#define WPK_DB_MEASUREMENT_LIST(X)                                                                 \
    X(kind, t, WPK_DB_KEY_MAX)                                                                     \
    X(worker, t, WPK_DB_KEY_MAX)                                                                   \
    X(instance, t, WPK_DB_KEY_MAX)                                                                 \
    X(median_ns, i, WPK_JSON_INT_MAX)                                                              \
    X(min_ns, i, WPK_JSON_INT_MAX)                                                                 \
    X(mad_ns, i, WPK_JSON_INT_MAX)                                                                 \
    X(repeat_count, i, WPK_JSON_INT_MAX)                                                           \
    X(censored, i, 1)                                                                              \
    X(anchor_ns, i, WPK_JSON_INT_MAX)                                                              \
    X(anchor_ratio, r, 0)                                                                          \
    X(anchor, t, WPK_DB_KEY_MAX)                                                                   \
    X(samples_ns, t, WPK_DB_TEXT_MAX)                                                              \
    X(counters, t, WPK_DB_TEXT_MAX)                                                                \
    X(measured_at, u, INT64_MAX)

#define WPK_DB_SEARCH_LIST(X)                                                                      \
    X(strategy, t, WPK_DB_KEY_MAX)                                                                 \
    X(options, t, WPK_DB_KEY_MAX)                                                                  \
    X(prior, t, WPK_DB_KEY_MAX)                                                                    \
    X(pins, t, WPK_DB_KEY_MAX)                                                                     \
    X(seed, t, WPK_DB_KEY_MAX)                                                                     \
    X(providers, t, WPK_DB_KEY_MAX)                                                                \
    X(space_version, t, WPK_DB_KEY_MAX)                                                            \
    X(accuracy, t, WPK_DB_KEY_MAX)

#define WPK_DB_KERNEL_LIST(X)                                                                      \
    X(provider, t, WPK_DB_KEY_MAX)                                                                 \
    X(artifact_sha256, t, WPK_DB_KEY_MAX)                                                          \
    X(times_direct, r, -1)                                                                         \
    X(median_ns, u, INT64_MAX)                                                                     \
    X(verified_by, t, WPK_DB_KEY_MAX)                                                              \
    X(document, t, WPK_DB_TEXT_MAX)                                                                \
    X(manifest, t, WPK_DB_TEXT_MAX)                                                                \
    X(created_at, u, INT64_MAX)

#define WPK_DB_HINT_LIST(X)                                                                        \
    X(fingerprint, t, WPK_DB_KEY_MAX)                                                              \
    X(layouts, t, WPK_DB_KEY_MAX)                                                                  \
    X(candidate, t, WPK_DB_TEXT_MAX)                                                               \
    X(time_ns, r, 0)

/* The columns of these lists in SQL, each after a comma. */
#define WPK_DB_COLUMN(name, type, limit) ", " #name
#define WPK_DB_PROBLEM_COLUMNS WPK_DB_PROBLEM_LIST(WPK_DB_COLUMN)
#define WPK_DB_TRIAL_COLUMNS WPK_DB_TRIAL_LIST(WPK_DB_COLUMN)
#define WPK_DB_HINT_COLUMNS WPK_DB_HINT_LIST(WPK_DB_COLUMN)
#define WPK_DB_MEASUREMENT_COLUMNS WPK_DB_MEASUREMENT_LIST(WPK_DB_COLUMN)

#endif

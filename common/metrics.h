/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a program, for Prometheus. A process has one set of numbers. Every function may be
 * called from any thread and does not block; a count is an atomic addition.
 *
 * Names, labels and help are rows of the lists below, so that the page cannot drift from the code.
 * A label's values are a fixed list: another value counts as "other", where the list has that.
 * Device classes are the exception: the first WPK_METRIC_VALUES_MAX - 1 that occur have a value
 * of their own. No message of a client or a worker can add more.
 *
 *     wpk_metric_add(WPK_COUNTER_TRIALS, outcome, 1);
 *     wpk_metric_set(WPK_GAUGE_JOBS, wpk_metric_value(WPK_LABEL_JOB_STATE, "running"), 3);
 *     wpk_metric_observe_ns(WPK_HISTOGRAM_COMMIT, ended_ns - began_ns);
 */
#ifndef WPK_COMMON_METRICS_H
#define WPK_COMMON_METRICS_H

#include "common/buf.h"

#include <stdint.h>

#define WPK_METRIC_VALUES_MAX 16 /* of a label */
#define WPK_METRIC_VALUE_SIZE 96 /* bytes of a device class, its NUL too; a longer one is cut */
#define WPK_METRIC_BUCKETS_MAX 18

/* suffix, label, values. OUTCOME is in the order of enum wpk_outcome. */
#define WPK_LABEL_LIST(X)                                                                          \
    X(NONE, "", "")                                                                                \
    X(OUTCOME, "outcome", "ok", "build_error", "build_timeout", "run_crash", "run_timeout",        \
      "wrong_result", "out_of_memory", "unsupported", "abandoned")                                 \
    X(JOB_STATE, "state", "queued", "running", "paused", "done", "failed", "cancelled", "other")   \
    X(WORKER_STATE, "state", "idle", "busy", "draining", "quarantined", "other")                   \
    X(MATCH, "match", "exact", "other_version", "nearest_shape", "same_family", "vendor", "none")  \
    X(STATUS, "status", "other", "1xx", "2xx", "3xx", "4xx", "5xx")                                \
    X(REFUSAL, "reason", "other", "limit", "timeout", "malformed", "tls")                          \
    X(DENIAL, "reason", "other", "missing", "unknown", "expired", "revoked", "role", "user")       \
    X(RESULT, "result", "ok", "failed")                                                            \
    X(DEVICE, "device", "other")

#define WPK_LABEL_ENUM(name, ...) WPK_LABEL_##name,
enum wpk_label { WPK_LABEL_LIST(WPK_LABEL_ENUM) WPK_LABEL_COUNT };

/* suffix, name, label, help. Counters in seconds are added to in ns. */
#define WPK_COUNTER_LIST(X)                                                                        \
    X(TRIALS, "wpk_trials_total", OUTCOME, "Candidates that ended, by outcome")                    \
    X(LEASES, "wpk_leases_total", NONE, "Leases given to workers")                                 \
    X(LEASES_EXPIRED, "wpk_leases_expired_total", NONE, "Leases whose worker fell silent")         \
    X(WORKERS_FAILED, "wpk_workers_failed_total", NONE,                                            \
      "Workers that left because their machine or device failed")                                  \
    X(SAMPLES_THROTTLED, "wpk_samples_throttled_total", NONE,                                      \
      "Samples that count although the GPU's clocks were lowered")                                 \
    X(RESULTS_REPEATED, "wpk_results_repeated_total", NONE,                                        \
      "Results of work that had its result already")                                               \
    X(DEVICE_SECONDS, "wpk_device_seconds_total", DEVICE, "Time leased to searches")               \
    X(LOOKUPS, "wpk_lookup_requests_total", MATCH, "Lookups, by the level of the answer")          \
    X(HTTP_REQUESTS, "wpk_http_requests_total", STATUS, "Requests answered, by class of status")   \
    X(HTTP_REFUSED, "wpk_http_connections_refused_total", REFUSAL,                                 \
      "Connections of clients not let in, or ended for what they did")                             \
    X(DENIED, "wpk_auth_denied_total", DENIAL,                                                     \
      "Requests and workers without the right token, and users who may not connect")               \
    X(WORKERS_REFUSED, "wpk_worker_connections_refused_total", REFUSAL,                            \
      "Connections to the worker port that were turned away")                                      \
    X(JOBS_REFUSED, "wpk_jobs_refused_total", NONE, "Jobs over their owner's quota")               \
    X(FRAMES, "wpk_worker_messages_total", NONE, "Messages from workers")                          \
    X(FRAMES_REFUSED, "wpk_worker_messages_refused_total", NONE,                                   \
      "Messages from workers that were no messages, or of a version not served")                   \
    X(COMMITS_FAILED, "wpk_commits_failed_total", NONE, "Commits that the store refused")          \
    X(ARTIFACTS_EVICTED, "wpk_artifacts_evicted_total", NONE, "Artifacts dropped over the quota")  \
    X(ARTIFACTS_REFUSED, "wpk_artifacts_refused_total", NONE,                                      \
      "Uploads that the quota had no room for")                                                    \
    X(ARTIFACTS_CORRUPT, "wpk_artifacts_corrupt_total", NONE,                                      \
      "Artifacts whose bytes were not those of their name: refused, never served")                 \
    X(RELOADS, "wpk_config_reloads_total", RESULT, "Reloads of the configuration")                 \
    X(LOG_BYTES, "wpk_log_bytes_total", NONE, "Changes appended to PostgreSQL's log")              \
    X(LOG_RECOVERIES, "wpk_log_recoveries_total", NONE,                                            \
      "Connections to PostgreSQL's log made anew after one failed")                                \
    X(LOG_SUPPRESSED, "wpk_log_lines_suppressed_total", NONE, "Repeated warnings left unsaid")

#define WPK_COUNTER_ENUM(name, ...) WPK_COUNTER_##name,
enum wpk_counter { WPK_COUNTER_LIST(WPK_COUNTER_ENUM) WPK_COUNTER_COUNT };

/* suffix, name, label, help */
#define WPK_GAUGE_LIST(X)                                                                          \
    X(JOBS, "wpk_jobs", JOB_STATE, "Jobs that live, and those that ended since the start")         \
    X(WORKERS, "wpk_workers", WORKER_STATE, "Workers with a live session, by state")               \
    X(WORKER_OUTLIERS, "wpk_worker_outliers", NONE,                                                \
      "Workers whose times are not those of their class")                                          \
    X(WORKERS_THROTTLED, "wpk_workers_throttled", NONE,                                            \
      "Workers whose GPU's clocks were lowered while they timed their last result")                \
    X(WORKERS_DISTURBED, "wpk_workers_disturbed", NONE,                                            \
      "Workers whose samples had to wait for a CPU")                                               \
    X(QUEUE_DEPTH, "wpk_queue_depth", DEVICE, "Work items that want a worker, by device")          \
    X(WORKERS_WANTED, "wpk_workers_wanted", DEVICE,                                                \
      "Workers that would have something to do now, by the device that jobs name")                 \
    X(LEASES_HELD, "wpk_leases_held", NONE, "Leases that are out")                                 \
    X(SEARCHES, "wpk_searches", NONE, "Searches that live jobs ask for")                           \
    X(KERNELS, "wpk_kernels", NONE, "Kernels served")                                              \
    X(STORE_DEGRADED, "wpk_store_degraded", NONE,                                                  \
      "1: the store cannot be written, nothing is leased and reads go on")                         \
    X(STORE_STALLED, "wpk_store_stalled_seconds", NONE,                                            \
      "How long the store has not answered; nothing is recorded meanwhile")                        \
    X(DRAINING, "wpk_draining", NONE, "1: about to end, nothing is leased")                        \
    X(LOG_ENTRY, "wpk_log_entry", NONE, "Number of the last entry of PostgreSQL's log here")       \
    X(STORE_BYTES, "wpk_store_bytes", NONE, "The database, its log too")                           \
    X(STORE_FREE_BYTES, "wpk_store_free_bytes", NONE, "Room left where the data directory lies")   \
    X(ARTIFACT_BYTES, "wpk_artifact_bytes", NONE, "Artifacts kept")                                \
    X(BUILDS_HELD, "wpk_builds_held", NONE,                                                        \
      "1: the artifacts have reached their quota, nothing is built")                               \
    X(BATCHES_PENDING, "wpk_batches_pending", NONE, "Batches that wait for the writer")            \
    X(HTTP_CONNECTIONS, "wpk_http_connections", NONE, "Connections of clients")                    \
    X(WORKER_CONNECTIONS, "wpk_worker_connections", NONE, "Connections of workers")

#define WPK_GAUGE_ENUM(name, ...) WPK_GAUGE_##name,
enum wpk_gauge { WPK_GAUGE_LIST(WPK_GAUGE_ENUM) WPK_GAUGE_COUNT };

/* suffix, name, observed in (NS: printed in seconds; PPM: as a ratio; ONE), buckets, help */
#define WPK_HISTOGRAM_LIST(X)                                                                      \
    X(BUILD, "wpk_build_seconds", NS, work, "Building one candidate")                              \
    X(RUN, "wpk_run_seconds", NS, work, "Verifying and timing one candidate")                      \
    X(LOOKUP, "wpk_lookup_seconds", NS, request, "Answering one lookup, or one batch of them")     \
    X(HTTP, "wpk_http_request_seconds", NS, request, "From a whole request to its answer")         \
    X(COMMIT, "wpk_commit_seconds", NS, commit, "One transaction of the store, fsync included")    \
    X(COMMIT_RESULTS, "wpk_commit_results", ONE, count, "Results that one transaction records")    \
    X(TURN, "wpk_loop_turn_seconds", NS, request, "One turn of the loop")                          \
    X(NOISE, "wpk_measurement_noise_ratio", PPM, ratio,                                            \
      "Median absolute deviation of a trial's samples over their median")

#define WPK_HISTOGRAM_ENUM(name, ...) WPK_HISTOGRAM_##name,
enum wpk_histogram { WPK_HISTOGRAM_LIST(WPK_HISTOGRAM_ENUM) WPK_HISTOGRAM_COUNT };

/* The index of a label's value: of `text` in the fixed list, else of "other" or the last value. A
 * device class gets its index at the first call with it. Without a label the index is 0. */
unsigned wpk_metric_value(enum wpk_label label, const char *text);

/* The number of values that the label has now. */
unsigned wpk_metric_value_count(enum wpk_label label);

/* `value` < the label's count of values; 0 without a label. */
void wpk_metric_add(enum wpk_counter counter, unsigned value, uint64_t amount);
void wpk_metric_set(enum wpk_gauge gauge, unsigned value, int64_t number);
void wpk_metric_change(enum wpk_gauge gauge, unsigned value, int64_t difference);

void wpk_metric_observe_ns(enum wpk_histogram histogram, uint64_t ns);
void wpk_metric_observe_ratio(enum wpk_histogram histogram, double ratio); /* < 0 counts as 0 */
void wpk_metric_observe_count(enum wpk_histogram histogram, uint64_t count);

/* The current numbers, for tests and for `status`. */
uint64_t wpk_metric_counted(enum wpk_counter counter, unsigned value);
int64_t wpk_metric_gauged(enum wpk_gauge gauge, unsigned value);

/* Append all metrics in Prometheus' text format 0.0.4, with those of
 * wpk_metrics_print_process(); failures stick to `out`. */
#define WPK_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
void wpk_metrics_print(struct wpk_buf *out);

/* Set all numbers to 0 and forget the device classes; for tests with a single thread. */
void wpk_metrics_reset(void);

/* The kernel's numbers of this process, under the names that Prometheus' client libraries use. */

#endif

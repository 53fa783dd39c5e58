/* SPDX-License-Identifier: Apache-2.0 */
/* Records as JSON. Parts that a record does not have (times of a failure, counters, a schedule)
 * are absent from the text rather than zero, because a zero could be taken for a measurement. */
#include "schema/record.h"

#include "common/crypto.h"
#include "common/format.h"
#include "common/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCH_USE_MAX INT32_MAX
#define SCHEDULE_SIZE_MAX ((size_t)1 << 20) /* bytes; as much as a schedule's text may have */
#define DETAIL_SIZE_MAX 4096                /* bytes */
#define UNSEEN_SIZE_MAX 4096                /* bytes */
#define RECIPE_SIZE_MAX ((size_t)64 << 10)  /* bytes */
#define PATH_SIZE_MAX 4096                  /* bytes */
#define RECORD_SIZE_MAX ((size_t)4 << 20)   /* bytes of JSON; escaping may lengthen a schedule */
/* A byte that is not UTF-8 travels as U+FFFD, which has three. */
#define LOG_TEXT_MAX (3 * (size_t)WPK_LOG_MAX)

static const char *const outcome_names[] = {WPK_OUTCOME_LIST(WPK_LIST_TEXT)};
static const char *const conditions_names[] = {WPK_CONDITIONS_LIST(WPK_LIST_TEXT)};

void wpk_record_fini(struct wpk_record *record)
{
    if (record == NULL) {
        return;
    }
    free(record->schedule);
    free(record->artifact_path);
    free(record->detail);
    free(record->unseen);
    free(record->recipe);
    *record = (struct wpk_record){0};
}

const char *wpk_conditions_name(enum wpk_conditions conditions)
{
    WPK_ASSERT(conditions < WPK_CONDITIONS_COUNT);
    return conditions_names[conditions];
}

wpk_err wpk_conditions_parse(const char *text, enum wpk_conditions *out)
{
    for (int i = 0; i < WPK_CONDITIONS_COUNT; i++) {
        if (strcmp(text, conditions_names[i]) == 0) {
            *out = (enum wpk_conditions)i;
            return WPK_OK;
        }
    }
    return WPK_ENOENT;
}

const char *wpk_outcome_name(enum wpk_outcome outcome)
{
    WPK_ASSERT(outcome < WPK_OUTCOME_COUNT);
    return outcome_names[outcome];
}

wpk_err wpk_outcome_parse(const char *text, enum wpk_outcome *out)
{
    for (int i = 0; i < WPK_OUTCOME_COUNT; i++) {
        if (strcmp(text, outcome_names[i]) == 0) {
            *out = (enum wpk_outcome)i;
            return WPK_OK;
        }
    }
    return WPK_ENOENT;
}

/* ---- encoding */

static void put_timing(struct wpk_json_writer *w, const struct wpk_timing *timing)
{
    WPK_ASSERT(timing->sample_count <= WPK_SAMPLES_MAX);
    int64_t samples[WPK_SAMPLES_MAX];
    for (int i = 0; i < timing->sample_count; i++) {
        samples[i] = (int64_t)timing->sample_ns[i];
    }
    wpk_json_begin_object(w, "timing");
    wpk_json_put_int(w, "median_ns", (int64_t)timing->median_ns);
    wpk_json_put_int(w, "min_ns", (int64_t)timing->min_ns);
    wpk_json_put_int(w, "mad_ns", (int64_t)timing->mad_ns);
    wpk_json_put_int(w, "repeat_count", timing->repeat_count);
    wpk_json_put_bool(w, "censored", timing->censored);
    if (timing->throttled_count > 0) {
        wpk_json_put_int(w, "throttled", timing->throttled_count);
    }
    if (timing->disturbed_count > 0) {
        wpk_json_put_int(w, "disturbed", timing->disturbed_count);
    }
    wpk_json_put_ints(w, "sample_ns", samples, (size_t)timing->sample_count);
    wpk_json_end(w);
}

static void put_counters(struct wpk_json_writer *w, const struct wpk_counters *counters)
{
    wpk_json_begin_object(w, "counters");
    wpk_json_put_real(w, "cycles", counters->cycles);
    wpk_json_put_real(w, "instructions", counters->instructions);
    wpk_json_put_real(w, "l1d_misses", counters->l1d_misses);
    wpk_json_put_real(w, "llc_misses", counters->llc_misses);
    wpk_json_end(w);
}

static void put_artifact(struct wpk_json_writer *w, const struct wpk_record *record)
{
    wpk_json_begin_object(w, "artifact");
    if (record->artifact_path != NULL) {
        wpk_json_put_text(w, "path", record->artifact_path);
    }
    if (record->artifact_sha256[0] != '\0') {
        wpk_json_put_text(w, "sha256", record->artifact_sha256);
    }
    wpk_json_end(w);
}

static void put_record(struct wpk_json_writer *w, const struct wpk_record *record)
{
    WPK_ASSERT(record->outcome < WPK_OUTCOME_COUNT);
    WPK_ASSERT(isfinite(record->error_ratio));
    wpk_json_put_text(w, "outcome", wpk_outcome_name(record->outcome));
    if (record->log[0] != '\0') {
        wpk_json_put_text(w, "log", record->log);
    }
    if (record->timing.sample_count > 0) {
        put_timing(w, &record->timing);
    }
    wpk_json_put_int(w, "anchor_ns", (int64_t)record->anchor_ns);
    if (record->anchor_ratio > 0) {
        wpk_json_put_real(w, "anchor_ratio", record->anchor_ratio);
    }
    if (record->anchor_sha256[0] != '\0') {
        wpk_json_put_text(w, "anchor", record->anchor_sha256);
    }
    if (record->anchor_failed) {
        wpk_json_put_bool(w, "anchor_failed", true);
    }
    if (record->counters.present) {
        put_counters(w, &record->counters);
    }
    wpk_json_put_int(w, "build_ns", (int64_t)record->build_ns);
    wpk_json_put_int(w, "verify_ns", (int64_t)record->verify_ns);
    wpk_json_put_int(w, "measure_ns", (int64_t)record->measure_ns);
    wpk_json_begin_object(w, "error");
    wpk_json_put_real(w, "max", record->error_max);
    wpk_json_put_real(w, "tolerance", record->error_tolerance);
    wpk_json_put_real(w, "ratio", record->error_ratio);
    wpk_json_put_real(w, "of_rms", record->of_rms);
    wpk_json_put_real(w, "times_direct", record->times_direct);
    wpk_json_end(w);
    wpk_json_put_int(w, "constants_bytes", (int64_t)record->constants_bytes);
    if (record->launch.registers > 0 || record->launch.shared_bytes > 0) {
        wpk_json_begin_object(w, "launch");
        wpk_json_put_int(w, "registers", record->launch.registers);
        wpk_json_put_int(w, "local_bytes", record->launch.local_bytes);
        wpk_json_put_int(w, "shared_bytes", record->launch.shared_bytes);
        wpk_json_end(w);
    }
    if (record->unseen != NULL) {
        wpk_json_put_text(w, "unseen", record->unseen);
    }
    if (record->schedule != NULL) {
        wpk_json_put_text(w, "schedule", record->schedule);
    }
    if (record->schedule_sha256[0] != '\0') {
        wpk_json_put_text(w, "schedule_sha256", record->schedule_sha256);
    }
    if (record->artifact_path != NULL || record->artifact_sha256[0] != '\0') {
        put_artifact(w, record);
    }
    if (record->detail != NULL) {
        wpk_json_put_text(w, "detail", record->detail);
    }
    if (record->recipe != NULL) {
        wpk_json_put_text(w, "recipe", record->recipe);
    }
}

void wpk_policy_put(struct wpk_json_writer *w, const char *key, const struct wpk_policy *policy)
{
    wpk_json_begin_object(w, key);
    wpk_json_put_int(w, "threads", policy->threads);
    wpk_json_put_text(w, "conditions", wpk_conditions_name(policy->conditions));
    wpk_json_put_int(w, "time_ns_min", (int64_t)policy->time_ns_min);
    wpk_json_put_int(w, "sample_count", policy->sample_count);
    wpk_json_put_real(w, "race_ratio", policy->race_ratio);
    wpk_json_end(w);
}

void wpk_record_put(struct wpk_json_writer *w, const char *key, const struct wpk_record *record)
{
    wpk_json_begin_object(w, key);
    put_record(w, record);
    wpk_json_end(w);
}

wpk_err wpk_record_encode(const struct wpk_record *record, char **text)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    put_record(w, record);
    struct wpk_buf buf;
    wpk_buf_init(&buf, RECORD_SIZE_MAX);
    wpk_err err = wpk_json_print(w, false, &buf);
    if (err == WPK_OK) {
        err = wpk_buf_take(&buf, text, NULL);
    }
    wpk_buf_fini(&buf);
    wpk_json_writer_free(w);
    return err;
}

/* ---- decoding */

static uint64_t get_ns(struct wpk_json_reader *r, const char *key)
{
    return (uint64_t)wpk_json_get_int(r, key, 0, WPK_JSON_INT_MAX);
}

static void get_timing(struct wpk_json_reader *r, struct wpk_timing *out)
{
    if (!wpk_json_has(r, "timing")) {
        return;
    }
    int64_t samples[WPK_SAMPLES_MAX];
    wpk_json_enter(r, "timing");
    WPK_JSON_ALLOW(r, "median_ns", "min_ns", "mad_ns", "repeat_count", "censored", "throttled",
                   "disturbed", "sample_ns");
    out->median_ns = (uint64_t)wpk_json_get_int(r, "median_ns", 1, WPK_JSON_INT_MAX);
    out->min_ns = get_ns(r, "min_ns");
    out->mad_ns = get_ns(r, "mad_ns");
    out->repeat_count = (int)wpk_json_get_int(r, "repeat_count", 1, INT32_MAX);
    out->censored = wpk_json_get_bool(r, "censored");
    out->throttled_count =
        wpk_json_has(r, "throttled") ? (int)wpk_json_get_int(r, "throttled", 1, INT32_MAX) : 0;
    out->disturbed_count =
        wpk_json_has(r, "disturbed") ? (int)wpk_json_get_int(r, "disturbed", 1, INT32_MAX) : 0;
    out->sample_count =
        (int)wpk_json_get_ints(r, "sample_ns", 0, WPK_JSON_INT_MAX, samples, WPK_SAMPLES_MAX);
    for (int i = 0; i < out->sample_count; i++) {
        out->sample_ns[i] = (uint64_t)samples[i];
    }
    if (out->sample_count == 0) {
        wpk_json_fail(r, "sample_ns", WPK_ERANGE, "a time without a sample");
    }
    wpk_json_leave(r);
}

static void get_counters(struct wpk_json_reader *r, struct wpk_counters *out)
{
    if (!wpk_json_has(r, "counters")) {
        return;
    }
    const double most = 1e300;
    wpk_json_enter(r, "counters");
    WPK_JSON_ALLOW(r, "cycles", "instructions", "l1d_misses", "llc_misses");
    out->present = true;
    out->cycles = wpk_json_get_real(r, "cycles", 0, most);
    out->instructions = wpk_json_get_real(r, "instructions", 0, most);
    out->l1d_misses = wpk_json_get_real(r, "l1d_misses", 0, most);
    out->llc_misses = wpk_json_get_real(r, "llc_misses", 0, most);
    wpk_json_leave(r);
}

static void get_errors(struct wpk_json_reader *r, struct wpk_record *out)
{
    wpk_json_enter(r, "error");
    WPK_JSON_ALLOW(r, "max", "tolerance", "ratio", "of_rms", "times_direct");
    out->error_max = wpk_json_get_real(r, "max", 0, HUGE_VAL);
    out->error_tolerance = wpk_json_get_real(r, "tolerance", 0, HUGE_VAL);
    out->error_ratio = wpk_json_get_real(r, "ratio", 0, HUGE_VAL);
    out->of_rms = wpk_json_get_real(r, "of_rms", 0, HUGE_VAL);
    out->times_direct = wpk_json_get_real(r, "times_direct", 0, HUGE_VAL);
    wpk_json_leave(r);
}

/* An owned copy of an optional text; NULL where there is none, or after a failure. */
static char *get_owned(struct wpk_json_reader *r, const char *key, size_t size_max, wpk_err *err)
{
    if (!wpk_json_has(r, key)) {
        return NULL;
    }
    const char *text = wpk_json_get_text(r, key, size_max);
    char *copy = wpk_json_status(r) == WPK_OK ? strdup(text) : NULL;
    if (copy == NULL && wpk_json_status(r) == WPK_OK) {
        *err = WPK_ENOMEM;
    }
    return copy;
}

static void get_hash(struct wpk_json_reader *r, const char *key, char out[WPK_ID_MAX])
{
    if (!wpk_json_has(r, key)) {
        return;
    }
    wpk_json_get_copy(r, key, out, WPK_ID_MAX);
    if (!wpk_crypto_hex_valid(out, WPK_SHA256_SIZE)) {
        wpk_json_fail(r, key, WPK_EINVAL, "not a SHA-256 in hexadecimal");
    }
}

static void get_log(struct wpk_json_reader *r, char out[WPK_LOG_MAX])
{
    if (!wpk_json_has(r, "log")) {
        return;
    }
    const char *text = wpk_json_get_text(r, "log", LOG_TEXT_MAX);
    size_t size = wpk_utf8_check(text, strnlen(text, WPK_LOG_MAX - 1)); /* no half character */
    memcpy(out, text, size);
    out[size] = '\0';
}

static void get_launch(struct wpk_json_reader *r, struct wpk_launch_use *out)
{
    if (!wpk_json_has(r, "launch")) {
        return;
    }
    wpk_json_enter(r, "launch");
    WPK_JSON_ALLOW(r, "registers", "local_bytes", "shared_bytes");
    out->registers = (int)wpk_json_get_int(r, "registers", 0, LAUNCH_USE_MAX);
    out->local_bytes = wpk_json_get_int(r, "local_bytes", 0, LAUNCH_USE_MAX);
    out->shared_bytes = wpk_json_get_int(r, "shared_bytes", 0, LAUNCH_USE_MAX);
    wpk_json_leave(r);
}

static wpk_err get_record(struct wpk_json_reader *r, struct wpk_record *out)
{
    wpk_err err = WPK_OK;
    WPK_JSON_ALLOW(r, "outcome", "log", "timing", "anchor_ns", "counters", "build_ns", "verify_ns",
                   "measure_ns", "error", "constants_bytes", "launch", "unseen", "schedule",
                   "artifact", "detail", "schedule_sha256", "recipe", "anchor", "anchor_ratio",
                   "anchor_failed");
    out->outcome =
        (enum wpk_outcome)wpk_json_get_choice(r, "outcome", outcome_names, WPK_OUTCOME_COUNT);
    get_log(r, out->log);
    get_timing(r, &out->timing);
    out->anchor_ns = get_ns(r, "anchor_ns");
    if (wpk_json_has(r, "anchor_ratio")) {
        out->anchor_ratio = wpk_json_get_real(r, "anchor_ratio", 1e-9, 1e9);
    }
    get_hash(r, "anchor", out->anchor_sha256);
    out->anchor_failed = wpk_json_has(r, "anchor_failed") && wpk_json_get_bool(r, "anchor_failed");
    get_counters(r, &out->counters);
    out->build_ns = get_ns(r, "build_ns");
    out->verify_ns = get_ns(r, "verify_ns");
    out->measure_ns = get_ns(r, "measure_ns");
    get_errors(r, out);
    out->constants_bytes = get_ns(r, "constants_bytes");
    get_launch(r, &out->launch);
    out->unseen = get_owned(r, "unseen", UNSEEN_SIZE_MAX, &err);
    out->schedule = get_owned(r, "schedule", SCHEDULE_SIZE_MAX, &err);
    get_hash(r, "schedule_sha256", out->schedule_sha256);
    if (wpk_json_has(r, "artifact")) {
        wpk_json_enter(r, "artifact");
        WPK_JSON_ALLOW(r, "path", "sha256");
        out->artifact_path = get_owned(r, "path", PATH_SIZE_MAX, &err);
        get_hash(r, "sha256", out->artifact_sha256);
        wpk_json_leave(r);
    }
    out->detail = get_owned(r, "detail", DETAIL_SIZE_MAX, &err);
    out->recipe = get_owned(r, "recipe", RECIPE_SIZE_MAX, &err);
    if (out->outcome != WPK_OUTCOME_OK && out->timing.sample_count > 0) {
        wpk_json_fail(r, "timing", WPK_ERANGE, "a trial that failed has no times");
    }
    return err;
}

void wpk_policy_get(struct wpk_json_reader *r, const char *key, struct wpk_policy *out)
{
    wpk_json_enter(r, key);
    WPK_JSON_ALLOW(r, "threads", "conditions", "time_ns_min", "sample_count", "race_ratio");
    out->threads = (int)wpk_json_get_int(r, "threads", 1, 1 << 16);
    out->conditions = (enum wpk_conditions)wpk_json_get_choice(r, "conditions", conditions_names,
                                                               WPK_CONDITIONS_COUNT);
    out->time_ns_min = get_ns(r, "time_ns_min");
    out->sample_count = (int)wpk_json_get_int(r, "sample_count", 1, WPK_SAMPLES_MAX);
    out->race_ratio = wpk_json_get_real(r, "race_ratio", 0, HUGE_VAL);
    wpk_json_leave(r);
}

wpk_err wpk_record_get(struct wpk_json_reader *reader, const char *key, struct wpk_record *out)
{
    *out = (struct wpk_record){0};
    wpk_json_enter(reader, key);
    wpk_err err = get_record(reader, out);
    wpk_json_leave(reader);
    return err;
}

wpk_err wpk_record_decode(const char *text, struct wpk_record *out, struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(text, strlen(text), RECORD_SIZE_MAX, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_record record = {0};
    err = get_record(r, &record);
    if (wpk_json_status(r) != WPK_OK) {
        err = wpk_json_status(r);
    }
    wpk_json_close(r);
    if (err != WPK_OK) {
        wpk_record_fini(&record);
        return err;
    }
    *out = record;
    return WPK_OK;
}

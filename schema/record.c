/* SPDX-License-Identifier: Apache-2.0 */
/* Records as JSON. Parts that a record does not have (times of a failure, counters, a schedule)
 * are absent from the text rather than zero, because a zero could be taken for a measurement. */
#include "schema/record.h"

#include "common/format.h"

#include <math.h>
#include <string.h>

#define LAUNCH_USE_MAX INT32_MAX
#define SCHEDULE_SIZE_MAX ((size_t)1 << 20) /* bytes; as much as a schedule's text may have */
#define DETAIL_SIZE_MAX 4096                /* bytes */
#define UNSEEN_SIZE_MAX 4096                /* bytes */
#define RECIPE_SIZE_MAX ((size_t)64 << 10)  /* bytes */
#define REAL_MAX 1e300
#define PATH_SIZE_MAX 4096                /* bytes */
#define RECORD_SIZE_MAX ((size_t)4 << 20) /* bytes of JSON; escaping may lengthen a schedule */
/* A byte that is not UTF-8 travels as U+FFFD, which has three. */
#define LOG_TEXT_MAX (3 * (size_t)WPK_LOG_MAX)

static const char *const outcome_names[] = {WPK_OUTCOME_LIST(WPK_LIST_TEXT)};
static const char *const conditions_names[] = {WPK_CONDITIONS_LIST(WPK_LIST_TEXT)};

/* ---- tables */

const struct wpk_field wpk_timing_fields[] = {
    {WPK_FIELD_ARRAY("sample_ns", timing, sample_ns, sample_count,
                     WPK_ITEM(INT, uint64_t, 0, WPK_JSON_INT_MAX), .min = 1)},
    {WPK_FIELD_INT("median_ns", timing, median_ns, 1, WPK_JSON_INT_MAX)},
    {WPK_FIELD_COUNT("min_ns", timing, min_ns)},
    {WPK_FIELD_COUNT("mad_ns", timing, mad_ns)},
    {WPK_FIELD_INT("repeat_count", timing, repeat_count, 1, INT32_MAX)},
    {WPK_FIELD(BOOL, "censored", timing, censored)},
    {WPK_FIELD_INT("throttled", timing, throttled_count, 1, INT32_MAX, WPK_OPTIONAL)},
    {WPK_FIELD_INT("disturbed", timing, disturbed_count, 1, INT32_MAX, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

const struct wpk_field wpk_counters_fields[] = {
    {WPK_FIELD_PRESENT(counters, present)},
    {WPK_FIELD_REAL("cycles", counters, cycles, 0, REAL_MAX)},
    {WPK_FIELD_REAL("instructions", counters, instructions, 0, REAL_MAX)},
    {WPK_FIELD_REAL("l1d_misses", counters, l1d_misses, 0, REAL_MAX)},
    {WPK_FIELD_REAL("llc_misses", counters, llc_misses, 0, REAL_MAX)},
    {WPK_FIELD_END},
};

static const struct wpk_field error_fields[] = {
    {WPK_FIELD_REAL("max", record, error_max, 0, HUGE_VAL)},
    {WPK_FIELD_REAL("tolerance", record, error_tolerance, 0, HUGE_VAL)},
    {WPK_FIELD_REAL("ratio", record, error_ratio, 0, HUGE_VAL)},
    {WPK_FIELD_REAL("of_rms", record, of_rms, 0, HUGE_VAL)},
    {WPK_FIELD_REAL("times_direct", record, times_direct, 0, HUGE_VAL)},
    {WPK_FIELD_END},
};

const struct wpk_field wpk_launch_fields[] = {
    {WPK_FIELD_INT("registers", launch_use, registers, 0, LAUNCH_USE_MAX)},
    {WPK_FIELD_INT("local_bytes", launch_use, local_bytes, 0, LAUNCH_USE_MAX)},
    {WPK_FIELD_INT("shared_bytes", launch_use, shared_bytes, 0, LAUNCH_USE_MAX)},
    {WPK_FIELD_END},
};

static const struct wpk_field artifact_fields[] = {
    {WPK_FIELD_OWNED("path", record, artifact_path, PATH_SIZE_MAX, WPK_OPTIONAL)},
    {WPK_FIELD(HASH, "sha256", record, artifact_sha256, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

static void get_log(struct wpk_json_reader *r, const char *key, void *member)
{
    char *out = member;
    const char *text = wpk_json_get_text(r, key, LOG_TEXT_MAX);
    size_t size = wpk_utf8_check(text, strnlen(text, WPK_LOG_MAX - 1)); /* no half character */
    memcpy(out, text, size);
    out[size] = '\0';
}

static void put_log(struct wpk_json_writer *w, const char *key, const void *member)
{
    wpk_json_put_text(w, key, member);
}

static void check_times(struct wpk_json_reader *r, void *object)
{
    const struct wpk_record *record = object;
    if (record->outcome != WPK_OUTCOME_OK && record->timing.sample_count > 0) {
        wpk_json_fail(r, "timing", WPK_ERANGE, "a trial that failed has no times");
    }
}

const struct wpk_field wpk_record_fields[] = {
    {WPK_FIELD_CHOICE("outcome", record, outcome, outcome_names)},
    {WPK_FIELD_CUSTOM("log", record, log, put_log, get_log, WPK_OPTIONAL)},
    {WPK_FIELD_OBJECT("timing", record, timing, wpk_timing_fields, WPK_OPTIONAL)},
    {WPK_FIELD_COUNT("anchor_ns", record, anchor_ns)},
    {WPK_FIELD_REAL("anchor_ratio", record, anchor_ratio, 1e-9, 1e9, WPK_OPTIONAL)},
    {WPK_FIELD(HASH, "anchor", record, anchor_sha256, WPK_OPTIONAL)},
    {WPK_FIELD(BOOL, "anchor_failed", record, anchor_failed, WPK_OPTIONAL)},
    {WPK_FIELD_OBJECT("counters", record, counters, wpk_counters_fields, WPK_OPTIONAL)},
    {WPK_FIELD_COUNT("build_ns", record, build_ns)},
    {WPK_FIELD_COUNT("verify_ns", record, verify_ns)},
    {WPK_FIELD_COUNT("measure_ns", record, measure_ns)},
    {WPK_FIELD_PART("error", error_fields)},
    {WPK_FIELD_COUNT("constants_bytes", record, constants_bytes)},
    {WPK_FIELD_OBJECT("launch", record, launch, wpk_launch_fields, WPK_OPTIONAL)},
    {WPK_FIELD_OWNED("unseen", record, unseen, UNSEEN_SIZE_MAX, WPK_OPTIONAL)},
    {WPK_FIELD_OWNED("schedule", record, schedule, SCHEDULE_SIZE_MAX, WPK_OPTIONAL)},
    {WPK_FIELD(HASH, "schedule_sha256", record, schedule_sha256, WPK_OPTIONAL)},
    {WPK_FIELD_PART("artifact", artifact_fields, WPK_OPTIONAL)},
    {WPK_FIELD_OWNED("detail", record, detail, DETAIL_SIZE_MAX, WPK_OPTIONAL)},
    {WPK_FIELD_OWNED("recipe", record, recipe, RECIPE_SIZE_MAX, WPK_OPTIONAL)},
    {WPK_FIELD_CHECK(check_times)},
    {WPK_FIELD_END},
};

const struct wpk_field wpk_policy_fields[] = {
    {WPK_FIELD_INT("threads", policy, threads, 1, 1 << 16)},
    {WPK_FIELD_CHOICE("conditions", policy, conditions, conditions_names)},
    {WPK_FIELD_COUNT("time_ns_min", policy, time_ns_min)},
    {WPK_FIELD_INT("sample_count", policy, sample_count, 1, WPK_SAMPLES_MAX)},
    {WPK_FIELD_REAL("race_ratio", policy, race_ratio, 0, HUGE_VAL)},
    {WPK_FIELD_END},
};

void wpk_record_fini(struct wpk_record *record)
{
    if (record == NULL) {
        return;
    }
    wpk_fields_fini(wpk_record_fields, record);
    *record = (struct wpk_record){0};
}

WPK_LIST_NAME(wpk_conditions_name, enum wpk_conditions, conditions_names)
WPK_LIST_PARSE(wpk_conditions_parse, enum wpk_conditions, conditions_names)

WPK_LIST_NAME(wpk_outcome_name, enum wpk_outcome, outcome_names)
WPK_LIST_PARSE(wpk_outcome_parse, enum wpk_outcome, outcome_names)

wpk_err wpk_record_encode(const struct wpk_record *record, char **text)
{
    struct wpk_buf buf;
    wpk_buf_init(&buf, RECORD_SIZE_MAX);
    wpk_err err = wpk_fields_encode(wpk_record_fields, record, &buf);
    err = err == WPK_OK ? wpk_buf_take(&buf, text, NULL) : err;
    wpk_buf_fini(&buf);
    return err;
}

wpk_err wpk_record_decode(const char *text, struct wpk_record *out, struct wpk_diag *diag)
{
    const struct wpk_fields_text from = {text, strlen(text), RECORD_SIZE_MAX, NULL, false};
    struct wpk_record record = {0};
    wpk_err err = wpk_fields_decode(&from, wpk_record_fields, &record, diag);
    if (err == WPK_OK) {
        *out = record;
    } else {
        wpk_record_fini(&record);
    }
    return err;
}

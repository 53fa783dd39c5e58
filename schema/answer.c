/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/answer.h"

#include "schema/fields.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX ((size_t)1 << 20)
#define COUNT_MAX WPK_JSON_INT_MAX

bool wpk_api_job_ended(const struct wpk_api_job *job)
{
    return strcmp(job->state, "done") == 0 || strcmp(job->state, "failed") == 0 ||
           strcmp(job->state, "cancelled") == 0;
}

/* ---- tables */

#define ANSWER_TEXT(name, type, member) WPK_FIELD_TEXT(name, type, member, TEXT_MAX, WPK_OPTIONAL)
#define ANSWER_INT(name, type, member)                                                             \
    WPK_FIELD_INT(name, type, member, -1, COUNT_MAX, WPK_OPTIONAL)
#define ANSWER_REAL(name, type, member)                                                            \
    WPK_FIELD_REAL(name, type, member, -DBL_MAX, DBL_MAX, WPK_OPTIONAL)
#define ANSWER_BOOL(name, type, member) WPK_FIELD(BOOL, name, type, member, WPK_OPTIONAL)

static const char *keep(const struct wpk_fields_in *in, const char *key, const char *text)
{
    const char *copy = wpk_arena_copy_text(in->arena, text);
    if (copy == NULL) {
        wpk_json_fail(in->r, key, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
    }
    return copy;
}

static void get_accuracy(const struct wpk_fields_in *in, const char *key, void *member)
{
    struct wpk_accuracy accuracy;
    char text[WPK_ACCURACY_TEXT_MAX];
    wpk_accuracy_get(in->r, key, &accuracy);
    wpk_accuracy_name(accuracy, text);
    *(const char **)member = keep(in, key, text);
}

static void get_raw(const struct wpk_fields_in *in, const char *key, void *member)
{
    struct wpk_buf raw = {0};
    wpk_json_get_raw(in->r, key, &raw);
    *(const char **)member = keep(in, key, wpk_buf_text(&raw));
    wpk_buf_fini(&raw);
}

/* ["a", "b"] as "a, b" */
static void get_words(const struct wpk_fields_in *in, const char *key, void *member)
{
    struct wpk_buf words = {.size_max = WPK_DIAG_TEXT_MAX};
    wpk_json_enter_array(in->r, key);
    while (wpk_json_next(in->r)) {
        wpk_buf_printf(&words, "%s%s", words.size > 0 ? ", " : "",
                       wpk_json_get_text(in->r, NULL, TEXT_MAX));
    }
    wpk_json_leave(in->r);
    *(const char **)member = keep(in, key, wpk_buf_text(&words));
    wpk_buf_fini(&words);
}

static void get_presence(struct wpk_json_reader *r, const char *key, void *member)
{
    *(bool *)member = wpk_json_has(r, key);
}

static const struct wpk_field time_fields[] = {
    {WPK_FIELD_COUNT("median", api_time, median_ns)},
    {WPK_FIELD_COUNT("min", api_time, min_ns)},
    {WPK_FIELD_COUNT("mad", api_time, mad_ns)},
    {WPK_FIELD_END},
};

static const struct wpk_field contender_fields[] = {
    {ANSWER_TEXT("provider", api_contender, provider)},
    {ANSWER_TEXT("algorithm", api_contender, algorithm)},
    {ANSWER_TEXT("detail", api_contender, detail)},
    {ANSWER_TEXT("candidate", api_contender, candidate)},
    {ANSWER_TEXT("artifact", api_contender, artifact)},
    {WPK_FIELD_OBJECT("time_ns", api_contender, time, time_fields, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

static const struct wpk_field tried_fields[] = {
    {ANSWER_INT("measured", api_kernel, measured)},
    {ANSWER_INT("failed", api_kernel, failed)},
    {WPK_FIELD_END},
};

static const struct wpk_field verified_fields[] = {
    {ANSWER_REAL("max_error", api_kernel, error_max)},
    {ANSWER_REAL("tolerance", api_kernel, error_tolerance)},
    {ANSWER_REAL("of_rms", api_kernel, of_rms)},
    {WPK_FIELD_REAL("times_direct", api_kernel, times_direct, -1, 1e300, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

/* Values of members that the answer lacks. */
static void set_defaults(struct wpk_json_reader *r WPK_UNUSED, void *object)
{
    struct wpk_api_kernel *kernel = object;
    kernel->times_direct = -1;
    kernel->own_schedule = "";
    kernel->accuracy = "";
}

static const struct wpk_field kernel_fields[] = {
    {WPK_FIELD_CHECK(set_defaults)},
    {ANSWER_TEXT("id", api_kernel, id)},
    {ANSWER_TEXT("name", api_kernel, name)},
    {ANSWER_TEXT("fingerprint", api_kernel, fingerprint)},
    {WPK_FIELD_GROUP(api_kernel, served, contender_fields)},
    {WPK_FIELD_OBJECT("baseline", api_kernel, baseline, contender_fields, WPK_OPTIONAL)},
    {WPK_FIELD_PART("own",
                    WPK_ROWS({WPK_FIELD_GROUP(api_kernel, own, contender_fields)},
                             {ANSWER_TEXT("schedule", api_kernel, own_schedule)}),
                    WPK_OPTIONAL)},
    {ANSWER_REAL("speedup", api_kernel, speedup)},
    {WPK_FIELD_PART("candidates", tried_fields, WPK_OPTIONAL)},
    {WPK_FIELD_PART("verified", verified_fields, WPK_OPTIONAL)},
    {ANSWER_BOOL("from_history", api_kernel, from_history)},
    {ANSWER_BOOL("served", api_kernel, is_served)},
    {ANSWER_BOOL("pinned", api_kernel, pinned)},
    {WPK_FIELD_CUSTOM("revoked", api_kernel, revoked, NULL, get_presence, WPK_OPTIONAL)},
    {WPK_FIELD(CUSTOM, "accuracy", api_kernel, accuracy, .make = get_accuracy, WPK_OPTIONAL)},
    {ANSWER_TEXT("conditions", api_kernel, conditions)},
    {WPK_FIELD(CUSTOM, "binding", api_kernel, binding_json, .make = get_raw, WPK_OPTIONAL)},
    {ANSWER_TEXT("op", api_kernel, op)},
    {ANSWER_TEXT("schedule", api_kernel, schedule)},
    {ANSWER_REAL("flops", api_kernel, flops)},
    {ANSWER_REAL("bytes", api_kernel, bytes)},
    {ANSWER_TEXT("device", api_kernel, device)},
    {ANSWER_REAL("device_peak_flops_per_s", api_kernel, peak_flops_per_s)},
    {ANSWER_REAL("device_peak_bytes_per_s", api_kernel, peak_bytes_per_s)},
    {ANSWER_TEXT("environment", api_kernel, environment)},
    {ANSWER_TEXT("layouts", api_kernel, layouts)},
    {WPK_FIELD_INT("threads", api_kernel, threads, -1, INT32_MAX, WPK_OPTIONAL)},
    {ANSWER_TEXT("created", api_kernel, created)},
    {ANSWER_TEXT("verified_by", api_kernel, verified_by)},
    {ANSWER_TEXT("job", api_kernel, job)},
    {ANSWER_TEXT("owner", api_kernel, owner)},
    {ANSWER_TEXT("manifest", api_kernel, manifest)},
    {ANSWER_TEXT("signature", api_kernel, signature)},
    {WPK_FIELD_END},
};

static const struct wpk_field wanted_fields[] = {
    {ANSWER_INT("measured", api_op, measured)},
    {ANSWER_INT("failed", api_op, failed)},
    {ANSWER_INT("known", api_op, known)},
    {ANSWER_INT("wanted", api_op, wanted)},
    {WPK_FIELD_END},
};

static const struct wpk_field op_fields[] = {
    {WPK_FIELD_GROUP(api_op, asked, kernel_fields, .is_pointer = true,
                     .size = sizeof(struct wpk_api_kernel))},
    {ANSWER_TEXT("name", api_op, name)},
    {ANSWER_TEXT("fingerprint", api_op, fingerprint)},
    {ANSWER_TEXT("phase", api_op, phase)},
    {ANSWER_TEXT("reason", api_op, reason)},
    {ANSWER_BOOL("from_history", api_op, from_history)},
    {WPK_FIELD_PART("candidates", wanted_fields, WPK_OPTIONAL)},
    {WPK_FIELD_OBJECT("best", api_op, best, contender_fields, WPK_OPTIONAL)},
    {WPK_FIELD_OBJECT("baseline", api_op, baseline, contender_fields, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

#define LIST(name, type, member, count, rows, ...)                                                 \
    WPK_FIELD_LIST(name, type, member, count, WPK_API_LIST_MAX, rows, __VA_ARGS__)

static const struct wpk_field job_fields[] = {
    {ANSWER_TEXT("id", api_job, id)},
    {ANSWER_TEXT("name", api_job, name)},
    {ANSWER_TEXT("owner", api_job, owner)},
    {ANSWER_TEXT("state", api_job, state)},
    {ANSWER_TEXT("reason", api_job, reason)},
    {ANSWER_TEXT("created", api_job, created)},
    {ANSWER_REAL("seconds", api_job, seconds)},
    {ANSWER_INT("seconds_left", api_job, seconds_left)},
    {LIST("ops", api_job, ops, op_count, op_fields, )},
    {LIST("kernels", api_job, kernels, kernel_count, kernel_fields, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

static void set_worker_defaults(struct wpk_json_reader *r WPK_UNUSED, void *object)
{
    struct wpk_api_worker *worker = object;
    worker->providers = "";
    worker->missing = "";
}

static const struct wpk_field worker_fields[] = {
    {WPK_FIELD_CHECK(set_worker_defaults)},
    {ANSWER_TEXT("name", api_worker, name)},
    {ANSWER_TEXT("state", api_worker, state)},
    {ANSWER_TEXT("device", api_worker, device)},
    {ANSWER_TEXT("driver", api_worker, driver)},
    {ANSWER_INT("memory_bytes", api_worker, memory_bytes)},
    {ANSWER_INT("cache_bytes", api_worker, cache_bytes)},
    {ANSWER_REAL("peak_flops_per_s", api_worker, peak_flops_per_s)},
    {ANSWER_REAL("peak_bytes_per_s", api_worker, peak_bytes_per_s)},
    {WPK_FIELD(CUSTOM, "providers", api_worker, providers, .make = get_words, WPK_OPTIONAL)},
    {WPK_FIELD(CUSTOM, "missing", api_worker, missing, .make = get_words, WPK_OPTIONAL)},
    {ANSWER_INT("running", api_worker, running)},
    {ANSWER_INT("heard_seconds_ago", api_worker, heard_seconds_ago)},
    {ANSWER_TEXT("reason", api_worker, reason)},
    {WPK_FIELD_END},
};

static const struct wpk_field trial_time_fields[] = {
    {ANSWER_REAL("median", api_trial, median_ns)},
    {ANSWER_REAL("min", api_trial, min_ns)},
    {ANSWER_REAL("mad", api_trial, mad_ns)},
    {WPK_FIELD_END},
};

static const struct wpk_field trial_fields[] = {
    {WPK_FIELD_INT("index", api_trial, index, -1, WPK_JSON_INT_MAX, WPK_OPTIONAL)},
    {ANSWER_TEXT("provider", api_trial, provider)},
    {ANSWER_TEXT("candidate", api_trial, candidate)},
    {ANSWER_TEXT("source", api_trial, source)},
    {ANSWER_TEXT("outcome", api_trial, outcome)},
    {ANSWER_TEXT("log", api_trial, log)},
    {ANSWER_TEXT("recorded", api_trial, recorded)},
    {ANSWER_REAL("anchor_ratio", api_trial, ratio)},
    {ANSWER_BOOL("censored", api_trial, censored)},
    {WPK_FIELD_PART("time_ns", trial_time_fields, WPK_OPTIONAL)},
    {WPK_FIELD_PART("launch", WPK_ROWS({ANSWER_INT("local_bytes", api_trial, spilled_bytes)}),
                    WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

const char *wpk_api_trial_gene(const char *candidate, const char *gene, size_t length, size_t *size)
{
    for (const char *at = candidate; *at != '\0'; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word > length && memcmp(at, gene, length) == 0 && at[length] == '=') {
            *size = word - length - 1;
            return at + length + 1;
        }
        at += word;
    }
    *size = 0;
    return "";
}

static void check_list(struct wpk_json_reader *r, void *object WPK_UNUSED)
{
    if (!wpk_json_has(r, "kernels") && !wpk_json_has(r, "jobs") && !wpk_json_has(r, "workers") &&
        !wpk_json_has(r, "trials")) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "there is no list");
    }
}

static const struct wpk_field list_fields[] = {
    {WPK_FIELD_CHECK(check_list)},
    {LIST("kernels", api_list, kernels, count, kernel_fields, WPK_OPTIONAL)},
    {LIST("jobs", api_list, jobs, count, job_fields, WPK_OPTIONAL)},
    {LIST("workers", api_list, workers, count, worker_fields, WPK_OPTIONAL)},
    {LIST("trials", api_list, trials, count, trial_fields, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

/* The diag says where in the answer decoding failed; the user wants to know whose fault it is. */
static wpk_err decode(const struct wpk_buf *body, struct wpk_arena *arena,
                      const struct wpk_field *table, void *object, struct wpk_diag *diag)
{
    const struct wpk_fields_text from = {wpk_buf_text(body), body->size, body->size, arena, true};
    return wpk_diag_in_file(diag, wpk_fields_decode(&from, table, object, diag), "answer of wpkd");
}

wpk_err wpk_api_decode_job(const struct wpk_buf *body, struct wpk_arena *arena,
                           struct wpk_api_job *out, struct wpk_diag *diag)
{
    struct wpk_api_job job = {0};
    wpk_err err = decode(body, arena, job_fields, &job, diag);
    if (err == WPK_OK) {
        *out = job;
    }
    return err;
}

wpk_err wpk_api_decode_list(const struct wpk_buf *body, struct wpk_arena *arena,
                            struct wpk_api_list *out, struct wpk_diag *diag)
{
    *out = (struct wpk_api_list){0};
    return decode(body, arena, list_fields, out, diag);
}

static wpk_err translate_status(int status)
{
    switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
        return WPK_EINVAL;
    case 401:
    case 403:
        return WPK_EACCES;
    case 404:
    case 410:
        return WPK_ENOENT;
    case 503:
        return WPK_EBUSY;
    case 429: /* as many jobs as there may be: no better in a second */
    case 507:
        return WPK_ENOSPC;
    default:
        return status >= 200 && status < 300 ? WPK_OK : WPK_EIO;
    }
}

static void read_problem(const struct wpk_buf *body, struct wpk_diag *diag)
{
    struct wpk_json_reader *reader;
    char detail[WPK_DIAG_TEXT_MAX] = "";

    if (wpk_json_open(wpk_buf_text(body), body->size, 0, &reader, NULL) != WPK_OK) {
        return;
    }
    if (wpk_json_kind_of(reader, "detail") == WPK_JSON_STRING) {
        snprintf(detail, sizeof(detail), "%s", wpk_json_get_text(reader, "detail", TEXT_MAX));
    }
    if (wpk_json_kind_of(reader, "field") == WPK_JSON_STRING) {
        snprintf(diag->field, sizeof(diag->field), "%s",
                 wpk_json_get_text(reader, "field", TEXT_MAX));
    }
    bool placed = wpk_json_has(reader, "line") && wpk_json_has(reader, "column");
    int line = placed ? (int)wpk_json_get_int(reader, "line", 0, INT32_MAX) : 0;
    int column = placed ? (int)wpk_json_get_int(reader, "column", 0, INT32_MAX) : 0;
    if (detail[0] != '\0' && wpk_json_status(reader) == WPK_OK) {
        wpk_diag_set_at(diag, line, column, "%s", detail);
    }
    wpk_json_close(reader);
}

wpk_err wpk_api_check(int status, const struct wpk_buf *body, struct wpk_diag *diag)
{
    wpk_err err = translate_status(status);

    if (err != WPK_OK && diag != NULL) {
        read_problem(body, diag);
        /* Where the answer was no problem document, its status is all there is. */
        wpk_diag_set(
            diag, "wpkd answered with status %d and no reason; is it a wpkd that --server names?",
            status);
    }
    return err;
}

const struct wpk_api_op *wpk_api_job_op(const struct wpk_api_job *job, const char *name)
{
    int found = WPK_FIND(struct wpk_api_op, name, job->ops, job->op_count, name);
    return found >= 0 ? &job->ops[found] : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/answer.h"

#include "common/json.h"
#include "schema/accuracy.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX ((size_t)1 << 20)
#define COUNT_MAX WPK_JSON_INT_MAX
#define BINDING_MAX 64 /* tensors of an operator */

bool wpk_api_job_ended(const struct wpk_api_job *job)
{
    return strcmp(job->state, "done") == 0 || strcmp(job->state, "failed") == 0 ||
           strcmp(job->state, "cancelled") == 0;
}

/* Absent and null are the same to us. */
static bool given(struct wpk_json_reader *reader, const char *key)
{
    enum wpk_json_kind kind = wpk_json_kind_of(reader, key);

    return kind != WPK_JSON_ABSENT && kind != WPK_JSON_NULL;
}

static const char *get_text(struct wpk_json_reader *reader, const char *key,
                            struct wpk_arena *arena)
{
    if (!given(reader, key)) {
        return "";
    }
    const char *copy = wpk_arena_copy_text(arena, wpk_json_get_text(reader, key, TEXT_MAX));
    if (copy == NULL) {
        wpk_json_fail(reader, key, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
        return "";
    }
    return copy;
}

static int64_t get_int(struct wpk_json_reader *reader, const char *key)
{
    return given(reader, key) ? wpk_json_get_int(reader, key, -1, COUNT_MAX) : 0;
}

static double get_real(struct wpk_json_reader *reader, const char *key)
{
    return given(reader, key) ? wpk_json_get_real(reader, key, -DBL_MAX, DBL_MAX) : 0;
}

static bool get_bool(struct wpk_json_reader *reader, const char *key)
{
    return given(reader, key) && wpk_json_get_bool(reader, key);
}

static void get_time(struct wpk_json_reader *reader, struct wpk_api_time *out)
{
    if (!given(reader, "time_ns")) {
        return;
    }
    wpk_json_enter(reader, "time_ns");
    out->median_ns = (uint64_t)wpk_json_get_int(reader, "median", 0, COUNT_MAX);
    out->min_ns = (uint64_t)wpk_json_get_int(reader, "min", 0, COUNT_MAX);
    out->mad_ns = (uint64_t)wpk_json_get_int(reader, "mad", 0, COUNT_MAX);
    wpk_json_leave(reader);
}

/* The members that a contender and a kernel have in common. */
static void get_contender_here(struct wpk_json_reader *reader, struct wpk_arena *arena,
                               struct wpk_api_contender *out)
{
    out->provider = get_text(reader, "provider", arena);
    out->algorithm = get_text(reader, "algorithm", arena);
    out->detail = get_text(reader, "detail", arena);
    out->candidate = get_text(reader, "candidate", arena);
    out->artifact = get_text(reader, "artifact", arena);
    get_time(reader, &out->time);
}

static void get_contender(struct wpk_json_reader *reader, const char *key, struct wpk_arena *arena,
                          struct wpk_api_contender *out)
{
    if (given(reader, key)) {
        wpk_json_enter(reader, key);
        get_contender_here(reader, arena, out);
        wpk_json_leave(reader);
    }
}

static void get_candidates(struct wpk_json_reader *reader, int64_t *measured, int64_t *failed)
{
    if (given(reader, "candidates")) {
        wpk_json_enter(reader, "candidates");
        *measured = get_int(reader, "measured");
        *failed = get_int(reader, "failed");
        wpk_json_leave(reader);
    }
}

/* [["X", "t0"], ...] */
static void get_pairs(struct wpk_json_reader *reader, const char *key, struct wpk_arena *arena,
                      struct wpk_api_kernel *out)
{
    wpk_json_enter_array(reader, key);
    while (wpk_json_next(reader)) {
        const char *pair[2] = {"", ""};
        wpk_json_enter_array(reader, NULL);
        for (int i = 0; i < 2 && wpk_json_next(reader); i++) {
            pair[i] = get_text(reader, NULL, arena);
        }
        wpk_json_leave(reader);
        if (out->binding_count < BINDING_MAX) {
            out->binding[out->binding_count++] = (struct wpk_api_binding){pair[0], pair[1]};
        }
    }
    wpk_json_leave(reader);
}

static void get_binding(struct wpk_json_reader *reader, struct wpk_arena *arena,
                        struct wpk_api_kernel *out)
{
    static const char *const lists[] = {"inputs", "constants", "outputs"};

    if (!given(reader, "binding")) {
        return;
    }
    out->binding = wpk_arena_alloc(arena, BINDING_MAX, sizeof(*out->binding));
    if (out->binding == NULL) {
        wpk_json_fail(reader, "binding", WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
        return;
    }
    struct wpk_buf raw = {0};
    wpk_json_get_raw(reader, "binding", &raw);
    out->binding_json = wpk_arena_copy_text(arena, wpk_buf_text(&raw));
    wpk_buf_fini(&raw);
    wpk_json_enter(reader, "binding");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        get_pairs(reader, lists[i], arena, out);
    }
    wpk_json_leave(reader);
}

/* A class as text, "" where there is none. */
static const char *get_accuracy(struct wpk_json_reader *reader, struct wpk_arena *arena)
{
    char *text =
        given(reader, "accuracy") ? wpk_arena_alloc(arena, WPK_ACCURACY_TEXT_MAX, 1) : NULL;
    if (text == NULL) {
        return "";
    }
    wpk_accuracy_name(wpk_accuracy_get(reader, "accuracy"), text);
    return text;
}

static void get_verified(struct wpk_json_reader *reader, struct wpk_api_kernel *out)
{
    out->times_direct = -1;
    if (given(reader, "verified")) {
        wpk_json_enter(reader, "verified");
        out->error_max = get_real(reader, "max_error");
        out->error_tolerance = get_real(reader, "tolerance");
        out->of_rms = get_real(reader, "of_rms");
        out->times_direct = given(reader, "times_direct")
                                ? wpk_json_get_real(reader, "times_direct", -1, 1e300)
                                : -1;
        wpk_json_leave(reader);
    }
}

static void get_kernel(struct wpk_json_reader *reader, struct wpk_arena *arena,
                       struct wpk_api_kernel *out)
{
    out->id = get_text(reader, "id", arena);
    out->name = get_text(reader, "name", arena);
    out->fingerprint = get_text(reader, "fingerprint", arena);
    get_contender_here(reader, arena, &out->served);
    get_contender(reader, "baseline", arena, &out->baseline);
    get_contender(reader, "own", arena, &out->own);
    out->own_schedule = "";
    if (given(reader, "own")) {
        wpk_json_enter(reader, "own");
        out->own_schedule = get_text(reader, "schedule", arena);
        wpk_json_leave(reader);
    }
    out->speedup = get_real(reader, "speedup");
    get_candidates(reader, &out->measured, &out->failed);
    get_verified(reader, out);
    out->from_history = get_bool(reader, "from_history");
    out->is_served = get_bool(reader, "served");
    out->pinned = get_bool(reader, "pinned");
    out->revoked = given(reader, "revoked");
    out->accuracy = get_accuracy(reader, arena);
    out->conditions = get_text(reader, "conditions", arena);
    get_binding(reader, arena, out);
    out->op = get_text(reader, "op", arena);
    out->schedule = get_text(reader, "schedule", arena);
    out->flops = get_real(reader, "flops");
    out->device = get_text(reader, "device", arena);
    out->peak_flops_per_s = get_real(reader, "device_peak_flops_per_s");
    out->peak_bytes_per_s = get_real(reader, "device_peak_bytes_per_s");
    out->environment = get_text(reader, "environment", arena);
    out->layouts = get_text(reader, "layouts", arena);
    out->threads = (int)get_int(reader, "threads");
    out->created = get_text(reader, "created", arena);
    out->manifest = get_text(reader, "manifest", arena);
    out->signature = get_text(reader, "signature", arena);
}

static const struct wpk_api_kernel *get_asked(struct wpk_json_reader *reader,
                                              struct wpk_arena *arena)
{
    struct wpk_api_kernel *asked = wpk_arena_alloc(arena, 1, sizeof(*asked));

    if (asked == NULL) {
        wpk_json_fail(reader, NULL, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
        return NULL;
    }
    asked->id = "";
    asked->layouts = "";
    asked->fingerprint = get_text(reader, "fingerprint", arena);
    asked->device = get_text(reader, "device", arena);
    asked->accuracy = get_accuracy(reader, arena);
    asked->conditions = get_text(reader, "conditions", arena);
    get_binding(reader, arena, asked);
    return asked;
}

static void get_op(struct wpk_json_reader *reader, struct wpk_arena *arena, struct wpk_api_op *out)
{
    out->asked = get_asked(reader, arena);
    out->name = get_text(reader, "name", arena);
    out->fingerprint = get_text(reader, "fingerprint", arena);
    out->phase = get_text(reader, "phase", arena);
    out->reason = get_text(reader, "reason", arena);
    out->from_history = get_bool(reader, "from_history");
    get_candidates(reader, &out->measured, &out->failed);
    if (given(reader, "candidates")) {
        wpk_json_enter(reader, "candidates");
        out->known = get_int(reader, "known");
        out->wanted = get_int(reader, "wanted");
        wpk_json_leave(reader);
    }
    get_contender(reader, "best", arena, &out->best);
    get_contender(reader, "baseline", arena, &out->baseline);
}

/* Room for the items of a list, checked; NULL after a failure, and then the list is not entered. */
static void *list_room(struct wpk_json_reader *reader, const char *key, struct wpk_arena *arena,
                       size_t item_size)
{
    size_t count = wpk_json_count(reader, key);

    if (count > WPK_API_LIST_MAX) {
        wpk_json_fail(reader, key, WPK_ERANGE, "has more than %d items", WPK_API_LIST_MAX);
        return NULL;
    }
    void *items = wpk_arena_alloc(arena, count, item_size);
    if (items == NULL) {
        wpk_json_fail(reader, key, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
    }
    return items;
}

static struct wpk_api_kernel *get_kernels(struct wpk_json_reader *reader, struct wpk_arena *arena,
                                          int *count)
{
    struct wpk_api_kernel *kernels = list_room(reader, "kernels", arena, sizeof(*kernels));

    wpk_json_enter_array(reader, "kernels");
    while (wpk_json_next(reader)) {
        get_kernel(reader, arena, &kernels[(*count)++]);
    }
    wpk_json_leave(reader);
    return kernels;
}

static void get_job(struct wpk_json_reader *reader, struct wpk_arena *arena,
                    struct wpk_api_job *out)
{
    out->id = get_text(reader, "id", arena);
    out->name = get_text(reader, "name", arena);
    out->owner = get_text(reader, "owner", arena);
    out->state = get_text(reader, "state", arena);
    out->reason = get_text(reader, "reason", arena);
    out->created = get_text(reader, "created", arena);
    out->seconds = get_real(reader, "seconds");
    out->seconds_left = get_int(reader, "seconds_left");
    out->ops = list_room(reader, "ops", arena, sizeof(*out->ops));
    wpk_json_enter_array(reader, "ops");
    while (wpk_json_next(reader)) {
        get_op(reader, arena, &out->ops[out->op_count++]);
    }
    wpk_json_leave(reader);
    if (given(reader, "kernels")) {
        out->kernels = get_kernels(reader, arena, &out->kernel_count);
    }
}

/* The diag of a decoder says where in the answer it failed; the user wants to know whose fault. */
static wpk_err finish(struct wpk_json_reader *reader, struct wpk_diag *diag)
{
    wpk_err err = wpk_json_status(reader);

    wpk_json_close(reader);
    if (err != WPK_OK && diag != NULL) {
        snprintf(diag->file, sizeof(diag->file), "%s", "answer of wpkd");
    }
    return err;
}

wpk_err wpk_api_decode_job(const struct wpk_buf *body, struct wpk_arena *arena,
                           struct wpk_api_job *out, struct wpk_diag *diag)
{
    struct wpk_json_reader *reader;
    struct wpk_api_job job = {0};

    wpk_err err = wpk_json_open(wpk_buf_text(body), body->size, body->size, &reader, diag);
    if (err == WPK_OK) {
        get_job(reader, arena, &job);
        err = finish(reader, diag);
    }
    if (err == WPK_OK) {
        *out = job;
    }
    return err;
}

wpk_err wpk_api_decode_kernels(const struct wpk_buf *body, struct wpk_arena *arena,
                               struct wpk_api_kernel **out, int *count, struct wpk_diag *diag)
{
    struct wpk_json_reader *reader;

    wpk_err err = wpk_json_open(wpk_buf_text(body), body->size, body->size, &reader, diag);
    if (err == WPK_OK) {
        *count = 0;
        *out = get_kernels(reader, arena, count);
        err = finish(reader, diag);
    }
    return err;
}

wpk_err wpk_api_decode_jobs(const struct wpk_buf *body, struct wpk_arena *arena,
                            struct wpk_api_job **out, int *count, struct wpk_diag *diag)
{
    struct wpk_json_reader *reader;

    wpk_err err = wpk_json_open(wpk_buf_text(body), body->size, body->size, &reader, diag);
    if (err == WPK_OK) {
        struct wpk_api_job *jobs = list_room(reader, "jobs", arena, sizeof(*jobs));
        *count = 0;
        wpk_json_enter_array(reader, "jobs");
        while (wpk_json_next(reader)) {
            get_job(reader, arena, &jobs[(*count)++]);
        }
        wpk_json_leave(reader);
        *out = jobs;
        err = finish(reader, diag);
    }
    return err;
}

/* ["a", "b"] as "a, b" */
static const char *get_words(struct wpk_json_reader *reader, const char *key,
                             struct wpk_arena *arena)
{
    struct wpk_buf words = {.size_max = WPK_DIAG_TEXT_MAX};

    if (!wpk_json_has(reader, key)) {
        return "";
    }
    wpk_json_enter_array(reader, key);
    while (wpk_json_next(reader)) {
        wpk_buf_printf(&words, "%s%s", words.size > 0 ? ", " : "",
                       wpk_json_get_text(reader, NULL, TEXT_MAX));
    }
    wpk_json_leave(reader);
    const char *copy = wpk_arena_copy_text(arena, wpk_buf_text(&words));
    wpk_buf_fini(&words);
    return copy != NULL ? copy : "";
}

wpk_err wpk_api_decode_workers(const struct wpk_buf *body, struct wpk_arena *arena,
                               struct wpk_api_worker **out, int *count, struct wpk_diag *diag)
{
    struct wpk_json_reader *reader;

    wpk_err err = wpk_json_open(wpk_buf_text(body), body->size, body->size, &reader, diag);
    if (err == WPK_OK) {
        struct wpk_api_worker *workers = list_room(reader, "workers", arena, sizeof(*workers));
        *count = 0;
        wpk_json_enter_array(reader, "workers");
        while (wpk_json_next(reader)) {
            workers[(*count)++] = (struct wpk_api_worker){
                .name = get_text(reader, "name", arena),
                .state = get_text(reader, "state", arena),
                .device = get_text(reader, "device", arena),
                .driver = get_text(reader, "driver", arena),
                .memory_bytes = get_int(reader, "memory_bytes"),
                .cache_bytes = get_int(reader, "cache_bytes"),
                .peak_flops_per_s = get_real(reader, "peak_flops_per_s"),
                .peak_bytes_per_s = get_real(reader, "peak_bytes_per_s"),
                .providers = get_words(reader, "providers", arena),
                .missing = get_words(reader, "missing", arena),
                .running = get_int(reader, "running"),
                .heard_seconds_ago = get_int(reader, "heard_seconds_ago"),
                .reason = get_text(reader, "reason", arena),
            };
        }
        wpk_json_leave(reader);
        *out = workers;
        err = finish(reader, diag);
    }
    return err;
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
    int line = (int)get_int(reader, "line");
    int column = (int)get_int(reader, "column");
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
    for (int i = 0; i < job->op_count; i++) {
        if (strcmp(job->ops[i].name, name) == 0) {
            return &job->ops[i];
        }
    }
    return NULL;
}

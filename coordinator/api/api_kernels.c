/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: served ones from the index, others from the store. */
#include "common/crypto.h"
#include "coordinator/api/api_call.h"
#include "coordinator/api/api_lookup.h"
#include "coordinator/store/artifact.h"
#include "coordinator/store/document.h"
#include "coordinator/store/history.h"
#include "coordinator/store/history_job.h"
#include "schema/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists */

#define PREFIX_MIN 8 /* digits of a fingerprint that stand for it */

struct filter {
    const char *fingerprint; /* or its first digits; each: "" for any */
    const char *family;
    const char *device;
    const char *layouts;
    const char *environment;
    const char *provider;
    uint64_t threads; /* 0: any */
    bool any_accuracy;
    struct wpk_accuracy accuracy; /* the class that serves it */
    bool any_conditions;
    enum wpk_conditions conditions;
};

static bool is_whole(const char *fingerprint)
{
    return strlen(fingerprint) == WPK_FINGERPRINT_SIZE - 1;
}

static bool is_any(const char *wanted, const char *text)
{
    return wanted[0] == '\0' || strcmp(wanted, text) == 0;
}

static bool passes(const struct filter *filter, const struct wpk_served *served)
{
    return strncmp(filter->fingerprint, served->fingerprint, strlen(filter->fingerprint)) == 0 &&
           is_any(filter->family, served->family) && is_any(filter->device, served->device) &&
           is_any(filter->layouts, served->layouts) &&
           is_any(filter->environment, served->environment) &&
           is_any(filter->provider, served->provider) &&
           (filter->any_accuracy ||
            filter->accuracy.times_direct == served->accuracy.times_direct) &&
           (filter->any_conditions || filter->conditions == served->conditions) &&
           (filter->threads == 0 || (int)filter->threads == served->threads);
}

/* To the shortest run of entries that holds all that can pass, in front of the kernel `before`. */
static void seek(const struct wpk_index_version *version, const struct filter *filter,
                 uint64_t before, struct wpk_index_cursor *out)
{
    if (is_whole(filter->fingerprint)) {
        wpk_index_seek(out, version, WPK_INDEX_BY_FINGERPRINT, wpk_served_key(filter->fingerprint),
                       before);
    } else if (filter->family[0] != '\0') {
        wpk_index_seek(out, version, WPK_INDEX_BY_FAMILY, wpk_served_key(filter->family), before);
    } else {
        wpk_index_seek(out, version, WPK_INDEX_BY_KERNEL, 0, before);
    }
}

/* A page, newest first; the id to go on before, 0 at the end. */
static uint64_t append_page(const struct wpk_index_version *version, const struct filter *filter,
                            uint64_t before, int page_size, struct wpk_buf *out)
{
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    uint64_t last = 0;
    int count = 0;
    seek(version, filter, before, &cursor);
    while ((served = wpk_index_prev(&cursor)) != NULL) {
        if (!passes(filter, served)) {
            continue;
        }
        if (count++ == page_size) {
            return last;
        }
        wpk_buf_append_text(out, count > 1 ? "," : "");
        wpk_buf_append(out, served->kernel.text, served->kernel.size);
        last = served->kernel_id;
    }
    return 0;
}

/* A hash where it is given; false after answering with a problem. */
static bool get_hash(struct wpk_call *call, const char *name, const char **out)
{
    const char *text = wpk_http_query(call->request, name);
    *out = text != NULL ? text : "";
    return text == NULL || wpk_crypto_hex_valid(text, WPK_SHA256_SIZE) ||
           wpk_call_problem(call, 422, WPK_EINVAL, name, "not a SHA-256 in lower-case hexadecimal");
}

/* A fingerprint, or at least PREFIX_MIN digits of one; false after answering with a problem. */
static bool get_fingerprint(struct wpk_call *call, const char **out)
{
    const char *text = wpk_call_get(call, "fingerprint");
    size_t size = strlen(text);
    *out = text;
    if (wpk_http_query(call->request, "fingerprint") == NULL ||
        (size >= PREFIX_MIN && size < WPK_FINGERPRINT_SIZE &&
         strspn(text, "0123456789abcdef") == size)) {
        return true;
    }
    return wpk_call_problem(call, 422, WPK_EINVAL, "fingerprint",
                            "not 8 to 64 digits of a fingerprint, in lower-case hexadecimal");
}

/* The class and the conditions; false after answering with a problem. */
static bool get_accuracy(struct wpk_call *call, struct filter *out)
{
    const char *accuracy = wpk_http_query(call->request, "accuracy");
    const char *conditions = wpk_http_query(call->request, "conditions");
    struct wpk_diag diag = {0};
    out->any_accuracy = accuracy == NULL;
    out->accuracy = WPK_ACCURACY_STANDARD;
    out->any_conditions = conditions == NULL;
    out->conditions = WPK_CONDITIONS_WARM;
    wpk_err err = accuracy != NULL ? wpk_accuracy_parse(accuracy, &out->accuracy, &diag) : WPK_OK;
    if (err != WPK_OK) {
        return wpk_call_problem(call, 422, err, "accuracy", diag.text);
    }
    if (conditions != NULL && wpk_conditions_parse(conditions, &out->conditions) != WPK_OK) {
        return wpk_call_problem(call, 422, WPK_EINVAL, "conditions",
                                "conditions are \"warm\", \"cold-constants\" or \"cold\"");
    }
    return true;
}

static bool get_filter(struct wpk_call *call, struct filter *out)
{
    out->device = wpk_call_get(call, "device");
    out->layouts = wpk_call_get(call, "layouts");
    out->environment = wpk_call_get(call, "environment");
    out->provider = wpk_call_get(call, "provider");
    if (wpk_http_query(call->request, "layouts") != NULL && strcmp(out->layouts, "fixed") != 0 &&
        strcmp(out->layouts, "any") != 0) {
        return wpk_call_problem(call, 422, WPK_EINVAL, "layouts",
                                "layouts are \"fixed\" or \"any\"");
    }
    return get_accuracy(call, out) && get_fingerprint(call, &out->fingerprint) &&
           get_hash(call, "family", &out->family) &&
           wpk_call_number(call, "threads", 0, 1, WPK_JOB_THREADS_MAX, &out->threads);
}

/* Of an operator that was named: how well what there is matches. */
static bool append_match(struct wpk_call *call, const struct wpk_index_version *version,
                         const struct filter *filter, struct wpk_buf *out)
{
    struct wpk_lookup lookup = {
        .layouts = filter->layouts[0] != '\0' ? filter->layouts : "fixed",
        .threads = filter->threads != 0 ? (int)filter->threads : 1,
        .accuracy = filter->accuracy,
        .conditions = filter->conditions,
        .device = filter->device,
        .environment = filter->environment,
    };
    if (!is_whole(filter->fingerprint)) {
        return true;
    }
    memcpy(lookup.fingerprint, filter->fingerprint, sizeof lookup.fingerprint);
    wpk_buf_append_text(out, "\"match\":");
    bool ok = wpk_lookup_answer(call, version, &lookup, false, out);
    wpk_buf_append_byte(out, ',');
    return ok;
}

/* After the items of a list; `last` is the id to go on before, 0 at the end. */
static void end_list(struct wpk_call *call, uint64_t last)
{
    char token[24] = "";
    if (last != 0) {
        snprintf(token, sizeof token, "%llu", (unsigned long long)last);
    }
    wpk_buf_printf(&call->answer->body, "],\"next_page_token\":\"%s\"}", token);
    wpk_call_text(call);
}

void wpk_api_list_kernels(struct wpk_call *call)
{
    int page_size;
    uint64_t before;
    struct filter filter;
    struct wpk_buf *out = &call->answer->body;
    if (!wpk_call_page_size(call, &page_size) || !get_filter(call, &filter) ||
        !wpk_call_number(call, "page_token", INT64_MAX, 1, INT64_MAX, &before) ||
        !wpk_call_index(call)) {
        return;
    }
    const struct wpk_index_version *version = wpk_index_acquire(call->api->index);
    if (wpk_call_has_version(call, version)) {
        wpk_index_release(call->api->index, version);
        return;
    }
    wpk_buf_append_byte(out, '{');
    if (append_match(call, version, &filter, out)) {
        wpk_buf_append_text(out, "\"kernels\":[");
        uint64_t last = append_page(version, &filter, before, page_size, out);
        end_list(call, last);
    }
    wpk_index_release(call->api->index, version);
}

/* ---- one of them */

/* "k17"; false after answering that there is none. */
bool wpk_call_kernel_id(struct wpk_call *call, uint64_t *out)
{
    const char *digits = call->name + 1;
    size_t size = strspn(digits, "0123456789");
    if (call->name[0] == 'k' && size > 0 && size < 19 && digits[size] == '\0') {
        *out = strtoull(digits, NULL, 10);
        return true;
    }
    return wpk_call_problem(call, 404, WPK_ENOENT, "",
                            "no such kernel; the list of kernels has their ids");
}

static void append_row(void *user, const struct wpk_kernel_row *row)
{
    struct wpk_buf *out = user;
    wpk_err err = wpk_document_kernel_row(row, out);
    WPK_ASSERT(err == WPK_OK || wpk_buf_status(out) != WPK_OK || err == WPK_ENOMEM);
}

void wpk_api_get_kernel(struct wpk_call *call)
{
    uint64_t id;
    if (!wpk_call_kernel_id(call, &id)) {
        return;
    }
    if (!wpk_history_read_kernel(call->api->store, id, append_row, &call->answer->body)) {
        wpk_call_problem(call, 404, WPK_ENOENT, "",
                         "no such kernel; the list of kernels has their ids");
        return;
    }
    wpk_call_text(call);
}

struct manifest {
    struct wpk_buf *out;
    bool revoked;
};

static void append_manifest(void *user, const struct wpk_kernel_row *row)
{
    struct manifest *manifest = user;
    manifest->revoked = row->revoked_at != 0;
    wpk_buf_append_text(manifest->out, row->manifest);
}

void wpk_api_get_manifest(struct wpk_call *call)
{
    uint64_t id;
    struct manifest manifest = {.out = &call->answer->body};
    if (!wpk_call_kernel_id(call, &id)) {
        return;
    }
    bool found = wpk_history_read_kernel(call->api->store, id, append_manifest, &manifest);
    if (found && manifest.revoked) {
        wpk_call_problem(call, 410, WPK_ENOENT, "",
                         "the kernel was revoked; look its operator up again for another");
        return;
    }
    if (!found || call->answer->body.size == 0) {
        wpk_call_problem(call, 404, WPK_ENOENT, "",
                         "no such kernel, or a vendor's, which needs no manifest");
        return;
    }
    wpk_call_text(call);
}

struct line {
    struct wpk_buf *out;
    int count;
};

static void append_line(void *user, const struct wpk_kernel_row *row)
{
    struct line *line = user;
    wpk_buf_append_text(line->out, line->count++ > 0 ? "," : "");
    append_row(line->out, row);
}

void wpk_api_list_kernel_history(struct wpk_call *call)
{
    uint64_t id;
    uint64_t before;
    int page_size;
    struct line line = {.out = &call->answer->body};
    if (!wpk_call_kernel_id(call, &id) || !wpk_call_page_size(call, &page_size) ||
        !wpk_call_number(call, "page_token", INT64_MAX, 1, INT64_MAX, &before)) {
        return;
    }
    wpk_buf_append_text(line.out, "{\"kernels\":[");
    uint64_t last =
        wpk_history_kernel_line(call->api->store, id, before, page_size, append_line, &line);
    if (line.count == 0 && before == INT64_MAX) {
        wpk_buf_reset(line.out);
        wpk_call_problem(call, 404, WPK_ENOENT, "",
                         "no such kernel; the list of kernels has their ids");
        return;
    }
    end_list(call, last);
}

static bool find_op(struct wpk_call *call, const char *const *names, uint32_t count, int *out)
{
    const char *op = wpk_http_query(call->request, "op");
    *out = op != NULL ? wpk_list_find(names, (int)count, op) : -1;
    if (op != NULL && *out < 0) {
        return wpk_call_problem(call, 422, WPK_ENOENT, "op",
                                "the job has no such operator; its ops have their names");
    }
    return true;
}

/* "position.index", as put_place writes it. */
static bool get_place(struct wpk_call *call, struct wpk_history_place *place)
{
    const char *text = wpk_http_query(call->request, "page_token");
    *place = (struct wpk_history_place){.index = -1};
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    unsigned position;
    long long index;
    char rest;
    if (sscanf(text, "%u.%lld%c", &position, &index, &rest) != 2 || index < 0) {
        return wpk_call_problem(call, 422, WPK_EINVAL, "page_token",
                                "not a token that a page gave out; begin without one");
    }
    *place = (struct wpk_history_place){.position = position, .index = index};
    return true;
}

void wpk_api_list_trials(struct wpk_call *call)
{
    const char *names[WPK_JOB_OPS_MAX];
    uint32_t count = 0;
    uint64_t number = 0;
    int page_size;
    int op;
    struct wpk_history_place place;
    struct wpk_arena arena = {0};
    wpk_err err =
        wpk_history_op_names(call->api->store, call->name, &arena, names, &count, &number);
    if (err == WPK_ENOENT) {
        wpk_api_no_job(call->answer, call->api, call->name);
    } else if (err != WPK_OK) {
        wpk_call_problem(call, wpk_api_status(err), err, "", wpk_err_text(err));
    } else if (wpk_call_page_size(call, &page_size) && find_op(call, names, count, &op) &&
               get_place(call, &place)) {
        char token[48] = "";
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        wpk_json_begin_array(w, "trials");
        if (wpk_history_list_trials(call->api->store, number, op, names, count,
                                    wpk_call_get(call, "outcome"), page_size, &place, w)) {
            snprintf(token, sizeof token, "%u.%lld", place.position, (long long)place.index);
        }
        wpk_json_end(w);
        wpk_json_put_text(w, "next_page_token", token);
        wpk_call_json(call, w);
    }
    wpk_arena_fini(&arena);
}

void wpk_api_get_artifact(struct wpk_call *call)
{
    struct wpk_diag diag = {0};
    if (!wpk_crypto_hex_valid(call->name, WPK_SHA256_SIZE)) {
        wpk_call_problem(call, 404, WPK_ENOENT, "sha256",
                         "not a SHA-256 in lower-case hexadecimal");
        return;
    }
    if (wpk_history_artifact_revoked(call->api->store, call->name)) {
        wpk_call_problem(
            call, 410, WPK_ENOENT, "",
            "the kernel that it is was revoked; look its operator up again for another");
        return;
    }
    wpk_err err = wpk_artifact_get(call->api->data_dir, call->name, &call->answer->body, &diag);
    if (err != WPK_OK) {
        /* Other failures name paths of this machine. */
        wpk_api_problem(call->answer, err == WPK_ENOENT ? 404 : 500, err,
                        err == WPK_ECORRUPT ? &diag : NULL);
        return;
    }
    call->answer->status = 200;
    call->answer->content_type = "application/octet-stream";
    snprintf(call->answer->etag, sizeof call->answer->etag, "\"%s\"", call->name);
}

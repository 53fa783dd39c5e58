/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups: one, or a batch. A request names an operator as in a job file, or by its fingerprint. */
#include "coordinator/api/api_lookup.h"
#include "coordinator/api/api_front.h"
#include "coordinator/index/misses.h"

#include "common/clock.h"
#include "common/metrics.h"
#include "coordinator/state/submission.h"
#include "ir/notation/definition.h"
#include "schema/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MAX 1000     /* no more than a job may have, for those that are to be tuned */
#define BATCH_NEAR_MAX 16  /* with more that are only near, one may take long */
#define MISS_SIZE_MAX 4096 /* bytes of an operator that is counted among what is missing */
_Static_assert(BATCH_MAX <= WPK_JOB_OPS_MAX, "a job takes a whole batch");

/* One item of a request. */
struct item {
    struct wpk_lookup lookup;
    struct wpk_op_identity identity; /* of the operator, where that was given */
    struct wpk_job_op op;            /* without a body where it was given by its fingerprint */
    uint64_t
        calls; /* that the asker has made since it asked last, of what it has; and their time */
    uint64_t time_ns;
};

/* The identity is written when there is one: it has 64 KiB, and a lookup by key has none. */
static void item_init(struct item *item)
{
    item->lookup = (struct wpk_lookup){.program = NULL};
    item->op = (struct wpk_job_op){0};
    item->calls = item->time_ns = 0;
}

static void item_fini(struct item *item)
{
    if (item->lookup.program != NULL) {
        wpk_op_identity_fini(&item->identity);
    }
    wpk_job_op_fini(&item->op);
}

/* ---- reading */

static wpk_err define(struct item *item, struct wpk_diag *diag)
{
    static const char prefix[] = "ops[0].";
    struct wpk_program asked = {0};
    const struct wpk_job job = {.ops = &item->op, .op_count = 1};
    wpk_err err = wpk_job_op_program(&job, 0, &asked, diag);
    /* The field of an operator's error is named as in the lookup; its text has no place in the
     * request. */
    if (err != WPK_OK && wpk_begins(diag->field, prefix)) {
        memmove(diag->field, diag->field + strlen(prefix), sizeof diag->field - strlen(prefix));
        diag->line = 0;
        diag->column = 0;
    }
    err = err == WPK_OK ? wpk_op_identity_of(&asked, &item->identity, diag) : err;
    wpk_program_fini(&asked);
    if (err == WPK_OK) {
        const struct wpk_fingerprint *fingerprint = &item->identity.fingerprint;
        item->lookup.program = &item->identity.program;
        item->lookup.flops = item->identity.flops;
        item->lookup.bytes = item->identity.bytes;
        memcpy(item->lookup.fingerprint, fingerprint->exact, sizeof fingerprint->exact);
        memcpy(item->lookup.family, fingerprint->family, sizeof fingerprint->family);
        memcpy(item->lookup.extents, fingerprint->extents, sizeof fingerprint->extents);
    }
    return err;
}

static void read_fingerprint(struct wpk_json_reader *r, struct item *item)
{
    if (wpk_json_has(r, "tensors") || wpk_json_has(r, "constants")) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "tensors and constants belong to an op");
    }
    wpk_json_get_copy(r, "fingerprint", item->lookup.fingerprint, sizeof item->lookup.fingerprint);
    if (wpk_json_status(r) == WPK_OK &&
        !wpk_crypto_hex_valid(item->lookup.fingerprint, WPK_SHA256_SIZE)) {
        wpk_json_fail(r, "fingerprint", WPK_EINVAL, "not a SHA-256 in lower-case hexadecimal");
    }
    wpk_job_op_read_key(r, &item->op);
}

/* Texts of the lookup live as long as the reader. */
static wpk_err decode(struct wpk_json_reader *r, struct item *item, struct wpk_diag *diag)
{
    struct wpk_lookup *lookup = &item->lookup;
    WPK_JSON_ALLOW(r, "name", "op", "tensors", "constants", "fingerprint", "layouts", "threads",
                   "device", "environment", "accuracy", "conditions", "calls", "time_ns");
    bool has_op = wpk_json_has(r, "op");
    lookup->threads = wpk_json_has(r, "threads")
                          ? (int)wpk_json_get_int(r, "threads", 1, WPK_JOB_THREADS_MAX)
                          : 1;
    lookup->device = wpk_json_has(r, "device") ? wpk_json_get_text(r, "device", 512) : "";
    lookup->environment =
        wpk_json_has(r, "environment") ? wpk_json_get_text(r, "environment", 512) : "";
    if (wpk_json_has(r, "calls")) {
        item->calls = (uint64_t)wpk_json_get_int(r, "calls", 0, WPK_JSON_INT_MAX);
    }
    if (wpk_json_has(r, "time_ns")) {
        item->time_ns = (uint64_t)wpk_json_get_int(r, "time_ns", 0, WPK_JSON_INT_MAX);
    }
    if (has_op == wpk_json_has(r, "fingerprint")) {
        wpk_json_fail(r, NULL, WPK_EINVAL, "give either op or fingerprint");
    } else if (has_op) {
        wpk_job_op_read(r, &item->op);
    } else {
        read_fingerprint(r, item);
    }
    lookup->layouts = wpk_layouts_name(item->op.layouts);
    lookup->accuracy = item->op.accuracy;
    lookup->conditions = item->op.conditions;
    wpk_err err = wpk_json_status(r);
    return err == WPK_OK && has_op ? define(item, diag) : err;
}

/* ---- answering */

/* Default to the only known device class. */
static bool fill_device(const struct wpk_index_version *version, struct wpk_lookup *lookup)
{
    if (lookup->device[0] == '\0' && version->device_count > 0) {
        lookup->device = version->devices[0].name;
        return version->device_count == 1;
    }
    return true;
}

static const char several[] = "several devices are known: say which";

static void count_match(const struct wpk_match *match)
{
    wpk_metric_add(WPK_COUNTER_LOOKUPS, (unsigned)match->level, 1);
}

/* One more member: what the asker's tensors are called in the kernel. */
static void append_binding(const struct item *item, struct wpk_buf *out)
{
    if (item->lookup.program != NULL && wpk_buf_status(out) == WPK_OK) {
        wpk_buf_truncate(out, out->size - 1);
        wpk_buf_printf(out, ",\"binding\":%s}", item->identity.binding);
    }
}

/* Returns the estimated time; 0: there is a kernel, or nothing is known. */
static double append_match(const struct wpk_index_version *version, const struct wpk_lookup *lookup,
                           const struct wpk_match *match, bool whole, struct wpk_buf *out)
{
    struct wpk_estimate expected = {.source = WPK_ESTIMATE_NONE};
    if (!wpk_match_is_hit(match)) {
        wpk_estimate_find(version, lookup, match, &expected);
    }
    wpk_match_append(match, &expected, whole, out);
    return expected.source != WPK_ESTIMATE_NONE ? expected.median_ns : 0;
}

/* Count what is missing, if the operator itself was given: that can be tuned. */
static void note_miss(struct wpk_index *index, const struct item *item,
                      const struct wpk_match *match, double estimate_ns)
{
    struct wpk_buf text = {.size_max = MISS_SIZE_MAX};
    struct wpk_job_op op = item->op;
    char *taken = NULL;
    size_t size;
    const struct wpk_miss miss = {.match = wpk_match_name(match->level),
                                  .lookups = 1,
                                  .calls = item->calls,
                                  .time_ns = item->time_ns,
                                  .estimate_ns = (uint64_t)estimate_ns};
    if (wpk_match_is_hit(match) || item->lookup.program == NULL || item->lookup.device[0] == '\0') {
        return;
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    op.name[0] = '\0';
    wpk_job_op_put(&op, w);
    wpk_err err = wpk_json_print(w, false, &text);
    wpk_json_writer_free(w);
    if (err == WPK_OK && wpk_buf_take(&text, &taken, &size) == WPK_OK) {
        wpk_misses_add(wpk_index_misses(index), &item->lookup, taken, &miss);
    }
    wpk_buf_fini(&text);
}

bool wpk_lookup_answer(struct wpk_call *call, const struct wpk_index_version *version,
                       struct wpk_lookup *lookup, bool whole, struct wpk_buf *out)
{
    struct wpk_match match;
    if (!fill_device(version, lookup)) {
        return wpk_call_problem(call, 422, WPK_EINVAL, "device", several);
    }
    wpk_lookup_find(version, lookup, &match);
    count_match(&match);
    append_match(version, lookup, &match, whole, out);
    return true;
}

bool wpk_call_index(struct wpk_call *call)
{
    if (call->api->index == NULL) {
        return wpk_call_problem(call, 503, WPK_EBUSY, "",
                                "there is no index here; ask again later");
    }
    return true;
}

bool wpk_call_has_version(struct wpk_call *call, const struct wpk_index_version *version)
{
    struct wpk_api_answer *answer = call->answer;
    const char *held = call->request->if_none_match;
    snprintf(answer->etag, sizeof answer->etag, "\"%016llx-%llu\"",
             (unsigned long long)version->life, (unsigned long long)version->number);
    if (held == NULL || held[0] == '\0' || !wpk_http_etag_matches(held, answer->etag)) {
        return false;
    }
    answer->status = 304;
    answer->content_type = "application/json";
    return true;
}

/* ---- one */

/* A version that an answer borrows from. */
struct lent {
    struct wpk_index *index;
    const struct wpk_index_version *version;
};

static void give_back(void *owner)
{
    struct lent *lent = owner;
    wpk_index_release(lent->index, lent->version);
    free(lent);
}

/* The prepared bytes, as they are. */
static void answer_prepared(struct wpk_call *call, const struct wpk_index_version *version,
                            const struct wpk_served *served)
{
    struct lent *lent = WPK_DEMAND(malloc(sizeof *lent));
    *lent = (struct lent){call->api->index, version};
    call->answer->borrowed = served->answer.text;
    call->answer->borrowed_size = served->answer.size;
    call->answer->release = give_back;
    call->answer->owner = lent;
    memcpy(call->answer->etag, served->etag, sizeof served->etag);
    wpk_call_text(call);
}

/* True if the lookup asks for tuning; the value of the parameter was validated before. */
static bool wants_tuning(const struct wpk_call *call)
{
    return strcmp(wpk_call_get(call, "tune"), "1") == 0;
}

/* One more member of the match that was appended last, the job that will answer the
 * miss. */
static wpk_err begin_tuning(struct wpk_call *call, struct wpk_tuning *tuning, struct item *item,
                            struct wpk_diag *diag)
{
    struct wpk_buf *body = &call->answer->body;
    if (item->op.notation == NULL && item->op.shorthand == NULL) {
        wpk_diag_set(diag, "to tune it, the operator itself is needed");
        snprintf(diag->field, sizeof diag->field, "op");
        return WPK_EINVAL;
    }
    struct wpk_device device = {0};
    if (item->lookup.device[0] != '\0' &&
        (strlen(item->lookup.device) >= WPK_JOB_DEVICE_MAX ||
         wpk_device_of_class(item->lookup.device, &device) != WPK_OK)) {
        wpk_diag_set(diag,
                     "not a device class, so no worker can tune it; GET /v1/devices lists those"
                     " that are known");
        snprintf(diag->field, sizeof diag->field, "device");
        return WPK_EINVAL;
    }
    if (wpk_device_is_cuda(&device) && item->lookup.threads > 1) {
        wpk_diag_set(diag, "a kernel for a GPU has one thread on the CPU");
        snprintf(diag->field, sizeof diag->field, "threads");
        return WPK_EINVAL;
    }
    if (wpk_buf_status(body) == WPK_OK) {
        wpk_buf_truncate(body, body->size - 1);
    }
    wpk_buf_append_text(body, ",\"job_id\":\"");
    wpk_tuning_take(tuning, call, &item->lookup, &item->op);
    wpk_buf_append_text(body, "\"}");
    return WPK_OK;
}

/* Work that is left for the loop's thread: jobs to submit, and the answer that lacks their ids. */
struct prepared {
    struct wpk_tuning tuning;
    struct wpk_buf body;
};

static void release_prepared(void *owner)
{
    struct prepared *prepared = owner;
    wpk_tuning_fini(&prepared->tuning);
    wpk_buf_fini(&prepared->body);
    free(prepared);
}

/* The answer is there, but for the ids of jobs, if there are any. Takes the jobs. */
static void tune(struct wpk_call *call, struct wpk_tuning *tuning)
{
    if (tuning->first == NULL) {
        wpk_call_text(call);
    } else if (!wpk_tuning_prepare(tuning, call)) {
        wpk_tuning_fini(tuning);
    } else if (call->api->front == NULL) {
        if (wpk_tuning_submit(tuning, call)) {
            wpk_call_text(call);
        }
        wpk_tuning_fini(tuning);
    } else {
        struct prepared *prepared = WPK_DEMAND(calloc(1, sizeof *prepared));
        *prepared = (struct prepared){*tuning, call->answer->body};
        memset(&call->answer->body, 0, sizeof call->answer->body);
        call->answer->release = release_prepared;
        call->answer->owner = prepared;
        wpk_call_queue(call);
    }
}

static void answer_miss(struct wpk_call *call, struct item *item)
{
    struct wpk_tuning tuning = {0};
    struct wpk_diag diag = {0};
    wpk_err err = wants_tuning(call) ? begin_tuning(call, &tuning, item, &diag) : WPK_OK;
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, wpk_api_status(err), err, &diag);
        return;
    }
    tune(call, &tuning);
}

static void answer_one(struct wpk_call *call, struct item *item)
{
    struct wpk_match match;
    const struct wpk_index_version *version = wpk_index_acquire(call->api->index);
    if (!fill_device(version, &item->lookup)) {
        wpk_call_problem(call, 422, WPK_EINVAL, "device", several);
        wpk_index_release(call->api->index, version);
        return;
    }
    wpk_lookup_find(version, &item->lookup, &match);
    count_match(&match);
    if (wpk_match_is_hit(&match) && item->lookup.program == NULL) {
        answer_prepared(call, version, match.served);
        return;
    }
    double expected_ns = append_match(version, &item->lookup, &match, true, &call->answer->body);
    note_miss(call->api->index, item, &match, expected_ns);
    append_binding(item, &call->answer->body);
    if (wpk_match_is_hit(&match)) {
        wpk_call_text(call);
    } else {
        answer_miss(call, item);
    }
    wpk_index_release(call->api->index, version);
}

static void lookup_one(struct wpk_call *call, struct wpk_json_reader *r, struct wpk_diag *diag)
{
    struct item item;
    item_init(&item);
    wpk_err err = decode(r, &item, diag);
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, wpk_api_status(err), err, diag);
    } else {
        answer_one(call, &item);
    }
    item_fini(&item);
}

/* ---- a batch */

/* Name the item at fault, in front of its field. */
static void locate_item(struct wpk_diag *diag, int number)
{
    char field[sizeof diag->field];
    if (!wpk_begins(diag->field, "lookups[")) {
        snprintf(field, sizeof field, "lookups[%d]%s%.90s", number,
                 diag->field[0] != '\0' ? "." : "", diag->field);
        memcpy(diag->field, field, sizeof field);
    }
}

/* A batch while it is answered. */
struct batch {
    struct wpk_call *call;
    const struct wpk_index_version *version;
    struct wpk_tuning tuning;
    int number;     /* of the item at hand */
    int near_count; /* items so far that schedules of other shapes were tried for */
    bool *large;    /* it is one of the few that may take long at a time */
};

/* Trying schedules takes milliseconds: a batch that does so for many items takes seconds. False
 * after answering that others do. */
static bool may_go_on(struct batch *batch, const struct wpk_match *match)
{
    bool near = match->level == WPK_MATCH_NEAREST_SHAPE || match->level == WPK_MATCH_SAME_FAMILY;
    batch->near_count += near;
    if (batch->near_count >= BATCH_NEAR_MAX && !*batch->large && batch->call->api->front != NULL) {
        *batch->large = wpk_api_front_begin_large(batch->call);
        return *batch->large;
    }
    return true;
}

/* Find and append what `item` asks for. */
static wpk_err append_found(struct batch *batch, struct item *item, struct wpk_match *match,
                            struct wpk_diag *diag)
{
    struct wpk_call *call = batch->call;
    if (!fill_device(batch->version, &item->lookup)) {
        snprintf(diag->field, sizeof diag->field, "device");
        return wpk_fail(diag, WPK_EINVAL, "%s", several);
    }
    wpk_lookup_find(batch->version, &item->lookup, match);
    wpk_buf_append_text(&call->answer->body, batch->number > 0 ? "," : "");
    double expected_ns =
        append_match(batch->version, &item->lookup, match, false, &call->answer->body);
    note_miss(call->api->index, item, match, expected_ns);
    append_binding(item, &call->answer->body);
    bool tunes = wants_tuning(call) && !wpk_match_is_hit(match);
    return tunes ? begin_tuning(call, &batch->tuning, item, diag) : WPK_OK;
}

/* False when the batch has an answer, a problem. */
static bool append_item(struct batch *batch, struct wpk_json_reader *r, struct wpk_diag *diag)
{
    struct item item;
    struct wpk_match match;
    item_init(&item);
    wpk_err err = decode(r, &item, diag);
    err = err == WPK_OK ? append_found(batch, &item, &match, diag) : err;
    item_fini(&item);
    if (err != WPK_OK) {
        locate_item(diag, batch->number);
        return wpk_api_problem(batch->call->answer, wpk_api_status(err), err, diag);
    }
    count_match(&match);
    batch->number++;
    return may_go_on(batch, &match);
}

static void lookup_batch(struct wpk_call *call, struct wpk_json_reader *r, bool *large,
                         struct wpk_diag *diag)
{
    WPK_JSON_ALLOW(r, "lookups");
    if (wpk_json_count(r, "lookups") > BATCH_MAX) {
        wpk_json_fail(r, "lookups", WPK_ERANGE, "at most %d at once", BATCH_MAX);
    }
    struct batch batch = {
        .call = call, .version = wpk_index_acquire(call->api->index), .large = large};
    bool ok = true;
    wpk_buf_append_text(&call->answer->body, "{\"matches\":[");
    wpk_json_enter_array(r, "lookups");
    while (ok && wpk_json_next(r)) {
        ok = append_item(&batch, r, diag);
    }
    wpk_json_leave(r);
    wpk_index_release(call->api->index, batch.version);
    if (ok && wpk_json_status(r) == WPK_OK) {
        wpk_buf_append_text(&call->answer->body, "]}");
        tune(call, &batch.tuning);
        return;
    }
    if (ok) {
        wpk_api_problem(call->answer, wpk_api_status(wpk_json_status(r)), wpk_json_status(r), diag);
    }
    wpk_tuning_fini(&batch.tuning);
}

static void lookup(struct wpk_call *call, bool *large)
{
    struct wpk_diag diag = {0};
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(call->request->body, call->request->body_size, 0, &r, &diag);
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, wpk_api_status(err), err, &diag);
    } else if (wpk_json_has(r, "lookups")) {
        lookup_batch(call, r, large, &diag);
    } else {
        lookup_one(call, r, &diag);
    }
    wpk_json_close(r);
}

void wpk_api_list_misses(struct wpk_call *call)
{
    int page_size;
    uint64_t from;
    if (!wpk_call_index(call) || !wpk_call_page_size(call, &page_size) ||
        !wpk_call_number(call, "page_token", 0, 1, INT64_MAX, &from)) {
        return;
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    const struct wpk_index_version *version = wpk_index_acquire(call->api->index);
    wpk_json_begin_array(w, "misses");
    uint64_t next = wpk_misses_list(call->api->store, version, from, page_size, w);
    wpk_json_end(w);
    wpk_index_release(call->api->index, version);
    wpk_call_put_token(w, next);
    wpk_call_json(call, w);
}

void wpk_api_lookup_kernel(struct wpk_call *call)
{
    uint64_t began_ns = wpk_clock_now_ns(wpk_clock_system());
    uint64_t tune_or_not;
    if (call->request->prepared != NULL) { /* on the loop */
        struct prepared *prepared = call->request->prepared;
        call->answer->body = prepared->body;
        memset(&prepared->body, 0, sizeof prepared->body);
        if (wpk_tuning_submit(&prepared->tuning, call)) {
            wpk_call_text(call);
        }
        return;
    }
    if (!wpk_call_index(call) || !wpk_call_number(call, "tune", 0, 0, 1, &tune_or_not) ||
        (tune_or_not == 1 && !wpk_call_admit(call, WPK_ROLE_SUBMIT))) {
        return;
    }
    bool large = tune_or_not == 1 && call->api->front != NULL &&
                 call->request->body_size > WPK_API_LARGE_SIZE;
    if (large && !wpk_api_front_begin_large(call)) {
        return;
    }
    lookup(call, &large);
    if (large) {
        wpk_api_front_end_large(call->api->front, true);
    }
    wpk_metric_observe_ns(WPK_HISTOGRAM_LOOKUP, wpk_clock_now_ns(wpk_clock_system()) - began_ns);
}

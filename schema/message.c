/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding messages as frames; message_decode.c decodes them. */
#include "schema/message.h"

#include "common/json.h"
#include "common/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {WPK_MESSAGE_LIST(WPK_LIST_TEXT)};
static const char *const work_names[] = {WPK_WORK_LIST(WPK_LIST_TEXT)};
static const char *const stage_names[] = {WPK_STAGE_LIST(WPK_LIST_TEXT)};
static const char *const ack_names[] = {WPK_ACK_LIST(WPK_LIST_TEXT)};

const char *wpk_message_kind_name(enum wpk_message_kind kind)
{
    WPK_ASSERT(kind < WPK_MESSAGE_COUNT);
    return kind_names[kind];
}

const char *wpk_work_kind_name(enum wpk_work_kind kind)
{
    WPK_ASSERT(kind < WPK_WORK_COUNT);
    return work_names[kind];
}

const char *wpk_work_stage_name(enum wpk_work_stage stage)
{
    WPK_ASSERT(stage < WPK_STAGE_COUNT);
    return stage_names[stage];
}

bool wpk_work_id_equal(wpk_work_id a, wpk_work_id b)
{
    return a.search == b.search && a.kind == b.kind && a.index == b.index;
}

void wpk_plain_candidate_print(uint32_t number, char out[WPK_PLAIN_CANDIDATE_SIZE])
{
    char rest[24] = "";
    if (number > 1) {
        snprintf(rest, sizeof rest, " number=%u", number);
    }
    snprintf(out, WPK_PLAIN_CANDIDATE_SIZE, "algorithm=direct%s", rest);
}

static void put_id(struct wpk_json_writer *w, wpk_work_id id)
{
    wpk_json_put_u64(w, "search", id.search);
    wpk_json_put_text(w, "kind", wpk_work_kind_name(id.kind));
    wpk_json_put_int(w, "index", id.index);
}

static void put_ids(struct wpk_json_writer *w, const char *key, const wpk_work_id *ids,
                    uint32_t count)
{
    wpk_json_begin_array(w, key);
    for (uint32_t i = 0; i < count; i++) {
        wpk_json_begin_object(w, NULL);
        put_id(w, ids[i]);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_back_ends(struct wpk_json_writer *w, const struct wpk_hello *hello)
{
    wpk_json_begin_array(w, "back_ends");
    for (uint32_t i = 0; i < hello->back_end_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", hello->back_ends[i].name);
        wpk_json_put_text(w, "version", hello->back_ends[i].version);
        wpk_json_put_text(w, "missing", hello->back_ends[i].missing);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_hello(struct wpk_json_writer *w, const struct wpk_hello *hello)
{
    WPK_ASSERT(hello->roles != 0);
    wpk_json_put_text(w, "name", hello->name);
    wpk_device_put(w, "device", &hello->device);
    wpk_json_put_text(w, "environment", hello->environment);
    wpk_json_begin_array(w, "providers");
    for (uint32_t i = 0; i < hello->provider_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", hello->providers[i].name);
        wpk_json_put_bool(w, "vendor", hello->providers[i].vendor);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    put_back_ends(w, hello);
    wpk_json_put_text(w, "program", hello->program);
    wpk_json_put_text(w, "token", hello->token);
    wpk_json_put_bool(w, "builds", (hello->roles & WPK_WORKER_BUILDS) != 0);
    wpk_json_put_bool(w, "runs", (hello->roles & WPK_WORKER_RUNS) != 0);
    wpk_json_put_int(w, "slots", hello->slots);
    wpk_json_begin_object(w, "labels");
    for (uint32_t i = 0; i < hello->label_count; i++) {
        wpk_json_put_text(w, hello->labels[i].name, hello->labels[i].value);
    }
    wpk_json_end(w);
}

static void put_contenders(struct wpk_json_writer *w, const struct wpk_work *work)
{
    wpk_json_put_int(w, "round_count", work->round_count);
    wpk_json_begin_array(w, "contenders");
    for (uint32_t i = 0; i < work->contender_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "provider", work->contenders[i].provider);
        wpk_json_put_text(w, "artifact", work->contenders[i].artifact_sha256);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_ops(struct wpk_json_writer *w, const struct wpk_message *message)
{
    wpk_json_begin_array(w, "ops");
    for (uint32_t i = 0; i < message->op_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "text", message->ops[i].text);
        wpk_json_put_text(w, "layouts", message->ops[i].layouts);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_targets(struct wpk_json_writer *w, const struct wpk_message *message)
{
    wpk_json_begin_array(w, "targets");
    for (uint32_t i = 0; i < message->target_count; i++) {
        wpk_device_put(w, NULL, &message->targets[i]);
    }
    wpk_json_end(w);
}

/* The lease, and what its stage needs. */
static void put_stage(struct wpk_json_writer *w, const struct wpk_work *work)
{
    wpk_json_put_u64(w, "lease", work->lease);
    wpk_json_put_text(w, "stage", wpk_work_stage_name(work->stage));
    if (work->stage == WPK_STAGE_BUILD) {
        wpk_json_put_int(w, "target", work->target);
    } else if (work->stage == WPK_STAGE_RUN && work->id.kind != WPK_WORK_FINAL) {
        wpk_json_put_text(w, "artifact", work->artifact_sha256);
        wpk_json_put_int(w, "build_ns", (int64_t)work->build_ns);
    }
}

static void put_work_item(struct wpk_json_writer *w, const struct wpk_work *work)
{
    wpk_json_begin_object(w, NULL);
    put_id(w, work->id);
    put_stage(w, work);
    wpk_json_put_int(w, "attempt", work->attempt);
    wpk_json_put_int(w, "op", work->op);
    wpk_policy_put(w, "policy", &work->policy);
    if (work->id.kind == WPK_WORK_FINAL) {
        put_contenders(w, work);
    } else {
        wpk_json_put_text(w, "provider", work->provider);
        wpk_json_put_text(w, "candidate", work->candidate);
        wpk_json_put_int(w, "incumbent_ns", (int64_t)work->incumbent_ns);
        wpk_json_put_bool(w, "keep_artifact", work->keep_artifact);
        if (work->anchor_sha256 != NULL && work->anchor_sha256[0] != '\0') {
            wpk_json_put_text(w, "anchor", work->anchor_sha256);
            wpk_json_put_real(w, "incumbent_ratio", work->incumbent_ratio);
        }
        wpk_accuracy_put(w, "accuracy", work->accuracy);
    }
    wpk_json_end(w);
}

static void put_work(struct wpk_json_writer *w, const struct wpk_message *message)
{
    put_ops(w, message);
    put_targets(w, message);
    wpk_json_begin_array(w, "work");
    for (uint32_t i = 0; i < message->work_count; i++) {
        put_work_item(w, &message->work[i]);
    }
    wpk_json_end(w);
    wpk_json_put_bool(w, "leave", message->leave);
}

static void put_result(struct wpk_json_writer *w, const struct wpk_result *result)
{
    wpk_json_begin_object(w, NULL);
    put_id(w, result->id);
    wpk_json_put_u64(w, "lease", result->lease);
    wpk_json_put_text(w, "stage", wpk_work_stage_name(result->stage));
    wpk_json_put_int(w, "attempt", result->attempt);
    if (result->id.kind != WPK_WORK_FINAL) {
        wpk_record_put(w, "record", &result->record);
    } else {
        wpk_json_put_text(w, "failure", result->failure);
        wpk_json_begin_array(w, "times");
        for (uint32_t i = 0; i < result->timing_count; i++) {
            /* As a record would carry it: one codec for both. */
            struct wpk_record record = {.outcome = WPK_OUTCOME_OK, .timing = result->timing[i]};
            wpk_record_put(w, NULL, &record);
        }
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_results(struct wpk_json_writer *w, const struct wpk_message *message)
{
    wpk_json_begin_array(w, "results");
    for (uint32_t i = 0; i < message->result_count; i++) {
        put_result(w, &message->results[i]);
    }
    wpk_json_end(w);
}

static void put_acks(struct wpk_json_writer *w, const struct wpk_message *message)
{
    wpk_json_begin_array(w, "results");
    for (uint32_t i = 0; i < message->ack_count; i++) {
        wpk_json_put_text(w, NULL, ack_names[message->acks[i]]);
    }
    wpk_json_end(w);
}

static void put_message(struct wpk_json_writer *w, const struct wpk_message *message)
{
    wpk_json_put_int(w, "version", WPK_PROTOCOL_VERSION);
    wpk_json_put_text(w, "type", wpk_message_kind_name(message->kind));
    wpk_json_put_u64(w, "session", message->session);
    switch (message->kind) {
    case WPK_MESSAGE_HELLO:
        put_ids(w, "holding", message->holding, message->holding_count);
        put_hello(w, message->hello);
        break;
    case WPK_MESSAGE_POLL:
        wpk_json_put_int(w, "want", message->want);
        wpk_json_put_int(w, "wait_ms", message->wait_ms);
        put_ids(w, "holding", message->holding, message->holding_count);
        wpk_json_put_u64(w, "running", message->running);
        break;
    case WPK_MESSAGE_RESULTS:
        put_results(w, message);
        break;
    case WPK_MESSAGE_PUT_ARTIFACT:
        put_id(w, message->made_for);
        wpk_json_put_text(w, "sha256", message->sha256);
        break;
    case WPK_MESSAGE_GET_ARTIFACT:
    case WPK_MESSAGE_ARTIFACT:
        wpk_json_put_text(w, "sha256", message->sha256);
        break;
    case WPK_MESSAGE_GIVE_BACK:
        put_ids(w, "leases", message->given_back, message->given_back_count);
        if (message->reason != NULL) {
            wpk_json_put_text(w, "reason", message->reason);
        }
        break;
    case WPK_MESSAGE_WELCOME:
        wpk_json_put_int(w, "lease_ms", message->lease_ms);
        wpk_json_put_text(w, "server", message->server != NULL ? message->server : "");
        break;
    case WPK_MESSAGE_WORK:
        put_work(w, message);
        break;
    case WPK_MESSAGE_ACK:
        put_acks(w, message);
        break;
    case WPK_MESSAGE_ERROR:
        wpk_json_put_text(w, "code", wpk_err_name(message->err));
        wpk_json_put_text(w, "text", message->text);
        wpk_json_put_int(w, "retry_ms", message->retry_ms);
        break;
    case WPK_MESSAGE_COUNT:
        WPK_ASSERT(false);
    }
}

wpk_err wpk_message_encode(const struct wpk_message *message, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf json;
    wpk_buf_init(&json, WPK_MESSAGE_SIZE_MAX);
    put_message(w, message);
    wpk_err err = wpk_json_print(w, false, &json);
    wpk_json_writer_free(w);
    if (err == WPK_OK && 4 + json.size + message->bytes_size > WPK_MESSAGE_SIZE_MAX) {
        err = WPK_ENOSPC;
    }
    if (err == WPK_OK) {
        for (int shift = 0; shift < 32; shift += 8) {
            wpk_buf_append_byte(out, (char)(json.size >> shift & 0xff));
        }
        wpk_buf_append(out, json.data, json.size);
        wpk_buf_append(out, message->bytes_size > 0 ? message->bytes : "", message->bytes_size);
        err = wpk_buf_status(out);
    }
    wpk_buf_fini(&json);
    return err;
}

void wpk_message_fini(struct wpk_message *message)
{
    /* Only decoded results own records; those put together by hand stay their maker's. */
    if (message->arena.first != NULL) {
        for (uint32_t i = 0; i < message->result_count; i++) {
            wpk_record_fini(&message->results[i].record);
        }
    }
    wpk_arena_fini(&message->arena);
    memset(message, 0, sizeof *message);
}

void wpk_work_id_print(wpk_work_id id, char out[WPK_WORK_ID_TEXT_SIZE])
{
    snprintf(out, WPK_WORK_ID_TEXT_SIZE, "%" PRIu64 "/%s/%" PRIu32, id.search,
             wpk_work_kind_name(id.kind), id.index);
}

void wpk_message_trace(const char *event, const struct wpk_message *message, const char *worker)
{
    char id[WPK_WORK_ID_TEXT_SIZE];
    const char *name = worker != NULL ? " worker=" : "";
    worker = worker != NULL ? worker : "";
    if (!wpk_log_enabled(WPK_LOG_DEBUG)) {
        return;
    }
    for (uint32_t i = 0; i < message->work_count; i++) {
        const struct wpk_work *work = &message->work[i];
        wpk_work_id_print(work->id, id);
        wpk_log(WPK_LOG_DEBUG, event, "work=%s lease=%" PRIu64 " attempt=%" PRIu32 " stage=%s%s%s",
                id, work->lease, work->attempt, wpk_work_stage_name(work->stage), name, worker);
    }
    for (uint32_t i = 0; i < message->result_count; i++) {
        const struct wpk_result *result = &message->results[i];
        const char *outcome = result->id.kind != WPK_WORK_FINAL
                                  ? wpk_outcome_name(result->record.outcome)
                              : result->failure == NULL || result->failure[0] == '\0' ? "ok"
                                                                                      : "failed";
        wpk_work_id_print(result->id, id);
        wpk_log(WPK_LOG_DEBUG, event,
                "work=%s lease=%" PRIu64 " attempt=%" PRIu32 " stage=%s outcome=%s%s%s", id,
                result->lease, result->attempt, wpk_work_stage_name(result->stage), outcome, name,
                worker);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as frames. The sender is another machine, so every field is checked. */
#include "schema/message.h"

#include "common/crypto.h"
#include "common/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OP_TEXT_MAX (256 * 1024)
#define TEXT_MAX 1024
#define WAIT_MS_MAX 60000
#define NOT_FINAL (~WPK_IS(WPK_WORK_FINAL))

static const char *const kind_names[] = {WPK_MESSAGE_LIST(WPK_LIST_TEXT)};
static const char *const work_names[] = {WPK_WORK_LIST(WPK_LIST_TEXT)};
static const char *const stage_names[] = {WPK_STAGE_LIST(WPK_LIST_TEXT)};
static const char *const ack_names[] = {WPK_ACK_LIST(WPK_LIST_TEXT)};

WPK_LIST_NAME(wpk_message_kind_name, enum wpk_message_kind, kind_names)

WPK_LIST_NAME(wpk_work_kind_name, enum wpk_work_kind, work_names)

WPK_LIST_NAME(wpk_work_stage_name, enum wpk_work_stage, stage_names)

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

/* ---- checks */

/* Lists of providers and back ends join names and versions by these characters. */
static void check_word(struct wpk_json_reader *r, const char *key, const char *word)
{
    if (strpbrk(word, "+;/ ") != NULL) {
        wpk_json_fail(r, key, WPK_EINVAL, "has one of '+', ';', '/' and ' '");
    }
}

static void check_hash(struct wpk_json_reader *r, const char *key, const char *text, bool is_needed)
{
    if (is_needed && !wpk_crypto_hex_valid(text, WPK_SHA256_SIZE)) {
        wpk_json_fail(r, key, WPK_EINVAL, "not a SHA-256 in hexadecimal");
    }
}

static void check_stage(struct wpk_json_reader *r, enum wpk_work_stage stage,
                        enum wpk_work_kind kind)
{
    if (stage == WPK_STAGE_BUILD && (kind == WPK_WORK_FINAL || kind == WPK_WORK_VENDOR)) {
        wpk_json_fail(r, "stage", WPK_EINVAL, "there is nothing to build");
    }
}

/* ---- tables */

static const struct wpk_field id_fields[] = {
    {WPK_FIELD(U64, "search", work_id, search)},
    {WPK_FIELD_CHOICE("kind", work_id, kind, work_names)},
    {WPK_FIELD_INT("index", work_id, index, 0, INT32_MAX)},
    {WPK_FIELD_END},
};

static void check_provider(struct wpk_json_reader *r, void *object)
{
    const struct wpk_message_provider *provider = object;
    check_word(r, "name", provider->name);
}

static const struct wpk_field provider_fields[] = {
    {WPK_FIELD(LABEL, "name", message_provider, name)},
    {WPK_FIELD(BOOL, "vendor", message_provider, vendor)},
    {WPK_FIELD_CHECK(check_provider)},
    {WPK_FIELD_END},
};

static void check_back_end(struct wpk_json_reader *r, void *object)
{
    const struct wpk_message_back_end *back_end = object;
    check_word(r, "name", back_end->name);
    check_word(r, "version", back_end->version);
    if (strlen(back_end->name) + strlen(back_end->version) + 2 > WPK_PROVIDER_NAME_MAX) {
        wpk_json_fail(r, "version", WPK_ERANGE, "name and version are too long");
    }
}

static const struct wpk_field back_end_fields[] = {
    {WPK_FIELD(LABEL, "name", message_back_end, name)},
    {WPK_FIELD(LABEL, "version", message_back_end, version)},
    {WPK_FIELD(LABEL, "missing", message_back_end, missing)},
    {WPK_FIELD_CHECK(check_back_end)},
    {WPK_FIELD_END},
};

static unsigned role_of(const char *key)
{
    return strcmp(key, "builds") == 0 ? WPK_WORKER_BUILDS : WPK_WORKER_RUNS;
}

static void put_role(struct wpk_json_writer *w, const char *key, const void *member)
{
    wpk_json_put_bool(w, key, (*(const unsigned *)member & role_of(key)) != 0);
}

static void get_role(struct wpk_json_reader *r, const char *key, void *member)
{
    *(unsigned *)member |= wpk_json_get_bool(r, key) ? role_of(key) : 0U;
}

static void check_roles(struct wpk_json_reader *r, void *object)
{
    const struct wpk_hello *hello = object;
    if (hello->roles == 0) {
        wpk_json_fail(r, "runs", WPK_EINVAL, "a worker builds, runs or does both");
    }
}

static const struct wpk_field hello_fields[] = {
    {WPK_FIELD(LABEL, "name", hello, name)},
    {WPK_FIELD_CUSTOM("device", hello, device, wpk_device_put, wpk_device_get)},
    {WPK_FIELD(LABEL, "environment", hello, environment)},
    {WPK_FIELD_ARRAY("providers", hello, providers, provider_count, provider_fields)},
    {WPK_FIELD_ARRAY("back_ends", hello, back_ends, back_end_count, back_end_fields)},
    {WPK_FIELD(LABEL, "program", hello, program)},
    {WPK_FIELD(COPY, "token", hello, token)},
    {WPK_FIELD_CUSTOM("builds", hello, roles, put_role, get_role)},
    {WPK_FIELD_CUSTOM("runs", hello, roles, put_role, get_role)},
    {WPK_FIELD_INT("slots", hello, slots, 0, WPK_SLOTS_MAX)},
    {WPK_FIELD_MAP("labels", hello, labels, label_count, wpk_worker_label_fields)},
    {WPK_FIELD_CHECK(check_roles)},
    {WPK_FIELD_END},
};

static const struct wpk_field op_fields[] = {
    {WPK_FIELD_TEXT("text", message_op, text, OP_TEXT_MAX)},
    {WPK_FIELD_TEXT("layouts", message_op, layouts, 16)},
    {WPK_FIELD_END},
};

static void check_contender(struct wpk_json_reader *r, void *object)
{
    const struct wpk_contender *contender = object;
    check_hash(r, "artifact", contender->artifact_sha256, contender->artifact_sha256[0] != '\0');
}

static const struct wpk_field contender_fields[] = {
    {WPK_FIELD_TEXT("provider", contender, provider, WPK_PROVIDER_NAME_MAX - 1)},
    {WPK_FIELD_TEXT("artifact", contender, artifact_sha256, WPK_ID_MAX - 1)},
    {WPK_FIELD_CHECK(check_contender)},
    {WPK_FIELD_END},
};

static const struct wpk_field final_fields[] = {
    {WPK_FIELD_INT("round_count", work, round_count, 1, WPK_SAMPLES_MAX)},
    {WPK_FIELD_ARRAY("contenders", work, contenders, contender_count, contender_fields)},
    {WPK_FIELD_END},
};

static const struct wpk_field run_fields[] = {
    {WPK_FIELD_TEXT("artifact", work, artifact_sha256, WPK_ID_MAX - 1)},
    {WPK_FIELD_COUNT("build_ns", work, build_ns)},
    {WPK_FIELD_END},
};

static const struct wpk_field candidate_fields[] = {
    {WPK_FIELD_WHEN(work, stage, WPK_IS(WPK_STAGE_RUN), run_fields)},
    {WPK_FIELD_TEXT("provider", work, provider, WPK_PROVIDER_NAME_MAX - 1)},
    {WPK_FIELD_TEXT("candidate", work, candidate, WPK_CANDIDATE_TEXT_MAX - 1)},
    {WPK_FIELD_COUNT("incumbent_ns", work, incumbent_ns)},
    {WPK_FIELD(BOOL, "keep_artifact", work, keep_artifact)},
    {WPK_FIELD_TEXT("anchor", work, anchor_sha256, WPK_ID_MAX - 1, WPK_OPTIONAL)},
    {WPK_FIELD_REAL("incumbent_ratio", work, incumbent_ratio, 0, 1e9, WPK_OPTIONAL)},
    {WPK_FIELD_CUSTOM("accuracy", work, accuracy, wpk_accuracy_put, wpk_accuracy_get)},
    {WPK_FIELD_END},
};

static void check_work(struct wpk_json_reader *r, void *object)
{
    struct wpk_work *work = object;
    const char **const texts[] = {&work->provider, &work->candidate, &work->artifact_sha256,
                                  &work->anchor_sha256};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = *texts[i] != NULL ? *texts[i] : ""; /* not of this kind or stage */
    }
    check_stage(r, work->stage, work->id.kind);
    check_hash(r, "artifact", work->artifact_sha256,
               work->stage == WPK_STAGE_RUN && work->id.kind != WPK_WORK_FINAL &&
                   work->id.kind != WPK_WORK_VENDOR);
    check_hash(r, "anchor", work->anchor_sha256, work->anchor_sha256[0] != '\0');
}

static const struct wpk_field work_fields[] = {
    {WPK_FIELD_GROUP(work, id, id_fields)},
    {WPK_FIELD(U64, "lease", work, lease)},
    {WPK_FIELD_CHOICE("stage", work, stage, stage_names)},
    {WPK_FIELD_INT("attempt", work, attempt, 1, INT32_MAX)},
    {WPK_FIELD_INT("op", work, op, 0, WPK_WORK_MAX - 1)},
    {WPK_FIELD_OBJECT("policy", work, policy, wpk_policy_fields)},
    {WPK_FIELD_WHEN(work, stage, WPK_IS(WPK_STAGE_BUILD),
                    WPK_ROWS({WPK_FIELD_INT("target", work, target, 0, WPK_WORK_MAX - 1)}))},
    {WPK_FIELD_WHEN(work, id.kind, WPK_IS(WPK_WORK_FINAL), final_fields)},
    {WPK_FIELD_WHEN(work, id.kind, NOT_FINAL, candidate_fields)},
    {WPK_FIELD_CHECK(check_work)},
    {WPK_FIELD_END},
};

static const struct wpk_field times_fields[] = {
    {WPK_FIELD_TEXT("failure", result, failure, TEXT_MAX)},
    {WPK_FIELD_ARRAY("times", result, timing, timing_count,
                     WPK_ROWS({WPK_FIELD_PART("timing", wpk_timing_fields, WPK_OPTIONAL)}))},
    {WPK_FIELD_END},
};

/* Refuse an ok result without a time: 0 ns would be faster than everything. */
static void check_result(struct wpk_json_reader *r, void *object)
{
    struct wpk_result *result = object;
    const struct wpk_record *record = &result->record;
    bool timed = record->timing.sample_count > 0;
    result->failure = result->failure != NULL ? result->failure : "";
    check_stage(r, result->stage, result->id.kind);
    if (result->id.kind == WPK_WORK_FINAL || record->outcome != WPK_OUTCOME_OK) {
        return;
    }
    if (result->stage == WPK_STAGE_BUILD && (timed || record->artifact_sha256[0] == '\0')) {
        wpk_json_fail(r, "record", WPK_EINVAL, "built, and timed or without an artifact");
    } else if (result->stage != WPK_STAGE_BUILD && !timed) {
        wpk_json_fail(r, "record", WPK_EINVAL, "ok, and not timed");
    }
}

static const struct wpk_field result_fields[] = {
    {WPK_FIELD_GROUP(result, id, id_fields)},
    {WPK_FIELD(U64, "lease", result, lease)},
    {WPK_FIELD_CHOICE("stage", result, stage, stage_names)},
    {WPK_FIELD_INT("attempt", result, attempt, 1, INT32_MAX)},
    {WPK_FIELD_WHEN(result, id.kind, WPK_IS(WPK_WORK_FINAL), times_fields)},
    {WPK_FIELD_WHEN(result, id.kind, NOT_FINAL,
                    WPK_ROWS({WPK_FIELD_OBJECT("record", result, record, wpk_record_fields)}))},
    {WPK_FIELD_CHECK(check_result)},
    {WPK_FIELD_END},
};

/* ---- the kinds of message */

static const struct wpk_field hello_message[] = {
    {WPK_FIELD_LIST("holding", message, holding, holding_count, WPK_HOLDING_MAX, id_fields)},
    {WPK_FIELD_GROUP(message, hello, hello_fields, .is_pointer = true,
                     .size = sizeof(struct wpk_hello))},
    {WPK_FIELD_END},
};

static const struct wpk_field poll_message[] = {
    {WPK_FIELD_INT("want", message, want, 0, WPK_HOLDING_MAX)},
    {WPK_FIELD_INT("wait_ms", message, wait_ms, 0, WAIT_MS_MAX)},
    {WPK_FIELD_LIST("holding", message, holding, holding_count, WPK_HOLDING_MAX, id_fields)},
    {WPK_FIELD(U64, "running", message, running)},
    {WPK_FIELD_END},
};

static const struct wpk_field give_back_message[] = {
    {WPK_FIELD_LIST("leases", message, given_back, given_back_count, WPK_HOLDING_MAX, id_fields)},
    {WPK_FIELD_TEXT("reason", message, reason, WPK_DIAG_TEXT_MAX - 1, WPK_OPTIONAL)},
    {WPK_FIELD_END},
};

static const struct wpk_field welcome_message[] = {
    {WPK_FIELD_INT("lease_ms", message, lease_ms, 1, INT32_MAX)},
    {WPK_FIELD_TEXT("server", message, server, WPK_PROGRAM_MAX - 1)},
    {WPK_FIELD_END},
};

/* Work items refer to the message's operators and targets. */
static void check_references(struct wpk_json_reader *r, void *object)
{
    const struct wpk_message *message = object;
    for (uint32_t i = 0; i < message->work_count; i++) {
        const struct wpk_work *work = &message->work[i];
        if (work->op >= message->op_count) {
            wpk_json_fail(r, "ops", WPK_EINVAL, "work without an operator");
        } else if (work->stage == WPK_STAGE_BUILD && work->target >= message->target_count) {
            wpk_json_fail(r, "targets", WPK_EINVAL, "work without a target");
        }
    }
}

static const struct wpk_field work_message[] = {
    {WPK_FIELD_LIST("ops", message, ops, op_count, WPK_WORK_MAX, op_fields)},
    {WPK_FIELD_LIST("targets", message, targets, target_count, WPK_WORK_MAX,
                    WPK_ITEM_CUSTOM(.put = wpk_device_put, .get = wpk_device_get))},
    {WPK_FIELD_LIST("work", message, work, work_count, WPK_WORK_MAX, work_fields)},
    {WPK_FIELD(BOOL, "leave", message, leave)},
    {WPK_FIELD_CHECK(check_references)},
    {WPK_FIELD_END},
};

static void put_code(struct wpk_json_writer *w, const char *key, const void *member)
{
    wpk_json_put_text(w, key, wpk_err_name(*(const wpk_err *)member));
}

static void get_code(struct wpk_json_reader *r, const char *key, void *member)
{
    const char *name = wpk_json_get_text(r, key, 32);
    wpk_err *out = member;
    *out = WPK_ESYSTEM; /* a code that this version does not know */
    for (int code = WPK_OK + 1; code < WPK_ERR_COUNT; code++) {
        *out = strcmp(name, wpk_err_name((wpk_err)code)) == 0 ? (wpk_err)code : *out;
    }
}

static const struct wpk_field error_message[] = {
    {WPK_FIELD_CUSTOM("code", message, err, put_code, get_code)},
    {WPK_FIELD_TEXT("text", message, text, TEXT_MAX)},
    {WPK_FIELD_INT("retry_ms", message, retry_ms, 0, WPK_RETRY_MS_MAX)},
    {WPK_FIELD_END},
};

#define MESSAGE(kinds, rows) WPK_FIELD_WHEN(message, kind, kinds, rows)
#define IS(name) WPK_IS(WPK_MESSAGE_##name)

static const struct wpk_field message_fields[] = {
    {WPK_FIELD_VERSION(WPK_PROTOCOL_VERSION, "bring worker and wpkd to the same release")},
    {WPK_FIELD_CHOICE("type", message, kind, kind_names)},
    {WPK_FIELD(U64, "session", message, session)},
    {MESSAGE(IS(HELLO), hello_message)},
    {MESSAGE(IS(POLL), poll_message)},
    {MESSAGE(IS(RESULTS), WPK_ROWS({WPK_FIELD_LIST("results", message, results, result_count,
                                                   WPK_WORK_MAX, result_fields)}))},
    {MESSAGE(IS(PUT_ARTIFACT), WPK_ROWS({WPK_FIELD_GROUP(message, made_for, id_fields)}))},
    {MESSAGE(IS(PUT_ARTIFACT) | IS(GET_ARTIFACT) | IS(ARTIFACT),
             WPK_ROWS({WPK_FIELD(HASH, "sha256", message, sha256)}))},
    {MESSAGE(IS(GIVE_BACK), give_back_message)},
    {MESSAGE(IS(WELCOME), welcome_message)},
    {MESSAGE(IS(WORK), work_message)},
    {MESSAGE(IS(ACK), WPK_ROWS({WPK_FIELD_LIST(
                          "results", message, acks, ack_count, WPK_WORK_MAX,
                          WPK_ITEM(CHOICE, enum wpk_ack, 0, WPK_ACK_COUNT, .names = ack_names))}))},
    {MESSAGE(IS(ERROR), error_message)},
    {WPK_FIELD_END},
};

/* ---- frames */

wpk_err wpk_message_encode(const struct wpk_message *message, struct wpk_buf *out)
{
    struct wpk_buf json;
    wpk_buf_init(&json, WPK_MESSAGE_SIZE_MAX);
    wpk_err err = wpk_fields_encode(message_fields, message, &json);
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

static wpk_err split_frame(const char *frame, size_t size, size_t *json_size, struct wpk_diag *diag)
{
    if (size < 4 || size > WPK_MESSAGE_SIZE_MAX) {
        wpk_diag_set(diag, "a message of %zu bytes", size);
        return size < 4 ? WPK_EPARSE : WPK_ERANGE;
    }
    *json_size = 0;
    for (int i = 3; i >= 0; i--) {
        *json_size = *json_size << 8 | (unsigned char)frame[i];
    }
    return *json_size > size - 4 ? wpk_fail(diag, WPK_EPARSE, "the message is shorter than it says")
                                 : WPK_OK;
}

wpk_err wpk_message_decode(const char *frame, size_t size, struct wpk_message *out,
                           struct wpk_diag *diag)
{
    size_t json_size;
    wpk_err err = split_frame(frame, size, &json_size, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_message message = {0};
    const struct wpk_fields_text from = {frame + 4, json_size, WPK_MESSAGE_SIZE_MAX, &message.arena,
                                         false};
    err = wpk_fields_decode(&from, message_fields, &message, diag);
    message.bytes = frame + 4 + json_size;
    message.bytes_size = size - 4 - json_size;
    bool carries = message.kind == WPK_MESSAGE_PUT_ARTIFACT || message.kind == WPK_MESSAGE_ARTIFACT;
    if (err == WPK_OK && message.bytes_size > 0 && !carries) {
        err = wpk_fail(diag, WPK_EPARSE, "bytes after a message that carries none");
    }
    if (err != WPK_OK) {
        wpk_message_fini(&message);
        return err;
    }
    *out = message;
    return WPK_OK;
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

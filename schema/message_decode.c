/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding frames as messages. The sender is another machine, so every field is checked. */
#include "common/crypto.h"
#include "common/json.h"
#include "schema/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OP_TEXT_MAX (256 * 1024)
#define TEXT_MAX 1024
#define WAIT_MS_MAX 60000
#define MEMBERS_MAX 13 /* of a kind, with the NULL that ends them */

static const char *const kind_names[] = {WPK_MESSAGE_LIST(WPK_LIST_TEXT)};
static const char *const work_names[] = {WPK_WORK_LIST(WPK_LIST_TEXT)};
static const char *const stage_names[] = {WPK_STAGE_LIST(WPK_LIST_TEXT)};
static const char *const ack_names[] = {WPK_ACK_LIST(WPK_LIST_TEXT)};

/* The members of each kind besides version, type and session. */
static const char *const member_names[WPK_MESSAGE_COUNT][MEMBERS_MAX] = {
    [WPK_MESSAGE_HELLO] = {"name", "device", "environment", "providers", "holding", "program",
                           "token", "builds", "runs", "slots", "labels", "back_ends"},
    [WPK_MESSAGE_POLL] = {"want", "wait_ms", "holding", "running"},
    [WPK_MESSAGE_RESULTS] = {"results"},
    [WPK_MESSAGE_PUT_ARTIFACT] = {"search", "kind", "index", "sha256"},
    [WPK_MESSAGE_GET_ARTIFACT] = {"sha256"},
    [WPK_MESSAGE_GIVE_BACK] = {"leases", "reason"},
    [WPK_MESSAGE_WELCOME] = {"lease_ms", "server"},
    [WPK_MESSAGE_WORK] = {"ops", "targets", "work", "leave"},
    [WPK_MESSAGE_ACK] = {"results"},
    [WPK_MESSAGE_ARTIFACT] = {"sha256"},
    [WPK_MESSAGE_ERROR] = {"code", "text", "retry_ms"},
};

struct decoder {
    struct wpk_json_reader *r;
    struct wpk_message *message;
    wpk_err err; /* what the reader does not know of: memory, nested records */
};

static void *take(struct decoder *d, size_t count, size_t size)
{
    void *memory = wpk_arena_alloc(&d->message->arena, count, size);
    if (memory == NULL && d->err == WPK_OK) {
        d->err = WPK_ENOMEM;
    }
    return memory;
}

/* A text that lives as long as the message; "" after a failure. */
static const char *get_text(struct decoder *d, const char *key, size_t size_max)
{
    const char *text =
        wpk_arena_copy_text(&d->message->arena, wpk_json_get_text(d->r, key, size_max));
    if (text == NULL) {
        d->err = WPK_ENOMEM;
        return "";
    }
    return text;
}

static uint32_t get_u32(struct decoder *d, const char *key, uint32_t min, uint32_t max)
{
    return (uint32_t)wpk_json_get_int(d->r, key, min, max);
}

/* How many items the array has; fails past `max`. */
static uint32_t get_count(struct decoder *d, const char *key, uint32_t max)
{
    size_t count = wpk_json_count(d->r, key);
    if (count > max) {
        wpk_json_fail(d->r, key, WPK_ERANGE, "more than %u items", max);
        return 0;
    }
    return (uint32_t)count;
}

static wpk_work_id get_id(struct decoder *d)
{
    wpk_work_id id = {
        .search = wpk_json_get_u64(d->r, "search"),
        .kind = (enum wpk_work_kind)wpk_json_get_choice(d->r, "kind", work_names, WPK_WORK_COUNT),
        .index = get_u32(d, "index", 0, INT32_MAX),
    };
    return id;
}

/* An array of ids, of at most WPK_HOLDING_MAX. */
static wpk_work_id *get_ids(struct decoder *d, const char *key, uint32_t *out_count)
{
    uint32_t max = get_count(d, key, WPK_HOLDING_MAX);
    wpk_work_id *out = take(d, max, sizeof *out);
    uint32_t count = 0;
    wpk_json_enter_array(d->r, key);
    while (out != NULL && count < max && wpk_json_next(d->r)) {
        WPK_JSON_ALLOW(d->r, "search", "kind", "index");
        out[count++] = get_id(d);
    }
    wpk_json_leave(d->r);
    *out_count = count;
    return out;
}

/* Lists of providers and back ends join names and versions by these characters. */
static void get_entry_word(struct decoder *d, const char *key, char *out, size_t size)
{
    wpk_json_get_label(d->r, key, out, size);
    if (strpbrk(out, "+;/ ") != NULL) {
        wpk_json_fail(d->r, key, WPK_EINVAL, "has one of '+', ';', '/' and ' '");
    }
}

static void get_providers(struct decoder *d, struct wpk_hello *hello)
{
    uint32_t count = get_count(d, "providers", WPK_PROVIDERS_MAX);
    wpk_json_enter_array(d->r, "providers");
    while (hello->provider_count < count && wpk_json_next(d->r)) {
        struct wpk_message_provider *provider = &hello->providers[hello->provider_count++];
        WPK_JSON_ALLOW(d->r, "name", "vendor");
        get_entry_word(d, "name", provider->name, sizeof provider->name);
        provider->vendor = wpk_json_get_bool(d->r, "vendor");
    }
    wpk_json_leave(d->r);
}

static void get_back_ends(struct decoder *d, struct wpk_hello *hello)
{
    uint32_t count = get_count(d, "back_ends", WPK_BACK_ENDS_MAX);
    wpk_json_enter_array(d->r, "back_ends");
    while (hello->back_end_count < count && wpk_json_next(d->r)) {
        struct wpk_message_back_end *back_end = &hello->back_ends[hello->back_end_count++];
        WPK_JSON_ALLOW(d->r, "name", "version", "missing");
        get_entry_word(d, "name", back_end->name, sizeof back_end->name);
        get_entry_word(d, "version", back_end->version, sizeof back_end->version);
        wpk_json_get_label(d->r, "missing", back_end->missing, sizeof back_end->missing);
        if (strlen(back_end->name) + strlen(back_end->version) + 2 > WPK_PROVIDER_NAME_MAX) {
            wpk_json_fail(d->r, "version", WPK_ERANGE, "name and version are too long");
        }
    }
    wpk_json_leave(d->r);
}

static bool is_label_name(const char *name)
{
    return name[0] != '\0' && strlen(name) < WPK_WORKER_LABEL_NAME_MAX &&
           name[strspn(name, WPK_WORKER_LABEL_LETTERS)] == '\0';
}

static void get_labels(struct decoder *d, struct wpk_hello *hello)
{
    uint32_t count = get_count(d, "labels", WPK_WORKER_LABELS_MAX);
    wpk_json_enter(d->r, "labels");
    while (hello->label_count < count && wpk_json_next(d->r)) {
        struct wpk_worker_label *label = &hello->labels[hello->label_count++];
        const char *name = wpk_json_name(d->r);
        if (!is_label_name(name)) {
            wpk_json_fail(d->r, NULL, WPK_EINVAL, "a label's name is of a-z, 0-9, _, . and -");
            break;
        }
        snprintf(label->name, sizeof label->name, "%s", name);
        wpk_json_get_label(d->r, NULL, label->value, sizeof label->value);
    }
    wpk_json_leave(d->r);
}

static void get_worker_traits(struct decoder *d, struct wpk_hello *hello)
{
    wpk_json_get_label(d->r, "program", hello->program, sizeof hello->program);
    wpk_json_get_copy(d->r, "token", hello->token, sizeof hello->token);
    hello->roles = (wpk_json_get_bool(d->r, "builds") ? WPK_WORKER_BUILDS : 0U) |
                   (wpk_json_get_bool(d->r, "runs") ? WPK_WORKER_RUNS : 0U);
    if (hello->roles == 0) {
        wpk_json_fail(d->r, "runs", WPK_EINVAL, "a worker builds, runs or does both");
    }
    hello->slots = get_u32(d, "slots", 0, WPK_SLOTS_MAX);
    get_labels(d, hello);
}

static void get_hello(struct decoder *d)
{
    struct wpk_hello *hello = take(d, 1, sizeof *hello);
    if (hello == NULL) {
        return;
    }
    d->message->hello = hello;
    wpk_json_get_label(d->r, "name", hello->name, sizeof hello->name);
    wpk_json_get_label(d->r, "environment", hello->environment, sizeof hello->environment);
    get_providers(d, hello);
    get_back_ends(d, hello);
    wpk_device_get(d->r, "device", &hello->device);
    get_worker_traits(d, hello);
}

static void get_record(struct decoder *d, const char *key, struct wpk_record *out)
{
    wpk_err err = wpk_record_get(d->r, key, out);
    d->err = d->err == WPK_OK ? err : d->err;
}

/* Refuse an ok result without a time: 0 ns would be faster than everything. */
static void check_timed(struct decoder *d, const struct wpk_result *result)
{
    const struct wpk_record *record = &result->record;
    bool timed = record->timing.sample_count > 0;
    if (d->err != WPK_OK || record->outcome != WPK_OUTCOME_OK) {
        return;
    }
    if (result->stage == WPK_STAGE_BUILD && (timed || record->artifact_sha256[0] == '\0')) {
        wpk_json_fail(d->r, "record", WPK_EINVAL, "built, and timed or without an artifact");
    } else if (result->stage != WPK_STAGE_BUILD && !timed) {
        wpk_json_fail(d->r, "record", WPK_EINVAL, "ok, and not timed");
    }
}

static enum wpk_work_stage get_stage(struct decoder *d, enum wpk_work_kind kind)
{
    enum wpk_work_stage stage =
        (enum wpk_work_stage)wpk_json_get_choice(d->r, "stage", stage_names, WPK_STAGE_COUNT);
    if (stage == WPK_STAGE_BUILD && (kind == WPK_WORK_FINAL || kind == WPK_WORK_VENDOR)) {
        wpk_json_fail(d->r, "stage", WPK_EINVAL, "there is nothing to build");
    }
    return stage;
}

static void get_final(struct decoder *d, struct wpk_result *result)
{
    WPK_JSON_ALLOW(d->r, "search", "kind", "index", "attempt", "lease", "stage", "failure",
                   "times");
    result->failure = get_text(d, "failure", TEXT_MAX);
    uint32_t count = get_count(d, "times", WPK_CONTENDERS_MAX);
    wpk_json_enter_array(d->r, "times");
    while (result->timing_count < count && wpk_json_next(d->r)) {
        struct wpk_record record = {0};
        get_record(d, NULL, &record);
        result->timing[result->timing_count++] = record.timing;
        wpk_record_fini(&record);
    }
    wpk_json_leave(d->r);
}

static void get_results(struct decoder *d)
{
    uint32_t count = get_count(d, "results", WPK_WORK_MAX);
    d->message->results = take(d, count, sizeof *d->message->results);
    wpk_json_enter_array(d->r, "results");
    while (d->message->results != NULL && d->message->result_count < count && wpk_json_next(d->r)) {
        struct wpk_result *result = &d->message->results[d->message->result_count++];
        result->id = get_id(d);
        result->attempt = get_u32(d, "attempt", 1, INT32_MAX);
        result->failure = "";
        result->lease = wpk_json_get_u64(d->r, "lease");
        result->stage = get_stage(d, result->id.kind);
        if (result->id.kind == WPK_WORK_FINAL) {
            get_final(d, result);
        } else {
            WPK_JSON_ALLOW(d->r, "search", "kind", "index", "attempt", "lease", "stage", "record");
            get_record(d, "record", &result->record);
            check_timed(d, result);
        }
    }
    wpk_json_leave(d->r);
}

static void check_hash(struct decoder *d, const char *key, const char *text)
{
    if (!wpk_crypto_hex_valid(text, WPK_SHA256_SIZE)) {
        wpk_json_fail(d->r, key, WPK_EINVAL, "not a SHA-256 in hexadecimal");
    }
}

static void get_hash(struct decoder *d)
{
    wpk_json_get_copy(d->r, "sha256", d->message->sha256, sizeof d->message->sha256);
    check_hash(d, "sha256", d->message->sha256);
}

/* Of every work item: the lease, and what its stage needs. */
#define WORK_STAGE_NAMES "lease", "stage", "target", "artifact", "build_ns"

static void get_contenders(struct decoder *d, struct wpk_work *work)
{
    WPK_JSON_ALLOW(d->r, "search", "kind", "index", "attempt", "op", "policy", "round_count",
                   "contenders", WORK_STAGE_NAMES);
    work->round_count = get_u32(d, "round_count", 1, WPK_SAMPLES_MAX);
    uint32_t count = get_count(d, "contenders", WPK_CONTENDERS_MAX);
    wpk_json_enter_array(d->r, "contenders");
    while (work->contender_count < count && wpk_json_next(d->r)) {
        struct wpk_contender *contender = &work->contenders[work->contender_count++];
        WPK_JSON_ALLOW(d->r, "provider", "artifact");
        contender->provider = get_text(d, "provider", WPK_PROVIDER_NAME_MAX - 1);
        contender->artifact_sha256 = get_text(d, "artifact", WPK_ID_MAX - 1);
        if (contender->artifact_sha256[0] != '\0') {
            check_hash(d, "artifact", contender->artifact_sha256);
        }
    }
    wpk_json_leave(d->r);
}

static void get_work_stage(struct decoder *d, struct wpk_work *work)
{
    work->lease = wpk_json_get_u64(d->r, "lease");
    work->stage = get_stage(d, work->id.kind);
    if (work->stage == WPK_STAGE_BUILD) {
        uint32_t count = d->message->target_count;
        work->target = get_u32(d, "target", 0, count > 0 ? count - 1 : 0);
        if (count == 0) {
            wpk_json_fail(d->r, "target", WPK_EINVAL, "the message names no targets");
        }
    } else if (work->stage == WPK_STAGE_RUN && work->id.kind != WPK_WORK_FINAL) {
        work->artifact_sha256 = get_text(d, "artifact", WPK_ID_MAX - 1);
        work->build_ns = (uint64_t)wpk_json_get_int(d->r, "build_ns", 0, WPK_JSON_INT_MAX);
        if (work->id.kind != WPK_WORK_VENDOR) {
            check_hash(d, "artifact", work->artifact_sha256);
        }
    }
}

static void get_work_item(struct decoder *d, struct wpk_work *work)
{
    work->id = get_id(d);
    work->attempt = get_u32(d, "attempt", 1, INT32_MAX);
    work->op = get_u32(d, "op", 0, d->message->op_count > 0 ? d->message->op_count - 1 : 0);
    wpk_policy_get(d->r, "policy", &work->policy);
    work->provider = "";
    work->candidate = "";
    work->artifact_sha256 = "";
    work->anchor_sha256 = "";
    get_work_stage(d, work);
    if (work->id.kind == WPK_WORK_FINAL) {
        get_contenders(d, work);
        return;
    }
    WPK_JSON_ALLOW(d->r, "search", "kind", "index", "attempt", "op", "policy", "provider",
                   "candidate", "incumbent_ns", "keep_artifact", "accuracy", "anchor",
                   "incumbent_ratio", WORK_STAGE_NAMES);
    work->provider = get_text(d, "provider", WPK_PROVIDER_NAME_MAX - 1);
    work->candidate = get_text(d, "candidate", WPK_CANDIDATE_TEXT_MAX - 1);
    work->incumbent_ns = (uint64_t)wpk_json_get_int(d->r, "incumbent_ns", 0, WPK_JSON_INT_MAX);
    work->keep_artifact = wpk_json_get_bool(d->r, "keep_artifact");
    if (work->id.kind == WPK_WORK_TRIAL && wpk_json_has(d->r, "anchor")) {
        work->anchor_sha256 = get_text(d, "anchor", WPK_ID_MAX - 1);
        check_hash(d, "anchor", work->anchor_sha256);
        work->incumbent_ratio = wpk_json_get_real(d->r, "incumbent_ratio", 0, 1e9);
    }
    work->accuracy = wpk_accuracy_get(d->r, "accuracy");
}

static void get_ops(struct decoder *d)
{
    struct wpk_message *message = d->message;
    uint32_t op_count = get_count(d, "ops", WPK_WORK_MAX);
    message->ops = take(d, op_count, sizeof *message->ops);
    wpk_json_enter_array(d->r, "ops");
    while (message->ops != NULL && message->op_count < op_count && wpk_json_next(d->r)) {
        struct wpk_message_op *op = &message->ops[message->op_count++];
        WPK_JSON_ALLOW(d->r, "text", "layouts");
        op->text = get_text(d, "text", OP_TEXT_MAX);
        op->layouts = get_text(d, "layouts", 16);
    }
    wpk_json_leave(d->r);
}

static void get_targets(struct decoder *d)
{
    struct wpk_message *message = d->message;
    uint32_t count = get_count(d, "targets", WPK_WORK_MAX);
    message->targets = take(d, count, sizeof *message->targets);
    wpk_json_enter_array(d->r, "targets");
    while (message->targets != NULL && message->target_count < count && wpk_json_next(d->r)) {
        wpk_device_get(d->r, NULL, &message->targets[message->target_count++]);
    }
    wpk_json_leave(d->r);
}

static void get_work(struct decoder *d)
{
    struct wpk_message *message = d->message;
    get_ops(d);
    get_targets(d);
    uint32_t work_count = get_count(d, "work", WPK_WORK_MAX);
    if (work_count > 0 && message->op_count == 0) {
        wpk_json_fail(d->r, "ops", WPK_EINVAL, "work without an operator");
    }
    message->work = take(d, work_count, sizeof *message->work);
    wpk_json_enter_array(d->r, "work");
    while (message->work != NULL && message->work_count < work_count && wpk_json_next(d->r)) {
        get_work_item(d, &message->work[message->work_count++]);
    }
    wpk_json_leave(d->r);
    message->leave = wpk_json_get_bool(d->r, "leave");
}

static void get_acks(struct decoder *d)
{
    uint32_t count = get_count(d, "results", WPK_WORK_MAX);
    d->message->acks = take(d, count, sizeof *d->message->acks);
    wpk_json_enter_array(d->r, "results");
    while (d->message->acks != NULL && d->message->ack_count < count && wpk_json_next(d->r)) {
        d->message->acks[d->message->ack_count++] =
            (enum wpk_ack)wpk_json_get_choice(d->r, NULL, ack_names, WPK_ACK_COUNT);
    }
    wpk_json_leave(d->r);
}

static void get_error(struct decoder *d)
{
    const char *name = wpk_json_get_text(d->r, "code", 32);
    d->message->err = WPK_ESYSTEM; /* a code that this version does not know */
    for (int code = WPK_OK + 1; code < WPK_ERR_COUNT; code++) {
        if (strcmp(name, wpk_err_name((wpk_err)code)) == 0) {
            d->message->err = (wpk_err)code;
        }
    }
    d->message->text = get_text(d, "text", TEXT_MAX);
    d->message->retry_ms = get_u32(d, "retry_ms", 0, WPK_RETRY_MS_MAX);
}

/* Fail on members that the kind does not have. */
static void allow_members(struct decoder *d, enum wpk_message_kind kind)
{
    const char *names[4 + MEMBERS_MAX] = {"version", "type", "session"};
    memcpy(names + 3, member_names[kind], sizeof member_names[kind]);
    wpk_json_allow(d->r, names);
}

static bool get_version(struct decoder *d)
{
    int64_t version = wpk_json_get_int(d->r, "version", 0, INT32_MAX);
    if (version != WPK_PROTOCOL_VERSION) {
        wpk_json_fail(d->r, "version", WPK_EMISMATCH,
                      "protocol version %d is not spoken here, only %d: bring worker and wpkd to"
                      " the same release",
                      (int)version, WPK_PROTOCOL_VERSION);
        return false;
    }
    return true;
}

static void get_message(struct decoder *d)
{
    if (!get_version(d)) {
        return;
    }
    d->message->kind =
        (enum wpk_message_kind)wpk_json_get_choice(d->r, "type", kind_names, WPK_MESSAGE_COUNT);
    allow_members(d, d->message->kind);
    d->message->session = wpk_json_get_u64(d->r, "session");
    switch (d->message->kind) {
    case WPK_MESSAGE_HELLO:
        d->message->holding = get_ids(d, "holding", &d->message->holding_count);
        get_hello(d);
        break;
    case WPK_MESSAGE_POLL:
        d->message->want = get_u32(d, "want", 0, WPK_HOLDING_MAX);
        d->message->wait_ms = get_u32(d, "wait_ms", 0, WAIT_MS_MAX);
        d->message->holding = get_ids(d, "holding", &d->message->holding_count);
        d->message->running = wpk_json_get_u64(d->r, "running");
        break;
    case WPK_MESSAGE_RESULTS:
        get_results(d);
        break;
    case WPK_MESSAGE_PUT_ARTIFACT:
        d->message->made_for = get_id(d);
        get_hash(d);
        break;
    case WPK_MESSAGE_GET_ARTIFACT:
    case WPK_MESSAGE_ARTIFACT:
        get_hash(d);
        break;
    case WPK_MESSAGE_GIVE_BACK:
        d->message->given_back = get_ids(d, "leases", &d->message->given_back_count);
        if (wpk_json_has(d->r, "reason")) {
            d->message->reason = get_text(d, "reason", WPK_DIAG_TEXT_MAX - 1);
        }
        break;
    case WPK_MESSAGE_WELCOME:
        d->message->lease_ms = get_u32(d, "lease_ms", 1, INT32_MAX);
        d->message->server = get_text(d, "server", WPK_PROGRAM_MAX - 1);
        break;
    case WPK_MESSAGE_WORK:
        get_work(d);
        break;
    case WPK_MESSAGE_ACK:
        get_acks(d);
        break;
    case WPK_MESSAGE_ERROR:
        get_error(d);
        break;
    case WPK_MESSAGE_COUNT:
        break;
    }
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
    if (*json_size > size - 4) {
        wpk_diag_set(diag, "the message is shorter than it says");
        return WPK_EPARSE;
    }
    return WPK_OK;
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
    struct decoder d = {.message = &message};
    err = wpk_json_open(frame + 4, json_size, WPK_MESSAGE_SIZE_MAX, &d.r, diag);
    if (err != WPK_OK) {
        return err;
    }
    get_message(&d);
    err = wpk_json_status(d.r) != WPK_OK ? wpk_json_status(d.r) : d.err;
    wpk_json_close(d.r);
    message.bytes = frame + 4 + json_size;
    message.bytes_size = size - 4 - json_size;
    bool carries = message.kind == WPK_MESSAGE_PUT_ARTIFACT || message.kind == WPK_MESSAGE_ARTIFACT;
    if (err == WPK_OK && message.bytes_size > 0 && !carries) {
        wpk_diag_set(diag, "bytes after a message that carries none");
        err = WPK_EPARSE;
    }
    if (err != WPK_OK) {
        wpk_message_fini(&message);
        return err;
    }
    *out = message;
    return WPK_OK;
}

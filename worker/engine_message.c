/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/engine_message.h"

#include "ir/notation/notation.h"

#include <stdlib.h>
#include <string.h>

#define PATH_SIZE_MAX 4096 /* bytes */
#define NAME_SIZE_MAX 64   /* bytes */
#define OP_SIZE_MAX WPK_NOTATION_SIZE_MAX
#define LOG_SIZE_MAX (4 * (size_t)WPK_LOG_MAX)

static const char *const kind_names[] = {WPK_ENGINE_MESSAGE_LIST(WPK_LIST_TEXT)};
static const char *const outcome_names[] = {WPK_OUTCOME_LIST(WPK_LIST_TEXT)};

/* ---- sending */

static struct wpk_json_writer *begin(enum wpk_engine_message_kind kind)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "type", kind_names[kind]);
    return w;
}

static wpk_err finish(struct wpk_channel *channel, struct wpk_json_writer *w)
{
    struct wpk_buf text;
    wpk_buf_init(&text, WPK_CHANNEL_MESSAGE_MAX);
    wpk_err err = wpk_json_print(w, false, &text);
    if (err == WPK_OK) {
        err = wpk_channel_send(channel, text.data, text.size);
    }
    wpk_buf_fini(&text);
    wpk_json_writer_free(w);
    return err;
}

wpk_err wpk_engine_message_send(struct wpk_channel *channel, enum wpk_engine_message_kind kind,
                                uint64_t id)
{
    struct wpk_json_writer *w = begin(kind);
    wpk_json_put_u64(w, "id", id);
    return finish(channel, w);
}

wpk_err wpk_engine_message_send_core(struct wpk_channel *channel, enum wpk_engine_message_kind kind,
                                     int core)
{
    struct wpk_json_writer *w = begin(kind);
    wpk_json_put_int(w, "core", core);
    return finish(channel, w);
}

wpk_err wpk_engine_message_send_op(struct wpk_channel *channel, const char *op)
{
    struct wpk_json_writer *w = begin(WPK_ENGINE_MESSAGE_OP);
    wpk_json_put_text(w, "op", op);
    return finish(channel, w);
}

wpk_err wpk_engine_message_send_build(struct wpk_channel *channel,
                                      const struct wpk_build_request *request)
{
    struct wpk_json_writer *w = begin(WPK_ENGINE_MESSAGE_BUILD);
    wpk_json_put_u64(w, "id", request->id);
    wpk_json_put_text(w, "work", request->work);
    wpk_json_put_text(w, "directory", request->directory);
    wpk_json_put_int(w, "core", request->core);
    wpk_json_put_u64(w, "timeout_ms", request->timeout_ms);
    wpk_json_put_u64(w, "memory_bytes_max", request->memory_bytes_max);
    return finish(channel, w);
}

wpk_err wpk_engine_message_send_built(struct wpk_channel *channel,
                                      const struct wpk_build_reply *reply)
{
    struct wpk_json_writer *w = begin(WPK_ENGINE_MESSAGE_BUILT);
    wpk_json_put_u64(w, "id", reply->id);
    wpk_json_put_text(w, "outcome", outcome_names[reply->outcome]);
    wpk_json_put_text(w, "log", reply->log);
    wpk_json_put_u64(w, "build_ns", reply->build_ns);
    return finish(channel, w);
}

wpk_err wpk_engine_message_send_broken(struct wpk_channel *channel, const char *why)
{
    struct wpk_json_writer *w = begin(WPK_ENGINE_MESSAGE_BROKEN);
    wpk_json_put_text(w, "log", why);
    return finish(channel, w);
}

wpk_err wpk_engine_message_send_run(struct wpk_channel *channel,
                                    const struct wpk_run_request *request)
{
    struct wpk_json_writer *w = begin(WPK_ENGINE_MESSAGE_RUN);
    wpk_json_put_u64(w, "id", request->id);
    wpk_json_put_text(w, "work", request->work);
    wpk_json_put_text(w, "op", request->op);
    wpk_json_put_text(w, "provider", request->provider);
    wpk_json_put_text(w, "layouts", request->layouts);
    wpk_json_put_text(w, "artifact", request->artifact);
    wpk_json_put_text(w, "anchor", request->anchor);
    wpk_json_put_real(w, "incumbent_ratio", request->incumbent_ratio);
    wpk_policy_put(w, "policy", &request->policy);
    wpk_json_put_bool(w, "exact", request->rule.exact);
    wpk_json_put_bool(w, "transforms", request->rule.transforms);
    wpk_json_put_real(w, "times", request->rule.times);
    wpk_json_put_u64(w, "incumbent_ns", request->incumbent_ns);
    wpk_accuracy_put(w, "accuracy", request->accuracy);
    wpk_json_put_u64(w, "fresh_seed", request->fresh_seed);
    wpk_json_put_bool(w, "final", request->final);
    wpk_json_put_u64(w, "timeout_ms", request->timeout_ms);
    wpk_json_put_u64(w, "memory_bytes_max", request->memory_bytes_max);
    return finish(channel, w);
}

wpk_err wpk_engine_message_send_duel(struct wpk_channel *channel,
                                     const struct wpk_duel_request *request)
{
    WPK_ASSERT(request->count <= WPK_DUEL_MAX);
    struct wpk_json_writer *w = begin(WPK_ENGINE_MESSAGE_DUEL);
    wpk_json_put_u64(w, "id", request->id);
    wpk_json_put_text(w, "work", request->work);
    wpk_json_put_text(w, "op", request->op);
    wpk_json_put_text(w, "layouts", request->layouts);
    wpk_json_begin_array(w, "contestants");
    for (int i = 0; i < request->count; i++) {
        wpk_json_put_text(w, NULL, request->contestant[i]);
    }
    wpk_json_end(w);
    wpk_json_put_int(w, "round_count", request->round_count);
    wpk_policy_put(w, "policy", &request->policy);
    wpk_json_put_u64(w, "timeout_ms", request->timeout_ms);
    wpk_json_put_u64(w, "memory_bytes_max", request->memory_bytes_max);
    return finish(channel, w);
}

wpk_err wpk_engine_message_send_result(struct wpk_channel *channel, uint64_t id,
                                       const struct wpk_record *records, int count)
{
    struct wpk_json_writer *w = begin(WPK_ENGINE_MESSAGE_RESULT);
    wpk_json_put_u64(w, "id", id);
    wpk_json_begin_array(w, "records");
    for (int i = 0; i < count; i++) {
        wpk_record_put(w, NULL, &records[i]);
    }
    wpk_json_end(w);
    return finish(channel, w);
}

/* ---- reading */

wpk_err wpk_engine_message_open(const struct wpk_buf *text, enum wpk_engine_message_kind *kind,
                                struct wpk_json_reader **reader)
{
    wpk_err err =
        wpk_json_open(wpk_buf_text(text), text->size, WPK_CHANNEL_MESSAGE_MAX, reader, NULL);
    if (err != WPK_OK) {
        return err;
    }
    *kind = (enum wpk_engine_message_kind)wpk_json_get_choice(*reader, "type", kind_names,
                                                              WPK_ENGINE_MESSAGE_COUNT);
    err = wpk_json_status(*reader);
    if (err != WPK_OK) {
        wpk_json_close(*reader);
    }
    return err;
}

uint64_t wpk_engine_message_read_id(struct wpk_json_reader *reader)
{
    return wpk_json_get_u64(reader, "id");
}

int wpk_engine_message_read_core(struct wpk_json_reader *reader)
{
    return (int)wpk_json_get_int(reader, "core", -1, INT16_MAX);
}

const char *wpk_engine_message_read_op(struct wpk_json_reader *reader)
{
    return wpk_json_get_text(reader, "op", OP_SIZE_MAX);
}

static const char *read_work(struct wpk_json_reader *reader)
{
    return wpk_json_get_text(reader, "work", WPK_ENGINE_MESSAGE_WORK_SIZE - 1);
}

void wpk_engine_message_read_build(struct wpk_json_reader *reader, struct wpk_build_request *out)
{
    out->id = wpk_engine_message_read_id(reader);
    out->work = read_work(reader);
    out->directory = wpk_json_get_text(reader, "directory", PATH_SIZE_MAX);
    out->core = wpk_engine_message_read_core(reader);
    out->timeout_ms = wpk_json_get_u64(reader, "timeout_ms");
    out->memory_bytes_max = wpk_json_get_u64(reader, "memory_bytes_max");
}

void wpk_engine_message_read_built(struct wpk_json_reader *reader, struct wpk_build_reply *out)
{
    out->id = wpk_engine_message_read_id(reader);
    out->outcome =
        (enum wpk_outcome)wpk_json_get_choice(reader, "outcome", outcome_names, WPK_OUTCOME_COUNT);
    out->log = wpk_json_get_text(reader, "log", LOG_SIZE_MAX);
    out->build_ns = wpk_json_get_u64(reader, "build_ns");
}

const char *wpk_engine_message_read_broken(struct wpk_json_reader *reader)
{
    return wpk_json_get_text(reader, "log", LOG_SIZE_MAX);
}

void wpk_engine_message_read_run(struct wpk_json_reader *reader, struct wpk_run_request *out)
{
    out->id = wpk_engine_message_read_id(reader);
    out->work = read_work(reader);
    out->op = wpk_engine_message_read_op(reader);
    out->provider = wpk_json_get_text(reader, "provider", NAME_SIZE_MAX);
    out->layouts = wpk_json_get_text(reader, "layouts", NAME_SIZE_MAX);
    out->artifact = wpk_json_get_text(reader, "artifact", PATH_SIZE_MAX);
    out->anchor = wpk_json_get_text(reader, "anchor", PATH_SIZE_MAX);
    out->incumbent_ratio = wpk_json_get_real(reader, "incumbent_ratio", 0, 1e9);
    wpk_policy_get(reader, "policy", &out->policy);
    out->rule.exact = wpk_json_get_bool(reader, "exact");
    out->rule.transforms = wpk_json_get_bool(reader, "transforms");
    out->rule.times = wpk_json_get_real(reader, "times", 1, 1e300);
    out->incumbent_ns = wpk_json_get_u64(reader, "incumbent_ns");
    out->accuracy = wpk_accuracy_get(reader, "accuracy");
    out->fresh_seed = wpk_json_get_u64(reader, "fresh_seed");
    out->final = wpk_json_get_bool(reader, "final");
    out->timeout_ms = wpk_json_get_u64(reader, "timeout_ms");
    out->memory_bytes_max = wpk_json_get_u64(reader, "memory_bytes_max");
}

void wpk_engine_message_read_duel(struct wpk_json_reader *reader, struct wpk_duel_request *out)
{
    out->id = wpk_engine_message_read_id(reader);
    out->work = read_work(reader);
    out->op = wpk_engine_message_read_op(reader);
    out->layouts = wpk_json_get_text(reader, "layouts", NAME_SIZE_MAX);
    out->count = 0;
    wpk_json_enter_array(reader, "contestants");
    while (out->count < WPK_DUEL_MAX && wpk_json_next(reader)) {
        out->contestant[out->count++] = wpk_json_get_text(reader, NULL, PATH_SIZE_MAX);
    }
    wpk_json_leave(reader);
    out->round_count = (int)wpk_json_get_int(reader, "round_count", 1, WPK_SAMPLES_MAX);
    wpk_policy_get(reader, "policy", &out->policy);
    out->timeout_ms = wpk_json_get_u64(reader, "timeout_ms");
    out->memory_bytes_max = wpk_json_get_u64(reader, "memory_bytes_max");
}

wpk_err wpk_engine_message_read_result(struct wpk_json_reader *reader, struct wpk_record *out,
                                       int max, int *count)
{
    wpk_err err = WPK_OK;
    *count = 0;
    wpk_json_enter_array(reader, "records");
    while (err == WPK_OK && *count < max && wpk_json_next(reader)) {
        err = wpk_record_get(reader, NULL, &out[(*count)++]);
    }
    wpk_json_leave(reader);
    return err != WPK_OK ? err : wpk_json_status(reader);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/engine_message.h"

#include <stddef.h>
#include <string.h>

/* The texts of each kind: members of type const char *, one after the other. None is NULL but those
 * of the contestants that a duel does not have. */
static const struct {
    size_t at;
    size_t count;
} texts[WPK_ENGINE_MESSAGE_COUNT] = {
    [WPK_ENGINE_MESSAGE_BUILD] = {offsetof(struct wpk_engine_message, build.work), 2},
    [WPK_ENGINE_MESSAGE_BUILT] = {offsetof(struct wpk_engine_message, built.log), 1},
    [WPK_ENGINE_MESSAGE_BROKEN] = {offsetof(struct wpk_engine_message, text), 1},
    [WPK_ENGINE_MESSAGE_OP] = {offsetof(struct wpk_engine_message, text), 1},
    [WPK_ENGINE_MESSAGE_RESULT] = {offsetof(struct wpk_engine_message, text), 1},
    [WPK_ENGINE_MESSAGE_RUN] = {offsetof(struct wpk_engine_message, run.work), 6},
    [WPK_ENGINE_MESSAGE_DUEL] = {offsetof(struct wpk_engine_message, duel.work), 3 + WPK_DUEL_MAX},
};

static const char **texts_of(const struct wpk_engine_message *message)
{
    return (const char **)(void *)((char *)message + texts[message->kind].at);
}

wpk_err wpk_engine_message_send(struct wpk_channel *channel,
                                const struct wpk_engine_message *message)
{
    const char *const *text = texts_of(message);
    struct wpk_buf bytes;
    wpk_buf_init(&bytes, WPK_CHANNEL_MESSAGE_MAX);
    wpk_buf_append(&bytes, message, sizeof(*message));
    for (size_t i = 0; i < texts[message->kind].count; i++) {
        if (text[i] != NULL) {
            wpk_buf_append(&bytes, text[i], strlen(text[i]) + 1);
        }
    }
    wpk_err err = wpk_buf_status(&bytes);
    err = err == WPK_OK ? wpk_channel_send(channel, bytes.data, bytes.size) : err;
    wpk_buf_fini(&bytes);
    return err;
}

wpk_err wpk_engine_message_read(const struct wpk_buf *bytes, struct wpk_engine_message *out)
{
    if (bytes->size < sizeof(*out)) {
        return WPK_EPARSE;
    }
    memcpy(out, bytes->data, sizeof(*out));
    if ((unsigned)out->kind >= WPK_ENGINE_MESSAGE_COUNT) {
        return WPK_EPARSE;
    }
    size_t needed = texts[out->kind].count;
    if (out->kind == WPK_ENGINE_MESSAGE_DUEL) {
        if (out->duel.count < 0 || out->duel.count > WPK_DUEL_MAX) {
            return WPK_EPARSE;
        }
        needed = needed - WPK_DUEL_MAX + (size_t)out->duel.count;
    }
    const char **text = texts_of(out);
    const char *at = bytes->data + sizeof(*out), *end = bytes->data + bytes->size;
    for (size_t i = 0; i < texts[out->kind].count; i++) {
        const char *nul = i < needed ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        text[i] = nul != NULL ? at : NULL;
        if (i < needed && nul == NULL) {
            return WPK_EPARSE;
        }
        at = nul != NULL ? nul + 1 : at;
    }
    bool known =
        out->kind != WPK_ENGINE_MESSAGE_BUILT || (unsigned)out->built.outcome < WPK_OUTCOME_COUNT;
    return at == end && known ? WPK_OK : WPK_EPARSE;
}

wpk_err wpk_engine_message_obey(struct wpk_channel *channel,
                                wpk_err (*obey)(void *user, const struct wpk_buf *text,
                                                const struct wpk_engine_message *message),
                                void *user)
{
    struct wpk_buf text = {0};
    struct wpk_engine_message message;
    wpk_err err;
    do {
        err = wpk_channel_receive(channel, &text);
        err = err == WPK_OK ? wpk_engine_message_read(&text, &message) : err;
        err = err == WPK_OK ? obey(user, &text, &message) : err;
    } while (err == WPK_OK);
    wpk_buf_fini(&text);
    return err == WPK_ENOENT ? WPK_OK : err;
}

wpk_err wpk_engine_message_send_result(struct wpk_channel *channel, uint64_t id,
                                       const struct wpk_record *records, int count)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf text;
    wpk_buf_init(&text, WPK_CHANNEL_MESSAGE_MAX);
    wpk_json_begin_array(w, "records");
    for (int i = 0; i < count; i++) {
        wpk_fields_put(w, NULL, wpk_record_fields, &records[i]);
    }
    wpk_json_end(w);
    wpk_err err = wpk_json_finish(w, false, &text);
    if (err == WPK_OK) {
        err = WPK_ENGINE_SEND(channel, .kind = WPK_ENGINE_MESSAGE_RESULT, .id = id,
                              .text = wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
    return err;
}

wpk_err wpk_engine_message_read_result(const struct wpk_engine_message *message,
                                       struct wpk_record *out, int max, int *count)
{
    const char *text = message->text != NULL ? message->text : "";
    struct wpk_fields_in in = {.r = NULL};
    *count = 0;
    wpk_err err = wpk_json_open(text, strlen(text), WPK_CHANNEL_MESSAGE_MAX, &in.r, NULL);
    if (err != WPK_OK) {
        return err;
    }
    wpk_json_enter_array(in.r, "records");
    while (*count < max && wpk_json_next(in.r)) {
        struct wpk_record *record = &out[(*count)++];
        *record = (struct wpk_record){0};
        wpk_fields_get_here(&in, wpk_record_fields, record);
    }
    wpk_json_leave(in.r);
    err = wpk_json_status(in.r);
    wpk_json_close(in.r);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes bytes that a candidate's process can send: messages between the engine and its programs,
 * and the manifest in a kernel. */
#include "runtime/kernel/manifest.h"
#include "tests/fuzz/fuzz.h"
#include "worker/engine_message.h"

#include <stdlib.h>
#include <string.h>

static void read_result(const struct wpk_engine_message *message)
{
    struct wpk_record records[WPK_DUEL_MAX] = {{0}};
    int count = -1;
    (void)!wpk_engine_message_read_result(message, records, WPK_DUEL_MAX, &count);
    WPK_ASSERT(count >= 0 && count <= WPK_DUEL_MAX);
    for (int i = 0; i < count; i++) {
        WPK_ASSERT(records[i].outcome < WPK_OUTCOME_COUNT);
        WPK_ASSERT(memchr(records[i].log, '\0', sizeof records[i].log) != NULL);
        WPK_ASSERT(records[i].timing.sample_count <= WPK_SAMPLES_MAX);
        wpk_record_fini(&records[i]);
    }
}

static void try_bytes(const struct wpk_buf *bytes)
{
    struct wpk_engine_message message;
    if (wpk_engine_message_read(bytes, &message) != WPK_OK) {
        return;
    }
    switch (message.kind) {
    case WPK_ENGINE_MESSAGE_BUILD:
        WPK_ASSERT(message.build.work != NULL && message.build.directory != NULL);
        break;
    case WPK_ENGINE_MESSAGE_BUILT:
        WPK_ASSERT(message.built.log != NULL && message.built.outcome < WPK_OUTCOME_COUNT);
        break;
    case WPK_ENGINE_MESSAGE_BROKEN:
    case WPK_ENGINE_MESSAGE_OP:
        WPK_ASSERT(strlen(message.text) < bytes->size);
        break;
    case WPK_ENGINE_MESSAGE_RUN:
        WPK_ASSERT(message.run.op != NULL && message.run.anchor != NULL);
        break;
    case WPK_ENGINE_MESSAGE_RESULT:
        read_result(&message);
        break;
    case WPK_ENGINE_MESSAGE_DUEL:
        for (int i = 0; i < message.duel.count; i++) {
            WPK_ASSERT(strlen(message.duel.contestant[i]) < bytes->size);
        }
        break;
    default:
        WPK_ASSERT(message.kind < WPK_ENGINE_MESSAGE_COUNT);
        break;
    }
}

/* The data as a message, and as the texts of one of each kind. */
static void try_message(const uint8_t *data, size_t size)
{
    struct wpk_buf bytes = {0};
    wpk_buf_append(&bytes, (const char *)data, size);
    try_bytes(&bytes);
    for (int kind = 0; kind < WPK_ENGINE_MESSAGE_COUNT; kind++) {
        struct wpk_engine_message message = {.kind = (enum wpk_engine_message_kind)kind};
        if (kind == WPK_ENGINE_MESSAGE_DUEL) {
            message.duel.count = (int)(size % WPK_DUEL_MAX);
        }
        wpk_buf_reset(&bytes);
        wpk_buf_append(&bytes, &message, sizeof message);
        wpk_buf_append(&bytes, (const char *)data, size);
        wpk_buf_append_byte(&bytes, '\0');
        try_bytes(&bytes);
    }
    wpk_buf_fini(&bytes);
}

/* A manifest that is accepted survives a round trip. */
static void try_manifest(const uint8_t *data, size_t size)
{
    static struct wpk_manifest manifest; /* large */
    struct wpk_diag diag = {0};
    char *once = NULL;
    char *twice = NULL;
    wpk_err err = wpk_manifest_decode((const char *)data, size, &manifest, &diag);
    if (err != WPK_OK) {
        WPK_ASSERT(err == WPK_ENOMEM || diag.text[0] != '\0');
        return;
    }
    WPK_ASSERT(wpk_manifest_encode(&manifest, &once) == WPK_OK);
    wpk_manifest_fini(&manifest);
    WPK_ASSERT(wpk_manifest_decode(once, strlen(once), &manifest, NULL) == WPK_OK);
    WPK_ASSERT(wpk_manifest_encode(&manifest, &twice) == WPK_OK);
    WPK_ASSERT(strcmp(once, twice) == 0);
    wpk_manifest_fini(&manifest);
    free(once);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_message(data, size);
    try_manifest(data, size);
    return 0;
}

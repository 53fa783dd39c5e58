/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes bytes that a candidate's process can send: messages between the engine and its programs,
 * and the manifest in a kernel. */
#include "runtime/kernel/manifest.h"
#include "tests/fuzz/fuzz.h"
#include "worker/engine_message.h"

#include <stdlib.h>
#include <string.h>

static wpk_err read_result(struct wpk_json_reader *reader)
{
    struct wpk_record records[WPK_DUEL_MAX] = {{0}};
    int count = -1;
    wpk_err err = wpk_engine_message_read_result(reader, records, WPK_DUEL_MAX, &count);
    WPK_ASSERT(count >= 0 && count <= WPK_DUEL_MAX);
    for (int i = 0; i < count; i++) {
        WPK_ASSERT(records[i].outcome < WPK_OUTCOME_COUNT);
        WPK_ASSERT(memchr(records[i].log, '\0', sizeof records[i].log) != NULL);
        WPK_ASSERT(records[i].timing.sample_count <= WPK_SAMPLES_MAX);
        wpk_record_fini(&records[i]);
    }
    return err;
}

static void read_duel(struct wpk_json_reader *reader)
{
    struct wpk_duel_request duel = {0};
    wpk_engine_message_read_duel(reader, &duel);
    WPK_ASSERT(duel.count >= 0 && duel.count <= WPK_DUEL_MAX);
    if (wpk_json_status(reader) != WPK_OK) {
        return;
    }
    WPK_ASSERT(duel.round_count >= 1 && duel.round_count <= WPK_SAMPLES_MAX);
    for (int i = 0; i < duel.count; i++) {
        WPK_ASSERT(strlen(duel.contestant[i]) <= 4096);
    }
}

static void read_run(struct wpk_json_reader *reader)
{
    struct wpk_run_request run = {0};
    wpk_engine_message_read_run(reader, &run);
    if (wpk_json_status(reader) == WPK_OK) {
        WPK_ASSERT(run.op != NULL && run.provider != NULL && run.artifact != NULL);
        WPK_ASSERT(run.policy.threads >= 1 && run.policy.sample_count >= 1);
        WPK_ASSERT(run.rule.times >= 1);
    }
}

static void read_build(struct wpk_json_reader *reader)
{
    struct wpk_build_request build = {0};
    wpk_engine_message_read_build(reader, &build);
    if (wpk_json_status(reader) == WPK_OK) {
        WPK_ASSERT(build.directory != NULL && build.core >= -1);
    }
}

static void read_built(struct wpk_json_reader *reader)
{
    struct wpk_build_reply built = {0};
    wpk_engine_message_read_built(reader, &built);
    if (wpk_json_status(reader) == WPK_OK) {
        WPK_ASSERT(built.log != NULL && built.outcome < WPK_OUTCOME_COUNT);
    }
}

static void read_rest(struct wpk_json_reader *reader, enum wpk_engine_message_kind kind)
{
    switch (kind) {
    case WPK_ENGINE_MESSAGE_BUILD:
        read_build(reader);
        break;
    case WPK_ENGINE_MESSAGE_BUILT:
        read_built(reader);
        break;
    case WPK_ENGINE_MESSAGE_BROKEN:
        WPK_ASSERT(wpk_engine_message_read_broken(reader) != NULL);
        break;
    case WPK_ENGINE_MESSAGE_PAUSE:
    case WPK_ENGINE_MESSAGE_PAUSED:
    case WPK_ENGINE_MESSAGE_RESUME:
        WPK_ASSERT(wpk_engine_message_read_core(reader) >= -1);
        break;
    case WPK_ENGINE_MESSAGE_OP:
        WPK_ASSERT(wpk_engine_message_read_op(reader) != NULL);
        break;
    case WPK_ENGINE_MESSAGE_RUN:
        read_run(reader);
        break;
    case WPK_ENGINE_MESSAGE_RESULT:
        (void)!read_result(reader);
        break;
    case WPK_ENGINE_MESSAGE_DUEL:
        read_duel(reader);
        break;
    default:
        (void)wpk_engine_message_read_id(reader);
        break;
    }
}

static void try_message(const uint8_t *data, size_t size)
{
    struct wpk_buf text = {0};
    struct wpk_json_reader *reader = NULL;
    enum wpk_engine_message_kind kind;
    wpk_buf_append(&text, (const char *)data, size);
    if (wpk_engine_message_open(&text, &kind, &reader) == WPK_OK) {
        WPK_ASSERT(kind < WPK_ENGINE_MESSAGE_COUNT);
        read_rest(reader, kind);
        wpk_json_close(reader);
    }
    wpk_buf_fini(&text);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/fleet_crew.h"

#include "common/crypto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_WAIT_MS 5000

void bench_crew_init(struct bench_crew *crew, uint32_t count, uint32_t batch)
{
    WPK_ASSERT(batch >= 1 && batch <= BENCH_CREW_BATCH_MAX);
    memset(crew, 0, sizeof *crew);
    crew->hands = calloc(count, sizeof *crew->hands);
    WPK_ASSERT(crew->hands != NULL);
    crew->count = count;
    crew->batch = batch;
}

void bench_crew_fini(struct bench_crew *crew)
{
    free(crew->hands);
    free(crew->artifact);
    memset(crew, 0, sizeof *crew);
}

void bench_crew_upload(struct bench_crew *crew, size_t size)
{
    WPK_ASSERT(crew->artifact == NULL && size >= sizeof crew->uploads &&
               size <= WPK_ARTIFACT_SIZE_MAX);
    crew->artifact = malloc(size);
    WPK_ASSERT(crew->artifact != NULL);
    wpk_crypto_random(crew->artifact, size);
    crew->artifact_size = size;
}

static void fill_hello(uint32_t index, struct wpk_hello *hello)
{
    *hello = (struct wpk_hello){
        .device = {.kind = "cpu",
                   .model = "bench",
                   .cpu = {.flags = WPK_CPU_SET_AVX2,
                           .l1_bytes = 32768,
                           .l2_bytes = 1048576,
                           .l3_bytes = 33554432,
                           .vector_bytes = 32,
                           .vector_registers = 16},
                   .core_count = 4},
        .environment = "codegen=1;halide=21.0.0",
        .providers = {{.name = "halide-cpu"}},
        .provider_count = 1,
        .roles = WPK_WORKER_ROLES_ALL,
    };
    snprintf(hello->name, sizeof hello->name, "bench/%u", index);
    snprintf(hello->device.instance, sizeof hello->device.instance, "bench%u/cpu0", index);
}

static const char code[] = "code"; /* of every anchor */

/* As many samples as a real one has; the time depends on the ask, and never wins by much. */
static void fill_result(const struct wpk_work *work, struct wpk_result *result)
{
    uint64_t base_ns = 100000 + work->id.index * UINT64_C(2654435761) % 1000000;
    memset(result, 0, sizeof *result);
    result->id = work->id;
    result->lease = work->lease;
    result->stage = work->stage;
    result->attempt = work->attempt;
    result->failure = "";
    struct wpk_record *record = &result->record;
    record->outcome = WPK_OUTCOME_OK;
    record->build_ns = 150000000;
    record->verify_ns = 20000000;
    record->measure_ns = 40000000;
    if (work->anchor_sha256[0] != '\0') {
        record->anchor_ns = 1000000;
        record->anchor_ratio = (double)base_ns / 1e6;
        memcpy(record->anchor_sha256, work->anchor_sha256, sizeof record->anchor_sha256);
    } else {
        wpk_crypto_sha256_hex(code, strlen(code), record->artifact_sha256);
    }
    record->error_max = 1.5e-6;
    record->error_tolerance = 3e-6;
    record->error_ratio = 0.5;
    record->timing = (struct wpk_timing){.median_ns = base_ns + 500,
                                         .min_ns = base_ns,
                                         .mad_ns = 250,
                                         .sample_count = 10,
                                         .repeat_count = 20};
    for (uint64_t i = 0; i < 10; i++) {
        record->timing.sample_ns[i] = base_ns + i * 100;
    }
    snprintf(record->schedule_sha256, sizeof record->schedule_sha256,
             "%016llx%016llx%016llx%016llx", (unsigned long long)base_ns,
             (unsigned long long)work->id.search, (unsigned long long)work->id.index, 0ULL);
}

/* True if an artifact must be uploaded before the results: that of a search's first candidate,
 * which is its anchor, or one of the worker's own. */
static bool next_upload(const struct bench_crew *crew, struct bench_hand *hand)
{
    for (; hand->uploaded < hand->held_count; hand->uploaded++) {
        bool anchor = hand->held[hand->uploaded].anchor_sha256[0] == '\0';
        hand->is_own = !anchor && crew->uploads_due > 0 && hand->made[0] == '\0';
        if (anchor || hand->is_own) {
            return true;
        }
    }
    return false;
}

static void fill_upload(struct bench_crew *crew, struct bench_hand *hand,
                        struct wpk_message *message)
{
    message->kind = WPK_MESSAGE_PUT_ARTIFACT;
    message->made_for = hand->held[hand->uploaded].id;
    message->bytes = code;
    message->bytes_size = strlen(code);
    if (hand->is_own) {
        crew->uploads++;
        crew->uploads_due--;
        memcpy(crew->artifact, &crew->uploads, sizeof crew->uploads);
        message->bytes = crew->artifact;
        message->bytes_size = crew->artifact_size;
    }
    wpk_crypto_sha256_hex(message->bytes, message->bytes_size, message->sha256);
    if (hand->is_own) {
        memcpy(hand->made, message->sha256, sizeof hand->made);
        hand->made_for = hand->uploaded;
    }
}

void bench_crew_ask(struct bench_crew *crew, uint32_t index, struct wpk_buf *out)
{
    struct bench_hand *hand = &crew->hands[index];
    static struct wpk_result results[BENCH_CREW_BATCH_MAX]; /* one thread; too large for a stack */
    struct wpk_hello hello;
    struct wpk_message message = {.session = hand->session};
    if (hand->session == 0) {
        message.kind = WPK_MESSAGE_HELLO;
        fill_hello(index, &hello);
        message.hello = &hello;
    } else if (next_upload(crew, hand)) {
        fill_upload(crew, hand, &message);
    } else if (hand->held_count > 0) {
        message.kind = WPK_MESSAGE_RESULTS;
        message.results = results;
        message.result_count = hand->held_count;
        for (uint32_t i = 0; i < hand->held_count; i++) {
            fill_result(&hand->held[i], &results[i]);
            if (hand->made[0] != '\0' && hand->made_for == i) {
                memcpy(results[i].record.artifact_sha256, hand->made, WPK_ID_MAX);
            }
        }
    } else {
        message.kind = WPK_MESSAGE_POLL;
        message.want = crew->batch;
        message.wait_ms = POLL_WAIT_MS;
    }
    hand->asked = message.kind;
    wpk_err err = wpk_message_encode(&message, out);
    WPK_ASSERT(err == WPK_OK);
}

static void take_acks(struct bench_crew *crew, struct bench_hand *hand,
                      const struct wpk_message *message)
{
    for (uint32_t i = 0; i < message->ack_count; i++) {
        crew->repeated += message->acks[i] != WPK_ACK_RECORDED;
    }
    crew->results += message->ack_count;
    hand->held_count = 0;
    hand->uploaded = 0;
    hand->made[0] = '\0';
}

void bench_crew_take(struct bench_crew *crew, uint32_t index, const char *frame, size_t size)
{
    struct bench_hand *hand = &crew->hands[index];
    struct wpk_message message = {0};
    wpk_err err = wpk_message_decode(frame, size, &message, NULL);
    WPK_ASSERT(err == WPK_OK);
    switch (message.kind) {
    case WPK_MESSAGE_WELCOME:
        hand->session = message.session;
        break;
    case WPK_MESSAGE_WORK:
        hand->held_count = message.work_count < crew->batch ? message.work_count : crew->batch;
        for (uint32_t i = 0; i < hand->held_count; i++) {
            static char anchor[WPK_SHA256_HEX_SIZE];
            wpk_crypto_sha256_hex(code, strlen(code), anchor);
            hand->held[i] = message.work[i];
            hand->held[i].anchor_sha256 = message.work[i].anchor_sha256[0] != '\0' ? anchor : "";
        }
        break;
    case WPK_MESSAGE_ACK:
        if (hand->asked == WPK_MESSAGE_PUT_ARTIFACT) {
            hand->uploaded++;
        } else {
            take_acks(crew, hand, &message);
        }
        break;
    default:
        crew->errors += hand->asked != WPK_MESSAGE_PUT_ARTIFACT;
        if (hand->asked == WPK_MESSAGE_PUT_ARTIFACT) { /* its result goes without */
            crew->uploads_refused++;
            hand->made[0] = '\0';
            hand->uploaded++;
        }
        hand->session = message.err == WPK_ENOENT ? 0 : hand->session;
    }
    wpk_message_fini(&message);
}

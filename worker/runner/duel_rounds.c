/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/run_batch.h"

#include "worker/measure.h"

#include <string.h>

/* A third play would only wait for whatever else runs on the machine to end. */
#define PLAYS_MAX 2

#define SETTLED_ROUNDS 5 /* after which a clear order needs no more turns */
#define CLEARLY_SLOWER 1.1

enum standing {
    PLAYING,
    SETTLED, /* it has its time */
    OUT,     /* it failed */
};

/* Settle who is clearly slower than the fastest, and the last one who is left. */
static void settle(const struct wpk_duel_rounds *rounds, struct wpk_timing *timing,
                   enum standing *standing)
{
    uint64_t fastest = UINT64_MAX;
    int playing = 0;

    for (int i = 0; i < rounds->count; i++) {
        if (standing[i] == PLAYING) {
            wpk_measure_summarize(&timing[i]);
            fastest = timing[i].median_ns < fastest ? timing[i].median_ns : fastest;
        }
    }
    for (int i = 0; i < rounds->count; i++) {
        if (standing[i] == PLAYING && (double)timing[i].min_ns > CLEARLY_SLOWER * (double)fastest) {
            standing[i] = SETTLED;
        }
        playing += standing[i] == PLAYING;
    }
    for (int i = 0; playing == 1 && i < rounds->count; i++) {
        standing[i] = standing[i] == PLAYING ? SETTLED : standing[i];
    }
}

static void play(const struct wpk_duel_rounds *rounds, struct wpk_timing *out)
{
    enum standing standing[WPK_DUEL_MAX] = {PLAYING};

    for (int round = 0; round < rounds->round_count; round++) {
        if (round >= SETTLED_ROUNDS) {
            settle(rounds, out, standing);
        }
        for (int i = 0; i < rounds->count; i++) {
            int index = (round + i) % rounds->count;
            if (standing[index] != PLAYING) {
                continue;
            }
            uint64_t ns = rounds->take_turn(rounds->user, index);
            struct wpk_timing *timing = &out[index];
            if (ns == 0) {
                standing[index] = OUT;
            } else {
                timing->sample_ns[timing->sample_count++] = ns;
            }
        }
    }
    for (int i = 0; i < rounds->count; i++) {
        if (standing[i] == OUT) {
            out[i] = (struct wpk_timing){0};
        } else {
            wpk_measure_summarize(&out[i]);
        }
    }
}

/* The largest MAD over median of any vendor's times; 0: no vendor was timed. */
static double vendor_noise(const struct wpk_duel_rounds *rounds, const struct wpk_timing *timing)
{
    double most = 0;

    for (int i = 0; i < rounds->count; i++) {
        if (rounds->is_vendor[i] && timing[i].sample_count > 0) {
            double noise = (double)timing[i].mad_ns / (double)timing[i].median_ns;
            most = noise > most ? noise : most;
        }
    }
    return most;
}

void wpk_duel_rounds_play(const struct wpk_duel_rounds *rounds, struct wpk_timing *out)
{
    struct wpk_timing timing[WPK_DUEL_MAX];
    double least = 0;

    WPK_ASSERT(rounds->count <= WPK_DUEL_MAX);
    WPK_ASSERT(rounds->round_count <= WPK_SAMPLES_MAX);
    for (int i = 0; i < PLAYS_MAX && (i == 0 || least > WPK_MEASURE_NOISE_MAX); i++) {
        memset(timing, 0, sizeof(timing));
        play(rounds, timing);
        double noise = vendor_noise(rounds, timing);
        if (i == 0 || noise < least) {
            memcpy(out, timing, (size_t)rounds->count * sizeof(*out));
            least = noise;
        }
    }
    /* A contestant that failed in the second play has no time, even if the first play counts. */
    for (int i = 0; i < rounds->count; i++) {
        if (timing[i].sample_count == 0) {
            out[i] = timing[i];
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/duel_rounds.h"

#include "worker/measure.h"

#include <string.h>

/* A third play would only wait for whatever else runs on the machine to end. */
#define PLAYS_MAX 2

static void play(const struct wpk_duel_rounds *rounds, struct wpk_timing *out)
{
    bool is_out[WPK_DUEL_MAX] = {false};

    for (int round = 0; round < rounds->round_count; round++) {
        for (int i = 0; i < rounds->count; i++) {
            int index = (round + i) % rounds->count;
            uint64_t ns = rounds->take_turn(rounds->user, index);
            struct wpk_timing *timing = &out[index];
            is_out[index] = is_out[index] || ns == 0;
            if (!is_out[index]) {
                timing->sample_ns[timing->sample_count++] = ns;
            }
        }
    }
    for (int i = 0; i < rounds->count; i++) {
        if (is_out[i]) {
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Random search draws without replacement. Every other strategy is compared with it. */
#include "search/seen.h"
#include "search/strategies.h"

#include <stdlib.h>

#define VERSION "random-4"

struct wpk_strategy {
    const struct wpk_space *space;
    struct wpk_rng rng;
    struct wpk_seen seen;
};

static wpk_err random_make(const struct wpk_space *space, uint64_t seed, struct wpk_strategy **out)
{
    struct wpk_strategy *strategy = calloc(1, sizeof *strategy);
    if (strategy == NULL) {
        return WPK_ENOMEM;
    }
    strategy->space = space;
    wpk_rng_seed(&strategy->rng, seed);
    *out = strategy;
    return WPK_OK;
}

static wpk_err random_ask(struct wpk_strategy *strategy, int count, struct wpk_candidate *out,
                          int *filled)
{
    *filled = 0;
    while (*filled < count) {
        struct wpk_candidate *candidate = &out[*filled];
        const struct wpk_strategy before = *strategy;
        wpk_err err = wpk_seen_draw(&strategy->seen, strategy->space, &strategy->rng, candidate);
        if (err == WPK_OK) {
            err = wpk_seen_put(&strategy->seen, strategy->space, candidate);
        }
        /* the next ask says that the space is exhausted where this one has others */
        if (err == WPK_ENOMEM || (err == WPK_EEXHAUSTED && *filled > 0)) {
            *strategy = before;
        }
        if (err != WPK_OK) {
            return *filled > 0 ? WPK_OK : err;
        }
        (*filled)++;
    }
    return WPK_OK;
}

static void random_tell(struct wpk_strategy *strategy, const struct wpk_candidate *candidate,
                        const struct wpk_tell *tell)
{
    (void)tell;
    /* One that was not asked for came from history. Forgetting it for want of memory costs a
     * trial, no more. */
    wpk_err err = wpk_seen_put(&strategy->seen, strategy->space, candidate);
    (void)err;
}

static void random_free(struct wpk_strategy *strategy)
{
    if (strategy != NULL) {
        wpk_seen_fini(&strategy->seen);
        free(strategy);
    }
}

static wpk_err random_save(const struct wpk_strategy *strategy, struct wpk_buf *out)
{
    wpk_snapshot_begin(out, VERSION, strategy->space);
    wpk_snapshot_put_rng(out, &strategy->rng);
    return wpk_seen_save(&strategy->seen, out);
}

static wpk_err random_load(const struct wpk_space *space, const char *text,
                           struct wpk_strategy **out, struct wpk_diag *diag)
{
    struct wpk_snapshot_reader reader;
    struct wpk_strategy *strategy = NULL;
    wpk_err err = wpk_snapshot_open(&reader, text, VERSION, space, diag);
    if (err == WPK_OK) {
        err = random_make(space, 0, &strategy);
    }
    if (err != WPK_OK) {
        return err;
    }
    wpk_snapshot_rng(&reader, &strategy->rng);
    err = wpk_seen_load(&strategy->seen, &reader);
    if (err == WPK_OK) {
        err = wpk_snapshot_close(&reader, diag);
    }
    if (err != WPK_OK) {
        random_free(strategy);
        return err;
    }
    *out = strategy;
    return WPK_OK;
}

const struct wpk_strategy_class wpk_strategy_random = {
    .name = "random",
    .version = VERSION,
    .make = random_make,
    .ask = random_ask,
    .tell = random_tell,
    .save = random_save,
    .load = random_load,
    .free = random_free,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/search_actor.h"

#include "op/notation.h"
#include "op/program.h"
#include "search/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a time is divided by where the worker has no reference kernel. */
#define REFERENCE_NS 1e6

struct wpk_search_actor {
    struct wpk_space space;
    const struct wpk_strategy_class *kind;
    struct wpk_strategy *strategy;
    uint64_t seed;
};

static wpk_err derive(struct wpk_search_actor *actor, const struct wpk_search *search,
                      struct wpk_diag *diag)
{
    struct wpk_program program = {0};
    wpk_err err = wpk_program_parse(search->op, &program, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_space_options options = {
        .layouts = strcmp(search->key.layouts, "any") == 0 ? "any" : "fixed",
        .threads = search->key.threads,
        .device = search->device,
    };
    err = wpk_space_derive(&program, &options, &actor->space, diag);
    wpk_program_fini(&program);
    return err;
}

/* `parameters`: "gene=value;gene=value" */
static wpk_err pin(struct wpk_search_actor *actor, const char *parameters, struct wpk_diag *diag)
{
    char *copy = strdup(parameters);
    if (copy == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = WPK_OK;
    char *rest = copy;
    for (char *item; err == WPK_OK && (item = strsep(&rest, ";")) != NULL;) {
        char *value = strchr(item, '=');
        if (value != NULL) {
            *value++ = '\0';
            err = wpk_space_pin(&actor->space, item, value, diag);
        }
    }
    free(copy);
    return err;
}

/* Ask and tell again what is recorded; false when the strategy asks for something else. */
static bool replay(struct wpk_search_actor *actor, const struct wpk_piece *asks, uint32_t count,
                   uint32_t told_count)
{
    uint32_t told = 0;
    for (uint32_t asked = 0; asked < count;) {
        char *text = NULL;
        uint32_t filled = 0;
        wpk_err err = wpk_search_actor_ask(actor, 1, &text, &filled);
        bool same = filled == 1 && strcmp(text, asks[asked].text) == 0;
        free(text);
        if (err != WPK_OK || (filled == 1 && !same)) {
            return false;
        }
        if (filled == 1) {
            asked++;
        } else if (told < asked && told < told_count) {
            wpk_search_actor_tell(actor, asks[told].text, &asks[told].trial);
            told++;
        } else {
            return false;
        }
    }
    for (; told < told_count; told++) {
        wpk_search_actor_tell(actor, asks[told].text, &asks[told].trial);
    }
    return true;
}

static wpk_err start(struct wpk_search_actor *actor, const struct wpk_piece *asks, uint32_t count)
{
    uint32_t told_count = 0;
    while (told_count < count && asks[told_count].standing == WPK_STANDING_ENDED) {
        told_count++;
    }
    wpk_err err = actor->kind->make(&actor->space, actor->seed, &actor->strategy);
    if (err != WPK_OK || replay(actor, asks, count, told_count)) {
        return err;
    }
    actor->kind->free(actor->strategy);
    actor->strategy = NULL;
    err = actor->kind->make(&actor->space, actor->seed, &actor->strategy);
    for (uint32_t i = 0; err == WPK_OK && i < told_count; i++) {
        wpk_search_actor_tell(actor, asks[i].text, &asks[i].trial);
    }
    return err;
}

wpk_err wpk_search_actor_new(const struct wpk_search *search, const struct wpk_piece *asks,
                             uint32_t count, struct wpk_search_actor **out, struct wpk_diag *diag)
{
    struct wpk_search_actor *actor = calloc(1, sizeof *actor);
    if (actor == NULL) {
        return WPK_ENOMEM;
    }
    actor->seed = search->key.seed;
    actor->kind = wpk_strategy_find(search->key.strategy);
    wpk_err err = WPK_OK;
    if (actor->kind == NULL) {
        wpk_diag_set(diag, "no strategy \"%s\"; there are: %s", search->key.strategy,
                     wpk_strategy_names());
        err = WPK_ENOENT;
    }
    if (err == WPK_OK) {
        err = derive(actor, search, diag);
    }
    if (err == WPK_OK) {
        err = pin(actor, search->key.parameters, diag);
    }
    if (err == WPK_OK) {
        err = start(actor, asks, count);
    }
    if (err != WPK_OK) {
        wpk_diag_set(diag, "%s", wpk_err_text(err));
        wpk_search_actor_free(actor);
        return err;
    }
    *out = actor;
    return WPK_OK;
}

void wpk_search_actor_free(struct wpk_search_actor *actor)
{
    if (actor == NULL) {
        return;
    }
    if (actor->strategy != NULL) {
        actor->kind->free(actor->strategy);
    }
    wpk_space_fini(&actor->space);
    free(actor);
}

double wpk_search_actor_size_log2(const struct wpk_search_actor *actor)
{
    return actor->space.size_log2;
}

wpk_err wpk_search_actor_ask(struct wpk_search_actor *actor, uint32_t count, char **texts,
                             uint32_t *filled)
{
    struct wpk_candidate candidates[WPK_WORK_MAX];
    WPK_ASSERT(count <= WPK_WORK_MAX);
    int given = 0;
    *filled = 0;
    wpk_err err = actor->kind->ask(actor->strategy, (int)count, candidates, &given);
    for (int i = 0; err == WPK_OK && i < given; i++) {
        char text[WPK_CANDIDATE_TEXT_MAX];
        err = wpk_candidate_encode(&actor->space, &candidates[i], text, sizeof text);
        texts[*filled] = err == WPK_OK ? strdup(text) : NULL;
        if (err == WPK_OK && texts[*filled] == NULL) {
            err = WPK_ENOMEM;
        }
        *filled += err == WPK_OK;
    }
    return err;
}

void wpk_search_actor_tell(struct wpk_search_actor *actor, const char *text,
                           const struct wpk_trial_summary *trial)
{
    struct wpk_candidate candidate;
    if (wpk_candidate_decode(&actor->space, text, &candidate, NULL) != WPK_OK) {
        return; /* of an older space: there is nothing to learn from it */
    }
    double reference = trial->reference_ns > 0 ? (double)trial->reference_ns : REFERENCE_NS;
    struct wpk_tell tell = {.ok = trial->outcome == WPK_OUTCOME_OK, .censored = trial->censored};
    if (tell.ok) {
        tell.relative = (double)trial->median_ns / reference;
    }
    actor->kind->tell(actor->strategy, &candidate, &tell);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/effects/search_actor.h"

#include "ir/notation/notation.h"
#include "ir/program.h"
#include "search/model/prior.h"
#include "search/prune.h"
#include "search/strategy/strategy.h"
#include "search/transfer.h"

#include <stdlib.h>
#include <string.h>

struct wpk_search_actor {
    struct wpk_space space;
    const struct wpk_strategy_class *kind;
    struct wpk_strategy *strategy;
    struct wpk_strategy_setup setup; /* of what follows */
    char options[WPK_JOB_OPTIONS_MAX];
    struct wpk_prior *prior;         /* owned; NULL: none */
    struct wpk_hint *hints;          /* owned; [setup.hint_count] */
    struct wpk_candidate *relatives; /* owned; [setup.relative_count] */
    struct wpk_accuracy accuracy;    /* what is outside counts as raced out */
    uint32_t asked_count;
    uint32_t told_count;
    uint32_t saved_count; /* told when it was saved last */
    uint32_t ok_count;    /* of those told */
    uint32_t failed_count;
    uint32_t known_count;
    struct wpk_best best[WPK_BEST_MAX]; /* best first; without their texts */
    uint32_t best_count;
};

static wpk_err derive(struct wpk_search_actor *actor, const struct wpk_search_spec *search,
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
        .back_ends = wpk_back_ends_read(search->key.providers),
    };
    err = wpk_accuracy_parse(search->key.accuracy, &actor->accuracy, diag);
    err = err == WPK_OK ? wpk_space_derive(&program, &options, &actor->space, diag) : err;
    wpk_program_fini(&program);
    return err;
}

/* `pins`: "gene=value;gene=value" */
static wpk_err pin(struct wpk_search_actor *actor, const char *pins, struct wpk_diag *diag)
{
    char *copy = strdup(pins);
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

/*   shape  like: a candidate whose packing of constants is kept, if one here can have it; "", NULL:
 *          none */
static wpk_err make_space(struct wpk_search_actor *actor, const struct wpk_search_spec *search,
                          const char *like, struct wpk_diag *diag)
{
    wpk_err err = derive(actor, search, diag);
    err = err == WPK_OK ? pin(actor, search->key.pins, diag) : err;
    if (err != WPK_OK || like == NULL || like[0] == '\0' ||
        wpk_space_pin_packing(&actor->space, like, NULL) == WPK_OK) {
        return err;
    }
    wpk_space_fini(&actor->space);
    return make_space(actor, search, NULL, diag);
}

/* ---- what it was told */

static void keep_best(struct wpk_search_actor *actor, uint32_t number,
                      const struct wpk_trial_summary *trial)
{
    struct wpk_best *best = wpk_best_put(actor->best, &actor->best_count, actor->accuracy, trial);
    if (best != NULL) {
        best->number = number;
    }
}

static void count_told(struct wpk_search_actor *actor, uint32_t number,
                       const struct wpk_work_item *item)
{
    bool ok = item->trial.outcome == WPK_OUTCOME_OK;
    actor->told_count = number + 1;
    actor->ok_count += ok;
    actor->failed_count += !ok;
    actor->known_count += item->known;
    keep_best(actor, number, &item->trial);
}

/* Set the counts and the best trials from the tells that the snapshot covers. */
static void count_from_log(struct wpk_search_actor *actor, const struct wpk_history_log *log)
{
    actor->asked_count = log->first + log->count;
    actor->told_count = log->first;
    actor->saved_count = log->first;
    actor->ok_count = log->ok_count;
    actor->failed_count = log->failed_count;
    actor->known_count = log->known_count;
    actor->best_count = 0;
    for (uint32_t i = 0; i < log->best_count; i++) {
        keep_best(actor, log->best[i].number, &log->best[i].trial);
    }
}

/* Asks from before the strategy was made anew are history to it. */
static void tell_strategy(struct wpk_search_actor *actor, uint32_t number,
                          const struct wpk_work_item *item)
{
    const struct wpk_trial_summary *trial = &item->trial;
    struct wpk_candidate candidate;
    /* Outside the class its time is as good as none: nothing is to be bred from it. */
    struct wpk_tell tell = {.ok = trial->outcome == WPK_OUTCOME_OK &&
                                  wpk_accuracy_admits(actor->accuracy, trial->times_direct),
                            .censored = wpk_trial_raced_out(actor->accuracy, trial),
                            .relative = trial->anchor_ratio};
    if (number >= actor->asked_count - wpk_strategy_asked(actor->strategy)) {
        wpk_strategy_tell(actor->strategy, &tell);
    } else if (wpk_candidate_decode(&actor->space, item->text, &candidate, NULL) == WPK_OK) {
        wpk_strategy_learn(actor->strategy, &candidate, &tell);
    }
}

void wpk_search_actor_tell(struct wpk_search_actor *actor, uint32_t number,
                           const struct wpk_work_item *item)
{
    WPK_ASSERT(number == actor->told_count);
    tell_strategy(actor, number, item);
    count_told(actor, number, item);
}

/* ---- making it anew */

/* Tell asks of the log up to number `end`. */
static void tell_log(struct wpk_search_actor *actor, const struct wpk_history_log *log,
                     uint32_t first, uint32_t end)
{
    for (uint32_t n = first; n < end; n++) {
        tell_strategy(actor, n, &log->asks[n - log->first]);
    }
}

/* Ask again what was asked after number `asked`, and tell meanwhile what the strategy wants to be
 * told first.
 *   errors  WPK_EMISMATCH it asks for something else than what is recorded; WPK_ENOMEM */
static wpk_err replay(struct wpk_search_actor *actor, const struct wpk_history_log *log,
                      uint32_t asked, uint32_t told_count)
{
    uint32_t told = log->first;
    while (asked < log->first + log->count) {
        struct wpk_work_item item = {0};
        uint32_t filled = 0;
        wpk_err err = wpk_search_actor_ask(actor, 1, &item, &filled);
        bool same = filled == 1 && asked >= log->first &&
                    strcmp(item.text, log->asks[asked - log->first].text) == 0;
        free(item.text);
        if (err != WPK_OK || (filled == 1 && !same)) {
            return err == WPK_ENOMEM ? err : WPK_EMISMATCH;
        }
        if (filled == 1) {
            asked++;
        } else if (told < asked && told < told_count) {
            tell_log(actor, log, told, told + 1);
            told++;
        } else {
            return WPK_EMISMATCH;
        }
    }
    tell_log(actor, log, told, told_count);
    return WPK_OK;
}

static void drop_strategy(struct wpk_search_actor *actor)
{
    wpk_strategy_free(actor->strategy);
    actor->strategy = NULL;
}

/* A snapshot is how often the strategy had been asked, a blank, and the strategy's text. */
static wpk_err load(struct wpk_search_actor *actor, const struct wpk_history_log *log,
                    uint32_t told_count)
{
    char *text = NULL;
    uint32_t asked = (uint32_t)strtoul(wpk_buf_text(&log->snapshot), &text, 10);
    if (strcmp(log->version, actor->kind->version) != 0 || *text != ' ' ||
        asked > log->first + log->count || asked < log->first) {
        return WPK_EMISMATCH;
    }
    wpk_err err = wpk_strategy_load(actor->kind, &actor->space, &actor->setup, text + 1,
                                    &actor->strategy, NULL);
    actor->asked_count = asked;
    err = err == WPK_OK ? replay(actor, log, asked, told_count) : err;
    return err == WPK_OK || err == WPK_ENOMEM ? err : WPK_EMISMATCH;
}

/* A strategy that was never asked, after so many asks of the search. */
static wpk_err make_strategy(struct wpk_search_actor *actor, uint32_t asked)
{
    actor->asked_count = asked;
    return wpk_strategy_make(actor->kind, &actor->space, &actor->setup, &actor->strategy);
}

static wpk_err start(struct wpk_search_actor *actor, const struct wpk_history_log *log,
                     uint32_t told_count)
{
    WPK_ASSERT(told_count <= log->first + log->count && told_count >= log->first);
    wpk_err err = WPK_OK;
    if (log->snapshot.size > 0) {
        err = load(actor, log, told_count);
    } else {
        err = make_strategy(actor, 0);
        err = err == WPK_OK ? replay(actor, log, 0, told_count) : err;
        if (err == WPK_EMISMATCH) {
            drop_strategy(actor);
            err = make_strategy(actor, log->first + log->count);
            if (err == WPK_OK) {
                tell_log(actor, log, 0, told_count);
            }
        }
    }
    if (err == WPK_OK) {
        count_from_log(actor, log);
        for (uint32_t n = log->first; n < told_count; n++) {
            count_told(actor, n, &log->asks[n - log->first]);
        }
    }
    return err;
}

/* A search never goes on with another prior, or without one. */
static wpk_err read_prior(struct wpk_search_actor *actor, const struct wpk_search_spec *search,
                          const struct wpk_history_log *log, struct wpk_diag *diag)
{
    if (log->prior.size == 0) {
        return wpk_fail(diag, WPK_ENOENT,
                        "the prior %s is gone; submit the job again with its file",
                        search->key.prior);
    }
    wpk_err err = wpk_prior_decode(wpk_buf_text(&log->prior), &actor->prior, diag);
    actor->setup.prior = actor->prior;
    return err == WPK_EMISMATCH ? WPK_EUNSUPPORTED : err; /* no other log helps */
}

/* Schedules of other borders and shapes, each as near to it as it can be here. */
static wpk_err read_relatives(struct wpk_search_actor *actor, const struct wpk_history_log *log)
{
    wpk_err err = WPK_OK;
    if (log->relative_count == 0) {
        return WPK_OK;
    }
    actor->relatives = calloc(log->relative_count, sizeof(*actor->relatives));
    actor->setup.relatives = actor->relatives;
    err = actor->relatives == NULL ? WPK_ENOMEM : WPK_OK;
    for (uint32_t i = 0; err != WPK_ENOMEM && i < log->relative_count; i++) {
        err = wpk_space_adapt(&actor->space, log->relatives[i],
                              &actor->relatives[actor->setup.relative_count], NULL);
        actor->setup.relative_count += err == WPK_OK;
        actor->setup.twin_count += err == WPK_OK && i < log->twin_count;
    }
    return err == WPK_ENOMEM ? err : WPK_OK;
}

/* Hints of other devices and pins may not be in this space. */
static wpk_err read_hints(struct wpk_search_actor *actor, const struct wpk_history_log *log)
{
    if (log->hint_count == 0) {
        return WPK_OK;
    }
    actor->hints = calloc(log->hint_count, sizeof(*actor->hints));
    actor->setup.hints = actor->hints;
    for (uint32_t i = 0; actor->hints != NULL && i < log->hint_count; i++) {
        struct wpk_hint *hint = &actor->hints[actor->setup.hint_count];
        if (wpk_space_fits(&actor->space, log->hints[i].candidate, &hint->candidate, NULL) ==
            WPK_OK) {
            hint->time_ns = log->hints[i].time_ns;
            actor->setup.hint_count++;
        }
    }
    return actor->hints == NULL ? WPK_ENOMEM : WPK_OK;
}

wpk_err wpk_search_actor_new(const struct wpk_search_spec *search,
                             const struct wpk_history_log *log, uint32_t told_count,
                             struct wpk_search_actor **out, struct wpk_diag *diag)
{
    struct wpk_search_actor *actor = calloc(1, sizeof *actor);
    if (actor == NULL) {
        return WPK_ENOMEM;
    }
    actor->setup.seed = search->key.seed;
    actor->setup.options = actor->options;
    memcpy(actor->options, search->key.options, sizeof actor->options);
    actor->kind = wpk_strategy_find(search->key.strategy);
    wpk_err err = WPK_OK;
    if (actor->kind == NULL) {
        err = wpk_fail(diag, WPK_ENOENT, "no strategy \"%s\"; there are: %s", search->key.strategy,
                       wpk_strategy_names());
    }
    err = err == WPK_OK ? make_space(actor, search, wpk_buf_text(&log->packing), diag) : err;
    if (err == WPK_OK && search->key.prior[0] != '\0') {
        err = read_prior(actor, search, log, diag);
    }
    if (err == WPK_OK) {
        wpk_space_prune(&actor->space, actor->accuracy);
        err = read_hints(actor, log);
    }
    err = err == WPK_OK ? read_relatives(actor, log) : err;
    err = err == WPK_OK ? start(actor, log, told_count) : err;
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
    drop_strategy(actor);
    free(actor->prior);
    free(actor->hints);
    free(actor->relatives);
    wpk_space_fini(&actor->space);
    free(actor);
}

double wpk_search_actor_size_log2(const struct wpk_search_actor *actor)
{
    return actor->space.size_log2;
}

wpk_err wpk_search_actor_ask(struct wpk_search_actor *actor, uint32_t count,
                             struct wpk_work_item *items, uint32_t *filled)
{
    struct wpk_candidate candidates[WPK_WORK_MAX];
    WPK_ASSERT(count <= WPK_WORK_MAX);
    int given = 0;
    uint32_t made = 0;
    *filled = 0;
    /* Memory first: a strategy takes no candidate back. */
    while (made < count && (items[made].text = malloc(WPK_CANDIDATE_TEXT_MAX)) != NULL) {
        made++;
    }
    wpk_err err = made < count ? WPK_ENOMEM
                               : wpk_strategy_ask(actor->strategy, (int)count, candidates, &given);
    uint64_t first = wpk_strategy_asked(actor->strategy) - (uint64_t)given;
    for (int i = 0; err == WPK_OK && i < given; i++) {
        char *text = items[i].text;
        err = wpk_candidate_encode(&actor->space, &candidates[i], text, WPK_CANDIDATE_TEXT_MAX);
        if (err == WPK_OK) {
            char *trimmed = realloc(text, strlen(text) + 1);
            items[i].text = trimmed != NULL ? trimmed : text;
            items[i].source = wpk_strategy_source(actor->strategy, first + (uint64_t)i);
            (*filled)++;
        }
    }
    for (uint32_t i = *filled; i < made; i++) {
        free(items[i].text);
        items[i].text = NULL;
    }
    actor->asked_count += *filled;
    return err;
}

bool wpk_search_actor_save(struct wpk_search_actor *actor, uint32_t tells_min,
                           struct wpk_history_snapshot *out, struct wpk_buf *text)
{
    uint32_t tells = actor->told_count - actor->saved_count;
    if (tells < tells_min || (tells_min > 1 && tells < actor->told_count / 8)) {
        return false;
    }
    wpk_buf_printf(text, "%u ", actor->asked_count);
    if (wpk_strategy_save(actor->strategy, text) != WPK_OK || wpk_buf_status(text) != WPK_OK) {
        wpk_buf_fini(text);
        return false; /* the next one may fit; until then the one before serves */
    }
    actor->saved_count = actor->told_count;
    *out = (struct wpk_history_snapshot){.text = wpk_buf_text(text),
                                         .version = actor->kind->version,
                                         .told_count = actor->told_count,
                                         .ok_count = actor->ok_count,
                                         .failed_count = actor->failed_count,
                                         .known_count = actor->known_count,
                                         .best_count = actor->best_count};
    for (uint32_t i = 0; i < actor->best_count; i++) {
        out->best[i] = actor->best[i].number;
    }
    return true;
}

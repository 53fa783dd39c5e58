/* SPDX-License-Identifier: Apache-2.0 */
/* Search actors: the strategy of a search with its space, asked and told in the order of the asks.
 * An actor touches nothing outside, so that it may run on any thread.
 *
 * An actor is made from what is recorded: from a snapshot, and what was asked and told after it; or
 * by asking and telling everything again, because asks are a function of the seed and the results.
 * If that gives other candidates than the recorded ones (another version of wpkd), the actor starts
 * warm: a fresh strategy is told all results. */
#ifndef WPK_COORDINATOR_EFFECTS_SEARCH_ACTOR_H
#define WPK_COORDINATOR_EFFECTS_SEARCH_ACTOR_H

#include "coordinator/store/history.h"

struct wpk_search_actor;

/* The inputs from which the space and the strategy are made. */
struct wpk_search_spec {
    uint64_t search_id;
    struct wpk_search_key key;
    char *op; /* whole form */
    struct wpk_device device;
};

/* Derive the space, pin its genes, and bring the strategy to the state of the search: all asks of
 * the log are asked, and the search's first `told_count` asks, which have ended, are told.
 *
 *   owns    caller frees; `spec` and `log` are not kept
 *   errors  WPK_EMISMATCH the log's snapshot does not fit: call again with the whole log
 *           WPK_ENOENT no such strategy, gene or value; WPK_EUNSUPPORTED, WPK_EINVAL no space;
 *           WPK_ENOMEM; with the reason in `diag`
 */
wpk_err wpk_search_actor_new(const struct wpk_search_spec *spec, const struct wpk_history_log *log,
                             uint32_t told_count, struct wpk_search_actor **out,
                             struct wpk_diag *diag);
void wpk_search_actor_free(struct wpk_search_actor *actor);

double wpk_search_actor_size_log2(const struct wpk_search_actor *actor);

/* Ask for up to `count` new candidates, each the text and the source of an item.
 *
 *   shape   items [count]; the first *filled are set; 0 of them: the strategy is to be told first
 *   owns    the caller frees the texts
 *   errors  WPK_EEXHAUSTED; WPK_ENOMEM the actor is as before
 */
wpk_err wpk_search_actor_ask(struct wpk_search_actor *actor, uint32_t count,
                             struct wpk_work_item *items, uint32_t *filled);
/* Tell the result of the ask with this number, which follows the last one told. */
void wpk_search_actor_tell(struct wpk_search_actor *actor, uint32_t number,
                           const struct wpk_work_item *item);

/* Append the state of the actor to `text`, if it was told `tells_min` results since the last time
 * and, unless that is 1, an eighth of all: a state grows with its search. False: not now. `out`
 * borrows from `text` and the actor. */
WPK_MUST_CHECK bool wpk_search_actor_save(struct wpk_search_actor *actor, uint32_t tells_min,
                                          struct wpk_history_snapshot *out, struct wpk_buf *text);

#endif

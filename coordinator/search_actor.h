/* SPDX-License-Identifier: Apache-2.0 */
/* A search's strategy with its space: asked and told in the order of the asks, by whoever performs
 * the coordinator's effects. It touches nothing outside, so that it may run on a thread of its own.
 *
 * It is made anew from what is recorded, by asking and telling again: asks are a function of the
 * seed and the results. Where that gives other candidates than the recorded ones (a newer wpkd), it
 * starts warm instead: a fresh strategy that is told everything known. */
#ifndef WPK_COORDINATOR_SEARCH_ACTOR_H
#define WPK_COORDINATOR_SEARCH_ACTOR_H

#include "coordinator/state.h"

struct wpk_search_actor;

/* Derive the space, pin its genes, and bring the strategy to where the search is: `asks` asked,
 * and those told that have ended with all before them.
 *
 *   owns    caller frees; `search` and `asks` are not kept
 *   errors  WPK_ENOENT no such strategy, gene or value; WPK_EUNSUPPORTED, WPK_EINVAL no space;
 *           WPK_ENOMEM; with the reason in `diag`
 */
WPK_MUST_CHECK wpk_err wpk_search_actor_new(const struct wpk_search *search,
                                            const struct wpk_piece *asks, uint32_t count,
                                            struct wpk_search_actor **out, struct wpk_diag *diag);
void wpk_search_actor_free(struct wpk_search_actor *actor);

double wpk_search_actor_size_log2(const struct wpk_search_actor *actor);

/* Up to `count` new candidates as texts, which the caller frees.
 *
 *   shape   texts [count]; *filled of them are set: 0 with WPK_OK: tell first
 *   errors  WPK_EEXHAUSTED, WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_search_actor_ask(struct wpk_search_actor *actor, uint32_t count,
                                            char **texts, uint32_t *filled);
void wpk_search_actor_tell(struct wpk_search_actor *actor, const char *text,
                           const struct wpk_trial_summary *trial);

#endif

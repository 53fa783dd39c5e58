/* SPDX-License-Identifier: Apache-2.0 */
/* A search's strategy with its space: asked and told in the order of the asks. It touches nothing
 * outside, so that it may run on any thread.
 *
 * It is made anew from what is recorded. From a snapshot, and what was asked and told after it;
 * or by asking and telling everything again: asks are a function of the seed and the results.
 * Where that gives other candidates than the recorded ones (a newer wpkd), it starts warm
 * instead: a fresh strategy that is told everything known. */
#ifndef WPK_COORDINATOR_EFFECTS_SEARCH_ACTOR_H
#define WPK_COORDINATOR_EFFECTS_SEARCH_ACTOR_H

#include "coordinator/store/history.h"

struct wpk_search_actor;

/* What the space and the strategy are made of. */
struct wpk_search_spec {
    uint64_t search_id;
    struct wpk_search_key key;
    char *op; /* whole form */
    struct wpk_device device;
};

/* Derive the space, pin its genes, and bring the strategy to where the search is: all of the log
 * asked, and the first `told_count` of the search's asks told, which have ended.
 *
 *   owns    caller frees; `spec` and `log` are not kept
 *   errors  WPK_EMISMATCH the log's snapshot does not fit: give it the whole log
 *           WPK_ENOENT no such strategy, gene or value; WPK_EUNSUPPORTED, WPK_EINVAL no space;
 *           WPK_ENOMEM; with the reason in `diag`
 */
WPK_MUST_CHECK wpk_err wpk_search_actor_new(const struct wpk_search_spec *spec,
                                            const struct wpk_history_log *log, uint32_t told_count,
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
/* What became of the ask with this number, the one after the last that was told. */
void wpk_search_actor_tell(struct wpk_search_actor *actor, uint32_t number,
                           const struct wpk_work_item *item);

/* Append its state to `text`, if it was told as many as `tells_min` since the last time, and an
 * eighth of everything: a state is as long as the search. False: not now. `out` borrows from
 * both. */
WPK_MUST_CHECK bool wpk_search_actor_save(struct wpk_search_actor *actor, uint32_t tells_min,
                                          struct wpk_history_snapshot *out, struct wpk_buf *text);

#endif

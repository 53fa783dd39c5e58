/* SPDX-License-Identifier: Apache-2.0 */
/* The strategies of the live searches, each an actor: calls on one search are done in their order,
 * calls on several at once, off the loop.
 *
 *      loop: ask, tell, close ──▶ the search's calls ──▶ a thread ──▶ answers ──▶ loop: take
 *
  * A strategy is made at the first ask, from what the store holds of its search: its last
  * snapshot, and the asks after it. From then on a snapshot is an answer now and then, unasked. A
  * search that is never asked, because history answers it, costs nothing. */
#ifndef WPK_COORDINATOR_EFFECTS_SEARCH_POOL_H
#define WPK_COORDINATOR_EFFECTS_SEARCH_POOL_H

#include "coordinator/store/history.h"

#define WPK_SNAPSHOT_TELLS 256 /* at least so many between two; or an eighth of all */

struct wpk_search_pool;

struct wpk_search_pool_options {
    int threads; /* 0: calls are done at once, by the caller */
    const char *data_dir;
    const struct wpk_clock *clock;
    struct wpk_store *store; /* without threads: to read from; else each opens a reader */
    void (*wake)(void *user); /* from the threads: there is an answer */
    void *user;
};

struct wpk_search_answer {
    uint64_t handle;
    uint64_t search_id;
    /* To an ask; the candidates are recorded nowhere yet: items have their texts alone. Owned by
     * the taker, as is the snapshot. NULL: this is one. */
    struct wpk_asked *asked;
    uint64_t problem_id;
    uint32_t ask_first; /* number of the first item */
    char provider[WPK_PROVIDER_NAME_MAX];
    struct wpk_history_snapshot snapshot; /* of asks that were answered before */
    struct wpk_buf snapshot_text;
};

/*   owns    caller frees
 *   errors  WPK_ENOMEM, WPK_ESYSTEM; what opening a reader says
 */
WPK_MUST_CHECK wpk_err wpk_search_pool_new(const struct wpk_search_pool_options *options,
                                           struct wpk_search_pool **out, struct wpk_diag *diag);
void wpk_search_pool_free(struct wpk_search_pool *pool);

/* `search` is not kept. */
void wpk_search_pool_ask(struct wpk_search_pool *pool, const struct wpk_search *search,
                         uint32_t count);
void wpk_search_pool_tell(struct wpk_search_pool *pool, const struct wpk_search *search,
                          uint32_t number, const struct wpk_work_item *item);
/* Nobody needs it any more; a last snapshot may follow. */
void wpk_search_pool_close(struct wpk_search_pool *pool, uint64_t handle);

/* False when there is no answer. */
WPK_MUST_CHECK bool wpk_search_pool_take(struct wpk_search_pool *pool,
                                         struct wpk_search_answer *out);
void wpk_search_answer_fini(struct wpk_search_answer *answer);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The search pool: the strategies of the live searches, each an actor. Calls on one search are done
 * in their order, calls on different searches at once, on threads of the pool.
 *
 *      loop: ask, tell, close ──▶ the search's calls ──▶ a thread ──▶ answers ──▶ loop: take
 *
 * A strategy is made at its first ask, from what the store has of its search: its last snapshot,
 * and the asks after it. From then on, some answers are snapshots, which were not asked for. A
 * search that is never asked, because the history answers it, costs nothing. */
#ifndef WPK_COORDINATOR_EFFECTS_SEARCH_POOL_H
#define WPK_COORDINATOR_EFFECTS_SEARCH_POOL_H

#include "coordinator/store/history.h"

#define WPK_SNAPSHOT_TELLS 256 /* tells between two snapshots, and at least an eighth of all */

struct wpk_search_pool;

struct wpk_search_pool_options {
    int threads; /* 0: calls are done at once, by the caller */
    const char *data_dir;
    const struct wpk_clock *clock;
    struct wpk_store *store;  /* to read from without threads; else each opens a reader */
    void (*wake)(void *user); /* called on the threads: there is an answer */
    void *user;
};

struct wpk_search_answer {
    uint64_t handle;
    uint64_t search_id;
    /* The answer to an ask, owned by the taker. The items have only their texts: they are not
     * recorded yet. NULL: the answer is a snapshot. */
    struct wpk_asked *asked;
    uint64_t problem_id;
    uint32_t ask_first;                   /* number of the first item */
    char providers[WPK_KEY_TEXT_MAX];     /* of the search's key */
    struct wpk_history_snapshot snapshot; /* of asks that were answered before */
    struct wpk_buf snapshot_text;         /* owned by the taker; the snapshot borrows from it */
};

/*   owns    caller frees
 *   errors  WPK_ESYSTEM; what opening a reader says
 */
wpk_err wpk_search_pool_new(const struct wpk_search_pool_options *options,
                            struct wpk_search_pool **out, struct wpk_diag *diag);
void wpk_search_pool_free(struct wpk_search_pool *pool);

/* Ask the search's strategy for `count` candidates. `search` is not kept. */
void wpk_search_pool_ask(struct wpk_search_pool *pool, const struct wpk_search *search,
                         uint32_t count);
/* Tell it the result of ask `number`. `search` and `item` are not kept. */
void wpk_search_pool_tell(struct wpk_search_pool *pool, const struct wpk_search *search,
                          uint32_t number, const struct wpk_work_item *item);
/* Close the search's strategy. A last snapshot may follow. */
void wpk_search_pool_close(struct wpk_search_pool *pool, uint64_t handle);

/* Take an answer; false: there is none. */
WPK_MUST_CHECK bool wpk_search_pool_take(struct wpk_search_pool *pool,
                                         struct wpk_search_answer *out);
void wpk_search_answer_fini(struct wpk_search_answer *answer);

#endif

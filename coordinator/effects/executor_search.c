/* SPDX-License-Identifier: Apache-2.0 */
/* Effects on searches: a search is opened from the store, its strategy is told results and answers
 * with candidates, and its kernel is stored.
 *
 *     to be opened ──▶ its artifacts, if its history names some, are checked ──▶ its row ──▶ opened
 *
 * An artifact whose file is lost or damaged is none. Files are read on the threads of the pool: no
 * transaction waits for them. */
#include "coordinator/effects/executor_parts.h"

#include "common/log.h"
#include "coordinator/store/document.h"
#include "coordinator/store/sign.h"
#include "search/back_end.h"

#include <stdlib.h>
#include <string.h>

/* Copy the parts of a search that its writes read on the writer's thread. */
static void copy_search(struct wpk_executor *p, const struct wpk_search *search,
                        struct wpk_search *out)
{
    *out = *search;
    out->op = wpk_batch_text(p->batch, search->op);
    out->asks = NULL;
    out->best_count = 0;
    memset(out->vendors, 0, sizeof out->vendors);
    out->vendor_count = 0;
    out->plain = (struct wpk_plain){.number = 0};
    out->winner = NULL;
}

/* ---- opening */

/* A search that is to be opened, while its artifacts are checked. */
struct wpk_opening {
    struct wpk_file_task task;
    uint64_t handle;
    uint64_t generation;                           /* of the coordinator whose search it is */
    uint32_t checked;                              /* number of `named` that were checked */
    char named[WPK_HISTORY_NAMED_MAX][WPK_ID_MAX]; /* of the checked ones the lost; "": none */
    struct wpk_opening *next;
};

struct open_write {
    struct wpk_effect_write effect;
    struct wpk_search search;
    char lost[WPK_HISTORY_NAMED_MAX][WPK_ID_MAX]; /* artifacts; "": none */
    struct wpk_opened *opened;                    /* owned until it is an event's */
};

static bool is_lost(const struct open_write *write, const char *sha256)
{
    bool lost = false;
    for (uint32_t i = 0; i < WPK_HISTORY_NAMED_MAX && sha256[0] != '\0'; i++) {
        lost = lost || strcmp(write->lost[i], sha256) == 0;
    }
    return lost;
}

/* A kernel whose artifact is lost counts as none: the search ends once more, and makes it anew. */
static void forget_lost(const struct open_write *write)
{
    struct wpk_opened *opened = write->opened;
    if (is_lost(write, opened->own_artifact)) {
        opened->kernel_id = 0;
    }
    if (is_lost(write, opened->served.artifact_sha256)) {
        opened->served = (struct wpk_served_kernel){.kernel_id = 0};
    }
}

static void perform_open(struct wpk_store_write *write, struct wpk_store *store)
{
    struct open_write *mine = (struct open_write *)write;
    if (mine->opened->err != WPK_OK) {
        return;
    }
    wpk_history_open_search(store, &mine->search, mine->opened);
    forget_lost(mine);
}

static void on_open(struct wpk_store_write *write, wpk_err err,
                    const struct wpk_diag *diag WPK_UNUSED)
{
    struct open_write *mine = (struct open_write *)write;
    if (!wpk_executor_is_current(write, err)) {
        wpk_opened_free(mine->opened);
        return;
    }
    wpk_executor_follow_up(mine->effect.executor, &(struct wpk_event){.kind = WPK_EVENT_OPENED,
                                                                      .handle = mine->search.handle,
                                                                      .opened = mine->opened});
}

static struct open_write *add_open(struct wpk_executor *p, const struct wpk_search *search)
{
    struct open_write *write = wpk_executor_new_write(p, sizeof *write, perform_open, on_open);
    copy_search(p, search, &write->search);
    write->effect.write.search = search->handle;
    write->opened = WPK_DEMAND(calloc(1, sizeof *write->opened));
    return write;
}

/* Have the next of its artifacts checked; false: there is none. */
static bool check_next(struct wpk_executor *p, struct wpk_opening *opening)
{
    while (opening->checked < WPK_HISTORY_NAMED_MAX &&
           opening->named[opening->checked][0] == '\0') {
        opening->checked++;
    }
    if (opening->checked == WPK_HISTORY_NAMED_MAX || opening->generation != p->generation) {
        return false;
    }
    memcpy(opening->task.sha256, opening->named[opening->checked], WPK_ID_MAX);
    wpk_file_pool_put(p->files, &opening->task);
    return true;
}

/* The search may have left the state since, or the state itself have been read again. */
static void end_opening(struct wpk_executor *p, struct wpk_opening *opening)
{
    const struct wpk_search *search = opening->generation == p->generation
                                          ? wpk_search_find_handle(p->coordinator, opening->handle)
                                          : NULL;
    if (search != NULL) {
        memcpy(add_open(p, search)->lost, opening->named, sizeof opening->named);
    }
    free(opening);
}

static void check_waiting(struct wpk_executor *p)
{
    while (p->openings != NULL && p->checking_count < WPK_CHECKING_MAX) {
        struct wpk_opening *opening = p->openings;
        p->openings = opening->next;
        p->openings_last = p->openings != NULL ? p->openings_last : NULL;
        if (check_next(p, opening)) {
            p->checking_count++;
        } else {
            end_opening(p, opening);
        }
    }
}

void wpk_executor_checked(struct wpk_executor *p, struct wpk_file_task *task)
{
    struct wpk_opening *opening = task->owner;
    /* One that only cannot be read now, for want of a descriptor perhaps, is there. */
    if (task->err == WPK_ENOENT || task->err == WPK_ECORRUPT) {
        wpk_log(WPK_LOG_WARN, "artifact_lost", "sha256=%s", task->sha256);
    } else {
        opening->named[opening->checked][0] = '\0';
    }
    opening->checked++;
    if (!check_next(p, opening)) {
        p->checking_count--;
        end_opening(p, opening);
        check_waiting(p);
    }
}

void wpk_executor_drop_openings(struct wpk_executor *p)
{
    while (p->openings != NULL) {
        struct wpk_opening *opening = p->openings;
        p->openings = opening->next;
        free(opening);
    }
    p->openings_last = NULL;
}

/* NULL: it is not broken. */
static const struct wpk_broken *find_broken(const struct wpk_executor *p,
                                            const struct wpk_search *search)
{
    const struct wpk_broken *found = NULL;
    for (uint32_t i = 0; i < p->broken_count && i < WPK_BROKEN_MAX; i++) {
        found = strcmp(p->broken[i].key_hash, search->key_hash) == 0 ? &p->broken[i] : found;
    }
    return found;
}

static void wait_for_check(struct wpk_executor *p, const struct wpk_search *search,
                           char named[WPK_HISTORY_NAMED_MAX][WPK_ID_MAX])
{
    struct wpk_opening *opening = WPK_DEMAND(calloc(1, sizeof *opening));
    opening->task.action = WPK_FILE_CHECK;
    opening->task.owner = opening;
    opening->handle = search->handle;
    opening->generation = p->generation;
    memcpy(opening->named, named, sizeof opening->named);
    *(p->openings != NULL ? &p->openings_last->next : &p->openings) = opening;
    p->openings_last = opening;
    check_waiting(p);
}

void wpk_executor_open_search(struct wpk_executor *p, const struct wpk_effect *effect)
{
    char named[WPK_HISTORY_NAMED_MAX][WPK_ID_MAX];
    const struct wpk_broken *broken = find_broken(p, effect->search);
    if (broken != NULL) {
        struct wpk_opened *opened = add_open(p, effect->search)->opened;
        opened->err = WPK_ECORRUPT;
        memcpy(opened->reason, broken->reason, sizeof opened->reason);
        return;
    }
    wpk_history_name_artifacts(p->reader, effect->search, named);
    /* If nothing can be read, the write that opens the search will say so. */
    bool any = wpk_store_take_status(p->reader, NULL) == WPK_OK &&
               (named[0][0] != '\0' || named[1][0] != '\0');
    if (any) {
        wait_for_check(p, effect->search, named);
    } else {
        (void)add_open(p, effect->search);
    }
}

/* ---- asking and telling */

struct asks_write {
    struct wpk_effect_write effect;
    struct wpk_search_answer answer; /* owns what was asked, until it is an event's */
    uint32_t kept_per_problem;       /* artifacts, as it was when this was made */
};

/* Record the asks of an answer; those whose results history has already need no worker. */
static void perform_put_asks(struct wpk_store_write *write, struct wpk_store *store)
{
    const struct wpk_search_answer *answer = &((const struct asks_write *)write)->answer;
    for (uint32_t i = 0; i < answer->asked->count; i++) {
        struct wpk_work_item *item = &answer->asked->items[i];
        char provider[WPK_BACK_END_MAX];
        wpk_back_end_provider(answer->providers, item->text, provider);
        struct wpk_history_ask ask = {.search_id = answer->search_id,
                                      .problem_id = answer->problem_id,
                                      .number = answer->ask_first + i,
                                      .provider = provider,
                                      .candidate = item->text,
                                      .source = item->source};
        item->known = wpk_history_put_ask(store, &ask, &item->trial);
        item->standing = item->known ? WPK_STANDING_ENDED : WPK_STANDING_OPEN;
    }
}

static void on_asks_put(struct wpk_store_write *write, wpk_err err,
                        const struct wpk_diag *diag WPK_UNUSED)
{
    struct asks_write *mine = (struct asks_write *)write;
    if (wpk_executor_is_current(write, err)) {
        wpk_executor_follow_up(mine->effect.executor,
                               &(struct wpk_event){.kind = WPK_EVENT_ASKED,
                                                   .handle = mine->answer.handle,
                                                   .asked = mine->answer.asked});
        mine->answer.asked = NULL;
    }
    wpk_search_answer_fini(&mine->answer);
}

static void perform_put_snapshot(struct wpk_store_write *write, struct wpk_store *store)
{
    struct asks_write *mine = (struct asks_write *)write;
    struct wpk_search_answer *answer = &mine->answer;
    answer->snapshot.text = wpk_buf_text(&answer->snapshot_text);
    wpk_history_put_snapshot(store, &answer->snapshot, mine->kept_per_problem);
}

static void on_snapshot_put(struct wpk_store_write *write, wpk_err err WPK_UNUSED,
                            const struct wpk_diag *diag WPK_UNUSED)
{
    wpk_search_answer_fini(&((struct asks_write *)write)->answer);
}

bool wpk_executor_take_answers(struct wpk_executor *p)
{
    struct wpk_search_answer answer;
    bool any = false;
    while (wpk_search_pool_take(p->pool, &answer)) {
        struct asks_write *write;
        if (answer.asked != NULL) {
            write = wpk_executor_new_write(p, sizeof *write, perform_put_asks, on_asks_put);
            write->effect.write.search = answer.handle;
        } else {
            write = wpk_executor_new_write(p, sizeof *write, perform_put_snapshot, on_snapshot_put);
            write->effect.write.alone = true; /* a start reads the one before it, and more asks */
            write->kept_per_problem = p->options.artifacts_per_problem;
            p->batch->bytes += answer.snapshot_text.size;
        }
        write->answer = answer;
        any = true;
    }
    return any;
}

void wpk_executor_tell(struct wpk_executor *p, const struct wpk_effect *effect)
{
    /* Tells of a search that is being opened are in the store, where the strategy finds them. */
    if (!p->opening) {
        wpk_search_pool_tell(p->pool, effect->search, effect->ask, effect->told);
    }
}

wpk_err wpk_executor_new_pool(struct wpk_executor *p, struct wpk_diag *diag)
{
    struct wpk_search_pool_options options = {.threads = p->options.threads,
                                              .data_dir = p->options.data_dir,
                                              .clock = p->options.clock,
                                              .store = p->options.store,
                                              .wake = p->options.wake,
                                              .user = p->options.wake_user};
    return wpk_search_pool_new(&options, &p->pool, diag);
}

/* ---- kernels */

struct kernel_write {
    struct wpk_effect_write effect;
    struct wpk_effect put; /* points into this */
    struct wpk_search search;
    struct wpk_final_entry served;
    struct wpk_final_entry own;
    struct wpk_final_entry baseline;
    struct wpk_final_entry kept[WPK_FINAL_VERIFIED_MAX];
    struct wpk_final_entry plain;
    uint64_t kernel_id;
};

static const struct wpk_final_entry *
copy_entry(struct wpk_executor *p, const struct wpk_final_entry *entry, struct wpk_final_entry *out)
{
    if (entry == NULL) {
        return NULL;
    }
    *out = *entry;
    out->candidate = wpk_batch_text(p->batch, entry->candidate);
    out->schedule = entry->schedule != NULL ? wpk_batch_text(p->batch, entry->schedule) : NULL;
    return out;
}

typedef uint64_t (*put_fn)(struct wpk_store *store, const struct wpk_effect *put,
                           const char *document);

/* A row with its document and its manifest; its id, 0: there is none. */
static uint64_t put_row(const struct kernel_write *mine, struct wpk_store *store,
                        const struct wpk_effect *put, put_fn fn)
{
    struct wpk_buf document = {0};
    struct wpk_diag diag = {0};
    wpk_err err = wpk_document_kernel(store, put, &document);
    if (err != WPK_OK) {
        wpk_diag_set(&diag, "a kernel's document: %s", wpk_err_text(err));
        wpk_store_fail(store, err, &diag);
    }
    uint64_t id = fn(store, put, wpk_buf_text(&document));
    if (id != 0) {
        wpk_sign_record(mine->effect.executor->options.sign, store, put, id);
    }
    wpk_buf_fini(&document);
    return id;
}

static void perform_put_kernel(struct wpk_store_write *write, struct wpk_store *store)
{
    struct kernel_write *mine = (struct kernel_write *)write;
    mine->kernel_id = put_row(mine, store, &mine->put, wpk_history_put_kernel);
    for (int i = 0; i < WPK_FINAL_VERIFIED_MAX && mine->put.kept[i] != NULL; i++) {
        struct wpk_effect put = mine->put;
        put.served = mine->put.kept[i];
        put.own = put.served->verified ? put.served : put.own;
        put_row(mine, store, &put, wpk_history_keep_kernel);
    }
    if (mine->put.plain != NULL) {
        struct wpk_effect put = mine->put;
        put.served = mine->put.plain;
        put.own = mine->put.plain;
        put_row(mine, store, &put, wpk_history_keep_kernel);
    }
}

static void perform_put_plain(struct wpk_store_write *write, struct wpk_store *store)
{
    const struct kernel_write *mine = (const struct kernel_write *)write;
    wpk_history_name_plain(store, &mine->put);
    put_row(mine, store, &mine->put, wpk_history_keep_kernel);
}

static void on_kernel_put(struct wpk_store_write *write, wpk_err err,
                          const struct wpk_diag *diag WPK_UNUSED)
{
    const struct kernel_write *mine = (const struct kernel_write *)write;
    if (wpk_executor_is_current(write, err)) {
        wpk_executor_follow_up(mine->effect.executor,
                               &(struct wpk_event){.kind = WPK_EVENT_KERNEL_PUT,
                                                   .handle = mine->search.handle,
                                                   .kernel_id = mine->kernel_id});
    }
}

/* Copy the entries that the effect refers to, as they are now; equal pointers stay equal. */
static void copy_kernel(struct wpk_executor *p, const struct wpk_effect *effect,
                        struct kernel_write *write)
{
    copy_search(p, effect->search, &write->search);
    write->effect.write.search = effect->search->handle;
    write->put = *effect;
    write->put.search = &write->search;
    write->put.served = copy_entry(p, effect->served, &write->served);
    write->put.baseline = copy_entry(p, effect->baseline, &write->baseline);
    write->put.own =
        effect->own == effect->served ? write->put.served : copy_entry(p, effect->own, &write->own);
    for (int i = 0; i < WPK_FINAL_VERIFIED_MAX; i++) {
        write->put.kept[i] = copy_entry(p, effect->kept[i], &write->kept[i]);
    }
    write->put.plain = effect->plain == effect->served
                           ? write->put.served
                           : copy_entry(p, effect->plain, &write->plain);
}

void wpk_executor_put_plain(struct wpk_executor *p, const struct wpk_effect *effect)
{
    struct kernel_write *write = wpk_executor_new_write(p, sizeof *write, perform_put_plain, NULL);
    copy_kernel(p, effect, write);
}

void wpk_executor_put_kernel(struct wpk_executor *p, const struct wpk_effect *effect)
{
    struct kernel_write *write =
        wpk_executor_new_write(p, sizeof *write, perform_put_kernel, on_kernel_put);
    copy_kernel(p, effect, write);
    if (p->options.index != NULL) {
        struct wpk_store_write *index =
            wpk_index_write_new(p->options.index, effect->search->problem_id);
        index->search = effect->search->handle;
        wpk_executor_add_write(p, index);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/store.h"

#include "common/buf.h"
#include "common/fs.h"
#include "common/log.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define BUSY_MS 2000
#define PASSES_MAX 8    /* of the thread, before it leaves the rest to the writer */
#define STEP_PAGES 1000 /* until a log that a reader keeps from beginning anew is tried again */

enum state {
    IDLE,
    ASKED, /* the connection is the thread's */
    DONE,  /* but for the last pages, which are the writer's */
};

struct wpk_checkpoint {
    sqlite3 *db;         /* whose turn it is has it */
    uint32_t pages_next; /* the writer's own: when to ask again */
    pthread_t thread;
    bool running;

    pthread_mutex_t lock; /* guards what follows; held for moments only */
    pthread_cond_t changed;
    enum state state;
    bool stopping;
};

/* Copy what nobody reads out of the log any more. Returns how many pages the log had; 0 if that
 * failed. */
static uint32_t copy(struct wpk_checkpoint *checkpoint)
{
    struct wpk_diag diag = {0};
    int pages = 0;
    int copied = 0;
    int code =
        sqlite3_wal_checkpoint_v2(checkpoint->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
    if (code == SQLITE_OK) {
        return pages > 0 ? (uint32_t)pages : 0;
    }
    /* The log grows; when it cannot any more, a commit fails and says so. */
    if (code != SQLITE_BUSY) {
        wpk_diag_set(&diag, "%s", sqlite3_errmsg(checkpoint->db));
        wpk_log_failure(WPK_LOG_WARN, "checkpoint_failed", WPK_EIO, &diag);
    }
    return 0;
}

/* Each pass has less to do. False when there was always something more. */
static bool copy_all(struct wpk_checkpoint *checkpoint)
{
    uint32_t before = 0;
    uint32_t pages = copy(checkpoint);
    for (int i = 1; i < PASSES_MAX && pages != before; i++) {
        before = pages;
        pages = copy(checkpoint);
    }
    return pages == before;
}

static void *run_thread(void *user)
{
    struct wpk_checkpoint *checkpoint = user;
    prctl(PR_SET_NAME, "checkpoint"); /* as /proc and perf show it */
    pthread_mutex_lock(&checkpoint->lock);
    while (!checkpoint->stopping) {
        if (checkpoint->state != ASKED) {
            pthread_cond_wait(&checkpoint->changed, &checkpoint->lock);
            continue;
        }
        pthread_mutex_unlock(&checkpoint->lock);
        bool all = copy_all(checkpoint);
        pthread_mutex_lock(&checkpoint->lock);
        checkpoint->state = all ? IDLE : DONE;
        pthread_cond_broadcast(&checkpoint->changed);
    }
    pthread_mutex_unlock(&checkpoint->lock);
    return NULL;
}

void wpk_checkpoint_committed(struct wpk_checkpoint *checkpoint, uint32_t log_pages)
{
    if (log_pages < WPK_CHECKPOINT_PAGES) {
        checkpoint->pages_next = WPK_CHECKPOINT_PAGES;
        return;
    }
    pthread_mutex_lock(&checkpoint->lock);
    if (checkpoint->state == IDLE && log_pages >= checkpoint->pages_next) {
        checkpoint->state = ASKED;
        checkpoint->pages_next = log_pages + STEP_PAGES;
        pthread_cond_broadcast(&checkpoint->changed);
    }
    while (checkpoint->state == ASKED && log_pages >= WPK_CHECKPOINT_PAGES_MAX) {
        pthread_cond_wait(&checkpoint->changed, &checkpoint->lock);
    }
    bool done = checkpoint->state == DONE;
    if (done) {
        checkpoint->state = IDLE;
    }
    pthread_mutex_unlock(&checkpoint->lock);
    if (done) {
        copy(checkpoint);
    }
}

/* ---- life */

static wpk_err open_connection(struct wpk_checkpoint *checkpoint, const char *directory,
                               struct wpk_diag *diag)
{
    struct wpk_buf path = {0};
    wpk_buf_printf(&path, "%s/history.db", directory);
    wpk_err err = wpk_buf_status(&path);
    if (err == WPK_OK) {
        const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
        int code = sqlite3_open_v2(path.data, &checkpoint->db, flags, NULL);
        if (code == SQLITE_OK) {
            sqlite3_busy_timeout(checkpoint->db, BUSY_MS);
            /* The first read finds the log, which to copy it takes. */
            code = sqlite3_exec(checkpoint->db,
                                "PRAGMA synchronous = FULL; PRAGMA cache_size = -100;"
                                "SELECT 1 FROM installation",
                                NULL, NULL, NULL);
        }
        if (code != SQLITE_OK) {
            err = wpk_fail(diag, WPK_EIO, "%s: %s", path.data, sqlite3_errmsg(checkpoint->db));
        }
    }
    wpk_buf_fini(&path);
    return err;
}

wpk_err wpk_checkpoint_open(const char *directory, struct wpk_checkpoint **out,
                            struct wpk_diag *diag)
{
    struct wpk_checkpoint *checkpoint = WPK_DEMAND(calloc(1, sizeof *checkpoint));
    pthread_mutex_init(&checkpoint->lock, NULL);
    pthread_cond_init(&checkpoint->changed, NULL);
    checkpoint->pages_next = WPK_CHECKPOINT_PAGES;
    wpk_err err = open_connection(checkpoint, directory, diag);
    int code = 0;
    if (err == WPK_OK) {
        code = pthread_create(&checkpoint->thread, NULL, run_thread, checkpoint);
        checkpoint->running = code == 0;
    }
    if (code != 0) {
        err = wpk_fail(diag, WPK_ESYSTEM, "no thread for checkpoints: %s%s", strerror(code),
                       wpk_fs_advice(code));
    }
    if (err != WPK_OK) {
        wpk_checkpoint_close(checkpoint);
        return err;
    }
    *out = checkpoint;
    return WPK_OK;
}

void wpk_checkpoint_close(struct wpk_checkpoint *checkpoint)
{
    if (checkpoint == NULL) {
        return;
    }
    if (checkpoint->running) {
        pthread_mutex_lock(&checkpoint->lock);
        checkpoint->stopping = true;
        pthread_cond_broadcast(&checkpoint->changed);
        pthread_mutex_unlock(&checkpoint->lock);
        pthread_join(checkpoint->thread, NULL);
    }
    sqlite3_close(checkpoint->db);
    pthread_cond_destroy(&checkpoint->changed);
    pthread_mutex_destroy(&checkpoint->lock);
    free(checkpoint);
}

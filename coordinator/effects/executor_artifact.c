/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects, to and from workers.
 *
 *     put  ──▶ its file, durable ──▶ its row ──▶ acknowledged
 *     get  ──▶ its file ──▶ answered; or lost, and no put before it: its row is removed, then the
 *                           worker is told
 *
 * Files are written, read and removed on the threads of a pool, rows by the writer: a transaction
 * waits for no file. An upload is acknowledged, so that results may name it, when its row is
 * durable. A crash between file and row leaves a file without a row, which the next start
 * removes. */
#include "coordinator/effects/executor_parts.h"

#include "common/log.h"
#include "schema/message.h"

#include <stdlib.h>
#include <string.h>

#define PUT_RETRY_MS 5000  /* for a worker whose artifact could not be written */
#define BUSY_RETRY_MS 1000 /* for one that comes while too many are on their way */

/* An artifact on its way to its row. */
struct wpk_upload {
    struct wpk_store_write write; /* its row; first */
    struct wpk_file_task task;    /* its file */
    struct wpk_executor *executor;
    struct wpk_net_address address;
    uint64_t session;
    uint64_t worker; /* name hash */
    size_t size;
    uint64_t total; /* bytes of all rows, with this one */
    struct wpk_upload *next;
};

/* ---- up */

bool wpk_executor_is_uploading(const struct wpk_executor *p, const char *sha256)
{
    const struct wpk_upload *upload = p->uploads;
    while (upload != NULL && strcmp(upload->task.sha256, sha256) != 0) {
        upload = upload->next;
    }
    return upload != NULL;
}

static void end_upload(struct wpk_upload *upload)
{
    struct wpk_executor *p = upload->executor;
    struct wpk_upload **at = &p->uploads;
    while (*at != upload) {
        at = &(*at)->next;
    }
    *at = upload->next;
    p->upload_count--;
    p->upload_bytes -= upload->size;
    wpk_buf_fini(&upload->task.bytes);
    free(upload);
}

/* A refused upload is not lost: its worker still has the file, and the store works on. Other codes
 * mean something else to a worker: that it is not let in, or not known. */
static void refuse_put(const struct wpk_upload *upload)
{
    wpk_err err = upload->task.err;
    const struct wpk_diag *diag = &upload->task.diag;
    struct wpk_message message = {.kind = WPK_MESSAGE_ERROR,
                                  .session = upload->session,
                                  .err = err == WPK_ECORRUPT ? err : WPK_EIO,
                                  .text = diag->text[0] != '\0' ? diag->text : wpk_err_text(err),
                                  .retry_ms = err == WPK_ECORRUPT ? 0 : PUT_RETRY_MS};
    wpk_executor_reply(upload->executor, &upload->address, &message);
}

static void perform_put(struct wpk_store_write *write, struct wpk_store *store)
{
    struct wpk_upload *upload = (struct wpk_upload *)write;
    if (upload->task.err == WPK_ENOSPC) {
        /* The disk is full: what would be leased now could not be kept. */
        wpk_store_fail(store, upload->task.err, &upload->task.diag);
        return;
    }
    wpk_history_put_artifact(store, upload->task.sha256, upload->size);
    upload->total = wpk_history_artifact_bytes(store);
}

static void on_put(struct wpk_store_write *write, wpk_err err, const struct wpk_diag *diag)
{
    struct wpk_upload *upload = (struct wpk_upload *)write;
    struct wpk_executor *p = upload->executor;
    const struct wpk_message ack = {.kind = WPK_MESSAGE_ACK, .session = upload->session};
    if (err == WPK_OK) {
        p->artifact_bytes = upload->total;
        wpk_executor_reply(p, &upload->address, &ack);
    } else if (err != WPK_ECLOSED) {
        wpk_executor_refuse(p, &upload->address, err, diag);
    }
    end_upload(upload);
}

/* Update the row by whether the file was written. */
static void on_written(struct wpk_upload *upload)
{
    struct wpk_executor *p = upload->executor;
    wpk_err err = upload->task.err;
    wpk_buf_fini(&upload->task.bytes);
    if (p->degraded) {
        wpk_executor_refuse(p, &upload->address, p->err, &p->diag);
        end_upload(upload);
    } else if (err == WPK_OK || err == WPK_ENOSPC) {
        wpk_batch_add(p->batch, &upload->write);
    } else {
        if (err != WPK_ECORRUPT) {
            wpk_log_failure(WPK_LOG_ERROR, "artifact_not_written", err, &upload->task.diag);
        }
        refuse_put(upload);
        end_upload(upload);
    }
}

/* A worker may begin another session while uploads of its last one are under way. */
static bool has_too_many(const struct wpk_executor *p, uint64_t worker)
{
    uint32_t count = 0;
    for (const struct wpk_upload *upload = p->uploads; upload != NULL; upload = upload->next) {
        count += upload->worker == worker;
    }
    return count >= WPK_UPLOADS_OF_ONE_MAX;
}

void wpk_executor_put_artifact(struct wpk_executor *p, const struct wpk_effect *effect)
{
    const struct wpk_message *message = effect->message;
    const struct wpk_worker *worker =
        wpk_coordinator_find_session(p->coordinator, message->session);
    WPK_ASSERT(worker != NULL); /* it has a lease */
    if (p->upload_count >= WPK_UPLOADS_MAX || has_too_many(p, worker->name_hash) ||
        p->upload_bytes + message->bytes_size > WPK_UPLOAD_BYTES_MAX) {
        const struct wpk_message busy = {.kind = WPK_MESSAGE_ERROR,
                                         .session = message->session,
                                         .err = WPK_EBUSY,
                                         .text = "too many artifacts are on their way to the disk",
                                         .retry_ms = BUSY_RETRY_MS};
        wpk_executor_reply(p, &effect->address, &busy);
        return;
    }
    struct wpk_upload *upload = WPK_DEMAND(calloc(1, sizeof *upload));
    upload->write = (struct wpk_store_write){.perform = perform_put, .done = on_put, .alone = true};
    upload->task.action = WPK_FILE_PUT;
    upload->task.owner = upload;
    memcpy(upload->task.sha256, message->sha256, sizeof upload->task.sha256);
    wpk_buf_append(&upload->task.bytes, message->bytes, message->bytes_size);
    WPK_ASSERT(wpk_buf_status(&upload->task.bytes) == WPK_OK);
    upload->executor = p;
    upload->address = effect->address;
    upload->session = message->session;
    upload->worker = worker->name_hash;
    upload->size = message->bytes_size;
    upload->next = p->uploads;
    p->uploads = upload;
    p->upload_count++;
    p->upload_bytes += upload->size;
    wpk_file_pool_put(p->files, &upload->task);
}

/* ---- down */

struct fetch {
    struct wpk_file_task task;
    struct wpk_net_address address;
    uint64_t session;
};

/* The change of an artifact's row after its file was read or could not be read. */
struct row_write {
    struct wpk_effect_write effect;
    struct wpk_net_address address; /* of who asked for one that is lost */
    uint64_t session;
    char sha256[WPK_ID_MAX];
    uint64_t total; /* bytes of all rows, without it */
    struct wpk_diag diag;
};

static struct row_write *
add_row_write(struct wpk_executor *p, const struct fetch *fetch,
              void (*perform)(struct wpk_store_write *write, struct wpk_store *store),
              void (*done)(struct wpk_store_write *write, wpk_err err, const struct wpk_diag *diag))
{
    struct row_write *write = wpk_executor_new_write(p, sizeof *write, perform, done);
    write->effect.write.alone = true;
    write->address = fetch->address;
    write->session = fetch->session;
    memcpy(write->sha256, fetch->task.sha256, sizeof write->sha256);
    write->diag = fetch->task.diag;
    return write;
}

static void perform_use(struct wpk_store_write *write, struct wpk_store *store)
{
    wpk_history_use_artifact(store, ((const struct row_write *)write)->sha256);
}

static void perform_lose(struct wpk_store_write *write, struct wpk_store *store)
{
    struct row_write *mine = (struct row_write *)write;
    wpk_history_lose_artifact(store, mine->sha256); /* it can be made once more */
    mine->total = wpk_history_artifact_bytes(store);
}

/* The state hears of it before the worker can say that it could not do something without. */
static void on_lost(struct wpk_store_write *write, wpk_err err, const struct wpk_diag *diag)
{
    const struct row_write *mine = (const struct row_write *)write;
    struct wpk_executor *p = mine->effect.executor;
    struct wpk_event lost = {.kind = WPK_EVENT_ARTIFACT_LOST};
    if (err != WPK_OK) {
        if (err != WPK_ECLOSED) {
            wpk_executor_refuse(p, &mine->address, err, diag);
        }
        return;
    }
    p->artifact_bytes = mine->total;
    memcpy(lost.sha256, mine->sha256, sizeof lost.sha256);
    if (wpk_executor_is_current(write, WPK_OK)) {
        wpk_executor_follow_up(p, &lost);
    }
    wpk_executor_reply_error(p, &mine->address, mine->session, WPK_ECORRUPT, &mine->diag);
}

static void on_read(struct wpk_executor *p, struct fetch *fetch)
{
    wpk_err err = fetch->task.err;
    bool lost = err == WPK_ENOENT || err == WPK_ECORRUPT;
    if (lost && fetch->task.action == WPK_FILE_GET) {
        /* A put may have written it since: its row is not to go, if it is there once the puts that
         * came before are done. Those that come later have their rows after this one's end. */
        wpk_buf_fini(&fetch->task.bytes);
        fetch->task.action = WPK_FILE_GET_IN_TURN;
        wpk_file_pool_put(p->files, &fetch->task);
        return;
    }
    p->fetch_count--;
    if (err == WPK_OK) {
        struct wpk_message message = {.kind = WPK_MESSAGE_ARTIFACT,
                                      .session = fetch->session,
                                      .bytes = fetch->task.bytes.data,
                                      .bytes_size = fetch->task.bytes.size};
        memcpy(message.sha256, fetch->task.sha256, sizeof message.sha256);
        wpk_executor_reply(p, &fetch->address, &message);
        if (!p->degraded) {
            add_row_write(p, fetch, perform_use, NULL);
        }
    } else if (p->degraded) {
        wpk_executor_refuse(p, &fetch->address, p->err, &p->diag);
    } else if (lost) {
        add_row_write(p, fetch, perform_lose, on_lost);
    } else {
        /* It only cannot be read now, for want of a descriptor perhaps. */
        wpk_executor_reply_error(p, &fetch->address, fetch->session, err, &fetch->task.diag);
    }
    wpk_buf_fini(&fetch->task.bytes);
    free(fetch);
}

void wpk_executor_get_artifact(struct wpk_executor *p, const struct wpk_effect *effect)
{
    struct fetch *fetch = WPK_DEMAND(calloc(1, sizeof *fetch));
    fetch->task.action = WPK_FILE_GET;
    fetch->task.owner = fetch;
    memcpy(fetch->task.sha256, effect->message->sha256, sizeof fetch->task.sha256);
    fetch->address = effect->address;
    fetch->session = effect->message->session;
    p->fetch_count++;
    wpk_file_pool_put(p->files, &fetch->task);
}

/* ---- away */

void wpk_executor_remove_artifact(struct wpk_executor *p, const char *sha256)
{
    struct wpk_file_task *task = WPK_DEMAND(calloc(1, sizeof *task));
    task->action = WPK_FILE_REMOVE;
    memcpy(task->sha256, sha256, sizeof task->sha256);
    p->removal_count++;
    wpk_file_pool_put(p->files, task);
}

/* ---- what the pool has done */

void wpk_executor_take_files(struct wpk_executor *p)
{
    struct wpk_file_task *task;
    while ((task = wpk_file_pool_take(p->files)) != NULL) {
        switch (task->action) {
        case WPK_FILE_PUT:
            on_written(task->owner);
            break;
        case WPK_FILE_GET:
        case WPK_FILE_GET_IN_TURN:
            on_read(p, task->owner);
            break;
        case WPK_FILE_CHECK:
            wpk_executor_checked(p, task);
            break;
        case WPK_FILE_REMOVE:
            free(task);
            p->removal_count--;
            break;
        }
    }
}

void wpk_executor_end_files(struct wpk_executor *p)
{
    struct wpk_file_task *task;
    if (p->files == NULL) {
        return;
    }
    wpk_file_pool_close(p->files);
    while ((task = wpk_file_pool_take(p->files)) != NULL) {
        if (task->action == WPK_FILE_PUT) {
            end_upload(task->owner);
        } else {
            wpk_buf_fini(&task->bytes);
            free(task->action == WPK_FILE_REMOVE ? (void *)task : task->owner);
        }
    }
    wpk_executor_drop_openings(p);
    wpk_file_pool_free(p->files);
    p->files = NULL;
}

wpk_err wpk_executor_forget_absent(struct wpk_executor *p, struct wpk_message *message,
                                   struct wpk_diag *diag)
{
    for (uint32_t i = 0; i < message->result_count; i++) {
        char *sha256 = message->results[i].record.artifact_sha256;
        if (sha256[0] != '\0' && !wpk_history_has_artifact(p->reader, sha256)) {
            char id[WPK_WORK_ID_TEXT_SIZE];
            wpk_work_id_print(message->results[i].id, id);
            wpk_log(WPK_LOG_WARN, "artifact_absent", "work=%s sha256=%s", id, sha256);
            sha256[0] = '\0';
        }
    }
    return wpk_store_take_status(p->reader, diag);
}

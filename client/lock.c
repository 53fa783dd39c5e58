/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lock.h"

#include "client/choice_file.h"
#include "common/fs.h"
#include "common/json.h"
#include "ir/canonical/canonical.h"
#include "ir/notation/definition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
#define FILE_SIZE_MAX ((size_t)64 << 20)
#define KERNEL_ID_MAX 24
#define DIGITS "0123456789"

void wpk_lock_fini(struct wpk_lock *lock)
{
    wpk_arena_fini(&lock->arena);
    *lock = (struct wpk_lock){.count = 0};
}

/* Without memory: "", which no operator has. */
static const char *copy(struct wpk_lock *lock, const char *text)
{
    const char *made = wpk_arena_copy_text(&lock->arena, text);
    return made != NULL ? made : "";
}

static const char *get_copy(struct wpk_json_reader *r, struct wpk_lock *lock, const char *key,
                            size_t size_max)
{
    return copy(lock, wpk_json_get_text(r, key, size_max));
}

/* Read the entry's operator out of its choice. */
static void read_choice(struct wpk_json_reader *r, struct wpk_lock *lock,
                        struct wpk_lock_entry *entry)
{
    struct wpk_choice *choice = calloc(1, sizeof(*choice)); /* large */
    char class[WPK_ACCURACY_TEXT_MAX];
    struct wpk_diag why = {0};
    wpk_err err = choice == NULL
                      ? WPK_ENOMEM
                      : wpk_choice_decode(entry->choice, strlen(entry->choice), choice, &why);
    if (err != WPK_OK) {
        wpk_json_fail(r, "choice", err, "%s: %s", why.field, why.text);
        free(choice);
        return;
    }
    wpk_accuracy_name(choice->accuracy, class);
    entry->fingerprint = copy(lock, choice->fingerprint);
    entry->layouts = copy(lock, choice->layouts);
    entry->accuracy = copy(lock, class);
    entry->threads = choice->threads;
    entry->artifact = "";
    for (int i = choice->chain_count - 1; i >= 0; i--) {
        if (choice->chain[i].kind != WPK_CHOICE_VENDOR) {
            entry->artifact = copy(lock, choice->chain[i].sha256);
        }
    }
    wpk_choice_fini(choice);
    free(choice);
}

static void read_entry(struct wpk_json_reader *r, struct wpk_lock *lock)
{
    struct wpk_lock_entry *entry = &lock->entries[lock->count++];
    char label[WPK_CANDIDATE_TEXT_MAX];

    WPK_JSON_ALLOW(r, "name", "kernel", "device", "environment", "choice", "signature");
    wpk_json_get_label(r, "name", label, sizeof(label));
    entry->name = get_copy(r, lock, "name", WPK_CHOICE_FILE_MAX);
    entry->kernel = get_copy(r, lock, "kernel", KERNEL_ID_MAX);
    entry->device = get_copy(r, lock, "device", WPK_JOB_DEVICE_MAX);
    entry->environment = get_copy(r, lock, "environment", WPK_CANDIDATE_TEXT_MAX);
    entry->choice = get_copy(r, lock, "choice", WPK_CHOICE_SIZE_MAX);
    entry->signature = get_copy(r, lock, "signature", WPK_SIGNATURE_HEX_SIZE);
    if (entry->kernel[0] != 'k' || entry->kernel[1 + strspn(entry->kernel + 1, DIGITS)] != '\0') {
        wpk_json_fail(r, "kernel", WPK_EINVAL, "'%s' is no kernel's id", entry->kernel);
    }
    if (strchr(entry->name, '/') != NULL) {
        wpk_json_fail(r, "name", WPK_EINVAL, "'%s' is no operator's name", entry->name);
    }
    if (wpk_json_status(r) == WPK_OK) {
        read_choice(r, lock, entry);
    }
}

wpk_err wpk_lock_read(const char *path, struct wpk_lock *out, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    struct wpk_json_reader *r = NULL;

    *out = (struct wpk_lock){.count = 0};
    wpk_err err = wpk_fs_read(path, FILE_SIZE_MAX, &text, diag);
    err = err == WPK_ENOENT ? WPK_EINVAL : err; /* not found means a kernel, to scripts */
    err = err == WPK_OK ? wpk_json_open(text.data, text.size, FILE_SIZE_MAX, &r, diag) : err;
    if (err == WPK_OK) {
        WPK_JSON_ALLOW(r, "version", "entries");
        int64_t version = wpk_json_get_int(r, "version", 1, INT32_MAX);
        if (wpk_json_status(r) == WPK_OK && version != VERSION) {
            wpk_json_fail(r, "version", WPK_EMISMATCH,
                          "a lock file of version %d, not %d; wpkctl pin makes it anew",
                          (int)version, VERSION);
        }
        size_t count = wpk_json_count(r, "entries");
        wpk_arena_init(&out->arena, 2 * FILE_SIZE_MAX);
        out->entries = WPK_ARENA_NEW(&out->arena, struct wpk_lock_entry, count);
        wpk_json_enter_array(r, "entries");
        while (out->entries != NULL && wpk_json_next(r)) {
            read_entry(r, out);
        }
        wpk_json_leave(r);
        err = out->entries == NULL ? WPK_ENOMEM : wpk_json_status(r);
    }
    wpk_json_close(r);
    if (err != WPK_OK && diag->file[0] == '\0') {
        snprintf(diag->file, sizeof(diag->file), "%s", path);
    }
    wpk_buf_fini(&text);
    return err;
}

wpk_err wpk_lock_print(const struct wpk_lock *lock, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    wpk_json_put_int(w, "version", VERSION);
    wpk_json_begin_array(w, "entries");
    for (int i = 0; i < lock->count; i++) {
        const struct wpk_lock_entry *entry = &lock->entries[i];
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", entry->name);
        wpk_json_put_text(w, "kernel", entry->kernel);
        wpk_json_put_text(w, "device", entry->device);
        wpk_json_put_text(w, "environment", entry->environment);
        wpk_json_put_text(w, "choice", entry->choice);
        wpk_json_put_text(w, "signature", entry->signature);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    return wpk_json_finish(w, true, out);
}

/* ---- a job */

static const struct wpk_lock_entry *find(const struct wpk_lock *lock, const char *fingerprint,
                                         const struct wpk_job_op *op, int threads)
{
    char class[WPK_ACCURACY_TEXT_MAX];

    wpk_accuracy_name(op->accuracy, class);
    for (int i = 0; i < lock->count; i++) {
        const struct wpk_lock_entry *entry = &lock->entries[i];
        if (strcmp(entry->fingerprint, fingerprint) == 0 && entry->threads == threads &&
            strcmp(entry->layouts, wpk_layouts_name(op->layouts)) == 0 &&
            strcmp(entry->accuracy, class) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* The kernel of an entry; false: `why` says why it cannot be taken. */
static bool fetch(struct wpk_session *session, const struct wpk_lock_entry *entry,
                  const char *device, struct wpk_arena *arena, struct wpk_api_kernel *out,
                  struct wpk_diag *why)
{
    struct wpk_http_reply reply = {0};
    struct wpk_buf list = {0};
    struct wpk_api_kernel *kernels = NULL;
    char path[KERNEL_ID_MAX + 16];
    int count = 0;
    wpk_err err = WPK_OK;

    if (device[0] != '\0' && strcmp(entry->device, device) != 0) {
        err = wpk_fail(why, WPK_EMISMATCH, "it is of %s, and this is %s", entry->device, device);
    }
    snprintf(path, sizeof(path), "/v1/kernels/%s", entry->kernel);
    err = err == WPK_OK ? wpk_session_ask(session, path, NULL, &reply, why) : err;
    if (err == WPK_OK) {
        wpk_buf_printf(&list, "{\"kernels\":[%s]}", wpk_buf_text(&reply.body));
        err = wpk_api_decode_kernels(&list, arena, &kernels, &count, why);
    }
    if (err == WPK_OK &&
        (kernels[0].revoked || (strcmp(kernels[0].served.artifact, entry->artifact) != 0 &&
                                strcmp(kernels[0].own.artifact, entry->artifact) != 0))) {
        err = wpk_fail(why, WPK_EMISMATCH, "kernel %s was revoked, or is another one here",
                       entry->kernel);
    }
    if (err == WPK_OK) {
        *out = kernels[0];
    }
    wpk_buf_fini(&list);
    wpk_http_reply_fini(&reply);
    return err == WPK_OK;
}

wpk_err wpk_lock_apply(struct wpk_lock *lock, struct wpk_session *session, const char *device,
                       struct wpk_job *job, bool quiet, struct wpk_api_kernel *found, int *count,
                       struct wpk_diag *diag)
{
    int left = 0, all = job->op_count;
    wpk_err err = WPK_OK;

    *count = 0;
    for (int i = 0; err == WPK_OK && i < all; i++) {
        struct wpk_job_op op = job->ops[i];
        struct wpk_program program = {0};
        struct wpk_fingerprint fingerprint = {0};
        struct wpk_diag why = {0};
        err = wpk_job_op_program(job, i, &program, diag);
        err = err == WPK_OK ? wpk_fingerprint(&program, &fingerprint) : err;
        wpk_program_fini(&program);
        const struct wpk_lock_entry *entry = find(lock, fingerprint.exact, &op, job->threads);
        if (err == WPK_OK && entry != NULL &&
            fetch(session, entry, device, &lock->arena, &found[*count], &why)) {
            found[*count].name = wpk_arena_copy_text(&lock->arena, op.name);
            err = found[(*count)++].name == NULL ? WPK_ENOMEM : WPK_OK;
            continue;
        }
        if (err == WPK_OK && !quiet) {
            fprintf(stderr, "%s: %s; it is searched\n", op.name,
                    entry != NULL ? why.text : "it is not in the lock file");
        }
        job->ops[i] = job->ops[left];
        job->ops[left++] = op;
    }
    job->op_count = left;
    if (err == WPK_OK && *count > 0 && !quiet) {
        fprintf(stderr, "%d of %d operators have the kernels of the lock file\n", *count, all);
    }
    return err;
}

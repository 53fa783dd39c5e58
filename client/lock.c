/* SPDX-License-Identifier: Apache-2.0 */
#include "client/lock.h"

#include "common/fs.h"
#include "ir/canonical/canonical.h"
#include "ir/notation/definition.h"
#include "schema/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
#define FILE_SIZE_MAX ((size_t)64 << 20)
#define DIGITS "0123456789"

void wpk_lock_fini(struct wpk_lock *lock)
{
    wpk_arena_fini(&lock->arena);
    *lock = (struct wpk_lock){.count = 0};
}

/* Names and ids go into paths; the operator is that of the choice. */
static void check_entry(struct wpk_json_reader *r, void *object)
{
    struct wpk_lock_entry *entry = object;
    struct wpk_choice *choice = WPK_DEMAND(calloc(1, sizeof(*choice))); /* large */
    struct wpk_diag why = {0};
    const char *id = entry->kernel;
    wpk_err err = wpk_json_status(r);

    if (err == WPK_OK &&
        (id[0] != 'k' || id[1] == '\0' || id[1 + strspn(id + 1, DIGITS)] != '\0')) {
        wpk_json_fail(r, "kernel", WPK_EINVAL, "'%s' is no kernel's id", id);
    } else if (err == WPK_OK) {
        err = wpk_choice_decode(entry->choice, strlen(entry->choice), choice, &why);
    }
    if (err != WPK_OK) {
        wpk_json_fail(r, "choice", err, "%s: %s", why.field, why.text);
        free(choice);
        return;
    }
    snprintf(entry->fingerprint, sizeof(entry->fingerprint), "%s", choice->fingerprint);
    snprintf(entry->layouts, sizeof(entry->layouts), "%s", choice->layouts);
    entry->accuracy = choice->accuracy;
    entry->threads = choice->threads;
    for (int i = choice->chain_count - 1; i >= 0; i--) {
        if (choice->chain[i].kind != WPK_CHOICE_VENDOR) {
            snprintf(entry->artifact, sizeof(entry->artifact), "%s", choice->chain[i].sha256);
        }
    }
    wpk_choice_fini(choice);
    free(choice);
}

static const struct wpk_field entry_fields[] = {
    {WPK_FIELD(LABEL, "name", lock_entry, name)},
    {WPK_FIELD(LABEL, "kernel", lock_entry, kernel)},
    {WPK_FIELD(LABEL, "device", lock_entry, device)},
    {WPK_FIELD_TEXT("environment", lock_entry, environment, WPK_CANDIDATE_TEXT_MAX)},
    {WPK_FIELD_TEXT("choice", lock_entry, choice, WPK_CHOICE_SIZE_MAX)},
    {WPK_FIELD(COPY, "signature", lock_entry, signature)},
    {WPK_FIELD_CHECK(check_entry)},
    {WPK_FIELD_END},
};

static const struct wpk_field lock_fields[] = {
    {WPK_FIELD_VERSION(VERSION, "wpkctl pin makes it anew")},
    {WPK_FIELD_LIST("entries", lock, entries, count, WPK_JOB_OPS_MAX, entry_fields)},
    {WPK_FIELD_END},
};

wpk_err wpk_lock_read(const char *path, struct wpk_lock *out, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};

    *out = (struct wpk_lock){.count = 0};
    wpk_arena_init(&out->arena, 2 * FILE_SIZE_MAX);
    wpk_err err = wpk_fs_read(path, FILE_SIZE_MAX, &text, diag);
    if (err == WPK_OK) {
        const struct wpk_fields_text from = {.text = wpk_buf_text(&text),
                                             .size = text.size,
                                             .size_max = FILE_SIZE_MAX,
                                             .arena = &out->arena};
        err = wpk_diag_in_file(diag, wpk_fields_decode(&from, lock_fields, out, diag), path);
    }
    wpk_buf_fini(&text);
    return err == WPK_ENOENT ? WPK_EINVAL : err; /* not found means a kernel, to scripts */
}

wpk_err wpk_lock_print(const struct wpk_lock *lock, struct wpk_buf *out)
{
    return wpk_fields_encode(lock_fields, lock, out);
}

/* ---- a job */

static const struct wpk_lock_entry *find(const struct wpk_lock *lock, const char *fingerprint,
                                         const struct wpk_job_op *op, int threads)
{
    for (int i = 0; i < lock->count; i++) {
        const struct wpk_lock_entry *entry = &lock->entries[i];
        if (strcmp(entry->fingerprint, fingerprint) == 0 && entry->threads == threads &&
            strcmp(entry->layouts, wpk_layouts_name(op->layouts)) == 0 &&
            entry->accuracy.times_direct == op->accuracy.times_direct) {
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
    struct wpk_api_list found = {.count = 0};
    char path[64];
    wpk_err err = WPK_OK;

    if (device[0] != '\0' && strcmp(entry->device, device) != 0) {
        err = wpk_fail(why, WPK_EMISMATCH, "it is of %s, and this is %s", entry->device, device);
    }
    snprintf(path, sizeof(path), "/v1/kernels/%s", entry->kernel);
    err = err == WPK_OK ? wpk_session_ask(session, path, NULL, &reply, why) : err;
    if (err == WPK_OK) {
        wpk_buf_printf(&list, "{\"kernels\":[%s]}", wpk_buf_text(&reply.body));
        err = wpk_api_decode_list(&list, arena, &found, why);
    }
    if (err == WPK_OK && (found.kernels[0].revoked ||
                          (strcmp(found.kernels[0].served.artifact, entry->artifact) != 0 &&
                           strcmp(found.kernels[0].own.artifact, entry->artifact) != 0))) {
        err = wpk_fail(why, WPK_EMISMATCH, "kernel %s was revoked, or is another one here",
                       entry->kernel);
    }
    if (err == WPK_OK) {
        *out = found.kernels[0];
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

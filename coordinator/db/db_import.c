/* SPDX-License-Identifier: Apache-2.0 */
/* An import is one transaction: a file that ends early, or does not have the hash in its last line,
 * leaves nothing behind but artifacts without rows. Trials and kernels wait in temporary tables
 * until the last line has confirmed the file. */
#include "common/crypto.h"
#include "common/fs.h"
#include "coordinator/db/db_command.h"
#include "coordinator/db/db_file.h"
#include "coordinator/db/db_merge.h"
#include "coordinator/store/store.h"
#include "schema/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct import {
    struct wpk_db_merge merge;
    FILE *in;
    struct wpk_crypto_hash hash; /* of the lines before this one */
    int line;
    bool ended;
};

/* The next line without its newline; WPK_ENOENT at the end of the file. */
static wpk_err next_line(struct import *i, struct wpk_buf *out)
{
    int c = 0;
    wpk_buf_reset(out);
    while ((c = getc(i->in)) != EOF && c != '\n') {
        wpk_buf_append_byte(out, (char)c);
        if (wpk_buf_status(out) != WPK_OK) {
            return WPK_ERANGE;
        }
    }
    if (ferror(i->in)) {
        return WPK_EIO;
    }
    i->line++;
    return c == EOF ? WPK_ENOENT : WPK_OK;
}

static void take_artifact(struct import *i, struct wpk_json_reader *r)
{
    struct wpk_buf bytes = {.size_max = WPK_ARTIFACT_SIZE_MAX + 1};
    const char *sha256 = wpk_json_get_text(r, "sha256", WPK_SHA256_HEX_SIZE);
    uint64_t size = wpk_json_get_u64(r, "size");
    if (wpk_json_status(r) == WPK_OK && (size == 0 || size > WPK_ARTIFACT_SIZE_MAX ||
                                         !wpk_crypto_hex_valid(sha256, WPK_SHA256_SIZE))) {
        wpk_json_fail(r, NULL, WPK_ERANGE, "no such artifact can be");
    }
    if (wpk_json_status(r) == WPK_OK) {
        char *room = wpk_buf_reserve(&bytes, (size_t)size + 1);
        if (room == NULL) {
            wpk_json_fail(r, NULL, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
        } else if (fread(room, 1, (size_t)size + 1, i->in) != size + 1 || room[size] != '\n') {
            wpk_json_fail(r, NULL, WPK_EPARSE, "the file ends within an artifact");
        } else {
            wpk_crypto_hash_add(&i->hash, room, (size_t)size + 1);
            wpk_buf_commit(&bytes, (size_t)size);
            wpk_db_merge_artifact(&i->merge, sha256, &bytes, r);
        }
    }
    wpk_buf_fini(&bytes);
}

static void take_header(struct wpk_json_reader *r)
{
    int64_t version = wpk_json_get_int(r, "wpk_export", 1, WPK_JSON_INT_MAX);
    if (wpk_json_status(r) == WPK_OK && version != WPK_EXPORT_VERSION) {
        wpk_json_fail(
            r, "wpk_export", WPK_EMISMATCH,
            "the file has version %lld, this wpkd reads %d only; export it with the same wpkctl",
            (long long)version, WPK_EXPORT_VERSION);
    }
}

static void take_end(struct import *i, struct wpk_json_reader *r)
{
    char sha256[WPK_SHA256_HEX_SIZE];
    struct wpk_crypto_hash whole = i->hash;
    wpk_crypto_hash_finish_hex(&whole, sha256);
    const char *claimed = wpk_json_get_text(r, "sha256", WPK_SHA256_HEX_SIZE);
    if (wpk_json_status(r) == WPK_OK && strcmp(sha256, claimed) != 0) {
        wpk_json_fail(r, "sha256", WPK_ECORRUPT, "the file was changed on its way");
    }
    i->ended = true;
}

static void take_object(struct import *i, struct wpk_json_reader *r)
{
    static const struct {
        const char *name;
        void (*take)(struct wpk_db_merge *merge, struct wpk_json_reader *r);
    } kinds[] = {{"problem", wpk_db_merge_problem},
                 {"trial", wpk_db_merge_trial},
                 {"kernel", wpk_db_merge_kernel},
                 {"hint", wpk_db_merge_hint}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        if (wpk_json_has(r, kinds[k].name)) {
            wpk_json_enter(r, kinds[k].name);
            kinds[k].take(&i->merge, r);
            wpk_json_leave(r);
            return;
        }
    }
    wpk_json_fail(r, NULL, WPK_EINVAL, "none of artifact, problem, trial, kernel, hint and end");
}

static wpk_err take_line(struct import *i, const struct wpk_buf *line, struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(wpk_buf_text(line), line->size, WPK_DB_LINE_MAX, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    bool end = wpk_json_has(r, "end");
    if (end) {
        wpk_json_enter(r, "end");
        take_end(i, r);
        wpk_json_leave(r);
    }
    wpk_crypto_hash_add(&i->hash, wpk_buf_text(line), line->size);
    wpk_crypto_hash_add(&i->hash, "\n", 1);
    if (i->line == 1) {
        take_header(r);
    } else if (!end && wpk_json_has(r, "artifact")) {
        wpk_json_enter(r, "artifact");
        take_artifact(i, r);
        wpk_json_leave(r);
    } else if (!end) {
        take_object(i, r);
    }
    err = wpk_json_status(r);
    wpk_json_close(r);
    return err;
}

/* If the file is at fault, name it and say what to do. */
static void blame(const struct import *i, const char *name, wpk_err err, struct wpk_diag *diag)
{
    bool wrong = err == WPK_EPARSE || err == WPK_EINVAL || err == WPK_ERANGE || err == WPK_ECORRUPT;

    if (wrong && i->line <= 1) {
        *diag = (struct wpk_diag){0};
        wpk_diag_set(diag, "this is no export of Woodpecker; wpkctl export FILE writes one");
    } else if (wrong) {
        size_t used = strlen(diag->text);
        snprintf(diag->text + used, sizeof diag->text - used, "%s; export it again",
                 used == 0 ? wpk_err_text(err) : "");
    }
    if (diag->text[0] != '\0') {
        snprintf(diag->file, sizeof diag->file, "%.*s", (int)sizeof diag->file - 1, name);
        diag->line = i->line;
        diag->column = 0;
    }
}

static wpk_err read_all(struct import *i, const char *name, struct wpk_diag *diag)
{
    struct wpk_buf line = {.size_max = WPK_DB_LINE_MAX};
    wpk_err err = WPK_OK;
    wpk_crypto_hash_init(&i->hash);
    while (err == WPK_OK && !i->ended) {
        err = next_line(i, &line);
        if (err == WPK_ENOENT) {
            wpk_diag_set(diag, "the file is cut off: its last line is not there");
            err = WPK_EPARSE;
        } else if (err == WPK_OK) {
            err = take_line(i, &line, diag);
        }
        if (err == WPK_OK) {
            err = wpk_store_status(i->merge.store);
        }
    }
    if (err == WPK_OK && getc(i->in) != EOF) {
        wpk_diag_set(diag, "something follows the last line");
        err = WPK_EPARSE;
    }
    if (err != WPK_OK && diag != NULL) {
        blame(i, name, err, diag);
    }
    wpk_buf_fini(&line);
    return err;
}

static wpk_err import_locked(struct import *i, const struct wpk_db_options *options,
                             struct wpk_diag *diag)
{
    struct wpk_sign *sign = NULL;
    wpk_err err = wpk_sign_open(options->data_dir, &sign, diag);
    if (err == WPK_OK) {
        err = wpk_store_open(options->data_dir, wpk_clock_system(), &i->merge.store, diag);
    }
    if (err == WPK_OK) {
        struct wpk_diag committed = {0};
        i->merge.sign = sign;
        wpk_store_begin(i->merge.store);
        wpk_db_merge_begin(&i->merge);
        err = read_all(i, options->file, diag);
        if (err == WPK_OK) {
            wpk_db_merge_end(&i->merge);
        }
        if (err != WPK_OK && wpk_store_status(i->merge.store) == WPK_OK) {
            wpk_store_fail(i->merge.store, err, &committed);
        }
        wpk_err stored = wpk_store_commit(i->merge.store, &committed);
        if (stored != WPK_OK && committed.text[0] != '\0' && diag != NULL) {
            *diag = committed;
        }
        err = stored;
        wpk_store_close(i->merge.store);
    }
    wpk_sign_close(sign);
    return err;
}

wpk_err wpk_db_import(const struct wpk_db_options *options, struct wpk_db_report *report,
                      struct wpk_diag *diag)
{
    struct import i = {.merge = {.data_dir = options->data_dir}, .in = stdin};
    int lock = -1;
    if (strcmp(options->file, "-") != 0) {
        i.in = fopen(options->file, "rbe");
    }
    if (i.in == NULL) {
        wpk_diag_set(diag, "%s: %s%s", options->file, strerror(errno), wpk_fs_advice(errno));
        return errno == ENOENT ? WPK_EINVAL : wpk_fs_err(errno);
    }
    wpk_err err = wpk_lock_take(options->data_dir, &lock, diag);
    if (err == WPK_OK) {
        err = import_locked(&i, options, diag);
        (void)close(lock);
    }
    if (i.in != stdin) {
        (void)fclose(i.in);
    }
    if (err == WPK_OK) {
        wpk_db_say(report, "new_problems", i.merge.problems);
        wpk_db_say(report, "new_trials", i.merge.trials);
        wpk_db_say(report, "new_kernels", i.merge.kernels);
        wpk_db_say(report, "newly_served", i.merge.served);
        wpk_db_say(report, "new_hints", i.merge.hints);
        wpk_db_say(report, "new_artifacts", i.merge.artifacts);
    }
    return err == WPK_ECORRUPT ? WPK_EINVAL : err;
}

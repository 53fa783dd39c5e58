/* SPDX-License-Identifier: Apache-2.0 */
#include "client/choice_file.h"

#include "client/find.h"
#include "common/fs.h"
#include "common/json.h"
#include "runtime/kernel/trust.h"

#include <stdio.h>
#include <string.h>

void wpk_choice_answer_fini(struct wpk_choice_answer *answer)
{
    wpk_buf_fini(&answer->choice);
}

const char *wpk_choice_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static wpk_err write_request(const struct wpk_api_kernel *kernel, const char *path,
                             struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_accuracy accuracy;

    wpk_json_put_text(w, "file", wpk_choice_file_name(path));
    if (kernel->binding_json != NULL) {
        wpk_json_put_raw(w, "binding", kernel->binding_json);
    }
    if (wpk_accuracy_parse(kernel->found_for, &accuracy, NULL) == WPK_OK) {
        wpk_accuracy_put(w, "accuracy", &accuracy);
    }
    return wpk_json_finish(w, false, out);
}

static wpk_err read_answer(const struct wpk_http_reply *reply, struct wpk_choice_answer *out,
                           struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;

    wpk_err err = wpk_json_open(reply->body.data, reply->body.size, 0, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    wpk_buf_append_text(&out->choice, wpk_json_get_text(r, "choice", WPK_CHOICE_SIZE_MAX));
    wpk_json_get_copy(r, "signature", out->signature, sizeof(out->signature));
    wpk_json_enter_array(r, "files");
    while (wpk_json_next(r) && out->object_count < WPK_CHOICE_OBJECTS_MAX) {
        struct wpk_choice_object *object = &out->object[out->object_count++];
        wpk_json_get_copy(r, "file", object->file, sizeof(object->file));
        wpk_json_get_copy(r, "sha256", object->sha256, sizeof(object->sha256));
        if (wpk_json_status(r) == WPK_OK && strchr(object->file, '/') != NULL) {
            wpk_json_fail(r, "file", WPK_EINVAL, "'%s' is no file's name", object->file);
        }
    }
    wpk_json_leave(r);
    err = wpk_json_status(r);
    wpk_json_close(r);
    return err == WPK_OK ? wpk_buf_status(&out->choice) : err;
}

wpk_err wpk_choice_file_ask(struct wpk_session *session, const struct wpk_api_kernel *kernel,
                            const char *path, struct wpk_choice_answer *out, struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    struct wpk_buf body = {0};
    char request[96];

    *out = (struct wpk_choice_answer){.signature = ""};
    snprintf(request, sizeof(request), "/v1/kernels/%.40s:choice", kernel->id);
    wpk_err err = write_request(kernel, path, &body);
    err =
        err == WPK_OK ? wpk_session_ask(session, request, wpk_buf_text(&body), &reply, diag) : err;
    if (kernel->is_too_wide && (err == WPK_EMISMATCH || err == WPK_EINVAL)) {
        err = wpk_find_none(kernel, diag); /* nothing of the choice fits either */
    }
    err = err == WPK_OK ? read_answer(&reply, out, diag) : err;
    if (err == WPK_OK) {
        err = wpk_manifest_file_check(session, wpk_buf_text(&out->choice), out->signature, diag);
    }
    wpk_http_reply_fini(&reply);
    wpk_buf_fini(&body);
    return err;
}

wpk_err wpk_choice_file_download(struct wpk_session *session, const char *sha256,
                                 struct wpk_buf *out, struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    char request[128];
    char got[WPK_SHA256_HEX_SIZE];

    snprintf(request, sizeof(request), "/v1/artifacts/%s", sha256);
    struct wpk_diag why = {0};
    wpk_err err = wpk_session_ask(session, request, NULL, &reply, &why);
    if (err == WPK_ENOENT || err == WPK_ECORRUPT) {
        wpk_diag_set(diag,
                     "object %.12s is %s in the service's artifacts; tune its operator again, or "
                     "restore a backup",
                     sha256, err == WPK_ENOENT ? "missing" : "damaged");
    } else if (err != WPK_OK && diag != NULL && diag->text[0] == '\0') {
        *diag = why;
    }
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(wpk_buf_text(&reply.body), reply.body.size, got);
        if (strcmp(got, sha256) != 0) {
            err = wpk_fail(diag, WPK_ECORRUPT,
                           "the bytes that came are not those of %s; get it again", sha256);
        }
    }
    if (err == WPK_OK) {
        wpk_buf_append(out, reply.body.data, reply.body.size);
        err = wpk_buf_status(out);
    }
    wpk_http_reply_fini(&reply);
    return err;
}

static wpk_err write_object(struct wpk_session *session, const struct wpk_choice_object *object,
                            const char *path, struct wpk_diag *diag)
{
    struct wpk_buf name = {0};
    struct wpk_buf bytes = {.size_max = WPK_HTTP_REPLY_MAX};

    wpk_buf_printf(&name, "%.*s%s", (int)(wpk_choice_file_name(path) - path), path, object->file);
    wpk_err err = wpk_choice_file_download(session, object->sha256, &bytes, diag);
    err =
        err == WPK_OK ? wpk_fs_write(wpk_buf_text(&name), bytes.data, bytes.size, 0755, diag) : err;
    wpk_buf_fini(&bytes);
    wpk_buf_fini(&name);
    return err;
}

wpk_err wpk_choice_file_write(struct wpk_session *session, const struct wpk_choice_answer *answer,
                              const char *path, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    for (int i = 0; i < answer->object_count && err == WPK_OK; i++) {
        if (strcmp(answer->object[i].file, wpk_choice_file_name(path)) != 0) {
            err = write_object(session, &answer->object[i], path, diag);
        }
    }
    if (err == WPK_OK) {
        err = wpk_manifest_file_beside(path, WPK_CHOICE_SUFFIX, wpk_buf_text(&answer->choice), "",
                                       diag);
    }
    return err == WPK_OK ? wpk_manifest_file_beside(path, WPK_CHOICE_SUFFIX WPK_TRUST_SIGNATURE,
                                                    answer->signature, "\n", diag)
                         : err;
}

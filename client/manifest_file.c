/* SPDX-License-Identifier: Apache-2.0 */
#include "client/choice_file.h"

#include "common/fs.h"
#include "common/json.h"
#include "runtime/kernel/trust.h"

#include <string.h>
#include <unistd.h>

wpk_err wpk_manifest_file_key(struct wpk_session *session, char out[WPK_SIGN_PUBLIC_HEX_SIZE],
                              struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    struct wpk_json_reader *r = NULL;

    wpk_err err = wpk_session_ask(session, "/v1/signing-key", NULL, &reply, diag);
    err = err == WPK_OK ? wpk_json_open(wpk_buf_text(&reply.body), reply.body.size, 0, &r, diag)
                        : err;
    if (err == WPK_OK) {
        wpk_json_get_copy(r, "public_key", out, WPK_SIGN_PUBLIC_HEX_SIZE);
        err = wpk_json_status(r);
    }
    wpk_json_close(r);
    wpk_http_reply_fini(&reply);
    return err;
}

static bool is_signed(const char *public_key, const char *manifest, const char *hex)
{
    uint8_t key[WPK_SIGN_PUBLIC_SIZE];
    uint8_t signature[WPK_SIGNATURE_SIZE];

    return wpk_crypto_unhex(public_key, sizeof(key), key) &&
           wpk_crypto_unhex(hex, sizeof(signature), signature) &&
           wpk_crypto_verify(key, manifest, strlen(manifest), signature);
}

wpk_err wpk_manifest_file_check(struct wpk_session *session, const char *text,
                                const char *signature, struct wpk_diag *diag)
{
    char key[WPK_SIGN_PUBLIC_HEX_SIZE] = "";

    wpk_err err = wpk_manifest_file_key(session, key, diag);
    if (err == WPK_OK && !is_signed(key, text, signature)) {
        err = wpk_fail(
            diag, WPK_ECORRUPT,
            "what the service sent is not signed by its key; do not use it, and ask who runs it");
    }
    return err;
}

static wpk_err check(struct wpk_session *session, const struct wpk_api_kernel *kernel,
                     const char *sha256, struct wpk_diag *diag)
{
    struct wpk_kernel_manifest manifest;

    wpk_err err = wpk_manifest_file_check(session, kernel->manifest, kernel->signature, diag);
    if (err == WPK_ECORRUPT) {
        wpk_diag_set(diag,
                     "the manifest of %s is not signed by the service's key; do not use it, and "
                     "ask who runs it",
                     kernel->id);
    }
    if (err != WPK_OK) {
        return err;
    }
    err = wpk_kernel_manifest_decode(kernel->manifest, strlen(kernel->manifest), &manifest, diag);
    if (err == WPK_OK && strcmp(manifest.artifact, sha256) != 0) {
        err = wpk_fail(diag, WPK_ECORRUPT, "the manifest of %s is of another object; get it again",
                       kernel->id);
    }
    return err;
}

wpk_err wpk_manifest_file_beside(const char *path, const char *suffix, const char *text,
                                 const char *end, struct wpk_diag *diag)
{
    struct wpk_buf name = {0};
    struct wpk_buf content = {0};

    wpk_buf_printf(&name, "%s%s", path, suffix);
    wpk_buf_printf(&content, "%s%s", text, end);
    wpk_err err = wpk_buf_status(&content);
    if (err == WPK_OK && text[0] != '\0') {
        err = wpk_fs_write(name.data, content.data, content.size, 0644, diag);
    } else if (err == WPK_OK) {
        (void)unlink(name.data);
    }
    wpk_buf_fini(&name);
    wpk_buf_fini(&content);
    return err;
}

wpk_err wpk_manifest_file_write(struct wpk_session *session, const struct wpk_api_kernel *kernel,
                                const char *path, const char *sha256, struct wpk_diag *diag)
{
    wpk_err err = kernel->manifest[0] != '\0' ? check(session, kernel, sha256, diag) : WPK_OK;

    if (err == WPK_OK) {
        err = wpk_manifest_file_beside(path, WPK_TRUST_MANIFEST, kernel->manifest, "", diag);
    }
    return err == WPK_OK
               ? wpk_manifest_file_beside(path, WPK_TRUST_SIGNATURE,
                                          kernel->manifest[0] != '\0' ? kernel->signature : "",
                                          "\n", diag)
               : err;
}

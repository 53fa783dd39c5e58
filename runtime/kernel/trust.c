/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/trust.h"

#include "common/crypto.h"
#include "common/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static wpk_err read_beside(const char *path, const char *suffix, size_t size_max,
                           struct wpk_buf *out, struct wpk_diag *diag)
{
    struct wpk_buf name = {0};
    wpk_buf_printf(&name, "%s%s", path, suffix);
    wpk_err err = wpk_buf_status(&name);
    err = err == WPK_OK ? wpk_fs_read(name.data, size_max, out, diag) : err;
    wpk_buf_fini(&name);
    return err;
}

wpk_err wpk_trust_signed(const char *path, const char *what, const char *public_key,
                         const struct wpk_buf *text, struct wpk_diag *diag)
{
    uint8_t key[WPK_SIGN_PUBLIC_SIZE];
    uint8_t signature[WPK_SIGNATURE_SIZE];
    struct wpk_buf hex = {0};

    if (!wpk_crypto_unhex(public_key, sizeof(key), key)) {
        return wpk_fail(diag, WPK_EINVAL, "a public key has %d hexadecimal digits",
                        2 * WPK_SIGN_PUBLIC_SIZE);
    }
    wpk_err err = read_beside(path, WPK_TRUST_SIGNATURE, WPK_SIGNATURE_HEX_SIZE, &hex, NULL);
    if (err == WPK_OK && hex.size == WPK_SIGNATURE_HEX_SIZE && hex.data[hex.size - 1] == '\n') {
        wpk_buf_truncate(&hex, hex.size - 1);
    }
    if (err == WPK_ENOENT) {
        err = wpk_fail(diag, WPK_EACCES, "%s is not signed: there is no %s%s", path, path,
                       WPK_TRUST_SIGNATURE);
    } else if ((err == WPK_OK || err == WPK_ERANGE) &&
               (!wpk_crypto_unhex(wpk_buf_text(&hex), sizeof(signature), signature) ||
                !wpk_crypto_verify(key, wpk_buf_text(text), text->size, signature))) {
        err =
            wpk_fail(diag, WPK_EACCES, "%s%s is not signed by the key that was given", path, what);
    }
    wpk_buf_fini(&hex);
    return err;
}

static wpk_err check_object(const char *path, const struct wpk_buf *object,
                            const struct wpk_buf *text, struct wpk_kernel_manifest *manifest,
                            struct wpk_diag *diag)
{
    char sha256[WPK_SHA256_HEX_SIZE];

    wpk_err err = wpk_kernel_manifest_decode(wpk_buf_text(text), text->size, manifest, diag);
    if (err != WPK_OK) {
        return err == WPK_ENOMEM || err == WPK_EMISMATCH ? err : WPK_ECORRUPT;
    }
    wpk_crypto_sha256_hex(object->data, object->size, sha256);
    if (strcmp(sha256, manifest->artifact) != 0) {
        return wpk_fail(diag, WPK_ECORRUPT, "%s is not the object that %s%s names", path, path,
                        WPK_TRUST_MANIFEST);
    }
    return WPK_OK;
}

wpk_err wpk_trust_check(const char *path, const char *public_key, const struct wpk_buf *object,
                        struct wpk_kernel_manifest *manifest, bool *found, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};

    *found = false;
    wpk_err err = read_beside(path, WPK_TRUST_MANIFEST, WPK_KERNEL_MANIFEST_SIZE_MAX, &text, NULL);
    if (err == WPK_ENOENT && public_key == NULL) {
        wpk_buf_fini(&text);
        return WPK_OK;
    }
    if (err == WPK_ENOENT) {
        err = wpk_fail(diag, WPK_EACCES, "%s is not signed: there is no %s%s", path, path,
                       WPK_TRUST_MANIFEST);
    } else if (err != WPK_OK) {
        wpk_diag_set(diag, "cannot read %s%s: %s", path, WPK_TRUST_MANIFEST, wpk_err_text(err));
        err = err == WPK_ERANGE ? WPK_ECORRUPT : err;
    }
    if (err == WPK_OK && public_key != NULL) {
        err = wpk_trust_signed(path, WPK_TRUST_MANIFEST, public_key, &text, diag);
    }
    err = err == WPK_OK ? check_object(path, object, &text, manifest, diag) : err;
    *found = err == WPK_OK;
    wpk_buf_fini(&text);
    return err;
}

wpk_err wpk_trust_freeze(const struct wpk_buf *object, int *fd, char *path, struct wpk_diag *diag)
{
    int memory = memfd_create("wpk-kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (memory < 0 || !wpk_fs_write_all(memory, object->data, object->size) ||
        fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        wpk_diag_set(diag, "cannot keep the kernel in memory: %s%s", strerror(errno),
                     wpk_fs_advice(errno));
        wpk_err err = errno == ENOMEM ? WPK_ENOMEM : WPK_ESYSTEM;
        if (memory >= 0) {
            (void)close(memory);
        }
        return err;
    }
    (void)snprintf(path, WPK_TRUST_PATH_MAX, "/proc/self/fd/%d", memory);
    *fd = memory;
    return WPK_OK;
}

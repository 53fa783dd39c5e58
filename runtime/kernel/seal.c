/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/trust.h"

#include "common/crypto.h"
#include "common/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The seal at the end of the file; ELF ignores bytes after its last section. */
struct seal {
    char magic[8];
    uint8_t sha256[WPK_SHA256_SIZE]; /* of all before the seal */
};

static const char seal_magic[8] = {'W', 'P', 'K', 'S', 'E', 'A', 'L', '1'};

_Static_assert(sizeof(struct seal) == 40, "it is written as it lies in memory");

static bool is_sealed(const struct wpk_buf *file)
{
    struct seal seal;
    uint8_t sha256[WPK_SHA256_SIZE];

    if (file->size < sizeof(seal)) {
        return false;
    }
    size_t size = file->size - sizeof(seal);
    memcpy(&seal, file->data + size, sizeof(seal));
    if (memcmp(seal.magic, seal_magic, sizeof(seal_magic)) != 0) {
        return false;
    }
    wpk_crypto_sha256(file->data, size, sha256);
    return memcmp(sha256, seal.sha256, sizeof(sha256)) == 0;
}

static wpk_err append(const char *path, const struct seal *seal, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    if (fd < 0) {
        wpk_diag_set(diag, "cannot write %s: %s%s", path, strerror(errno), wpk_fs_advice(errno));
        return wpk_fs_err(errno);
    }
    if (write(fd, seal, sizeof(*seal)) != (ssize_t)sizeof(*seal)) {
        wpk_diag_set(diag, "cannot write %s: %s%s", path, strerror(errno), wpk_fs_advice(errno));
        err = wpk_fs_err(errno);
    }
    if (close(fd) != 0 && err == WPK_OK) {
        err = wpk_fs_err(errno);
    }
    return err;
}

wpk_err wpk_seal_write(const char *path, struct wpk_diag *diag)
{
    struct wpk_buf file = {.size_max = WPK_KERNEL_SIZE_MAX};
    struct seal seal;

    wpk_err err = wpk_fs_read(path, WPK_KERNEL_SIZE_MAX, &file, diag);
    if (err == WPK_OK && !is_sealed(&file)) {
        memcpy(seal.magic, seal_magic, sizeof(seal.magic));
        wpk_crypto_sha256(file.data, file.size, seal.sha256);
        err = append(path, &seal, diag);
    }
    wpk_buf_fini(&file);
    return err;
}

wpk_err wpk_seal_read(const char *path, struct wpk_buf *out, struct wpk_diag *diag)
{
    wpk_buf_init(out, WPK_KERNEL_SIZE_MAX);
    wpk_err err = wpk_fs_read(path, WPK_KERNEL_SIZE_MAX, out, diag);
    if (err == WPK_OK && !is_sealed(out)) {
        err = wpk_fail(diag, WPK_ECORRUPT, "%s is not a kernel, or was cut short or changed", path);
    }
    if (err != WPK_OK) {
        wpk_buf_fini(out);
    }
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/db/db_file.h"

#include "common/crypto.h"
#include "common/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_SIZE 65536
#define MAGIC "SQLite format 3"
#define SEAL "wpk-export "
#define SEAL_SIZE (sizeof SEAL - 1 + WPK_SHA256_HEX_SIZE) /* with its newline */

static wpk_err fail(const char *path, struct wpk_diag *diag)
{
    wpk_err err = wpk_fs_fail(path, diag);
    return err == WPK_ENOENT ? WPK_EINVAL : err;
}

wpk_err wpk_db_make_temporary(char path[WPK_DB_TEMPORARY_SIZE], struct wpk_diag *diag)
{
    snprintf(path, WPK_DB_TEMPORARY_SIZE, "/var/tmp/wpk-export-XXXXXX");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        return fail(path, diag);
    }
    (void)close(fd);
    return WPK_OK;
}

static bool copy_bytes(FILE *from, FILE *to)
{
    char block[BLOCK_SIZE];
    size_t size;
    while ((size = fread(block, 1, sizeof block, from)) > 0) {
        if (fwrite(block, 1, size, to) != size) {
            return false;
        }
    }
    return ferror(from) == 0 && fflush(to) == 0;
}

wpk_err wpk_db_copy_stream(const char *from, const char *to, struct wpk_diag *diag)
{
    FILE *in = strcmp(from, "-") == 0 ? stdin : fopen(from, "rbe");
    if (in == NULL) {
        return fail(from, diag);
    }
    FILE *out = strcmp(to, "-") == 0 ? stdout : fopen(to, "abe");
    wpk_err err = out == NULL || !copy_bytes(in, out) ? fail(to, diag) : WPK_OK;
    if (in != stdin) {
        (void)fclose(in);
    }
    if (out != NULL && out != stdout && fclose(out) != 0 && err == WPK_OK) {
        err = fail(to, diag);
    }
    return err;
}

/* The hash of the first `size` bytes. */
static bool hash_start(FILE *file, off_t size, char hex[WPK_SHA256_HEX_SIZE])
{
    char block[BLOCK_SIZE];
    struct wpk_crypto_hash hash;
    wpk_crypto_hash_init(&hash);
    rewind(file);
    while (size > 0) {
        size_t part = size < BLOCK_SIZE ? (size_t)size : sizeof block;
        if (fread(block, 1, part, file) != part) {
            return false;
        }
        wpk_crypto_hash_add(&hash, block, part);
        size -= (off_t)part;
    }
    wpk_crypto_hash_finish_hex(&hash, hex);
    return true;
}

wpk_err wpk_db_seal(const char *path, struct wpk_diag *diag)
{
    char hex[WPK_SHA256_HEX_SIZE];
    FILE *file = fopen(path, "r+be");
    if (file == NULL) {
        return fail(path, diag);
    }
    bool sealed = fseeko(file, 0, SEEK_END) == 0 && hash_start(file, ftello(file), hex) &&
                  fseeko(file, 0, SEEK_END) == 0 && fprintf(file, SEAL "%s\n", hex) > 0 &&
                  fflush(file) == 0 && fsync(fileno(file)) == 0;
    wpk_err err = sealed ? WPK_OK : fail(path, diag);
    (void)fclose(file);
    return err;
}

static wpk_err check_seal(FILE *file, off_t size, struct wpk_diag *diag)
{
    char magic[sizeof MAGIC] = "";
    char seal[SEAL_SIZE + 1] = "";
    char hex[WPK_SHA256_HEX_SIZE];
    rewind(file);
    if (fread(magic, 1, sizeof magic, file) != sizeof magic ||
        memcmp(magic, MAGIC, sizeof magic) != 0) {
        return wpk_fail(diag, WPK_EINVAL,
                        "this is no export of Woodpecker; wpkctl export FILE writes one");
    }
    size -= (off_t)SEAL_SIZE;
    if (size <= 0 || fseeko(file, size, SEEK_SET) != 0 ||
        fread(seal, 1, SEAL_SIZE, file) != SEAL_SIZE || memcmp(seal, SEAL, sizeof SEAL - 1) != 0) {
        return wpk_fail(diag, WPK_EINVAL,
                        "the file is cut off, or something follows its end; export it again");
    }
    if (!hash_start(file, size, hex)) {
        return WPK_EIO;
    }
    if (memcmp(seal + sizeof SEAL - 1, hex, sizeof hex - 1) != 0) {
        return wpk_fail(diag, WPK_ECORRUPT, "the file was changed on its way; export it again");
    }
    return ftruncate(fileno(file), size) == 0 ? WPK_OK : WPK_EIO;
}

wpk_err wpk_db_unseal(const char *path, struct wpk_diag *diag)
{
    FILE *file = fopen(path, "r+be");
    if (file == NULL) {
        return fail(path, diag);
    }
    wpk_err err =
        fseeko(file, 0, SEEK_END) == 0 ? check_seal(file, ftello(file), diag) : fail(path, diag);
    (void)fclose(file);
    return err;
}

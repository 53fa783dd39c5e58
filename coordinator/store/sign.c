/* SPDX-License-Identifier: Apache-2.0 */
/* The key file is one line: the format's name and the seed in hexadecimal. */
#include "coordinator/store/sign.h"

#include "common/fs.h"
#include "schema/kernel_manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define KEY_PREFIX "wpk-signing-key-1 "
#define KEY_FILE_SIZE (sizeof(KEY_PREFIX) - 1 + 2 * WPK_SIGN_SEED_SIZE + 1)

struct wpk_sign {
    uint8_t key[WPK_SIGN_KEY_SIZE];
    char public_key[WPK_SIGN_PUBLIC_HEX_SIZE];
    bool is_new;
};

static wpk_err check_mode(const char *path, struct wpk_diag *diag)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return wpk_fs_err(errno); /* there is none: the caller makes one */
    }
    if ((info.st_mode & 077) != 0) {
        return wpk_fail(diag, WPK_EACCES,
                        "others may read %s (mode %03o): chmod 600 it, or remove it for a new key",
                        path, (unsigned)info.st_mode & 0777);
    }
    return WPK_OK;
}

static wpk_err read_seed(const char *path, uint8_t seed[WPK_SIGN_SEED_SIZE], struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_read(path, KEY_FILE_SIZE, &text, diag);
    if (err == WPK_OK && text.size == KEY_FILE_SIZE && text.data[text.size - 1] == '\n') {
        wpk_buf_truncate(&text, text.size - 1);
    }
    if (err == WPK_OK &&
        (!wpk_begins(wpk_buf_text(&text), KEY_PREFIX) ||
         !wpk_crypto_unhex(wpk_buf_text(&text) + strlen(KEY_PREFIX), WPK_SIGN_SEED_SIZE, seed))) {
        err = WPK_ERANGE;
    }
    if (err == WPK_ERANGE) {
        err = wpk_fail(diag, WPK_ECORRUPT, "%s is no signing key", path);
    }
    if (text.data != NULL) {
        wpk_crypto_wipe(text.data, text.capacity);
    }
    wpk_buf_fini(&text);
    return err;
}

static wpk_err make_seed(const char *path, uint8_t seed[WPK_SIGN_SEED_SIZE], struct wpk_diag *diag)
{
    char text[KEY_FILE_SIZE + 1];
    char hex[2 * WPK_SIGN_SEED_SIZE + 1];
    wpk_crypto_random(seed, WPK_SIGN_SEED_SIZE);
    wpk_crypto_hex(seed, WPK_SIGN_SEED_SIZE, hex);
    snprintf(text, sizeof text, "%s%s\n", KEY_PREFIX, hex);
    wpk_err err = wpk_fs_write(path, text, KEY_FILE_SIZE, 0600, diag);
    wpk_crypto_wipe(text, sizeof text);
    wpk_crypto_wipe(hex, sizeof hex);
    return err;
}

wpk_err wpk_sign_open(const char *data_dir, bool make, struct wpk_sign **out, struct wpk_diag *diag)
{
    uint8_t seed[WPK_SIGN_SEED_SIZE];
    uint8_t public_key[WPK_SIGN_PUBLIC_SIZE];
    struct wpk_buf path = {0};
    struct wpk_sign *sign = WPK_DEMAND(calloc(1, sizeof *sign));
    wpk_buf_printf(&path, "%s/%s", data_dir, WPK_SIGN_FILE);
    wpk_err err = wpk_buf_status(&path);
    if (err == WPK_OK) {
        err = check_mode(path.data, diag);
        if (err == WPK_OK) {
            err = read_seed(path.data, seed, diag);
        } else if (err == WPK_ENOENT && make) {
            err = make_seed(path.data, seed, diag);
            sign->is_new = true;
        }
    }
    if (err == WPK_OK) {
        wpk_crypto_sign_key(seed, sign->key, public_key);
        wpk_crypto_hex(public_key, sizeof public_key, sign->public_key);
        *out = sign;
    } else {
        free(sign);
    }
    wpk_crypto_wipe(seed, sizeof seed);
    wpk_buf_fini(&path);
    return err;
}

bool wpk_sign_is_new(const struct wpk_sign *sign)
{
    return sign->is_new;
}

void wpk_sign_close(struct wpk_sign *sign)
{
    if (sign != NULL) {
        wpk_crypto_wipe(sign, sizeof *sign);
        free(sign);
    }
}

const char *wpk_sign_public_key(const struct wpk_sign *sign)
{
    return sign->public_key;
}

void wpk_sign_text(const struct wpk_sign *sign, const void *text, size_t size,
                   char out[WPK_SIGNATURE_HEX_SIZE])
{
    uint8_t signature[WPK_SIGNATURE_SIZE];
    wpk_crypto_sign(sign->key, text, size, signature);
    wpk_crypto_hex(signature, sizeof signature, out);
}

static void fill_manifest(const struct wpk_effect *effect, uint64_t wall_ns,
                          struct wpk_kernel_manifest *out)
{
    const struct wpk_final_entry *own = effect->own;
    const struct wpk_search_key *key = &effect->search->key;
    *out = (struct wpk_kernel_manifest){
        .threads = own == effect->plain ? 1 : key->threads,
        .median_ns = own->timing.median_ns,
        .min_ns = own->timing.min_ns,
        .mad_ns = own->timing.mad_ns,
        .constants_bytes = own->trial.constants_bytes,
        .error_max = own->trial.error_max,
        .error_tolerance = own->trial.error_tolerance,
        .of_rms = own->trial.of_rms,
        .times_direct = own->trial.times_direct,
        .accuracy = effect->search->accuracy,
        .conditions = key->conditions,
        .created_wall_ns = wall_ns,
    };
    snprintf(out->fingerprint, sizeof out->fingerprint, "%s", key->fingerprint);
    snprintf(out->layouts, sizeof out->layouts, "%s", key->layouts);
    snprintf(out->device, sizeof out->device, "%s", key->device_class);
    snprintf(out->environment, sizeof out->environment, "%s", key->environment);
    snprintf(out->provider, sizeof out->provider, "%s", own->provider);
    snprintf(out->artifact, sizeof out->artifact, "%s", own->artifact_sha256);
    memcpy(out->verified_by, own->verified_by, sizeof out->verified_by);
}

wpk_err wpk_sign_kernel(const struct wpk_sign *sign, const struct wpk_effect *effect,
                        uint64_t wall_ns, struct wpk_buf *manifest,
                        char signature[WPK_SIGNATURE_HEX_SIZE])
{
    struct wpk_kernel_manifest content;
    signature[0] = '\0';
    if (effect->own == NULL ||
        !wpk_crypto_hex_valid(effect->own->artifact_sha256, WPK_SHA256_SIZE)) {
        return WPK_OK;
    }
    fill_manifest(effect, wall_ns, &content);
    wpk_err err = wpk_kernel_manifest_encode(&content, manifest);
    if (err == WPK_OK) {
        wpk_sign_text(sign, wpk_buf_text(manifest), manifest->size, signature);
    }
    return err;
}

void wpk_sign_record(const struct wpk_sign *sign, struct wpk_store *store,
                     const struct wpk_effect *effect, uint64_t kernel_id)
{
    struct wpk_buf manifest = {0};
    struct wpk_diag diag = {0};
    char signature[WPK_SIGNATURE_HEX_SIZE];
    if (sign == NULL) {
        return;
    }
    wpk_err err = wpk_sign_kernel(sign, effect, wpk_store_wall_ns(store), &manifest, signature);
    if (err == WPK_OK) {
        wpk_store_run(store, "UPDATE kernel SET manifest = ?, signature = ? WHERE id = ?", "tti",
                      wpk_buf_text(&manifest), signature, (int64_t)kernel_id);
    } else {
        wpk_diag_set(&diag, "a kernel's manifest: %s", wpk_err_text(err));
        wpk_store_fail(store, err, &diag);
    }
    wpk_buf_fini(&manifest);
}

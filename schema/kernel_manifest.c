/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/kernel_manifest.h"

#include "common/clock.h"
#include "common/crypto.h"
#include "common/json.h"

#define THREADS_MAX 1024

wpk_err wpk_kernel_manifest_encode(const struct wpk_kernel_manifest *manifest, struct wpk_buf *out)
{
    char created[WPK_CLOCK_TEXT_SIZE];
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    WPK_ASSERT(wpk_crypto_hex_valid(manifest->artifact, WPK_SHA256_SIZE));
    wpk_clock_format(manifest->created_wall_ns, created);
    wpk_json_put_int(w, "version", WPK_KERNEL_MANIFEST_VERSION);
    wpk_json_put_text(w, "fingerprint", manifest->fingerprint);
    wpk_json_put_text(w, "layouts", manifest->layouts);
    wpk_json_put_int(w, "threads", manifest->threads);
    wpk_json_put_text(w, "device", manifest->device);
    wpk_json_put_text(w, "environment", manifest->environment);
    wpk_json_put_text(w, "provider", manifest->provider);
    wpk_json_put_text(w, "artifact", manifest->artifact);
    wpk_json_begin_object(w, "time_ns");
    wpk_json_put_int(w, "median", (int64_t)manifest->median_ns);
    wpk_json_put_int(w, "min", (int64_t)manifest->min_ns);
    wpk_json_put_int(w, "mad", (int64_t)manifest->mad_ns);
    wpk_json_end(w);
    wpk_json_put_int(w, "constants_bytes", (int64_t)manifest->constants_bytes);
    wpk_accuracy_put(w, "accuracy", manifest->accuracy);
    wpk_json_put_text(w, "conditions", wpk_conditions_name(manifest->conditions));
    wpk_json_begin_object(w, "verified");
    wpk_json_put_real(w, "max_error", manifest->error_max);
    wpk_json_put_real(w, "tolerance", manifest->error_tolerance);
    wpk_json_put_real(w, "of_rms", manifest->of_rms);
    wpk_json_put_real(w, "times_direct", manifest->times_direct);
    wpk_json_put_text(w, "by", manifest->verified_by);
    wpk_json_end(w);
    wpk_json_put_text(w, "created", created);
    wpk_err err = wpk_json_print(w, false, out);
    wpk_json_writer_free(w);
    return err;
}

static void get_hash(struct wpk_json_reader *r, const char *key, char out[WPK_ID_MAX])
{
    wpk_json_get_copy(r, key, out, WPK_ID_MAX);
    if (wpk_json_status(r) == WPK_OK && !wpk_crypto_hex_valid(out, WPK_SHA256_SIZE)) {
        wpk_json_fail(r, key, WPK_EINVAL, "not a SHA-256 in hexadecimal");
    }
}

static uint64_t get_count(struct wpk_json_reader *r, const char *key)
{
    return (uint64_t)wpk_json_get_int(r, key, 0, WPK_JSON_INT_MAX);
}

static void get_created(struct wpk_json_reader *r, struct wpk_kernel_manifest *m)
{
    const char *text = wpk_json_get_text(r, "created", WPK_CLOCK_TEXT_SIZE);
    if (wpk_json_status(r) == WPK_OK && wpk_clock_parse(text, &m->created_wall_ns) != WPK_OK) {
        wpk_json_fail(r, "created", WPK_EINVAL, "not a time of RFC 3339");
    }
}

static void get_conditions(struct wpk_json_reader *r, struct wpk_kernel_manifest *m)
{
    const char *text = wpk_json_get_text(r, "conditions", 32);
    if (wpk_json_status(r) == WPK_OK && wpk_conditions_parse(text, &m->conditions) != WPK_OK) {
        wpk_json_fail(r, "conditions", WPK_EINVAL, "must be warm, cold-constants or cold");
    }
}

static void get_manifest(struct wpk_json_reader *r, struct wpk_kernel_manifest *m)
{
    get_hash(r, "fingerprint", m->fingerprint);
    wpk_json_get_copy(r, "layouts", m->layouts, sizeof(m->layouts));
    m->threads = (int)wpk_json_get_int(r, "threads", 1, THREADS_MAX);
    wpk_json_get_copy(r, "device", m->device, sizeof(m->device));
    wpk_json_get_copy(r, "environment", m->environment, sizeof(m->environment));
    wpk_json_get_copy(r, "provider", m->provider, sizeof(m->provider));
    get_hash(r, "artifact", m->artifact);
    wpk_json_enter(r, "time_ns");
    m->median_ns = get_count(r, "median");
    m->min_ns = get_count(r, "min");
    m->mad_ns = get_count(r, "mad");
    wpk_json_leave(r);
    m->constants_bytes = get_count(r, "constants_bytes");
    m->accuracy = wpk_accuracy_get(r, "accuracy");
    get_conditions(r, m);
    wpk_json_enter(r, "verified");
    m->error_max = wpk_json_get_real(r, "max_error", 0, 1e300);
    m->error_tolerance = wpk_json_get_real(r, "tolerance", 0, 1e300);
    m->of_rms = wpk_json_get_real(r, "of_rms", 0, 1e300);
    m->times_direct = wpk_json_get_real(r, "times_direct", -1, 1e300);
    wpk_json_get_copy(r, "by", m->verified_by, sizeof(m->verified_by));
    wpk_json_leave(r);
    get_created(r, m);
}

wpk_err wpk_kernel_manifest_decode(const char *text, size_t size, struct wpk_kernel_manifest *out,
                                   struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    struct wpk_kernel_manifest manifest = {0};

    wpk_err err = wpk_json_open(text, size, WPK_KERNEL_MANIFEST_SIZE_MAX, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    int64_t version = wpk_json_get_int(r, "version", 1, WPK_JSON_INT_MAX);
    if (wpk_json_status(r) == WPK_OK && version != WPK_KERNEL_MANIFEST_VERSION) {
        wpk_json_fail(r, "version", WPK_EMISMATCH, "the manifest has version %lld, not %d",
                      (long long)version, WPK_KERNEL_MANIFEST_VERSION);
    }
    get_manifest(r, &manifest);
    err = wpk_json_status(r);
    if (err == WPK_OK) {
        *out = manifest;
    }
    wpk_json_close(r);
    return err;
}

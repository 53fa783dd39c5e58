/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/kernel_manifest.h"

#include "common/clock.h"
#include "common/crypto.h"

#define THREADS_MAX 1024
#define REAL_MAX 1e300

static const char *const conditions_names[] = {WPK_CONDITIONS_LIST(WPK_LIST_TEXT)};
static const struct wpk_field time_fields[] = {
    {WPK_FIELD_COUNT("median", kernel_manifest, median_ns)},
    {WPK_FIELD_COUNT("min", kernel_manifest, min_ns)},
    {WPK_FIELD_COUNT("mad", kernel_manifest, mad_ns)},
    {WPK_FIELD_END},
};

static const struct wpk_field verified_fields[] = {
    {WPK_FIELD_REAL("max_error", kernel_manifest, error_max, 0, REAL_MAX)},
    {WPK_FIELD_REAL("tolerance", kernel_manifest, error_tolerance, 0, REAL_MAX)},
    {WPK_FIELD_REAL("of_rms", kernel_manifest, of_rms, 0, REAL_MAX)},
    {WPK_FIELD_REAL("times_direct", kernel_manifest, times_direct, -1, REAL_MAX)},
    {WPK_FIELD(COPY, "by", kernel_manifest, verified_by)},
    {WPK_FIELD_END},
};

static void get_created(struct wpk_json_reader *r, const char *key, void *member)
{
    const char *text = wpk_json_get_text(r, key, WPK_CLOCK_TEXT_SIZE);
    if (wpk_json_status(r) == WPK_OK && wpk_clock_parse(text, member) != WPK_OK) {
        wpk_json_fail(r, key, WPK_EINVAL, "not a time of RFC 3339");
    }
}

static void put_created(struct wpk_json_writer *w, const char *key, const void *member)
{
    wpk_json_put_wall(w, key, *(const uint64_t *)member);
}

static const struct wpk_field manifest_fields[] = {
    {WPK_FIELD_VERSION(WPK_KERNEL_MANIFEST_VERSION, "another release signed the manifest")},
    {WPK_FIELD(HASH, "fingerprint", kernel_manifest, fingerprint)},
    {WPK_FIELD(COPY, "layouts", kernel_manifest, layouts)},
    {WPK_FIELD_INT("threads", kernel_manifest, threads, 1, THREADS_MAX)},
    {WPK_FIELD(COPY, "device", kernel_manifest, device)},
    {WPK_FIELD(COPY, "environment", kernel_manifest, environment)},
    {WPK_FIELD(COPY, "provider", kernel_manifest, provider)},
    {WPK_FIELD(HASH, "artifact", kernel_manifest, artifact)},
    {WPK_FIELD_PART("time_ns", time_fields)},
    {WPK_FIELD_COUNT("constants_bytes", kernel_manifest, constants_bytes)},
    {WPK_FIELD_CUSTOM("accuracy", kernel_manifest, accuracy, wpk_accuracy_put, wpk_accuracy_get)},
    {WPK_FIELD_CHOICE("conditions", kernel_manifest, conditions, conditions_names)},
    {WPK_FIELD_PART("verified", verified_fields)},
    {WPK_FIELD_CUSTOM("created", kernel_manifest, created_wall_ns, put_created, get_created)},
    {WPK_FIELD_END},
};

wpk_err wpk_kernel_manifest_encode(const struct wpk_kernel_manifest *manifest, struct wpk_buf *out)
{
    WPK_ASSERT(wpk_crypto_hex_valid(manifest->artifact, WPK_SHA256_SIZE));
    return wpk_fields_encode(manifest_fields, manifest, out);
}

wpk_err wpk_kernel_manifest_decode(const char *text, size_t size, struct wpk_kernel_manifest *out,
                                   struct wpk_diag *diag)
{
    const struct wpk_fields_text from = {text, size, WPK_KERNEL_MANIFEST_SIZE_MAX, NULL, true};
    struct wpk_kernel_manifest manifest = {0};
    wpk_err err = wpk_fields_decode(&from, manifest_fields, &manifest, diag);
    if (err == WPK_OK) {
        *out = manifest;
    }
    return err;
}

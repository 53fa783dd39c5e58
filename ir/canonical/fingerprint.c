/* SPDX-License-Identifier: Apache-2.0 */
/* The hashed text: a version, then the canonical form as wpk_program_print shows it.
 *
 *     wpk-program-2
 *     input t0 f32[64,128]
 *     constant t1 f32[128,32]
 *     output t2 f32[64,32]
 *     t2[a0,a1] = sum.f32(a2:128) t0[a0,a2] * t1[a2,a1]
 *
 * The family's text has 0 in place of extents, and no borders. Changing anything in the canonical
 * form or in the printer changes every fingerprint: raise the version. */
#include "common/buf.h"
#include "common/crypto.h"
#include "common/json.h"
#include "ir/canonical/canonical.h"
#include "ir/notation/notation.h"

#include <inttypes.h>
#include <string.h>

#define VERSION_LINE "wpk-program-2\n"

static wpk_err hash_program(const struct wpk_program *program, char out[WPK_FINGERPRINT_SIZE])
{
    struct wpk_buf text = {0};
    wpk_buf_append_text(&text, VERSION_LINE);
    wpk_err err = wpk_program_print(program, &text);
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(wpk_buf_text(&text), text.size, out);
    }
    wpk_buf_fini(&text);
    return err;
}

static wpk_err hash_constants(const struct wpk_program *program, char out[WPK_FINGERPRINT_SIZE])
{
    struct wpk_buf text = {0};
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        for (int d = 0; d < tensor->rank && tensor->role == WPK_ROLE_CONSTANT; d++) {
            wpk_buf_printf(&text, "%c%" PRId64, d > 0 ? ',' : ';', tensor->extent[d]);
        }
    }
    wpk_crypto_sha256_hex(wpk_buf_text(&text), text.size, out);
    wpk_err err = wpk_buf_status(&text);
    wpk_buf_fini(&text);
    return err;
}

/* Write the extents of all axes down, and leave 0 in their place and that of borders. */
static wpk_err take_extents(struct wpk_program *program, char out[WPK_EXTENTS_SIZE])
{
    struct wpk_buf text;
    int count = 0;
    wpk_buf_init(&text, WPK_EXTENTS_SIZE - 1);
    for (int s = 0; s < program->stage_count; s++) {
        struct wpk_stage *stage = &program->stages[s];
        for (int a = 0; a < stage->axis_count; a++) {
            if (count++ < WPK_EXTENTS_MAX) {
                wpk_buf_printf(&text, "%s%" PRId64, text.size > 0 ? "," : "",
                               stage->axes[a].extent);
            }
            stage->axes[a].extent = 0;
        }
    }
    for (int t = 0; t < program->tensor_count; t++) {
        struct wpk_tensor *tensor = &program->tensors[t];
        for (int d = 0; d < tensor->rank && tensor->role != WPK_ROLE_LITERAL; d++) {
            tensor->extent[d] = 0;
            tensor->pad_before[d] = 0;
            tensor->pad_after[d] = 0;
        }
    }
    wpk_err err = wpk_buf_status(&text);
    if (err == WPK_OK) {
        memcpy(out, wpk_buf_text(&text), text.size + 1);
    }
    wpk_buf_fini(&text);
    return err;
}

wpk_err wpk_program_identity(const struct wpk_program *program, struct wpk_program *canonical,
                             struct wpk_binding *binding, struct wpk_fingerprint *out)
{
    struct wpk_program family;
    wpk_err err = wpk_program_canonical_family(program, canonical, binding, &family);
    if (err != WPK_OK) {
        return err;
    }
    err = hash_program(canonical, out->exact);
    err = err == WPK_OK ? hash_constants(&family, out->constants) : err;
    err = err == WPK_OK ? take_extents(&family, out->extents) : err;
    err = err == WPK_OK ? hash_program(&family, out->family) : err;
    wpk_program_fini(&family);
    if (err != WPK_OK) {
        wpk_program_fini(canonical);
    }
    return err;
}

wpk_err wpk_fingerprint(const struct wpk_program *program, struct wpk_fingerprint *out)
{
    struct wpk_program canonical;
    wpk_err err = wpk_program_identity(program, &canonical, NULL, out);
    if (err == WPK_OK) {
        wpk_program_fini(&canonical);
    }
    return err;
}

static void put_tensors(struct wpk_json_writer *w, const char *key,
                        const struct wpk_binding *binding, enum wpk_role role)
{
    wpk_json_begin_array(w, key);
    for (int i = 0; i < binding->count; i++) {
        if (binding->tensor[i].role == role) {
            wpk_json_begin_array(w, NULL);
            wpk_json_put_text(w, NULL, binding->tensor[i].name);
            wpk_json_put_text(w, NULL, binding->tensor[i].canonical);
            wpk_json_end(w);
        }
    }
    wpk_json_end(w);
}

wpk_err wpk_binding_print(const struct wpk_binding *binding, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    put_tensors(w, "inputs", binding, WPK_ROLE_INPUT);
    put_tensors(w, "constants", binding, WPK_ROLE_CONSTANT);
    put_tensors(w, "outputs", binding, WPK_ROLE_OUTPUT);
    return wpk_json_finish(w, false, out);
}

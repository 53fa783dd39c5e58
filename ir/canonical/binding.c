/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"
#include "ir/canonical/canonical.h"

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
    wpk_err err = wpk_json_print(w, false, out);
    wpk_json_writer_free(w);
    return err;
}

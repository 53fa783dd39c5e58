/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/op_identity.h"

#include "ir/cost.h"
#include "ir/notation/notation.h"

#include <stdlib.h>
#include <string.h>

static wpk_err print_binding(const struct wpk_binding *binding, char **out)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_binding_print(binding, &text);
    if (err == WPK_OK) {
        err = wpk_buf_take(&text, out, NULL);
    }
    wpk_buf_fini(&text);
    return err;
}

static wpk_err print_op(const struct wpk_program *program, char **out)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_program_print(program, &text);
    if (err == WPK_OK) {
        err = wpk_buf_take(&text, out, NULL);
    }
    wpk_buf_fini(&text);
    return err;
}

wpk_err wpk_op_identity_of(const struct wpk_program *asked, struct wpk_op_identity *out,
                           struct wpk_diag *diag)
{
    struct wpk_binding binding;
    struct wpk_cost cost = {0};
    memset(out, 0, sizeof *out);
    wpk_err err = wpk_program_identity(asked, &out->program, &binding, &out->fingerprint);
    if (err == WPK_OK) {
        err = print_op(&out->program, &out->op);
    }
    if (err == WPK_OK) {
        err = print_binding(&binding, &out->binding);
    }
    if (err != WPK_OK) {
        wpk_diag_set(diag, "the operator has no canonical form: %s", wpk_err_text(err));
        wpk_op_identity_fini(out);
        return err;
    }
    wpk_cost(&out->program, &cost);
    out->flops = cost.flops;
    out->bytes = cost.bytes_min;
    return WPK_OK;
}

void wpk_op_identity_fini(struct wpk_op_identity *identity)
{
    wpk_program_fini(&identity->program);
    free(identity->op);
    free(identity->binding);
    memset(identity, 0, sizeof *identity);
}

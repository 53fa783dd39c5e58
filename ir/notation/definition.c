/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/notation/definition.h"

#include "ir/notation/notation.h"

#include <stdio.h>

static wpk_err declare(const struct wpk_job *job, int op, struct wpk_declaration *declarations,
                       struct wpk_diag *diag)
{
    const struct wpk_job_op *raw = &job->ops[op];

    for (int i = 0; i < raw->tensor_count; i++) {
        /* The parser keeps what it does not know of. */
        declarations[i] = (struct wpk_declaration){.name = raw->tensors[i].name,
                                                   .constant = raw->tensors[i].constant};
        wpk_err err = wpk_notation_parse_type(raw->tensors[i].type, &declarations[i], diag);
        if (err != WPK_OK) {
            char member[WPK_NAME_MAX + 16];
            snprintf(member, sizeof(member), "tensors.%s", raw->tensors[i].name);
            wpk_job_locate(job, op, member, diag);
            return err;
        }
    }
    return WPK_OK;
}

wpk_err wpk_job_op_program(const struct wpk_job *job, int op, struct wpk_program *out,
                           struct wpk_diag *diag)
{
    struct wpk_declaration declarations[WPK_JOB_TENSORS_MAX];
    /* The parsers write into an empty diag only; what is found is then moved into the file. */
    struct wpk_diag found = {0};
    wpk_err err;

    WPK_ASSERT(op >= 0 && op < job->op_count);
    const struct wpk_job_op *raw = &job->ops[op];
    WPK_ASSERT((raw->notation != NULL) != (raw->shorthand != NULL));
    if (raw->notation != NULL) {
        err = declare(job, op, declarations, &found);
        if (err == WPK_OK) {
            err = wpk_notation_parse(raw->notation, declarations, raw->tensor_count, out, &found);
            if (err != WPK_OK) {
                wpk_job_locate(job, op, "op", &found);
            }
        }
    } else {
        err = wpk_shorthand_expand(raw->shorthand, out, &found);
        if (err != WPK_OK) {
            wpk_job_locate(job, op, "op", &found);
        }
    }
    if (err != WPK_OK && diag != NULL && diag->text[0] == '\0') {
        *diag = found;
    }
    return err;
}

wpk_err wpk_job_check(const struct wpk_job *job, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;

    for (int i = 0; i < job->op_count && err == WPK_OK; i++) {
        struct wpk_program program = {0};
        err = wpk_job_op_program(job, i, &program, diag);
        if (err == WPK_OK) {
            wpk_program_fini(&program);
        }
    }
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl operators: list the ONNX operators that models may have. */
#include "client/command.h"
#include "client/output.h"
#include "common/json.h"
#include "model/operator/operator.h"

static const char *domain_name(const char *domain)
{
    return domain[0] != '\0' ? domain : "ai.onnx";
}

static wpk_err print_json(void)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    const char *domain = "";
    const struct wpk_operator *op;

    wpk_json_begin_array(w, "operators");
    for (int i = 0; (op = wpk_operator_at(i, &domain)) != NULL; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "domain", domain_name(domain));
        wpk_json_put_text(w, "name", op->name);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    return wpk_json_puts(w, false);
}

static wpk_err print_table(const struct wpk_output *output)
{
    static struct wpk_text_table table; /* large, and there is one per process */
    struct wpk_arena arena = {0};
    const char *domain = "";
    const struct wpk_operator *op;

    table = (struct wpk_text_table){.arena = &arena, .column_count = 2};
    wpk_text_table_add(&table, (const char *const[]){"domain", "operator"});
    for (int i = 0; (op = wpk_operator_at(i, &domain)) != NULL; i++) {
        wpk_text_table_add(&table, (const char *const[]){domain_name(domain), op->name});
    }
    wpk_err err = wpk_output_puts_table(output, &table);
    wpk_arena_fini(&arena);
    return err;
}

enum wpk_exit wpk_command_operators(struct wpk_invocation *call)
{
    struct wpk_output output = {0};
    const struct wpk_option options[] = {WPK_OUTPUT_OPTION_ROWS(output), WPK_ARGS_END};

    if (!wpk_command_begin(call, options, 0, 0)) {
        return call->status;
    }
    wpk_err err = wpk_output_check(&output, &call->diag);
    err = err != WPK_OK ? err : output.json ? print_json() : print_table(&output);
    return wpk_command_end(call, err);
}

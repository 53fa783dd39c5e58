/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl strategies: list the strategies and their options. */
#include "client/command.h"
#include "client/output.h"
#include "common/json.h"
#include "search/strategy/strategy.h"

#include <stdio.h>

static void put_json(struct wpk_json_writer *w)
{
    wpk_json_begin_array(w, "strategies");
    for (int i = 0; wpk_strategy_at(i) != NULL; i++) {
        const struct wpk_strategy_class *class = wpk_strategy_at(i);
        const struct wpk_strategy_option *option = class->options;
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", class->name);
        wpk_json_put_text(w, "summary", class->summary);
        wpk_json_begin_array(w, "options");
        for (int k = 0; k < class->option_count; k++) {
            wpk_json_begin_object(w, NULL);
            wpk_json_put_text(w, "name", option[k].name);
            wpk_json_put_text(w, "help", option[k].help);
            wpk_json_put_real(w, "least", option[k].least);
            wpk_json_put_real(w, "most", option[k].most);
            wpk_json_put_real(w, "default", option[k].initial);
            wpk_json_put_bool(w, "integer", option[k].whole);
            wpk_json_end(w);
        }
        wpk_json_end(w);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void add_rows(struct wpk_text_table *table)
{
    wpk_text_table_add(table, (const char *const[]){"strategy", "default", "range", "what"});
    for (int i = 0; wpk_strategy_at(i) != NULL; i++) {
        const struct wpk_strategy_class *class = wpk_strategy_at(i);
        const struct wpk_strategy_option *option = class->options;
        wpk_text_table_add(table, (const char *const[]){class->name, "", "", class->summary});
        for (int k = 0; k < class->option_count; k++) {
            char name[64], initial[32], range[64];
            snprintf(name, sizeof(name), "  %s.%s", class->name, option[k].name);
            snprintf(initial, sizeof(initial), "%g", option[k].initial);
            snprintf(range, sizeof(range), "%g..%g", option[k].least, option[k].most);
            wpk_text_table_add(table, (const char *const[]){name, initial, range, option[k].help});
        }
    }
}

static wpk_err print_table(const struct wpk_output *output)
{
    static struct wpk_text_table table; /* large, and there is one per process */
    struct wpk_arena arena = {0};

    table = (struct wpk_text_table){
        .arena = &arena, .column_count = 4, .right = {[1] = true, [2] = true}};
    add_rows(&table);
    wpk_err err = wpk_output_puts_table(output, &table);
    wpk_arena_fini(&arena);
    return err;
}

enum wpk_exit wpk_command_strategies(struct wpk_invocation *call)
{
    struct wpk_output output = {0};
    const struct wpk_option options[] = {WPK_OUTPUT_OPTION_ROWS(output), WPK_ARGS_END};

    if (!wpk_command_begin(call, options, 0, 0)) {
        return call->status;
    }
    wpk_err err = wpk_output_check(&output, &call->diag);
    if (err == WPK_OK && output.json) {
        struct wpk_json_writer *w = wpk_json_writer_new_object();
        put_json(w);
        err = wpk_json_puts(w, false);
    } else if (err == WPK_OK) {
        err = print_table(&output);
    }
    return wpk_command_end(call, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/search_table.h"

#include "common/fs.h"
#include "ir/notation/notation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const struct wpk_diag *diag)
{
    fprintf(stderr, "bench-search: %s: %s\n", what, diag->text);
    exit(2);
}

void bench_search_table_derive(struct bench_search_table *table)
{
    struct wpk_diag diag = {0};
    struct wpk_program program = {0};
    struct wpk_space_options options = {
        .layouts = strcmp(table->layouts, "any") == 0 ? "any" : "fixed",
        .threads = table->threads,
        .back_ends = 1U << WPK_BACK_END_halide,
    };
    wpk_err err = WPK_OK;
    if (table->device[0] == '\0') { /* of its class: the table is read on other machines */
        err = wpk_device_probe(WPK_CPU_FLAGS_ALL, &options.device);
        wpk_device_class(&options.device, table->device, sizeof(table->device));
    }
    err = err == WPK_OK ? wpk_device_of_class(table->device, &options.device) : err;
    err = err == WPK_OK ? wpk_program_parse(table->op, &program, &diag) : err;
    err = err == WPK_OK ? wpk_space_derive(&program, &options, &table->space, &diag) : err;
    wpk_program_fini(&program);
    for (int i = 0; i < table->pin_count && err == WPK_OK; i++) {
        char name[WPK_GENE_NAME_MAX];
        const char *equals = strchr(table->pin[i], '=');
        snprintf(name, sizeof(name), "%.*s", (int)(equals - table->pin[i]), table->pin[i]);
        err = wpk_space_pin(&table->space, name, equals + 1, &diag);
    }
    if (err != WPK_OK) {
        fail(wpk_err_text(err), &diag);
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct bench_search_row *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static void read_word(struct bench_search_table *table, char *line)
{
    char *value = strchr(line, ' ');
    if (value == NULL) {
        return;
    }
    *value++ = '\0';
    if (strcmp(line, "op") == 0) {
        for (char *at = value; *at != '\0'; at++) {
            *at = *at == '|' && at[1] == '|' ? '\n' : *at; /* lines are joined by "||" */
            if (*at == '\n') {
                memmove(at + 1, at + 2, strlen(at + 2) + 1);
            }
        }
        table->op = value;
    } else if (strcmp(line, "layouts") == 0) {
        snprintf(table->layouts, sizeof(table->layouts), "%s", value);
    } else if (strcmp(line, "device") == 0) {
        snprintf(table->device, sizeof(table->device), "%s", value);
    } else if (strcmp(line, "threads") == 0) {
        table->threads = (int)strtol(value, NULL, 10);
    } else if (strcmp(line, "pin") == 0 && table->pin_count < BENCH_PINS_MAX) {
        table->pin[table->pin_count++] = value;
    }
}

void bench_search_table_read(const char *path, struct bench_search_table *table)
{
    struct wpk_buf text = {0};
    bool rows = false;
    if (wpk_fs_read(path, 64 << 20, &text, NULL) != WPK_OK) {
        fprintf(stderr, "bench-search: %s cannot be read\n", path);
        exit(2);
    }
    table->text = strdup(wpk_buf_text(&text));
    wpk_buf_fini(&text);
    table->threads = 1;
    table->best = HUGE_VAL;
    char *rest = table->text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (!rows) {
            rows = strcmp(line, "rows") == 0;
            read_word(table, line);
        } else if (table->row_count < BENCH_ROWS_MAX && *line != '\0') {
            struct bench_search_row *row = &table->row[table->row_count++];
            char *end = NULL;
            row->key = strtoull(line, &end, 16);
            row->ns = strtod(end, NULL);
            table->best = row->ns > 0 ? fmin(table->best, row->ns) : table->best;
        }
    }
    qsort(table->row, (size_t)table->row_count, sizeof(table->row[0]), compare_rows);
    bench_search_table_derive(table);
}

void bench_search_table_fini(struct bench_search_table *table)
{
    wpk_space_fini(&table->space);
    free(table->text);
}

double bench_search_table_time(const struct bench_search_table *table,
                               const struct wpk_candidate *candidate)
{
    const struct bench_search_row wanted = {.key = wpk_space_key(&table->space, candidate)};
    const struct bench_search_row *found =
        bsearch(&wanted, table->row, (size_t)table->row_count, sizeof(wanted), compare_rows);
    if (found == NULL) {
        fprintf(stderr, "bench-search: a candidate has no row: the table is of another space\n");
        exit(2);
    }
    return found->ns;
}

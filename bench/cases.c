/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cases.h"

#include "common/fs.h"
#include "common/json.h"
#include "search/back_end.h"

#include <stdlib.h>
#include <string.h>

#define FILE_SIZE_MAX ((size_t)16 << 20) /* schedules stand in what wpkctl prints */
#define THREADS_MAX 1024

static const char *const layouts_names[] = {"any", "fixed"};

static bool is_wanted(const char *only, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = only; at != NULL && *at != '\0';) {
        const size_t part = strcspn(at, ",");
        if (part == length && strncmp(at, name, length) == 0) {
            return true;
        }
        at += part + (at[part] == ',' ? 1 : 0);
    }
    return only == NULL;
}

/* *out is NULL when the selection leaves the operator out. */
static wpk_err add_row(struct bench_table *table, const struct bench_selection *selection,
                       const struct bench_op *op, enum bench_layouts layouts,
                       struct bench_row **out)
{
    *out = NULL;
    if (!is_wanted(selection->only, op->name)) {
        return WPK_OK;
    }
    if (table->row_count == BENCH_ROWS_MAX) {
        return WPK_ENOSPC;
    }
    *out = &table->rows[table->row_count++];
    (*out)->what.op = *op;
    (*out)->what.layouts = layouts;
    return WPK_OK;
}

wpk_err bench_cases_add_all(struct bench_table *table, const struct bench_selection *selection,
                            enum bench_layouts layouts, int threads)
{
    for (int i = 0; i < selection->ops->count; i++) {
        struct bench_row *row = NULL;
        const wpk_err err = add_row(table, selection, &selection->ops->op[i], layouts, &row);
        if (err != WPK_OK) {
            return err;
        }
        if (row != NULL) {
            row->what.threads = threads;
        }
    }
    return WPK_OK;
}

/* Adds a row for the operator that member `key` of the object we are at names. */
static struct bench_row *read_row(struct wpk_json_reader *reader, const char *key,
                                  struct bench_table *table,
                                  const struct bench_selection *selection,
                                  enum bench_layouts layouts)
{
    const char *name = wpk_json_get_text(reader, key, BENCH_NAME_MAX - 1);
    const struct bench_op *op = bench_ops_find(selection->ops, name);
    struct bench_row *row = NULL;
    if (wpk_json_status(reader) != WPK_OK) {
        return NULL;
    }
    if (op == NULL) {
        wpk_json_fail(reader, key, WPK_ENOENT, "no operator named %s", name);
    } else if (add_row(table, selection, op, layouts, &row) != WPK_OK) {
        wpk_json_fail(reader, NULL, WPK_ENOSPC, "more than %d cases", BENCH_ROWS_MAX);
    }
    return row;
}

static void read_optional(struct wpk_json_reader *reader, const char *key, char *out)
{
    if (wpk_json_kind_of(reader, key) == WPK_JSON_STRING) {
        wpk_json_get_copy(reader, key, out, BENCH_PATH_MAX);
    }
}

static void read_cases(struct wpk_json_reader *reader, struct bench_table *table,
                       const struct bench_selection *selection)
{
    wpk_json_enter_array(reader, NULL);
    while (wpk_json_next(reader)) {
        const size_t layouts = wpk_json_get_choice(reader, "layouts", layouts_names, 2);
        const int threads = (int)wpk_json_get_int(reader, "threads", 1, THREADS_MAX);
        struct bench_row *row =
            read_row(reader, "op", table, selection, (enum bench_layouts)layouts);
        if (row != NULL) {
            row->what.threads = threads;
            read_optional(reader, "kernel", row->kernel);
            read_optional(reader, "served", row->served);
        }
    }
    wpk_json_leave(reader);
}

static void read_tuned(struct wpk_json_reader *reader, struct bench_table *table,
                       const struct bench_selection *selection, enum bench_layouts layouts,
                       int threads)
{
    wpk_json_enter_array(reader, "kernels");
    while (wpk_json_next(reader)) {
        struct bench_row *row = read_row(reader, "name", table, selection, layouts);
        if (row != NULL) {
            const char *provider = wpk_json_get_text(reader, "provider", BENCH_TEXT_MAX);
            const bool generated = wpk_back_end_number(provider) >= 0;
            row->what.threads = threads;
            read_optional(reader, "artifact", generated ? row->kernel : row->served);
            if (wpk_json_has(reader, "own")) { /* a vendor is served: ours stands beside it */
                wpk_json_enter(reader, "own");
                read_optional(reader, "artifact", row->kernel);
                wpk_json_leave(reader);
            }
        }
    }
    wpk_json_leave(reader);
}

/* Add the row of an empty call: its time is the cost of a call. */
static wpk_err add_empty_call(struct bench_table *table, const struct bench_selection *selection,
                              enum bench_layouts layouts, int threads)
{
    const struct bench_op *op = bench_ops_find(selection->ops, BENCH_EMPTY_CALL);
    struct bench_row *row = NULL;
    const wpk_err err = op != NULL ? add_row(table, selection, op, layouts, &row) : WPK_OK;
    if (row != NULL) {
        row->what.threads = threads;
    }
    return err;
}

static wpk_err open_file(const char *path, struct wpk_buf *text, struct wpk_json_reader **reader,
                         struct wpk_diag *diag)
{
    const wpk_err err = wpk_fs_read(path, FILE_SIZE_MAX, text, diag);
    return err == WPK_OK
               ? wpk_json_open(wpk_buf_text(text), text->size, FILE_SIZE_MAX, reader, diag)
               : err;
}

wpk_err bench_cases_read(struct bench_table *table, const struct bench_selection *selection,
                         const char *path, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    struct wpk_json_reader *reader = NULL;
    wpk_err err = open_file(path, &text, &reader, diag);
    if (err == WPK_OK) {
        read_cases(reader, table, selection);
        err = wpk_json_status(reader);
        wpk_json_close(reader);
    }
    wpk_buf_fini(&text);
    return err;
}

wpk_err bench_cases_read_tuned(struct bench_table *table, const struct bench_selection *selection,
                               const char *source, struct wpk_diag *diag)
{
    const bool fixed = strncmp(source, "fixed:", 6) == 0;
    const char *number = strchr(source, ':');
    char *path = NULL;
    const long threads = number != NULL ? strtol(number + 1, &path, 10) : 0;
    if ((!fixed && strncmp(source, "any:", 4) != 0) || threads < 1 || threads > THREADS_MAX ||
        *path != ':') {
        return wpk_fail(diag, WPK_EINVAL, "%s is not LAYOUTS:THREADS:PATH", source);
    }
    struct wpk_buf text = {0};
    struct wpk_json_reader *reader = NULL;
    const enum bench_layouts layouts = fixed ? BENCH_LAYOUTS_FIXED : BENCH_LAYOUTS_ANY;
    wpk_err err = open_file(path + 1, &text, &reader, diag);
    if (err == WPK_OK) {
        read_tuned(reader, table, selection, layouts, (int)threads);
        err = wpk_json_status(reader);
        wpk_json_close(reader);
    }
    wpk_buf_fini(&text);
    return err == WPK_OK ? add_empty_call(table, selection, layouts, (int)threads) : err;
}

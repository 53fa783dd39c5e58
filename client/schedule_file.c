/* SPDX-License-Identifier: Apache-2.0 */
#include "client/schedule_file.h"

#include "ir/canonical/canonical.h"
#include "ir/notation/definition.h"
#include "ir/notation/notation.h"
#include "search/back_end.h"
#include "target/code.h"

#include <stdlib.h>
#include <string.h>

static const char op_prefix[] = "#op ";
static const char layouts_prefix[] = "#layouts ";

/* Calls for each line would be a callback too many: this steps through them instead. */
static bool next_line(const char **at, const char **line, size_t *size)
{
    if (**at == '\0') {
        return false;
    }
    *line = *at;
    *size = strcspn(*at, "\n");
    *at += *size + ((*at)[*size] == '\n');
    return true;
}

static bool has_prefix(const char *line, size_t size, const char *prefix)
{
    return size >= strlen(prefix) && memcmp(line, prefix, strlen(prefix)) == 0;
}

void wpk_schedule_file_print(const char *op, const char *layouts, const char *schedule,
                             struct wpk_buf *out)
{
    const char *line;
    size_t size;

    wpk_buf_printf(out, "%s%s\n", layouts_prefix, layouts);
    while (next_line(&op, &line, &size)) {
        wpk_buf_append_text(out, op_prefix);
        wpk_buf_append(out, line, size);
        wpk_buf_append_byte(out, '\n');
    }
    wpk_buf_append_text(out, schedule);
}

/* "target x86-64-linux-avx2 threads 2" */
static void read_threads(const char *line, size_t size, int *threads)
{
    static const char word[] = " threads ";
    const char *found = memmem(line, size, word, strlen(word));
    long count = found != NULL ? strtol(found + strlen(word), NULL, 10) : 0;

    if (count > 0 && count <= WPK_JOB_THREADS_MAX) {
        *threads = (int)count;
    }
}

wpk_err wpk_schedule_file_read(const char *text, struct wpk_buf *op, const char **layouts,
                               int *threads, struct wpk_diag *diag)
{
    const char *line;
    size_t size;
    int number = 0;

    while (next_line(&text, &line, &size)) {
        number++;
        if (has_prefix(line, size, op_prefix)) {
            wpk_buf_append(op, line + strlen(op_prefix), size - strlen(op_prefix));
            wpk_buf_append_byte(op, '\n');
        } else if (has_prefix(line, size, layouts_prefix)) {
            enum wpk_layouts value;
            char name[16] = "";
            size_t length = size - strlen(layouts_prefix);
            memcpy(name, line + strlen(layouts_prefix),
                   length < sizeof(name) ? length : sizeof(name) - 1);
            if (wpk_layouts_parse(name, &value) != WPK_OK) {
                wpk_diag_set_at(diag, number, (int)strlen(layouts_prefix) + 1,
                                "layouts are fixed or any");
                return WPK_EPARSE;
            }
            *layouts = wpk_layouts_name(value);
        } else if (has_prefix(line, size, "target ")) {
            read_threads(line, size, threads);
        }
    }
    if (op->size == 0) {
        return wpk_fail(diag, WPK_EPARSE,
                        "no operator: lines with #op are missing at the top; "
                        "wpkctl get --schedule writes them");
    }
    return wpk_buf_status(op);
}

wpk_err wpk_lookup_schedule(const struct wpk_job *job, int op, const struct wpk_lookup_found *found,
                            struct wpk_buf *out, struct wpk_diag *diag)
{
    const char *layouts = wpk_layouts_name(found->layouts);
    struct wpk_space_options options = {
        .layouts = layouts, .threads = found->threads, .back_ends = WPK_BACK_ENDS_ALL};
    struct wpk_program asked = {0};
    struct wpk_program program = {0}; /* canonical: candidates speak of that */
    struct wpk_space space = {0};
    struct wpk_buf whole = {0};
    struct wpk_buf schedule = {0};

    if (found->candidate[0] == '\0') {
        return wpk_fail(diag, WPK_ENOENT,
                        "%s: the vendor's implementation has no schedule; wpkctl get --own gets "
                        "the best of our own",
                        job->ops[op].name);
    }
    wpk_err err = wpk_device_of_class(found->device, &options.device);
    err = err == WPK_OK ? wpk_job_op_program(job, op, &asked, diag) : err;
    err = err == WPK_OK ? wpk_program_canonical(&asked, &program, NULL) : err;
    err = err == WPK_OK ? wpk_space_derive(&program, &options, &space, diag) : err;
    err = err == WPK_OK ? wpk_code_schedule(&space, found->candidate, &schedule, diag) : err;
    err = err == WPK_OK ? wpk_program_print(&program, &whole) : err;
    if (err == WPK_OK) {
        wpk_schedule_file_print(wpk_buf_text(&whole), layouts, wpk_buf_text(&schedule), out);
        err = wpk_buf_status(out);
    }
    wpk_buf_fini(&whole);
    wpk_buf_fini(&schedule);
    wpk_space_fini(&space);
    wpk_program_fini(&program);
    wpk_program_fini(&asked);
    return err;
}

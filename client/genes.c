/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl genes: list the genes of an operator on this machine, and their values. */
#include "client/command.h"
#include "client/find.h"
#include "client/job_file.h"
#include "client/output.h"
#include "common/json.h"
#include "ir/notation/definition.h"
#include "ir/notation/notation.h"
#include "search/back_end.h"
#include "search/variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GENES_MAX (WPK_TEXT_TABLE_ROWS_MAX - 1)

/* Genes of one name mean the same in every variant: their values are collected. */
struct gene {
    const char *name;  /* borrowed from the space */
    int variant_count; /* that have it */
    int value_count;
    const char *value[WPK_CHOICES_MAX]; /* borrowed */
};

struct genes {
    struct wpk_session_options session;
    struct wpk_output output;
    struct wpk_job_inline given;
    const char *layouts;
    int64_t threads;
    struct wpk_job job;
    struct gene *gene; /* owned; [count] */
    int count;
    char algorithm[WPK_SITES_MAX][WPK_GENE_NAME_MAX]; /* names of those genes */
};

/* Where a size stands among the others; "all" is the last, and what is no size has no place. */
static int64_t size_of(const char *value)
{
    char *end = NULL;

    if (strcmp(value, "all") == 0) {
        return INT64_MAX;
    }
    int64_t size = strtoll(value, &end, 10);
    return value[0] >= '0' && value[0] <= '9' && *end == '\0' ? size : -1;
}

/* Variants have sizes of their own: they ascend all the same. Other values keep their order. */
static void add_value(struct gene *gene, const char *value)
{
    int64_t size = size_of(value);
    int at = gene->value_count;

    for (int i = 0; i < gene->value_count; i++) {
        if (strcmp(gene->value[i], value) == 0) {
            return;
        }
    }
    if (gene->value_count == WPK_CHOICES_MAX) {
        return;
    }
    while (size >= 0 && at > 0 && size_of(gene->value[at - 1]) > size) {
        at--;
    }
    memmove(&gene->value[at + 1], &gene->value[at],
            (size_t)(gene->value_count - at) * sizeof(gene->value[0]));
    gene->value[at] = value;
    gene->value_count++;
}

static struct gene *take_gene(struct genes *genes, const char *name)
{
    for (int i = 0; i < genes->count; i++) {
        if (strcmp(genes->gene[i].name, name) == 0) {
            return &genes->gene[i];
        }
    }
    WPK_ASSERT(genes->count < GENES_MAX);
    genes->gene[genes->count] = (struct gene){.name = name};
    return &genes->gene[genes->count++];
}

static void add_algorithms(struct genes *genes, const struct wpk_space *space,
                           const struct wpk_variant *variant)
{
    struct wpk_variant_algorithm one;

    for (int i = 0; wpk_variant_algorithm(variant, i, &one); i++) {
        memcpy(genes->algorithm[i], one.gene, sizeof(one.gene));
        struct gene *gene = take_gene(genes, genes->algorithm[i]);
        gene->variant_count++;
        add_value(gene, space->sites->count > 0
                            ? space->sites->site[i].choice[variant->choice[i]].text
                            : "direct");
    }
}

/* A space without such a gene has the first alone. */
static void add_back_ends(struct genes *genes, const struct wpk_space *space)
{
    if (space->options.back_ends != 0) {
        return;
    }
    struct gene *gene = take_gene(genes, WPK_BACK_END_GENE);
    gene->variant_count++;
    unsigned kind = wpk_back_ends_of(space->options.target.rules->kind);
    for (int i = 0; wpk_back_end_name(i) != NULL; i++) {
        if ((kind & 1U << i) != 0) {
            add_value(gene, wpk_back_end_name(i));
        }
    }
}

static wpk_err collect(struct genes *genes, const struct wpk_space *space)
{
    genes->gene = WPK_DEMAND(calloc(GENES_MAX, sizeof(*genes->gene)));
    for (int v = 0; v < space->variant_count; v++) {
        const struct wpk_variant *variant = wpk_space_variant(space, v);
        if (variant == NULL) {
            continue;
        }
        add_algorithms(genes, space, variant);
        struct gene *layout = take_gene(genes, "layout");
        add_value(layout, variant->layout);
        layout->variant_count++;
        add_back_ends(genes, space);
        for (int g = 0; g < variant->gene_count && genes->count < GENES_MAX; g++) {
            struct gene *gene = take_gene(genes, variant->genes[g].name);
            gene->variant_count++;
            for (int i = 0; i < variant->genes[g].choice_count; i++) {
                add_value(gene, variant->genes[g].choice[i].text);
            }
        }
    }
    return WPK_OK;
}

static void put_json(const struct genes *genes, const char *name, struct wpk_json_writer *w)
{
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "name", name);
    wpk_json_begin_array(w, "genes");
    for (int i = 0; i < genes->count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "gene", genes->gene[i].name);
        wpk_json_begin_array(w, "values");
        for (int k = 0; k < genes->gene[i].value_count; k++) {
            wpk_json_put_text(w, NULL, genes->gene[i].value[k]);
        }
        wpk_json_end(w);
        wpk_json_put_int(w, "variants", genes->gene[i].variant_count);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    wpk_json_end(w);
}

static wpk_err print_table(const struct genes *genes, const char *name,
                           const struct wpk_space *space)
{
    static struct wpk_text_table table; /* large, and there is one per process */
    struct wpk_arena arena = {0};

    table = (struct wpk_text_table){
        .arena = &arena, .column_count = 3, .right = {[1] = true}, .rank = {[1] = 1}};
    wpk_text_table_add(&table, (const char *const[]){"gene", "variants", "values"});
    for (int i = 0; i < genes->count; i++) {
        const struct gene *gene = &genes->gene[i];
        struct wpk_buf values = {0};
        char variants[32];
        for (int k = 0; k < gene->value_count; k++) {
            wpk_buf_printf(&values, "%s%s", k > 0 ? ", " : "", gene->value[k]);
        }
        snprintf(variants, sizeof(variants), "%d of %d", gene->variant_count, space->variant_count);
        wpk_text_table_add(&table,
                           (const char *const[]){gene->name, variants, wpk_buf_text(&values)});
        wpk_buf_fini(&values);
    }
    if (genes->output.format == NULL) {
        printf("%s\n", name);
    }
    wpk_err err = wpk_output_puts_table(&genes->output, &table);
    wpk_arena_fini(&arena);
    return err;
}

static wpk_err show(struct genes *genes, const char *name, const struct wpk_program *program,
                    enum wpk_layouts layouts, struct wpk_json_writer *w, struct wpk_diag *diag)
{
    struct wpk_device device;
    struct wpk_space space = {0};

    wpk_err err = wpk_job_space_device(&genes->job, &device, diag);
    err = err == WPK_OK ? wpk_job_space(&genes->job, layouts, program, &device, &space, diag) : err;
    err = err == WPK_OK ? collect(genes, &space) : err;
    if (err == WPK_OK && genes->output.json) {
        put_json(genes, name, w);
    } else if (err == WPK_OK) {
        err = print_table(genes, name, &space);
    }
    free(genes->gene);
    genes->gene = NULL;
    genes->count = 0;
    wpk_space_fini(&space);
    return err;
}

static wpk_err show_job(struct genes *genes, struct wpk_json_writer *w, struct wpk_diag *diag)
{
    const struct wpk_job_overrides overrides = {.layouts = genes->layouts,
                                                .threads = genes->threads};

    wpk_err err = wpk_job_file_override(&overrides, &genes->job, diag);
    for (int i = 0; err == WPK_OK && i < genes->job.op_count; i++) {
        struct wpk_program program = {0};
        err = wpk_job_op_program(&genes->job, i, &program, diag);
        if (err == WPK_OK) {
            err = show(genes, genes->job.ops[i].name, &program, genes->job.ops[i].layouts, w, diag);
        }
        wpk_program_fini(&program);
    }
    return err;
}

/* Show the genes of an operator that is known by name or fingerprint, in the layouts of its
 * kernel. */
static wpk_err show_known(const struct wpk_command_context *context, struct genes *genes,
                          const char *what, struct wpk_json_writer *w, struct wpk_diag *diag)
{
    struct wpk_session session = {0};
    struct wpk_arena arena = {0};
    const struct wpk_api_kernel *kernel = NULL;
    struct wpk_program program = {0};
    enum wpk_layouts layouts = WPK_LAYOUTS_FIXED;

    wpk_err err = wpk_session_open(context, &genes->session, &session, diag);
    if (err == WPK_OK) {
        err = wpk_find_kernel(&session, what, &(struct wpk_find_wanted){0}, &arena, &kernel, diag);
    }
    if (err == WPK_OK) {
        err =
            wpk_layouts_parse(genes->layouts != NULL ? genes->layouts : kernel->layouts, &layouts);
    }
    if (err == WPK_OK) {
        genes->job.threads = genes->threads > 0 ? (int)genes->threads : kernel->threads;
        err = wpk_program_parse(kernel->op, &program, diag);
    }
    err = err == WPK_OK ? show(genes, what, &program, layouts, w, diag) : err;
    wpk_program_fini(&program);
    wpk_arena_fini(&arena);
    wpk_session_close(&session);
    return err;
}

static wpk_err run(const struct wpk_command_context *context, struct genes *genes, const char *what,
                   struct wpk_json_writer *w, struct wpk_diag *diag)
{
    bool is_file = false;

    wpk_err err = what != NULL ? wpk_find_file(what, &is_file, diag) : WPK_OK;
    if (err == WPK_OK && what != NULL && !is_file) {
        return show_known(context, genes, what, w, diag);
    }
    if (err == WPK_OK) {
        err = is_file ? wpk_job_file_read(what, &genes->job, diag)
                      : wpk_job_file_make(&genes->given, &genes->job, diag);
    }
    return err == WPK_OK ? show_job(genes, w, diag) : err;
}

enum wpk_exit wpk_command_genes(struct wpk_invocation *call)
{
    static struct genes genes; /* large, and there is one per process */
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(genes.session),
        WPK_ARGS_TEXT("op", "NOTATION", "of this instead of a file", &genes.given.op),
        WPK_ARGS_LIST("tensor", "NAME=TYPE", "a tensor of --op, e.g. X=f32[1,64] (repeatable)",
                      &genes.given.tensors),
        WPK_ARGS_LIST("constant", "NAME", "a tensor of --op that never changes (repeatable)",
                      &genes.given.constants),
        WPK_ARGS_TEXT("layouts", "fixed|any", "default: the file's, or those of what is known",
                      &genes.layouts),
        WPK_ARGS_INT("threads", "N", "of the kernel; default likewise", &genes.threads, 1,
                     WPK_JOB_THREADS_MAX),
        WPK_OUTPUT_OPTION_ROWS(genes.output),
        WPK_ARGS_END,
    };

    if (!wpk_command_begin(call, options, 0, 1)) {
        return call->status;
    }
    genes.session.need = WPK_SESSION_HISTORY;
    wpk_err err = wpk_output_check(&genes.output, &call->diag);
    if (err == WPK_OK && (call->args.operand_count == 1) == (genes.given.op != NULL)) {
        err = wpk_fail(&call->diag, WPK_EINVAL,
                       "genes takes a job file, a name, a fingerprint or --op: one of them");
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_begin_array(w, "ops");
    if (err == WPK_OK) {
        err = run(call->context, &genes,
                  call->args.operand_count > 0 ? call->args.operands[0] : NULL, w, &call->diag);
    }
    wpk_json_end(w);
    if (err == WPK_OK && genes.output.json) {
        err = wpk_json_puts(w, false);
    } else {
        wpk_json_writer_free(w);
    }
    wpk_job_fini(&genes.job);
    return wpk_command_end(call, err);
}

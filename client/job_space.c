/* SPDX-License-Identifier: Apache-2.0 */
#include "client/job_file.h"

#include "common/suggest.h"
#include "ir/canonical/canonical.h"
#include "ir/notation/definition.h"
#include "search/mask.h"
#include "search/variant.h"

#include <stdlib.h>
#include <string.h>

/* Genes that choose a variant. */
static const char *const common_genes[] = {"algorithm", "layout"};

/* Names of genes; with `gene` the values of that one. */
static void offer_all(const struct wpk_space *space, const char *gene, struct wpk_suggest *suggest)
{
    for (int v = 0; v < space->variant_count; v++) {
        const struct wpk_variant *variant = wpk_space_variant(space, v);
        struct wpk_variant_algorithm algorithm;
        if (variant == NULL) {
            continue;
        }
        for (int i = 0; wpk_variant_algorithm(variant, i, &algorithm); i++) {
            bool all = gene != NULL && strcmp(gene, common_genes[0]) == 0;
            if (gene == NULL) {
                wpk_suggest_offer(suggest, algorithm.gene);
            } else if (all || strcmp(gene, algorithm.gene) == 0) {
                wpk_suggest_offer(suggest, algorithm.value);
            }
        }
        if (gene != NULL && strcmp(gene, common_genes[1]) == 0) {
            wpk_suggest_offer(suggest, variant->layout);
        }
        for (int g = 0; g < variant->gene_count; g++) {
            const struct wpk_gene *own = &variant->genes[g];
            bool is_asked = gene != NULL && strcmp(own->name, gene) == 0;
            if (gene == NULL) {
                wpk_suggest_offer(suggest, own->name);
            }
            for (int i = 0; is_asked && i < own->choice_count; i++) {
                wpk_suggest_offer(suggest, own->choice[i].text);
            }
        }
    }
}

static bool is_gene(const struct wpk_space *space, const char *name)
{
    bool found = strcmp(name, common_genes[0]) == 0 || strcmp(name, common_genes[1]) == 0;

    for (int v = 0; v < space->variant_count && !found; v++) {
        const struct wpk_variant *variant = wpk_space_variant(space, v);
        struct wpk_variant_algorithm algorithm;
        for (int i = 0; variant != NULL && wpk_variant_algorithm(variant, i, &algorithm); i++) {
            found = found || strcmp(algorithm.gene, name) == 0;
        }
        for (int g = 0; variant != NULL && g < variant->gene_count && !found; g++) {
            found = strcmp(variant->genes[g].name, name) == 0;
        }
    }
    return found;
}

static void complain(const struct wpk_space *space, const struct wpk_job_pin *pin,
                     struct wpk_diag *diag)
{
    bool known = is_gene(space, pin->gene);
    struct wpk_suggest suggest = {.word = known ? pin->value : pin->gene};

    offer_all(space, known ? pin->gene : NULL, &suggest);
    if (!known) {
        wpk_suggest_offer(&suggest, common_genes[0]);
        wpk_suggest_offer(&suggest, common_genes[1]);
    }
    const char *near = wpk_suggest_text(&suggest);
    if (known) {
        wpk_diag_set(diag, "gene '%s' has no value '%s' here%s", pin->gene, pin->value,
                     near[0] != '\0' ? near : "; wpkctl genes lists the values");
    } else {
        wpk_diag_set(diag, "there is no gene '%s'%s", pin->gene,
                     near[0] != '\0' ? near : "; wpkctl genes lists the genes");
    }
}

/* A pin removes what it could have meant: suggestions are of the space with the pins before it. */
static void suggest(const struct wpk_job *job, const struct wpk_space_options *options,
                    const struct wpk_program *program, int pin, struct wpk_diag *diag)
{
    struct wpk_space space = {0};

    wpk_err err = wpk_space_derive(program, options, &space, diag);
    for (int i = 0; err == WPK_OK && i < pin; i++) {
        err = wpk_space_pin(&space, job->pins[i].gene, job->pins[i].value, diag);
    }
    if (err == WPK_OK) {
        complain(&space, &job->pins[pin], diag);
    }
    wpk_space_fini(&space);
}

wpk_err wpk_job_space_device(const struct wpk_job *job, struct wpk_device *out,
                             struct wpk_diag *diag)
{
    if (strcmp(job->kind, "cuda") != 0) {
        return wpk_device_probe(WPK_CPU_FLAGS_ALL, out);
    }
    return job->device[0] != '\0' ? wpk_device_of_class(job->device, out)
                                  : wpk_device_emulate("sm_90", 132, out, diag);
}

/* Workers may offer what this machine lacks. */
static unsigned pinned_back_ends(const struct wpk_job *job)
{
    for (int i = 0; i < job->pin_count; i++) {
        if (strcmp(job->pins[i].gene, WPK_BACK_END_GENE) == 0) {
            return WPK_BACK_ENDS_ALL;
        }
    }
    return 0;
}

wpk_err wpk_job_space(const struct wpk_job *job, enum wpk_layouts layouts,
                      const struct wpk_program *program, const struct wpk_device *device,
                      struct wpk_space *out, struct wpk_diag *diag)
{
    const struct wpk_space_options options = {.layouts = wpk_layouts_name(layouts),
                                              .threads = job->threads,
                                              .device = *device,
                                              .back_ends = pinned_back_ends(job)};

    wpk_err err = wpk_space_derive(program, &options, out, diag);
    for (int i = 0; err == WPK_OK && i < job->pin_count; i++) {
        struct wpk_diag why = {0};
        err = wpk_space_pin(out, job->pins[i].gene, job->pins[i].value, &why);
        if (err == WPK_ENOENT) {
            why = (struct wpk_diag){0};
            suggest(job, &options, program, i, &why);
        }
        if (err == WPK_ENOENT || err == WPK_EUNSUPPORTED) {
            err = WPK_EINVAL;
            wpk_job_locate_search(job, "pin", job->pins[i].gene, &why);
        }
        if (err != WPK_OK && diag != NULL) {
            *diag = why;
        }
    }
    return err;
}

/* Check the pins with the names of the canonical program, because that is the one searched. */
static wpk_err pin_canonical(const struct wpk_job *job, enum wpk_layouts layouts,
                             const struct wpk_program *program, const struct wpk_device *device,
                             struct wpk_diag *diag)
{
    const struct wpk_space_options options = {.layouts = wpk_layouts_name(layouts),
                                              .threads = job->threads,
                                              .device = *device,
                                              .back_ends = pinned_back_ends(job)};
    struct wpk_canonical_map *map = WPK_DEMAND(calloc(1, sizeof(*map)));
    struct wpk_program canonical = {0};
    struct wpk_space space = {0};

    wpk_err err = wpk_program_canonical_map(program, &canonical, map);
    err = err == WPK_OK ? wpk_space_derive(&canonical, &options, &space, diag) : err;
    for (int i = 0; err == WPK_OK && i < job->pin_count; i++) {
        struct wpk_buf name = {0};
        struct wpk_buf value = {0};
        err = wpk_pin_canonical(program, map, job->pins[i].gene, job->pins[i].value, &name, &value);
        err = err == WPK_OK ? wpk_space_pin(&space, wpk_buf_text(&name), wpk_buf_text(&value), diag)
                            : err;
        if (err == WPK_ENOENT || err == WPK_EUNSUPPORTED) {
            wpk_job_locate_search(job, "pin", job->pins[i].gene, diag);
            err = WPK_EINVAL;
        }
        wpk_buf_fini(&name);
        wpk_buf_fini(&value);
    }
    wpk_space_fini(&space);
    wpk_program_fini(&canonical);
    free(map);
    return err;
}

wpk_err wpk_job_space_check(const struct wpk_job *job, struct wpk_diag *diag)
{
    struct wpk_device device;

    if (job->pin_count == 0) {
        return WPK_OK;
    }
    wpk_err err = wpk_job_space_device(job, &device, diag);
    for (int i = 0; err == WPK_OK && i < job->op_count; i++) {
        struct wpk_program program = {0};
        struct wpk_diag own = {0};
        struct wpk_space space = {0};
        err = wpk_job_op_program(job, i, &program, diag);
        err =
            err == WPK_OK ? pin_canonical(job, job->ops[i].layouts, &program, &device, diag) : err;
        /* the job's own names make the better message */
        if (err == WPK_EINVAL &&
            wpk_job_space(job, job->ops[i].layouts, &program, &device, &space, &own) != WPK_OK) {
            *diag = own;
        }
        wpk_space_fini(&space);
        wpk_program_fini(&program);
    }
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda_space.h"

#include "ir/notation/notation.h"
#include "search/gene_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void wpk_cuda_space_parse(const char *text, struct wpk_program *out)
{
    struct wpk_diag diag = {0};
    if (wpk_program_parse(text, out, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, text);
    }
}

void wpk_cuda_space_group(const char *text, bool strict, struct wpk_program *program,
                          struct wpk_cuda_groups *out)
{
    wpk_cuda_space_parse(text, program);
    assert_int_equal(wpk_cuda_groups_normalize(program, strict), WPK_OK);
    assert_int_equal(wpk_program_validate(program, NULL), WPK_OK);
    assert_int_equal(wpk_cuda_groups_find(program, strict, out), WPK_OK);
}

void wpk_cuda_space_derive(const char *text, bool strict, struct wpk_space *out)
{
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1, .strict = strict};
    struct wpk_program program;
    struct wpk_diag diag = {0};
    wpk_cuda_space_parse(text, &program);
    assert_int_equal(wpk_device_emulate("sm_90", 132, &options.device, NULL), WPK_OK);
    if (wpk_space_derive(&program, &options, out, &diag) != WPK_OK) {
        fail_msg("%s\n%s", diag.text, text);
    }
    wpk_program_fini(&program);
}

int wpk_cuda_space_variant(const struct wpk_space *space, const char *algorithm)
{
    for (int v = 0; v < space->variant_count; v++) {
        if (strstr(space->variants[v].algorithm, algorithm) != NULL &&
            wpk_space_variant(space, v) != NULL) {
            return v;
        }
    }
    fail_msg("no variant has %s", algorithm);
    return -1;
}

void wpk_cuda_space_set(const struct wpk_space *space, const char *genes,
                        struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = wpk_space_variant(space, candidate->variant);
    assert_non_null(variant);
    while (*genes != '\0') {
        char name[WPK_GENE_NAME_MAX], value[64];
        int size = 0, choice = -1;
        assert_int_equal(sscanf(genes, "%63[^=]=%63s%n", name, value, &size), 2);
        for (int g = 0; g < variant->gene_count && choice < 0; g++) {
            if (strcmp(variant->genes[g].name, name) == 0) {
                choice = wpk_gene_choice(&variant->genes[g], value);
                candidate->gene[g] = (uint8_t)(choice >= 0 ? choice : 0);
            }
        }
        if (choice < 0) {
            for (int g = 0; g < variant->gene_count; g++) {
                print_message("%s\n", variant->genes[g].name);
            }
            fail_msg("no %s=%s", name, value);
        }
        genes += size;
        genes += strspn(genes, " ");
    }
}

struct wpk_candidate wpk_cuda_space_candidate(const struct wpk_space *space, int variant,
                                              const char *genes)
{
    struct wpk_candidate candidate = {.variant = variant};
    candidate.gene_count = wpk_space_variant(space, variant)->gene_count;
    wpk_cuda_space_set(space, genes, &candidate);
    return candidate;
}

int wpk_cuda_space_stage(const struct wpk_program *program, const char *tensor)
{
    int found = wpk_program_find_tensor(program, tensor);
    int stage = found >= 0 ? wpk_program_writer(program, found) : -1;
    if (stage < 0) {
        fail_msg("no stage writes %s", tensor);
    }
    return stage;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The work of wpk-evaluate: building, verifying and timing a list of candidates of one op. */
#ifndef WPK_WORKER_ENGINE_EVALUATE_H
#define WPK_WORKER_ENGINE_EVALUATE_H

#include "common/clock.h"
#include "schema/device.h"
#include "schema/record.h"

#define WPK_EVALUATION_MAX 100000 /* candidates */
#define WPK_EVALUATION_PINS_MAX 32

/* Strings are borrowed. */
struct wpk_evaluation {
    const char *op_path;
    const char *layouts;
    const char *provider;
    const char *candidate; /* this and the next four members say what to try */
    const char *candidates_path;
    const char *schedule_path;
    int construct_count;
    int random_count;
    uint64_t seed;
    const char *pins[WPK_EVALUATION_PINS_MAX]; /* "gene=value" */
    int pin_count;
    wpk_cpu_flags flags_max;
    const char *gpu; /* as --gpu of wpk-worker; NULL: the CPU */
    struct wpk_policy policy;
    const char *work_dir; /* NULL: a temporary one */
    const char *trace_path;
    bool plain; /* candidates of the plain kernel, WPK_PLAIN_MAX of them, and no others */
    bool keep;
    bool print_only;
    bool quiet;
    int duel_rounds;         /* 0: none */
    const char *output_path; /* for a copy of the best candidate's artifact; NULL: no copy */
};

/* Try all candidates and print as the head comment of evaluate_main.c says; set *failed to the
 * number of outcomes other than ok.
 *   errors  those of reading the named files, and of the engine */
wpk_err wpk_evaluation_run(const struct wpk_evaluation *evaluation, int *failed,
                           struct wpk_diag *diag);

#endif

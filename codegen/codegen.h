/* SPDX-License-Identifier: Apache-2.0 */
/* The back ends. Each compiles schedules to objects, and a schedule names the one that it is for
 * (`by NAME`). The first one is a provider: searches make schedules for it.
 *
 * To add one, write what it accepts, list it in codegen.c and how it compiles in emit.c, which
 * only wpk-builder links. */
#ifndef WPK_CODEGEN_CODEGEN_H
#define WPK_CODEGEN_CODEGEN_H

#include "codegen/schedule.h"

struct wpk_codegen {
    const char *name; /* in schedules, jobs and records */
    /* True if it compiles the schedule, whose nest is valid; else `diag` has the position of the
     * loop that it does not, and what to write instead. */
    bool (*accepts)(const struct wpk_schedule *schedule, struct wpk_diag *diag);
};

/* The back end number `i`, from 0; NULL: no more. The first is that of schedules which are made,
 * and the provider that workers offer. */
const struct wpk_codegen *wpk_codegen_at(int i);
/* NULL: there is none of that name. */
const struct wpk_codegen *wpk_codegen_find(const char *name);

/* Check the nest (op/nest_check.h), and that the schedule's back end accepts it, before anything is
 * compiled.
 *   errors  WPK_EINVAL with the stage and loop at fault; WPK_ENOMEM */
wpk_err wpk_codegen_check(const struct wpk_schedule *schedule, struct wpk_diag *diag);

#endif

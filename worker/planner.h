/* SPDX-License-Identifier: Apache-2.0 */
/* From a candidate to what the builder needs: keeps the spaces of the ops that are being tuned. */
#ifndef WPK_WORKER_PLANNER_H
#define WPK_WORKER_PLANNER_H

#include "common/crypto.h"
#include "op/fingerprint.h"
#include "schema/device.h"
#include "search/space.h"
#include "worker/verify.h"

#define WPK_PLANNER_MAX 8 /* spaces kept */

/* One op with one choice of layouts and threads, on one device. */
struct wpk_planner_entry {
    char key[WPK_SHA256_HEX_SIZE]; /* empty: free place */
    struct wpk_device device;
    uint64_t used;
    struct wpk_program program;
    struct wpk_fingerprint fingerprint;
    bool exact;
    bool has_space; /* derived when first needed; pinned for the plain kernel */
    struct wpk_space space;
};

struct wpk_planner {
    struct wpk_device device;
    uint64_t used;
    struct wpk_planner_entry entries[WPK_PLANNER_MAX];
};

struct wpk_planner_request {
    const struct wpk_device *device; /* to be planned for; NULL: the planner's own */
    const char *op;                  /* whole form */
    const char *layouts;
    int threads;
    const char *candidate;
    int plain;            /* instead: number of a constructed candidate of the plain kernel, from 1:
                           * algorithm direct, for every CPU, one thread; 0: `candidate` */
    const char *schedule; /* by hand; NULL: from the candidate */
};

/* = {0} is empty. Strings are owned. */
struct wpk_planned {
    char *schedule;
    char schedule_sha256[WPK_SHA256_HEX_SIZE];
    char *manifest;
    struct wpk_verify_rule rule;
};

void wpk_planner_init(struct wpk_planner *planner, const struct wpk_device *device);
void wpk_planner_fini(struct wpk_planner *planner);

/* The op's entry on `device` (NULL: the planner's own); valid until the next call.
 *   errors  WPK_EPARSE, WPK_ERANGE, WPK_EINVAL the op; WPK_ENOMEM */
wpk_err wpk_planner_open(struct wpk_planner *planner, const struct wpk_planner_request *request,
                         struct wpk_planner_entry **out, struct wpk_diag *diag);
/* The same with its space derived.
 *   errors  and those of wpk_space_derive */
wpk_err wpk_planner_open_space(struct wpk_planner *planner,
                               const struct wpk_planner_request *request,
                               struct wpk_planner_entry **out, struct wpk_diag *diag);

/*   owns    caller calls wpk_planned_fini
 *   errors  as above; those of wpk_candidate_decode, wpk_lower, wpk_schedule_parse and _check */
wpk_err wpk_planner_plan(struct wpk_planner *planner, const struct wpk_planner_request *request,
                         struct wpk_planned *out, struct wpk_diag *diag);
void wpk_planned_fini(struct wpk_planned *result);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* From a candidate to the builder's files: its schedule and manifest. The planner keeps the spaces
 * of the ops that are being tuned. */
#ifndef WPK_WORKER_ENGINE_PLANNER_H
#define WPK_WORKER_ENGINE_PLANNER_H

#include "common/crypto.h"
#include "ir/canonical/canonical.h"
#include "nest/schedule.h"
#include "schema/device.h"
#include "search/space.h"
#include "target/codegen.h"
#include "worker/verify/verify.h"

#define WPK_PLANNER_MAX 8 /* spaces kept */

/* One op with its layouts and threads, on one device. */
struct wpk_planner_entry {
    char key[WPK_SHA256_HEX_SIZE]; /* empty: this entry is free */
    struct wpk_device device;
    uint64_t used; /* number of the last use; the smallest is replaced first */
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
    const struct wpk_device *device; /* the device to plan for; NULL: the planner's own */
    const char *op;                  /* whole form */
    const char *layouts;
    int threads;
    const char *candidate;
    int plain;            /* number of a constructed candidate of the plain kernel, from 1, which
                           * takes the place of `candidate`; 0: `candidate` */
    const char *schedule; /* written by hand; NULL: the candidate's */
    bool built;           /* its artifact is there: no manifest is made */
};

/* = {0} is empty. Strings are owned. */
struct wpk_planned {
    char *schedule;
    char schedule_sha256[WPK_SHA256_HEX_SIZE];
    char *manifest;               /* NULL: its artifact was there */
    const struct wpk_codegen *by; /* the schedule's back end, which may be missing here */
    struct wpk_verify_rule rule;
    double bound_s; /* of a call, by the model that ranks candidates; 0: a schedule by hand */
};

void wpk_planner_init(struct wpk_planner *planner, const struct wpk_device *device);
void wpk_planner_fini(struct wpk_planner *planner);

/* Find or make the op's entry. *out is valid until the next call on the planner.
 *   errors  WPK_EPARSE, WPK_ERANGE, WPK_EINVAL the op is not valid; WPK_ENOMEM */
wpk_err wpk_planner_open(struct wpk_planner *planner, const struct wpk_planner_request *request,
                         struct wpk_planner_entry **out, struct wpk_diag *diag);
/* The same, with the entry's space derived.
 *   errors  those above, and those of wpk_space_derive */
wpk_err wpk_planner_open_space(struct wpk_planner *planner,
                               const struct wpk_planner_request *request,
                               struct wpk_planner_entry **out, struct wpk_diag *diag);

/* Make the schedule and the manifest of a candidate, or of a schedule written by hand.
 *   owns    caller calls wpk_planned_fini
 *   errors  those above, and those of wpk_candidate_decode, wpk_lower, wpk_schedule_parse,
 *           wpk_codegen_check and wpk_codegen_version */
wpk_err wpk_planner_plan(struct wpk_planner *planner, const struct wpk_planner_request *request,
                         struct wpk_planned *out, struct wpk_diag *diag);
void wpk_planned_fini(struct wpk_planned *result);

/* Making a kernel's manifest from the schedule that the kernel is built from. */

struct wpk_package {
    const char *op;          /* whole form of the original program */
    const char *fingerprint; /* of that program */
    const char *algorithm;
    const char *candidate;     /* genes as text; "" for a schedule written by hand */
    const char *schedule_text; /* of the schedule below */
    const struct wpk_schedule *schedule;
    bool emulated;               /* for the emulated GPU */
    const char *version_codegen; /* of what compiles it: "halide-21.0.0", "gcc-12.2.0" */
};

/* The manifest (runtime/kernel/manifest.h) as JSON.
 *   owns    caller frees *text
 *   errors  WPK_ENOSPC too many arguments; WPK_ENOMEM */
wpk_err wpk_package_manifest(const struct wpk_package *package, char **text);

#endif

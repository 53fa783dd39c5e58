/* SPDX-License-Identifier: Apache-2.0 */
/* The back ends. Each compiles schedules to objects, and a schedule names the one that it is for
 * (`by NAME`). search/back_end.h has their names: a search makes schedules for the first one, and
 * for those that its job pins where a worker offers them.
 *
 * A back end that is listed there needs wpk_SYMBOL_accepts() and find_SYMBOL() in codegen.c,
 * and wpk_SYMBOL_build(), which emit.c calls and only wpk-builder links. */
#ifndef WPK_TARGET_CODEGEN_H
#define WPK_TARGET_CODEGEN_H

#include "nest/schedule.h"
#include "search/back_end.h"
#include "search/space.h"

#define WPK_CODEGEN_VERSION_MAX 28

struct wpk_codegen {
    const char *name; /* in schedules, candidates and jobs */
    const char *kind; /* of device */
    /* True if it compiles the schedule, whose nest is valid; else `diag` has the position of the
     * loop that it does not, and what to write instead. */
    bool (*accepts)(const struct wpk_schedule *schedule, struct wpk_diag *diag);
    /* Find what compiles for it on this machine, and copy its name and version: "gcc-12.2.0".
     *   errors  WPK_ENOENT it is missing, with the reason in `diag`; WPK_ESYSTEM */
    wpk_err (*find)(char version[WPK_CODEGEN_VERSION_MAX], struct wpk_diag *diag);
    bool found_here; /* each machine has a version of its own, which the provider's name has, too */
};

/* Set what a device needs to run the kernel: kind, and capability or CPU flags. */
void wpk_codegen_needs(const struct wpk_schedule *schedule, struct wpk_device *out);
/* The back end number `i`, from 0; NULL: no more. Number and name are those of
 * search/back_end.h. */
const struct wpk_codegen *wpk_codegen_at(int i);
/* NULL: there is none of that name. */
const struct wpk_codegen *wpk_codegen_find(const char *name);
/* The back end of a provider, as in "c/gcc-12.2.0"; NULL: the provider is none of ours. */
const struct wpk_codegen *wpk_codegen_of(const char *provider);
/* Print the provider of what this machine builds by the back end.
 *   errors  those of `find` */
wpk_err wpk_codegen_provider(const struct wpk_codegen *codegen, char out[WPK_BACK_END_MAX],
                             struct wpk_diag *diag);

/* Copy the version of what compiles for it on this machine, "none" where that is missing.
 *   errors  WPK_ESYSTEM */
wpk_err wpk_codegen_version(const struct wpk_codegen *codegen, char out[WPK_CODEGEN_VERSION_MAX],
                            struct wpk_diag *diag);

/* Check the nest (nest/nest.h), and that the schedule's back end accepts it, before anything is
 * compiled.
 *   errors  WPK_EINVAL with the stage and loop at fault; WPK_ENOMEM */
wpk_err wpk_codegen_check(const struct wpk_schedule *schedule, struct wpk_diag *diag);

/* From a candidate to a schedule: program + genes -> packed program + nest, without I/O. */

/* Make the schedule of a candidate.
 *   owns    caller calls wpk_schedule_fini
 *   errors  WPK_EINVAL the candidate breaks a rule; WPK_ENOMEM */
wpk_err wpk_lower(const struct wpk_space *space, const struct wpk_candidate *candidate,
                  struct wpk_schedule *out, struct wpk_diag *diag);

/* Compiling a schedule by its back end. Only wpk-builder links it. */

/* Compile the main program of a schedule that wpk_codegen_check() accepts to the function `symbol`
 * in the object file `object_path`, with the arguments of target/halide/halide.h. A back end that
 * makes images writes one to that path.
 *   errors  WPK_EUNSUPPORTED with the back end's message */
wpk_err wpk_emit(const struct wpk_schedule *schedule, const char *symbol, const char *object_path,
                 struct wpk_diag *diag);

#endif

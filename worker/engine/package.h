/* SPDX-License-Identifier: Apache-2.0 */
/* Making a kernel's manifest from the schedule that the kernel is built from. */
#ifndef WPK_WORKER_ENGINE_PACKAGE_H
#define WPK_WORKER_ENGINE_PACKAGE_H

#include "nest/schedule.h"

struct wpk_package {
    const char *op;          /* whole form of the original program */
    const char *fingerprint; /* of that program */
    const char *algorithm;
    const char *candidate;     /* genes as text; "" for a schedule written by hand */
    const char *schedule_text; /* of the schedule below */
    const struct wpk_schedule *schedule;
    bool emulated; /* for the emulated GPU */
    const char *version_codegen; /* of what compiles it: "halide-21.0.0", "gcc-12.2.0" */
};

/* The manifest (runtime/kernel/manifest.h) as JSON.
 *   owns    caller frees *text
 *   errors  WPK_ENOSPC too many arguments; WPK_ENOMEM */
wpk_err wpk_package_manifest(const struct wpk_package *package, char **text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a recorded kernel: the statement that wpkd signs.
 *
 *     {"version":1,"fingerprint":"...","layouts":"fixed","threads":1,
 *      "device":"cpu/AMD EPYC 9B45/zen4","environment":"codegen=1;halide=21.0.0",
 *      "provider":"halide-cpu","artifact":"<SHA-256 of the shared object>",
 *      "time_ns":{"median":575000,"min":571000,"mad":900},"constants_bytes":2359296,
 *      "accuracy":"standard","conditions":"warm",
 *      "verified":{"max_error":1e-6,"tolerance":2e-5,"of_rms":1.1e-6,"times_direct":1.8,
 *                  "by":"host3"},
 *      "created":"2026-11-21T03:52:00.125Z"}
 *
 * It lies beside the shared object, which it names by its hash; the manifest inside the object
 * (runtime/kernel/manifest.h) says how to call it. The signature is over this file's bytes, which
 * are therefore stored and never printed anew. */
#ifndef WPK_SCHEMA_KERNEL_MANIFEST_H
#define WPK_SCHEMA_KERNEL_MANIFEST_H

#include "schema/message.h"

#define WPK_KERNEL_MANIFEST_VERSION 1
#define WPK_KERNEL_MANIFEST_SIZE_MAX ((size_t)16 << 10) /* bytes of JSON */

/* `= {0}` cannot be encoded. */
struct wpk_kernel_manifest {
    char fingerprint[WPK_ID_MAX];         /* of the operator */
    char layouts[16];                     /* "fixed" or "any" */
    int threads;                          /* >= 1 */
    char device[2 * WPK_DEVICE_TEXT_MAX]; /* the class it was measured on */
    char environment[WPK_ENVIRONMENT_MAX];
    char provider[WPK_PROVIDER_NAME_MAX];
    char artifact[WPK_ID_MAX];
    uint64_t median_ns, min_ns, mad_ns; /* of one call, in the final */
    uint64_t constants_bytes;           /* of the prepared constants */
    double error_max;                   /* largest |y - ref| over all sets of inputs */
    double error_tolerance;
    double of_rms;                /* as in schema/record.h */
    double times_direct;          /* as in schema/record.h; -1: not measured */
    struct wpk_accuracy accuracy; /* the class that it was verified for */
    enum wpk_conditions conditions;
    char verified_by[WPK_WORKER_NAME_MAX]; /* on fresh inputs; "": on the recorded ones only */
    uint64_t created_wall_ns;
};

/*   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_kernel_manifest_encode(const struct wpk_kernel_manifest *manifest, struct wpk_buf *out);

/* Decode a manifest. Unknown members are ignored, because a later wpkd may add some.
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE with the field; WPK_EMISMATCH another version;
 *           WPK_ENOMEM */
wpk_err wpk_kernel_manifest_decode(const char *text, size_t size, struct wpk_kernel_manifest *out,
                                   struct wpk_diag *diag);

#endif

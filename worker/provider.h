/* SPDX-License-Identifier: Apache-2.0 */
/* An implementation of an operator, whoever wrote it: the seam through which the runner verifies
 * and times our kernels and the vendors' in the same way.
 *
 *     open ──▶ set (each input and constant) ──▶ prepare ──▶ poison ──▶ run ... ──▶ check, get
 *
 * Tensors are named by their id in the operator's program, as the user wrote it. Data cross this
 * seam dense and row-major, without padding, in the tensor's own type; how it lies in between is
 * the provider's business and costs no measured time. After prepare, inputs may be set again;
 * constants may not.
 *
 * A provider lives and dies in one child process of the runner: it may crash there. Threads are
 * the provider's own, as many as asked for; the runner has limited the process's CPUs before. */
#ifndef WPK_WORKER_PROVIDER_H
#define WPK_WORKER_PROVIDER_H

#include "op/program.h"
#include "schema/device.h"
#include "schema/record.h"

#define WPK_PROVIDER_DETAIL_MAX 256

/* Where the tensors at the boundary get their memory: the runner puts each between guard pages.
 * Every slot is required. Memory is zeroed, aligned to `element` bytes at least, a power of two,
 * and given back at close. */
struct wpk_provider_memory {
    void *(*take)(void *user, size_t size, size_t element); /* NULL: out of memory */
    void (*give)(void *user, void *memory);
    void *user;
};

struct wpk_provider_request {
    const struct wpk_program *program; /* the original operator; outlives the provider */
    const char *layouts;               /* "fixed": row-major at the boundary; or "any" */
    const char *artifact_path;         /* our kernel's shared object; vendors ignore it */
    const char *library_dir;         /* of the vendor's shared library; NULL: found by the system */
    const struct wpk_device *device; /* NULL: the machine this runs on */
    int threads;                     /* >= 1 */
    const struct wpk_provider_memory *memory; /* outlives the provider */
};

struct wpk_provider;

/* Every slot but `move` is required; none keeps the data it is given. */
struct wpk_provider_class {
    const char *name; /* as jobs and records name it: "halide-cpu", "onednn" */

    /*   owns    caller calls close
     *   errors  WPK_EUNSUPPORTED not an operator or layout of this provider's
     *           WPK_ENOENT, WPK_EMISMATCH, WPK_ECORRUPT library or artifact; WPK_ENOMEM */
    wpk_err (*open)(const struct wpk_provider_request *request, struct wpk_provider **out,
                    struct wpk_diag *diag);
    void (*close)(struct wpk_provider *provider);

    /* Give an input or constant its values: dense [extent...] row-major. */
    wpk_err (*set)(struct wpk_provider *provider, int tensor, const void *dense,
                   struct wpk_diag *diag);
    /* Give the memory of inputs and outputs back and take it again, elsewhere; inputs are then to
     * be set again. The first time prepared constants are copied, each between guards of its own.
     * NULL: an implementation that may ask for more alignment than its elements have; its memory
     * stays where it is.
     *   errors  WPK_ENOMEM */
    wpk_err (*move)(struct wpk_provider *provider);
    /* Pack or transform the constants; all of them were set. */
    wpk_err (*prepare)(struct wpk_provider *provider, struct wpk_diag *diag);

    /* Fill the outputs' elements with the byte, and their padding with zeros. */
    void (*poison)(struct wpk_provider *provider, unsigned char byte);
    /* Compute once. Nothing but the operator: this is what is timed. */
    wpk_err (*run)(struct wpk_provider *provider);

    /* Evict from the caches what the next run is to fetch from memory. COLD_CONSTANTS: the prepared
     * constants are evicted, then inputs and outputs are read. COLD: everything is evicted.
     *   errors  WPK_ENOMEM, WPK_ESYSTEM */
    wpk_err (*cool)(struct wpk_provider *provider, enum wpk_conditions conditions);
    /* Bytes that a run reads of prepared constants; 0: none. */
    uint64_t (*constants_bytes)(const struct wpk_provider *provider);

    /* Is the padding of inputs and outputs still zero, are inputs as they were set?
     *   errors  WPK_ECORRUPT and which tensor */
    wpk_err (*check)(struct wpk_provider *provider, struct wpk_diag *diag);
    /* Read an output: dense [extent...] row-major. */
    wpk_err (*get)(struct wpk_provider *provider, int tensor, void *dense);

    /* What was chosen, for people: layouts at the boundary, a vendor's implementation and
     * version. Lives as long as the provider. */
    const char *(*detail)(const struct wpk_provider *provider);
    /* A vendor's: the entry of a choice that runs it (schema/choice.h), as JSON; NULL for ours.
     * Lives as long as the provider. */
    const char *(*recipe)(const struct wpk_provider *provider);
};

/* What every implementation begins with. */
struct wpk_provider {
    const struct wpk_provider_class *kind;
};

/* Our kernels, through libwpk: what is timed is what ships. */
extern const struct wpk_provider_class wpk_provider_kernel;
/* oneDNN; its library is found at run time, nothing links it. */
extern const struct wpk_provider_class wpk_provider_onednn;

/* The class of that name; NULL when there is none. */
const struct wpk_provider_class *wpk_provider_find(const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A device: what candidates, keys and reports need to know of it. */
#ifndef WPK_SCHEMA_DEVICE_H
#define WPK_SCHEMA_DEVICE_H

#include "common/err.h"
#include "schema/cpu_flags.h"

#include <stdint.h>

struct wpk_json_reader;
struct wpk_json_writer;

#define WPK_DEVICE_TEXT_MAX 128

#define WPK_DEVICE_CUDA "cuda"         /* a kind */
#define WPK_DEVICE_EMULATED "emulated" /* the model of a GPU that is none (tests/gpu/) */
#define WPK_DEVICE_SM_MAX 4096

/* The fields of a device of the kind "cpu" alone. */
struct wpk_device_cpu {
    wpk_cpu_flags flags; /* * the level alone */
    int64_t l1_bytes;    /* data cache of a core */
    int64_t l2_bytes;    /* of a core */
    int64_t l3_bytes;    /* shared */
    int vector_bytes;    /* of the level, as are the registers */
    int vector_registers;
};

/* The fields of a device of the kind "cuda" alone. */
struct wpk_device_cuda {
    int capability;       /* * 90: the architecture sm_90 */
    int sm_count;         /* * multiprocessors: what fills them is decided by their number */
    int64_t memory_bytes; /* information only, as is the driver's version; 0: not known */
    int driver;           /* 12090: it is for CUDA 12.9 */
};

/* Fields marked * are part of the device class: a kernel is `exact` only where they are equal.
 * Invariant: the part of another kind is 0. */
struct wpk_device {
    char kind[16];                   /* * "cpu" or "cuda" */
    char model[WPK_DEVICE_TEXT_MAX]; /* * CPU model as the kernel names it, or the GPU's name */
    struct wpk_device_cpu cpu;
    struct wpk_device_cuda cuda;
    int core_count;          /* usable by this process, within its CPU quota; of a GPU 1 */
    double peak_flops_per_s; /* measured, f32 FMA, one core; 0: not measured */
    double peak_bytes_per_s; /* measured; 0: not measured */
    char instance[WPK_DEVICE_TEXT_MAX]; /* host and slot, e.g. "host3/cpu0": information only */
};

/* Describe the machine on which this process runs. `flags_max` limits its flags, so that a machine
 * with AVX-512 can stand for one without. Peaks are left 0.
 *   errors  WPK_ESYSTEM */
wpk_err wpk_device_probe(wpk_cpu_flags flags_max, struct wpk_device *out);

/* Set the flags of a CPU, and its vectors. */
void wpk_device_claim(wpk_cpu_flags flags, struct wpk_device *device);

/* Reduce `device` to what every supported device of its kind has: SSE4.1, or the least
 * capability. */
void wpk_device_make_plain(struct wpk_device *device);

/* Describe the GPU that is emulated: of an architecture, as in "sm_90", with so many
 * multiprocessors. No kernel for it answers for another device: it is of a class of its own.
 *   errors  WPK_EINVAL no architecture: "sm_" and two or three digits; WPK_ERANGE the number is not
 *           in 1 ... WPK_DEVICE_SM_MAX */
wpk_err wpk_device_emulate(const char *architecture, int sm_count, struct wpk_device *out,
                           struct wpk_diag *diag);
bool wpk_device_is_cuda(const struct wpk_device *device);
bool wpk_device_is_emulated(const struct wpk_device *device);

/* The device class as text, for keys: "cpu/AMD EPYC 9B45/zen4", or
 * "cuda/NVIDIA H200/sm_90/132". Of a CPU's flags the class has the level: code generators use no
 * others, so that no other flag splits a history. */
void wpk_device_class(const struct wpk_device *device, char *out, size_t size);
/* True if the class is an emulated device's: times of its kernels are a model's. */
bool wpk_device_class_is_emulated(const char *text);
/* Parse a device class; the fields that it does not give are 0, and a CPU has the flags of its
 * level. wpk_device_class() inverts this.
 *   errors  WPK_EPARSE */
wpk_err wpk_device_of_class(const char *text, struct wpk_device *out);

/* A device, a struct wpk_device, as an object (key NULL: the current item): for a row of
 * schema/fields.h. */
void wpk_device_put(struct wpk_json_writer *writer, const char *key, const void *device);
void wpk_device_get(struct wpk_json_reader *reader, const char *key, void *device);

#endif

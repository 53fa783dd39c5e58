/* SPDX-License-Identifier: Apache-2.0 */
/* A device: what candidates, keys and reports need to know of it. */
#ifndef WPK_SCHEMA_DEVICE_H
#define WPK_SCHEMA_DEVICE_H

#include "common/err.h"

#include <stdint.h>

#define WPK_DEVICE_TEXT_MAX 128

struct wpk_json_reader;
struct wpk_json_writer;

/* suffix, text: instruction sets that change what is generated, weakest first */
#define WPK_ISA_LIST(X)                                                                            \
    X(SSE41, "sse41")                                                                              \
    X(AVX, "avx")                                                                                  \
    X(AVX2, "avx2")                                                                                \
    X(AVX512, "avx512")

#define WPK_ISA_ENUM(name, text) WPK_ISA_##name,
enum wpk_isa { WPK_ISA_LIST(WPK_ISA_ENUM) WPK_ISA_COUNT };

/* name, text: CPU flags, spelt as compilers spell them; F16C is a flag without a row. */
#define WPK_CPU_FLAG_LIST(X)                                                                       \
    X(AVX, "avx")                                                                                  \
    X(AVX2, "avx2")                                                                                \
    X(FMA, "fma")                                                                                  \
    X(AVX512F, "avx512f")                                                                          \
    X(AVX512CD, "avx512cd")                                                                        \
    X(AVX512BW, "avx512bw")                                                                        \
    X(AVX512DQ, "avx512dq")                                                                        \
    X(AVX512VL, "avx512vl")                                                                        \
    X(AVX512IFMA, "avx512ifma")                                                                    \
    X(AVX512VBMI, "avx512vbmi")                                                                    \
    X(AVX512VBMI2, "avx512vbmi2")                                                                  \
    X(AVX512VNNI, "avx512vnni")                                                                    \
    X(AVX512BITALG, "avx512bitalg")                                                                \
    X(AVX512VPOPCNTDQ, "avx512vpopcntdq")                                                          \
    X(AVX512BF16, "avx512bf16")                                                                    \
    X(SSE4A, "sse4a")

#define WPK_CPU_FLAG_INDEX(name, text) WPK_CPU_INDEX_##name,
enum wpk_cpu_flag_index { WPK_CPU_FLAG_LIST(WPK_CPU_FLAG_INDEX) WPK_CPU_INDEX_F16C };

#define WPK_CPU_FLAG(name, text) WPK_CPU_##name = 1 << WPK_CPU_INDEX_##name,
enum wpk_cpu_flag { WPK_CPU_FLAG_LIST(WPK_CPU_FLAG) WPK_CPU_F16C = 1 << WPK_CPU_INDEX_F16C };

#define WPK_DEVICE_CUDA "cuda"         /* a kind */
#define WPK_DEVICE_EMULATED "emulated" /* the model of a GPU that is none (tests/gpu/) */
#define WPK_DEVICE_SM_MAX 4096

/* The fields of a device of the kind "cpu" alone. */
struct wpk_device_cpu {
    enum wpk_isa isa; /* * avx2: with FMA and F16C; avx512: F, CD, BW, DQ, VL */
    int bf16; /* * 1: it has every flag of Zen 4, for which Halide builds then: SSE4a, too */
    int vnni; /* * 1: it has AVX512_VNNI */
    int64_t l1_bytes; /* data cache of a core */
    int64_t l2_bytes; /* of a core */
    int64_t l3_bytes; /* shared */
    int vector_bytes; /* of the isa */
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
    int core_count;                     /* usable by this process; of a GPU 1 */
    double peak_flops_per_s;            /* measured, f32 FMA, one core; 0: not measured */
    double peak_bytes_per_s;            /* measured; 0: not measured */
    char instance[WPK_DEVICE_TEXT_MAX]; /* host and slot, e.g. "host3/cpu0": information only */
};

const char *wpk_isa_name(enum wpk_isa isa);
wpk_err wpk_isa_parse(const char *text, enum wpk_isa *out);

/* Describe the machine on which this process runs. `isa_max` limits the instruction set, so that a
 * machine with AVX-512 can stand for one without. Peaks are left 0.
 *   errors  WPK_ESYSTEM */
wpk_err wpk_device_probe(enum wpk_isa isa_max, struct wpk_device *out);

/* Fill the fields that follow from the instructions of a CPU: isa, bf16, vnni and the vectors.
 * `flags`: a set of enum wpk_cpu_flag. A device has bf16 only if generated code may use all flags
 * that came with it in Zen 4 and Sapphire Rapids; Cooper Lake has BF16 without VBMI and IFMA. */
void wpk_device_claim(uint64_t flags, enum wpk_isa isa_max, struct wpk_device *device);

/* Reduce `device` to what every supported device of its kind has: the weakest instruction set, or
 * the least capability. */
void wpk_device_make_plain(struct wpk_device *device);

/* Describe the GPU that is emulated: of an architecture, as in "sm_90", with so many
 * multiprocessors. No kernel for it answers for another device: it is of a class of its own.
 *   errors  WPK_EINVAL no architecture: "sm_" and two or three digits; WPK_ERANGE the number is not
 *           in 1 ... WPK_DEVICE_SM_MAX */
WPK_MUST_CHECK wpk_err wpk_device_emulate(const char *architecture, int sm_count,
                                          struct wpk_device *out, struct wpk_diag *diag);
bool wpk_device_is_cuda(const struct wpk_device *device);
bool wpk_device_is_emulated(const struct wpk_device *device);

/* The device class as text, for keys: "cpu/AMD EPYC 9B45/avx512+bf16+vnni", or
 * "cuda/NVIDIA H200/sm_90/132". */
void wpk_device_class(const struct wpk_device *device, char *out, size_t size);
/* True if the class is an emulated device's: times of its kernels are a model's. */
bool wpk_device_class_is_emulated(const char *text);
/* Parse a device class; the fields that it does not give are 0. wpk_device_class() inverts this.
 *   errors  WPK_EPARSE */
WPK_MUST_CHECK wpk_err wpk_device_of_class(const char *text, struct wpk_device *out);

/* A device as a member of a document at `key` (NULL: the current item). Failures are the writer's
 * or the reader's. */
void wpk_device_put(struct wpk_json_writer *writer, const char *key,
                    const struct wpk_device *device);
void wpk_device_get(struct wpk_json_reader *reader, const char *key, struct wpk_device *out);

#endif

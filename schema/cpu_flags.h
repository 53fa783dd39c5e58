/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of CPU flags: what a device has, and what a kernel's code needs. A kernel runs where its set
 * is a subset of the device's.
 *
 * A level is a named set for which code generators compile. Device classes name levels, so that a
 * flag that no code generator uses splits no history.
 *
 * As text a set is a level and the flags beyond it: "avx2", "avx2+avx_vnni". */
#ifndef WPK_SCHEMA_CPU_FLAGS_H
#define WPK_SCHEMA_CPU_FLAGS_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

struct wpk_json_reader;
struct wpk_json_writer;

/* suffix, name as Linux has it, name as compilers have it (-m...): flags of x86-64 that
 * __builtin_cpu_supports() of every compiler knows, */
#define WPK_CPU_X86_LIST(X)                                                                        \
    X(SSE41, "sse4_1", "sse4.1")                                                                   \
    X(AVX, "avx", "avx")                                                                           \
    X(AVX2, "avx2", "avx2")                                                                        \
    X(FMA, "fma", "fma")                                                                           \
    X(AVX512F, "avx512f", "avx512f")                                                               \
    X(AVX512CD, "avx512cd", "avx512cd")                                                            \
    X(AVX512BW, "avx512bw", "avx512bw")                                                            \
    X(AVX512DQ, "avx512dq", "avx512dq")                                                            \
    X(AVX512VL, "avx512vl", "avx512vl")                                                            \
    X(AVX512_IFMA, "avx512ifma", "avx512ifma")                                                     \
    X(AVX512_VBMI, "avx512vbmi", "avx512vbmi")                                                     \
    X(AVX512_VBMI2, "avx512_vbmi2", "avx512vbmi2")                                                 \
    X(AVX512_VNNI, "avx512_vnni", "avx512vnni")                                                    \
    X(AVX512_BITALG, "avx512_bitalg", "avx512bitalg")                                              \
    X(AVX512_VPOPCNTDQ, "avx512_vpopcntdq", "avx512vpopcntdq")                                     \
    X(AVX512_BF16, "avx512_bf16", "avx512bf16")                                                    \
    X(SSE4A, "sse4a", "sse4a")

/* those that are read by CPUID, and those of arm64. */
#define WPK_CPU_FLAG_LIST(X)                                                                       \
    WPK_CPU_X86_LIST(X)                                                                            \
    X(F16C, "f16c", "f16c")                                                                        \
    X(AVX_VNNI, "avx_vnni", "avxvnni")                                                             \
    X(NEON, "neon", "simd")                                                                        \
    X(DOTPROD, "dotprod", "dotprod")                                                               \
    X(I8MM, "i8mm", "i8mm")                                                                        \
    X(SVE, "sve", "sve")

#define WPK_CPU_FLAG_INDEX(suffix, text, option) WPK_CPU_INDEX_##suffix,
enum wpk_cpu_flag_index { WPK_CPU_FLAG_LIST(WPK_CPU_FLAG_INDEX) WPK_CPU_FLAG_COUNT };

#define WPK_CPU_FLAG(suffix, text, option) WPK_CPU_##suffix = 1 << WPK_CPU_INDEX_##suffix,
enum wpk_cpu_flag { WPK_CPU_FLAG_LIST(WPK_CPU_FLAG) };

typedef uint64_t wpk_cpu_flags; /* a set of enum wpk_cpu_flag */
#define WPK_CPU_FLAGS_ALL UINT64_MAX
#define WPK_CPU_FLAGS_TEXT_MAX 320

/* The flags of each level. Halide compiles for ZEN4, so that a kernel may hold any of its flags;
 * Cooper Lake and Sapphire Rapids lack some. */
enum wpk_cpu_set {
    WPK_CPU_SET_NONE = 0,
    WPK_CPU_SET_SSE41 = WPK_CPU_SSE41,
    WPK_CPU_SET_AVX = WPK_CPU_SET_SSE41 | WPK_CPU_AVX,
    WPK_CPU_SET_AVX2 = WPK_CPU_SET_AVX | WPK_CPU_AVX2 | WPK_CPU_FMA | WPK_CPU_F16C,
    WPK_CPU_SET_AVX512 = WPK_CPU_SET_AVX2 | WPK_CPU_AVX512F | WPK_CPU_AVX512CD | WPK_CPU_AVX512BW |
                         WPK_CPU_AVX512DQ | WPK_CPU_AVX512VL,
    WPK_CPU_SET_AVX512_VNNI = WPK_CPU_SET_AVX512 | WPK_CPU_AVX512_VNNI,
    WPK_CPU_SET_AVX512_BF16 = WPK_CPU_SET_AVX512_VNNI | WPK_CPU_AVX512_BF16,
    WPK_CPU_SET_ZEN4 = WPK_CPU_SET_AVX512 | WPK_CPU_AVX512_IFMA | WPK_CPU_AVX512_VBMI |
                       WPK_CPU_AVX512_VBMI2 | WPK_CPU_AVX512_VNNI | WPK_CPU_AVX512_BITALG |
                       WPK_CPU_AVX512_VPOPCNTDQ | WPK_CPU_AVX512_BF16 | WPK_CPU_SSE4A,
};

/* suffix, name, bytes of a vector, vector registers: a level comes after those it contains. */
#define WPK_CPU_LEVEL_LIST(X)                                                                      \
    X(NONE, "none", 16, 16)                                                                        \
    X(SSE41, "sse41", 16, 16)                                                                      \
    X(AVX, "avx", 32, 16)                                                                          \
    X(AVX2, "avx2", 32, 16)                                                                        \
    X(AVX512, "avx512", 64, 32)                                                                    \
    X(AVX512_VNNI, "avx512vnni", 64, 32)                                                           \
    X(AVX512_BF16, "avx512bf16", 64, 32)                                                           \
    X(ZEN4, "zen4", 64, 32)

#define WPK_CPU_LEVEL_ENUM(suffix, text, bytes, registers) WPK_CPU_LEVEL_##suffix,
enum wpk_cpu_level { WPK_CPU_LEVEL_LIST(WPK_CPU_LEVEL_ENUM) WPK_CPU_LEVEL_COUNT };

/* All flags of a level. */
wpk_cpu_flags wpk_cpu_level_flags(enum wpk_cpu_level level);
int wpk_cpu_level_vector_bytes(enum wpk_cpu_level level);
int wpk_cpu_level_vector_registers(enum wpk_cpu_level level);
/* The strongest level that the set contains. */
enum wpk_cpu_level wpk_cpu_flags_level(wpk_cpu_flags flags);

/* True if code that needs `needs` runs on a device that has `has`. */
bool wpk_cpu_flags_fit(wpk_cpu_flags needs, wpk_cpu_flags has);
/* Print the names of the flags: "avx512f, avx512_vnni". */
void wpk_cpu_flags_list(wpk_cpu_flags flags, char out[WPK_CPU_FLAGS_TEXT_MAX]);
/* Print a set as text; wpk_cpu_flags_parse() inverts this. */
void wpk_cpu_flags_print(wpk_cpu_flags flags, char out[WPK_CPU_FLAGS_TEXT_MAX]);
/* Parse the text of a set.   errors  WPK_EPARSE */
wpk_err wpk_cpu_flags_parse(const char *text, wpk_cpu_flags *out);

/* A set, a wpk_cpu_flags, as an array of names: for a row of schema/fields.h. */
void wpk_cpu_flags_put(struct wpk_json_writer *writer, const char *key, const void *flags);
void wpk_cpu_flags_get(struct wpk_json_reader *reader, const char *key, void *flags);

#endif

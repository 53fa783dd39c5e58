/* SPDX-License-Identifier: Apache-2.0 */
/* A module of PTX, parsed: entries, their parameters and memory, and instructions of which each
 * names the function that computes it for the lanes of a warp.
 *
 * The subset is what NVRTC and Halide make of f32 and f64 kernels; what is not known is an error
 * with its line, never ignored. Matrix instructions, atomics and calls are not known yet.
 *
 *   source  NVIDIA, PTX ISA 9.0 */
#ifndef WPK_TESTS_GPU_PTX_H
#define WPK_TESTS_GPU_PTX_H

#include "common/err.h"

#include <stdint.h>

#define WPK_PTX_NAME_MAX 128   /* bytes, with the NUL; longer names are refused */
#define WPK_PTX_OPERANDS_MAX 6 /* v4 and an address are five */
#define WPK_PTX_PARAMETERS_MAX 64
#define WPK_WARP_LANES 32
/* Bytes of shared memory before what entries declare and launches add. GPUs from sm_90 on keep them
 * for themselves. */
#define WPK_PTX_SHARED_RESERVED ((uint32_t)1024)

struct wpk_warp;
struct wpk_ptx_instruction;

/* Computes an instruction for the active lanes of a warp; a fault is left in the warp. */
typedef void (*wpk_ptx_lanes)(struct wpk_warp *warp, const struct wpk_ptx_instruction *in);

enum wpk_ptx_space {
    WPK_PTX_GENERIC,
    WPK_PTX_GLOBAL,
    WPK_PTX_SHARED,
    WPK_PTX_LOCAL,
    WPK_PTX_PARAM,
};

/* Types of instructions, as the ISA names them. */
#define WPK_PTX_TYPE_LIST(X)                                                                       \
    X(PRED, "pred", 0)                                                                             \
    X(B8, "b8", 1)                                                                                 \
    X(B16, "b16", 2)                                                                               \
    X(B32, "b32", 4)                                                                               \
    X(B64, "b64", 8)                                                                               \
    X(U8, "u8", 1)                                                                                 \
    X(U16, "u16", 2)                                                                               \
    X(U32, "u32", 4)                                                                               \
    X(U64, "u64", 8)                                                                               \
    X(S8, "s8", 1)                                                                                 \
    X(S16, "s16", 2)                                                                               \
    X(S32, "s32", 4)                                                                               \
    X(S64, "s64", 8)                                                                               \
    X(F32, "f32", 4)                                                                               \
    X(F64, "f64", 8)

enum wpk_ptx_type {
#define WPK_PTX_TYPE_ENUM(name, text, size) WPK_PTX_##name,
    WPK_PTX_TYPE_LIST(WPK_PTX_TYPE_ENUM)
#undef WPK_PTX_TYPE_ENUM
        WPK_PTX_TYPE_COUNT
};

enum wpk_ptx_round {
    WPK_PTX_ROUND_NONE,
    WPK_PTX_ROUND_EVEN,
    WPK_PTX_ROUND_ZERO,
    WPK_PTX_ROUND_DOWN,
    WPK_PTX_ROUND_UP,
};

/* Lanes that an instruction waits for. */
enum wpk_ptx_meeting {
    WPK_PTX_MEET_NONE,
    WPK_PTX_MEET_MEMBERS, /* those that the last operand names, if they have not ended */
    WPK_PTX_MEET_WARP,    /* all that have not ended */
};

/* One of the registers that every thread has: number, and where its lanes lie in a warp's file:
 * element `offset / size + lane`. Predicates are one word, a bit a lane. Constants are registers
 * that nobody writes. */
struct wpk_ptx_operand {
    uint32_t reg;
    uint32_t offset; /* bytes */
    uint8_t size;    /* bytes a lane; 0: a predicate */
};

struct wpk_ptx_instruction {
    wpk_ptx_lanes run;
    struct wpk_ptx_operand operand[WPK_PTX_OPERANDS_MAX]; /* results first */
    struct wpk_ptx_operand guard;
    int64_t offset;        /* of an address, bytes */
    int64_t source_offset; /* of an asynchronous copy's second address */
    int line;              /* of the text, from 1 */
    int target;            /* of a branch: index of an instruction; else -1 */
    uint8_t result_count;
    uint8_t operand_count;
    bool guarded;
    bool negated;       /* the guard is */
    bool carries;       /* results are defined where all other operands are */
    uint8_t meeting;    /* enum wpk_ptx_meeting */
    uint8_t used_from, used_size; /* bytes of a load that are used; 0: all */
    uint8_t vector;     /* elements of a load or store: 1, 2, 4 */
    uint8_t size;       /* bytes of one of them, or of an asynchronous copy */
    uint8_t type, from; /* enum wpk_ptx_type; `from` of a conversion */
    uint8_t space;      /* enum wpk_ptx_space */
    uint8_t round;      /* enum wpk_ptx_round */
    bool to_integer;    /* rounds to an integral value (.rni) */
    bool saturates;
};

struct wpk_ptx_parameter {
    char name[WPK_PTX_NAME_MAX];
    uint32_t offset, size; /* bytes, in the block of parameters */
};

/* Registers that are filled when a block starts; their numbers come first. */
#define WPK_PTX_SPECIAL_LIST(X)                                                                    \
    X("%tid.x")                                                                                    \
    X("%tid.y")                                                                                    \
    X("%tid.z")                                                                                    \
    X("%ntid.x")                                                                                   \
    X("%ntid.y")                                                                                   \
    X("%ntid.z")                                                                                   \
    X("%ctaid.x")                                                                                  \
    X("%ctaid.y")                                                                                  \
    X("%ctaid.z")                                                                                  \
    X("%nctaid.x")                                                                                 \
    X("%nctaid.y")                                                                                 \
    X("%nctaid.z")                                                                                 \
    X("%laneid")                                                                                   \
    X("%warpid")
#define WPK_PTX_SPECIAL_COUNT 14

struct wpk_ptx_constant {
    struct wpk_ptx_operand at;
    uint64_t bits;
};

struct wpk_ptx_entry {
    char name[WPK_PTX_NAME_MAX];
    struct wpk_ptx_parameter parameter[WPK_PTX_PARAMETERS_MAX];
    int parameter_count;
    uint32_t parameter_size; /* bytes */
    uint32_t shared_size;    /* bytes, without what a launch adds */
    uint32_t local_size;     /* bytes a thread */
    uint32_t threads_max;    /* .maxntid or .reqntid; 0: not said */
    struct wpk_ptx_instruction *instruction;
    int instruction_count;
    struct wpk_ptx_constant *constant;
    int constant_count;
    int register_count;
    uint32_t file_size; /* bytes of a warp's registers */
};

struct wpk_ptx {
    struct wpk_ptx_entry *entry;
    int entry_count;
    void *tables; /* .global and .const variables with their values: as the text names them */
    size_t tables_size;
};

/* Parse a module.
 *
 *   owns    *out, for wpk_ptx_fini()
 *   errors  WPK_EPARSE, WPK_EUNSUPPORTED, WPK_ENOMEM; `diag` has the line */
WPK_MUST_CHECK wpk_err wpk_ptx_parse(const char *text, struct wpk_ptx *out, struct wpk_diag *diag);
void wpk_ptx_fini(struct wpk_ptx *ptx);

/* The entry of that name, or NULL. */
const struct wpk_ptx_entry *wpk_ptx_find(const struct wpk_ptx *ptx, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The block that answers lie in, the same in memory and in a file: a head, then the arrays. */
#ifndef WPK_WORKER_VERIFY_ANSWERS_FILE_H
#define WPK_WORKER_VERIFY_ANSWERS_FILE_H

#include "worker/verify/answers.h"

/* Changes with the format and with how inputs are drawn. */
#define WPK_ANSWERS_MAGIC UINT64_C(0x39736e61706b7731)

struct wpk_answers_head {
    uint64_t magic;
    uint64_t seed;
    uint64_t constants_seed;
    int64_t count;
    double magnitude_max;
    double direct_error;
    double large;
    int32_t rank;
    int32_t draws;
    uint8_t kind;
    uint8_t domain; /* enum wpk_draw_domain */
    uint8_t whole;
    uint8_t exact;
    uint8_t rows;
    uint8_t zero[3];
    uint8_t seen[WPK_STAGES_MAX];
};

/* Point the answers' arrays into their block. */
void wpk_answers_point_into(struct wpk_answers *answers);
/* Bytes of a block. */
size_t wpk_answers_block_size(bool whole, int rank, int64_t count, int draws);

#endif

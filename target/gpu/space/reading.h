/* SPDX-License-Identifier: Apache-2.0 */
/* How the stages of a program read a tensor. */
#ifndef WPK_TARGET_GPU_SPACE_READING_H
#define WPK_TARGET_GPU_SPACE_READING_H

#include "ir/program.h"

struct wpk_cuda_reading {
    int loads;
    int stage;      /* of the last of them; -1: none */
    int load;       /* node of the last of them; -1: none */
    bool own_point; /* all loads read at the stage's own point */
    bool at_axes;   /* all loads have an axis as each index */
};

struct wpk_cuda_reading wpk_cuda_read(const struct wpk_program *program, int tensor);

#endif

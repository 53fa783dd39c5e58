/* SPDX-License-Identifier: Apache-2.0 */
/* The library that wpk-builder loads. */
#include "target/halide/halide.h"

__attribute__((visibility("default"))) const struct wpk_halide_functions wpk_halide_functions = {
    .warm = wpk_halide_warm,
    .build = wpk_halide_build,
    .launches = wpk_halide_launches,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms of cuBLASLt that its heuristic does not name. */
#ifndef WPK_RUNTIME_VENDOR_CUBLASLT_ALGORITHMS_H
#define WPK_RUNTIME_VENDOR_CUBLASLT_ALGORITHMS_H

#include "common/cublaslt_calls.h"

#define WPK_CUBLASLT_CALL_FIELD(name, result, parameters) result(*name) parameters;

struct wpk_cublaslt_calls {
    WPK_CUBLASLT_CALL_LIST(WPK_CUBLASLT_CALL_FIELD)
};

/* A product in f32; the descriptors are borrowed. */
struct wpk_cublaslt_problem {
    const struct wpk_cublaslt_calls *calls;
    void *handle, *product, *a, *b, *d;
};

/* Append algorithms that can compute the product: each that the library has, with each of its tiles
 * and numbers of stages, as many of one as of another if there is no room for all. An error of the
 * library is no algorithm.
 *   shape   list [max], of which `count` are there; returns how many there are then */
int wpk_cublaslt_add_algorithms(const struct wpk_cublaslt_problem *problem,
                                struct wpk_cublaslt_heuristic *list, int count, int max);

#endif

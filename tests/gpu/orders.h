/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of the emulated driver on order, so that tests can see what a failing GPU leads to.
 *
 * The text of an order is `CALL:N=WHAT`; orders are separated by ';'. The N-th call of the driver's
 * function CALL, counted from 1, does WHAT:
 *
 *     719     a number: it returns this CUresult, and the error sticks to the process if it is one
 *             of those that end a context (CUDA_ERROR_ILLEGAL_ADDRESS and the numbers behind it)
 *     hang    it never returns
 *     lost    it and all later calls of the process return CUDA_ERROR_UNKNOWN
 *     gone    as `lost`; processes that start later find no device, while the calls are counted in
 *             a file
 *
 *     cuLaunchKernel:3=719;cuMemAlloc_v2:1=2
 *
 * Calls are counted in each process for itself, or, with a file, over all processes together. */
#ifndef WPK_TESTS_GPU_ORDERS_H
#define WPK_TESTS_GPU_ORDERS_H

#include "common/err.h"

#include <stdbool.h>

#define WPK_ORDERS_MAX 8
#define WPK_ORDERS_CALL_MAX 48
#define WPK_ORDERS_PATH_MAX 256

enum wpk_order_kind { WPK_ORDER_RESULT, WPK_ORDER_HANG, WPK_ORDER_LOST, WPK_ORDER_GONE };

struct wpk_order {
    char call[WPK_ORDERS_CALL_MAX];
    long number; /* of the call, from 1 */
    enum wpk_order_kind kind;
    int result; /* a CUresult other than 0 */
    long calls; /* so far, of this process */
};

struct wpk_orders {
    struct wpk_order order[WPK_ORDERS_MAX];
    int count;
    char path[WPK_ORDERS_PATH_MAX]; /* order i counts its calls in the size of the file "PATH.i" */
    bool lost;
};

/* Read the orders; NULL: there are none. `path` NULL: each process counts for itself.
 *   errors  WPK_EPARSE, WPK_ENOSPC */
wpk_err wpk_orders_parse(const char *text, const char *path, struct wpk_orders *out);

/* Count a call. Returns the CUresult that it has to fail with, or 0; a call that has to hang does
 * not return. */
int wpk_orders_call(struct wpk_orders *orders, const char *call);

/* True if an order has taken the device away from all processes. */
bool wpk_orders_is_gone(const struct wpk_orders *orders);

#endif

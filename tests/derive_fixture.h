/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of random extents for derive_test.c, in whole form: windows that leave their tensor,
 * strides, dilation, batches, channels, and extents that no block size divides. */
#ifndef WPK_TESTS_DERIVE_FIXTURE_H
#define WPK_TESTS_DERIVE_FIXTURE_H

#include "common/buf.h"
#include "common/rng.h"

enum wpk_fixture_shape {
    WPK_FIXTURE_CONV_2D,
    WPK_FIXTURE_CONV_1D,
    WPK_FIXTURE_CONV_GROUPED,
    WPK_FIXTURE_DEPTHWISE,
    WPK_FIXTURE_BLOCK,
    WPK_FIXTURE_PIXELS,
    WPK_FIXTURE_SEPARABLE,
    WPK_FIXTURE_MATMUL,
    WPK_FIXTURE_POOLING,
    WPK_FIXTURE_SOFTMAX,
    WPK_FIXTURE_STENCIL,
    WPK_FIXTURE_COUNT
};

/* Sizes of a convolution; wpk_fixture_write makes the extents of other operators of them. */
struct wpk_fixture_conv {
    int64_t n, c, k, h, w, r, s, stride, dilation, pad;
    bool epilogue;
};

int64_t wpk_fixture_pick(struct wpk_rng *rng, int count, const int64_t *from);
struct wpk_fixture_conv wpk_fixture_draw(struct wpk_rng *rng);
/* Constants are called W, V or B, inputs X, A or B, the output Y. */
void wpk_fixture_write(enum wpk_fixture_shape shape, const struct wpk_fixture_conv *conv,
                       struct wpk_buf *out);

#endif

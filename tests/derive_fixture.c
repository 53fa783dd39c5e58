/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/derive_fixture.h"

#include <stdio.h>

int64_t wpk_fixture_pick(struct wpk_rng *rng, int count, const int64_t *from)
{
    return from[wpk_rng_below(rng, (uint64_t)count)];
}

struct wpk_fixture_conv wpk_fixture_draw(struct wpk_rng *rng)
{
    static const int64_t windows[] = {1, 2, 3, 3, 5}, strides[] = {1, 1, 2, 3};
    struct wpk_fixture_conv conv = {.n = wpk_rng_between(rng, 1, 3),
                                    .c = wpk_rng_between(rng, 1, 5),
                                    .k = wpk_rng_between(rng, 1, 5),
                                    .h = wpk_rng_between(rng, 1, 13),
                                    .w = wpk_rng_between(rng, 1, 13),
                                    .r = wpk_fixture_pick(rng, 5, windows),
                                    .s = wpk_fixture_pick(rng, 5, windows),
                                    .stride = wpk_fixture_pick(rng, 4, strides),
                                    .dilation = wpk_rng_chance(rng, 0.2) ? 2 : 1,
                                    .pad = wpk_rng_between(rng, 0, 2),
                                    .epilogue = wpk_rng_chance(rng, 0.5)};
    return conv;
}

#define LL(x) ((long long)(x))

/* The extent read along an axis of `size` outputs through a window of `r`, less the padding. */
static long long reach(const struct wpk_fixture_conv *v, int64_t size, int64_t r)
{
    int64_t all = (size - 1) * v->stride + (r - 1) * v->dilation + 1 - 2 * v->pad;
    return LL(all < 1 ? 1 : all);
}

static void write_conv_2d(const struct wpk_fixture_conv *v, struct wpk_buf *out)
{
    wpk_buf_printf(out, "input X f32[%lld,%lld,%lld,%lld]\nconstant W f32[%lld,%lld,%lld,%lld]\n",
                   LL(v->n), LL(v->c), reach(v, v->h, v->r), reach(v, v->w, v->s), LL(v->k),
                   LL(v->c), LL(v->r), LL(v->s));
    const char *sum = v->epilogue ? "T" : "Y";
    if (v->epilogue) {
        wpk_buf_printf(out, "constant B f32[%lld]\nintermediate T f32[%lld,%lld,%lld,%lld]\n",
                       LL(v->k), LL(v->n), LL(v->k), LL(v->h), LL(v->w));
    }
    wpk_buf_printf(out, "output Y f32[%lld,%lld,%lld,%lld]\n", LL(v->n), LL(v->k), LL(v->h),
                   LL(v->w));
    wpk_buf_printf(out,
                   "%s[n,k,y,x] = sum(c:%lld,r:%lld,s:%lld) X[n,c,%lld*y+%lld*r-%lld,"
                   "%lld*x+%lld*s-%lld] * W[k,c,r,s]\n",
                   sum, LL(v->c), LL(v->r), LL(v->s), LL(v->stride), LL(v->dilation), LL(v->pad),
                   LL(v->stride), LL(v->dilation), LL(v->pad));
    if (v->epilogue) {
        wpk_buf_append_text(out, "Y[n,k,y,x] = max(T[n,k,y,x] + B[k], 0)\n");
    }
}

static void write_conv_1d(const struct wpk_fixture_conv *v, struct wpk_buf *out)
{
    wpk_buf_printf(out,
                   "input X f32[%lld,%lld,%lld]\nconstant W f32[%lld,%lld,%lld]\n"
                   "output Y f32[%lld,%lld,%lld]\n"
                   "Y[n,k,x] = sum(c:%lld,s:%lld) X[n,c,%lld*x+%lld*s-%lld] * W[k,c,s]\n",
                   LL(v->n), LL(v->c), reach(v, v->w, v->s), LL(v->k), LL(v->c), LL(v->s), LL(v->n),
                   LL(v->k), LL(v->w), LL(v->c), LL(v->s), LL(v->stride), LL(v->dilation),
                   LL(v->pad));
}

static void write_depthwise(const struct wpk_fixture_conv *v, struct wpk_buf *out)
{
    wpk_buf_printf(out,
                   "input X f32[%lld,%lld,%lld]\nconstant W f32[%lld,%lld,%lld]\n"
                   "output Y f32[%lld,%lld,%lld]\n"
                   "Y[c,y,x] = sum(r:%lld,s:%lld) X[c,%lld*y+%lld*r-%lld,%lld*x+%lld*s-%lld] * "
                   "W[c,r,s]\n",
                   LL(v->c), reach(v, v->h, v->r), reach(v, v->w, v->s), LL(v->c), LL(v->r),
                   LL(v->s), LL(v->c), LL(v->h), LL(v->w), LL(v->r), LL(v->s), LL(v->stride),
                   LL(v->dilation), LL(v->pad), LL(v->stride), LL(v->dilation), LL(v->pad));
}

static void write_grouped(const struct wpk_fixture_conv *v, struct wpk_buf *out)
{
    wpk_buf_printf(out,
                   "input X f32[%lld,2,%lld,%lld,%lld]\nconstant W f32[2,%lld,%lld,%lld,%lld]\n"
                   "output Y f32[%lld,2,%lld,%lld,%lld]\n"
                   "Y[n,g,k,y,x] = sum(c:%lld,r:%lld,s:%lld) X[n,g,c,%lld*y+%lld*r-%lld,"
                   "%lld*x+%lld*s-%lld] * W[g,k,c,r,s]\n",
                   LL(v->n), LL(v->c), reach(v, v->h, v->r), reach(v, v->w, v->s), LL(v->k),
                   LL(v->c), LL(v->r), LL(v->s), LL(v->n), LL(v->k), LL(v->h), LL(v->w), LL(v->c),
                   LL(v->r), LL(v->s), LL(v->stride), LL(v->dilation), LL(v->pad), LL(v->stride),
                   LL(v->dilation), LL(v->pad));
}

/* A product for each pixel. */
static void write_pixels(const struct wpk_fixture_conv *v, struct wpk_buf *out)
{
    wpk_buf_printf(out,
                   "input X f32[%lld,%lld,%lld,%lld]\nconstant W f32[%lld,%lld]\n"
                   "intermediate T f32[%lld,%lld,%lld,%lld]\noutput Y f32[%lld,%lld,%lld,%lld]\n"
                   "T[n,k,y,x] = sum(c:%lld,r:1) X[n,c,y+r,x] * W[k,c]\n"
                   "Y[n,k,y,x] = max(T[n,k,y,x], 0)\n",
                   LL(v->n), LL(v->c), LL(v->h), LL(v->w), LL(v->k), LL(v->c), LL(v->n), LL(v->k),
                   LL(v->h), LL(v->w), LL(v->n), LL(v->k), LL(v->h), LL(v->w), LL(v->c));
}

/* A product for each pixel between two windows. */
static void write_separable(const struct wpk_fixture_conv *v, struct wpk_buf *out)
{
    wpk_buf_printf(out,
                   "input X f32[%lld,%lld,%lld,%lld]\nconstant V f32[%lld,%lld,%lld]\n"
                   "constant W f32[%lld,%lld]\nintermediate D f32[%lld,%lld,%lld,%lld]\n"
                   "intermediate T f32[%lld,%lld,%lld,%lld]\noutput Y f32[%lld,%lld,%lld,%lld]\n",
                   LL(v->n), LL(v->c), LL(v->h), LL(v->w), LL(v->c), LL(v->r), LL(v->s), LL(v->k),
                   LL(v->c), LL(v->n), LL(v->c), LL(v->h), LL(v->w), LL(v->n), LL(v->k), LL(v->h),
                   LL(v->w), LL(v->n), LL(v->k), LL(v->h), LL(v->w));
    wpk_buf_printf(out,
                   "D[n,c,y,x] = sum(r:%lld,s:%lld) X[n,c,y+r-%lld,x+s-%lld] * V[c,r,s]\n"
                   "T[n,k,y,x] = sum(c:%lld) D[n,c,y,x] * W[k,c]\n"
                   "Y[n,k,y,x] = max(r:2,s:2) T[n,k,y+r-%lld,x+s | -inf]\n",
                   LL(v->r), LL(v->s), LL(v->r / 2), LL(v->s / 2), LL(v->c), LL(v->pad));
}

/* Two convolutions with a shortcut around them. */
static void write_block(const struct wpk_fixture_conv *v, struct wpk_buf *out)
{
    char shape[128];
    snprintf(shape, sizeof(shape), "f32[%lld,%lld,%lld,%lld]", LL(v->n), LL(v->c), LL(v->h),
             LL(v->w));
    wpk_buf_printf(out,
                   "input X %s\nconstant V f32[%lld,%lld,%lld,%lld]\n"
                   "constant W f32[%lld,%lld,3,3]\nintermediate C %s\nintermediate D %s\n"
                   "intermediate R %s\noutput Y %s\n",
                   shape, LL(v->c), LL(v->c), LL(v->r), LL(v->s), LL(v->c), LL(v->c), shape, shape,
                   shape, shape);
    wpk_buf_printf(out,
                   "C[n,k,y,x] = sum(c:%lld,r:%lld,s:%lld) X[n,c,y+r-%lld,x+s-%lld] * V[k,c,r,s]\n"
                   "R[n,k,y,x] = max(C[n,k,y,x], 0)\n"
                   "D[n,k,y,x] = sum(c:%lld,r:3,s:3) R[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"
                   "Y[n,k,y,x] = max(D[n,k,y,x] + X[n,k,y,x], 0)\n",
                   LL(v->c), LL(v->r), LL(v->s), LL(v->r / 2), LL(v->s / 2), LL(v->c));
}

static void write_rest(enum wpk_fixture_shape shape, const struct wpk_fixture_conv *v,
                       struct wpk_buf *out)
{
    switch (shape) {
    case WPK_FIXTURE_MATMUL:
        wpk_buf_printf(
            out,
            "input A f32[%lld,%lld]\nconstant B f32[%lld,%lld]\noutput Y f32[%lld,%lld]\n"
            "Y[i,j] = sum(k:%lld) A[i,k] * B[k,j]\n",
            LL(v->h), LL(4 * v->c), LL(4 * v->c), LL(v->w), LL(v->h), LL(v->w), LL(4 * v->c));
        break;
    case WPK_FIXTURE_POOLING:
        wpk_buf_printf(out,
                       "input X f32[%lld,%lld,%lld]\noutput Y f32[%lld,%lld,%lld]\n"
                       "Y[c,y,x] = max(r:%lld,s:%lld) X[c,%lld*y+r-%lld,%lld*x+s-%lld | -inf]\n",
                       LL(v->c), LL(v->h * v->stride), LL(v->w * v->stride), LL(v->c), LL(v->h),
                       LL(v->w), LL(v->r), LL(v->s), LL(v->stride), LL(v->r / 2), LL(v->stride),
                       LL(v->s / 2));
        break;
    case WPK_FIXTURE_SOFTMAX:
        wpk_buf_printf(
            out,
            "input X f32[%lld,%lld]\nintermediate M f32[%lld]\nintermediate D f32[%lld]\n"
            "output Y f32[%lld,%lld]\nM[i] = max(j:%lld) X[i,j]\n"
            "D[i] = sum(j:%lld) exp(X[i,j] - M[i])\nY[i,j] = exp(X[i,j] - M[i]) / D[i]\n",
            LL(v->h), LL(4 * v->w), LL(v->h), LL(v->h), LL(v->h), LL(4 * v->w), LL(4 * v->w),
            LL(4 * v->w));
        break;
    default: /* a stencil: no contraction, and two reads that leave */
        wpk_buf_printf(out,
                       "input X f32[%lld,%lld]\noutput Y f32[%lld,%lld]\n"
                       "Y[i,j] = 2 * X[i,j] - X[i-1,j] - X[i,j+2]\n",
                       LL(v->h), LL(v->w), LL(v->h), LL(v->w));
    }
}

void wpk_fixture_write(enum wpk_fixture_shape shape, const struct wpk_fixture_conv *v,
                       struct wpk_buf *out)
{
    switch (shape) {
    case WPK_FIXTURE_CONV_2D:
        write_conv_2d(v, out);
        break;
    case WPK_FIXTURE_CONV_1D:
        write_conv_1d(v, out);
        break;
    case WPK_FIXTURE_CONV_GROUPED:
        write_grouped(v, out);
        break;
    case WPK_FIXTURE_DEPTHWISE:
        write_depthwise(v, out);
        break;
    case WPK_FIXTURE_PIXELS:
        write_pixels(v, out);
        break;
    case WPK_FIXTURE_SEPARABLE:
        write_separable(v, out);
        break;
    case WPK_FIXTURE_BLOCK:
        write_block(v, out);
        break;
    default:
        write_rest(shape, v, out);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A primitive of oneDNN, as the files of this folder see it.
 *
 *      onednn.c         makes a primitive from a recipe
 *      onednn_call.c    packs constants, makes and runs calls
 *      onednn_layout.c  converts between the library's memory descriptors and our layouts */
#ifndef WPK_RUNTIME_VENDOR_ONEDNN_PLAN_H
#define WPK_RUNTIME_VENDOR_ONEDNN_PLAN_H

#include "runtime/vendor/onednn_library.h"
#include "runtime/vendor/vendor.h"

#define WPK_ONEDNN_DETAIL_MAX 160
#define WPK_ONEDNN_VERSION_MAX 32

struct wpk_onednn_operand {
    int arg;                        /* DNNL_ARG_* */
    bool constant;                  /* packed once; other operands are converted in each call */
    dnnl_memory_desc_t outer;       /* owned: how the recipe's tensor lies; NULL: not used */
    dnnl_memory_desc_t wanted;      /* owned: asked of the primitive; may be "any" */
    const_dnnl_memory_desc_t inner; /* chosen by the primitive */
    dnnl_primitive_t conversion;    /* owned; NULL: outer and inner are equal, or it is constant */
    void *bytes;                    /* owned: the packed constant */
};

/* Immutable once constants are packed, except for `users`. */
struct wpk_vendor {
    int users; /* atomic */
    struct wpk_onednn_library library;
    struct wpk_recipe recipe;
    int threads;
    dnnl_engine_t engine;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    const_dnnl_memory_desc_t scratch; /* owned by `desc` */
    struct wpk_onednn_operand operand[WPK_RECIPE_ROLE_COUNT];
    char version[WPK_ONEDNN_VERSION_MAX];
    char detail[WPK_ONEDNN_DETAIL_MAX];
};

/* Describe the memory of an operand to the library.
 *   errors  WPK_EUNSUPPORTED the library has no name for the type or the block; WPK_ENOMEM */
wpk_err wpk_onednn_describe(const struct wpk_onednn_library *library,
                            const struct wpk_recipe *recipe, int role, dnnl_memory_desc_t *out);

/* Make the primitive that copies memory described by `from` into memory described by `to`.
 *   errors  those of wpk_onednn_translate */
wpk_err wpk_onednn_conversion(const struct wpk_vendor *vendor, const_dnnl_memory_desc_t from,
                              const_dnnl_memory_desc_t to, dnnl_primitive_t *out);

#endif

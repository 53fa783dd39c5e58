/* SPDX-License-Identifier: Apache-2.0 */
/* A primitive of oneDNN's as the files of this folder see it.
 *
 *      onednn.c         from a recipe to a primitive
 *      onednn_call.c    constants, and calls
 *      onednn_layout.c  the library's descriptors of memory, and ours */
#ifndef WPK_RUNTIME_ONEDNN_PLAN_H
#define WPK_RUNTIME_ONEDNN_PLAN_H

#include "runtime/onednn_library.h"
#include "runtime/vendor.h"

#define WPK_ONEDNN_DETAIL_MAX 160
#define WPK_ONEDNN_VERSION_MAX 32

struct wpk_onednn_operand {
    int arg;                        /* DNNL_ARG_* */
    bool constant;                  /* packed once, else converted in each call */
    dnnl_memory_desc_t outer;       /* owned: as the recipe says the tensor lies; NULL: not used */
    dnnl_memory_desc_t wanted;      /* owned: what the primitive is offered, "any" perhaps */
    const_dnnl_memory_desc_t inner; /* the primitive's */
    dnnl_primitive_t conversion;    /* owned; NULL: outer and inner are equal, or it is constant */
    void *bytes;                    /* owned: the packed constant */
};

/* Immutable once constants are packed, but for the count of its users. */
struct wpk_vendor {
    int users; /* atomic */
    struct wpk_onednn_library library;
    struct wpk_recipe recipe;
    int threads;
    dnnl_engine_t engine;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    const_dnnl_memory_desc_t scratch; /* of `desc` */
    struct wpk_onednn_operand operand[WPK_RECIPE_ROLE_COUNT];
    char version[WPK_ONEDNN_VERSION_MAX];
    char detail[WPK_ONEDNN_DETAIL_MAX];
};

/* Describe the operand's memory.
 *   errors  WPK_EUNSUPPORTED a type or block that the library has no name for */
wpk_err wpk_onednn_describe(const struct wpk_onednn_library *library,
                            const struct wpk_recipe *recipe, int role, dnnl_memory_desc_t *out);

/* Make the primitive that copies from one to the other.   errors  as wpk_onednn_translate */
wpk_err wpk_onednn_conversion(const struct wpk_vendor *vendor, const_dnnl_memory_desc_t from,
                              const_dnnl_memory_desc_t to, dnnl_primitive_t *out);

#endif

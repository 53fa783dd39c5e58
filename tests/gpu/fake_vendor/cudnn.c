/* SPDX-License-Identifier: Apache-2.0 */
/* A cuDNN for the emulated GPU: a graph is a convolution, with or without what follows it, or what
 * follows alone; kernels that the emulated driver runs compute it.
 *
 * A graph with a convolution has four engines: the first computes everything twice; the second uses
 * tensor cores, and rounds operands to TF32; the third has no plan; the fourth is the fastest.
 * Other graphs have one. WPK_FAKE_CUDNN=apart lets no graph have more than a convolution in it;
 * "liar" lets the second engine deny its tensor cores, and be the only one. "knobs": the heuristic
 * knows the first engine alone, the fourth is refused, and each of the others has a knob with
 * the values 0, 1 (refused) and 2, with which the first engine computes everything once. */
#include "common/cudnn_calls.h"
#include "tests/gpu/fake_vendor/driver.h"

#include <stdlib.h>
#include <string.h>

#define VARIABLE "WPK_FAKE_CUDNN"
#define VERSION 91900
#define ATTRIBUTES_MAX 12
#define BYTES_MAX 64
#define WARP 32
#define WORKSPACE_BYTES 512
#define MASK_F32 0xFFFFFFFFU
#define MASK_TF32 0xFFFFE000U /* 10 bits of the mantissa */
#define BIAS 4
#define RELU 2
#define PARAMETERS_MAX 40
#define RANK 4
#define KNOB 7 /* its type */
#define KNOB_REFUSED 1
#define KNOB_ONCE 2

enum engine { TWICE, TENSOR_CORES, PLANLESS, FASTEST, ENGINES };

#define DECLARE(name, result, parameters)                                                          \
    __attribute__((visibility("default"))) result name parameters;
WPK_CUDNN_CALL_LIST(DECLARE)

static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry conv(\n"
    ".param .u64 p0,\n.param .u64 p1,\n.param .u64 p2,\n.param .u64 p3,\n"
    ".param .u32 p4,\n.param .u32 p5,\n.param .u32 p6,\n.param .u32 p7,\n"
    ".param .u32 p8,\n.param .u32 p9,\n.param .u32 p10,\n.param .u32 p11,\n"
    ".param .u32 p12,\n.param .u32 p13,\n.param .u32 p14,\n.param .u32 p15,\n"
    ".param .u32 p16,\n.param .u32 p17,\n.param .u32 p18,\n.param .u32 p19,\n"
    ".param .u32 p20,\n.param .u32 p21,\n.param .u32 p22,\n.param .u32 p23,\n"
    ".param .u32 p24,\n.param .u32 p25,\n.param .u32 p26,\n.param .u32 p27,\n"
    ".param .u32 p28,\n.param .u32 p29,\n.param .u32 p30,\n.param .u32 p31,\n"
    ".param .u32 p32,\n.param .u32 p33\n)\n{\n.reg .pred %p<17>;\n.reg .f32 %f<25>;\n"
    ".reg .b32 %r<91>;\n.reg .b64 %rd<17>;\nld.param.u64 %rd3, [p0];\n"
    "ld.param.u64 %rd4, [p1];\nld.param.u64 %rd5, [p2];\nld.param.u64 %rd6, [p3];\n"
    "ld.param.u32 %r56, [p4];\nld.param.u32 %r27, [p5];\nld.param.u32 %r28, [p6];\n"
    "ld.param.u32 %r29, [p7];\nld.param.u32 %r30, [p8];\nld.param.u32 %r31, [p9];\n"
    "ld.param.u32 %r32, [p10];\nld.param.u32 %r33, [p11];\nld.param.u32 %r34, [p12];\n"
    "ld.param.u32 %r35, [p13];\nld.param.u32 %r36, [p14];\nld.param.u32 %r37, [p15];\n"
    "ld.param.u32 %r38, [p16];\nld.param.u32 %r39, [p17];\nld.param.u32 %r40, [p18];\n"
    "ld.param.u32 %r41, [p19];\nld.param.u32 %r42, [p20];\nld.param.u32 %r43, [p21];\n"
    "ld.param.u32 %r44, [p22];\nld.param.u32 %r45, [p23];\nld.param.u32 %r46, [p24];\n"
    "ld.param.u32 %r47, [p25];\nld.param.u32 %r48, [p26];\nld.param.u32 %r49, [p27];\n"
    "ld.param.u32 %r50, [p28];\nld.param.u32 %r51, [p29];\nld.param.u32 %r52, [p30];\n"
    "ld.param.u32 %r53, [p31];\nld.param.u32 %r54, [p32];\nld.param.u32 %r55, [p33];\n"
    "mov.u32 %r57, %ctaid.x;\nshl.b32 %r58, %r57, 5;\nmov.u32 %r59, %tid.x;\n"
    "add.s32 %r1, %r58, %r59;\nsetp.ge.s32 %p1, %r1, %r56;\nmov.f32 %f21, 0f00000000;\n"
    "@%p1 bra L0_15;\ndiv.s32 %r60, %r1, %r29;\nmul.lo.s32 %r61, %r60, %r29;\n"
    "sub.s32 %r2, %r1, %r61;\ndiv.s32 %r62, %r60, %r28;\nmul.lo.s32 %r63, %r62, %r28;\n"
    "sub.s32 %r3, %r60, %r63;\ndiv.s32 %r5, %r62, %r27;\nmul.lo.s32 %r64, %r5, %r27;\n"
    "sub.s32 %r4, %r62, %r64;\nsetp.lt.s32 %p2, %r30, 1;\n@%p2 bra L0_12;\n"
    "setp.lt.s32 %p3, %r31, 1;\n@%p3 bra L0_12;\nmul.lo.s32 %r6, %r4, %r38;\n"
    "mul.lo.s32 %r66, %r2, %r49;\nsub.s32 %r7, %r66, %r51;\nmul.lo.s32 %r67, %r37, %r7;\n"
    "mad.lo.s32 %r8, %r5, %r34, %r67;\nmul.lo.s32 %r9, %r53, %r37;\n"
    "cvta.to.global.u64 %rd1, %rd3;\ncvta.to.global.u64 %rd2, %rd4;\n"
    "mul.lo.s32 %r68, %r3, %r48;\nsub.s32 %r10, %r68, %r50;\nmov.f32 %f21, 0f00000000;\n"
    "mov.u32 %r85, 0;\ndiv.s32 %r72, %r4, %r33;\nL0_4:\nsetp.lt.s32 %p4, %r32, 1;\n"
    "@%p4 bra L0_11;\nmad.lo.s32 %r12, %r39, %r85, %r6;\nmov.u32 %r69, 0;\n"
    "mov.u32 %r86, %r69;\nL0_6:\nmad.lo.s32 %r14, %r86, %r52, %r10;\n"
    "mad.lo.s32 %r89, %r40, %r86, %r12;\nmad.lo.s32 %r88, %r36, %r14, %r8;\n"
    "mov.u32 %r87, %r7;\nmov.u32 %r90, %r69;\nL0_7:\nor.b32 %r71, %r87, %r14;\n"
    "setp.lt.s32 %p5, %r71, 0;\nsetp.ge.s32 %p6, %r14, %r46;\nor.pred %p7, %p6, %p5;\n"
    "setp.ge.s32 %p8, %r87, %r47;\nor.pred %p9, %p8, %p7;\n@%p9 bra L0_9;\n"
    "mad.lo.s32 %r73, %r30, %r72, %r85;\nmad.lo.s32 %r74, %r35, %r73, %r88;\n"
    "mul.wide.s32 %rd7, %r74, 4;\nadd.s64 %rd8, %rd1, %rd7;\n"
    "mul.wide.s32 %rd9, %r89, 4;\nadd.s64 %rd10, %rd2, %rd9;\n"
    "ld.global.u32 %r75, [%rd8];\nand.b32 %r76, %r75, %r55;\nmov.b32 %f13, %r76;\n"
    "ld.global.u32 %r77, [%rd10];\nand.b32 %r78, %r77, %r55;\nmov.b32 %f14, %r78;\n"
    "fma.rn.f32 %f21, %f13, %f14, %f21;\nL0_9:\nadd.s32 %r89, %r89, %r41;\n"
    "add.s32 %r88, %r88, %r9;\nadd.s32 %r87, %r87, %r53;\nadd.s32 %r90, %r90, 1;\n"
    "setp.lt.s32 %p10, %r90, %r32;\n@%p10 bra L0_7;\nadd.s32 %r86, %r86, 1;\n"
    "setp.lt.s32 %p11, %r86, %r31;\n@%p11 bra L0_6;\nL0_11:\nadd.s32 %r85, %r85, 1;\n"
    "setp.lt.s32 %p12, %r85, %r30;\n@%p12 bra L0_4;\nL0_12:\nand.b32 %r79, %r54, 4;\n"
    "setp.eq.s32 %p13, %r79, 0;\n@%p13 bra L0_14;\ncvta.to.global.u64 %rd11, %rd6;\n"
    "mul.wide.s32 %rd12, %r4, 4;\nadd.s64 %rd13, %rd11, %rd12;\n"
    "ld.global.f32 %f15, [%rd13];\nadd.f32 %f21, %f21, %f15;\nL0_14:\n"
    "and.b32 %r80, %r54, 2;\nsetp.eq.s32 %p14, %r80, 0;\n"
    "setp.gt.f32 %p15, %f21, 0f00000000;\nor.pred %p16, %p14, %p15;\n"
    "selp.f32 %f16, %f21, 0f00000000, %p16;\nmul.lo.s32 %r81, %r2, %r45;\n"
    "mad.lo.s32 %r82, %r3, %r44, %r81;\nmad.lo.s32 %r83, %r4, %r43, %r82;\n"
    "mad.lo.s32 %r84, %r5, %r42, %r83;\ncvta.to.global.u64 %rd14, %rd5;\n"
    "mul.wide.s32 %rd15, %r84, 4;\nadd.s64 %rd16, %rd14, %rd15;\n"
    "st.global.f32 [%rd16], %f16;\nL0_15:\nret;\n}\n.visible .entry point(\n"
    ".param .u64 p0,\n.param .u64 p1,\n.param .u64 p2,\n.param .u32 p3,\n"
    ".param .u32 p4,\n.param .u32 p5,\n.param .u32 p6,\n.param .u32 p7,\n"
    ".param .u32 p8,\n.param .u32 p9,\n.param .u32 p10,\n.param .u32 p11,\n"
    ".param .u32 p12,\n.param .u32 p13,\n.param .u32 p14,\n.param .u32 p15\n)\n{\n"
    ".reg .pred %p<6>;\n.reg .f32 %f<7>;\n.reg .b32 %r<37>;\n.reg .b64 %rd<13>;\n"
    "ld.param.u64 %rd1, [p0];\nld.param.u64 %rd2, [p1];\nld.param.u64 %rd3, [p2];\n"
    "ld.param.u32 %r18, [p3];\nld.param.u32 %r6, [p4];\nld.param.u32 %r7, [p5];\n"
    "ld.param.u32 %r8, [p6];\nld.param.u32 %r9, [p7];\nld.param.u32 %r10, [p8];\n"
    "ld.param.u32 %r11, [p9];\nld.param.u32 %r12, [p10];\nld.param.u32 %r13, [p11];\n"
    "ld.param.u32 %r14, [p12];\nld.param.u32 %r15, [p13];\nld.param.u32 %r16, [p14];\n"
    "ld.param.u32 %r17, [p15];\nmov.u32 %r19, %ctaid.x;\nshl.b32 %r20, %r19, 5;\n"
    "mov.u32 %r21, %tid.x;\nadd.s32 %r1, %r20, %r21;\nsetp.ge.s32 %p1, %r1, %r18;\n"
    "@%p1 bra L1_4;\ncvta.to.global.u64 %rd4, %rd1;\ndiv.s32 %r22, %r1, %r8;\n"
    "div.s32 %r23, %r22, %r7;\nmul.lo.s32 %r24, %r23, %r7;\nsub.s32 %r2, %r22, %r24;\n"
    "div.s32 %r4, %r23, %r6;\nmul.lo.s32 %r25, %r4, %r6;\nsub.s32 %r3, %r23, %r25;\n"
    "mul.lo.s32 %r26, %r22, %r8;\nsub.s32 %r5, %r1, %r26;\nmul.lo.s32 %r27, %r5, %r12;\n"
    "mad.lo.s32 %r28, %r2, %r11, %r27;\nmad.lo.s32 %r29, %r3, %r10, %r28;\n"
    "mad.lo.s32 %r30, %r4, %r9, %r29;\nmul.wide.s32 %rd5, %r30, 4;\n"
    "add.s64 %rd6, %rd4, %rd5;\nld.global.f32 %f6, [%rd6];\nand.b32 %r31, %r17, 4;\n"
    "setp.eq.s32 %p2, %r31, 0;\n@%p2 bra L1_3;\ncvta.to.global.u64 %rd7, %rd2;\n"
    "mul.wide.s32 %rd8, %r3, 4;\nadd.s64 %rd9, %rd7, %rd8;\nld.global.f32 %f4, [%rd9];\n"
    "add.f32 %f6, %f6, %f4;\nL1_3:\nand.b32 %r32, %r17, 2;\nsetp.eq.s32 %p3, %r32, 0;\n"
    "setp.gt.f32 %p4, %f6, 0f00000000;\nor.pred %p5, %p3, %p4;\n"
    "selp.f32 %f5, %f6, 0f00000000, %p5;\nmul.lo.s32 %r33, %r5, %r16;\n"
    "mad.lo.s32 %r34, %r2, %r15, %r33;\nmad.lo.s32 %r35, %r3, %r14, %r34;\n"
    "mad.lo.s32 %r36, %r4, %r13, %r35;\ncvta.to.global.u64 %rd10, %rd3;\n"
    "mul.wide.s32 %rd11, %r36, 4;\nadd.s64 %rd12, %rd10, %rd11;\n"
    "st.global.f32 [%rd12], %f5;\nL1_4:\nret;\n}\n";

struct handle {
    struct fake_driver driver;
    void *convolution, *point; /* functions */
    void *stream;
};

struct attribute {
    int name, type;
    int64_t count;
    unsigned char bytes[BYTES_MAX];
};

struct descriptor {
    int type;
    bool finished;
    struct attribute attribute[ATTRIBUTES_MAX];
    int attribute_count;
    enum engine engine;             /* of a configuration and an engine */
    int64_t knob;                   /* of a configuration */
    const struct descriptor *graph; /* of both */
};

size_t cudnnGetVersion(void)
{
    return VERSION;
}

int cudnnCreate(void **handle)
{
    struct handle *made = calloc(1, sizeof(*made));
    if (made == NULL || !fake_driver_open(&made->driver, ptx) ||
        !fake_driver_find(&made->driver, "conv", &made->convolution) ||
        !fake_driver_find(&made->driver, "point", &made->point)) {
        free(made);
        return WPK_CUDNN_STATUS_EXECUTION_FAILED;
    }
    *handle = made;
    return WPK_CUDNN_STATUS_SUCCESS;
}

int cudnnDestroy(void *handle)
{
    struct handle *made = handle;
    (void)made->driver.cuModuleUnload(made->driver.module);
    free(made);
    return WPK_CUDNN_STATUS_SUCCESS;
}

int cudnnSetStream(void *handle, void *stream)
{
    ((struct handle *)handle)->stream = stream;
    return WPK_CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors */

int cudnnBackendCreateDescriptor(int type, void **descriptor)
{
    struct descriptor *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return WPK_CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    }
    made->type = type;
    *descriptor = made;
    return WPK_CUDNN_STATUS_SUCCESS;
}

int cudnnBackendDestroyDescriptor(void *descriptor)
{
    free(descriptor);
    return WPK_CUDNN_STATUS_SUCCESS;
}

static size_t size_of(int type)
{
    switch (type) {
    case WPK_CUDNN_TYPE_BOOLEAN:
        return 1;
    case WPK_CUDNN_TYPE_HANDLE:
    case WPK_CUDNN_TYPE_INT64:
    case WPK_CUDNN_TYPE_VOID_PTR:
    case WPK_CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count,
                             const void *elements)
{
    struct descriptor *made = descriptor;
    size_t size = size_of(type) * (size_t)count;
    if (made->finished || made->attribute_count == ATTRIBUTES_MAX || size > BYTES_MAX) {
        return WPK_CUDNN_STATUS_BAD_PARAM;
    }
    struct attribute *out = &made->attribute[made->attribute_count++];
    *out = (struct attribute){.name = name, .type = type, .count = count};
    memcpy(out->bytes, elements, size);
    return WPK_CUDNN_STATUS_SUCCESS;
}

/* The attribute; NULL: it was not set. */
static const struct attribute *find(const struct descriptor *made, int name)
{
    for (int i = 0; i < made->attribute_count; i++) {
        if (made->attribute[i].name == name) {
            return &made->attribute[i];
        }
    }
    return NULL;
}

static void read(const struct descriptor *made, int name, void *out, size_t size)
{
    const struct attribute *found = find(made, name);
    memset(out, 0, size);
    if (found != NULL) {
        memcpy(out, found->bytes, size);
    }
}

static const struct descriptor *child(const struct descriptor *made, int name)
{
    const struct descriptor *out = NULL;
    read(made, name, (void *)&out, sizeof(out));
    return out;
}

/* ---- graphs */

struct operations {
    const struct descriptor *convolution, *add, *relu;
    int count;
};

static struct operations operations_of(const struct descriptor *graph)
{
    struct operations out = {0};
    const struct descriptor *list[BYTES_MAX / 8] = {NULL};
    const struct attribute *found = find(graph, WPK_CUDNN_ATTR_OPERATIONGRAPH_OPS);
    out.count = found != NULL ? (int)found->count : 0;
    read(graph, WPK_CUDNN_ATTR_OPERATIONGRAPH_OPS, (void *)list, sizeof(list));
    for (int i = 0; i < out.count; i++) {
        int mode = 0;
        if (list[i]->type == WPK_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
            out.convolution = list[i];
            continue;
        }
        read(child(list[i], WPK_CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
             WPK_CUDNN_ATTR_POINTWISE_MODE, &mode, sizeof(mode));
        *(mode == WPK_CUDNN_POINTWISE_ADD ? &out.add : &out.relu) = list[i];
    }
    return out;
}

static int finish_plan(const struct descriptor *plan)
{
    const struct descriptor *config = child(plan, WPK_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    return config->engine == PLANLESS ? WPK_CUDNN_STATUS_NOT_SUPPORTED : WPK_CUDNN_STATUS_SUCCESS;
}

static int finish_engine(struct descriptor *made)
{
    int64_t index = 0;
    read(made, WPK_CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &index, sizeof(index));
    made->engine = (enum engine)index;
    made->graph = child(made, WPK_CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    return index < FASTEST ? WPK_CUDNN_STATUS_SUCCESS : WPK_CUDNN_STATUS_NOT_SUPPORTED;
}

static int finish_config(struct descriptor *made)
{
    const struct descriptor *engine = child(made, WPK_CUDNN_ATTR_ENGINECFG_ENGINE);
    const struct descriptor *choice = child(made, WPK_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    int type = KNOB;
    if (choice != NULL) {
        read(choice, WPK_CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, &type, sizeof(type));
        read(choice, WPK_CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, &made->knob, sizeof(made->knob));
    }
    made->engine = engine->engine;
    made->graph = engine->graph;
    return type != KNOB                 ? WPK_CUDNN_STATUS_BAD_PARAM
           : made->knob == KNOB_REFUSED ? WPK_CUDNN_STATUS_NOT_SUPPORTED
                                        : WPK_CUDNN_STATUS_SUCCESS;
}

int cudnnBackendFinalize(void *descriptor)
{
    struct descriptor *made = descriptor;
    int status = WPK_CUDNN_STATUS_SUCCESS;
    if (made->type == WPK_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
        struct operations found = operations_of(made);
        bool fused = found.convolution != NULL && found.count > 1;
        status = fused && fake_is_mode(VARIABLE, "apart") ? WPK_CUDNN_STATUS_NOT_SUPPORTED : status;
    } else if (made->type == WPK_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        status = finish_plan(made);
    } else if (made->type == WPK_CUDNN_BACKEND_ENGINE_DESCRIPTOR) {
        status = finish_engine(made);
    } else if (made->type == WPK_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) {
        status = finish_config(made);
    }
    made->finished = status == WPK_CUDNN_STATUS_SUCCESS;
    return status;
}

/* ---- engines */

static int64_t list_engines(const struct descriptor *heuristic, struct descriptor **out,
                            int64_t max)
{
    const struct descriptor *graph = child(heuristic, WPK_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    int mode = 0;
    int64_t count = 0;
    read(heuristic, WPK_CUDNN_ATTR_ENGINEHEUR_MODE, &mode, sizeof(mode));
    for (int engine = 0; engine < ENGINES && count < max && mode == WPK_CUDNN_HEUR_MODE_A;
         engine++) {
        bool is_convolution = operations_of(graph).convolution != NULL;
        bool liar = fake_is_mode(VARIABLE, "liar") && is_convolution;
        bool knobs = fake_is_mode(VARIABLE, "knobs");
        if (is_convolution ? (!liar || engine == TENSOR_CORES) && (!knobs || engine == TWICE)
                           : engine == FASTEST) {
            out[count]->engine = (enum engine)engine;
            out[count]->graph = graph;
            out[count++]->finished = true;
        }
    }
    return count;
}

int cudnnBackendGetAttribute(void *descriptor, int name, int type, int64_t count_max,
                             int64_t *count, void *elements)
{
    const struct descriptor *made = descriptor;
    const int note = WPK_CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    const int64_t bytes = WORKSPACE_BYTES;
    const int knob = KNOB;
    int64_t number = 0;
    if (!made->finished || count_max < 1) {
        return WPK_CUDNN_STATUS_BAD_PARAM;
    }
    *count = 1;
    switch (name) {
    case WPK_CUDNN_ATTR_ENGINEHEUR_RESULTS:
        *count = list_engines(made, elements, count_max);
        return WPK_CUDNN_STATUS_SUCCESS;
    case WPK_CUDNN_ATTR_ENGINECFG_ENGINE: {
        struct descriptor *engine = *(struct descriptor **)elements;
        engine->engine = made->engine;
        engine->finished = true;
        return WPK_CUDNN_STATUS_SUCCESS;
    }
    case WPK_CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
        number = fake_is_mode(VARIABLE, "knobs") ? ENGINES : 0;
        memcpy(elements, &number, sizeof(number));
        return WPK_CUDNN_STATUS_SUCCESS;
    case WPK_CUDNN_ATTR_ENGINE_KNOB_INFO:
        (*(struct descriptor **)elements)->finished = true;
        return WPK_CUDNN_STATUS_SUCCESS;
    case WPK_CUDNN_ATTR_KNOB_INFO_TYPE:
        memcpy(elements, &knob, sizeof(knob));
        return WPK_CUDNN_STATUS_SUCCESS;
    case WPK_CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE:
    case WPK_CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE:
    case WPK_CUDNN_ATTR_KNOB_INFO_STRIDE:
        number = name == WPK_CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE   ? 0
                 : name == WPK_CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE ? KNOB_ONCE
                                                                  : 1;
        memcpy(elements, &number, sizeof(number));
        return WPK_CUDNN_STATUS_SUCCESS;
    case WPK_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *count = made->engine == TENSOR_CORES && !fake_is_mode(VARIABLE, "liar") ? 1 : 0;
        memcpy(elements, &note, sizeof(note));
        return WPK_CUDNN_STATUS_SUCCESS;
    case WPK_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        memcpy(elements, &bytes, sizeof(bytes));
        return type == WPK_CUDNN_TYPE_INT64 ? WPK_CUDNN_STATUS_SUCCESS : WPK_CUDNN_STATUS_BAD_PARAM;
    default:
        return WPK_CUDNN_STATUS_NOT_SUPPORTED;
    }
}

/* ---- execution */

/* A tensor, with its address out of the pack. */
struct tensor {
    int extent[RANK], stride[RANK];
    uint64_t address; /* 0: it is not in the pack */
};

static struct tensor tensor_of(const struct descriptor *described, const struct descriptor *pack)
{
    struct tensor out = {0};
    int64_t uid = 0, uids[BYTES_MAX / 8], extent[RANK], stride[RANK];
    uint64_t addresses[BYTES_MAX / 8];
    read(described, WPK_CUDNN_ATTR_TENSOR_UNIQUE_ID, &uid, sizeof(uid));
    read(described, WPK_CUDNN_ATTR_TENSOR_DIMENSIONS, extent, sizeof(extent));
    read(described, WPK_CUDNN_ATTR_TENSOR_STRIDES, stride, sizeof(stride));
    read(pack, WPK_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids, sizeof(uids));
    read(pack, WPK_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses, sizeof(addresses));
    for (int d = 0; d < RANK; d++) {
        out.extent[d] = (int)extent[d];
        out.stride[d] = (int)stride[d];
    }
    int count = (int)find(pack, WPK_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->count;
    for (int i = 0; i < count; i++) {
        out.address = uids[i] == uid ? addresses[i] : out.address;
    }
    return out;
}

static int run(const struct handle *handle, void *function, const uint64_t *pointers,
               int pointer_count, const int *numbers, int count, int elements, int times)
{
    void *parameters[PARAMETERS_MAX];
    int status = WPK_CUDA_SUCCESS;
    for (int i = 0; i < pointer_count; i++) {
        parameters[i] = (void *)&pointers[i];
    }
    for (int i = 0; i < count; i++) {
        parameters[pointer_count + i] = (void *)&numbers[i];
    }
    for (int i = 0; i < times && status == WPK_CUDA_SUCCESS; i++) {
        status =
            handle->driver.cuLaunchKernel(function, (unsigned)((elements + WARP - 1) / WARP), 1, 1,
                                          WARP, 1, 1, 0, handle->stream, parameters, NULL);
    }
    return status == WPK_CUDA_SUCCESS ? WPK_CUDNN_STATUS_SUCCESS
                                      : WPK_CUDNN_STATUS_EXECUTION_FAILED;
}

static int convolve(const struct handle *handle, const struct descriptor *operation,
                    const struct descriptor *pack, const struct descriptor *config,
                    const struct tensor *y, uint64_t bias, int epilogue)
{
    const struct descriptor *window =
        child(operation, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
    const struct tensor x =
        tensor_of(child(operation, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), pack);
    const struct tensor w =
        tensor_of(child(operation, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W), pack);
    int64_t before[2], stride[2], step[2];
    read(window, WPK_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, before, sizeof(before));
    read(window, WPK_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, stride, sizeof(stride));
    read(window, WPK_CUDNN_ATTR_CONVOLUTION_DILATIONS, step, sizeof(step));
    const uint64_t pointers[] = {x.address, w.address, y->address, bias};
    int count = y->extent[0] * y->extent[1] * y->extent[2] * y->extent[3];
    unsigned mask = config->engine == TENSOR_CORES ? MASK_TF32 : MASK_F32;
    const int numbers[] = {
        count,          y->extent[1],   y->extent[2],   y->extent[3],
        w.extent[1],    w.extent[2],    w.extent[3],    y->extent[1] / (x.extent[1] / w.extent[1]),
        x.stride[0],    x.stride[1],    x.stride[2],    x.stride[3],
        w.stride[0],    w.stride[1],    w.stride[2],    w.stride[3],
        y->stride[0],   y->stride[1],   y->stride[2],   y->stride[3],
        x.extent[2],    x.extent[3],    (int)stride[0], (int)stride[1],
        (int)before[0], (int)before[1], (int)step[0],   (int)step[1],
        epilogue,       (int)mask};
    return run(handle, handle->convolution, pointers, 4, numbers,
               (int)(sizeof(numbers) / sizeof(numbers[0])), count,
               config->engine == TWICE && config->knob != KNOB_ONCE ? 2 : 1);
}

static int point(const struct handle *handle, const struct tensor *x, const struct tensor *y,
                 uint64_t bias, int epilogue)
{
    const uint64_t pointers[] = {x->address, bias, y->address};
    int count = y->extent[0] * y->extent[1] * y->extent[2] * y->extent[3];
    const int numbers[] = {count,        y->extent[1], y->extent[2], y->extent[3], x->stride[0],
                           x->stride[1], x->stride[2], x->stride[3], y->stride[0], y->stride[1],
                           y->stride[2], y->stride[3], epilogue};
    return run(handle, handle->point, pointers, 3, numbers,
               (int)(sizeof(numbers) / sizeof(numbers[0])), count, 1);
}

int cudnnBackendExecute(void *handle, void *plan, void *pack)
{
    const struct descriptor *config = child(plan, WPK_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const struct operations found = operations_of(config->graph);
    const struct descriptor *first = found.add != NULL ? found.add : found.relu;
    const struct descriptor *last = found.relu != NULL ? found.relu : found.add;
    struct tensor y = {0}, bias = {0};
    uint64_t workspace = 0;
    read(pack, WPK_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, &workspace, sizeof(workspace));
    if (!((struct descriptor *)plan)->finished || !((struct descriptor *)pack)->finished ||
        workspace == 0) {
        return WPK_CUDNN_STATUS_BAD_PARAM;
    }
    int epilogue = (found.add != NULL ? BIAS : 0) | (found.relu != NULL ? RELU : 0);
    y = tensor_of(last != NULL
                      ? child(last, WPK_CUDNN_ATTR_OPERATION_POINTWISE_YDESC)
                      : child(found.convolution, WPK_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y),
                  pack);
    if (found.add != NULL) {
        bias = tensor_of(child(found.add, WPK_CUDNN_ATTR_OPERATION_POINTWISE_BDESC), pack);
    }
    if (y.address == 0 || (found.add != NULL && bias.address == 0)) {
        return WPK_CUDNN_STATUS_BAD_PARAM;
    }
    if (found.convolution != NULL) {
        return convolve(handle, found.convolution, pack, config, &y, bias.address, epilogue);
    }
    const struct tensor x = tensor_of(child(first, WPK_CUDNN_ATTR_OPERATION_POINTWISE_XDESC), pack);
    return x.address != 0 ? point(handle, &x, &y, bias.address, epilogue)
                          : WPK_CUDNN_STATUS_BAD_PARAM;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A cuBLASLt for the emulated GPU: products are computed by a kernel that the emulated driver runs,
 * so streams, graphs, memory and the clock are its.
 *
 * The heuristic names three algorithms. The first computes everything twice; the second is refused
 * when it is run; the third is the fastest. WPK_FAKE_CUBLASLT=tf32 rounds operands
 * as TF32 does, "fast" those of the third alone, "none" names no algorithm, and "uncaptured" lets
 * no stream record the third. "tiles": the heuristic names the first alone, and there is one more
 * with two tiles: it is refused with one, and the fastest with the other. */
#include "common/cublaslt_calls.h"
#include "tests/gpu/fake_vendor/driver.h"

#include <stdlib.h>
#include <string.h>

#define VARIABLE "WPK_FAKE_CUBLASLT"
#define VERSION 120901
#define ALGORITHMS 3
#define REFUSED 1
#define FASTEST 2
#define WARP 32
#define TILED 40 /* the algorithm that has tiles */
#define TILE_REFUSED 5U
#define TILE_FASTEST 6U
#define WORKSPACE_BYTES 4096
#define MASK_F32 0xFFFFFFFFU
#define MASK_TF32 0xFFFFE000U /* 10 bits of the mantissa */
#define PARAMETERS 16
#define WORD 4

#define DECLARE(name, result, parameters)                                                          \
    __attribute__((visibility("default"))) result name parameters;
WPK_CUBLASLT_CALL_LIST(DECLARE)

/* D[z, y, row] = sum over k of A[z, row, k] B[z, k, y]; rows are 32 a block. */
static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry gemm(\n"
    ".param .u64 p0,\n.param .u64 p1,\n.param .u64 p2,\n.param .u64 p3,\n"
    ".param .u32 p4,\n.param .u32 p5,\n.param .u32 p6,\n.param .u32 p7,\n"
    ".param .u32 p8,\n.param .u32 p9,\n.param .u32 p10,\n.param .u32 p11,\n"
    ".param .u32 p12,\n.param .u32 p13,\n.param .u32 p14,\n.param .u32 p15\n)\n{\n"
    ".reg .pred %p<8>;\n.reg .f32 %f<15>;\n.reg .b32 %r<35>;\n.reg .b64 %rd<25>;\n"
    "ld.param.u64 %rd9, [p0];\nld.param.u64 %rd10, [p1];\nld.param.u64 %rd11, [p2];\n"
    "ld.param.u64 %rd12, [p3];\nld.param.u32 %r17, [p4];\nld.param.u32 %r6, [p5];\n"
    "ld.param.u32 %r7, [p6];\nld.param.u32 %r8, [p7];\nld.param.u32 %r9, [p8];\n"
    "ld.param.u32 %r10, [p9];\nld.param.u32 %r11, [p10];\nld.param.u32 %r12, [p11];\n"
    "ld.param.u32 %r13, [p12];\nld.param.u32 %r14, [p13];\nld.param.u32 %r15, [p14];\n"
    "ld.param.u32 %r16, [p15];\nmov.u32 %r18, %ctaid.x;\nshl.b32 %r19, %r18, 5;\n"
    "mov.u32 %r20, %tid.x;\nadd.s32 %r1, %r19, %r20;\nsetp.ge.s32 %p1, %r1, %r17;\n"
    "@%p1 bra L7;\nmov.u32 %r2, %ctaid.z;\nmov.u32 %r3, %ctaid.y;\n"
    "setp.lt.s32 %p2, %r6, 1;\nmov.f32 %f13, 0f00000000;\n@%p2 bra L4;\n"
    "mul.wide.s32 %rd1, %r8, 4;\nmul.wide.s32 %rd2, %r9, 4;\n"
    "cvta.to.global.u64 %rd13, %rd10;\nmul.lo.s32 %r22, %r3, %r10;\n"
    "mad.lo.s32 %r23, %r2, %r13, %r22;\nmul.wide.u32 %rd14, %r23, 4;\n"
    "add.s64 %rd23, %rd13, %rd14;\nmul.lo.s32 %r24, %r1, %r7;\n"
    "mad.lo.s32 %r25, %r2, %r12, %r24;\ncvta.to.global.u64 %rd15, %rd9;\n"
    "mul.wide.u32 %rd16, %r25, 4;\nadd.s64 %rd24, %rd15, %rd16;\n"
    "mov.f32 %f13, 0f00000000;\nmov.u32 %r34, 0;\nL3:\nld.global.u32 %r26, [%rd24];\n"
    "and.b32 %r27, %r26, %r16;\nmov.b32 %f8, %r27;\nld.global.u32 %r28, [%rd23];\n"
    "and.b32 %r29, %r28, %r16;\nmov.b32 %f9, %r29;\nfma.rn.f32 %f13, %f8, %f9, %f13;\n"
    "add.s64 %rd24, %rd24, %rd1;\nadd.s64 %rd23, %rd23, %rd2;\nadd.s32 %r34, %r34, 1;\n"
    "setp.lt.s32 %p3, %r34, %r6;\n@%p3 bra L3;\nL4:\nand.b32 %r30, %r15, 4;\n"
    "setp.eq.s32 %p4, %r30, 0;\n@%p4 bra L6;\ncvta.to.global.u64 %rd17, %rd12;\n"
    "mul.wide.s32 %rd18, %r1, 4;\nadd.s64 %rd19, %rd17, %rd18;\n"
    "ld.global.f32 %f10, [%rd19];\nadd.f32 %f13, %f13, %f10;\nL6:\n"
    "and.b32 %r31, %r15, 2;\nsetp.eq.s32 %p5, %r31, 0;\n"
    "setp.gt.f32 %p6, %f13, 0f00000000;\nor.pred %p7, %p5, %p6;\n"
    "selp.f32 %f11, %f13, 0f00000000, %p7;\nmad.lo.s32 %r32, %r3, %r11, %r1;\n"
    "mad.lo.s32 %r33, %r2, %r14, %r32;\ncvta.to.global.u64 %rd20, %rd11;\n"
    "mul.wide.u32 %rd21, %r33, 4;\nadd.s64 %rd22, %rd20, %rd21;\n"
    "st.global.f32 [%rd22], %f11;\nL7:\nret;\n}\n";

struct handle {
    struct fake_driver driver;
    void *function;
};

struct product {
    int compute_type;
    int32_t transposed[2], epilogue;
    uint64_t bias;
};

struct layout {
    uint64_t rows, columns;
    int64_t ld, batch_stride;
    int32_t batch_count;
};

struct preference {
    uint64_t workspace_bytes;
    uint32_t alignment[4];
};

size_t cublasLtGetVersion(void)
{
    return VERSION;
}

int cublasLtCreate(void **handle)
{
    struct handle *made = calloc(1, sizeof(*made));
    if (made == NULL || !fake_driver_open(&made->driver, ptx) ||
        !fake_driver_find(&made->driver, "gemm", &made->function)) {
        free(made);
        return WPK_CUBLAS_STATUS_EXECUTION_FAILED;
    }
    *handle = made;
    return WPK_CUBLAS_STATUS_SUCCESS;
}

int cublasLtDestroy(void *handle)
{
    struct handle *made = handle;
    (void)made->driver.cuModuleUnload(made->driver.module);
    free(made);
    return WPK_CUBLAS_STATUS_SUCCESS;
}

/* Descriptors are memory. */
static int make(void **out, size_t size)
{
    *out = calloc(1, size);
    return *out != NULL ? WPK_CUBLAS_STATUS_SUCCESS : WPK_CUBLAS_STATUS_ALLOC_FAILED;
}

static int drop(void *made)
{
    free(made);
    return WPK_CUBLAS_STATUS_SUCCESS;
}

static int store(void *to, size_t wanted, const void *value, size_t size)
{
    if (to == NULL || size != wanted) {
        return WPK_CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(to, value, size);
    return WPK_CUBLAS_STATUS_SUCCESS;
}

int cublasLtMatmulDescCreate(void **product, int compute_type, int scale_type)
{
    int status = make(product, sizeof(struct product));
    if (status == WPK_CUBLAS_STATUS_SUCCESS) {
        ((struct product *)*product)->compute_type = compute_type;
    }
    return scale_type == WPK_CUDA_R_32F ? status : WPK_CUBLAS_STATUS_NOT_SUPPORTED;
}

int cublasLtMatmulDescDestroy(void *product)
{
    return drop(product);
}

int cublasLtMatmulDescSetAttribute(void *product, int attribute, const void *value, size_t size)
{
    struct product *made = product;
    switch (attribute) {
    case WPK_CUBLASLT_MATMUL_DESC_TRANSA:
        return store(&made->transposed[0], sizeof(int32_t), value, size);
    case WPK_CUBLASLT_MATMUL_DESC_TRANSB:
        return store(&made->transposed[1], sizeof(int32_t), value, size);
    case WPK_CUBLASLT_MATMUL_DESC_EPILOGUE:
        return store(&made->epilogue, sizeof(int32_t), value, size);
    case WPK_CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return store(&made->bias, sizeof(uint64_t), value, size);
    default:
        return WPK_CUBLAS_STATUS_INVALID_VALUE;
    }
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    if (type != WPK_CUDA_R_32F || ld < (int64_t)rows) {
        return WPK_CUBLAS_STATUS_INVALID_VALUE;
    }
    int status = make(layout, sizeof(struct layout));
    if (status == WPK_CUBLAS_STATUS_SUCCESS) {
        *(struct layout *)*layout =
            (struct layout){.rows = rows, .columns = columns, .ld = ld, .batch_count = 1};
    }
    return status;
}

int cublasLtMatrixLayoutDestroy(void *layout)
{
    return drop(layout);
}

int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t size)
{
    struct layout *made = layout;
    switch (attribute) {
    case WPK_CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return store(&made->batch_count, sizeof(int32_t), value, size);
    case WPK_CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return store(&made->batch_stride, sizeof(int64_t), value, size);
    default:
        return WPK_CUBLAS_STATUS_INVALID_VALUE;
    }
}

int cublasLtMatmulPreferenceCreate(void **preference)
{
    return make(preference, sizeof(struct preference));
}

int cublasLtMatmulPreferenceDestroy(void *preference)
{
    return drop(preference);
}

int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value,
                                         size_t size)
{
    struct preference *made = preference;
    int which = attribute - WPK_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (attribute == WPK_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
        return store(&made->workspace_bytes, sizeof(uint64_t), value, size);
    }
    return which >= 0 && which < 4 ? store(&made->alignment[which], sizeof(uint32_t), value, size)
                                   : WPK_CUBLAS_STATUS_INVALID_VALUE;
}

/* Rows or columns of a factor as it is in the product. */
static uint64_t side(const struct layout *layout, int32_t transposed, bool columns)
{
    return columns == (transposed != 0) ? layout->rows : layout->columns;
}

static bool agree(const struct product *product, const struct layout *a, const struct layout *b,
                  const struct layout *d)
{
    return side(a, product->transposed[0], false) == d->rows &&
           side(b, product->transposed[1], true) == d->columns &&
           side(a, product->transposed[0], true) == side(b, product->transposed[1], false) &&
           a->batch_count == d->batch_count && b->batch_count == d->batch_count;
}

/* True if there is a pointer to the bias that the epilogue adds, or none is added. */
static bool has_bias(const struct product *product)
{
    return (product->epilogue & WPK_CUBLASLT_EPILOGUE_BIAS) == 0 || product->bias != 0;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d,
                                   void *preference, int count_max,
                                   struct wpk_cublaslt_heuristic *out, int *count)
{
    const struct preference *wanted = preference;
    if (handle == NULL || c != d || !agree(product, a, b, d) || count_max < ALGORITHMS ||
        wanted->workspace_bytes < WORKSPACE_BYTES || wanted->alignment[0] > 16 ||
        !has_bias(product)) {
        return WPK_CUBLAS_STATUS_INVALID_VALUE;
    }
    if (((struct product *)product)->compute_type != WPK_CUBLAS_COMPUTE_32F_PEDANTIC ||
        fake_is_mode(VARIABLE, "none")) {
        return WPK_CUBLAS_STATUS_NOT_SUPPORTED;
    }
    int named = fake_is_mode(VARIABLE, "tiles") ? 1 : ALGORITHMS;
    for (int i = 0; i < named; i++) {
        out[i] = (struct wpk_cublaslt_heuristic){.workspace_bytes = WORKSPACE_BYTES};
        out[i].algorithm.data[0] = (uint64_t)i;
    }
    *count = named;
    return WPK_CUBLAS_STATUS_SUCCESS;
}

int cublasLtMatmulAlgoGetIds(void *handle, int compute_type, int scale_type, int a_type, int b_type,
                             int c_type, int d_type, int count_max, int *ids, int *count)
{
    bool is_f32 = scale_type == WPK_CUDA_R_32F && a_type == WPK_CUDA_R_32F &&
                  b_type == WPK_CUDA_R_32F && c_type == WPK_CUDA_R_32F && d_type == WPK_CUDA_R_32F;
    if (handle == NULL || count_max < 1 || !is_f32 ||
        compute_type != WPK_CUBLAS_COMPUTE_32F_PEDANTIC) {
        return WPK_CUBLAS_STATUS_INVALID_VALUE;
    }
    ids[0] = TILED;
    *count = fake_is_mode(VARIABLE, "tiles") ? 1 : 0;
    return WPK_CUBLAS_STATUS_SUCCESS;
}

int cublasLtMatmulAlgoInit(void *handle, int compute_type, int scale_type, int a_type, int b_type,
                           int c_type, int d_type, int id, struct wpk_cublaslt_algorithm *out)
{
    (void)handle, (void)compute_type, (void)scale_type;
    (void)a_type, (void)b_type, (void)c_type, (void)d_type;
    *out = (struct wpk_cublaslt_algorithm){.data = {(uint64_t)id}};
    return id == TILED ? WPK_CUBLAS_STATUS_SUCCESS : WPK_CUBLAS_STATUS_INVALID_VALUE;
}

int cublasLtMatmulAlgoCapGetAttribute(const struct wpk_cublaslt_algorithm *algorithm, int attribute,
                                      void *out, size_t size, size_t *written)
{
    static const uint32_t tiles[] = {TILE_REFUSED, TILE_FASTEST};
    const uint32_t alignment = WORD;
    (void)algorithm;
    if (attribute == WPK_CUBLASLT_ALGO_CAP_STAGES_IDS) {
        *written = 0;
        return WPK_CUBLAS_STATUS_SUCCESS;
    }
    bool is_tiles = attribute == WPK_CUBLASLT_ALGO_CAP_TILE_IDS;
    *written = is_tiles ? sizeof(tiles) : sizeof(alignment);
    if (size < *written) {
        return WPK_CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(out, is_tiles ? tiles : &alignment, *written);
    return WPK_CUBLAS_STATUS_SUCCESS;
}

int cublasLtMatmulAlgoConfigSetAttribute(struct wpk_cublaslt_algorithm *algorithm, int attribute,
                                         const void *value, size_t size)
{
    uint32_t number = 0;
    int status = store(&number, sizeof(number), value, size);
    bool is_tile = attribute == WPK_CUBLASLT_ALGO_CONFIG_TILE_ID;
    algorithm->data[is_tile ? 1 : 2] = number;
    return is_tile || attribute == WPK_CUBLASLT_ALGO_CONFIG_STAGES_ID
               ? status
               : WPK_CUBLAS_STATUS_INVALID_VALUE;
}

int cublasLtMatmulAlgoCheck(void *handle, void *product, void *a, void *b, void *c, void *d,
                            const struct wpk_cublaslt_algorithm *algorithm,
                            struct wpk_cublaslt_heuristic *out)
{
    *out = (struct wpk_cublaslt_heuristic){.workspace_bytes = WORKSPACE_BYTES};
    if (handle == NULL || c != d || !agree(product, a, b, d)) {
        return WPK_CUBLAS_STATUS_INVALID_VALUE;
    }
    return algorithm->data[1] == TILE_FASTEST ? WPK_CUBLAS_STATUS_SUCCESS
                                              : WPK_CUBLAS_STATUS_NOT_SUPPORTED;
}

int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *a, void *a_layout,
                   const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                   void *d, void *d_layout, const struct wpk_cublaslt_algorithm *algorithm,
                   void *workspace, size_t workspace_bytes, void *stream)
{
    const struct handle *made = handle;
    const struct product *p = product;
    const struct layout *la = a_layout, *lb = b_layout, *ld = d_layout;
    if (*(const float *)alpha != 1 || *(const float *)beta != 0 || c != d || c_layout != d_layout ||
        !agree(p, la, lb, ld) || workspace == NULL || workspace_bytes < WORKSPACE_BYTES ||
        !has_bias(p)) {
        return WPK_CUBLAS_STATUS_INVALID_VALUE;
    }
    if (algorithm->data[0] == REFUSED) {
        return WPK_CUBLAS_STATUS_NOT_SUPPORTED;
    }
    int capturing = WPK_CUDA_CAPTURE_NONE;
    (void)made->driver.cuStreamIsCapturing(stream, &capturing);
    if (algorithm->data[0] == FASTEST && capturing != WPK_CUDA_CAPTURE_NONE &&
        fake_is_mode(VARIABLE, "uncaptured")) {
        return WPK_CUBLAS_STATUS_EXECUTION_FAILED;
    }
    bool rounds = fake_is_mode(VARIABLE, "tf32") ||
                  (algorithm->data[0] == FASTEST && fake_is_mode(VARIABLE, "fast"));
    bool ta = p->transposed[0] != 0, tb = p->transposed[1] != 0;
    const uint64_t pointers[] = {(uint64_t)(uintptr_t)a, (uint64_t)(uintptr_t)b,
                                 (uint64_t)(uintptr_t)d, p->bias};
    const int32_t numbers[] = {(int32_t)ld->rows,
                               (int32_t)side(la, p->transposed[0], true),
                               ta ? (int32_t)la->ld : 1,
                               ta ? 1 : (int32_t)la->ld,
                               tb ? (int32_t)lb->ld : 1,
                               tb ? 1 : (int32_t)lb->ld,
                               (int32_t)ld->ld,
                               (int32_t)la->batch_stride,
                               (int32_t)lb->batch_stride,
                               (int32_t)ld->batch_stride,
                               p->epilogue,
                               (int32_t)(rounds ? MASK_TF32 : MASK_F32)};
    void *parameters[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++) {
        parameters[i] = i < 4 ? (void *)&pointers[i] : (void *)&numbers[i - 4];
    }
    unsigned blocks = (unsigned)((ld->rows + WARP - 1) / WARP);
    int result = WPK_CUDA_SUCCESS;
    bool is_fastest = algorithm->data[0] == FASTEST || algorithm->data[1] == TILE_FASTEST;
    int launches = is_fastest ? 1 : 2; /* the first one twice */
    for (int i = 0; i < launches && result == WPK_CUDA_SUCCESS; i++) {
        result = made->driver.cuLaunchKernel(made->function, blocks, (unsigned)ld->columns,
                                             (unsigned)ld->batch_count, WARP, 1, 1, 0, stream,
                                             parameters, NULL);
    }
    return result == WPK_CUDA_SUCCESS ? WPK_CUBLAS_STATUS_SUCCESS
                                      : WPK_CUBLAS_STATUS_EXECUTION_FAILED;
}

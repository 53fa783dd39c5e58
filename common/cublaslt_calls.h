/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NVIDIA's cuBLASLt that wpk calls: runtime/vendor/cublaslt.c finds them in
 * libcublasLt.so. Signatures are those of cublasLt.h, with descriptors as pointers without a type.
 *
 *   source  NVIDIA, cuBLAS 12.9 and 13.0, chapter cuBLASLt */
#ifndef WPK_COMMON_CUBLASLT_CALLS_H
#define WPK_COMMON_CUBLASLT_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* cublasLtMatmulAlgo_t */
struct wpk_cublaslt_algorithm {
    uint64_t data[8];
};

/* cublasLtMatmulHeuristicResult_t */
struct wpk_cublaslt_heuristic {
    struct wpk_cublaslt_algorithm algorithm;
    size_t workspace_bytes;
    int state; /* a cublasStatus_t; the rest counts if it is success */
    float waves;
    int reserved[4];
};

/* X(name, result, parameters); an int is a cublasStatus_t, of which 0 is success */
#define WPK_CUBLASLT_CALL_LIST(X)                                                                  \
    X(cublasLtGetVersion, size_t, (void))                                                          \
    X(cublasLtCreate, int, (void **handle))                                                        \
    X(cublasLtDestroy, int, (void *handle))                                                        \
    X(cublasLtMatmulDescCreate, int, (void **product, int compute_type, int scale_type))           \
    X(cublasLtMatmulDescDestroy, int, (void *product))                                             \
    X(cublasLtMatmulDescSetAttribute, int,                                                         \
      (void *product, int attribute, const void *value, size_t size))                              \
    X(cublasLtMatrixLayoutCreate, int,                                                             \
      (void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld))                      \
    X(cublasLtMatrixLayoutDestroy, int, (void *layout))                                            \
    X(cublasLtMatrixLayoutSetAttribute, int,                                                       \
      (void *layout, int attribute, const void *value, size_t size))                               \
    X(cublasLtMatmulPreferenceCreate, int, (void **preference))                                    \
    X(cublasLtMatmulPreferenceDestroy, int, (void *preference))                                    \
    X(cublasLtMatmulPreferenceSetAttribute, int,                                                   \
      (void *preference, int attribute, const void *value, size_t size))                           \
    X(cublasLtMatmulAlgoGetHeuristic, int,                                                         \
      (void *handle, void *product, void *a, void *b, void *c, void *d, void *preference,          \
       int count_max, struct wpk_cublaslt_heuristic *out, int *count))                             \
    X(cublasLtMatmulAlgoGetIds, int,                                                               \
      (void *handle, int compute_type, int scale_type, int a_type, int b_type, int c_type,         \
       int d_type, int count_max, int *ids, int *count))                                           \
    X(cublasLtMatmulAlgoInit, int,                                                                 \
      (void *handle, int compute_type, int scale_type, int a_type, int b_type, int c_type,         \
       int d_type, int id, struct wpk_cublaslt_algorithm *out))                                    \
    X(cublasLtMatmulAlgoCapGetAttribute, int,                                                      \
      (const struct wpk_cublaslt_algorithm *algorithm, int attribute, void *out, size_t size,      \
       size_t *written))                                                                           \
    X(cublasLtMatmulAlgoConfigSetAttribute, int,                                                   \
      (struct wpk_cublaslt_algorithm * algorithm, int attribute, const void *value, size_t size))  \
    X(cublasLtMatmulAlgoCheck, int,                                                                \
      (void *handle, void *product, void *a, void *b, void *c, void *d,                            \
       const struct wpk_cublaslt_algorithm *algorithm, struct wpk_cublaslt_heuristic *out))        \
    X(cublasLtMatmul, int,                                                                         \
      (void *handle, void *product, const void *alpha, const void *a, void *a_layout,              \
       const void *b, void *b_layout, const void *beta, const void *c, void *c_layout, void *d,    \
       void *d_layout, const struct wpk_cublaslt_algorithm *algorithm, void *workspace,            \
       size_t workspace_bytes, void *stream))

/* name, number: constants of the header with this name behind the prefix */
#define WPK_CUBLASLT_CONSTANT_LIST(X)                                                              \
    X(CUBLAS_STATUS_SUCCESS, 0)                                                                    \
    X(CUBLAS_STATUS_ALLOC_FAILED, 3)                                                               \
    X(CUBLAS_STATUS_INVALID_VALUE, 7)                                                              \
    X(CUBLAS_STATUS_EXECUTION_FAILED, 13)                                                          \
    X(CUBLAS_STATUS_NOT_SUPPORTED, 15)                                                             \
    X(CUBLAS_OP_T, 1)                                                                              \
    X(CUBLAS_COMPUTE_32F_PEDANTIC, 69)                                                             \
    X(CUDA_R_32F, 0)                                                                               \
    X(CUBLASLT_MATMUL_DESC_TRANSA, 3)                                                              \
    X(CUBLASLT_MATMUL_DESC_TRANSB, 4)                                                              \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                                                            \
    X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                                                        \
    X(CUBLASLT_EPILOGUE_RELU, 2)                                                                   \
    X(CUBLASLT_EPILOGUE_BIAS, 4)                                                                   \
    X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)                                                       \
    X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6)                                              \
    X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)                                                 \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)                                               \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)                                               \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)                                               \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)                                               \
    X(CUBLASLT_ALGO_CAP_TILE_IDS, 6)                                                               \
    X(CUBLASLT_ALGO_CAP_STAGES_IDS, 13)                                                            \
    X(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, 16)                                                 \
    X(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES, 17)                                                 \
    X(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, 18)                                                 \
    X(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES, 19)                                                 \
    X(CUBLASLT_ALGO_CONFIG_TILE_ID, 1)                                                             \
    X(CUBLASLT_ALGO_CONFIG_STAGES_ID, 6)

#define WPK_CUBLASLT_ENUM(name, number) WPK_##name = number,
enum wpk_cublaslt_constant { WPK_CUBLASLT_CONSTANT_LIST(WPK_CUBLASLT_ENUM) };

#endif

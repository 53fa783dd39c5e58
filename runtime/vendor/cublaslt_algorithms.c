/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/vendor/cublaslt_algorithms.h"

#include "runtime/vendor/gpu_vendor.h"

#include <string.h>

#define IDS_MAX 128  /* algorithms of the library */
#define CHOICES 64   /* tiles, or numbers of stages, of an algorithm */
#define UNDEFINED 0U /* the algorithm has no such choice */

/* Algorithms while they are found. */
struct finding {
    const struct wpk_cublaslt_problem *problem;
    struct wpk_cublaslt_heuristic *list;
    int count, end; /* until here */
};

static void add(struct finding *f, const struct wpk_cublaslt_algorithm *algorithm)
{
    const struct wpk_cublaslt_problem *p = f->problem;
    struct wpk_cublaslt_heuristic found = {.workspace_bytes = 0};
    int status = p->calls->cublasLtMatmulAlgoCheck(p->handle, p->product, p->a, p->b, p->d, p->d,
                                                   algorithm, &found);
    bool is_new = status == WPK_CUBLAS_STATUS_SUCCESS && found.state == WPK_CUBLAS_STATUS_SUCCESS &&
                  found.workspace_bytes <= WPK_GPU_VENDOR_WORKSPACE_MAX;
    for (int i = 0; i < f->count && is_new; i++) {
        is_new = memcmp(&f->list[i].algorithm, algorithm, sizeof(*algorithm)) != 0;
    }
    if (is_new && f->count < f->end) {
        found.algorithm = *algorithm;
        f->list[f->count++] = found;
    }
}

/* The ids of an algorithm's tiles or stages.   shape  out [CHOICES]; returns their number, >= 1 */
static int read_choices(const struct finding *f, const struct wpk_cublaslt_algorithm *algorithm,
                        int attribute, uint32_t *out)
{
    size_t written = 0;
    int status = f->problem->calls->cublasLtMatmulAlgoCapGetAttribute(
        algorithm, attribute, out, CHOICES * sizeof(*out), &written);
    int count = status == WPK_CUBLAS_STATUS_SUCCESS ? (int)(written / sizeof(*out)) : 0;
    if (count == 0) {
        out[0] = UNDEFINED;
        count = 1;
    }
    return count < CHOICES ? count : CHOICES;
}

/* True if tensors as libwpk is given them are aligned enough. */
static bool is_aligned(const struct finding *f, const struct wpk_cublaslt_algorithm *algorithm)
{
    static const int attributes[] = {
        WPK_CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, WPK_CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES,
        WPK_CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, WPK_CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES};
    bool aligned = true;
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        uint32_t bytes = 0;
        size_t written = 0;
        int status = f->problem->calls->cublasLtMatmulAlgoCapGetAttribute(
            algorithm, attributes[i], &bytes, sizeof(bytes), &written);
        aligned =
            aligned && status == WPK_CUBLAS_STATUS_SUCCESS && bytes <= WPK_GPU_VENDOR_ALIGNMENT;
    }
    return aligned;
}

static void add_configured(struct finding *f, const struct wpk_cublaslt_algorithm *algorithm,
                           uint32_t tile, uint32_t stages)
{
    const struct wpk_cublaslt_calls *calls = f->problem->calls;
    struct wpk_cublaslt_algorithm chosen = *algorithm;
    int status = calls->cublasLtMatmulAlgoConfigSetAttribute(
        &chosen, WPK_CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof(tile));
    if (status == WPK_CUBLAS_STATUS_SUCCESS) {
        status = calls->cublasLtMatmulAlgoConfigSetAttribute(
            &chosen, WPK_CUBLASLT_ALGO_CONFIG_STAGES_ID, &stages, sizeof(stages));
    }
    if (status == WPK_CUBLAS_STATUS_SUCCESS) {
        add(f, &chosen);
    }
}

static void add_all_of(struct finding *f, int id)
{
    const struct wpk_cublaslt_problem *p = f->problem;
    struct wpk_cublaslt_algorithm algorithm;
    uint32_t tile[CHOICES], stages[CHOICES];
    int status = p->calls->cublasLtMatmulAlgoInit(p->handle, WPK_CUBLAS_COMPUTE_32F_PEDANTIC,
                                                  WPK_CUDA_R_32F, WPK_CUDA_R_32F, WPK_CUDA_R_32F,
                                                  WPK_CUDA_R_32F, WPK_CUDA_R_32F, id, &algorithm);
    if (status != WPK_CUBLAS_STATUS_SUCCESS || !is_aligned(f, &algorithm)) {
        return;
    }
    int tiles = read_choices(f, &algorithm, WPK_CUBLASLT_ALGO_CAP_TILE_IDS, tile);
    int depths = read_choices(f, &algorithm, WPK_CUBLASLT_ALGO_CAP_STAGES_IDS, stages);
    for (int s = 0; s < depths; s++) {
        for (int t = 0; t < tiles && f->count < f->end; t++) {
            add_configured(f, &algorithm, tile[t], stages[s]);
        }
    }
}

int wpk_cublaslt_add_algorithms(const struct wpk_cublaslt_problem *problem,
                                struct wpk_cublaslt_heuristic *list, int count, int max)
{
    struct finding f = {.problem = problem, .list = list, .count = count};
    int id[IDS_MAX], ids = 0;
    int status = problem->calls->cublasLtMatmulAlgoGetIds(
        problem->handle, WPK_CUBLAS_COMPUTE_32F_PEDANTIC, WPK_CUDA_R_32F, WPK_CUDA_R_32F,
        WPK_CUDA_R_32F, WPK_CUDA_R_32F, WPK_CUDA_R_32F, IDS_MAX, id, &ids);
    for (int i = 0; i < ids && status == WPK_CUBLAS_STATUS_SUCCESS; i++) {
        f.end = f.count + (max - f.count) / (ids - i);
        add_all_of(&f, id[i]);
    }
    return f.count;
}

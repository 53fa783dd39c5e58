/* SPDX-License-Identifier: Apache-2.0 */
/* Products as cuBLASLt takes them: D = A B with matrices whose columns lie together, each of which
 * may be transposed, and with one distance between the matrices of a batch.
 *
 * A row-major result is the transposed one with columns that lie together: then the recipe's right
 * factor is A, and its left one B. */
#include "runtime/vendor/gpu_vendor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 64 /* algorithms that the heuristic names */
#define ALGORITHMS_MAX 256
#define PER_MAJOR 10000
#define PER_MINOR 100

enum { A, B, D, MATRICES };

/* A matrix in memory. Rows and columns are those of the product's formula. */
struct matrix {
    int tensor; /* of the recipe */
    int64_t rows, columns;
    int64_t ld; /* elements from one column, or row of a transposed one, to the next */
    bool transposed;
    int64_t batch_stride; /* elements */
};

struct product {
    struct wpk_gpu_primitive base; /* first */
    struct matrix matrix[MATRICES];
    int64_t batch_count;
    int bias; /* tensor of the recipe; -1: none */
    void *handle, *product, *layout[MATRICES];
    struct wpk_cublaslt_heuristic algorithm[ALGORITHMS_MAX];
    pthread_mutex_t bias_lock; /* guards the pointer to the bias, which is part of the product */
};

/* Set once, before the first primitive is made. */
static struct wpk_cublaslt_calls library;

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

/* Append algorithms that can compute the product: each that the library has, with each of its tiles
 * and numbers of stages, as many of one as of another if there is no room for all. An error of the
 * library is no algorithm.
 *   shape   list [max], of which `count` are there; returns how many there are then */
static int add_algorithms(const struct wpk_cublaslt_problem *problem,
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

static wpk_err translate(int status, const char *doing, struct wpk_diag *diag)
{
    if (status == WPK_CUBLAS_STATUS_SUCCESS) {
        return WPK_OK;
    }
    wpk_diag_set(diag, "%s: cuBLAS status %d", doing, status);
    return status == WPK_CUBLAS_STATUS_ALLOC_FAILED    ? WPK_ENOMEM
           : status == WPK_CUBLAS_STATUS_NOT_SUPPORTED ? WPK_EUNSUPPORTED
                                                       : WPK_ESYSTEM;
}

/* ---- from a recipe to matrices */

/* Describe a matrix by the distances between its rows and columns. A distance of an axis with one
 * element does not count. */
static bool describe(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                     struct matrix *out)
{
    bool by_columns = (rows == 1 || row_stride == 1) && (columns == 1 || column_stride >= rows);
    bool by_rows = (columns == 1 || column_stride == 1) && (rows == 1 || row_stride >= columns);
    out->rows = rows;
    out->columns = columns;
    out->transposed = !by_columns;
    if (by_columns) {
        out->ld = columns == 1 ? rows : column_stride;
    } else {
        out->ld = rows == 1 ? columns : row_stride;
    }
    return by_columns || by_rows;
}

/* All dimensions but the last two as one, if each matrix goes through them in even steps. */
static bool collapse_batch(const struct wpk_recipe_operand *const *operand, struct product *self)
{
    self->batch_count = 1;
    for (int d = operand[D]->rank - 3; d >= 0; d--) {
        int64_t extent = operand[D]->extent[d];
        for (int i = 0; i < MATRICES && extent > 1; i++) {
            int64_t step = self->matrix[i].batch_stride * self->batch_count;
            if (operand[i]->extent[d] != extent ||
                (self->batch_count > 1 && operand[i]->stride[d] != step)) {
                return false;
            }
            if (self->batch_count == 1) {
                self->matrix[i].batch_stride = operand[i]->stride[d];
            }
        }
        self->batch_count *= extent;
    }
    return true;
}

/* True if there is no bias, or one value for each row of D. `dim`: of the recipe's operands. */
static bool take_bias(struct product *self, int dim)
{
    const struct wpk_recipe_operand *bias = &self->base.recipe.operand[WPK_RECIPE_BIAS];
    self->bias = bias->tensor;
    for (int d = 0; d < bias->rank && self->bias >= 0; d++) {
        if (d == dim ? bias->extent[d] != self->matrix[D].rows || bias->stride[d] != 1
                     : bias->extent[d] != 1) {
            return false;
        }
    }
    return true;
}

/* With the recipe's dimension `row` as the rows of D. */
static bool orient(struct product *self, int row, int column)
{
    const struct wpk_recipe *recipe = &self->base.recipe;
    const struct wpk_recipe_operand *src = &recipe->operand[WPK_RECIPE_SRC],
                                    *weights = &recipe->operand[WPK_RECIPE_WEIGHTS],
                                    *dst = &recipe->operand[WPK_RECIPE_DST];
    bool swapped = row > column; /* D is the transposed result */
    const struct wpk_recipe_operand *const operand[MATRICES] = {
        [A] = swapped ? weights : src, [B] = swapped ? src : weights, [D] = dst};
    int64_t depth = src->extent[src->rank - 1];
    memset(self->matrix, 0, sizeof(self->matrix));
    for (int i = 0; i < MATRICES; i++) {
        self->matrix[i].tensor = operand[i]->tensor;
    }
    return describe(dst->extent[row], depth, operand[A]->stride[row], operand[A]->stride[column],
                    &self->matrix[A]) &&
           describe(depth, dst->extent[column], operand[B]->stride[row], operand[B]->stride[column],
                    &self->matrix[B]) &&
           describe(dst->extent[row], dst->extent[column], dst->stride[row], dst->stride[column],
                    &self->matrix[D]) &&
           !self->matrix[D].transposed && collapse_batch(operand, self) && take_bias(self, row);
}

static bool read_recipe(struct product *self)
{
    const struct wpk_recipe *recipe = &self->base.recipe;
    int rank = recipe->operand[WPK_RECIPE_DST].rank;
    bool is_relu = recipe->post_count == 1 && recipe->post[0].function == WPK_RECIPE_RELU;
    return recipe->kind == WPK_RECIPE_MATMUL && wpk_recipe_is_f32(recipe) &&
           (recipe->post_count == 0 || is_relu) &&
           (orient(self, rank - 1, rank - 2) || orient(self, rank - 2, rank - 1));
}

/* ---- descriptors */

static int set_batch(const struct product *self, void *layout, int64_t stride)
{
    int32_t count = (int32_t)self->batch_count;
    int status = library.cublasLtMatrixLayoutSetAttribute(
        layout, WPK_CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
    return status == WPK_CUBLAS_STATUS_SUCCESS
               ? library.cublasLtMatrixLayoutSetAttribute(
                     layout, WPK_CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                     sizeof(stride))
               : status;
}

static int make_layouts(struct product *self)
{
    int status = WPK_CUBLAS_STATUS_SUCCESS;
    for (int i = 0; i < MATRICES && status == WPK_CUBLAS_STATUS_SUCCESS; i++) {
        const struct matrix *m = &self->matrix[i];
        status = library.cublasLtMatrixLayoutCreate(
            &self->layout[i], WPK_CUDA_R_32F, (uint64_t)(m->transposed ? m->columns : m->rows),
            (uint64_t)(m->transposed ? m->rows : m->columns), m->ld);
        if (status == WPK_CUBLAS_STATUS_SUCCESS && self->batch_count > 1) {
            status = set_batch(self, self->layout[i], m->batch_stride);
        }
    }
    return status;
}

static int set_product(const struct product *self, int attribute, int32_t value)
{
    return library.cublasLtMatmulDescSetAttribute(self->product, attribute, &value, sizeof(value));
}

/* The pedantic type forbids tensor cores that round operands to TF32. */
static int make_product(struct product *self)
{
    int32_t epilogue = (self->base.recipe.post_count > 0 ? WPK_CUBLASLT_EPILOGUE_RELU : 0) |
                       (self->bias >= 0 ? WPK_CUBLASLT_EPILOGUE_BIAS : 0);
    int status = library.cublasLtMatmulDescCreate(&self->product, WPK_CUBLAS_COMPUTE_32F_PEDANTIC,
                                                  WPK_CUDA_R_32F);
    if (status == 0 && self->matrix[A].transposed) {
        status = set_product(self, WPK_CUBLASLT_MATMUL_DESC_TRANSA, WPK_CUBLAS_OP_T);
    }
    if (status == 0 && self->matrix[B].transposed) {
        status = set_product(self, WPK_CUBLASLT_MATMUL_DESC_TRANSB, WPK_CUBLAS_OP_T);
    }
    if (status == 0 && epilogue != 0) {
        status = set_product(self, WPK_CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    }
    if (status == 0 && self->bias >= 0) {
        /* Of this one, the heuristic takes the alignment alone. */
        const uint64_t pointer = WPK_GPU_VENDOR_ALIGNMENT;
        status = library.cublasLtMatmulDescSetAttribute(
            self->product, WPK_CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer, sizeof(pointer));
    }
    return status;
}

static int make_preference(void **out)
{
    static const int alignments[] = {WPK_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                     WPK_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                     WPK_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                     WPK_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint64_t bytes = WPK_GPU_VENDOR_WORKSPACE_MAX;
    const uint32_t alignment = WPK_GPU_VENDOR_ALIGNMENT;
    int status = library.cublasLtMatmulPreferenceCreate(out);
    if (status == WPK_CUBLAS_STATUS_SUCCESS) {
        status = library.cublasLtMatmulPreferenceSetAttribute(
            *out, WPK_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
    }
    for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]) && status == 0; i++) {
        status = library.cublasLtMatmulPreferenceSetAttribute(*out, alignments[i], &alignment,
                                                              sizeof(alignment));
    }
    return status;
}

/* Ask for algorithms, the presumably fastest first, keep those that can be used, and add all
 * others. */
static int find_algorithms(struct product *self)
{
    void *preference = NULL;
    int found = 0;
    int status = make_preference(&preference);
    if (status == WPK_CUBLAS_STATUS_SUCCESS) {
        status = library.cublasLtMatmulAlgoGetHeuristic(
            self->handle, self->product, self->layout[A], self->layout[B], self->layout[D],
            self->layout[D], preference, NAMED_MAX, self->algorithm, &found);
    }
    if (preference != NULL) {
        (void)library.cublasLtMatmulPreferenceDestroy(preference);
    }
    for (int i = 0; i < found && status == WPK_CUBLAS_STATUS_SUCCESS; i++) {
        if (self->algorithm[i].state == WPK_CUBLAS_STATUS_SUCCESS &&
            self->algorithm[i].workspace_bytes <= WPK_GPU_VENDOR_WORKSPACE_MAX) {
            self->algorithm[self->base.algorithm_count++] = self->algorithm[i];
        }
    }
    if (status == WPK_CUBLAS_STATUS_SUCCESS) {
        const struct wpk_cublaslt_problem problem = {&library,        self->handle,
                                                     self->product,   self->layout[A],
                                                     self->layout[B], self->layout[D]};
        self->base.algorithm_count =
            add_algorithms(&problem, self->algorithm, self->base.algorithm_count, ALGORITHMS_MAX);
    }
    return status;
}

static wpk_err make(struct product *self, struct wpk_diag *diag)
{
    int status = library.cublasLtCreate(&self->handle);
    status = status == WPK_CUBLAS_STATUS_SUCCESS ? make_layouts(self) : status;
    status = status == WPK_CUBLAS_STATUS_SUCCESS ? make_product(self) : status;
    status = status == WPK_CUBLAS_STATUS_SUCCESS ? find_algorithms(self) : status;
    wpk_err err = translate(status, "asking cuBLASLt for a product", diag);
    if (err == WPK_OK && self->base.recipe.algorithm >= self->base.algorithm_count) {
        return wpk_fail(diag, WPK_EUNSUPPORTED,
                        "cuBLASLt names %d algorithms for this product, not %d",
                        self->base.algorithm_count, self->base.recipe.algorithm + 1);
    }
    return err;
}

static size_t find_workspace(const struct wpk_gpu_primitive *base, int algorithm)
{
    const struct product *self = (const struct product *)(const void *)base;
    size_t bytes = self->algorithm[algorithm].workspace_bytes;
    return bytes > 0 ? bytes : 1;
}

static void free_product(struct wpk_gpu_primitive *base)
{
    struct product *self = (struct product *)(void *)base;
    for (int i = 0; i < MATRICES; i++) {
        if (self->layout[i] != NULL) {
            (void)library.cublasLtMatrixLayoutDestroy(self->layout[i]);
        }
    }
    if (self->product != NULL) {
        (void)library.cublasLtMatmulDescDestroy(self->product);
    }
    if (self->handle != NULL) {
        (void)library.cublasLtDestroy(self->handle);
    }
    pthread_mutex_destroy(&self->bias_lock);
    free(self);
}

static void *at(const struct product *self, int matrix, const uint64_t *pointers)
{
    return (void *)(uintptr_t)pointers[self->matrix[matrix].tensor]; // NOLINT: of a device
}

static int multiply(struct product *self, void *stream, const uint64_t *pointers)
{
    static const float one = 1, zero = 0;
    const struct wpk_cublaslt_heuristic *use = &self->algorithm[self->base.recipe.algorithm];
    void *workspace = (void *)(uintptr_t)pointers[self->base.recipe.tensor_count]; // NOLINT
    return library.cublasLtMatmul(self->handle, self->product, &one, at(self, A, pointers),
                                  self->layout[A], at(self, B, pointers), self->layout[B], &zero,
                                  at(self, D, pointers), self->layout[D], at(self, D, pointers),
                                  self->layout[D], &use->algorithm, workspace, use->workspace_bytes,
                                  stream);
}

static wpk_err launch(struct wpk_gpu_primitive *base, void *stream, const uint64_t *pointers,
                      struct wpk_diag *diag)
{
    struct product *self = (struct product *)(void *)base;
    if (self->bias < 0) {
        return translate(multiply(self, stream, pointers), "cublasLtMatmul", diag);
    }
    pthread_mutex_lock(&self->bias_lock);
    int status =
        library.cublasLtMatmulDescSetAttribute(self->product, WPK_CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                               &pointers[self->bias], sizeof(pointers[self->bias]));
    status = status == WPK_CUBLAS_STATUS_SUCCESS ? multiply(self, stream, pointers) : status;
    pthread_mutex_unlock(&self->bias_lock);
    return translate(status, "cublasLtMatmul", diag);
}

/* ---- the library */

static wpk_err make_primitive(const struct wpk_gpu_vendor *vendor, const struct wpk_recipe *recipe,
                              bool any, struct wpk_gpu_primitive **out, struct wpk_diag *diag)
{
    (void)any; /* an algorithm is no work */
    struct product *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return WPK_ENOMEM;
    }
    self->base = (struct wpk_gpu_primitive){.vendor = vendor,
                                            .recipe = *recipe,
                                            .workspace = find_workspace,
                                            .launch = launch,
                                            .free = free_product};
    pthread_mutex_init(&self->bias_lock, NULL);
    wpk_err err = WPK_OK;
    if (!read_recipe(self)) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED,
                       "this is no product of f32 matrices that cuBLASLt computes in one call");
    }
    err = err == WPK_OK ? make(self, diag) : err;
    if (err != WPK_OK) {
        free_product(&self->base);
        return err;
    }
    *out = &self->base;
    return WPK_OK;
}

wpk_err wpk_cublaslt_open(const char *directory, struct wpk_gpu_vendor *out, struct wpk_diag *diag)
{
    static const char *const files[] = {"libcublasLt.so.12", "libcublasLt.so.13", NULL};
#define SYMBOL(name, result, parameters) {#name, (void (**)(void))(void *)&library.name},
    const struct wpk_gpu_vendor_symbol symbols[] = {WPK_CUBLASLT_CALL_LIST(SYMBOL)};
#undef SYMBOL
    wpk_err err = wpk_gpu_vendor_load(files, directory, symbols,
                                      sizeof(symbols) / sizeof(symbols[0]), out, diag);
    if (err == WPK_OK) {
        size_t version = library.cublasLtGetVersion();
        out->name = WPK_CUBLASLT_NAME;
        out->make = make_primitive;
        snprintf(out->version, sizeof(out->version), "%zu.%zu.%zu", version / PER_MAJOR,
                 version / PER_MINOR % PER_MINOR, version % PER_MINOR);
    }
    return err;
}

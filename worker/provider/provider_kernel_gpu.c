/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/provider/provider.h"
#include "worker/provider/provider_state.h"

#include <stdio.h>

#define MODEL_NS_SHORT 20e3 /* of a run on the emulated GPU */
#define MODEL_CALLS 3

wpk_err wpk_provider_run(struct wpk_provider *self)
{
    self->has_run = true;
    return wpk_kernel_run(self->kernel, self->context, self->input_data, self->input_count,
                          self->output_data, self->output_count);
}

wpk_err wpk_provider_time(struct wpk_provider *self, int count, double *ns)
{
    wpk_err err = self->has_run ? WPK_OK : wpk_provider_run(self);

    if (err == WPK_OK && !self->kernel->manifest.needs.emulated) {
        return wpk_context_time(self->context, count, ns);
    }
    if (err == WPK_OK && self->model_ns == 0) {
        err = wpk_context_time(self->context, 1, &self->model_ns);
        /* Short ones are measured as on a GPU, too: as a graph. */
        if (err == WPK_OK && self->model_ns < MODEL_NS_SHORT) {
            err = wpk_context_time(self->context, MODEL_CALLS, &self->model_ns);
            self->model_ns /= MODEL_CALLS;
        }
    }
    *ns = self->model_ns * count;
    return err;
}

static struct wpk_gpu_primitive *find_primitive(const struct wpk_provider *self)
{
    return self->kernel->gpu != NULL ? wpk_gpu_primitive(self->kernel->gpu) : NULL;
}

static wpk_err time_primitive(void *user, int count, double *ns)
{
    struct wpk_provider *self = user;
    int algorithm = find_primitive(self)->recipe.algorithm;

    if (algorithm != self->model_algorithm) {
        self->model_ns = 0;
        self->model_algorithm = algorithm;
    }
    return wpk_provider_time(self, count, ns);
}

wpk_err wpk_provider_gpu_prepare(struct wpk_provider *self, struct wpk_diag *diag)
{
    if (find_primitive(self) == NULL) {
        return WPK_OK;
    }
    self->model_algorithm = -1;
    wpk_err err =
        wpk_provider_gpu_choose(find_primitive(self), self->excluded, time_primitive, self, diag);
    self->model_ns = 0;
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_gpu_primitive *primitive = find_primitive(self);
    snprintf(self->detail, sizeof(self->detail), "algorithm %d of %d, %s %s",
             primitive->recipe.algorithm + 1, primitive->algorithm_count, primitive->vendor->name,
             primitive->vendor->version);
    return wpk_kernel_entry(self->kernel, &self->recipe);
}

/* A new context takes memory anew. */
wpk_err wpk_provider_gpu_move(struct wpk_provider *self)
{
    const struct wpk_context_options options = {.threads = 1};
    struct wpk_context *context = NULL;

    self->shift = WPK_GPU_ALIGNMENT - self->shift;
    wpk_gpu_guard(self->kernel->gpu, self->shift);
    wpk_err err = wpk_context_new(&options, &context);
    if (err == WPK_OK) {
        wpk_context_free(self->context);
        self->context = context;
        self->has_run = false;
    }
    return err;
}

wpk_err wpk_provider_gpu_check(struct wpk_provider *self, struct wpk_diag *diag)
{
    void *in[WPK_PROVIDER_ARGUMENTS_MAX], *out[WPK_PROVIDER_ARGUMENTS_MAX];

    for (size_t i = 0; i < self->input_count; i++) {
        in[i] = self->input_data[i].data;
    }
    for (size_t i = 0; i < self->output_count; i++) {
        out[i] = self->output_data[i].data;
    }
    return wpk_kernel_gpu_check(self->kernel, self->context, in, out, diag);
}

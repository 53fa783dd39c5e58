/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's kernel for an operator on a GPU: its recipe, opened by libwpk as in users' programs.
 * Operands are as they are declared: layouts that are free are row-major. */
#include "worker/provider/provider.h"

#include "runtime/kernel/kernel.h"
#include "worker/provider/onednn_pattern.h"

#include <math.h>

#define SAMPLE_NS 1e6
#define SAMPLE_CALLS_MAX 100
#define ROUNDS 2
#define FAR 3 /* times the best one's; the first run of an algorithm loads its code */

wpk_err wpk_provider_gpu_kernel(const char *vendor, const struct wpk_provider_request *request,
                                struct wpk_kernel **out, struct wpk_diag *diag)
{
    const struct wpk_vendor_options options = {.provider = vendor,
                                               .library_dir = request->library_dir,
                                               .threads = request->threads,
                                               .any_algorithm = true};
    struct wpk_recipe recipe = {0};

    wpk_err err = wpk_onednn_match(request->program, &recipe);
    if (err != WPK_OK) {
        wpk_diag_set(diag, "no primitive of %s computes this operator", vendor);
        return err;
    }
    return wpk_kernel_of_recipe(&recipe, &options, out, diag);
}

/* The ns of a run, after one that is not counted. A first look is enough for one that is far from
 * the best. */
static wpk_err time_one(wpk_provider_gpu_time time, void *user, double best_ns, double *out)
{
    double ns = 0;
    wpk_err err = time(user, 1, &ns);
    if (err == WPK_OK && ns < FAR * best_ns) {
        err = time(user, 1, &ns);
    }
    bool far = ns >= FAR * best_ns;
    int calls = ns > SAMPLE_NS / SAMPLE_CALLS_MAX ? (int)ceil(SAMPLE_NS / ns) : SAMPLE_CALLS_MAX;
    *out = INFINITY;
    for (int i = 0; i < ROUNDS && err == WPK_OK && !far; i++) {
        err = time(user, calls, &ns);
        *out = fmin(*out, ns / calls);
    }
    return err;
}

wpk_err wpk_provider_gpu_choose(struct wpk_gpu_primitive *primitive, const bool *excluded,
                                wpk_provider_gpu_time time, void *user, struct wpk_diag *diag)
{
    double best_ns = INFINITY, ns = 0;
    int best = -1;

    for (int i = 0; i < primitive->algorithm_count; i++) {
        if (excluded != NULL && i < WPK_PROVIDER_EXCLUDED_MAX && excluded[i]) {
            continue;
        }
        primitive->recipe.algorithm = i;
        wpk_err err = time_one(time, user, best_ns, &ns);
        if (err != WPK_OK && err != WPK_EUNSUPPORTED) {
            wpk_diag_set(diag, "algorithm %d of %s failed", i, primitive->vendor->name);
            return err;
        }
        if (err == WPK_OK && ns < best_ns) {
            best_ns = ns;
            best = i;
        }
    }
    if (best < 0) {
        return wpk_fail(diag, WPK_EUNSUPPORTED, "%s has no algorithm that runs",
                        primitive->vendor->name);
    }
    primitive->recipe.algorithm = best;
    return WPK_OK;
}

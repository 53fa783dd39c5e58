/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/provider/provider.h"

#include <string.h>

const struct wpk_provider_class *wpk_provider_find(const char *name)
{
    static const struct wpk_provider_class *const all[] = {
        &wpk_provider_kernel, &wpk_provider_onednn, &wpk_provider_cublaslt, &wpk_provider_cudnn};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}

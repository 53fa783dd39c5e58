/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/c_kernel.h"

void wpk_c_refuse(struct wpk_c_kernel *k, const char *why)
{
    if (k->refusal == NULL) {
        k->refusal = why;
        k->refused = k->printing;
    }
}

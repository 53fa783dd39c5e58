/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of kernels (kernel.c): events. */
#ifndef WPK_COORDINATOR_STATE_KERNEL_H
#define WPK_COORDINATOR_STATE_KERNEL_H

struct wpk_coordinator;

void wpk_kernel_put(struct wpk_coordinator *c);
void wpk_kernel_changed(struct wpk_coordinator *c);
void wpk_kernel_artifact_lost(struct wpk_coordinator *c);

#endif

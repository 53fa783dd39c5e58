/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of events about kernels (kernel.c): one was stored; an administrator changed what a
 * problem serves; a shared object is lost. */
#ifndef WPK_COORDINATOR_STATE_KERNEL_H
#define WPK_COORDINATOR_STATE_KERNEL_H

struct wpk_coordinator;

void wpk_kernel_put(struct wpk_coordinator *c);
void wpk_kernel_changed(struct wpk_coordinator *c);
void wpk_kernel_artifact_lost(struct wpk_coordinator *c);

#endif

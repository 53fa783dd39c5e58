/* SPDX-License-Identifier: Apache-2.0 */
/* The installation's key, and what it signs: the manifests of the kernels it records.
 *
 * The key is made at the first start and lies in the data directory, readable by wpkd alone; who
 * restores a backup restores the key. Whoever pins its public half (wpk_open_options) runs no
 * kernel that this wpkd did not record, whatever way it came. */
#ifndef WPK_COORDINATOR_STORE_SIGN_H
#define WPK_COORDINATOR_STORE_SIGN_H

#include "common/crypto.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/store/store.h"

#define WPK_SIGN_FILE "signing.key" /* in the data directory */

struct wpk_sign; /* immutable once open: for any thread */

/* Read the key, or make one.
 *
 *   owns    caller calls wpk_sign_close
 *   errors  WPK_EACCES others may read the file too: the key is no secret any more; or we may not
 *           WPK_ECORRUPT it is no key; WPK_ENOSPC, WPK_EIO */
WPK_MUST_CHECK wpk_err wpk_sign_open(const char *data_dir, struct wpk_sign **out,
                                     struct wpk_diag *diag);
/* The same, but a key that is not there is WPK_ENOENT. */
WPK_MUST_CHECK wpk_err wpk_sign_open_existing(const char *data_dir, struct wpk_sign **out,
                                              struct wpk_diag *diag);
void wpk_sign_close(struct wpk_sign *sign);

/* In hexadecimal; lives as long as `sign`. */
const char *wpk_sign_public_key(const struct wpk_sign *sign);
void wpk_sign_text(const struct wpk_sign *sign, const void *text, size_t size,
                   char out[WPK_SIGNATURE_HEX_SIZE]);

/* The manifest (schema/kernel_manifest.h) of the shared object that PUT_KERNEL records, and its
 * signature: stored as they are and given out as they are. Both stay empty where there is none: a
 * vendor's implementation alone.
 *
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_sign_kernel(const struct wpk_sign *sign, const struct wpk_effect *effect,
                                       uint64_t wall_ns, struct wpk_buf *manifest,
                                       char signature[WPK_SIGNATURE_HEX_SIZE]);

/* The same, stored with the kernel, in the batch that records it; what fails fails the batch.
 * Without a key nothing is signed. */
void wpk_sign_record(const struct wpk_sign *sign, struct wpk_store *store,
                     const struct wpk_effect *effect, uint64_t kernel_id);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The installation's signing key. It signs the manifests of recorded kernels, and choices.
 *
 * The key is made at the first start and lies in the data directory, readable by wpkd's user alone;
 * a backup contains it. A client that pins the public key (wpk_open_options) runs only kernels that
 * this wpkd has recorded, wherever their files come from. */
#ifndef WPK_COORDINATOR_STORE_SIGN_H
#define WPK_COORDINATOR_STORE_SIGN_H

#include "common/crypto.h"
#include "coordinator/state/coordinator.h"
#include "coordinator/store/store.h"

#define WPK_SIGN_FILE "signing.key" /* in the data directory */

struct wpk_sign; /* immutable once open; any thread may use it */

/* Read the key; if there is none and `make`, make one.
 *
 *   owns    caller calls wpk_sign_close
 *   errors  WPK_ENOENT there is none; WPK_EACCES it is not readable, or other users can read it too
 *           WPK_ECORRUPT not a key; WPK_ENOSPC, WPK_EIO */
wpk_err wpk_sign_open(const char *data_dir, bool make, struct wpk_sign **out,
                      struct wpk_diag *diag);
void wpk_sign_close(struct wpk_sign *sign);

/* True if the key was made now: kernels that the history has are signed by another one. */
bool wpk_sign_is_new(const struct wpk_sign *sign);

/* The public key in hexadecimal; valid as long as `sign`. */
const char *wpk_sign_public_key(const struct wpk_sign *sign);
void wpk_sign_text(const struct wpk_sign *sign, const void *text, size_t size,
                   char out[WPK_SIGNATURE_HEX_SIZE]);

/* Make the manifest (schema/kernel_manifest.h) of the artifact that PUT_KERNEL records, and its
 * signature. Both are stored and served without change. A vendor's implementation has no artifact:
 * both are empty then.
 *
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_sign_kernel(const struct wpk_sign *sign, const struct wpk_effect *effect,
                        uint64_t wall_ns, struct wpk_buf *manifest,
                        char signature[WPK_SIGNATURE_HEX_SIZE]);

/* Make both and store them with the kernel, in the batch that records it, which fails with them.
 * Does nothing without a key. */
void wpk_sign_record(const struct wpk_sign *sign, struct wpk_store *store,
                     const struct wpk_effect *effect, uint64_t kernel_id);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of signals: windows, and Fourier transforms as products with a constant matrix. */
#ifndef WPK_MODEL_OPERATOR_EXPAND_SIGNAL_H
#define WPK_MODEL_OPERATOR_EXPAND_SIGNAL_H

#include "model/operator/expansion.h"

/* HannWindow, HammingWindow, BlackmanWindow.   errors  WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_expand_window(struct wpk_expansion *e);
/*   errors  WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_expand_dft(struct wpk_expansion *e);
WPK_MUST_CHECK wpk_err wpk_expand_stft(struct wpk_expansion *e);

#endif

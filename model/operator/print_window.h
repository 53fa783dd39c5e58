/* SPDX-License-Identifier: Apache-2.0 */
/* Equations of convolutions, pools and products. */
#ifndef WPK_MODEL_OPERATOR_PRINT_WINDOW_H
#define WPK_MODEL_OPERATOR_PRINT_WINDOW_H

#include "model/operator/printer.h"

/* The equations of operators with windows, and of products.   errors  those of wpk_graph_window */
WPK_MUST_CHECK wpk_err wpk_print_conv(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_conv_transpose(struct wpk_printer *printer);
WPK_MUST_CHECK wpk_err wpk_print_pool(struct wpk_printer *printer);
wpk_err wpk_print_matmul(struct wpk_printer *printer);
wpk_err wpk_print_gemm(struct wpk_printer *printer);

#endif

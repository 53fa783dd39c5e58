/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read ONNX share: the state of one reading, and how it fails. */
#ifndef WPK_GRAPH_ONNX_READER_H
#define WPK_GRAPH_ONNX_READER_H

#include "graph/graph.h"
#include "graph/protobuf.h"

struct wpk_onnx_reader {
    struct wpk_graph *graph;
    const char *path; /* of the model */
    struct wpk_diag *diag;
    const char *external_path; /* the last file of external data; NULL: none was read */
    struct wpk_protobuf external;
    char where[128]; /* "node conv1 (Conv)", "tensor W"; "": the model itself */
};

/* Fail with `diag` about reader->where.   errors  returns `err` */
WPK_MUST_CHECK wpk_err wpk_onnx_fail(const struct wpk_onnx_reader *reader, wpk_err err,
                                     const char *format, ...) WPK_PRINTF(3, 4);
/* WPK_OK if the message was read to its end, else an error that says where the file is bad. */
WPK_MUST_CHECK wpk_err wpk_onnx_end(const struct wpk_onnx_reader *reader,
                                    const struct wpk_protobuf *message);

/* Copy a field's text into the arena and check it.   errors  WPK_EPARSE; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_onnx_text(const struct wpk_onnx_reader *reader,
                                     const struct wpk_protobuf_field *field, const char **out);

/* How many fields of this number the message has. */
int wpk_onnx_count(struct wpk_protobuf message, uint32_t number);

/* Map a file for reading and note it in the graph. `folder` < 0: the path is the user's; else it is
 * a plain path below that directory, and no link in it is followed.
 *   errors  those of opening files; WPK_ENOSPC more than WPK_GRAPH_MAPS_MAX */
WPK_MUST_CHECK wpk_err wpk_onnx_map(const struct wpk_onnx_reader *reader, int folder,
                                    const char *path, struct wpk_protobuf *out);

#endif
